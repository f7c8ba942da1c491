"""What to do next about one task, or why nothing.

Walks a ladder and takes the first rung that holds; where something can be done about that rung, the decision carries
a preparatory intent instead. Deciding has done nothing: what is intended exists only when the ledger has committed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from tenuto.core import caps, delivery, limits, neighbours, permission, reconcile, rungs, slots, wake
from tenuto.model.command import Command, CommandKind
from tenuto.model.decision import (
    Because,
    CloseReady,
    Continue,
    Decision,
    GiveSlotBack,
    Intent,
    Interrupt,
    OpenCapWait,
    OpenConversation,
    OpenLimitWait,
    OpenPersonWait,
    ParkAsks,
    Revoke,
    RunCheck,
    Rung,
    Sampled,
    StartTask,
)
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.reconciliation import MayYetBegin, Seen
from tenuto.model.tools import PlanState
from tenuto.model.work import AcceptanceKind, WaitKind

#: How soon an ambiguous command is looked at again when nothing rings before, and how late at most: one that stands for
#: days is looked at less and less often, so that a ring that was lost costs a small share of how long it stood.
LOOK_AT_DOUBT = timedelta(seconds=30)
OLD_DOUBT = timedelta(minutes=30)

#: How soon the sessions of tool servers are looked at again while something of them moves.
LOOK_AT_TOOLS = timedelta(seconds=60)


def decide(seen: Seen, now: datetime) -> Decision:
    """The next act for one task: revoke, interrupt, judge a claim, continue, give the slot back; or a because.

    Whatever rung holds, what is under way outside is looked at again: no rung may hide the end of a turn.
    """
    decision = _decide(seen, now)
    moments = [moment for moment in (_watched(seen, now), neighbours.next_news(seen.snapshot, now)) if moment]
    if decision.intent is not None or not moments:
        return decision
    moment = min(moments)
    return replace(decision, look_again_at=min(moment, decision.look_again_at or moment))


def under_way(seen: Seen) -> bool:
    """Whether something of this task is under way outside, or may be."""
    return seen.snapshot.live is not None or bool(seen.snapshot.commands)


def _watched(seen: Seen, now: datetime) -> datetime | None:
    """When what is under way is looked at again without a ring; None when nothing is."""
    snapshot = seen.snapshot
    if not under_way(seen):
        return now + LOOK_AT_TOOLS if _tools_move(seen) else None
    if snapshot.live is None and all(command.state is CommandState.AMBIGUOUS for command in snapshot.commands):
        return now + doubted(snapshot.commands, now)
    parking = permission.next_parking(seen)
    look = rungs.next_living_look(seen, now)
    return min(look, max(parking, now)) if parking is not None else look


def doubted(commands: Iterable[Command], now: datetime) -> timedelta:
    """After how long commands that nobody can tell about are looked at again: a share of the youngest one's age.

    What became of a takeover is told by the tool server's own log alone, and nobody rings for it.
    """
    commands = tuple(commands)
    longest = LOOK_AT_DOUBT if any(one.kind is CommandKind.TAKEOVER for one in commands) else OLD_DOUBT
    ages = [now - (command.submitted_at or command.armed_at or command.created_at) for command in commands]
    return max(LOOK_AT_DOUBT, min(min(ages) / 30, longest))


def _tools_move(seen: Seen) -> bool:
    """Whether a tool server's records may change by themselves, or cannot be read now."""
    if seen.snapshot.task.terminal:
        return False
    return any(
        session.in_flight
        or session.running
        or session.defects
        or (session.plan is not None and session.plan.state is PlanState.ACTIVE)
        for session in seen.found.tools
    ) or any(page.generating or page.defects for page in seen.found.watched)


def _decide(seen: Seen, now: datetime) -> Decision:
    task = seen.snapshot.task
    if seen.epoch is not None:
        for finding in seen.found.findings:
            if isinstance(finding, MayYetBegin):
                return Decision(intent=Revoke(finding.command.id))
        if halt := _halt(seen, now):
            return Decision(intent=halt)
        if told := permission.deliverable(seen):
            return Decision(intent=told)
        if permission.overdue(seen, now):
            return Decision(intent=ParkAsks())
        if words := delivery.steer(seen, now):
            return Decision(intent=words)
        closes = slots.closes_at(task, seen.snapshot.run.policy)
        if closes is not None and closes <= now:
            return Decision(intent=CloseReady())
    if task.claim is not None and not task.terminal:
        return _judge(seen, now)
    return _continue(seen, now)


