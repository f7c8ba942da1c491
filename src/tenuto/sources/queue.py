"""A queue of units in one JSON file.

The file is read whole and written whole: beside it, synced, and moved into its place, under a lock that everybody of
ours takes. What a person or a program edits meanwhile is seen, because every write begins with what stands there now:
a unit that somebody else has settled is not settled again, and fields that are not ours are carried along.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenuto.model.chain import Answer, Board, Foreign, Hold, Outcome, OutOfOrder, Record, Recorded, UnitState
from tenuto.model.faults import Mistake
from tenuto.sources.claims import refusal, taken
from tenuto.sources.locking import locked
from tenuto.sources.sheet import Kept, Sheet, Unreadable, unit_of

LARGEST = 64 * 1024 * 1024
_KEPT = Kept()


@dataclass(frozen=True)
class QueueFile:
    """`{"version": 1, "units": [{"id": …, "title": …, "state": …}]}` at `path`."""

    path: Path

    def read(self) -> Board:
        """All units in their order; Mistake where it is no queue, OSError where it cannot be read."""
        try:
            return self._sheet().board
        except Unreadable as why:
            raise Mistake(str(why), field="source") from None

    def claim(self, hold: Hold) -> Answer:
        """Write that a unit is worked on, once for one name."""
        try:
            with self._changing() as now:
                row = now.row(hold.unit)
                if (refused := refusal(None if row is None else unit_of(row), hold)) is not None or row is None:
                    return refused or OutOfOrder("the unit is gone")
                if row.get("claimed_by") == hold.by:
                    return Recorded(now.revision)
                row |= {"state": UnitState.IN_FLIGHT.value, "claimed_by": hold.by}
                return Recorded(self._write(now.changed(row)))
        except (OSError, Unreadable, Mistake) as why:
            return OutOfOrder(str(why))

    def record(self, what: Record) -> Answer:
        """Write what became of one unit, once for one marker."""
        try:
            with self._changing() as now:
                row = now.row(what.unit)
                if row is None:
                    return Foreign(f"unit {what.unit} is not in the queue any more", None)
                if row.get("recorded_by") == what.marker:
                    return Recorded(now.revision)
                unit = unit_of(row)
                if unit.state is UnitState.DONE:
                    return Foreign(f"unit {what.unit} was settled by somebody else", unit)
                if (other := taken(unit, what)) is not None:
                    return other
                if what.outcome is Outcome.GIVEN_UP:
                    if unit.claimed_by is None:
                        return Recorded(now.revision)
                    row["state"] = UnitState.ELIGIBLE.value
                else:
                    row |= _written(what)
                row.pop("claimed_by", None)
                if what.outcome is Outcome.DONE:
                    row.pop("blocker", None)
                return Recorded(self._write(now.changed(row)))
        except (OSError, Unreadable, Mistake) as why:
            return OutOfOrder(str(why))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Sheet]:
        """The queue as it stands, while nobody else of ours changes it."""
        place = self.path.resolve()
        with locked(place.with_name(f".{place.name}.lock")):
            yield self._sheet()

    def _sheet(self) -> Sheet:
        with self.path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise Unreadable(f"the queue is larger than {LARGEST} bytes")
        return _KEPT.of(str(self.path.resolve()), raw)

    def _write(self, made: Sheet) -> str:
        mode = self.path.stat().st_mode & 0o777
        place = self.path.resolve()
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(made.raw)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            Path(name).replace(place)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        _KEPT.keep(str(place), made)
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return made.revision


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
