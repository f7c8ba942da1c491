"""Units as rows of a database: any URL that SQLAlchemy opens, and named statements of the configuration.

`list` gives the columns id, state, title, evidence, attempts, blocker and recorded_by (only id is needed) in the order
in which they are to be worked. `record` writes one unit and has to be a compare-and-set of its own: it is run with
:unit, :state, :evidence, :attempts, :blocker and :marker, and must change one row or none. `claim`, where there is
one, is run with :unit, :by and :over, and sets claimed_by to :by where it is :over; NULL is nobody, and `record` sets
that. A row that somebody has is in flight. Values are always bound.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tenuto.core.chain import blocker_in, blocker_text
from tenuto.model.chain import Answer, Board, Foreign, Hold, Outcome, OutOfOrder, Record, Recorded, Unit, UnitState
from tenuto.model.faults import Mistake
from tenuto.sources.attempts import STATES
from tenuto.sources.claims import refusal, taken

MOST = 200_000


@dataclass(frozen=True)
class SqlRows:
    """The rows that the statement `list` finds at a database's URL."""

    url: str
    listing: str
    recording: str
    claiming: str | None = None

    def read(self) -> Board:
        """All units in the statement's order; Mistake where it gives none that can be read, OSError out of reach."""
        try:
            engine = create_engine(self.url, poolclass=NullPool)
            with engine.connect() as connection:
                rows = connection.execute(text(self.listing)).mappings().fetchmany(MOST + 1)
                return _board([dict(row) for row in rows])
        except SQLAlchemyError as error:
            raise OSError(f"the database of the units cannot be read: {type(error).__name__}") from None

    def claim(self, hold: Hold) -> Answer | None:
        """Run the statement that claims, where there is one, in one transaction with the look before it."""
        if self.claiming is None:
            return None
        try:
            engine = create_engine(self.url, poolclass=NullPool)
            with engine.begin() as connection:
                unit = self._seen(connection, hold.unit)
                if (refused := refusal(unit, hold)) is not None or unit is None:
                    return refused or OutOfOrder("the unit is gone")
                if unit.claimed_by != hold.by:
                    told = {"unit": hold.unit, "by": hold.by, "over": unit.claimed_by}
                    changed = connection.execute(text(self.claiming), told).rowcount
                    if changed > 1:
                        connection.rollback()
                        return OutOfOrder(f"the statement that claims changed {changed} rows; it was undone")
                    again = self._seen(connection, hold.unit)
                    if changed == 0 or again is None or again.claimed_by != hold.by:
                        return Foreign(f"unit {hold.unit} was changed by somebody else meanwhile", again)
            return Recorded(self.read().revision)
        except (SQLAlchemyError, OSError, Mistake) as error:
            return OutOfOrder(f"the database of the units cannot be written: {type(error).__name__}")

    def record(self, what: Record) -> Answer:
        """Run the statement once for one marker, in one transaction with the look before it."""
        try:
            engine = create_engine(self.url, poolclass=NullPool)
            with engine.begin() as connection:
                unit = self._seen(connection, what.unit)
                if unit is None:
                    return Foreign(f"unit {what.unit} is not among the rows any more", None)
                if (other := taken(unit, what)) is not None:
                    return other
                if what.outcome is Outcome.GIVEN_UP:
                    if unit.claimed_by is not None and self.claiming is not None:
                        told = {"unit": what.unit, "by": None, "over": unit.claimed_by}
                        connection.execute(text(self.claiming), told)
                elif unit.recorded_by != what.marker:
                    if unit.state is UnitState.DONE:
                        return Foreign(f"unit {what.unit} was settled by somebody else", unit)
                    changed = connection.execute(text(self.recording), _bound(what)).rowcount
                    if changed > 1:
                        connection.rollback()
                        return OutOfOrder(f"the statement that records changed {changed} rows; it was undone")
                    again = self._seen(connection, what.unit)
                    if changed == 0 or again is None or again.recorded_by != what.marker:
                        return Foreign(f"unit {what.unit} was changed by somebody else meanwhile", again)
            return Recorded(self.read().revision)
        except (SQLAlchemyError, OSError, Mistake) as error:
            return OutOfOrder(f"the database of the units cannot be written: {type(error).__name__}")

    def _seen(self, connection: Any, unit: str) -> Unit | None:
        rows = connection.execute(text(self.listing)).mappings().fetchmany(MOST + 1)
        return _board([dict(row) for row in rows]).unit(unit)


def _bound(what: Record) -> Mapping[str, object]:
    return {
        "unit": what.unit,
        "state": STATES[what.outcome].value,
        "evidence": what.evidence,
        "attempts": what.attempts,
        "blocker": None if what.blocker is None else blocker_text(what.blocker),
        "marker": what.marker,
    }


def _board(rows: list[dict[str, Any]]) -> Board:
    if len(rows) > MOST:
        raise Mistake(f"the statement finds more than {MOST} rows", field="source")
    units: dict[str, Unit] = {}
    for row in rows:
        name = None if row.get("id") is None else str(row["id"])
        if not name or name in units:
            raise Mistake(f"every row has an id of its own; this one has not: {name!r:.80}", field="source")
        try:
            state = UnitState(str(row.get("state") or UnitState.ELIGIBLE.value))
        except ValueError:
            raise Mistake(f"row {name} has a state that is not known: {row['state']!r:.80}", field="source") from None
        if row.get("claimed_by") is not None and state is not UnitState.DONE:
            state = UnitState.IN_FLIGHT
        units[name] = Unit(
            id=name,
            state=state,
            title=str(row.get("title") or ""),
            evidence=None if row.get("evidence") is None else str(row["evidence"]),
            blocker=blocker_in(str(row.get("blocker") or "")),
            attempts=int(row.get("attempts") or 0),
            recorded_by=None if row.get("recorded_by") is None else str(row["recorded_by"]),
            claimed_by=None if row.get("claimed_by") is None else str(row["claimed_by"]),
        )
    told = json.dumps([_plain(row) for row in rows]).encode()
    return Board(tuple(units.values()), hashlib.sha256(told).hexdigest())


def _plain(row: dict[str, Any]) -> list[str]:
    """What a revision counts of a row: who has it is no progress."""
    return [str(value) for name, value in row.items() if name != "claimed_by"]
