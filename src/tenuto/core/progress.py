"""The clock of durable progress, apart from any activity on a screen.

External evidence (a commit, changed files, a background job that ended well) always resets the count; a line the agent
reports about itself resets it only when it is new, only a few times in a row, and never once the task is paused for
want of progress. Where the workspace was to be measured and could not be, the attempt neither counts nor resets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tenuto.model.evidence import WorkspaceFacts, WorkspaceKind
from tenuto.model.policy import Policy
from tenuto.model.tools import JobState, ToolFacts
from tenuto.model.work import Progress


@dataclass(frozen=True)
class Account:
    """The new state of the clock and what moved it; `external` progress refills the budget for recoveries."""

    progress: Progress
    moved: bool
    external: bool
    warn: bool
    pause: bool


def baseline(progress: Progress, facts: WorkspaceFacts | None) -> Progress:
    """Take the first measurement as the point that later ones are compared with."""
    if facts is None or facts.cursor is None or progress.cursor is not None:
        return progress
    return replace(progress, cursor=facts.cursor, head=facts.head)


def jobs_done(sessions: Iterable[ToolFacts], since: datetime | None, now: datetime) -> tuple[str, ...]:
    """The background jobs that ended well after `since` (None: it cannot be told), by name, as their servers date it.

    A job that failed, was stopped, or is meant to run for ever is no progress, and neither is one dated in the future.
    """
    if since is None:
        return ()
    return tuple(
        sorted(
            job.id
            for session in sessions
            if not session.defects
            for job in session.jobs
            if job.state is JobState.SUCCEEDED and not job.service
            if job.ended_at is not None and since < job.ended_at <= now
        )
    )


def account(
    progress: Progress,
    facts: WorkspaceFacts | None,
    line: str | None,
    policy: Policy,
    now: datetime,
    jobs: Sequence[str] = (),
) -> Account:
    """Count one attempt that has ended: `facts` is what the workspace shows now, None when it was not measured.

    `jobs` are the background jobs that ended well since the attempt before it.
    """
    cursor = facts.cursor if facts is not None else None
    external = cursor is not None and progress.cursor is not None and cursor != progress.cursor
    if external and facts is not None:
        reason = "a new commit" if facts.head != progress.head else "changed files"
        moved = Progress(cursor=cursor, head=facts.head, at=now, line=line or progress.line, reason=reason)
        return Account(moved, moved=True, external=True, warn=False, pause=False)
    if jobs:
        at_work = Progress(
            cursor=cursor or progress.cursor,
            head=(facts.head if cursor is not None and facts is not None else None) or progress.head,
            at=now,
            line=line or progress.line,
            reason=f"job {jobs[0]} ended well" if len(jobs) == 1 else f"{len(jobs)} jobs ended well",
        )
        return Account(at_work, moved=True, external=True, warn=False, pause=False)
    known = replace(progress, cursor=progress.cursor or cursor, head=progress.head or (facts.head if facts else None))
    believed = progress.streak < policy.self_progress_streak and progress.without < policy.stall_pause
    if line is not None and line != progress.line and believed:
        said = replace(
            known, at=now, without=0, streak=progress.streak + 1, line=line, reason="a new progress line of its own"
        )
        return Account(said, moved=True, external=False, warn=False, pause=False)
    if unmeasurable(progress, facts, policy):
        return Account(replace(known, line=line or progress.line), moved=False, external=False, warn=False, pause=False)
    without = progress.without + 1
    still = replace(known, without=without, line=line or progress.line)
    return Account(
        still,
        moved=False,
        external=False,
        warn=without == policy.stall_warn,
        pause=without >= policy.stall_pause,
    )


def unmeasurable(progress: Progress, facts: WorkspaceFacts | None, policy: Policy) -> bool:
    """Whether the workspace was to be measured and could not be; a measurement that was put off is another matter."""
    if facts is None or facts.cursor is not None:
        return False
    return facts.kind is not WorkspaceKind.PLAIN or measure_plain(progress, policy)


def measure_plain(progress: Progress, policy: Policy) -> bool:
    """Whether a directory outside git must be measured at this turn's end: only when the stall rung could hang on it.

    Reading thousands of files is kept off the turn's path; any change since the last measurement counts when it is.
    """
    return progress.cursor is None or progress.without + 1 >= policy.stall_warn
