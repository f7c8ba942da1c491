"""A queue of units in one JSON file.

The file is read whole and written whole: beside it, synced, and moved into its place, under a lock that everybody of
ours takes. What a person or a program edits meanwhile is seen, because every write begins with what stands there now:
a unit that somebody else has settled is not settled again, and fields that are not ours are carried along.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class Unreadable(Exception):
    """The file cannot be taken for a queue; the text says why."""


@dataclass(frozen=True)
class QueueFile:
    """`{"version": 1, "units": [{"id": …, "title": …, "state": …}]}` at `path`."""

    path: Path

    def read(self) -> Board:
        """All units in their order; Mistake where it is no queue, OSError where it cannot be read."""
        try:
            document, raw = self._document()
        except Unreadable as why:
            raise Mistake(str(why), field="source") from None
        return Board(tuple(_unit(row) for row in document["units"]), _revision(document, raw))

    def claim(self, hold: Hold) -> Answer:
        """Write that a unit is worked on, once for one name."""
        try:
            with self._changing() as (document, raw):
                row = next((row for row in document["units"] if row["id"] == hold.unit), None)
                if (refused := refusal(None if row is None else _unit(row), hold)) is not None or row is None:
                    return refused or OutOfOrder("the unit is gone")
                if row.get("claimed_by") == hold.by:
                    return Recorded(_revision(document, raw))
                row |= {"state": UnitState.IN_FLIGHT.value, "claimed_by": hold.by}
                return Recorded(self._write(document))
        except (OSError, Unreadable, Mistake) as why:
            return OutOfOrder(str(why))

    def record(self, what: Record) -> Answer:
        """Write what became of one unit, once for one marker."""
        try:
            with self._changing() as (document, raw):
                row = next((row for row in document["units"] if row["id"] == what.unit), None)
                if row is None:
                    return Foreign(f"unit {what.unit} is not in the queue any more", None)
                if row.get("recorded_by") == what.marker:
                    return Recorded(_revision(document, raw))
                unit = _unit(row)
                if unit.state is UnitState.DONE:
                    return Foreign(f"unit {what.unit} was settled by somebody else", unit)
                if (other := taken(unit, what)) is not None:
                    return other
                if what.outcome is Outcome.GIVEN_UP:
                    if unit.claimed_by is None:
                        return Recorded(_revision(document, raw))
                    row["state"] = UnitState.ELIGIBLE.value
                else:
                    row |= _written(what)
                row.pop("claimed_by", None)
                if what.outcome is Outcome.DONE:
                    row.pop("blocker", None)
                return Recorded(self._write(document))
        except (OSError, Unreadable, Mistake) as why:
            return OutOfOrder(str(why))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The queue as it stands, while nobody else of ours changes it."""
        place = self.path.resolve()
        with locked(place.with_name(f".{place.name}.lock")):
            yield self._document()

    def _document(self) -> tuple[dict[str, Any], bytes]:
        with self.path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise Unreadable(f"the queue is larger than {LARGEST} bytes")
        try:
            document = json.loads(raw)
        except ValueError as error:
            raise Unreadable(f"the queue is no JSON: {error}") from None
        whole = isinstance(document, dict) and document.get("version") == 1
        if not whole or not isinstance(document.get("units"), list):
            raise Unreadable('the queue is an object with "version": 1 and a list "units"')
        seen: set[str] = set()
        for row in document["units"]:
            name = row.get("id") if isinstance(row, dict) else None
            if not isinstance(name, str) or not name.strip() or len(name.encode()) > 500 or name in seen:
                raise Unreadable(f"every unit has an id of its own, of at most 500 bytes: not {name!r:.80}")
            seen.add(name)
        return document, raw

    def _write(self, document: dict[str, Any]) -> str:
        raw = (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()
        mode = self.path.stat().st_mode & 0o777
        place = self.path.resolve()
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(name).replace(place)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return _revision(document, raw)


def _revision(document: dict[str, Any], raw: bytes) -> str:
    """The same for the same queue, whoever has which unit: a claim alone is no progress."""
    if b'"claimed_by"' not in raw and b'"eligible"' not in raw:
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    plain = {**document, "units": [_plain(row) for row in document["units"]]}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in row.items() if name != "claimed_by"}
    if "claimed_by" in row or row.get("state") == UnitState.ELIGIBLE.value:
        left.pop("state", None)
    return left


def _unit(row: dict[str, Any]) -> Unit:
    try:
        state = UnitState(row.get("state", UnitState.ELIGIBLE))
    except ValueError:
        raise Mistake(f"unit {row['id']} has a state that is not known: {row['state']!r:.80}", field="source") from None
    attempts = row.get("attempts", 0)
    marked = row.get("blocker")
    blocker = None
    if isinstance(marked, dict):
        blocker = Blocker(*(str(marked.get(name, "")) for name in ("tracked_by", "blocked_on", "resume_when")))
    return Unit(
        id=row["id"],
        state=state,
        title=str(row.get("title", "")),
        evidence=None if row.get("evidence") is None else str(row["evidence"]),
        blocker=blocker,
        attempts=attempts if isinstance(attempts, int) and not isinstance(attempts, bool) and attempts >= 0 else 0,
        recorded_by=row.get("recorded_by"),
        claimed_by=None if row.get("claimed_by") is None else str(row["claimed_by"]),
    )


def _written(what: Record) -> dict[str, Any]:
    """What a record changes in a unit's row."""
    state = {Outcome.DONE: UnitState.DONE, Outcome.BLOCKED: UnitState.BLOCKED}.get(what.outcome, UnitState.ELIGIBLE)
    told: dict[str, Any] = {"state": state.value, "attempts": what.attempts, "recorded_by": what.marker}
    if what.evidence is not None:
        told["evidence"] = what.evidence
    if what.blocker is not None:
        told["blocker"] = {
            "tracked_by": what.blocker.tracked_by,
            "blocked_on": what.blocker.blocked_on,
            "resume_when": what.blocker.resume_when,
        }
    return told
