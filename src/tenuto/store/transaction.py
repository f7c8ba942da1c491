"""What one commit does inside its transaction: everything, or a refusal that undoes it.

First the fence: the epoch in the registry is still ours. Then the key, the clock, the guards, and only then rows,
holds and events. A refusal is raised here and becomes the commit's result once the transaction is undone; what the
tables themselves refuse is a fault of ours and stays an exception.

All that has to be so is asked in one statement, whose only answer is that it is so: the epoch, the number of the last
event as it was left here, the guards, the key. Where it is not, each is asked by itself, and the first that is not so
is the reason. On the way to a server nothing is asked before the end at all: each statement fails where what it
relies on is not so, and with it the whole transaction, which is then done again with every question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from sqlalchemy import bindparam, delete, exists, func, insert, literal_column, select, update
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
_TOO_OLD = "what was seen is too old to act on"
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
_OTHER = tables.sighting.alias("other")
_FORGET = delete(tables.sighting).where(
    tables.sighting.c.task_id == bindparam("task_id"),
    tables.sighting.c.subject == bindparam("subject"),
    tables.sighting.c.id
    <= select(_OTHER.c.id)
    .where(_OTHER.c.task_id == bindparam("its_task"), _OTHER.c.subject == bindparam("its_subject"))
    .order_by(_OTHER.c.id.desc())
    .limit(literal_column("1"))
    .offset(literal_column(str(SIGHTINGS_KEPT)))
    .scalar_subquery(),
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
_NEWEST = select(func.coalesce(func.max(tables.event.c.n), literal_column("0"))).scalar_subquery()
_KNOWN = exists(
    select(literal_column("1"))
    .select_from(tables.idempotency)
    .where(tables.idempotency.c.scope == bindparam("scope"), tables.idempotency.c.key == bindparam("key"))
)
_FACT = Shape(Fact)
_STATE = [field.name for field in fields(Command)].index("state")
_NOTHING: Mapping[str, Cell] = {}
_SHAPES: dict[type, Shape[Row]] = {shape.cls: shape for shape in tables.ORDER}
_PLACES = {shape.cls: place for place, shape in enumerate(tables.ORDER)}


class Refusal(Exception):
    """The commit is not to be: its transaction is undone, and `result` says why."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


class Unsure(Exception):
    """This cannot be written without asking something first."""


class Put(NamedTuple):
    """One row as a statement; `parts` are the values of its fields."""

    row: Row
    name: str
    sql: str
    cells: list[Cell]
    parts: tuple[Any, ...]


