"""Looks at the registry.

Every method is one consistent look at what is committed, made in the calling thread on that thread's own connection,
which cannot write. A look at one task costs the same however many others there are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import BindParameter, ColumnClause, Select, bindparam, func, literal_column, or_, select, text, union
from sqlalchemy.sql.base import Executable

from tenuto.model.chain import Chain, Link
from tenuto.model.command import Attempt, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sample, Sighting
from tenuto.model.fact import Event, Scalar
from tenuto.model.faults import Corrupt
from tenuto.model.ids import (
    ALPHABET,
    LETTERS,
    ChainId,
    CommandId,
    LinkId,
    MessageId,
    ProposalId,
    RunId,
    TaskId,
    TextId,
    WorktreeId,
)
from tenuto.model.lifecycle import AttemptState, CommandState, TaskState
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.phase import Phase
from tenuto.model.policy import Keeping
from tenuto.model.snapshot import InLine, Leadership, Registry, Snapshot, Spent, Token
from tenuto.model.work import Report, Run, Task, Text, Wait, WaitKind, Wake
from tenuto.model.worktree import Worktree
from tenuto.store import leader, tables
from tenuto.store.audit import Contradiction, contradictions
from tenuto.store.dialect import Connection, Cursor, Dialect, Texts
from tenuto.store.retention import Overdue, overdue
from tenuto.store.rows import Cell, Shape, at, moment, read_document

R = TypeVar("R")
#: Rows that are looked at all the time and seldom change, and how many of each kind are kept as they were loaded.
OFTEN = ("registry", "run", "task", "conversation", "attempt", "command", "wait", "wake", "sample", "sighting")
KEPT = 256
Kept = dict[str, dict[tuple[Any, ...], Any]]
#: The most settled checks and interrupts that a snapshot carries.
SIDE_COMMANDS = 8
#: The most undelivered messages that a snapshot carries; a prompt cannot hold more.
MESSAGES = 200
#: The most events of a run that its coordinator's snapshot carries.
PAGE = 500
#: The most children that a waiting parent's snapshot carries.
CHILDREN = 2000
#: How many reconciliations a snapshot carries.
SAMPLES = 3
PERMISSIONS = 100
LIMITS = 100
#: How many recorded observations a snapshot carries.
SIGHTINGS = 64
#: The most tasks in line for a slot that are looked at; who stands behind them waits until they are fewer.
LINE = 500
#: The most tokens that are listed.
NAMED = 500

_LIMIT: BindParameter[int] = bindparam("most")
_TEN: ColumnClause[int] = literal_column("10")
_ZERO: ColumnClause[int] = literal_column("0")  # Core would make a parameter of the offset it leaves out
#: Orders few rows by id without inviting the database to walk an index of all rows in that order.
_BY_ID: ColumnClause[str] = literal_column("id || ''")
_TABLES_OF_KINDS = {"reconciliation": "sample", "observation": "sighting", "limit": "usagelimit"}


def _of(shape: Shape[Any], *rules: Any) -> Select[Any]:
    """All columns of a shape's rows for which the rules hold."""
    table = tables.TABLES[shape.name]
    return select(*(table.c[name] for name in shape.columns)).where(*rules)


def _is(shape: Shape[Any], name: str) -> Any:
    """The column equals the parameter of its name."""
    return tables.TABLES[shape.name].c[name] == bindparam(name)


def _newest(shape: Shape[Any], *rules: Any, by: str = "id") -> Select[Any]:
    return _of(shape, *rules).order_by(tables.TABLES[shape.name].c[by].desc()).limit(_LIMIT).offset(_ZERO)


def _newest_of_few(shape: Shape[Any], *rules: Any) -> Select[Any]:
    return _of(shape, *rules).order_by(_BY_ID.desc()).limit(_LIMIT).offset(_ZERO)


def _oldest(shape: Shape[Any], *rules: Any) -> Select[Any]:
    return _of(shape, *rules).order_by(tables.TABLES[shape.name].c.id).limit(_LIMIT).offset(_ZERO)


