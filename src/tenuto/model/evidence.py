"""What was seen, by whom, when and how strong it is; and what follows from looking at it together.

An observation holds facts, never bodies. Ranks run from 1, the strongest, to 5; rank 5 never decides a send.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum

from tenuto.model.ids import AttemptId, CommandId, ReconciliationId, TaskId


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


@dataclass(frozen=True)
class Ending:
    """How a program's turn ended, as its host journaled it.

    `exit_code` is None when a signal ended it. `signals` and `reports` are the raw bodies of the fenced blocks,
    already without those that stand in the prompt; `signal_count` is how many there were in all.
    `survivors` is how many processes of its group outlived the leader.
    """

    exit_code: int | None
    signal: int | None
    cut: Cut | None
    signals: tuple[str, ...] = ()
    signal_count: int = 0
    reports: tuple[str, ...] = ()
    output_bytes: int = 0
    survivors: int = 0


@dataclass(frozen=True)
class CommandFacts:
    """What the journal and the process table say of one command now.

    `performer` is the host process, `agent` the program's leader and every process that carries its attempt.
    `launched_here` is true while this very executor knows it started the host and has not seen it end.
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


class WorkspaceKind(StrEnum):
    GIT = "git"
    PLAIN = "plain"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WorkspaceFacts:
    """A task's directory: `cursor` is the digest progress is measured by, None when it cannot be told."""

    kind: WorkspaceKind
    head: str | None = None
    branch: str | None = None
    dirty: str | None = None
    cursor: str | None = None
    commits: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class AcceptanceFacts:
    """Whether a file or commit that a claim hangs on is there; `holds` None means it could not be told."""

    holds: bool | None
    reason: str


Facts = CommandFacts | WorkspaceFacts | AcceptanceFacts


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