class Prepared(NamedTuple):
    """A commit with its rows as cells: what can be made ready before the writer's turn comes.

    `fence` is the statement that asks everything at once, `about` what it asks after the epoch and the last event.
    `arms` are the commands that it arms, None where that has to be asked of the registry.
    """

    commit: Commit
    puts: list[Put]
    facts: list[list[Cell]]
    fence: str | None
    about: tuple[Cell, ...]
    arms: tuple[Command, ...] | None
    sightings: tuple[Sighting, ...]


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
        self._forgetting = texts.of(_FORGET).sql
        self._fences: dict[tuple[str | None, ...], str | None] = {}
        self._plain = self._fence((None,))
        self._demands: dict[str, str] = {}
        #: The number and the moment of the last event, as far as is known here.
        self._last: tuple[int, datetime] | None = None

    def prepare(self, commit: Commit) -> Prepared:
        """Turn a commit's rows into cells, parents first; touches no connection."""
        puts: list[Put] = []
        arms: tuple[Command, ...] | None = ()
        sightings: dict[tuple[str, str], Sighting] = {}
        for row in sorted(commit.puts, key=_place) if len(commit.puts) > 1 else commit.puts:
            kind = type(row)
            shape = _SHAPES[kind]
            name, parts = shape.name, shape.parts(row)
            if not shape.revised or row.revision == 1:  # type: ignore[union-attr]
                puts.append(Put(row, name, self._inserts[name], shape.cells(parts), parts))
            else:
                sql, cells = self._replacing(shape, row, parts)
                puts.append(Put(row, name, sql, cells, parts))
            if kind is Command and arms is not None:
                arms = self._arming(arms, row)  # type: ignore[arg-type]
            elif kind is Sighting:
                seen: Sighting = row  # type: ignore[assignment]
                sightings[seen.task_id, seen.subject] = seen
        facts = [_FACT.dump(fact) for fact in commit.facts]
        return Prepared(commit, puts, facts, *self._asked(commit), arms, tuple(sightings.values()))

    def _arming(self, arms: tuple[Command, ...], row: Command) -> tuple[Command, ...] | None:
        """These and `row`, if this put arms it; None where it is not remembered what it was before."""
        if row.state is not CommandState.ARMED:
            return arms
        if row.revision > 1:
            before = self._written["command"].get(row.id)
            if before is None or before[0] != row.revision - 1:
                return None
            if before[1][_STATE] is CommandState.ARMED:
                return arms
        return (*arms, row)

    def _asked(self, commit: Commit) -> tuple[str | None, tuple[Cell, ...]]:
        """The statement that asks whether all this holds, and what it is told after the epoch and the last event."""
        if not commit.guards and commit.key is None:
            return self._plain, ()
        about: list[Cell] = []
        for guard in commit.guards:
            about += (guard.id, guard.revision)
        key = commit.key
        named = (None if key is None else "key", *[guard.table for guard in commit.guards])
        if key is not None:
            about += (key.scope, key.key)
        if named not in self._fences:
            self._fences[named] = self._fence(named) if len(self._fences) < VARIANTS else None
        return self._fences[named], tuple(about)

    def _fence(self, named: tuple[str | None, ...]) -> str:
        """That statement, for guards of these tables, and with a key or without."""
        key, *guarded = named
        rules: list[Any] = [tables.leadership.c.epoch == bindparam("epoch"), bindparam("n") == _NEWEST]
        expected = ["epoch", "n"]
        for place, name in enumerate(guarded):
            table = tables.TABLES[str(name)]
            revision = select(table.c.revision).where(table.c.id == bindparam(f"id{place}")).scalar_subquery()
            rules.append(revision == bindparam(f"revision{place}"))
            expected += [f"id{place}", f"revision{place}"]
        if key is not None:
            rules.append(~_KNOWN)
            expected += ["scope", "key"]
        asking: Executable = select(literal_column("1")).select_from(tables.leadership).where(*rules)
        sentence = self._sql.of(asking)
        if list(sentence.names) != expected:
            raise TypeError(f"a fence takes its parameters in another order than they are given: {sentence.names}")
        return sentence.sql

    def _replacing(self, shape: Shape[Row], row: Row, parts: tuple[Any, ...]) -> tuple[str, list[Cell]]:
        """The UPDATE that makes a row's predecessor this one: of what differs, where the predecessor is remembered."""
        last = row.revision - 1  # type: ignore[union-attr]
        before = self._written[shape.name].get(row.id)
        if before is not None and before[0] == last:
            places, cells = shape.changes(before[1], parts)
            sql = self._partly.get((shape.name, places))
            if sql is None and len(self._partly) < VARIANTS:
                sql = self._sql.of(_UPDATES[shape.name], shape.spanned(places)).sql
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
        if epoch is None or not self._holds(connection, prepared, epoch):
            self._look(connection, prepared, epoch, now)
        elif commit.valid_until is not None and now > commit.valid_until:
            raise Refusal(Stale(_TOO_OLD))
        fenced = 0 if epoch is None else epoch  # without one a look refuses
        facts = self._facts(prepared, now)
        sent: list[Cursor] = []
        try:
            with self._dialect.together(connection):
                for command_id in commit.frees:
                    connection.execute(self._free, (command_id,))
                armed = self._put_all(connection, prepared, fenced, sent)
                for hold in commit.holds:
                    sent.append(connection.execute(self._hold, hold))  # noqa: PERF401 - one that fails leaves those before it
                n = self._append(connection, facts, fenced, now)
                if commit.key is not None:
                    self._remember(connection, commit.key, now)
        except self._dialect.failure as error:
            self._explain(error, prepared, sent)
        for place, cursor in enumerate(sent):
            if cursor.rowcount != 1:
                raise Refusal(Stale(_named(prepared, place)))
        return Committed(n, armed)

    def send(self, connection: Connection, prepared: Prepared, epoch: int | None, now: datetime) -> Committed:
        """The same on a way where nothing is answered before the end: what is not as it must be fails by itself.

        Raises Unsure, and has sent nothing, where something has to be asked first.
        """
        commit, fence, arms = prepared.commit, prepared.fence, prepared.arms
        if fence is None or arms is None or epoch is None or self._last is None:
            raise Unsure
        if commit.valid_until is not None and now > commit.valid_until:
            raise Unsure
        if any(command.epoch != epoch for command in arms):
            raise Unsure
        self._lock(connection)
        connection.execute(self._demanding(fence), (epoch, self._last[0], *prepared.about))
        for command_id in commit.frees:
            connection.execute(self._free, (command_id,))
        for put in prepared.puts:
            inserts = put.sql is self._inserts[put.name]
            connection.execute(put.sql if inserts else self._demanding(put.sql), put.cells)
        for sighting in prepared.sightings:
            self._forget(connection, sighting)
        if commit.holds:
            connection.execute(_times(self._hold, len(commit.holds)), [cell for hold in commit.holds for cell in hold])
        n, facts = self._last[0], self._facts(prepared, now)
        if facts:
            heads = [(epoch, n + place, moment(now)) for place in range(1, len(facts) + 1)]
            told = [cell for head, fact in zip(heads, facts, strict=True) for cell in (*head, *fact)]
            connection.execute(_times(self._event, len(facts)), told)
            n += len(facts)
            self._last = (n, now)
        if commit.key is not None:
            self._remember(connection, commit.key, now)
        return Committed(n, tuple(map(Armed, arms)))

    def _demanding(self, sql: str) -> str:
        demanding = self._demands.get(sql)
        if demanding is None:
            demanding = self._demands[sql] = self._dialect.demanding(sql)
        return demanding

    def _holds(self, connection: Connection, prepared: Prepared, epoch: int) -> bool:
        """Whether everything is so; when it is not, or is not known, it has to be looked at one by one."""
        fence, last = prepared.fence, self._last
        if fence is None or last is None:
            return False
        with self._dialect.together(connection):
            self._lock(connection)
            found = connection.execute(fence, (epoch, last[0], *prepared.about))
        # To its end: a statement that is not over holds on to what it has seen.
        return bool(found.fetchall())

    def _lock(self, connection: Connection) -> None:
        """Wait for whoever writes, where others may; by itself, as a statement that waits asks what was before."""
        if self._dialect.one_way:
            connection.execute(self._epoch, ())

    def _look(self, connection: Connection, prepared: Prepared, epoch: int | None, now: datetime) -> None:
        """Ask everything by itself, and refuse with the first that is not so; then the last event is known."""
        commit = prepared.commit
        with self._dialect.together(connection):
            asked = [connection.execute(self._epoch, ()), connection.execute(self._last_event, ())]
            asked += [connection.execute(self._guards[guard.table], (guard.id,)) for guard in commit.guards]
            # To their ends, and before anything is refused.
            leads, last, *looks = [cursor.fetchall() for cursor in asked]
            _leading(leads, epoch)
            self._last = _after(last, now)
            if commit.key is not None:
                self._know(connection, commit.key, now)
            if commit.valid_until is not None and now > commit.valid_until:
                raise Refusal(Stale(_TOO_OLD))
            for guard, found in zip(commit.guards, looks, strict=True):
                if not found or found[0][0] != guard.revision:
                    raise Refusal(Stale(f"{guard.table} {guard.id}"))

    def _facts(self, prepared: Prepared, now: datetime) -> Sequence[list[Cell]]:
        """What is to be told, and before it that the clock went back, if it has."""
        facts: Sequence[list[Cell]] = prepared.facts
        if facts and self._last is not None and self._last[1] - now > WENT_BACK:
            facts = (_FACT.dump(went_back(self._last[1], now)), *facts)
        return facts

    def record(self, connection: Connection, fact: Fact, epoch: int, now: datetime) -> int:
        """Append one event with the next number, and give that number."""
        self._last = _after(connection.execute(self._last_event, ()).fetchall(), now)
        return self._append(connection, (_FACT.dump(fact),), epoch, now)

    def _append(self, connection: Connection, facts: Sequence[list[Cell]], epoch: int, now: datetime) -> int:
        """Tell these after the last event; the number of the last one then."""
        n = 0 if self._last is None else self._last[0]
        if facts:
            instant = moment(now)
            for fact in facts:
                n += 1
                connection.execute(self._event, (epoch, n, instant, *fact))
            self._last = (n, now)
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
        arms = prepared.arms
        armed = [] if arms is None else list(map(Armed, arms))
        for put in prepared.puts:
            if arms is None and isinstance(put.row, Command) and self._arms(connection, put.row):
                armed.append(Armed(put.row))
            sent.append(connection.execute(put.sql, put.cells))
        for one in armed:
            if one.command.epoch != epoch:
                raise Refusal(NotLeader(epoch))
        for sighting in prepared.sightings:
            self._forget(connection, sighting)
        return tuple(armed)

    def _forget(self, connection: Connection, newest: Sighting) -> None:
        """Keep the newest observations of a subject only."""
        about = (newest.task_id, newest.subject)
        connection.execute(self._forgetting, about + about)

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


@lru_cache(VARIANTS)
def _times(sql: str, count: int) -> str:
    """An INSERT of one row as an INSERT of so many."""
    row = sql.partition(" VALUES ")[2]
    return sql + f", {row}" * (count - 1)


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
