"""A queue file as it was read: its rows, and what was made of each of them.

A queue is read and written for every unit, and from one time to the next one row of it differs. So what was made of a
file is kept for as long as the file has the very same bytes, and a change makes only its own row anew. A sheet never
changes; whoever changes a row gets another one. Nothing is believed of a file that was not read just now.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from tenuto.model.chain import Blocker, Board, Unit, UnitState
from tenuto.model.faults import Mistake

#: The largest file of which a sheet is kept, in bytes, and how many files at once.
KEPT_BYTES, KEPT = 4 * 1024 * 1024, 2
UNITS = "units"
T = TypeVar("T")


class Unreadable(Exception):
    """The file cannot be taken for a queue; the text says why."""


@dataclass(frozen=True)
class Sheet:
    """`rows` are the units as they stand in the file, `lines` each of them as it is written, `plain` as it counts for
    the revision, and `at` where each stands. `document` is the rest of the file, with its keys in their order.
    """

    raw: bytes
    document: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    lines: tuple[str, ...]
    plain: tuple[str, ...]
    at: Mapping[str, int]

    @cached_property
    def revision(self) -> str:
        """The same for the same queue, whoever has which unit: a claim alone is no progress."""
        rest = json.dumps({name: value for name, value in self.document.items() if name != UNITS}, sort_keys=True)
        return hashlib.sha256("\n".join((rest, *self.plain)).encode()).hexdigest()

    @cached_property
    def board(self) -> Board:
        """All units in their order; Mistake names one that cannot be read."""
        return Board(tuple([unit_of(row) for row in self.rows]), self.revision)

    def row(self, name: str) -> dict[str, Any] | None:
        """A unit's row, to be changed by whoever asks; None: it is not in the queue."""
        place = self.at.get(name)
        return None if place is None else dict(self.rows[place])

    def changed(self, row: dict[str, Any]) -> Sheet:
        """The sheet with another row in the place of the unit's."""
        place = self.at[row["id"]]
        lines = _put(self.lines, place, _line(row))
        plain = _put(self.plain, place, _plain(row))
        made = Sheet(_written(self.document, lines), self.document, _put(self.rows, place, row), lines, plain, self.at)
        if (board := self.__dict__.get("board")) is not None:
            units = _put(board.units, place, unit_of(row))
            made.__dict__["board"] = replace(board, units=units, revision=made.revision)
        return made


def sheet(raw: bytes) -> Sheet:
    """What a file says. Raises Unreadable for what is no queue."""
    try:
        document = json.loads(raw)
    except ValueError as error:
        raise Unreadable(f"the queue is no JSON: {error}") from None
    whole = isinstance(document, dict) and document.get("version") == 1
    if not whole or not isinstance(document.get(UNITS), list):
        raise Unreadable('the queue is an object with "version": 1 and a list "units"')
    rows = document[UNITS]
    at: dict[str, int] = {}
    for place, row in enumerate(rows):
        name = row.get("id") if isinstance(row, dict) else None
        if not isinstance(name, str) or not name.strip() or len(name.encode()) > 500 or name in at:
            raise Unreadable(f"every unit has an id of its own, of at most 500 bytes: not {name!r:.80}")
        at[name] = place
    return Sheet(raw, document | {UNITS: []}, tuple(rows), tuple(map(_line, rows)), tuple(map(_plain, rows)), at)


def unit_of(row: Mapping[str, Any]) -> Unit:
    """A unit as its row tells it; Mistake where its state is none."""
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


def _written(document: Mapping[str, Any], lines: tuple[str, ...]) -> bytes:
    """The file: a line for each unit, and everything else as it was."""
    units = "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"
    parts = [f" {_line(name)}: {units if name == UNITS else _line(value)}" for name, value in document.items()]
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _line(value: object) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if told.isascii() or _encodes(told) else json.dumps(value)


def _encodes(told: str) -> bool:
    try:
        told.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(row: Mapping[str, Any]) -> str:
    left = {name: value for name, value in row.items() if name != "claimed_by"}
    if "claimed_by" in row or row.get("state") == UnitState.ELIGIBLE.value:
        left.pop("state", None)
    return json.dumps(left, sort_keys=True)


def _put(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    changed = list(values)
    changed[place] = value
    return tuple(changed)


class Kept:
    """The sheets of the files that were read last, each for as long as its file has the same bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sheets: OrderedDict[str, Sheet] = OrderedDict()

    def of(self, place: str, raw: bytes) -> Sheet:
        """The sheet of these bytes. Raises Unreadable for what is no queue."""
        with self._lock:
            known = self._sheets.get(place)
        if known is not None and known.raw == raw:
            return known
        made = sheet(raw)
        self.keep(place, made)
        return made

    def keep(self, place: str, made: Sheet) -> None:
        """Remember what a file says now; what is too large is not kept."""
        with self._lock:
            self._sheets.pop(place, None)
            if len(made.raw) <= KEPT_BYTES:
                self._sheets[place] = made
            while len(self._sheets) > KEPT:
                self._sheets.popitem(last=False)