_ONE = {shape.name: _of(shape, _is(shape, "id")) for shape in tables.ORDER}
_REGISTRY = _of(tables.REGISTRY)
_HOLDER = _of(tables.CONVERSATION, _is(tables.CONVERSATION, "task_id"), text(tables.ACTIVE_LEASE))
_LIVE = _of(tables.ATTEMPT, _is(tables.ATTEMPT, "task_id"), text(tables.LIVE_ATTEMPT))
_LAST = _newest(
    tables.ATTEMPT, _is(tables.ATTEMPT, "task_id"), text(tables.among("state", (AttemptState.ENDED,))), by="number"
)
_SENT = _newest(tables.COMMAND, _is(tables.COMMAND, "attempt_id"), text(tables.among("kind", (CommandKind.SEND,))))
_RELEASED = _newest(
    tables.COMMAND,
    _is(tables.COMMAND, "attempt_id"),
    text(tables.among("kind", (CommandKind.SEND,))),
    text(tables.among("state", (CommandState.RELEASED,))),
)
_OPEN_OF_TASK = _of(tables.COMMAND, _is(tables.COMMAND, "task_id"), text(tables.OPEN_COMMAND)).order_by(_BY_ID)
_SIDE = _newest(
    tables.COMMAND,
    or_(tables.command.c.attempt_id == bindparam("live"), tables.command.c.attempt_id == bindparam("last")),
    text(tables.SIDE_COMMAND),
    text(f"NOT ({tables.OPEN_COMMAND})"),
)
_OPEN_WAITS = _of(tables.WAIT, _is(tables.WAIT, "task_id"), text("closed_at IS NULL")).order_by(text("id"))
_PENDING_WAKES = _of(tables.WAKE, _is(tables.WAKE, "task_id"), text("consumed_at IS NULL")).order_by(_BY_ID)
_UNDELIVERED = _oldest(tables.MESSAGE, _is(tables.MESSAGE, "task_id"), text(tables.UNDELIVERED_MESSAGE))
_SAMPLES = _newest(tables.SAMPLE, _is(tables.SAMPLE, "task_id"), by="made_at")
_SIGHTINGS = _newest(tables.SIGHTING, _is(tables.SIGHTING, "task_id"))
_SLOTS = select(func.count()).select_from(
    select(tables.task.c.id)
    .where(text(tables.ACTIVE_TASK), text("claim_made_at IS NULL"))
    .limit(_LIMIT)
    .offset(_ZERO)
    .subquery()
)
_GIVER = tables.task.alias("giver")
_LINE = (
    select(
        tables.task.c.id,
        tables.task.c.started_at,
        tables.task.c.created_at,
        tables.task.c.look_at,
        tables.task.c.slot_from,
        _GIVER.c.state,
        _GIVER.c.claim_made_at,
    )
    .select_from(tables.task.outerjoin(_GIVER, tables.task.c.slot_from == _GIVER.c.id))
    .where(text("task.queued_at IS NOT NULL"))
    .order_by(tables.task.c.created_at, tables.task.c.id)
    .limit(_LIMIT)
    .offset(_ZERO)
)
_BOUND = _of(tables.CONVERSATION, _is(tables.CONVERSATION, "identity"), text(tables.ACTIVE_LEASE))
_ACTIVE = _oldest(tables.TASK, text(tables.ACTIVE_TASK))
_TWINS = (
    select(*(tables.task.c[name] for name in tables.TASK.columns))
    .select_from(tables.words.join(tables.task, tables.words.c.task_id == tables.task.c.id))
    .where(
        tables.words.c.digest == bindparam("digest"),
        text(f"text.{tables.OBJECTIVE_TEXT}"),
        text(f"task.{tables.UNFINISHED_TASK}"),
        tables.task.c.cwd == bindparam("cwd"),
    )
    .order_by(tables.task.c.id)
    .limit(_LIMIT)
    .offset(_ZERO)
)
_SPAWNED = select(func.count(), func.min(tables.task.c.created_at)).where(
    text("spawned_by IS NOT NULL"),
    tables.task.c.spawned_by == bindparam("source"),
    bindparam("since") < tables.task.c.created_at,
)
_WAITING_SPAWNS = (
    select(func.count())
    .where(text("queued_at IS NOT NULL"), text("spawned_by IS NOT NULL"), text("started_at IS NULL"))
    .select_from(tables.task)
)
_NAMED = _oldest(tables.TOKEN, text("name IS NOT NULL"))
_OPEN_PERMISSIONS = _oldest(tables.PERMISSION, _is(tables.PERMISSION, "task_id"), text("closed_at IS NULL"))
_PERMISSIONS = _newest(tables.PERMISSION, _is(tables.PERMISSION, "task_id"))
_OPEN_LIMITS = _oldest(tables.LIMIT, text("closed_at IS NULL"))
_LIMITS = _newest(tables.LIMIT)
_TOKENS_OF = _oldest(tables.TOKEN, text("revoked_at IS NULL"), _is(tables.TOKEN, "task_id"))
_STATE = select(tables.task.c.state).where(_is(tables.TASK, "id"))
_LOOKED = tables.task.c.look_at
_DUE = (
    select(tables.task.c.id)
    .where(text("look_at IS NOT NULL"), bindparam("now") >= _LOOKED)
    .order_by(_LOOKED, tables.task.c.id)
    .limit(_LIMIT)
    .offset(_ZERO)
)
_NEXT_DUE = select(func.min(_LOOKED)).where(text("look_at IS NOT NULL"))
_UNDER_WAY = union(
    select(tables.command.c.task_id).where(text(tables.OPEN_COMMAND)),
    select(tables.attempt.c.task_id).where(text(tables.LIVE_ATTEMPT)),
)
_RUNS = _newest(tables.RUN)
_UNFINISHED_RUNS = _newest(
    tables.RUN,
    tables.run.c.id.in_(select(tables.task.c.run_id).where(text(tables.UNFINISHED_TASK))),
)
_TASKS = {
    (False, False): _newest(tables.TASK),
    (False, True): _newest(tables.TASK, text(tables.UNFINISHED_TASK)),
    (True, False): _newest(tables.TASK, _is(tables.TASK, "run_id")),
    (True, True): _newest(tables.TASK, _is(tables.TASK, "run_id"), text(tables.UNFINISHED_TASK)),
}
_CHILDREN = _oldest(tables.TASK, text("parent IS NOT NULL"), _is(tables.TASK, "parent"))
_NEWS = (
    _of(tables.EVENT, tables.event.c.n > bindparam("after"), _is(tables.EVENT, "run_id"), text("run_id IS NOT NULL"))
    .order_by(tables.event.c.n)
    .limit(_LIMIT)
    .offset(_ZERO)
)
_SPENT = (
    select(
        func.sum(tables.task.c.attempts),
        func.sum(tables.task.c.live_time),
        func.sum(tables.task.c.tokens),
        func.sum(tables.task.c.cost),
    )
    .where(_is(tables.TASK, "run_id"))
    .group_by(tables.task.c.currency)
)
_CONVERSATIONS = _of(tables.CONVERSATION, _is(tables.CONVERSATION, "task_id")).order_by(text("id"))
_ATTEMPTS = _newest(tables.ATTEMPT, _is(tables.ATTEMPT, "task_id"), by="number")
_COMMANDS = {
    (False, False): _newest(tables.COMMAND),
    (False, True): _newest_of_few(tables.COMMAND, text(tables.OPEN_COMMAND)),
    (True, False): _newest(tables.COMMAND, _is(tables.COMMAND, "task_id")),
    (True, True): _newest_of_few(tables.COMMAND, _is(tables.COMMAND, "task_id"), text(tables.OPEN_COMMAND)),
}
_WAITS = {
    (False, False): _newest(tables.WAIT),
    (False, True): _newest_of_few(tables.WAIT, text("closed_at IS NULL")),
    (True, False): _newest(tables.WAIT, _is(tables.WAIT, "task_id")),
    (True, True): _newest(tables.WAIT, _is(tables.WAIT, "task_id"), text("closed_at IS NULL")),
}
_WAKES = _of(tables.WAKE, _is(tables.WAKE, "task_id")).order_by(text("id"))
_REPORTS = _newest(tables.REPORT, _is(tables.REPORT, "task_id"))
_MESSAGES = _newest(tables.MESSAGE, _is(tables.MESSAGE, "task_id"))
_TOKEN = _of(tables.TOKEN, _is(tables.TOKEN, "digest"))
_DIGEST = tables.token.c.digest
_TOKENS = (
    _of(tables.TOKEN, bindparam("low") <= _DIGEST, bindparam("high") > _DIGEST)
    .order_by(_DIGEST)
    .limit(_TEN)
    .offset(_ZERO)
)
_AFTER = tables.event.c.n > bindparam("after")
_EVENTS = {
    (task, run): _of(
        tables.EVENT,
        _AFTER,
        *([_is(tables.EVENT, "task_id")] if task else []),
        *([_is(tables.EVENT, "run_id")] if run else []),
    )
    .order_by(tables.event.c.n)
    .limit(_LIMIT)
    .offset(_ZERO)
    for task in (False, True)
    for run in (False, True)
}
_LAST_EVENT = select(func.max(tables.event.c.n))
_REPLAYED = select(tables.idempotency.c.digest, tables.idempotency.c.result).where(
    tables.idempotency.c.scope == bindparam("scope"),
    tables.idempotency.c.key == bindparam("key"),
    bindparam("since") <= tables.idempotency.c.at,
)
_CHAINS = _newest(tables.CHAIN)
_OPEN_CHAINS = _newest(tables.CHAIN, text("ended_at IS NULL"))
_TENDED = _of(tables.CHAIN, text("look_at IS NOT NULL")).order_by(tables.chain.c.look_at, tables.chain.c.id)
_LINKS = _newest(tables.LINK, _is(tables.LINK, "chain_id"), by="position")
_LINK_OF = _of(tables.LINK, _is(tables.LINK, "task_id"))
_LINK_KEYED = _of(tables.LINK, _is(tables.LINK, "chain_id"), _is(tables.LINK, "key"))
_CLAIMED = select(tables.link.c.unit, tables.link.c.task_id).where(
    _is(tables.LINK, "place"), text("recorded_at IS NULL")
)
_TRIED = (
    select(tables.link.c.unit, func.max(tables.link.c.attempt))
    .where(_is(tables.LINK, "chain_id"), text(f"({tables.NOT_DONE})"))
    .group_by(tables.link.c.unit)
)
_WORKTREES = _newest(tables.WORKTREE, _is(tables.WORKTREE, "chain_id"))
_STANDING_WORKTREES = _newest(tables.WORKTREE, text(tables.STANDING_WORKTREE))
_WORKTREE_OF = _of(tables.WORKTREE, _is(tables.WORKTREE, "task_id"))
_PHASES = _of(tables.PHASE, _is(tables.PHASE, "chain_id")).order_by(tables.phase.c.id)
_MANDATE = _of(tables.MANDATE, _is(tables.MANDATE, "chain_id"))
_PROPOSALS = _newest(tables.PROPOSAL, _is(tables.PROPOSAL, "chain_id"))
_PROPOSAL_OF = _of(tables.PROPOSAL, _is(tables.PROPOSAL, "task_id"))
_REVIEWS = _newest(tables.REVIEW, _is(tables.REVIEW, "proposal_id"), by="number")
_REVIEW_OF = _of(tables.REVIEW, _is(tables.REVIEW, "task_id"))
_REVIEWED = select(func.sum(tables.proposal.c.reviews)).where(
    _is(tables.PROPOSAL, "chain_id"), _is(tables.PROPOSAL, "unit")
)
_MERGES = select(func.count()).where(
    _is(tables.PROPOSAL, "chain_id"),
    text(tables.MERGED_PROPOSAL),
    tables.proposal.c.settled_at > bindparam("since"),
)
_CHAIN_COST = select(func.sum(tables.task.c.cost)).select_from(
    tables.link.join(tables.task, tables.link.c.task_id == tables.task.c.id)
).where(_is(tables.LINK, "chain_id"))  # fmt: skip
_COUNTS = select(tables.task.c.state, func.count()).group_by(tables.task.c.state)
_OPEN_COUNT = select(func.count(literal_column("1"))).select_from(tables.command).where(text(tables.OPEN_COMMAND))
_BEGIN = {
    shape.name: select(table.c.id)
    .where(bindparam("low") <= table.c.id, bindparam("high") > table.c.id)
    .order_by(table.c.id.desc())
    .limit(_TEN)
    .offset(_ZERO)
    for shape, table in ((shape, tables.TABLES[shape.name]) for shape in tables.ORDER)
}
_END = {
    shape.name: select(table.c.id)
    .where(table.c.id.like(bindparam("part")))
    .order_by(table.c.id.desc())
    .limit(_TEN)
    .offset(_ZERO)
    for shape, table in ((shape, tables.TABLES[shape.name]) for shape in tables.ORDER)
}


