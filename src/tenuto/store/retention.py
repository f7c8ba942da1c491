"""What a registry may forget, found by looking and taken out a little at a time.

Events go from the oldest on, without a gap, and the newest never; of a text only the body goes, once its task has
been over for long, its digest stays, and when it was done is written beside; of what was seen the newest of each task
stay. Looking is the reader's work; the writer is only given names, so that nobody waits behind a search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import (
    BindParameter,
    ColumnClause,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)

from tenuto.model.policy import Keeping
from tenuto.store import tables
from tenuto.store.dialect import Connection, Texts
from tenuto.store.rows import at, moment

#: The most rows of one kind that one look finds.
MOST = 500
#: Keys under which the program remembers that it has done something once; they stay.
ONCE = "once"

_LIMIT: BindParameter[int] = bindparam("most")
_ZERO: ColumnClause[int] = literal_column("0")
_event, _words, _task = tables.event, tables.words, tables.task
_EVENTS = select(_event.c.n, _event.c.at).order_by(_event.c.n).limit(_LIMIT).offset(_ZERO)
_NEWEST = select(func.max(_event.c.n))
_user = tables.task.alias("user")
_in_use = exists(
    select(_user.c.id)
    .where(_user.c.objective == _words.c.id, or_(_user.c.ended_at.is_(None), _user.c.ended_at >= bindparam("since")))
    .correlate(_words)
)
_TEXTS = (
    select(_words.c.id)
    .join(_task, _task.c.id == _words.c.task_id)
    .where(_words.c.body.is_not(None), _task.c.ended_at < bindparam("before"), ~_in_use)
    .limit(_LIMIT)
    .offset(_ZERO)
)
_swept = exists(
    select(tables.chain.c.id)
    .where(
        tables.chain.c.swept == _words.c.id,
        or_(tables.chain.c.ended_at.is_(None), tables.chain.c.ended_at >= bindparam("since")),
    )
    .correlate(_words)
)
#: Texts of no task are what chains were swept with: a chain keeps its last one until it has been over for long.
_SWEEPS = (
    select(_words.c.id)
    .where(_words.c.body.is_not(None), _words.c.task_id.is_(None), _words.c.created_at < bindparam("before"), ~_swept)
    .limit(_LIMIT)
    .offset(_ZERO)
)
_KEYS = (
    select(tables.idempotency.c.scope, tables.idempotency.c.key)
    .where(tables.idempotency.c.at < bindparam("before"), text(f"scope <> '{ONCE}'"))
    .limit(_LIMIT)
    .offset(_ZERO)
)
_SEEN = {table.name: table for table in (tables.sample, tables.sighting)}
_MANY = {
    name: select(table.c.task_id).group_by(table.c.task_id).having(func.count() > bindparam("kept"))
    for name, table in _SEEN.items()
}
_OLD = {
    name: select(table.c.id)
    .where(table.c.task_id == bindparam("task"))
    .order_by(table.c.id.desc())
    .limit(_LIMIT)
    .offset(bindparam("kept"))
    for name, table in _SEEN.items()
}
_FORGET_EVENTS = delete(_event).where(_event.c.n <= bindparam("last"))
_FORGET_TEXT = (
    update(_words)
    .where(_words.c.id == bindparam("its_id"), _words.c.body.is_not(None))
    .values(body=text("NULL"), removed_at=bindparam("done_at"))
)
_FORGET_KEY = delete(tables.idempotency).where(
    tables.idempotency.c.scope == bindparam("scope"), tables.idempotency.c.key == bindparam("key")
)
_FORGET_SEEN = {name: delete(table).where(table.c.id == bindparam("id")) for name, table in _SEEN.items()}


@dataclass(frozen=True)
class Overdue:
    """What may be forgotten now: events up to `last` (0: none), bodies of `texts`, `keys`, rows of what was seen."""

    last: int = 0
    texts: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def nothing(self) -> bool:
        return not (self.last or self.texts or self.keys or any(self.seen.values()))


def overdue(connection: Connection, texts: Texts, keep: Keeping, now: datetime) -> Overdue:
    """Look for what may go, on an open look; at most MOST of each kind."""

    def ask(statement: object, **cells: str | int) -> list[tuple[object, ...]]:
        sentence = texts.of(statement)  # type: ignore[arg-type]
        return list(connection.execute(sentence.sql, sentence.cells(cells)).fetchall())

    newest = ask(_NEWEST)[0][0] or 0
    last = 0
    for n, seen_at in ask(_EVENTS, most=MOST):
        if at(int(str(seen_at))) >= now - keep.events or n == newest:
            break
        last = int(str(n))
    before = moment(now - keep.texts)
    seen: dict[str, tuple[str, ...]] = {}
    for name in _SEEN:
        found: list[str] = []
        for (task,) in ask(_MANY[name], kept=keep.samples):
            found += [str(row[0]) for row in ask(_OLD[name], task=str(task), most=MOST, kept=keep.samples)]
            if len(found) >= MOST:
                break
        seen[name] = tuple(found[:MOST])
    own = [str(row[0]) for row in ask(_TEXTS, before=before, since=before, most=MOST)]
    if len(own) < MOST:
        own += [str(row[0]) for row in ask(_SWEEPS, before=before, since=before, most=MOST - len(own))]
    return Overdue(
        last,
        tuple(own),
        tuple((str(scope), str(key)) for scope, key in ask(_KEYS, before=moment(now - keep.keys), most=MOST)),
        seen,
    )


def forget(connection: Connection, texts: Texts, what: Overdue, now: datetime) -> None:
    """Take it out, on an open transaction; a text remembers that it was at `now`."""
    if what.last:
        connection.execute(texts.of(_FORGET_EVENTS).sql, (what.last,))
    for words in what.texts:
        removing(connection, texts, words, now)
    for scope, key in what.keys:
        connection.execute(texts.of(_FORGET_KEY).sql, (scope, key))
    for name, rows in what.seen.items():
        for row in rows:
            connection.execute(texts.of(_FORGET_SEEN[name]).sql, (row,))


def removing(connection: Connection, texts: Texts, words: str, now: datetime) -> None:
    """Take the body out of one text and write down when, in one statement."""
    sentence = texts.of(_FORGET_TEXT)
    connection.execute(sentence.sql, sentence.cells({"its_id": words, "done_at": moment(now)}))
