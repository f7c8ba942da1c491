"""What was seen, by whom, when and how strong it is; and what follows from looking at it together.

An observation holds facts, never bodies. Ranks run from 1, the strongest, to 5; rank 5 never decides a send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum

from tenuto.model.ids import AttemptId, CommandId, ObservationId, ReconciliationId, TaskId
from tenuto.model.tools import ToolFacts
from tenuto.model.watched import WatchedFacts


class Rank(IntEnum):
    JOURNAL = 1
    PAGE = 2
    OUTSIDE = 3
    NETWORK = 4
    REPORTED = 5


class Presence(StrEnum):
    """Whether a process is there. UNKNOWN is a state: it never counts as gone."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


class Mark(StrEnum):
    """The last thing an executor's journal says of a command."""

    NONE = "none"
    REVOKED = "revoked"
    CLAIMED = "claimed"
    BEGUN = "begun"
    ACCEPTED = "accepted"
    ENDED = "ended"
    FAILED = "failed"
    DAMAGED = "damaged"


class Cut(StrEnum):
    """Why a turn that was accepted did not end by itself."""

    KILLED = "killed"
    TIME_LIMIT = "time_limit"
    INTERRUPT = "interrupt"
    VANISHED = "vanished"


class How(StrEnum):
    """What the end of a turn is: a program's exit, a protocol's own word, or a page seen to be complete.

    Only a program is gone with its turn; a conversation of the other sorts lives on and takes the next one.
    """

    EXIT = "exit"
    PROTOCOL = "protocol"
    PAGE = "page"


class Hindrance(StrEnum):
    """What kept a program from going on with its turn, by its own word.

    LIMIT: the account's usage is spent until a reset. OVERLOAD: the service does not answer now, and may soon.
    CONTEXT: nothing more fits into the session. LOGIN: the account is not let in, or has to be paid for.
    """

    LIMIT = "limit"
    OVERLOAD = "overload"
    CONTEXT = "context"
    LOGIN = "login"


@dataclass(frozen=True)
class Hindered:
    """What hindered a turn: the program's own sentence, and of a limit its name and when it resets, where that is told.

    `model` is the part of a model's name that the limit is for; None: every model of the account.
    """

    by: Hindrance
    text: str
    name: str | None = None
    model: str | None = None
    resets_at: datetime | None = None


@dataclass(frozen=True)
class Asking:
    """A program waits for leave to do something: what exactly, as it says itself.

    `request` is its own name of the question; `fingerprint` is a sha256 (hex) over all that is asked for, so that the
    same question in another turn has the same one.
    """

    request: str
    tool: str
    what: str
    fingerprint: str


@dataclass(frozen=True)
class Ending:
    """How a turn ended, as its executor journaled it.

    `exit_code` is None when a signal ended it, and where there was no program. `signals` and `reports` are the raw
    bodies of the fenced blocks, already without those that stand in the prompt; `signal_count` is how many there were
    in all. `survivors` is how many processes of its group outlived the leader. `stop` is a protocol's own word.
    Tokens and `cost` (millionths of `currency`) stand where the agent reports them; a plain program reports none.
    """

    exit_code: int | None
    signal: int | None
    cut: Cut | None
    signals: tuple[str, ...] = ()
    signal_count: int = 0
    reports: tuple[str, ...] = ()
    output_bytes: int = 0
    survivors: int = 0
    how: How = How.EXIT
    stop: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    currency: str | None = None
    hindered: Hindered | None = None


