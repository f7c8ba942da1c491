"""The rungs: one question of the operator each, answered with a reason or not at all.

A rung returns a `Because` when it holds and None when it does not. Ladders are made of rungs; deciding takes the
first that holds, explaining takes them all, so the two can never tell different stories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from tenuto.core import caps, limits, pages, reconcile, slots, tenancy, trust, wake
from tenuto.model.command import AttemptOutcome, CommandKind
from tenuto.model.decision import Because, Rung
from tenuto.model.evidence import WorkspaceKind
from tenuto.model.ids import short
from tenuto.model.lifecycle import CommandState, RunState, TaskState
from tenuto.model.reconciliation import Doubtful, Living, Seen
from tenuto.model.tools import CallState, ClaimState
from tenuto.model.work import AutoResume, Standing, Wait, WaitKind, WakeKind

Check = Callable[[Seen, datetime], Because | None]

#: How soon a tool server's records are looked at again while something of them holds a task.
TOOL_LOOK = timedelta(seconds=15)
#: The longest time between two looks at a turn under way, however long it has gone on.
LIVING_LOOK = timedelta(seconds=10)
#: Whoever waits for a slot hears of one that is free; this is how long a ring that was lost is not noticed.
SLOT_LOOK = timedelta(seconds=30)


@dataclass(frozen=True)
class Asked:
    """What the operator has asked for that is due now: one attempt, and whether past blocks.

    `words` of the operator that are to be delivered pass a pause, a stall and a manual policy, and nothing else.
    """

    once: bool
    anyway: bool
    words: bool = False


def asked(seen: Seen, now: datetime) -> Asked:
    request = wake.asked(seen.snapshot, now)
    words = wake.told(seen.snapshot, now) is not None
    return Asked(once=request is not None, anyway=request is not None and request.anyway, words=words)


def terminal(seen: Seen, now: datetime) -> Because | None:
    task = seen.snapshot.task
    if not task.terminal:
        return None
    return Because(Rung.TERMINAL, f"the task is {task.state}", "nothing; start a new task for more work")


def held(seen: Seen, now: datetime) -> Because | None:
    registry = seen.snapshot.registry
    if registry.held_at is None:
        return None
    return Because(Rung.HELD, f"everything is held by {registry.held_by or 'the operator'}", "tenuto unhold")


def run_stopped(seen: Seen, now: datetime) -> Because | None:
    if seen.snapshot.run.state is RunState.OPEN:
        return None
    return Because(Rung.RUN_STOPPED, "its run is stopped", "nothing; a stopped run stays stopped")


def not_leader(seen: Seen, now: datetime) -> Because | None:
    if seen.epoch is not None:
        return None
    return Because(Rung.NOT_LEADER, "no supervisor of this registry is deciding here", "tenuto start")


def unresolved(seen: Seen, now: datetime) -> Because | None:
    """An open command in the task's own scope: what became of it is not known yet."""
    for command in seen.snapshot.commands:
        if command.kind in (CommandKind.INTERRUPT, CommandKind.STEER, CommandKind.ANSWER):
            continue  # none of these takes the task's own scope
        doubt = next((f for f in seen.found.findings if isinstance(f, Doubtful) and f.command.id == command.id), None)
        mend = f"tenuto command reconcile {command.id}"
        if command.state is CommandState.AMBIGUOUS:
            mend = f"look at what it did, then: tenuto command release {command.id} --verdict happened|not-happened"
        detail = doubt.why if doubt else command.detail
        return Because(
            Rung.UNRESOLVED,
            f"an earlier command is unresolved: {command.kind} {short(command.id)} is {command.state}"
            + (f" ({detail})" if detail else "")
            + _apart(seen),
            mend,
        )
    released = seen.snapshot.released
    if released is not None and any(isinstance(f, Living) and f.command.id == released.id for f in seen.found.findings):
        return Because(
            Rung.UNRESOLVED,
            f"something of an earlier turn still runs, although {released.released_by or 'a verdict'} settled it",
            "it ends, or you end it",
        )
    return None


