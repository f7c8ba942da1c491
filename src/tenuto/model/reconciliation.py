"""What was found when the registry and the evidence were laid side by side.

A reconciliation authorises nothing by itself. Its fence is the digest of exactly the members that were looked at;
an act that was decided under it must still find the same fence when it is armed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from tenuto.model.command import Command
from tenuto.model.evidence import AcceptanceFacts, Asking, Ending, Observation, PageFacts, Rank, WorkspaceFacts
from tenuto.model.permission import Permission
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import Flaw, ToolFacts
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import Task, Wait


@dataclass(frozen=True)
class Acknowledgement:
    """Later evidence, bound to this command, proves that it took effect. Made by reconciliation only."""

    command: Command
    evidence: Observation


@dataclass(frozen=True)
class Begun:
    """The irreversible step was started; whether it took effect is not proven yet."""

    command: Command


@dataclass(frozen=True)
class Undone:
    """Proven: nothing happened and nothing can happen any more. `mendable`: only a person can mend the reason.

    `why` is the executor's own word for the reason, where it has one.
    """

    command: Command
    reason: str
    mendable: bool
    revoked: bool
    why: str | None = None


@dataclass(frozen=True)
class Named:
    """What the outside calls the conversation of a command, other than it is called here."""

    command: Command
    identity: str


@dataclass(frozen=True)
class TurnEnded:
    """The performer saw the turn's own end."""

    command: Command
    ending: Ending


@dataclass(frozen=True)
class CutShort:
    """The turn was under way, its end was not seen, and everything that carried it is proven gone."""

    command: Command
    why: str


@dataclass(frozen=True)
class Lost:
    """It cannot be told whether the turn ever ran; everything that could carry it is proven gone."""

    command: Command
    why: str


@dataclass(frozen=True)
class Doubtful:
    """The evidence itself cannot be read or contradicts itself."""

    command: Command
    why: str


@dataclass(frozen=True)
class MayYetBegin:
    """Armed, nothing claimed, and nobody known to be at it: it must be revoked before anything is concluded."""

    command: Command


@dataclass(frozen=True)
class Living:
    """Under way. `orphaned`: its performer is gone and the agent goes on alone. `turn`: what the protocol calls it.

    `away` says why its executor cannot be asked now.
    """

    command: Command
    orphaned: bool
    unsure: bool = False
    turn: str | None = None
    away: str | None = None


@dataclass(frozen=True)
class CameTrue:
    """What a wait hangs on is there."""

    wait: Wait
    how: str


@dataclass(frozen=True)
class CannotComeTrue:
    """What a wait hangs on will never be there by itself: only a person can say what now."""

    wait: Wait
    why: str


@dataclass(frozen=True)
class ChildrenEnded:
    """The children that a parent waits for have ended; `children` are those it has not been told of."""

    wait: Wait
    children: tuple[Task, ...]


@dataclass(frozen=True)
class News:
    """What the other tasks of a run came to since its coordinator was told; `upto` is the last event looked at.

    `lines` may be empty: much happened, and nothing of it is news.
    """

    lines: tuple[str, ...]
    upto: int


@dataclass(frozen=True)
class Flawed:
    """Evidence of this rank about `subject` cannot be believed as it is."""

    subject: str
    flaw: Flaw
    why: str
    rank: Rank


@dataclass(frozen=True)
class Asked:
    """The program of a turn under way waits for leave, and nobody here knew."""

    command: Command
    ask: Asking


@dataclass(frozen=True)
class Unasked:
    """The program does not wait with a question any more, and it was not this registry that answered."""

    permission: Permission


@dataclass(frozen=True)
class LimitMoved:
    """The limit that a wait is for stands until another moment than is written in it."""

    wait: Wait
    until: datetime
    question: str


@dataclass(frozen=True)
class CheckpointDue:
    """So much active work has gone by without a structured report that one is to be asked for."""


Finding = (
    Acknowledgement
    | Begun
    | Undone
    | Named
    | TurnEnded
    | CutShort
    | Lost
    | Doubtful
    | MayYetBegin
    | Living
    | CameTrue
    | CannotComeTrue
    | ChildrenEnded
    | News
    | Flawed
    | Asked
    | Unasked
    | LimitMoved
    | CheckpointDue
)


@dataclass(frozen=True)
class Reconciliation:
    """Findings about one task, and the fence over the members that were looked at (no times, no counters).

    `tools` are the sessions that work for the task, `observations` what is worth keeping of the look. `page`
    is what the conversation's page shows, where somebody could be asked. `cards` are what a turn in a page waits
    before, None where that cannot be told. `watched` are the pages that are watched for the task.
    """

    findings: tuple[Finding, ...]
    fence: str
    members: tuple[str, ...]
    workspace: WorkspaceFacts | None = None
    acceptance: AcceptanceFacts | None = None
    tools: tuple[ToolFacts, ...] = ()
    observations: tuple[Observation, ...] = ()
    page: PageFacts | None = None
    cards: tuple[Asking, ...] | None = None
    watched: tuple[WatchedFacts, ...] = ()


@dataclass(frozen=True)
class Seen:
    """All that a ladder may look at: the registry's snapshot, what was found outside, and our own standing.

    `epoch` is None when this process does not lead (a reader explaining). `steerable`: the executor can put words
    into the very turn that is under way. `place` is where the executor is that would
    carry the next turn; `apart` names the host that what is under way runs on, when nobody can look there from here.
    `account` is whose usage the next turn would take, `quiet_until` when the quiet hours of now end. `unchecked` is why
    the host takes no program now, where a page carries the turns and a program has to check the claim that stands.
    """

    snapshot: Snapshot
    found: Reconciliation
    epoch: int | None
    connected: bool
    notes: tuple[str, ...] = field(default=())
    steerable: bool = False
    place: str | None = None
    apart: str | None = None
    account: str | None = None
    quiet_until: datetime | None = None
    unchecked: str | None = None