def explain(seen: Seen, now: datetime) -> tuple[Because, ...]:
    """Every rung that holds now, in order: the same ladder the decision walks, all of it."""
    return tuple(because for rung in rungs.CONTINUE if (because := rung(seen, now)))


def whole(seen: Seen, now: datetime) -> tuple[tuple[str, Because | None], ...]:
    """Every rung of the ladder by its name, with what it answers now; None for one that does not hold."""
    return tuple((rung.__name__, rung(seen, now)) for rung in rungs.CONTINUE)


#: Rungs at which something is done by itself: a conversation is opened, a look is recorded.
BY_ITSELF = frozenset({Rung.LEASE, Rung.FENCE})


def beyond(seen: Seen, now: datetime) -> Because | None:
    """What would still hold the task once everything is done that is done by itself."""
    return next((because for because in explain(seen, now) if because.rung not in BY_ITSELF), None)


def first(ladder: Iterable[rungs.Check], seen: Seen, now: datetime) -> Because | None:
    """The first rung that holds."""
    return next((because for rung in ladder if (because := rung(seen, now))), None)


def _halt(seen: Seen, now: datetime) -> Interrupt | None:
    """A stop always ends what is running, and a time limit holds without a host: with longer and longer pauses.

    What goes on long after its work was said to be done is ours to end, too. What a chat writes is ended only where its
    task was stopped by somebody: nothing of it runs here, and its Stop is pressed for nobody else.
    """
    snapshot = seen.snapshot
    live = snapshot.live
    if live is None or not seen.connected:
        return None
    stopped = snapshot.task.state is TaskState.CANCELLED
    if not stopped and snapshot.task.agent.in_page:
        return None
    if not stopped and not (
        slots.lingers(snapshot.task, snapshot.run.policy, now)
        or reconcile.outlasted(snapshot, seen.found.findings, now)
    ):
        return None
    if any(command.kind is CommandKind.INTERRUPT for command in snapshot.commands):
        return None
    tries = [
        command.settled_at
        for command in snapshot.checks
        if command.kind is CommandKind.INTERRUPT and command.attempt_id == live.id and command.settled_at is not None
    ]
    newest = max((when for when in tries if when <= now), default=None)
    if newest is not None and now < newest + wake.unsent_delay(snapshot.task.id, len(tries), snapshot.run.policy):
        return None
    return Interrupt(live.id)


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
    rest_ends = _rest_ends(seen, now) if because.rung in RESTING else None
    moments = [moment for moment in (because.until, rest_ends) if moment is not None]
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
        case Rung.LIMIT if (held := limits.holding(snapshot, seen.account, now)) and not _waits_for_limit(seen):
            moment = limits.own_moment(held, snapshot.task, snapshot.run.policy)
            return OpenLimitWait(held.id, limits.sentence(held), moment)
        case Rung.CAP if not caps.waited_for(snapshot):
            reached = caps.reached(snapshot)
            return OpenCapWait(because.sentence, reached.named if reached is not None else because.sentence)
        case Rung.SLOT if slots.expired(snapshot.task, snapshot.run.policy, now):
            return OpenPersonWait(
                "it stood in line for a slot too long and was never started. Answer to let it stand in line again, "
                "or cancel it"
            )
        case _:
            return GiveSlotBack() if _rested(because, seen, now) else None


def _waits_for_limit(seen: Seen) -> bool:
    """Whether the limit is a wait of this task already."""
    return any(wait.kind is WaitKind.LIMIT for wait in seen.snapshot.waits)


#: Rungs at which a task rests: it may wait long, and holds a slot for nothing.
RESTING = frozenset(
    {
        Rung.HELD,
        Rung.UNRESOLVED,
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
        Rung.READY,
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
    return reconcile.cut_short(seen.snapshot)
