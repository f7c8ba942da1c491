"""What to do next about one task, or why nothing.

Walks a ladder and takes the first rung that holds; where something can be done about that rung, the decision carries
a preparatory intent instead. Deciding has done nothing: what is intended exists only when the ledger has committed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from tenuto.core import reconcile, rungs, wake
from tenuto.model.command import AttemptOutcome, CommandKind
from tenuto.model.decision import (
    Because,
    Continue,
    Decision,
    GiveSlotBack,
    Intent,
    Interrupt,
    OpenCapWait,
    OpenConversation,
    Revoke,
    RunCheck,
    Rung,
    Sampled,
    StartTask,
)
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.reconciliation import MayYetBegin, Seen
from tenuto.model.work import AcceptanceKind


def decide(seen: Seen, now: datetime) -> Decision:
    """The next act for one task: revoke, interrupt, judge a claim, continue, give the slot back; or a because."""
    task = seen.snapshot.task
    if seen.epoch is not None:
        for finding in seen.found.findings:
            if isinstance(finding, MayYetBegin):
                return Decision(intent=Revoke(finding.command.id))
        if halt := _halt(seen):
            return Decision(intent=halt)
    if task.claim is not None and not task.terminal:
        return _judge(seen, now)
    return _continue(seen, now)


def explain(seen: Seen, now: datetime) -> tuple[Because, ...]:
    """Every rung that holds now, in order: the same ladder the decision walks, all of it."""
    return tuple(because for rung in rungs.CONTINUE if (because := rung(seen, now)))


def first(ladder: Iterable[rungs.Check], seen: Seen, now: datetime) -> Because | None:
    """The first rung that holds."""
    return next((because for rung in ladder if (because := rung(seen, now))), None)


def _halt(seen: Seen) -> Interrupt | None:
    """A stop always ends what is running: a cancelled task's live turn is interrupted, once."""
    snapshot = seen.snapshot
    live = snapshot.live
    if snapshot.task.state is not TaskState.CANCELLED or live is None:
        return None
    if any(command.kind is CommandKind.INTERRUPT for command in snapshot.commands):
        return None
    tried = any(
        command.kind is CommandKind.INTERRUPT and command.state is not CommandState.FAILED
        for command in snapshot.checks
    )
    return None if tried else Interrupt(live.id)


def _judge(seen: Seen, now: datetime) -> Decision:
    because = first(rungs.JUDGE, seen, now)
    if because is not None:
        return Decision(because=because, look_again_at=because.until)
    if seen.snapshot.task.acceptance.kind is AcceptanceKind.CHECK:
        return Decision(intent=RunCheck())
    # A file or a commit is looked at, not run; what was seen settles the claim before it comes here.
    pending = rungs.claim(seen, now)
    return Decision(because=pending, look_again_at=now + timedelta(seconds=5))


def _continue(seen: Seen, now: datetime) -> Decision:
    because = first(rungs.CONTINUE, seen, now)
    snapshot = seen.snapshot
    if because is None:
        if snapshot.task.state is TaskState.PENDING:
            return Decision(intent=StartTask())
        request = rungs.asked(seen, now)
        due = wake.due(snapshot, now)
        return Decision(intent=Continue(due[0].kind, anyway=request.anyway))
    intent = _preparation(because, seen, now)
    if intent is not None:
        return Decision(intent=intent)
    moments = [moment for moment in (because.until, _rest_ends(seen, now)) if moment is not None]
    return Decision(because=because, look_again_at=min(moments, default=None))


def _preparation(because: Because, seen: Seen, now: datetime) -> Intent | None:
    """What can be done about the rung that holds, before the turn itself."""
    snapshot = seen.snapshot
    match because.rung:
        case Rung.LEASE:
            why = rungs.needs_conversation(seen, now)
            if snapshot.task.state is TaskState.PENDING:
                return StartTask()
            return OpenConversation(why or "it has no conversation yet")
        case Rung.FENCE if because.until is not None and because.until <= now:
            return Sampled()
        case Rung.CAP if not wake.cap_wait_open(snapshot):
            return OpenCapWait(because.sentence)
        case _:
            return GiveSlotBack() if _rested(because, seen, now) else None


#: Rungs at which a task rests: it may wait long, and holds a slot for nothing.
RESTING = frozenset(
    {
        Rung.HELD,
        Rung.HUMAN,
        Rung.PERMISSION,
        Rung.LIMIT,
        Rung.DEPENDENCY,
        Rung.PAUSED,
        Rung.STALLED,
        Rung.MANUAL,
        Rung.NOTHING_ASKED,
        Rung.SPACING,
        Rung.CAP,
    }
)


def _rested(because: Because, seen: Seen, now: datetime) -> bool:
    ends = _rest_ends(seen, now)
    return because.rung in RESTING and ends is not None and ends <= now


def _rest_ends(seen: Seen, now: datetime) -> datetime | None:
    """When a resting, active task gives its slot back; None for a task that has none to give."""
    task = seen.snapshot.task
    if task.state is not TaskState.ACTIVE or seen.snapshot.live is not None:
        return None
    since = task.waiting_since
    return since + seen.snapshot.run.policy.slot_rest if since is not None else None


def needs_workspace(snapshot_seen: Seen, now: datetime) -> bool:
    """Two-sample acts compare the workspace; ordinary continuation has no workspace in its fence."""
    return reconcile.proof_needed(snapshot_seen.snapshot, anyway=rungs.asked(snapshot_seen, now).anyway)


def cut_short(seen: Seen) -> bool:
    """Whether the next prompt is a recovery: the last turn's end was not seen."""
    last = seen.snapshot.last
    return last is not None and last.outcome in (
        AttemptOutcome.INTERRUPTED,
        AttemptOutcome.LOST,
        AttemptOutcome.RELEASED,
    )
