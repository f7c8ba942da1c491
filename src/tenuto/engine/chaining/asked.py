"""What is asked of a chain and what is answered, as values. Nothing here decides or writes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from tenuto.core.chain import Checks, Resolution
from tenuto.engine.calling import Caller, Done
from tenuto.model.chain import Blocker, Caps, Chain, Envelope, Link, Outcome, SourcePlace
from tenuto.model.change import Key
from tenuto.model.fact import Scalar
from tenuto.model.forge import ForgePlace, MergeMethod
from tenuto.model.ids import TaskId
from tenuto.model.merging import MergeMode
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Agent

#: What carries out a record; it is no executor of turns.
SOURCE = "source"
TRIES = 8
LISTED = 500
EVERY = 100_000
#: A source that is out of order, and a chain that waits for its source, are looked at again after these.
OUT_OF_ORDER, WAITS, PRESSED = timedelta(seconds=5), timedelta(seconds=15), timedelta(seconds=30)
#: A chain whose task is at work is looked at when that one ends; and after this, should nobody have rung.
AT_WORK = timedelta(minutes=10)
#: A chain that has ended is looked at so often while worktrees of it are still to be taken away.
LEFT = timedelta(minutes=1)


@dataclass(frozen=True)
class MergeWish:
    """How a chain is to merge what its tasks hand in. None: the chain's own place, base, or number."""

    forge: ForgePlace
    gate: tuple[str, ...]
    mode: MergeMode = MergeMode.SELF
    method: MergeMethod = MergeMethod.MERGE
    base: str | None = None
    branches: str | None = None
    reviews: int | None = None
    reviewer: Agent | None = None
    playbook: str | None = None


@dataclass(frozen=True)
class Start:
    """What `tenuto chain start` asks for.

    `worktrees`: every unit has a fresh one of the repository at `cwd`, begun at `base` (None: the default branch) of
    `remote`. `phases`: a unit counts when its pull request is part of that base.
    """

    goal: str
    repo: str
    selector: str
    source: SourcePlace
    cwd: str
    caps: Caps
    attempt_cap: int = 10
    authorization: tuple[tuple[str, bool], ...] = ()
    agent: Agent | None = None
    playbook: str | None = None
    title: str = ""
    merging: MergeWish | None = None
    worktrees: bool = False
    phases: bool = False
    base: str | None = None
    remote: str = "origin"


@dataclass(frozen=True)
class HandOff:
    """What an agent, or the operator, says of a unit. `only_record`: the next task is not to be made yet.

    `pull` or `branch` name what is handed in to be merged, where the chain merges.
    """

    outcome: Outcome
    evidence: str | None = None
    blocker: Blocker | None = None
    checks: Checks = Checks.NONE
    only_record: bool = False
    pull: int | None = None
    branch: str | None = None


@dataclass(frozen=True)
class Stepped:
    """Where a chain stands after a step: the task that works now, or why nobody does."""

    chain: Chain
    task_id: TaskId | None
    because: str


@dataclass(frozen=True)
class Foreseen:
    """What the next step would be; nothing was done."""

    chain: Chain
    link: Link | None
    found: Resolution
    envelope: Envelope | None
    prompt: str | None


@dataclass(frozen=True)
class Helpers:
    """What the desk lends: who leads, who has asked before, whose word is late, and whom to ring."""

    must_lead: Callable[[], None]
    replay: Callable[[Caller, str | None, str, object], Done | None]
    key: Callable[[Caller, str, str | None, object, Mapping[str, Scalar]], Key | None]
    in_time: Callable[[Caller, Snapshot, str], Awaitable[None]]
    ring: Callable[[TaskId], None]