def live(seen: Seen, now: datetime) -> Because | None:
    attempt = seen.snapshot.live
    if attempt is None:
        return None
    sentence = f"turn {attempt.number} is under way" + _apart(seen)
    for finding in seen.found.findings:
        match finding:
            case Living(command, orphaned=True) if command.attempt_id == attempt.id:
                sentence += "; its host is gone and the agent may still be acting"
            case Living(command, away=str(away)) if command.attempt_id == attempt.id:
                sentence += f"; {away}"
            case Doubtful(command, why) if command.attempt_id == attempt.id:
                sentence += f"; it cannot be followed: {why}"
            case _:
                pass
    return Because(Rung.LIVE, sentence, "the end of the turn", next_living_look(seen, now))


def next_living_look(seen: Seen, now: datetime) -> datetime:
    """When a turn under way is looked at again without a ring, or when a checkpoint of it is due.

    A long turn is looked at less often: a ring that was lost may cost as long a share of it as of a short one.
    """
    live = seen.snapshot.live
    age = now - live.live_at if live is not None and live.live_at is not None else timedelta(0)
    soonest = now + max(seen.snapshot.run.policy.look_at_living_turn, min(age / 30, LIVING_LOOK))
    checkpoint = wake.checkpoint_at(seen.snapshot, now)
    return min(soonest, checkpoint) if checkpoint is not None else soonest


def _first(seen: Seen, *kinds: WaitKind) -> Wait | None:
    return next((wait for wait in seen.snapshot.waits if wait.kind in kinds), None)


def human(seen: Seen, now: datetime) -> Because | None:
    return None if asked(seen, now).anyway else person(seen, now)


def person(seen: Seen, now: datetime) -> Because | None:
    """It waits for a person, and no request passes that."""
    wait = _first(seen, WaitKind.HUMAN)
    if wait is None:
        return None
    return Because(
        Rung.HUMAN, f"it waits for a person: {wait.question}", f"tenuto answer {seen.snapshot.task.id} --file ANSWER"
    )


def permission(seen: Seen, now: datetime) -> Because | None:
    wait = _first(seen, WaitKind.PERMISSION)
    if wait is None:
        return None
    until = now + pages.standing_look(wait, now) if (wait.subject or "").startswith(pages.SUBJECT) else None
    return Because(
        Rung.PERMISSION, f"it waits for a permission: {wait.question}", "answer where the agent asked", until
    )


def limit(seen: Seen, now: datetime) -> Because | None:
    """A usage limit of its account, whoever met it; and quiet hours, for a task that a limit has stopped."""
    wait, held = _first(seen, WaitKind.LIMIT), limits.holding(seen.snapshot, seen.account, now)
    if wait is not None:
        return Because(Rung.LIMIT, f"it waits for a limit to reset: {wait.question}", "the reset", wait.until)
    if held is not None and wake.due(seen.snapshot, now):
        moment = limits.own_moment(held, seen.snapshot.task, seen.snapshot.run.policy)
        change = f"the reset, or: tenuto limits lift {held.id}"
        return Because(Rung.LIMIT, f"it waits for a limit to reset: {limits.sentence(held)}", change, moment)
    quiet = limits.quiet_until(seen.snapshot, seen.quiet_until, now)
    if quiet is not None and not asked(seen, now).once:
        change = f"the end of the quiet hours, or: tenuto continue {seen.snapshot.task.id}"
        return Because(Rung.LIMIT, "its limit has reset, and these are quiet hours", change, quiet)
    return None


def dependency(seen: Seen, now: datetime) -> Because | None:
    wait = _first(seen, WaitKind.TASK, WaitKind.CHILDREN, WaitKind.PATH, WaitKind.COMMIT, WaitKind.TIME)
    if wait is None or asked(seen, now).anyway:
        return None
    until = wait.until if wait.until is not None else now + timedelta(seconds=30)
    return Because(
        Rung.DEPENDENCY,
        f"it waits for {wait.kind} {wait.subject or (wait.until.isoformat() if wait.until else '')}: {wait.question}",
        "it ends by itself when that is there",
        until,
    )


def paused(seen: Seen, now: datetime) -> Because | None:
    task = seen.snapshot.task
    request = asked(seen, now)
    if task.paused_at is None or request.once or request.words:
        return None
    until, sentence = _asked_again(seen, now), f"it is paused by {task.paused_by or 'the operator'}"
    return Because(Rung.PAUSED, sentence, f"tenuto resume {task.id}", until)


