"""What one commit does inside its transaction: everything, or a refusal that undoes it.

First the fence: the epoch in the registry is still ours. Then the key, the clock, the guards, and only then rows,
holds and events. A refusal is raised here and becomes the commit's result once the transaction is undone; what the
tables themselves refuse is a fault of ours and stays an exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from sqlalchemy import bindparam, delete, insert, literal_column, select, update
from sqlalchemy.sql.base import Executable

from tenuto.model.change import (
    KEY_LIFE,
    Busy,
    Commit,
    Committed,
    Key,
    KeyConflict,
    NotLeader,
    Replayed,
    Result,
    Row,
    Stale,
)
from tenuto.model.command import Armed, Command
from tenuto.model.evidence import Sighting
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import IllegalMove
from tenuto.model.lifecycle import CommandState
from tenuto.store import tables
from tenuto.store.dialect import Connection, Cursor, Dialect, Parameters, Texts
from tenuto.store.rows import Cell, Shape, at, document, moment, read_document

#: A clock that stands this much before the last event has gone back.
WENT_BACK = timedelta(seconds=2)
#: How many rows of each kind are remembered as they were last written, so that their next revision writes only what
#: it changes; and how many such statements there may be in all.
REMEMBERED = 256
VARIANTS = 512
#: How many recorded observations of one subject are kept; older ones go when a newer one comes.
SIGHTINGS_KEPT = 2000

_EPOCH = select(tables.leadership.c.epoch).with_for_update()
_LAST = (
    select(tables.event.c.n, tables.event.c.at)
    .order_by(tables.event.c.n.desc())
    .limit(literal_column("1"))
    .offset(literal_column("0"))
)
_KEY = select(tables.idempotency.c.digest, tables.idempotency.c.result, tables.idempotency.c.at).where(
    tables.idempotency.c.scope == bindparam("scope"), tables.idempotency.c.key == bindparam("key")
)
_FORGET_KEY = delete(tables.idempotency).where(
    tables.idempotency.c.scope == bindparam("scope"), tables.idempotency.c.key == bindparam("key")
)
_ADD_KEY = insert(tables.idempotency)
_ADD_HOLD = insert(tables.hold)
_FREE = delete(tables.hold).where(tables.hold.c.command_id == bindparam("command_id"))
_ADD_EVENT = insert(tables.event)
_OLDEST_KEPT = (
    select(tables.sighting.c.id)
    .where(tables.sighting.c.task_id == bindparam("task_id"), tables.sighting.c.subject == bindparam("subject"))
    .order_by(tables.sighting.c.id.desc())
    .limit(literal_column("1"))
    .offset(literal_column(str(SIGHTINGS_KEPT)))
)
_FORGET = delete(tables.sighting).where(
    tables.sighting.c.task_id == bindparam("task_id"),
    tables.sighting.c.subject == bindparam("subject"),
    bindparam("oldest") >= tables.sighting.c.id,
)
_COMMAND_STATE = select(tables.command.c.state).where(tables.command.c.id == bindparam("id"))
_INSERTS = {shape.name: insert(tables.TABLES[shape.name]) for shape in tables.ORDER}
_UPDATES = {
    shape.name: update(tables.TABLES[shape.name]).where(
        tables.TABLES[shape.name].c.id == bindparam("its_id"),
        tables.TABLES[shape.name].c.revision == bindparam("its_revision"),
    )
    for shape in tables.ORDER
    if shape.revised
}
_GUARDS = {
    name: select(tables.TABLES[name].c.revision).where(tables.TABLES[name].c.id == bindparam("id")) for name in _UPDATES
}
_FACT = Shape(Fact)
_NOTHING: Mapping[str, Cell] = {}
_SHAPES: dict[type, Shape[Row]] = {shape.cls: shape for shape in tables.ORDER}
_PLACES = {shape.cls: place for place, shape in enumerate(tables.ORDER)}


class Refusal(Exception):
    """The commit is not to be: its transaction is undone, and `result` says why."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


class Put(NamedTuple):
    """One row as a statement; `parts` are the values of its fields."""

    row: Row
    name: str
    sql: str
    cells: list[Cell]
    parts: tuple[Any, ...]


class Prepared(NamedTuple):
    """A commit with its rows as cells: what can be made ready before the writer's turn comes."""

    commit: Commit
    puts: list[Put]
    facts: list[list[Cell]]