@dataclass(frozen=True)
class CommandFacts:
    """What the journal and the executor's eyes say of one command now.

    `performer` is whatever carries it out: a host process, an agent's host, the page's own script. `agent` is what
    works: the program's leader and every process that carries its attempt, a session's turn, a page that generates.
    `launched_here` is true while this very executor knows it started the host and has not seen it end. `unreachable`
    says why the journal could not be asked now: then `mark` is what it said last, and its silence means nothing.
    `proof` names what was seen (ids, counts), never what was said; `turn` in it is what the protocol calls the turn:
    of a send the one it began, of a steer the one whose acknowledgement was seen. `asks` are the questions that its
    program waits with, None where that was not seen; `retrying` says that it tries its service again by itself.
    `heard_at` is when anything came from its program last: that something came, and never what.
    """

    command_id: CommandId
    attempt_id: AttemptId | None
    mark: Mark
    performer: Presence
    agent: Presence
    launched_here: bool = False
    reason: str | None = None
    mendable: bool = False
    ending: Ending | None = None
    marked_at: datetime | None = None
    unreachable: str | None = None
    proof: Mapping[str, str] = field(default_factory=dict)
    asks: tuple[Asking, ...] | None = None
    retrying: str | None = None
    heard_at: datetime | None = None


@dataclass(frozen=True)
class PageFacts:
    """What the page of a conversation shows now: coarse words and counts, never text of it.

    `shown` is None where nobody could be asked, False where no page shows it; then the rest says nothing. `state`,
    `composer` and `generating` are the extension's words. `approval` is the fingerprint of a card that waits. `error`
    is the class of an error that is shown, `stale` that it was seen together with generation. `foreign_turns` counts
    turns of the person since our last one began, `foreign_age` is how many seconds ago the last of them was seen.
    `missing` are roles of the profile that were not found, or not surely. `ours`: the executor opened the page and
    began its conversation, so that it may be closed. `changed_at` is when it was first seen to
    differ from before, `grew_at` when it was last seen to grow while it generated; None where nobody saw it.
    """

    shown: bool | None
    several: bool = False
    state: str = "unknown"
    composer: str = "unknown"
    generating: str = "unknown"
    typing: bool = False
    approval: str | None = None
    error: str | None = None
    stale: bool = False
    resets: str | None = None
    resets_at: datetime | None = None
    foreign_turns: int = 0
    foreign_age: float | None = None
    users: int = 0
    missing: tuple[str, ...] = ()
    ours: bool = False
    digest: str | None = None
    changed_at: datetime | None = None
    grew_at: datetime | None = None


class WorkspaceKind(StrEnum):
    GIT = "git"
    PLAIN = "plain"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WorkspaceFacts:
    """A task's directory: `cursor` is the digest progress is measured by, None when it cannot be told.

    `ahead` and `behind` count commits against what the branch follows; `locked_since` dates a lock on its index.
    """

    kind: WorkspaceKind
    head: str | None = None
    branch: str | None = None
    dirty: str | None = None
    cursor: str | None = None
    commits: int | None = None
    reason: str | None = None
    ahead: int | None = None
    behind: int | None = None
    worktrees: int = 0
    locked_since: datetime | None = None


@dataclass(frozen=True)
class AcceptanceFacts:
    """Whether a file or commit that a claim hangs on is there; `holds` None means it could not be told."""

    holds: bool | None
    reason: str


Facts = CommandFacts | WorkspaceFacts | AcceptanceFacts | ToolFacts | PageFacts | WatchedFacts


@dataclass(frozen=True)
class Observation:
    """Facts about one subject, seen by one source at one instant."""

    source: str
    rank: Rank
    subject: str
    seen_at: datetime
    facts: Facts


@dataclass(frozen=True)
class Sample:
    """A recorded reconciliation: the fence of what was looked at, for an act that needs two of them."""

    id: ReconciliationId
    task_id: TaskId
    fence: str
    members: tuple[str, ...]
    made_at: datetime


@dataclass(frozen=True)
class Sighting:
    """An observation as it is kept: small named facts in words, at most the newest 2,000 of a subject.

    `seen_at` is the witness's moment, `made_at` ours. `digest` is of the facts alone, so that what stays the same is
    written once.
    """

    id: ObservationId
    task_id: TaskId
    subject: str
    source: str
    rank: int
    seen_at: datetime
    made_at: datetime
    digest: str
    facts: tuple[tuple[str, str], ...]