def stalled(seen: Seen, now: datetime) -> Because | None:
    task = seen.snapshot.task
    request = asked(seen, now)
    if task.stalled_at is None or request.anyway or request.words:
        return None
    return Because(
        Rung.STALLED,
        f"it is paused for no progress: {task.progress.without} turns without a durable change",
        f"tenuto resume --stalled {task.id}, or tenuto continue --anyway {task.id}",
        _asked_again(seen, now),
    )


def auto_resume(seen: Seen) -> AutoResume:
    """The policy in force: the task's own where it has one, else the run's."""
    return seen.snapshot.task.auto_resume or seen.snapshot.run.auto_resume


def manual(seen: Seen, now: datetime) -> Because | None:
    request = asked(seen, now)
    if auto_resume(seen) is AutoResume.ON or request.once or request.words:
        return None
    until = _asked_again(seen, now)
    return Because(
        Rung.MANUAL,
        "its policy is manual and nobody asked" if until is None else "its policy is manual; it is tried again soon",
        f"tenuto continue {seen.snapshot.task.id}, or tenuto policy set {seen.snapshot.task.id} auto-resume=on",
        until,
    )


def _asked_again(seen: Seen, now: datetime) -> datetime | None:
    """When the operator's request, or words, that could not be carried out are due again; None where there are none.

    A neighbour's words pass nothing when they are due, so nothing is tried then.
    """
    passing = (
        one
        for one in seen.snapshot.wakes
        if one.kind is WakeKind.MANUAL or (one.kind is WakeKind.MESSAGE and one.asked_by is not None)
    )
    return min((one.not_before for one in passing if one.not_before > now), default=None)


def claim(seen: Seen, now: datetime) -> Because | None:
    """A claim of completion stands; it is judged by its own ladder before any other turn."""
    standing = seen.snapshot.task.claim
    if standing is None:
        return None
    return Because(
        Rung.CLAIM,
        f"it claims to be complete ({standing.evidence}) and the claim is being judged",
        "the result of the acceptance",
        now + timedelta(seconds=30),
    )


def ready(seen: Seen, now: datetime) -> Because | None:
    """It says that its work can be closed: it is not continued unasked, and closes after a grace or by a person."""
    task = seen.snapshot.task
    if task.ready_at is None or asked(seen, now).once:
        return None
    closes = slots.closes_at(task, seen.snapshot.run.policy)
    return Because(
        Rung.READY,
        f"it says that its work is ready to be closed: {task.ready_note}",
        f"tenuto complete {task.id} --evidence REF, or tenuto continue {task.id}"
        if closes is None
        else "it closes by itself",
        closes,
    )


def nothing_asked(seen: Seen, now: datetime) -> Because | None:
    if wake.due(seen.snapshot, now):
        return None
    earliest = wake.earliest(seen.snapshot)
    if earliest is not None:
        return Because(Rung.SPACING, "its next turn is not due yet", "time", earliest)
    task = seen.snapshot.task
    if task.standing is Standing.SILENT:
        return Because(
            Rung.NOTHING_ASKED,
            f"its last turn ended without a signal block: {task.standing_reason or 'no block'}",
            f"tenuto continue {task.id}",
        )
    return Because(Rung.NOTHING_ASKED, "nothing has asked for another turn", f"tenuto continue {task.id}")


def slot(seen: Seen, now: datetime) -> Because | None:
    snapshot = seen.snapshot
    if snapshot.task.state is not TaskState.PENDING or slots.may_start(snapshot):
        return None
    if giver := slots.giver(snapshot):
        sentence = f"it takes over the slot of {short(giver)}, which still holds it"
    elif slots.full(snapshot):
        sentence = f"no slot is free: {snapshot.slots} tasks are active"
    else:
        sentence = f"every free slot is for one of {slots.ahead(snapshot)} tasks before it in line"
    return Because(Rung.SLOT, sentence, "another task ends or rests", now + SLOT_LOOK)