class Transactions:
    """Writes commits on an open transaction of one dialect."""

    def __init__(self, dialect: Dialect, texts: Texts) -> None:
        self._dialect = dialect
        self._sql = texts
        self._inserts = {shape.name: texts.of(_INSERTS[shape.name], shape.columns).sql for shape in tables.ORDER}
        self._updates = {
            shape.name: texts.of(_UPDATES[shape.name], shape.columns[1:]).sql for shape in tables.ORDER if shape.revised
        }
        self._partly: dict[tuple[str, tuple[int, ...]], str] = {}
        self._written: dict[str, dict[str, tuple[int, tuple[Any, ...]]]] = {name: {} for name in self._updates}
        self._event = texts.of(_ADD_EVENT, tables.EVENT.columns).sql
        self._hold = texts.of(_ADD_HOLD, ("scope", "command_id")).sql
        self._guards = {name: texts.of(guard).sql for name, guard in _GUARDS.items()}
        self._free = texts.of(_FREE).sql
        self._epoch, self._last_event = texts.of(_EPOCH).sql, texts.of(_LAST).sql

    def prepare(self, commit: Commit) -> Prepared:
        """Turn a commit's rows into cells, parents first; touches no connection."""
        puts: list[Put] = []
        for row in sorted(commit.puts, key=_place):
            shape = _SHAPES[type(row)]
            parts = shape.parts(row)
            if not shape.revised or row.revision == 1:  # type: ignore[union-attr]
                puts.append(Put(row, shape.name, self._inserts[shape.name], shape.cells(parts), parts))
            else:
                puts.append(Put(row, shape.name, *self._replacing(shape, row, parts), parts))
        return Prepared(commit, puts, list(map(_FACT.dump, commit.facts)))

    def _replacing(self, shape: Shape[Row], row: Row, parts: tuple[Any, ...]) -> tuple[str, list[Cell]]:
        """The UPDATE that makes a row's predecessor this one: of what differs, where the predecessor is remembered."""
        last = row.revision - 1  # type: ignore[union-attr]
        before = self._written[shape.name].get(row.id)
        if before is not None and before[0] == last:
            places, cells = shape.changes(before[1], parts)
            sql = self._partly.get((shape.name, places))
            if sql is None and len(self._partly) < VARIANTS:
                named = tuple(shape.columns[place] for place in places)
                sql = self._sql.of(_UPDATES[shape.name], named).sql
                self._partly[shape.name, places] = sql
            if sql is not None:
                cells += (row.id, last)
                return sql, cells
        cells = shape.cells(parts)
        return self._updates[shape.name], [*cells[1:], row.id, last]

    def remember(self, prepared: Prepared) -> None:
        """These rows are durable now, exactly so: what replaces them need not write what stays."""
        for put in prepared.puts:
            rows = self._written.get(put.name)
            if rows is not None:
                rows.pop(put.row.id, None)
                rows[put.row.id] = (put.row.revision, put.parts)  # type: ignore[union-attr]
                if len(rows) > REMEMBERED:
                    del rows[next(iter(rows))]

    def forget(self) -> None:
        """Somebody else may have written since: remember nothing."""
        for rows in self._written.values():
            rows.clear()

    def write(self, connection: Connection, prepared: Prepared, epoch: int | None, now: datetime) -> Committed:
        """Write all of it at `now` under `epoch`; Refusal when it may not be, IllegalMove when it never may.

        What is asked first is asked together, and so is all that is written: a server is waited for twice.
        """
        commit = prepared.commit
        with self._dialect.together(connection):
            asked = [connection.execute(self._epoch, ()), connection.execute(self._last_event, ())]
            asked += [connection.execute(self._guards[guard.table], (guard.id,)) for guard in commit.guards]
            # To their ends, and before anything is refused: a statement that is not over holds on to what it has seen.
            leads, last, *looks = [cursor.fetchall() for cursor in asked]
            fenced = _leading(leads, epoch)
            n, before = _after(last, now)
            if commit.key is not None:
                self._know(connection, commit.key, now)
            if commit.valid_until is not None and now > commit.valid_until:
                raise Refusal(Stale("what was seen is too old to act on"))
            for guard, found in zip(commit.guards, looks, strict=True):
                if not found or found[0][0] != guard.revision:
                    raise Refusal(Stale(f"{guard.table} {guard.id}"))
        facts: Sequence[list[Cell]] = prepared.facts
        if facts and before - now > WENT_BACK:
            facts = (_FACT.dump(went_back(before, now)), *facts)
        sent: list[Cursor] = []
        try:
            with self._dialect.together(connection):
                for command_id in commit.frees:
                    connection.execute(self._free, (command_id,))
                armed = self._put_all(connection, prepared, fenced, sent)
                for hold in commit.holds:
                    sent.append(connection.execute(self._hold, hold))  # noqa: PERF401 - one that fails leaves those before it
                n = self._append(connection, n, facts, fenced, now)
                if commit.key is not None:
                    self._remember(connection, commit.key, now)
        except self._dialect.failure as error:
            self._explain(error, prepared, sent)
        for place, cursor in enumerate(sent):
            if cursor.rowcount != 1:
                raise Refusal(Stale(_named(prepared, place)))
        return Committed(n, armed)

    def record(self, connection: Connection, fact: Fact, epoch: int, now: datetime) -> int:
        """Append one event with the next number, and give that number."""
        n, _ = _after(connection.execute(self._last_event, ()).fetchall(), now)
        return self._append(connection, n, (_FACT.dump(fact),), epoch, now)

    def _append(self, connection: Connection, n: int, facts: Sequence[list[Cell]], epoch: int, now: datetime) -> int:
        instant = moment(now)
        for fact in facts:
            n += 1
            connection.execute(self._event, (epoch, n, instant, *fact))
        return n

    def _one(self, connection: Connection, statement: Executable, cells: Parameters = _NOTHING) -> Any:
        sentence = self._sql.of(statement)
        return connection.execute(sentence.sql, sentence.cells(cells)).fetchone()

    def _add(self, connection: Connection, statement: Executable, cells: Parameters) -> None:
        sentence = self._sql.of(statement, tuple(cells))
        connection.execute(sentence.sql, sentence.cells(cells))

    def fence(self, connection: Connection, epoch: int | None) -> int:
        """The epoch, if it leads; Refusal when another does."""
        return _leading(connection.execute(self._epoch, ()).fetchall(), epoch)

    def _know(self, connection: Connection, key: Key, now: datetime) -> None:
        known = self._one(connection, _KEY, {"scope": key.scope, "key": key.key})
        if known is not None and int(known[2]) < moment(now - KEY_LIFE):
            connection.execute(self._sql.of(_FORGET_KEY).sql, (key.scope, key.key))
            return
        if known is not None:
            raise Refusal(Replayed(read_document(known[1])) if known[0] == key.digest else KeyConflict(key.key))

    def _remember(self, connection: Connection, key: Key, now: datetime) -> None:
        cells: Parameters = {
            "scope": key.scope,
            "key": key.key,
            "digest": key.digest,
            "result": document(dict(key.result)),
            "at": moment(now),
        }
        self._add(connection, _ADD_KEY, cells)

    def _put_all(self, connection: Connection, prepared: Prepared, epoch: int, sent: list[Cursor]) -> tuple[Armed, ...]:
        armed = []
        sightings: dict[tuple[str, str], Sighting] = {}
        for row, _, sql, cells, _ in prepared.puts:
            if isinstance(row, Command) and self._arms(connection, row):
                if row.epoch != epoch:
                    raise Refusal(NotLeader(epoch))
                armed.append(Armed(row))
            sent.append(connection.execute(sql, cells))
            if isinstance(row, Sighting):
                sightings[row.task_id, row.subject] = row
        for sighting in sightings.values():
            self._forget(connection, sighting)
        return tuple(armed)

    def _forget(self, connection: Connection, newest: Sighting) -> None:
        """Keep the newest observations of a subject only."""
        about: dict[str, Cell] = {"task_id": newest.task_id, "subject": newest.subject}
        oldest = self._one(connection, _OLDEST_KEPT, about)
        if oldest is not None:
            sentence = self._sql.of(_FORGET)
            connection.execute(sentence.sql, sentence.cells({**about, "oldest": str(oldest[0])}))

    def _arms(self, connection: Connection, command: Command) -> bool:
        """Whether this put is the one that arms it: a later revision of an armed command is not armed again."""
        if command.state is not CommandState.ARMED or command.revision == 1:
            return command.state is CommandState.ARMED
        before = self._one(connection, _COMMAND_STATE, {"id": command.id})
        return before is None or before[0] != CommandState.ARMED.value

    def _explain(self, error: Exception, prepared: Prepared, sent: Sequence[Cursor]) -> NoReturn:
        """Raise what a driver's error means for the first row or hold that was not written."""
        for n, cursor in enumerate(sent):
            if cursor.rowcount < 0:
                break
            if cursor.rowcount == 0:
                raise Refusal(Stale(_named(prepared, n))) from error
        else:
            n = len(sent)
        count, holds = len(prepared.puts), prepared.commit.holds
        if n >= count + len(holds):
            raise error
        taken = self._dialect.taken(error)
        if taken is not None:
            what = Busy(taken.name if n < count else holds[n - count][0])
            raise Refusal(Stale(_named(prepared, n)) if taken.key and n < count else what) from error
        if self._dialect.refused(error):
            raise IllegalMove(f"the registry refuses {_named(prepared, n)}: {error}") from error
        raise error


def _named(prepared: Prepared, n: int) -> str:
    """The n-th of a commit's rows and holds, in the order in which they are written."""
    if n < len(prepared.puts):
        return f"{prepared.puts[n].name} {prepared.puts[n].row.id}"
    return f"hold {prepared.commit.holds[n - len(prepared.puts)][0]}"


def _leading(leads: list[Any], epoch: int | None) -> int:
    """The epoch, if it is the one that leads; Refusal when another does."""
    if epoch is None or not leads or leads[0][0] != epoch:
        raise Refusal(NotLeader(int(leads[0][0]) if leads else 0))
    return epoch


def _after(last: list[Any], now: datetime) -> tuple[int, datetime]:
    """The number and the moment of the last event; 0 and now before the first."""
    return (int(last[0][0]), at(last[0][1])) if last else (0, now)


def _place(row: Row) -> int:
    return _PLACES[type(row)]


def went_back(before: datetime, now: datetime) -> Fact:
    """The finding that the clock stood later than it stands now."""
    return Fact(FactKind.CLOCK_WENT_BACK, data={"from": before.isoformat(), "to": now.isoformat()})
