"""Reasons to look at a task, and when.

Wakes are durable and coalesce by kind; whether one leads to a turn is judged when it is due, never when it is made.
Nothing here reads a clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from tenuto.model.ids import TaskId, WakeId
from tenuto.model.message import MessageKind
from tenuto.model.policy import Policy
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import WaitKind, Wake, WakeKind

New = Callable[[str], str]

#: Why a task is looked after that its run's dead-man switch was asked about: its turn wants two looks that agree.
DEAD_MAN = "every chat of its run went silent, and its extension asked"

#: When several wakes are due, the attempt carries the first of these as its reason.
PRECEDENCE = (
    WakeKind.MANUAL,
    WakeKind.RECOVERY,
    WakeKind.MESSAGE,
    WakeKind.EVENT,
    WakeKind.DEPENDENCY,
    WakeKind.LIMIT,
    WakeKind.CHECKPOINT,
    WakeKind.IDLE,
)


def added(
    snapshot: Snapshot,
    kind: WakeKind,
    reason: str,
    not_before: datetime,
    now: datetime,
    new: New,
    *,
    anyway: bool = False,
    asked_by: str | None = None,
) -> Wake:
    """The row that a new wake becomes: a fresh one, or the pending one of its kind moved to the earlier time."""
    for wake in snapshot.wakes:
        if wake.kind is kind:
            return replace(
                wake,
                revision=wake.revision + 1,
                reason=reason,
                not_before=min(wake.not_before, not_before),
                anyway=wake.anyway or anyway,
                asked_by=asked_by or wake.asked_by,
            )
    return Wake(
        id=WakeId(new("wake")),
        revision=1,
        task_id=snapshot.task.id,
        kind=kind,
        reason=reason,
        not_before=not_before,
        created_at=now,
        anyway=anyway,
        asked_by=asked_by,
    )


def due(snapshot: Snapshot, now: datetime) -> tuple[Wake, ...]:
    """The wakes whose time has come, in order of precedence.

    A wake that was made "later than now" was made before the clock went back: it is due rather than lost for an hour.
    """
    ripe = [wake for wake in snapshot.wakes if wake.not_before <= now or wake.created_at > now]
    return tuple(sorted(ripe, key=lambda wake: PRECEDENCE.index(wake.kind)))


def asked(snapshot: Snapshot, now: datetime) -> Wake | None:
    """The operator's request for one attempt, if there is one."""
    return next((wake for wake in due(snapshot, now) if wake.kind is WakeKind.MANUAL), None)


def told(snapshot: Snapshot, now: datetime) -> Wake | None:
    """Words of the operator that are to be delivered; a neighbour's words ask for a turn and pass nothing."""
    words = (wake for wake in due(snapshot, now) if wake.kind is WakeKind.MESSAGE)
    return next((wake for wake in words if wake.asked_by is not None), None)


def earliest(snapshot: Snapshot) -> datetime | None:
    """When the next pending wake is due."""
    return min((wake.not_before for wake in snapshot.wakes), default=None)


def jitter(task: TaskId, sequence: int, width: timedelta) -> timedelta:
    """A spread between nothing and `width`, a pure function of the task and a sequence number."""
    seed = hashlib.sha256(f"{task} {sequence}".encode()).digest()
    return width * (int.from_bytes(seed[:4], "big") / 2**32)


def unsent_delay(task: TaskId, row: int, policy: Policy) -> timedelta:
    """How long to wait after the `row`-th try in a row that did not happen, spread by up to a quarter."""
    step = policy.retry_unsent[min(row, len(policy.retry_unsent)) - 1]
    return step + jitter(task, row, step / 4)


def unsent_for(row: int, policy: Policy) -> timedelta:
    """How long tries have failed by the `row`-th one, told from the waits between them alone."""
    steps = policy.retry_unsent[: row - 1]
    beyond = max(row - 1 - len(policy.retry_unsent), 0)
    return sum(steps, beyond * policy.retry_unsent[-1])


def checkpoint_threshold(task: TaskId, sequence: int, policy: Policy) -> timedelta:
    """How much active work without a structured report makes a checkpoint due."""
    return policy.checkpoint_after + jitter(task, sequence, policy.checkpoint_jitter)


def active_work(snapshot: Snapshot, now: datetime) -> timedelta:
    """Active time since the last structured report, the live turn included."""
    live = snapshot.live
    running = now - live.live_at if live is not None and live.live_at is not None else timedelta(0)
    return max(snapshot.task.active_since_report + max(running, timedelta(0)), timedelta(0))


def active_from_now(snapshot: Snapshot, now: datetime) -> timedelta:
    """What `active_since_report` becomes when a report is given now: the live turn's time so far is counted off."""
    live = snapshot.live
    running = now - live.live_at if live is not None and live.live_at is not None else timedelta(0)
    return -max(running, timedelta(0))


def checkpoint_at(snapshot: Snapshot, now: datetime) -> datetime | None:
    """When a checkpoint of the live turn will be due; None when no turn is live or one is asked for already."""
    if snapshot.live is None or checkpoint_waiting(snapshot):
        return None
    task = snapshot.task
    missing = checkpoint_threshold(task.id, task.checkpoints, snapshot.run.policy) - active_work(snapshot, now)
    return now + max(missing, timedelta(0))


def checkpoint_waiting(snapshot: Snapshot) -> bool:
    """Whether a checkpoint request is stored and not delivered yet."""
    return any(message.kind is MessageKind.CHECKPOINT for message in snapshot.messages)


def checkpoint_due(snapshot: Snapshot, now: datetime) -> bool:
    """Whether a checkpoint request is to be stored now."""
    if checkpoint_waiting(snapshot):
        return False
    task = snapshot.task
    return active_work(snapshot, now) >= checkpoint_threshold(task.id, task.checkpoints, snapshot.run.policy)


def cap_of(snapshot: Snapshot) -> int | None:
    """The number of attempts the task may spend; None for no cap."""
    own = snapshot.task.max_attempts
    return own if own is not None else snapshot.run.policy.max_attempts


def cap_reached(snapshot: Snapshot) -> bool:
    cap = cap_of(snapshot)
    return cap is not None and snapshot.task.attempts >= cap


def cap_wait_open(snapshot: Snapshot) -> bool:
    return any(wait.kind is WaitKind.CAP for wait in snapshot.waits)
