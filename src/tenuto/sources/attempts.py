"""A list of units beside an append-only log of attempts.

The list (`PATH`, one unit a line: an id, and after a tab its title) is a person's and never written here. What became
of units is a line each in `PATH.log.jsonl`, only ever added to; the last line of a unit says how it stands. A line that
was cut off by a crash is no line: the next one begins on a line of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tenuto.model.chain import (
    Answer,
    Blocker,
    Board,
    Foreign,
    Hold,
    Outcome,
    OutOfOrder,
    Record,
    Recorded,
    Unit,
    UnitState,
)
from tenuto.model.faults import Mistake
from tenuto.sources.claims import refusal, taken
from tenuto.sources.locking import locked

LARGEST = 64 * 1024 * 1024
#: How a line begins that only says who has a unit.
CLAIM = b'{"claim": '
STATES = {
    Outcome.DONE: UnitState.DONE,
    Outcome.BLOCKED: UnitState.BLOCKED,
    Outcome.FAILED: UnitState.ELIGIBLE,
    Outcome.GIVEN_UP: UnitState.ELIGIBLE,
    Outcome.TAKEN: UnitState.IN_FLIGHT,
}


@dataclass(frozen=True)
class AttemptsLog:
    """The units of the list at `path`, and what the log beside it says of them."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path.with_name(f"{self.path.name}.log.jsonl")

    def read(self) -> Board:
        """All units in the order of the list; Mistake where it is none, OSError where it cannot be read."""
        listed = _bytes(self.path)
        said, raw = self._said()
        units: dict[str, Unit] = {}
        for line in listed.decode("utf-8", "replace").splitlines():
            name, _, title = line.partition("\t")
            name = name.strip()
            if not name or name.startswith("#"):
                continue
            if name in units or len(name.encode()) > 500:
                raise Mistake(f"a unit stands twice in the list, or is too long: {name[:80]}", field="source")
            known = said.get(name, Unit(name, UnitState.ELIGIBLE))
            units[name] = replace(known, title=title.strip())
        told = b"\n".join(line for line in raw.split(b"\n") if line and not line.startswith(CLAIM))
        return Board(tuple(units.values()), hashlib.sha256(listed + b"\0" + told).hexdigest())

    def claim(self, hold: Hold) -> Answer:
        """Add one line that says who has a unit, once for one name."""
        try:
            with locked(self.log, os.O_APPEND) as handle:
                board, raw = self.read(), self._said()[1]
                unit = board.unit(hold.unit)
                if (refused := refusal(unit, hold)) is not None:
                    return refused
                if unit is not None and unit.claimed_by != hold.by:
                    _add(handle, raw, {"claim": hold.by, "unit": hold.unit})
                return Recorded(board.revision)
        except (OSError, Mistake) as why:
            return OutOfOrder(str(why))

    def record(self, what: Record) -> Answer:
        """Add one line, once for one marker."""
        try:
            with locked(self.log, os.O_APPEND) as handle:
                raw = self._said()[1]
                if any(line.get("marker") == what.marker for line in _lines(raw)):
                    return Recorded(self.read().revision)
                board = self.read()
                unit = board.unit(what.unit)
                if unit is None:
                    return Foreign(f"unit {what.unit} is not in the list any more", None)
                if unit.state is UnitState.DONE:
                    return Foreign(f"unit {what.unit} was settled by somebody else", unit)
                if (other := taken(unit, what)) is not None:
                    return other
                if what.outcome is Outcome.GIVEN_UP:
                    if unit.claimed_by is not None:
                        _add(handle, raw, {"claim": None, "unit": what.unit})
                    return Recorded(self.read().revision)
                blocker = None if what.blocker is None else vars(what.blocker)
                line = {
                    "unit": what.unit, "outcome": what.outcome.value, "evidence": what.evidence, "blocker": blocker,
                    "attempts": what.attempts, "marker": what.marker,
                }  # fmt: skip
                _add(handle, raw, line)
                return Recorded(self.read().revision)
        except (OSError, Mistake) as why:
            return OutOfOrder(str(why))

    def _said(self) -> tuple[dict[str, Unit], bytes]:
        """The last word about each unit, and the log as it lies."""
        try:
            raw = _bytes(self.log)
        except FileNotFoundError:
            return {}, b""
        found: dict[str, Unit] = {}
        for line in _lines(raw):
            name, outcome = line.get("unit"), line.get("outcome")
            if isinstance(name, str) and "claim" in line:
                found[name] = _claimed(found.get(name, Unit(name, UnitState.ELIGIBLE)), line["claim"])
                continue
            if not isinstance(name, str) or outcome not in set(Outcome):
                continue
            marked, attempts = line.get("blocker"), line.get("attempts")
            blocker = None
            if isinstance(marked, dict):
                blocker = Blocker(*(str(marked.get(each, "")) for each in ("tracked_by", "blocked_on", "resume_when")))
            evidence = line.get("evidence")
            found[name] = Unit(
                id=name,
                state=STATES[Outcome(str(outcome))],
                evidence=None if evidence is None else str(evidence),
                blocker=blocker,
                attempts=attempts if isinstance(attempts, int) and attempts >= 0 else 0,
                recorded_by=str(line.get("marker")),
            )
        return found, raw


def _claimed(unit: Unit, by: object) -> Unit:
    """A unit after a line that says who has it (None: nobody any more)."""
    if by is None:
        return replace(unit, state=UnitState.ELIGIBLE, claimed_by=None)
    return replace(unit, state=UnitState.IN_FLIGHT, claimed_by=str(by))


def _add(handle: int, raw: bytes, line: Mapping[str, object]) -> None:
    """One whole line more, on the disk when this returns."""
    new = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    if raw and not raw.endswith(b"\n"):
        new = b"\n" + new
    while new:
        new = new[os.write(handle, new) :]
    os.fsync(handle)


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise Mistake(f"{path.name} is larger than {LARGEST} bytes", field="source")
    return raw


def _lines(raw: bytes) -> Iterator[dict[str, object]]:
    """The whole lines of a log; what is cut off or no object says nothing."""
    for line in raw.split(b"\n"):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            yield told
