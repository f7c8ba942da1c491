"""What one commit does inside its transaction: everything, or a refusal that undoes it.

First the fence: the epoch in the registry is still ours. Then the key, the clock, the guards, and only then rows,
holds and events. A refusal is raised here and becomes the commit's result once the transaction is undone; what the
tables themselves refuse is a fault of ours and stays an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, insert, literal_column, select, update

from tenuto.model.change import Busy, Commit, Committed, Key, KeyConflict, NotLeader, Replayed, Result, Row, Stale
from tenuto.model.command import Armed, Command
from tenuto.model.fact import Event, Fact, FactKind
from tenuto.model.faults import IllegalMove
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import CommandState
from tenuto.store import tables
from tenuto.store.dialect import Connection, Dialect, Parameters, Texts
from tenuto.store.rows import Shape, at, document, moment, read_document

#: A clock that stands this much before the last event has gone back.
WENT_BACK = timedelta(seconds=2)

_EPOCH = select(tables.leadership.c.epoch).with_for_update()
_LAST = (
    select(tables.event.c.n, tables.event.c.at)
    .order_by(tables.event.c.n.desc())
    .limit(literal_column("1"))
    .offset(literal_column("0"))
)
_KEY = select(tables.idempotency.c.digest, tables.idempotency.c.result).where(
    tables.idempotency.c.scope == bindparam("scope"), tables.idempotency.c.key == bindparam("key")
)
_ADD_KEY = insert(tables.idempotency)
_ADD_HOLD = insert(tables.hold)
_FREE = delete(tables.hold).where(tables.hold.c.command_id == bindparam("command_id"))
_ADD_EVENT = insert(tables.event)
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
_PLACES: dict[type, tuple[int, Shape[Row]]] = {shape.cls: (place, shape) for place, shape in enumerate(tables.ORDER)}


class Refusal(Exception):
    """The commit is not to be: its transaction is undone, and `result` says why."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


class Transactions:
    """Writes commits on an open transaction of one dialect."""

    def __init__(self, dialect: Dialect, texts: Texts) -> None:
        self._dialect = dialect
        self._sql = texts

    def write(self, connection: Connection, commit: Commit, epoch: int | None, now: datetime) -> Committed:
        """Write all of `commit` at `now` under `epoch`; Refusal when it may not be, IllegalMove when it never may."""
        self._fence(connection, epoch)
        if commit.key is not None:
            self._know(connection, commit.key)
        if commit.valid_until is not None and now > commit.valid_until:
            raise Refusal(Stale("what was seen is too old to act on"))
        for guard in commit.guards:
            found = connection.execute(self._sql.of(_GUARDS[guard.table]), {"id": guard.id}).fetchone()
            if found is None or found[0] != guard.revision:
                raise Refusal(Stale(f"{guard.table} {guard.id}"))
        for command_id in commit.frees:
            connection.execute(self._sql.of(_FREE), {"command_id": command_id})
        armed = self._put_all(connection, commit.puts, epoch or 0)
        for scope, command_id in commit.holds:
            self._take(connection, scope, command_id)
        n = self.record(connection, commit.facts, epoch or 0, now)
        if commit.key is not None:
            self._remember(connection, commit.key, now)
        return Committed(n, armed)

    def record(self, connection: Connection, facts: Sequence[Fact], epoch: int, now: datetime) -> int:
        """Append `facts` with the next numbers, a clock that went back first; gives the last number."""
        last = connection.execute(self._sql.of(_LAST)).fetchone()
        n, before = (0, now) if last is None else (int(last[0]), at(last[1]))
        if facts and before - now > WENT_BACK and facts[0].kind is not FactKind.CLOCK_WENT_BACK:
            facts = (went_back(before, now), *facts)
        sql = self._sql.of(_ADD_EVENT, tables.EVENT.columns)
        for fact in facts:
            n += 1
            connection.execute(sql, tables.EVENT.dump(Event(epoch, n, now, fact)))
        return n

    def _fence(self, connection: Connection, epoch: int | None) -> None:
        leads = connection.execute(self._sql.of(_EPOCH)).fetchone()
        if epoch is None or leads is None or leads[0] != epoch:
            raise Refusal(NotLeader(0 if leads is None else int(leads[0])))

    def _know(self, connection: Connection, key: Key) -> None:
        known = connection.execute(self._sql.of(_KEY), {"scope": key.scope, "key": key.key}).fetchone()
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
        connection.execute(self._sql.of(_ADD_KEY, tuple(cells)), cells)

    def _put_all(self, connection: Connection, puts: Sequence[Row], epoch: int) -> tuple[Armed, ...]:
        armed = []
        for row in sorted(puts, key=lambda row: _PLACES[type(row)][0]) if len(puts) > 1 else puts:
            if isinstance(row, Command) and self._arms(connection, row):
                if row.epoch != epoch:
                    raise Refusal(NotLeader(epoch))
                armed.append(Armed(row))
            self._put(connection, row)
        return tuple(armed)

    def _arms(self, connection: Connection, command: Command) -> bool:
        """Whether this put is the one that arms it: a later revision of an armed command is not armed again."""
        if command.state is not CommandState.ARMED or command.revision == 1:
            return command.state is CommandState.ARMED
        before = connection.execute(self._sql.of(_COMMAND_STATE), {"id": command.id}).fetchone()
        return before is None or before[0] != CommandState.ARMED.value

    def _put(self, connection: Connection, row: Row) -> None:
        _, shape = _PLACES[type(row)]
        cells = shape.dump(row)
        try:
            if not shape.revised or cells["revision"] == 1:
                connection.execute(self._sql.of(_INSERTS[shape.name], shape.columns), cells)
                return
            identifier = cells.pop("id")
            columns = shape.columns[1:]
            cells["its_id"] = identifier
            cells["its_revision"] = cells["revision"] - 1  # type: ignore[operator]
            if connection.execute(self._sql.of(_UPDATES[shape.name], columns), cells).rowcount != 1:
                raise Refusal(Stale(f"{shape.name} {identifier}"))
        except self._dialect.failure as error:
            self._explain(error, f"{shape.name} {row.id}")

    def _take(self, connection: Connection, scope: str, command_id: CommandId) -> None:
        cells: Parameters = {"scope": scope, "command_id": command_id}
        try:
            connection.execute(self._sql.of(_ADD_HOLD, tuple(cells)), cells)
        except self._dialect.failure as error:
            if self._dialect.taken(error) is not None:
                raise Refusal(Busy(scope)) from error
            self._explain(error, f"hold {scope}")

    def _explain(self, error: Exception, what: str) -> None:
        """Raise what a driver's error means for the row it came from."""
        taken = self._dialect.taken(error)
        if taken is not None:
            raise Refusal(Stale(what) if taken.key else Busy(taken.name)) from error
        if self._dialect.refused(error):
            raise IllegalMove(f"the registry refuses {what}: {error}") from error
        raise error


def went_back(before: datetime, now: datetime) -> Fact:
    """The finding that the clock stood later than it stands now."""
    return Fact(FactKind.CLOCK_WENT_BACK, data={"from": before.isoformat(), "to": now.isoformat()})