class TableReader:
    """Implements ports.Reader over one dialect."""

    def __init__(self, dialect: Dialect, texts: Texts) -> None:
        self._dialect = dialect
        self._sql = texts
        self._mine = threading.local()
        self._connections: list[Connection] = []
        self._lock = threading.Lock()
        #: Rows that were loaded for a snapshot, by their cells: most are the same at the next one.
        self._kept: Kept = {name: {} for name in OFTEN}

    def registry(self) -> Registry:
        found = self._one(tables.REGISTRY, _REGISTRY)
        if found is None:
            raise Corrupt("the registry has no identity; restore a backup")
        return found

    def leadership(self) -> Leadership | None:
        return self._one(tables.LEADERSHIP, leader.READ)

    def snapshot(self, task_id: TaskId, slots: int) -> Snapshot | None:
        with self._looking() as look:
            task = look.one(tables.TASK, _ONE["task"], id=task_id)
            if task is None:
                return None
            run = look.one(tables.RUN, _ONE["run"], id=task.run_id)
            registry = look.one(tables.REGISTRY, _REGISTRY)
            if run is None or registry is None:
                raise Corrupt(f"task {task_id} has no run, or the registry no identity; restore a backup")
            live = look.one(tables.ATTEMPT, _LIVE, task_id=task_id)
            last = look.one(tables.ATTEMPT, _LAST, task_id=task_id, most=1)
            waits = look.all(tables.WAIT, _OPEN_WAITS, task_id=task_id)
            commands = look.all(tables.COMMAND, _OPEN_OF_TASK, task_id=task_id)
            return Snapshot(
                registry=registry,
                run=run,
                task=task,
                conversation=look.one(tables.CONVERSATION, _HOLDER, task_id=task_id),
                live=live,
                last=last,
                live_command=look.one(tables.COMMAND, _SENT, attempt_id=live.id, most=1) if live else None,
                commands=commands,
                waits=waits,
                wakes=look.all(tables.WAKE, _PENDING_WAKES, task_id=task_id),
                messages=look.all(tables.MESSAGE, _UNDELIVERED, task_id=task_id, most=MESSAGES),
                samples=look.all(tables.SAMPLE, _SAMPLES, task_id=task_id, most=SAMPLES),
                sightings=look.all(tables.SIGHTING, _SIGHTINGS, task_id=task_id, most=SIGHTINGS),
                checks=look.all(
                    tables.COMMAND,
                    _SIDE,
                    live=live.id if live else None,
                    last=last.id if last else None,
                    most=SIDE_COMMANDS,
                ),
                slots_used=int(look.cells(_SLOTS, most=slots)[0][0]),
                slots=slots,
                others=_others(look, waits),
                line=_line(look, LINE) if task.state is TaskState.PENDING else (),
                permissions=look.all(tables.PERMISSION, _OPEN_PERMISSIONS, task_id=task_id, most=PERMISSIONS),
                limits=look.all(tables.LIMIT, _OPEN_LIMITS, most=LIMITS),
                released=look.one(tables.COMMAND, _RELEASED, attempt_id=last.id, most=1) if last else None,
                children=_children(look, task, waits),
                news=look.all(tables.EVENT, _NEWS, run_id=run.id, after=task.informed, most=PAGE)
                if run.coordinator == task.id
                else (),
                spent=_spent(look, run),
                heir=_heir(look, commands),
            )

    def due(self, now: datetime, limit: int) -> tuple[TaskId, ...]:
        with self._looking() as look:
            return tuple(TaskId(cells[0]) for cells in look.cells(_DUE, now=moment(now), most=limit))

    def next_due(self) -> datetime | None:
        with self._looking() as look:
            cell = look.cells(_NEXT_DUE)[0][0]
            return None if cell is None else at(cell)

    def under_way(self) -> tuple[TaskId, ...]:
        with self._looking() as look:
            return tuple(sorted(TaskId(cells[0]) for cells in look.cells(_UNDER_WAY)))

    def find(self, kind: str, part: str) -> tuple[str, ...]:
        name = _TABLES_OF_KINDS.get(kind, kind)
        if kind not in LETTERS or name not in tables.TABLES or not part:
            return ()
        prefix = f"{LETTERS[kind]}-"
        bare = part.removeprefix(prefix)
        if not bare or set(bare) - set(ALPHABET):
            return ()
        with self._looking() as look:
            begin = look.cells(_BEGIN[name], low=f"{prefix}{bare}", high=f"{prefix}{bare}~")
            found = begin or look.cells(_END[name], part=f"%{bare}")
            return tuple(str(cells[0]) for cells in found)

    def run(self, run_id: RunId) -> Run | None:
        return self._one(tables.RUN, _ONE["run"], id=run_id)

    def runs(self, limit: int, *, unfinished: bool = False) -> tuple[Run, ...]:
        return self._all(tables.RUN, _UNFINISHED_RUNS if unfinished else _RUNS, most=limit)

    def task(self, task_id: TaskId) -> Task | None:
        return self._one(tables.TASK, _ONE["task"], id=task_id)

    def tasks(self, limit: int, *, run_id: RunId | None = None, unfinished: bool = False) -> tuple[Task, ...]:
        cells: dict[str, Cell] = {} if run_id is None else {"run_id": run_id}
        return self._all(tables.TASK, _TASKS[run_id is not None, unfinished], most=limit, **cells)

    def conversations(self, task_id: TaskId) -> tuple[Conversation, ...]:
        return self._all(tables.CONVERSATION, _CONVERSATIONS, task_id=task_id)

    def bound_to(self, identity: str) -> TaskId | None:
        found = self._one(tables.CONVERSATION, _BOUND, identity=identity)
        return found.task_id if found is not None else None

    def attempts(self, task_id: TaskId, limit: int) -> tuple[Attempt, ...]:
        return self._all(tables.ATTEMPT, _ATTEMPTS, task_id=task_id, most=limit)

    def command(self, command_id: CommandId) -> Command | None:
        return self._one(tables.COMMAND, _ONE["command"], id=command_id)

    def commands(self, limit: int, *, task_id: TaskId | None = None, only_open: bool = False) -> tuple[Command, ...]:
        cells: dict[str, Cell] = {} if task_id is None else {"task_id": task_id}
        return self._all(tables.COMMAND, _COMMANDS[task_id is not None, only_open], most=limit, **cells)

    def waits(self, limit: int, *, task_id: TaskId | None = None, only_open: bool = True) -> tuple[Wait, ...]:
        cells: dict[str, Cell] = {} if task_id is None else {"task_id": task_id}
        return self._all(tables.WAIT, _WAITS[task_id is not None, only_open], most=limit, **cells)

    def wakes(self, task_id: TaskId) -> tuple[Wake, ...]:
        return self._all(tables.WAKE, _WAKES, task_id=task_id)

    def sightings(self, task_id: TaskId, limit: int) -> tuple[Sighting, ...]:
        return self._all(tables.SIGHTING, _SIGHTINGS, task_id=task_id, most=limit)

    def samples(self, task_id: TaskId, limit: int) -> tuple[Sample, ...]:
        return self._all(tables.SAMPLE, _SAMPLES, task_id=task_id, most=limit)

    def reports(self, task_id: TaskId, limit: int) -> tuple[Report, ...]:
        return self._all(tables.REPORT, _REPORTS, task_id=task_id, most=limit)

    def children(self, task_id: TaskId, limit: int) -> tuple[Task, ...]:
        return self._all(tables.TASK, _CHILDREN, parent=task_id, most=limit)

    def message(self, message_id: MessageId) -> Message | None:
        return self._one(tables.MESSAGE, _ONE["message"], id=message_id)

    def messages(self, task_id: TaskId, limit: int) -> tuple[Message, ...]:
        return self._all(tables.MESSAGE, _MESSAGES, task_id=task_id, most=limit)

    def text(self, text_id: TextId) -> Text | None:
        return self._one(tables.TEXT, _ONE["text"], id=text_id)

    def token(self, digest: str) -> Token | None:
        return self._one(tables.TOKEN, _TOKEN, digest=digest)

    def tokens(self, beginning: str) -> tuple[Token, ...]:
        return self._all(tables.TOKEN, _TOKENS, low=beginning, high=f"{beginning}g")

    def events(
        self, after: int, limit: int, *, task_id: TaskId | None = None, run_id: RunId | None = None
    ) -> tuple[Event, ...]:
        cells: dict[str, Cell] = {"after": after, "most": limit}
        if task_id is not None:
            cells["task_id"] = task_id
        if run_id is not None:
            cells["run_id"] = run_id
        return self._all(tables.EVENT, _EVENTS[task_id is not None, run_id is not None], **cells)

    def last_event(self) -> int:
        with self._looking() as look:
            return int(look.cells(_LAST_EVENT)[0][0] or 0)

    def line(self) -> tuple[InLine, ...]:
        with self._looking() as look:
            return _line(look, LINE)

    def active(self, limit: int) -> tuple[Task, ...]:
        return self._all(tables.TASK, _ACTIVE, most=limit)

    def twins(self, digest: str, cwd: str) -> tuple[Task, ...]:
        return self._all(tables.TASK, _TWINS, digest=digest, cwd=cwd, most=LINE)

    def spawned(self, source: str, since: datetime) -> tuple[int, datetime | None]:
        with self._looking() as look:
            count, oldest = look.cells(_SPAWNED, source=source, since=moment(since))[0]
            return int(count), None if oldest is None else at(oldest)

    def spawned_pending(self) -> int:
        with self._looking() as look:
            return int(look.cells(_WAITING_SPAWNS)[0][0])

    def named_tokens(self) -> tuple[Token, ...]:
        return self._all(tables.TOKEN, _NAMED, most=NAMED)

    def replayed(self, scope: str, key: str, since: datetime | None = None) -> tuple[str, Mapping[str, Scalar]] | None:
        with self._looking() as look:
            found = look.cells(_REPLAYED, scope=scope, key=key, since=0 if since is None else moment(since))
            return (str(found[0][0]), read_document(found[0][1])) if found else None

    def permissions(self, task_id: TaskId, limit: int) -> tuple[Permission, ...]:
        return self._all(tables.PERMISSION, _PERMISSIONS, task_id=task_id, most=limit)

    def limits(self, limit: int, *, only_open: bool = True) -> tuple[UsageLimit, ...]:
        return self._all(tables.LIMIT, _OPEN_LIMITS if only_open else _LIMITS, most=limit)

    def tokens_of(self, task_id: TaskId) -> tuple[Token, ...]:
        return self._all(tables.TOKEN, _TOKENS_OF, task_id=task_id, most=NAMED)

    def chain(self, chain_id: ChainId) -> Chain | None:
        return self._one(tables.CHAIN, _ONE["chain"], id=chain_id)

    def chains(self, limit: int, *, unfinished: bool = False) -> tuple[Chain, ...]:
        return self._all(tables.CHAIN, _OPEN_CHAINS if unfinished else _CHAINS, most=limit)

    def tended(self) -> tuple[Chain, ...]:
        return self._all(tables.CHAIN, _TENDED)

    def links(self, chain_id: ChainId, limit: int) -> tuple[Link, ...]:
        return self._all(tables.LINK, _LINKS, chain_id=chain_id, most=limit)

    def link_of(self, task_id: TaskId) -> Link | None:
        return self._one(tables.LINK, _LINK_OF, task_id=task_id)

    def link_keyed(self, chain_id: ChainId, key: str) -> Link | None:
        return self._one(tables.LINK, _LINK_KEYED, chain_id=chain_id, key=key)

    def claimed(self, place: str) -> Mapping[str, TaskId]:
        with self._looking() as look:
            return {str(cells[0]): TaskId(cells[1]) for cells in look.cells(_CLAIMED, place=place)}

    def tried(self, chain_id: ChainId) -> Mapping[str, int]:
        with self._looking() as look:
            return {str(cells[0]): int(cells[1]) for cells in look.cells(_TRIED, chain_id=chain_id)}

    def link(self, link_id: LinkId) -> Link | None:
        return self._one(tables.LINK, _ONE["link"], id=link_id)

    def worktrees(self, limit: int, *, chain_id: ChainId | None = None) -> tuple[Worktree, ...]:
        if chain_id is None:
            return self._all(tables.WORKTREE, _STANDING_WORKTREES, most=limit)
        return self._all(tables.WORKTREE, _WORKTREES, chain_id=chain_id, most=limit)

    def worktree(self, worktree_id: WorktreeId) -> Worktree | None:
        return self._one(tables.WORKTREE, _ONE["worktree"], id=worktree_id)

    def worktree_of(self, task_id: TaskId) -> Worktree | None:
        return self._one(tables.WORKTREE, _WORKTREE_OF, task_id=task_id)

    def phases(self, chain_id: ChainId) -> tuple[Phase, ...]:
        return self._all(tables.PHASE, _PHASES, chain_id=chain_id)

    def mandate(self, chain_id: ChainId) -> Mandate | None:
        return self._one(tables.MANDATE, _MANDATE, chain_id=chain_id)

    def proposals(self, chain_id: ChainId, limit: int) -> tuple[Proposal, ...]:
        return self._all(tables.PROPOSAL, _PROPOSALS, chain_id=chain_id, most=limit)

    def proposal_of(self, task_id: TaskId) -> Proposal | None:
        return self._one(tables.PROPOSAL, _PROPOSAL_OF, task_id=task_id)

    def proposal(self, proposal_id: ProposalId) -> Proposal | None:
        return self._one(tables.PROPOSAL, _ONE["proposal"], id=proposal_id)

    def reviews(self, proposal_id: ProposalId, limit: int) -> tuple[Review, ...]:
        return self._all(tables.REVIEW, _REVIEWS, proposal_id=proposal_id, most=limit)

    def review_of(self, task_id: TaskId) -> Review | None:
        return self._one(tables.REVIEW, _REVIEW_OF, task_id=task_id)

    def reviewed(self, chain_id: ChainId, unit: str) -> int:
        with self._looking() as look:
            return int(look.cells(_REVIEWED, chain_id=chain_id, unit=unit)[0][0] or 0)

    def merges(self, chain_id: ChainId, since: datetime) -> int:
        with self._looking() as look:
            return int(look.cells(_MERGES, chain_id=chain_id, since=moment(since))[0][0])

    def chain_cost(self, chain_id: ChainId) -> int:
        with self._looking() as look:
            return int(look.cells(_CHAIN_COST, chain_id=chain_id)[0][0] or 0)

    def counts(self) -> Mapping[str, int]:
        with self._looking() as look:
            counted = {state.value: 0 for state in TaskState}
            counted.update((str(state), int(count)) for state, count in look.cells(_COUNTS))
            return {**counted, "open_commands": int(look.cells(_OPEN_COUNT)[0][0])}

    def overdue(self, keep: Keeping, now: datetime) -> Overdue:
        """What may be forgotten by now; a limited number of each kind."""
        with self._looking() as look:
            return overdue(look.connection, self._sql, keep, now)

    def check(self) -> tuple[Contradiction, ...]:
        """Every way in which the registry is damaged or contradicts itself; reads all of it."""
        try:
            with self._looking() as look:
                damage = tuple(self._dialect.damage(look.connection))
                found = tuple(contradictions(look.connection, self._sql)) if not damage else ()
        except Corrupt as error:
            damage, found = (str(error),), ()
        return tuple(Contradiction("the database is damaged", (sentence,)) for sentence in damage) + found

    def backup(self, to: Path) -> None:
        """A consistent copy in a new file at `to`, readable by its owner only; Conflict when the file is there."""
        self._dialect.backup(to)

    def close_readers(self) -> None:
        """Close every thread's connection; a later look opens a new one."""
        with self._lock:
            connections, self._connections = self._connections, []
            self._mine = threading.local()
        for connection in connections:
            connection.close()

    def _one(self, shape: Shape[R], statement: Executable, **cells: Cell) -> R | None:
        with self._looking() as look:
            return look.one(shape, statement, **cells)

    def _all(self, shape: Shape[R], statement: Executable, **cells: Cell) -> tuple[R, ...]:
        with self._looking() as look:
            return look.all(shape, statement, **cells)

    @contextmanager
    def _looking(self) -> Iterator[Look]:
        """One consistent look; a driver's error in it is said in our words."""
        try:
            connection = self._begun()
            try:
                yield Look(connection, self._sql, self._kept)
            finally:
                self._dialect.rollback(connection)
        except self._dialect.failure as error:
            raise self._dialect.translated(error) from error

    def _begun(self) -> Connection:
        """A connection with an open look; one that was lost while nobody used it is made again."""
        connection = self._connected()
        try:
            self._dialect.begin_read(connection)
        except self._dialect.failure:
            if not self._dialect.lost(connection):
                raise
            connection = self._connected()
            self._dialect.begin_read(connection)
        return connection

    def _connected(self) -> Connection:
        connection: Connection | None = getattr(self._mine, "connection", None)
        if connection is not None and self._dialect.lost(connection):
            self._mine.connection = None
            with self._lock:
                self._connections = [other for other in self._connections if other is not connection]
            connection.close()
            connection = None
        if connection is None:
            connection = self._dialect.connect_reader()
            with self._lock:
                self._connections.append(connection)
            self._mine.connection = connection
        return connection