def needs_conversation(seen: Seen, now: datetime) -> str | None:
    """Why a fresh conversation (or a new claim of the lease) is needed before the next turn; None when it is not."""
    snapshot = seen.snapshot
    talk = snapshot.conversation
    if talk is None:
        return "it has no conversation yet"
    if tenancy.expired(talk, now):
        return "its conversation's lease ran out"
    if tenancy.rolled_back(talk, snapshot.run.policy, now):
        return "the clock stands before its conversation's lease was renewed"
    if (why := pages.lost(seen)) is not None:
        return why
    last, cut = snapshot.last, {AttemptOutcome.INTERRUPTED, AttemptOutcome.LOST, AttemptOutcome.RELEASED}
    if snapshot.task.session_over == talk.id:
        return "nothing more fits into its session, or it is gone"
    if snapshot.task.agent.keeps_session:
        cut = {AttemptOutcome.RELEASED}  # what was cut short is proven gone, and its session remembers how far it came
    if last is not None and last.conversation_id == talk.id and last.outcome in cut:
        return "its last turn there was cut short"
    return None


def lease(seen: Seen, now: datetime) -> Because | None:
    why = needs_conversation(seen, now)
    if why is None:
        return None
    return Because(Rung.LEASE, f"no conversation holds the lease: {why}", "a fresh conversation is opened")


def _apart(seen: Seen) -> str:
    """What is added where nobody can look from here."""
    return f"; it is on {seen.apart}, which cannot be looked at from here" if seen.apart is not None else ""


def executor(seen: Seen, now: datetime) -> Because | None:
    if seen.connected:
        return None
    if seen.apart is not None:
        return Because(
            Rung.EXECUTOR,
            f"its programs run on {seen.apart}, which is not reached from here",
            f"a supervisor leads on {seen.apart}, or the hosts are declared to share their directories",
            now + timedelta(seconds=30),
        )
    return Because(
        Rung.EXECUTOR,
        f"its executor is not connected ({seen.snapshot.task.agent.carrier})",
        "the executor connects",
        now + timedelta(seconds=5),
    )


def checker(seen: Seen, now: datetime) -> Because | None:
    """Whoever runs the acceptance must be there: its executor, or the host where a page carries the turns."""
    if not seen.snapshot.task.agent.in_page:
        return executor(seen, now)
    if seen.unchecked is None:
        return None
    return Because(
        Rung.EXECUTOR,
        f"no program can check its claim now: {seen.unchecked}",
        "the host takes programs again",
        now + timedelta(seconds=5),
    )


def evidence(seen: Seen, now: datetime) -> Because | None:
    """What was looked at beside the conversation must be there, and must be believable.

    A directory that is gone is passed by nothing; what is only doubtful is passed once by *anyway*.
    """
    return _workspace(seen, now) or _believable(seen, now)


def _believable(seen: Seen, now: datetime) -> Because | None:
    flaws = trust.deciding(seen.found.findings)
    if not flaws or asked(seen, now).anyway:
        return None
    first = flaws[0]
    return Because(
        Rung.EVIDENCE,
        f"evidence of it is {first.flaw.replace('_', ' ')}: {first.subject}: {first.why}",
        f"it is looked at again; or tenuto continue --anyway {seen.snapshot.task.id}",
        now + timedelta(seconds=30),
        tuple((str(index), f"{flaw.subject}: {flaw.why}") for index, flaw in enumerate(flaws[:6])),
    )


def tool(seen: Seen, now: datetime) -> Because | None:
    """A tool call in flight holds everything; before a recovery so does a job, and a claim of the server's own."""
    retry = now + TOOL_LOOK
    for session in seen.found.tools:
        if session.in_flight:
            call = session.in_flight[0]
            orphan = call.state is CallState.ORPHANED
            told = "may have outlived the server that made it" if orphan else "is in flight"
            for_ = now - call.started_at
            return Because(
                Rung.TOOL,
                f"a tool call {told}: {session.subject}, for {max(int(for_.total_seconds()), 0)} s",
                f"look at what it did, then: tenuto tool unbind {seen.snapshot.task.id}" if orphan else "it ends",
                retry,
            )
    return busy(seen, now) if reconcile.proof_needed(seen.snapshot, anyway=asked(seen, now).anyway) else None


def busy(seen: Seen, now: datetime) -> Because | None:
    """What is at work in the task's tool sessions beside its turn: calls, jobs that end, a claim of the server."""
    retry = now + TOOL_LOOK
    for session in seen.found.tools:
        if session.in_flight:
            return Because(Rung.TOOL, f"a tool call is in flight: {session.subject}", "it ends", retry)
        if session.running:
            job = session.running[0]
            return Because(
                Rung.TOOL,
                f"a job of it runs: {job.id} at {session.subject}",
                f"it ends, or: tenuto job mark-service {seen.snapshot.task.id} {job.id}",
                retry,
            )
        if session.claim is ClaimState.PENDING:
            return Because(
                Rung.TOOL, f"{session.subject} is about to be continued by its own server", "it is, or is not", retry
            )
    return None


