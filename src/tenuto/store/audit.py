"""Looks whether a registry agrees with itself.

The tables refuse what they can see in one row or one index; what takes two tables to see is asked here, as questions
that must have no answer. Nothing is mended: a finding is for a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnClause, Select, func, literal_column, not_, select, text

from tenuto.model import lifecycle
from tenuto.model.lifecycle import OPEN_COMMAND, AttemptState, CommandState, LeaseState
from tenuto.store import tables
from tenuto.store.dialect import Connection, Texts
from tenuto.store.rows import read_document

#: The most subjects that one finding names.
NAMED = 20


@dataclass(frozen=True)
class Contradiction:
    """One way in which the registry contradicts itself, and what it concerns."""

    sentence: str
    subjects: tuple[str, ...]


_task, _hold, _command, _event = tables.task, tables.hold, tables.command, tables.event
_terminal: ColumnClause[bool] = literal_column(f"task.{tables.among('state', lifecycle.TASK.terminal)}")
_open: ColumnClause[bool] = literal_column(f"command.{tables.among('state', OPEN_COMMAND)}")
_before = select(_event.c.n, _event.c.epoch, func.lag(_event.c.epoch).over(order_by=_event.c.n).label("was")).subquery()


def _twice(table: str, column: str, rule: str) -> Select[tuple[str]]:
    """Values of a column that more than one row has, among rows for which the rule holds."""
    found = tables.TABLES[table].c[column]
    return select(found).where(text(rule)).group_by(found).having(text("count(*) > 1"))


_QUESTIONS: tuple[tuple[str, Select[tuple[str]]], ...] = (
    (
        "a command that is settled still holds a scope",
        select(_hold.c.scope).join(_command, _command.c.id == _hold.c.command_id).where(not_(_open)),
    ),
    (
        "a task that has ended has a pending wake",
        select(_task.c.id)
        .join(tables.wake, tables.wake.c.task_id == _task.c.id)
        .where(_terminal, tables.wake.c.consumed_at.is_(None)),
    ),
    (
        "a task that has ended has an open wait",
        select(_task.c.id)
        .join(tables.wait, tables.wait.c.task_id == _task.c.id)
        .where(_terminal, tables.wait.c.closed_at.is_(None)),
    ),
    ("a task has two live attempts", _twice("attempt", "task_id", tables.among("state", (AttemptState.LIVE,)))),
    (
        "a task has two active conversations",
        _twice("conversation", "task_id", tables.among("state", (LeaseState.ACTIVE,))),
    ),
    (
        "two conversations hold one place",
        _twice("conversation", "identity", tables.among("state", (LeaseState.ACTIVE,))),
    ),
    (
        "a queued command holds a scope",
        select(_hold.c.scope)
        .join(_command, _command.c.id == _hold.c.command_id)
        .where(text(f"command.{tables.among('state', (CommandState.QUEUED,))}")),
    ),
    ("events go back to an older epoch", select(_before.c.n).where(_before.c.was > _before.c.epoch)),
)
_EVENTS = select(func.count(), func.min(_event.c.n), func.max(_event.c.n))
_OPEN = select(_command.c.id, _command.c.scopes).where(text(tables.OPEN_COMMAND))
_HELD = select(_hold.c.command_id, _hold.c.scope)


def contradictions(connection: Connection, texts: Texts) -> Iterator[Contradiction]:
    """Every contradiction between rows, found on one open read transaction."""
    for sentence, question in _QUESTIONS:
        found = connection.execute(texts.of(question).sql, ()).fetchall()
        if found:
            yield Contradiction(sentence, tuple(str(cells[0]) for cells in found[:NAMED]))
    held = {(str(command), str(scope)) for command, scope in connection.execute(texts.of(_HELD).sql, ()).fetchall()}
    for command, scopes in connection.execute(texts.of(_OPEN).sql, ()).fetchall():
        missing = [scope for scope in read_document(scopes) if (command, scope) not in held]
        if missing:
            yield Contradiction("an open command does not hold its scope", (str(command), *missing))
    count, first, last = connection.execute(texts.of(_EVENTS).sql, ()).fetchone()
    if count and last - first + 1 != count:
        yield Contradiction("events are missing between the first and the last", (str(first), str(last)))