class Look:
    """Statements run on one open read transaction."""

    def __init__(self, connection: Connection, texts: Texts, kept: Kept) -> None:
        self.connection = connection
        self._sql = texts
        self._kept = kept

    def cells(self, statement: Executable, **cells: Cell) -> list[Any]:
        return self._run(statement, cells).fetchall()

    def one(self, shape: Shape[R], statement: Executable, **cells: Cell) -> R | None:
        found = self._run(statement, cells).fetchone()
        return None if found is None else self._loaded(shape, found)

    def all(self, shape: Shape[R], statement: Executable, **cells: Cell) -> tuple[R, ...]:
        return tuple([self._loaded(shape, found) for found in self._run(statement, cells).fetchall()])

    def _loaded(self, shape: Shape[R], cells: tuple[Any, ...]) -> R:
        """The row of these cells: the same value as the last time, where it is of a kind that is looked at often.

        Rows are values and nobody changes them, so one may be given out many times.
        """
        kept = self._kept.get(shape.name)
        if kept is None:
            return shape.load(cells)
        row: R | None = kept.get(cells)
        if row is None:
            if len(kept) >= KEPT:
                kept.clear()
            row = kept[cells] = shape.load(cells)
        return row

    def _run(self, statement: Executable, cells: Mapping[str, Cell]) -> Cursor:
        sentence = self._sql.of(statement)
        return self.connection.execute(sentence.sql, sentence.cells(cells))


