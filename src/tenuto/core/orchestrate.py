"""Which of many tasks would be served next, and why not the others: a plan that changes nothing.

Whoever was served longest ago comes first, then whoever is oldest. One that was just served, or could not be sent to,
cools down; everything else is the ladder's to say. At most one is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tenuto.core import decide
from tenuto.model.decision import Because, Continue, OpenConversation, Rung, StartTask
from tenuto.model.ids import TaskId
from tenuto.model.reconciliation import Seen
from tenuto.model.work import Task

#: The shortest and the longest pause between two services of one task; it doubles with each try that was not sent.
SHORTEST = timedelta(seconds=5)
LONGEST = timedelta(seconds=60)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Candidate:
    """A task that was considered: `because` says why it is passed over, None for one that could be served now."""

    task: Task
    because: Because | None


@dataclass(frozen=True)
class Plan:
    """What would be served next, if anything, and everything that was considered, in order."""

    selected: TaskId | None
    considered: tuple[Candidate, ...]
    at: datetime


def cooldown(task: Task) -> timedelta:
    """How long a task cools down after it was served."""
    return min(LONGEST, SHORTEST * (1 << min(task.unsent_in_row, 10)))


def plan(seen: Sequence[Seen], now: datetime) -> Plan:
    """The plan over these tasks, each seen just now. Raises ValueError for a task that is given twice."""
    names = [each.snapshot.task.id for each in seen]
    if len(set(names)) != len(names):
        raise ValueError("a task is given twice")
    ordered = sorted(seen, key=lambda each: _place(each.snapshot.task))
    considered = tuple(Candidate(each.snapshot.task, _passed_over(each, now)) for each in ordered)
    selected = next((candidate.task.id for candidate in considered if candidate.because is None), None)
    return Plan(selected, considered, now)


def _place(task: Task) -> tuple[datetime, datetime, str]:
    return (task.last_served_at or NEVER, task.created_at, task.id)


def _passed_over(seen: Seen, now: datetime) -> Because | None:
    task = seen.snapshot.task
    decision = decide.decide(seen, now)
    if decision.because is not None:
        return decision.because
    if not isinstance(decision.intent, Continue | StartTask | OpenConversation):
        return Because(Rung.UNRESOLVED, f"something else comes first: {type(decision.intent).__name__}", "it is done")
    if (held := decide.beyond(seen, now)) is not None:
        return held
    ready = (task.last_served_at or NEVER) + cooldown(task)
    if ready > now:
        return Because(Rung.SPACING, "it was served a moment ago", "time", ready)
    return None
