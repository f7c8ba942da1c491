"""What a tool server says of one of its sessions: a plan, calls in flight, background jobs, a claim to go on.

Identities, states and moments only; no text of a plan, no command and no result is ever taken along. A task is bound
to the sessions that work for it; which of their jobs are services, and so never end, is the operator's to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

#: How a page is named as what works for a task: its exact address, and the one window that is meant, where one is.
_PAGE: Final = re.compile(r"(https?://[^\s\x00-\x1f\x7f]{1,400})(?: in ([A-Za-z0-9._-]{1,64}))?")


@dataclass(frozen=True)
class PageName:
    """A page by its exact address; `window` is the only window that counts, None: there must be one that shows it."""

    url: str
    window: str | None = None

    def __str__(self) -> str:
        return self.url if self.window is None else f"{self.url} in {self.window}"


@dataclass(frozen=True)
class ToolBinding:
    """A session of a tool server that works for a task, or a page that is watched for it.

    `server` is the tool server's or the page witness's name among ours. `services` are jobs of a session that are meant
    to run for ever.
    """

    server: str
    session: str
    services: tuple[str, ...] = ()

    @property
    def page(self) -> PageName | None:
        """The page that it names; None for a session of a tool server."""
        found = _PAGE.fullmatch(self.session)
        return PageName(found[1], found[2]) if found is not None else None

    @property
    def subject(self) -> str:
        """How evidence about it is named."""
        return f"{self.server}/{self.session}"


class SessionState(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class PlanState(StrEnum):
    ACTIVE = "active"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class PlanFacts:
    """A plan: how it stands, and how many of its steps are done or skipped."""

    id: str
    state: PlanState
    steps: int = 0
    done: int = 0
    moved_at: datetime | None = None


class ClaimState(StrEnum):
    """The tool server's own claim to continue a session. EXPIRED claims are still written as pending on its disk."""

    NONE = "none"
    PENDING = "pending"
    EXPIRED = "expired"
    EXHAUSTED = "exhausted"


class CallState(StrEnum):
    """LIVE: in flight. ORPHANED: in flight by the record, and its server is gone. STALE: given up by the server."""

    LIVE = "live"
    ORPHANED = "orphaned"
    STALE = "stale"


@dataclass(frozen=True)
class CallFacts:
    """One call of a tool that the record holds as in flight."""

    id: str
    state: CallState
    started_at: datetime
    heartbeat_at: datetime


class JobState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(frozen=True)
class JobFacts:
    """A background job. `corrected`: its own status file told more than the server's list did.

    `ended_at` is by the server's clock; None where it has not ended, or its end is not dated.
    """

    id: str
    state: JobState
    attempt: int
    started_at: datetime | None = None
    updated_at: datetime | None = None
    exit_code: int | None = None
    service: bool = False
    corrected: bool = False
    ended_at: datetime | None = None


class Flaw(StrEnum):
    """Why evidence cannot be believed as it is."""

    STALE = "stale"
    FUTURE = "future"
    ROLLED_BACK = "rolled_back"
    DUPLICATED = "duplicated"
    CONTRADICTORY = "contradictory"
    UNREADABLE = "unreadable"
    UNKNOWN_VERSION = "unknown_version"
    MISSING = "missing"


@dataclass(frozen=True)
class Defect:
    """One flaw of one piece of evidence, in a sentence."""

    flaw: Flaw
    why: str


@dataclass(frozen=True)
class ToolFacts:
    """One session of a tool server, as its records say it, with what is lazy on its disk corrected.

    `sequence` only grows while the session lives. `run` is the server's own fence where it has one.
    `active_at` is the last word of the agent there; heartbeats are not words. `due_at` is when the server itself would
    think of continuing. With a `defect` that is not about age, the rest tells nothing.
    """

    binding: ToolBinding
    version: str | None = None
    state: SessionState | None = None
    run: str | None = None
    sequence: int = 0
    calls: tuple[CallFacts, ...] = ()
    jobs: tuple[JobFacts, ...] = ()
    plan: PlanFacts | None = None
    claim: ClaimState = ClaimState.NONE
    claim_id: str | None = None
    active_at: datetime | None = None
    due_at: datetime | None = None
    defects: tuple[Defect, ...] = ()

    @property
    def subject(self) -> str:
        return self.binding.subject

    @property
    def readable(self) -> bool:
        """Whether anything was read at all."""
        return self.state is not None

    @property
    def in_flight(self) -> tuple[CallFacts, ...]:
        """Calls that may still act: live ones, and those whose server is gone."""
        return tuple(call for call in self.calls if call.state is not CallState.STALE)

    @property
    def running(self) -> tuple[JobFacts, ...]:
        """Jobs that run and are meant to end."""
        return tuple(job for job in self.jobs if job.state is JobState.RUNNING and not job.service)