def _line(look: Look, most: int) -> tuple[InLine, ...]:
    """Who stands in line for a slot, oldest first."""
    found = []
    for task_id, started, created, look_at, giver, state, claimed in look.cells(_LINE, most=most):
        holds = state == TaskState.ACTIVE and claimed is None
        found.append(
            InLine(
                TaskId(task_id),
                None if started is None else at(started),
                at(created),
                None if look_at is None else at(look_at),
                inherits=giver is not None,
                giver=TaskId(giver) if holds else None,
            )
        )
    return tuple(found)


def _children(look: Look, task: Task, waits: tuple[Wait, ...]) -> tuple[Task, ...]:
    """The task's children, where it waits for any."""
    if not any(wait.kind is WaitKind.CHILDREN for wait in waits):
        return ()
    return look.all(tables.TASK, _CHILDREN, parent=task.id, most=CHILDREN)


def _heir(look: Look, commands: tuple[Command, ...]) -> Conversation | None:
    """The candidate that an open takeover is meant for, where there is one."""
    for command in commands:
        if command.kind is CommandKind.TAKEOVER and command.conversation_id is not None:
            return look.one(tables.CONVERSATION, _ONE["conversation"], id=command.conversation_id)
    return None


def _spent(look: Look, run: Run) -> Spent:
    """What the run's tasks took, where a cap of the run makes it matter; costs are summed per currency."""
    policy = run.policy
    if (policy.run_attempts, policy.run_live, policy.run_tokens, policy.run_cost) == (None, None, None, None):
        return Spent()
    rows = [[int(cell or 0) for cell in cells] for cells in look.cells(_SPENT, run_id=run.id)]
    return Spent(
        attempts=sum(row[0] for row in rows),
        live_time=sum((timedelta(microseconds=row[1]) for row in rows), timedelta(0)),
        tokens=sum(row[2] for row in rows),
        cost=max((row[3] for row in rows), default=0),
    )


def _others(look: Look, waits: tuple[Wait, ...]) -> Mapping[TaskId, TaskState]:
    """The states of the tasks that open waits hang on; a task that is not there is left out."""
    found: dict[TaskId, TaskState] = {}
    for wait in waits:
        if wait.kind is WaitKind.TASK and wait.subject is not None:
            for cells in look.cells(_STATE, id=wait.subject):
                found[TaskId(wait.subject)] = TaskState(cells[0])
    return found
