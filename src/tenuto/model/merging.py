"""Merging: what a chain that advances itself was allowed to do, and how far one unit's pull request has come.

Who may merge is said once, by the operator, when the chain begins. A gate, a review and a merge speak of exactly one
commit; another commit begins anew. That no reviewer came to a verdict is not that one said block.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tenuto.model.forge import ForgePlace, MergeMethod
from tenuto.model.ids import ChainId, CommandId, MandateId, ProposalId, ReviewId, TaskId
from tenuto.model.lifecycle import ProposalState
from tenuto.model.work import Agent


class MergeMode(StrEnum):
    """SELF: the supervisor merges as soon as every gate holds. ASKED: it waits until the operator asks for it."""

    SELF = "self"
    ASKED = "asked"


@dataclass(frozen=True)
class Mandate:
    """What one chain may merge, where, and what has to hold before; made with the chain and never changed.

    `branches` begins the name of every branch it may merge. `gate` is run at the exact commit. The reviewer is a
    playbook's or a program's task of its own. `reviews` is how many reviews one unit may take.
    """

    id: MandateId
    revision: int
    chain_id: ChainId
    forge: ForgePlace
    mode: MergeMode
    method: MergeMethod
    branches: str
    base: str | None
    gate: tuple[str, ...]
    reviews: int
    made_at: datetime
    reviewer: Agent | None = None
    playbook: str | None = None


class Gate(StrEnum):
    """What the local gate came to at one commit."""

    GREEN = "green"
    RED = "red"


@dataclass(frozen=True)
class Proposal:
    """The pull request that one task hands in for its unit: one for each task.

    `head` is the commit that gate and reviews are bound to. `gate_command` runs or ran the gate at `gate_head`, and
    `gate` is what it came to. `reviews` counts those that were asked for. `merge_command` is the last merge that was
    armed, `merged_as` the commit it became.
    """

    id: ProposalId
    revision: int
    chain_id: ChainId
    task_id: TaskId
    unit: str
    state: ProposalState
    number: int
    branch: str
    base: str
    head: str
    url: str
    opened_at: datetime
    gate_command: CommandId | None = None
    gate_head: str | None = None
    gate: Gate | None = None
    gate_tries: int = 0
    reviews: int = 0
    merge_command: CommandId | None = None
    merged_as: str | None = None
    reason: str | None = None
    settled_at: datetime | None = None


class Verdict(StrEnum):
    """NONE: the reviewer's task ended without a verdict."""

    PASS = "pass"  # noqa: S105 - a verdict
    BLOCK = "block"
    NONE = "none"


@dataclass(frozen=True)
class Review:
    """One review of one commit by a task of its own. `verdict` None: it is being done."""

    id: ReviewId
    revision: int
    proposal_id: ProposalId
    task_id: TaskId
    number: int
    head: str
    asked_at: datetime
    verdict: Verdict | None = None
    findings: str | None = None
    said_at: datetime | None = None
