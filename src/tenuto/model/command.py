"""One turn of a task, and one attempt to act on the world: written down before they are made.

From ARMED until acknowledged or proven undone nothing else may act in the same scope: what cannot be proven is not
repeated. Whether a send is doubtful is the command's matter; whether a turn is running is the attempt's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenuto.model.ids import AttemptId, CommandId, ConversationId, TaskId, TextId, marker
from tenuto.model.lifecycle import OPEN_COMMAND, AttemptState, CommandState
from tenuto.model.work import WakeKind


class AttemptOutcome(StrEnum):
    """How a turn ended. LOST: it cannot be told whether it ever ran. HINDERED: its program could not go on with it."""

    TURN_END = "turn_end"
    HINDERED = "hindered"
    INTERRUPTED = "interrupted"
    UNSENT = "unsent"
    LOST = "lost"
    RELEASED = "released"


@dataclass(frozen=True)
class Attempt:
    """One continuation of a task: one turn of its agent, numbered, with its reason and where it began from.

    Tokens and `cost` (millionths of `currency`) are what its agent reported; None where it reports none.
    """

    id: AttemptId
    revision: int
    task_id: TaskId
    number: int
    reason: WakeKind
    anyway: bool
    idempotency_key: str
    cursor_before: str | None
    conversation_id: ConversationId
    lease_number: int
    state: AttemptState
    scheduled_at: datetime
    live_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: AttemptOutcome | None = None
    detail: str | None = None
    signal: str | None = None
    exit_code: int | None = None
    output_bytes: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    currency: str | None = None


class CommandKind(StrEnum):
    """RECORD: what became of a unit of a chain is written at its source.

    GATE: a program looks at one commit before it is merged. MERGE: a host merges exactly one commit.
    CLAIM: that a task has a unit is written at its source. WORKTREE_MAKE, WORKTREE_REMOVE: of a checkout of its own.
    TAKEOVER: a tool server gives a session of its own to a new run, so that the old place can call nothing any more.
    ANSWER: what a program asks leave for is answered. PAGE_CLOSE: a page of ours is closed when its task is over.
    """

    SEND = "send"
    CHECK = "check"
    INTERRUPT = "interrupt"
    STEER = "steer"
    ANSWER = "answer"
    RECORD = "record"
    GATE = "gate"
    MERGE = "merge"
    CLAIM = "claim"
    WORKTREE_MAKE = "worktree_make"
    WORKTREE_REMOVE = "worktree_remove"
    TAKEOVER = "takeover"
    PAGE_CLOSE = "page_close"


@dataclass(frozen=True)
class Command:
    """One side effect outside the database, with the fence it was decided under and the epoch that armed it.

    `place` is where its executor keeps its journal: which host, which directory, and which life of that directory.
    `target` is the turn a steer is meant for, as the executor calls it: no other turn's acknowledgement counts. Of a
    takeover it is the session and the run it takes it from, and `digest` is of the workspace as it was seen then.
    """

    id: CommandId
    revision: int
    kind: CommandKind
    task_id: TaskId
    attempt_id: AttemptId | None
    conversation_id: ConversationId | None
    executor: str
    state: CommandState
    epoch: int
    fence: str
    scopes: tuple[str, ...]
    created_at: datetime
    payload: TextId | None = None
    digest: str | None = None
    deadline: datetime | None = None
    armed_at: datetime | None = None
    submitted_at: datetime | None = None
    settled_at: datetime | None = None
    evidence: str | None = None
    detail: str | None = None
    released_by: str | None = None
    verdict: str | None = None
    late: bool = False
    target: str | None = None
    place: str | None = None

    @property
    def open(self) -> bool:
        return self.state in OPEN_COMMAND

    @property
    def marker(self) -> str:
        return marker(self.id)


@dataclass(frozen=True)
class Armed:
    """A command whose row is committed as armed. Only a ledger makes this value: it exists only if the row does."""

    command: Command


@dataclass(frozen=True)
class Accepted:
    """The executor has seen the step take effect; later evidence, not this, acknowledges the command."""


@dataclass(frozen=True)
class Unsent:
    """The executor proves that nothing happened and that nothing can still happen."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """What happened cannot be told from here; look before anything else."""

    reason: str


Outcome = Accepted | Unsent | Unknown
