"""A session file, version 1 or 2, as a value: pure, and closed to what it does not know.

Only identities, states and moments are taken along; objectives, steps, summaries and commands stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from tenuto.model.tools import ClaimState, PlanFacts, PlanState, SessionState
from tenuto.transports.localshell import reading
from tenuto.transports.localshell.files import Unreadable

SESSION: Final = re.compile(r"s_[0-9a-f]{24}")
RUN: Final = re.compile(r"r_[0-9a-f]{24}")
CALL: Final = re.compile(r"[0-9a-f]{32}")
JOB: Final = re.compile(r"job_[0-9a-f]{12}")
PLAN: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")
CLAIM: Final = re.compile(r"c_[0-9a-f]{16}")
WORD: Final = re.compile(r"[a-z_]{1,40}")
KIND: Final = re.compile(r"[a-z_.]{1,60}")

#: Versions of the file that are understood, with the servers that write them.
VERSIONS: Final[Mapping[int, str]] = {1: "4.0", 2: "4.1 to 5"}
EXECUTION_LEASE: Final = timedelta(seconds=900)
CLAIM_LIFE: Final = timedelta(seconds=300)
CALL_LIFE: Final = timedelta(seconds=7200)
CONTINUATIONS: Final = 10
STARTERS: Final = frozenset({"job_start", "job_retry"})


class UnknownVersion(Exception):
    """The file is of a version that is not understood; nothing of it is used."""


@dataclass(frozen=True)
class Call:
    """A call that the file holds as in flight."""

    id: str
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True)
class Session:
    """What a session file says. `moments` are all it dates; `jobs` those its own activity started."""

    id: str
    version: int
    state: SessionState
    run: str | None
    runs: frozenset[str]
    sequence: int
    shortened: bool
    calls: tuple[Call, ...]
    jobs: frozenset[str]
    plan: PlanFacts | None
    pending_since: datetime | None
    claim_id: str | None
    continuations: int
    retry_after: datetime | None
    agent_at: datetime | None
    active_at: datetime
    moments: tuple[datetime, ...]

    def claim(self, now: datetime) -> ClaimState:
        """The server's claim to continue, as it stands now and not as it was written."""
        if self.pending_since is not None:
            return ClaimState.PENDING if now - self.pending_since < CLAIM_LIFE else ClaimState.EXPIRED
        return ClaimState.EXHAUSTED if self.continuations >= CONTINUATIONS else ClaimState.NONE

    def due_at(self, now: datetime) -> datetime | None:
        """When the server would think of continuing it; None while it would not."""
        if self.plan is None or self.plan.state is not PlanState.ACTIVE or self.agent_at is None:
            return None
        fresh = any(now - call.heartbeat_at < CALL_LIFE for call in self.calls)
        if fresh or self.claim(now) is ClaimState.PENDING or self.continuations >= CONTINUATIONS:
            return None
        due = self.agent_at + EXECUTION_LEASE
        return due if self.retry_after is None else max(due, self.retry_after)


def parse(name: str, tree: Mapping[str, Any]) -> Session:
    """A session out of its document. Raises UnknownVersion, or Unreadable for anything that is not as it should be."""
    version = tree.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version not in VERSIONS:
        raise UnknownVersion(
            f"session file version {str(version)[:20]!r} is not one of {', '.join(map(str, VERSIONS))}"
        )
    if tree.get("session_id") != name:
        raise Unreadable("the file names another session than it is called by")
    plan, lease = _plan(reading.mapping(tree, "plan", 40))
    activity = reading.objects(tree, "activity", 200)
    calls = tuple(_call(call_id, call) for call_id, call in reading.mapping(tree, "in_flight_calls", 1000).items())
    updated = reading.moment(tree, "updated_at")
    spoken = [_spoken(entry) for entry in activity]
    agent = [moment for actor, moment in spoken if actor == "agent"]
    agent_at = reading.maybe_moment(lease, "last_agent_activity")
    pending = reading.truth(lease, "continuation_pending")
    since = reading.maybe_moment(lease, "continuation_pending_since")
    if pending and since is None:
        raise Unreadable("a claim to continue is pending, and nothing says since when")
    runs = frozenset(reading.text(run, "run_id", RUN) for run in reading.objects(tree, "runs", 100))
    moments = [updated, reading.moment(tree, "created_at"), *(moment for _, moment in spoken)]
    moments += [moment for call in calls for moment in (call.started_at, call.heartbeat_at)]
    moments += [moment for moment in (agent_at, since) if moment is not None]
    return Session(
        id=name,
        version=version,
        state=_of(SessionState, reading.text(tree, "status", WORD), "status"),
        run=reading.maybe_text(tree, "active_run_id", RUN) if version == 1 else None,
        runs=runs,
        sequence=(sequence := reading.number(tree, "activity_seq")),
        shortened=sequence > len(activity),
        calls=calls,
        jobs=frozenset(job for entry in activity if (job := _started(entry)) is not None),
        plan=plan,
        pending_since=since if pending else None,
        claim_id=reading.maybe_text(lease, "continuation_claim_id", CLAIM) if pending else None,
        continuations=reading.number(lease, "continuation_count", 100_000) if lease else 0,
        retry_after=reading.maybe_moment(lease, "continuation_retry_after"),
        agent_at=agent_at,
        active_at=max([*agent, *([agent_at] if agent_at else [])], default=updated),
        moments=tuple(moments),
    )


E_ = TypeVar("E_", bound=StrEnum)


def _of(kind: type[E_], word: str, name: str) -> E_:
    try:
        return kind(word)
    except ValueError:
        raise Unreadable(f"'{name}' has a word that is not known: {word}") from None


def _plan(tree: Mapping[str, Any]) -> tuple[PlanFacts | None, Mapping[str, Any]]:
    if not tree:
        return None, tree
    steps = [reading.text(step, "status", WORD) for step in reading.objects(tree, "steps", 100)]
    return PlanFacts(
        id=reading.text(tree, "plan_id", PLAN),
        state=_of(PlanState, reading.text(tree, "status", WORD), "plan.status"),
        steps=len(steps),
        done=sum(step in ("completed", "skipped") for step in steps),
        moved_at=reading.moment(tree, "updated_at"),
    ), tree


def _call(name: str, tree: Any) -> Call:
    if not CALL.fullmatch(name) or not isinstance(tree, dict):
        raise Unreadable("a call in flight has no proper name")
    return Call(name, reading.moment(tree, "started_at"), reading.moment(tree, "heartbeat_at"))


def _spoken(entry: Mapping[str, Any]) -> tuple[str, datetime]:
    reading.text(entry, "type", KIND)
    return reading.text(entry, "actor", WORD), reading.moment(entry, "ts")


def _started(entry: Mapping[str, Any]) -> str | None:
    """The job that an activity started, if it started one."""
    data = entry.get("data")
    if not isinstance(data, dict):
        return None
    tool = data.get("tool")
    if tool is not None and not isinstance(tool, str):
        raise Unreadable("an activity is of a tool without a name")
    if tool not in STARTERS:
        return None
    job = data.get("job_id")
    return job if isinstance(job, str) and JOB.fullmatch(job) else None
