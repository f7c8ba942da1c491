"""What tasks hear of each other: a coordinator of its run, a parent of its children.

A coordinator is told in words of our own what the other tasks reported, committed and came to: many things in one
message, and no two messages closer than a floor. A parent is told of each child's end once. Both wake whoever is told,
and neither ends, pauses or continues anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from tenuto.model.fact import Event, FactKind
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import DeliveryState
from tenuto.model.message import MessageKind
from tenuto.model.reconciliation import CannotComeTrue, ChildrenEnded, Finding, News
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Task, Wait, WaitKind

#: How many events of a run are read at once; where none of so many is news they are passed over.
PAGE = 500
#: How many things one message tells.
LINES = 40

#: What of another task is news, and how it is told.
TOLD: Mapping[FactKind, str] = {
    FactKind.REPORT_RECORDED: "reported: {line}",
    FactKind.TASK_PROGRESSED: "made durable progress: {why} (HEAD {head})",
    FactKind.WAIT_OPENED: "waits ({kind}): {question}",
    FactKind.TASK_COMPLETED: "is completed: {reason} (reference: {reference})",
    FactKind.TASK_FAILED: "failed: {reason}",
    FactKind.TASK_CANCELLED: "was stopped for good: {reason}",
}
ENDS = frozenset({FactKind.TASK_COMPLETED, FactKind.TASK_FAILED, FactKind.TASK_CANCELLED})


# -- a coordinator


def coordinates(snapshot: Snapshot) -> bool:
    """Whether the task is its run's coordinator now."""
    return snapshot.run.coordinator == snapshot.task.id


def news(snapshot: Snapshot, now: datetime) -> News | None:
    """What the coordinator is to be told now; None where there is nothing, or its time has not come."""
    if not _listens(snapshot) or next_news(snapshot, now) is not None:
        return None
    told = [line for event in snapshot.news if (line := _line(event, snapshot.task.id))]
    if not told and len(snapshot.news) < PAGE:
        return None
    if len(told) > LINES:
        told = [*told[:LINES], f"- and {len(told) - LINES} more things; look with tenuto show {snapshot.run.id}"]
    return News(tuple(told), snapshot.news[-1].n)


def next_news(snapshot: Snapshot, now: datetime) -> datetime | None:
    """When the coordinator may be told more, if that is later than now and there is something to tell."""
    told = snapshot.task.informed_at
    if not _listens(snapshot) or told is None or told > now:
        return None
    if not any(_line(event, snapshot.task.id) for event in snapshot.news):
        return None
    free = told + snapshot.run.policy.news_spacing
    return free if free > now else None


def _listens(snapshot: Snapshot) -> bool:
    """It is the coordinator, no turn of it is under way, and it has been given what it was told before."""
    if not coordinates(snapshot) or snapshot.task.terminal or snapshot.live is not None or not snapshot.news:
        return False
    return not any(
        message.kind is MessageKind.NEWS and message.state in (DeliveryState.DEFERRED, DeliveryState.RETRY_WAIT)
        for message in snapshot.messages
    )


class _Dashes(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "-"


def _line(event: Event, mine: TaskId) -> str | None:
    fact = event.fact
    sentence = TOLD.get(fact.kind)
    if sentence is None or fact.task_id is None or fact.task_id == mine:
        return None
    if fact.kind is FactKind.TASK_PROGRESSED and not fact.data.get("head"):
        return None
    data = _Dashes({name: str(value)[:300] for name, value in fact.data.items() if value is not None})
    return f"- {event.at.isoformat(timespec='seconds')} {fact.task_id} {sentence.format_map(data)}"


def body(lines: Iterable[str]) -> str:
    """The words in which a coordinator is told."""
    return "\n".join(("What the other tasks of this run came to since you were told last:", *lines))


# -- a parent


def awaited(wait: Wait) -> tuple[str, tuple[TaskId, ...]]:
    """`any` or `all`, and the children that are named; no names mean all of them."""
    how, *names = (wait.subject or "all").split()
    return how, tuple(TaskId(name) for name in names)


def unended(snapshot: Snapshot) -> str | None:
    """What speaks against a task's word that it is complete: it waits for children, and not enough have ended."""
    for wait in snapshot.waits:
        if wait.kind is WaitKind.CHILDREN and not children_ended(snapshot, wait):
            return f"it waits for its children ({wait.question}), and they have not ended"
    return None


def children_ended(snapshot: Snapshot, wait: Wait) -> tuple[Finding, ...]:
    """Whether enough of the children have ended. One that failed has ended too.

    Without names, *any* means a child whose end was not told before: the same end never wakes a parent twice.
    """
    how, names = awaited(wait)
    meant = [child for child in snapshot.children if not names or child.id in names]
    ended = [child for child in meant if child.terminal]
    untold = [child for child in ended if child.told_at is None]
    if not meant:
        return (CannotComeTrue(wait, "it has no such children to wait for"),)
    if how == "any":
        fresh = ended if names else untold
        if fresh:
            return (ChildrenEnded(wait, tuple(fresh)),)
        if len(ended) == len(meant):
            return (CannotComeTrue(wait, "all its children have ended, and it was told of each"),)
        return ()
    return (ChildrenEnded(wait, tuple(untold or ended)),) if len(ended) == len(meant) else ()


def ends(children: Iterable[Task]) -> str:
    """The words in which a parent is told how its children ended."""
    told = ["These tasks that you waited for have ended:"]
    known = list(children)
    for child in known[:LINES]:
        end = child.disposition
        if end is None:
            continue
        proof = "verified" if end.verified else "not verified"
        told.append(f"- {child.id} ({child.title}) is {child.state}: {end.reason[:300]}")
        told.append(f"  reference: {(end.reference or 'none')[:300]} ({proof})")
    if len(known) > LINES:
        told.append(f"- and {len(known) - LINES} more; look with tenuto tasks")
    return "\n".join(told)
