"""Slots: who may be active at once, who stands in line, and in which order.

A slot is held by an active task until it rests too long, ends, or claims to be complete. Who returns goes before who
never started, and among equals the oldest goes first; a successor goes first of all, but only into the slot of the task
that handed its own over. Nothing here reads a clock, counts rows, or starts anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from tenuto.model.command import Attempt, Command
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.policy import Policy
from tenuto.model.snapshot import InLine, Snapshot
from tenuto.model.work import Task

#: Whoever stands in line and was not looked at for this much longer than another does not hold that one up. It is more
#: than what the written moments of two that are looked at may lie apart.
FORGOTTEN = timedelta(minutes=8)


class Occupancy(StrEnum):
    """What a task does with the slot it holds."""

    WORKING = "working"
    FINISHED = "finished_awaiting_ack"
    HUNG = "suspected_hung"
    LAUNCHING = "launching"
    RESTING = "resting"


@dataclass(frozen=True)
class Held:
    """One task that is active, what it does, and since when."""

    task: Task
    occupancy: Occupancy
    since: datetime
    counts: bool


@dataclass(frozen=True)
class Ledger:
    """All slots: their number, how many are free, who holds one, who stands in line (in the order they start)."""

    slots: int
    free: int
    held: tuple[Held, ...]
    line: tuple[InLine, ...]
    pending_cap: int
    spawned_pending: int


def holds(task: Task) -> bool:
    """Whether a task takes up a slot: a claim of completion has given it up."""
    return task.state is TaskState.ACTIVE and task.claim is None


def place(one: InLine) -> tuple[int, datetime, str]:
    """Where somebody stands in line; the lowest starts first."""
    rank = 0 if one.inherits else 1 if one.started_at is not None else 2
    return rank, one.created_at, one.task_id


def in_order(line: Iterable[InLine]) -> tuple[InLine, ...]:
    """The line as it starts; who waits for a slot that another still holds stands behind all."""
    return tuple(sorted(line, key=lambda one: (one.giver is not None, place(one))))


def mine(snapshot: Snapshot) -> InLine:
    """The snapshot's task as it stands in line, or would."""
    task = snapshot.task
    found = next((one for one in snapshot.line if one.task_id == task.id), None)
    return found or InLine(task.id, task.started_at, task.created_at, task.look_at, task.slot_from is not None)


def ahead(snapshot: Snapshot) -> int:
    """How many start before the snapshot's task."""
    me = mine(snapshot)
    return sum(
        one.task_id != me.task_id and one.giver is None and place(one) < place(me) and not _forgotten(one, me)
        for one in snapshot.line
    )


def _forgotten(one: InLine, beside: InLine) -> bool:
    """Whether nobody gets to look at it any more, so that it must not hold up the others."""
    if one.look_at is None:
        return True
    return beside.look_at is not None and beside.look_at - one.look_at > FORGOTTEN


def giver(snapshot: Snapshot) -> TaskId | None:
    """Whose slot the task is to take over, while that one still holds it."""
    return mine(snapshot).giver


def may_start(snapshot: Snapshot) -> bool:
    """Whether a pending task may have a slot now."""
    return giver(snapshot) is None and snapshot.slots_used + ahead(snapshot) < snapshot.slots


def next_up(line: Iterable[InLine], free: int) -> tuple[TaskId, ...]:
    """Who may start now that so many slots are free."""
    return tuple(one.task_id for one in in_order(line) if one.giver is None)[: max(free, 0)]


def hand_over(giver_: Task, successor: Task) -> Task:
    """The successor of a task that holds a slot: it begins in that slot, and in no other.

    The giver keeps the slot until it ends, claims to be complete or rests; nobody else can be given it after that.
    """
    return replace(successor, slot_from=giver_.id)


def inherited(explicit: bool | None, parent: bool | None) -> bool:
    """What is said, else what the parent has, else off."""
    if explicit is not None:
        return explicit
    return parent if parent is not None else False


def full(snapshot: Snapshot) -> bool:
    return snapshot.slots_used >= snapshot.slots


def expired(task: Task, policy: Policy, now: datetime) -> bool:
    """Whether a spawned task that never started has stood in line for too long."""
    if task.spawned_by is None or task.started_at is not None or task.queued_at is None:
        return False
    return now - task.queued_at >= policy.pending_life


def closes_at(task: Task, policy: Policy) -> datetime | None:
    """When a signal of readiness closes its task by itself; None when it does not."""
    if task.ready_at is None or not task.auto_close or task.claim is not None or task.terminal:
        return None
    return task.ready_at + policy.ready_grace


def lingers(task: Task, policy: Policy, now: datetime) -> bool:
    """Whether a turn of work that is said to be done, or is over, has had its time to end by itself.

    The time is that of a signal of readiness: the turn that said it may still tidy up.
    """
    done = task.ended_at if task.terminal else task.claim.made_at if task.claim is not None else None
    return done is not None and now - done >= policy.ready_grace


def occupancy(task: Task, live: Attempt | None, sent: Command | None, policy: Policy, now: datetime) -> Held:
    """What an active task does with its slot. `sent` is the command of its live turn."""
    since = live.live_at if live is not None and live.live_at is not None else None
    if task.claim is not None:
        return Held(task, Occupancy.FINISHED, task.claim.made_at, counts=False)
    if task.ready_at is not None:
        return Held(task, Occupancy.FINISHED, task.ready_at, counts=True)
    if live is None:
        resting = task.waiting_since if task.attempts else None
        if resting is not None:
            return Held(task, Occupancy.RESTING, resting, counts=True)
        return Held(task, Occupancy.LAUNCHING, task.started_at or task.created_at, counts=True)
    began = since or live.scheduled_at
    if sent is not None and sent.state is CommandState.AMBIGUOUS:
        return Held(task, Occupancy.HUNG, began, counts=True)
    if now - began > policy.turn_limit + policy.interrupt_grace:
        return Held(task, Occupancy.HUNG, began, counts=True)
    if sent is not None and sent.state in (CommandState.ARMED, CommandState.SUBMITTED):
        return Held(task, Occupancy.LAUNCHING, began, counts=True)
    return Held(task, Occupancy.WORKING, began, counts=True)
