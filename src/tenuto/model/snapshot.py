"""Everything a decision about one task may look at, read in one go from the registry.

A snapshot is taken, never built up; what is not in it does not count. `Seen` adds what the reconciliation of outside
evidence found, and is what every ladder walks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tenuto.model.command import Attempt, Command
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sample, Sighting
from tenuto.model.fact import Event
from tenuto.model.ids import TaskId, TokenId
from tenuto.model.leadership import Leadership
from tenuto.model.lifecycle import TaskState
from tenuto.model.limit import UsageLimit
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.work import Run, Task, Wait, Wake

__all__ = ["InLine", "Leadership", "Registry", "Role", "Snapshot", "Token"]


@dataclass(frozen=True)
class Registry:
    """The registry itself: its identity, the operator's hold on everything, and the stop of chains that merge."""

    id: str
    revision: int
    created_at: datetime
    held_at: datetime | None = None
    held_by: str | None = None
    merging_off_at: datetime | None = None
    merging_off_by: str | None = None


class Role(StrEnum):
    OPERATOR = "operator"
    COORDINATOR = "coordinator"
    AGENT = "agent"
    EXECUTOR = "executor"


@dataclass(frozen=True)
class Token:
    """A bearer token as the registry knows it: its sha256 in hex, what it opens, and whose lease it is bound to.

    `name` is what an operator calls a token that was made by hand; those of turns have none.
    """

    id: TokenId
    revision: int
    digest: str
    role: Role
    task_id: TaskId | None
    lease_number: int | None
    created_at: datetime
    revoked_at: datetime | None = None
    name: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class InLine:
    """A task that stands in line for a slot. `giver` is whose slot passes to it, while that task still holds it."""

    task_id: TaskId
    started_at: datetime | None
    created_at: datetime
    look_at: datetime | None
    inherits: bool = False
    giver: TaskId | None = None


@dataclass(frozen=True)
class Spent:
    """What all tasks of a run took; `cost` is the largest sum in one currency, in millionths of it."""

    attempts: int = 0
    live_time: timedelta = timedelta(0)
    tokens: int = 0
    cost: int = 0


@dataclass(frozen=True)
class Snapshot:
    """One task and all that hangs on it now.

    `conversation` is the one that holds the lease. `live` is the attempt under way and `live_command` its send;
    `last` is the newest attempt that ended. `commands` are the open ones, of any kind. `checks` are the settled CHECK
    and INTERRUPT commands bound to the live or the last attempt, newest first, at most 8. `waits` are open, `wakes`
    pending, `messages` deferred, waiting for a retry or carried, oldest first. `samples` are the newest three.
    `slots_used` counts the tasks that hold a slot, up to `slots`: active, and no claim of completion is being judged.
    `line` are the tasks that stand in line for one, the task itself among them; read for a pending task only.
    `others` are the states of tasks that open waits hang on.
    `released` is the send of the last attempt where a verdict settled it and not evidence: it is still looked at.
    `sightings` are the newest 64 of recorded evidence, newest first.
    `permissions` are the questions of the task's programs that are not closed, oldest first; `limits` are the usage
    limits that stand, of every account. `heir` is the candidate that an open takeover is meant for.
    `children` are the task's own where an open wait hangs on them, `news` the run's next events where the task is its
    coordinator, and `spent` what the run has spent where it has a cap.
    """

    registry: Registry
    run: Run
    task: Task
    conversation: Conversation | None
    live: Attempt | None
    last: Attempt | None
    live_command: Command | None
    commands: tuple[Command, ...]
    waits: tuple[Wait, ...]
    wakes: tuple[Wake, ...]
    messages: tuple[Message, ...]
    samples: tuple[Sample, ...]
    checks: tuple[Command, ...]
    slots_used: int
    slots: int
    others: Mapping[TaskId, TaskState] = field(default_factory=dict)
    released: Command | None = None
    sightings: tuple[Sighting, ...] = ()
    children: tuple[Task, ...] = ()
    news: tuple[Event, ...] = ()
    spent: Spent = field(default_factory=Spent)
    line: tuple[InLine, ...] = ()
    heir: Conversation | None = None
    permissions: tuple[Permission, ...] = ()
    limits: tuple[UsageLimit, ...] = ()