def _workspace(seen: Seen, now: datetime) -> Because | None:
    facts = seen.found.workspace
    if facts is None:
        return None
    retry = now + timedelta(seconds=30)
    cwd = seen.snapshot.task.cwd
    match facts.kind:
        case WorkspaceKind.MISSING:
            return Because(Rung.EVIDENCE, f"its working directory is gone: {cwd}", "bring the directory back", retry)
        case WorkspaceKind.UNREADABLE:
            return Because(
                Rung.EVIDENCE, f"its working directory cannot be read: {facts.reason or cwd}", "mend that", retry
            )
        case WorkspaceKind.UNKNOWN if not asked(seen, now).anyway:
            return Because(
                Rung.EVIDENCE,
                f"the state of its working directory is unknown: {facts.reason or cwd}",
                f"it is looked at again; or tenuto continue --anyway {seen.snapshot.task.id}",
                retry,
            )
        case _:
            return None


def fence(seen: Seen, now: datetime) -> Because | None:
    """After an end that was not seen, and for *anyway*: two reconciliations with one fence, apart in time and fresh."""
    return twice(seen, now) if reconcile.proof_needed(seen.snapshot, anyway=asked(seen, now).anyway) else None


def twice(seen: Seen, now: datetime) -> Because | None:
    """Two recorded looks with one fence, apart in time and fresh, of which this look is the third."""
    snapshot = seen.snapshot
    policy = snapshot.run.policy
    # Looks from before the last end are told by what they saw, not by the time: they say nothing about this one, and
    # the looks of quick, healthy turns before it are no sign that the workspace keeps changing.
    end = [member for member in seen.found.members if member.startswith("last ")]
    fresh = sorted(
        (
            sample
            for sample in snapshot.samples
            if timedelta(0) <= now - sample.made_at <= policy.reconcile_age and set(end) <= set(sample.members)
        ),
        key=lambda sample: sample.made_at,
        reverse=True,
    )
    if not fresh:
        return Because(Rung.FENCE, "it must be looked at twice before it is continued", "a first look", now)
    newest = fresh[0]
    if newest.fence != seen.found.fence:
        changed = sorted(set(seen.found.members) ^ set(newest.members))
        return Because(
            Rung.FENCE,
            "what was seen has changed since the last look"
            if len(fresh) < policy.reconcile_tries
            else "the workspace keeps changing",
            "two looks that agree",
            now if len(fresh) < policy.reconcile_tries else now + policy.reconcile_age / 4,
            tuple((str(index), member) for index, member in enumerate(changed[:6])),
        )
    first = list(takewhile(lambda sample: sample.fence == newest.fence, fresh))[-1]
    ready = first.made_at + policy.reconcile_separation
    if now < ready:
        return Because(Rung.FENCE, "the second look must be apart in time from the first", "time", ready)
    return None


def cap(seen: Seen, now: datetime) -> Because | None:
    """A cap is reached, or its wait is open still; raising the cap ends both."""
    reached, waiting = caps.reached(seen.snapshot), _first(seen, WaitKind.CAP)
    if asked(seen, now).anyway:
        return None
    task = seen.snapshot.task
    if reached is not None:
        return Because(Rung.CAP, reached.sentence, f"{reached.change}, or tenuto continue --anyway {task.id}")
    return Because(Rung.CAP, waiting.question, f"tenuto continue --anyway {task.id}") if waiting is not None else None


#: The ladder of *continue*, in the order an operator would ask.
CONTINUE: tuple[Check, ...] = (
    terminal,
    held,
    run_stopped,
    not_leader,
    unresolved,
    live,
    human,
    permission,
    limit,
    dependency,
    paused,
    stalled,
    claim,
    ready,
    manual,
    nothing_asked,
    slot,
    lease,
    executor,
    evidence,
    tool,
    pages.page,
    fence,
    cap,
)

#: The ladder of *check*: judging a claim of completion.
JUDGE: tuple[Check, ...] = (terminal, held, run_stopped, not_leader, unresolved, live, checker)
