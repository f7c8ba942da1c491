"""What was found when the registry and the evidence were laid side by side.

A reconciliation authorises nothing by itself. Its fence is the digest of exactly the members that were looked at;
an act that was decided under it must still find the same fence when it is armed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tenuto.model.command import Command
from tenuto.model.evidence import AcceptanceFacts, Ending, Observation, WorkspaceFacts
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Wait


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
    """Proven: nothing happened and nothing can happen any more. `mendable`: only a person can mend the reason."""

    command: Command
    reason: str
    mendable: bool
    revoked: bool


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
    """Under way. `orphaned`: its performer is gone and the agent goes on alone."""

    command: Command
    orphaned: bool
    unsure: bool = False


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
class CheckpointDue:
    """So much active work has gone by without a structured report that one is to be asked for."""


Finding = (
    Acknowledgement
    | Begun
    | Undone
    | TurnEnded
    | CutShort
    | Lost
    | Doubtful
    | MayYetBegin
    | Living
    | CameTrue
    | CannotComeTrue
    | CheckpointDue
)


@dataclass(frozen=True)
class Reconciliation:
    """Findings about one task, and the fence over the members that were looked at (no times, no counters)."""

    findings: tuple[Finding, ...]
    fence: str
    members: tuple[str, ...]
    workspace: WorkspaceFacts | None = None
    acceptance: AcceptanceFacts | None = None


@dataclass(frozen=True)
class Seen:
    """All that a ladder may look at: the registry's snapshot, what was found outside, and our own standing.

    `epoch` is None when this process does not lead (a reader explaining). `steerable`: the executor can put words
    into the very turn that is under way. `place` is where the executor is that would
    carry the next turn; `apart` names the host that what is under way runs on, when nobody can look there from here.
    """

    snapshot: Snapshot
    found: Reconciliation
    epoch: int | None
    connected: bool
    notes: tuple[str, ...] = field(default=())
    steerable: bool = False
    place: str | None = None
    apart: str | None = None
