"""Looks at the registry.

Every method is one consistent look at what is committed, made in the calling thread on that thread's own connection,
which cannot write. A look at one task costs the same however many others there are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy.sql.base import Executable

from tenuto.model.chain import Chain, Link
from tenuto.model.command import Attempt, Command
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
from tenuto.model.lifecycle import TaskState
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.phase import Phase
from tenuto.model.policy import Keeping
from tenuto.model.snapshot import InLine, Leadership, Registry, Snapshot, Token
from tenuto.model.work import Report, Run, Task, Text, Wait, Wake
from tenuto.model.worktree import Worktree
from tenuto.store import leader, questions, tables
from tenuto.store.audit import Contradiction, contradictions
from tenuto.store.dialect import Connection, Dialect, Texts
from tenuto.store.look import OFTEN, Kept, Look
from tenuto.store.retention import Overdue, overdue
from tenuto.store.rows import Cell, Shape, at, moment, read_document
from tenuto.store.snapshots import LINE, in_line, snapshot

R = TypeVar("R")
#: The most tokens that are listed.
NAMED = 500


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
        found = self._one(tables.REGISTRY, questions.REGISTRY)
        if found is None:
            raise Corrupt("the registry has no identity; restore a backup")
        return found

    def leadership(self) -> Leadership | None:
        return self._one(tables.LEADERSHIP, leader.READ)

    def snapshot(self, task_id: TaskId, slots: int) -> Snapshot | None:
        with self._looking() as look:
            return snapshot(look, task_id, slots)

    def due(self, now: datetime, limit: int) -> tuple[TaskId, ...]:
        with self._looking() as look:
            return tuple(TaskId(cells[0]) for cells in look.cells(questions.DUE, now=moment(now), most=limit))

    def next_due(self) -> datetime | None:
        with self._looking() as look:
            cell = look.cells(questions.NEXT_DUE)[0][0]
            return None if cell is None else at(cell)

    def under_way(self) -> tuple[TaskId, ...]:
        with self._looking() as look:
            return tuple(sorted(TaskId(cells[0]) for cells in look.cells(questions.UNDER_WAY)))

    def find(self, kind: str, part: str) -> tuple[str, ...]:
        name = questions.TABLES_OF_KINDS.get(kind, kind)
        if kind not in LETTERS or name not in tables.TABLES or not part:
            return ()
        prefix = f"{LETTERS[kind]}-"
        bare = part.removeprefix(prefix)
        if not bare or set(bare) - set(ALPHABET):
            return ()
        with self._looking() as look:
            begin = look.cells(questions.BEGIN[name], low=f"{prefix}{bare}", high=f"{prefix}{bare}~")
            found = begin or look.cells(questions.END[name], part=f"%{bare}")
            return tuple(str(cells[0]) for cells in found)

    def run(self, run_id: RunId) -> Run | None:
        return self._one(tables.RUN, questions.ONE["run"], id=run_id)

    def runs(self, limit: int, *, unfinished: bool = False) -> tuple[Run, ...]:
        return self._all(tables.RUN, questions.UNFINISHED_RUNS if unfinished else questions.RUNS, most=limit)

    def task(self, task_id: TaskId) -> Task | None:
        return self._one(tables.TASK, questions.ONE["task"], id=task_id)

    def tasks(self, limit: int, *, run_id: RunId | None = None, unfinished: bool = False) -> tuple[Task, ...]:
        cells: dict[str, Cell] = {} if run_id is None else {"run_id": run_id}
        return self._all(tables.TASK, questions.TASKS[run_id is not None, unfinished], most=limit, **cells)

    def conversations(self, task_id: TaskId) -> tuple[Conversation, ...]:
        return self._all(tables.CONVERSATION, questions.CONVERSATIONS, task_id=task_id)

    def bound_to(self, identity: str) -> TaskId | None:
        found = self._one(tables.CONVERSATION, questions.BOUND, identity=identity)
        return found.task_id if found is not None else None

    def attempts(self, task_id: TaskId, limit: int) -> tuple[Attempt, ...]:
        return self._all(tables.ATTEMPT, questions.ATTEMPTS, task_id=task_id, most=limit)

    def command(self, command_id: CommandId) -> Command | None:
        return self._one(tables.COMMAND, questions.ONE["command"], id=command_id)

    def commands(self, limit: int, *, task_id: TaskId | None = None, only_open: bool = False) -> tuple[Command, ...]:
        cells: dict[str, Cell] = {} if task_id is None else {"task_id": task_id}
        return self._all(tables.COMMAND, questions.COMMANDS[task_id is not None, only_open], most=limit, **cells)

    def waits(self, limit: int, *, task_id: TaskId | None = None, only_open: bool = True) -> tuple[Wait, ...]:
        cells: dict[str, Cell] = {} if task_id is None else {"task_id": task_id}
        return self._all(tables.WAIT, questions.WAITS[task_id is not None, only_open], most=limit, **cells)

    def wakes(self, task_id: TaskId) -> tuple[Wake, ...]:
        return self._all(tables.WAKE, questions.WAKES, task_id=task_id)

    def sightings(self, task_id: TaskId, limit: int) -> tuple[Sighting, ...]:
        return self._all(tables.SIGHTING, questions.SIGHTINGS, task_id=task_id, most=limit)

    def samples(self, task_id: TaskId, limit: int) -> tuple[Sample, ...]:
        return self._all(tables.SAMPLE, questions.SAMPLES, task_id=task_id, most=limit)

    def reports(self, task_id: TaskId, limit: int) -> tuple[Report, ...]:
        return self._all(tables.REPORT, questions.REPORTS, task_id=task_id, most=limit)

    def children(self, task_id: TaskId, limit: int) -> tuple[Task, ...]:
        return self._all(tables.TASK, questions.CHILDREN, parent=task_id, most=limit)

    def message(self, message_id: MessageId) -> Message | None:
        return self._one(tables.MESSAGE, questions.ONE["message"], id=message_id)

    def messages(self, task_id: TaskId, limit: int) -> tuple[Message, ...]:
        return self._all(tables.MESSAGE, questions.MESSAGES, task_id=task_id, most=limit)

    def text(self, text_id: TextId) -> Text | None:
        return self._one(tables.TEXT, questions.ONE["text"], id=text_id)

    def token(self, digest: str) -> Token | None:
        return self._one(tables.TOKEN, questions.TOKEN, digest=digest)

    def tokens(self, beginning: str) -> tuple[Token, ...]:
        return self._all(tables.TOKEN, questions.TOKENS, low=beginning, high=f"{beginning}g")

    def events(
        self, after: int, limit: int, *, task_id: TaskId | None = None, run_id: RunId | None = None
    ) -> tuple[Event, ...]:
        cells: dict[str, Cell] = {"after": after, "most": limit}
        if task_id is not None:
            cells["task_id"] = task_id
        if run_id is not None:
            cells["run_id"] = run_id
        return self._all(tables.EVENT, questions.EVENTS[task_id is not None, run_id is not None], **cells)

    def last_event(self) -> int:
        with self._looking() as look:
            return int(look.cells(questions.LAST_EVENT)[0][0] or 0)

    def line(self) -> tuple[InLine, ...]:
        with self._looking() as look:
            return in_line(look, LINE)

    def active(self, limit: int) -> tuple[Task, ...]:
        return self._all(tables.TASK, questions.ACTIVE, most=limit)

    def twins(self, digest: str, cwd: str) -> tuple[Task, ...]:
        return self._all(tables.TASK, questions.TWINS, digest=digest, cwd=cwd, most=LINE)

    def spawned(self, source: str, since: datetime) -> tuple[int, datetime | None]:
        with self._looking() as look:
            count, oldest = look.cells(questions.SPAWNED, source=source, since=moment(since))[0]
            return int(count), None if oldest is None else at(oldest)

    def spawned_pending(self) -> int:
        with self._looking() as look:
            return int(look.cells(questions.WAITING_SPAWNS)[0][0])

    def named_tokens(self) -> tuple[Token, ...]:
        return self._all(tables.TOKEN, questions.NAMED, most=NAMED)

    def replayed(self, scope: str, key: str, since: datetime | None = None) -> tuple[str, Mapping[str, Scalar]] | None:
        with self._looking() as look:
            found = look.cells(questions.REPLAYED, scope=scope, key=key, since=0 if since is None else moment(since))
            return (str(found[0][0]), read_document(found[0][1])) if found else None

    def permissions(self, task_id: TaskId, limit: int) -> tuple[Permission, ...]:
        return self._all(tables.PERMISSION, questions.PERMISSIONS, task_id=task_id, most=limit)

    def limits(self, limit: int, *, only_open: bool = True) -> tuple[UsageLimit, ...]:
        return self._all(tables.LIMIT, questions.OPEN_LIMITS if only_open else questions.LIMITS, most=limit)

    def tokens_of(self, task_id: TaskId) -> tuple[Token, ...]:
        return self._all(tables.TOKEN, questions.TOKENS_OF, task_id=task_id, most=NAMED)

    def chain(self, chain_id: ChainId) -> Chain | None:
        return self._one(tables.CHAIN, questions.ONE["chain"], id=chain_id)

    def chains(self, limit: int, *, unfinished: bool = False) -> tuple[Chain, ...]:
        return self._all(tables.CHAIN, questions.OPEN_CHAINS if unfinished else questions.CHAINS, most=limit)

    def tended(self) -> tuple[Chain, ...]:
        return self._all(tables.CHAIN, questions.TENDED)

    def links(self, chain_id: ChainId, limit: int) -> tuple[Link, ...]:
        return self._all(tables.LINK, questions.LINKS, chain_id=chain_id, most=limit)

    def link_of(self, task_id: TaskId) -> Link | None:
        return self._one(tables.LINK, questions.LINK_OF, task_id=task_id)

    def link_keyed(self, chain_id: ChainId, key: str) -> Link | None:
        return self._one(tables.LINK, questions.LINK_KEYED, chain_id=chain_id, key=key)

    def claimed(self, place: str) -> Mapping[str, TaskId]:
        with self._looking() as look:
            return {str(cells[0]): TaskId(cells[1]) for cells in look.cells(questions.CLAIMED, place=place)}

    def tried(self, chain_id: ChainId) -> Mapping[str, int]:
        with self._looking() as look:
            return {str(cells[0]): int(cells[1]) for cells in look.cells(questions.TRIED, chain_id=chain_id)}

    def link(self, link_id: LinkId) -> Link | None:
        return self._one(tables.LINK, questions.ONE["link"], id=link_id)

    def worktrees(self, limit: int, *, chain_id: ChainId | None = None) -> tuple[Worktree, ...]:
        if chain_id is None:
            return self._all(tables.WORKTREE, questions.STANDING_WORKTREES, most=limit)
        return self._all(tables.WORKTREE, questions.WORKTREES, chain_id=chain_id, most=limit)

    def worktree(self, worktree_id: WorktreeId) -> Worktree | None:
        return self._one(tables.WORKTREE, questions.ONE["worktree"], id=worktree_id)

    def worktree_of(self, task_id: TaskId) -> Worktree | None:
        return self._one(tables.WORKTREE, questions.WORKTREE_OF, task_id=task_id)

    def phases(self, chain_id: ChainId) -> tuple[Phase, ...]:
        return self._all(tables.PHASE, questions.PHASES, chain_id=chain_id)

    def mandate(self, chain_id: ChainId) -> Mandate | None:
        return self._one(tables.MANDATE, questions.MANDATE, chain_id=chain_id)

    def proposals(self, chain_id: ChainId, limit: int) -> tuple[Proposal, ...]:
        return self._all(tables.PROPOSAL, questions.PROPOSALS, chain_id=chain_id, most=limit)

    def proposal_of(self, task_id: TaskId) -> Proposal | None:
        return self._one(tables.PROPOSAL, questions.PROPOSAL_OF, task_id=task_id)

    def proposal(self, proposal_id: ProposalId) -> Proposal | None:
        return self._one(tables.PROPOSAL, questions.ONE["proposal"], id=proposal_id)

    def reviews(self, proposal_id: ProposalId, limit: int) -> tuple[Review, ...]:
        return self._all(tables.REVIEW, questions.REVIEWS, proposal_id=proposal_id, most=limit)

    def review_of(self, task_id: TaskId) -> Review | None:
        return self._one(tables.REVIEW, questions.REVIEW_OF, task_id=task_id)

    def reviewed(self, chain_id: ChainId, unit: str) -> int:
        with self._looking() as look:
            return int(look.cells(questions.REVIEWED, chain_id=chain_id, unit=unit)[0][0] or 0)

    def merges(self, chain_id: ChainId, since: datetime) -> int:
        with self._looking() as look:
            return int(look.cells(questions.MERGES, chain_id=chain_id, since=moment(since))[0][0])

    def chain_cost(self, chain_id: ChainId) -> int:
        with self._looking() as look:
            return int(look.cells(questions.CHAIN_COST, chain_id=chain_id)[0][0] or 0)

    def counts(self) -> Mapping[str, int]:
        with self._looking() as look:
            counted = {state.value: 0 for state in TaskState}
            counted.update((str(state), int(count)) for state, count in look.cells(questions.COUNTS))
            return {**counted, "open_commands": int(look.cells(questions.OPEN_COUNT)[0][0])}

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
