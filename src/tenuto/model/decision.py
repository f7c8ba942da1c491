"""Decisions as values: what is intended, and why nothing is.

A `Because` is one rung's answer; its sentence is shown to the operator word for word. A decision has done nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tenuto.model.ids import AttemptId, CommandId, LimitId, MessageId, PermissionId, TextId
from tenuto.model.work import WakeKind


class Rung(StrEnum):
    """The rungs of every ladder, in the words of the operator's question."""

    TERMINAL = "terminal"
    HELD = "held"
    RUN_STOPPED = "run_stopped"
    NOT_LEADER = "not_leader"
    UNRESOLVED = "unresolved"
    LIVE = "live"
    HUMAN = "human"
    PERMISSION = "permission"
    LIMIT = "limit"
    DEPENDENCY = "dependency"
    PAUSED = "paused"
    STALLED = "stalled"
    MANUAL = "manual"
    SLOT = "slot"
    LEASE = "lease"
    EXECUTOR = "executor"
    EVIDENCE = "evidence"
    TOOL = "tool"
    PAGE = "page"
    FENCE = "fence"
    SPACING = "spacing"
    CAP = "cap"
    CLAIM = "claim"
    READY = "ready"
    NOTHING_ASKED = "nothing_asked"
    STEER = "steer"


@dataclass(frozen=True)
class Because:
    """Why not now: the rung, its sentence, what would change it, when to look again (None: when evidence rings)."""

    rung: Rung
    sentence: str
    change: str
    until: datetime | None = None
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Continue:
    """Arm one turn."""

    reason: WakeKind
    anyway: bool = False


@dataclass(frozen=True)
class RunCheck:
    """Run the acceptance program that the standing claim hangs on."""


@dataclass(frozen=True)
class Interrupt:
    """End a live turn whose task is over."""

    attempt_id: AttemptId


@dataclass(frozen=True)
class SteerTurn:
    """Put waiting messages into the turn under way, which the executor calls `turn`."""

    messages: tuple[MessageId, ...]
    turn: str


@dataclass(frozen=True)
class OpenConversation:
    """Give the task a fresh conversation, which claims the lease; the old one, if any, is superseded."""

    why: str


@dataclass(frozen=True)
class StartTask:
    """Give the task a slot."""


@dataclass(frozen=True)
class GiveSlotBack:
    """Take the slot from a task that has rested too long."""


@dataclass(frozen=True)
class Sampled:
    """Record a reconciliation: the act that is wanted needs two of them, apart in time."""


@dataclass(frozen=True)
class Revoke:
    """Make sure that a command which has not begun can never begin, so that it may be concluded that it did not."""

    command_id: CommandId


@dataclass(frozen=True)
class OpenCapWait:
    """Turn a reached cap into a wait with a reason; `cap` is whose it is, and its name."""

    question: str
    cap: str


@dataclass(frozen=True)
class OpenLimitWait:
    """Turn a limit of the account into a wait of this task, which has a turn to make, until a moment of its own."""

    limit: LimitId
    question: str
    until: datetime


@dataclass(frozen=True)
class AnswerAsk:
    """Tell the program of the turn under way what it asked leave for: `words`, or those of `text`, go with a no."""

    permission: PermissionId
    request: str
    allow: bool
    words: str
    text: TextId | None


@dataclass(frozen=True)
class ParkAsks:
    """Nobody has answered for long: the programs that wait for leave are told no for now."""


@dataclass(frozen=True)
class OpenPersonWait:
    """Ask a person about what cannot go on by itself."""

    question: str


@dataclass(frozen=True)
class CloseReady:
    """Take a signal of readiness whose grace has passed for a claim of completion."""


Intent = (
    Continue
    | RunCheck
    | Interrupt
    | SteerTurn
    | OpenConversation
    | StartTask
    | GiveSlotBack
    | Sampled
    | Revoke
    | OpenCapWait
    | OpenLimitWait
    | AnswerAsk
    | ParkAsks
    | OpenPersonWait
    | CloseReady
)


@dataclass(frozen=True)
class Decision:
    """One ladder's answer: an intent, or the first rung that holds. Never both empty."""

    intent: Intent | None = None
    because: Because | None = None
    look_again_at: datetime | None = None
    passed: tuple[Because, ...] = field(default=())
