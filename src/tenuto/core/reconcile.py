"""Lays the registry and the evidence side by side and says what follows.

Looks only; it authorises nothing. An acknowledgement is made here and nowhere else, and only from evidence that is
later than the arming and bound to the very command. Gone is concluded only from proven absence: a presence that is
unknown keeps a turn alive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import assert_never

from tenuto.core import caps, limits, neighbours, outside, permission, signs, takeover, trust, wake
from tenuto.model.command import Command, CommandKind
from tenuto.model.evidence import (
    AcceptanceFacts,
    Asking,
    CommandFacts,
    How,
    Mark,
    Observation,
    PageFacts,
    Presence,
    Rank,
    WorkspaceFacts,
)
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.reconciliation import (
    Acknowledgement,
    Begun,
    CameTrue,
    CannotComeTrue,
    CheckpointDue,
    CutShort,
    Doubtful,
    Finding,
    Flawed,
    Living,
    Lost,
    MayYetBegin,
    Named,
    Reconciliation,
    Seen,
    TurnEnded,
    Undone,
)
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import ToolFacts
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import Standing, Wait, WaitKind


def reconcile(
    snapshot: Snapshot,
    observations: Iterable[Observation],
    resolved: Mapping[str, bool | None],
    now: datetime,
) -> Reconciliation:
    """The findings and the fence of one look at one task.

    `resolved` says of each open PATH or COMMIT wait (by id) whether what it hangs on has come true.
    """
    workspace: WorkspaceFacts | None = None
    acceptance: AcceptanceFacts | None = None
    tools: list[ToolFacts] = []
    page: PageFacts | None = None
    watched: list[WatchedFacts] = []
    findings: list[Finding] = []
    commands = {command.id: command for command in subjects(snapshot)}
    looked = tuple(observations)
    for observation in looked:
        match observation.facts:
            case CommandFacts() as facts:
                command = commands.get(facts.command_id)
                if command is not None and command.kind is not CommandKind.TAKEOVER:
                    over = snapshot.live is None or snapshot.live.id != command.attempt_id
                    if over and command == snapshot.released and command.state is CommandState.ACKNOWLEDGED:
                        findings.extend(_given_up(command, facts, observation))
                    else:
                        findings.extend(of_command(command, facts, observation, over=over))
                    findings.extend(permission.findings(snapshot, command, facts))
                    findings.extend(_named(snapshot, command, facts))
            case WorkspaceFacts() as facts:
                workspace = facts
            case AcceptanceFacts() as facts:
                acceptance = facts
            case ToolFacts() as facts:
                tools.append(facts)
            case PageFacts() as facts:
                page = facts if facts.shown is not None else None
            case WatchedFacts() as facts:
                watched.append(facts)
            case _ as never:
                assert_never(never)
    findings.extend(of_takeovers(commands, looked, tools))
    if not snapshot.task.terminal:
        findings.extend(came_true(snapshot, resolved, now))
    if not snapshot.task.terminal and wake.checkpoint_due(snapshot, now):
        findings.append(CheckpointDue())
    if (news := neighbours.news(snapshot, now)) is not None:
        findings.append(news)
    flaws = trust.flaws(snapshot, looked, now)
    findings.extend(flaws)
    members = fence_members(snapshot, workspace, tools, page, watched, trust.deciding(flaws))
    kept = tuple(observation for observation in looked if signs.said(observation))
    seen = tuple(tools), kept, page, _cards(snapshot, looked), tuple(watched)
    return Reconciliation(tuple(findings), digest_of(members), members, workspace, acceptance, *seen)


def _cards(snapshot: Snapshot, looked: tuple[Observation, ...]) -> tuple[Asking, ...] | None:
    """What the turn under way waits before in its page; None where that cannot be told."""
    sent = snapshot.live_command
    if not snapshot.task.agent.in_page or sent is None:
        return None
    told = (one.facts for one in looked if isinstance(one.facts, CommandFacts))
    return next((facts.asks for facts in told if facts.command_id == sent.id and facts.mark is Mark.ACCEPTED), None)


def of_takeovers(
    commands: Mapping[CommandId, Command], looked: Iterable[Observation], tools: Iterable[ToolFacts]
) -> tuple[Finding, ...]:
    """What is found of takeovers, once everything was looked at: the sessions themselves are what proves them."""
    found: list[Finding] = []
    for observation in looked:
        facts = observation.facts
        command = commands.get(facts.command_id) if isinstance(facts, CommandFacts) else None
        if not isinstance(facts, CommandFacts) or command is None or command.kind is not CommandKind.TAKEOVER:
            continue
        if observation.rank is not Rank.REPORTED:
            found.extend(takeover.findings(command, facts, observation, tools))
    return tuple(found)


def subjects(snapshot: Snapshot) -> tuple[Command, ...]:
    """The commands that evidence is wanted of: the open ones, the live turn's, and the last one a verdict settled."""
    wanted = {command.id: command for command in snapshot.commands}
    for command in (snapshot.live_command, snapshot.released):
        if command is not None:
            wanted.setdefault(command.id, command)
    return tuple(wanted.values())


def of_command(command: Command, facts: CommandFacts, seen: Observation, *, over: bool = False) -> tuple[Finding, ...]:
    """What one command's journal and processes say of it now; `over`: the turn it belongs to is not live any more.

    A journal entry is written before the step it speaks of, so an entry that says nothing was begun is proof by
    itself; only a process that is seen to carry the command, or an earlier look that saw it begin, contradicts it.
    """
    if seen.rank is Rank.REPORTED:
        return ()  # hearsay settles nothing
    if seen.rank is not Rank.JOURNAL and command.armed_at is not None and seen.seen_at < command.armed_at:
        return ()  # seen before the arming; a journal entry is later by birth, since it bears the command's own name
    if command.kind is CommandKind.STEER:
        return _of_steer(command, facts, seen, over=over)
    if command.kind is CommandKind.ANSWER:
        return _of_answer(command, facts, seen)
    if command.state is CommandState.RELEASED or command.late:
        return _after_verdict(command, facts, seen)
    if command.state is not CommandState.ACKNOWLEDGED and not _bound(command, facts, seen):
        return (Doubtful(command, "its page shows a turn, and not by the marker of this command"),)
    match facts.mark:
        case Mark.NONE:
            if facts.unreachable is not None:
                # The silence of who is away means nothing, whatever was seen of it before.
                return (Living(command, orphaned=False, unsure=True, away=facts.unreachable),)
            if command.submitted_at is not None:
                return _contradicted(command, facts, "its journal is gone although it was seen to begin")
            # Launched by this very executor: its host may be about to claim. By anyone else: nobody may any more.
            return (Living(command, orphaned=False),) if facts.launched_here else (MayYetBegin(command),)
        case Mark.REVOKED:
            if command.submitted_at is not None:
                return _contradicted(command, facts, "its journal says revoked although it was seen to begin")
            return _undone(command, facts, facts.reason or "it was revoked before it began", revoked=True)
        case Mark.FAILED:
            if command.state is CommandState.ACKNOWLEDGED:
                return _contradicted(command, facts, "its journal says failed although it was seen to take effect")
            return _undone(command, facts, facts.reason or "the program could not be started", revoked=False)
        case Mark.CLAIMED:
            return _claimed(command, facts)
        case Mark.BEGUN:
            return _begun(command, facts)
        case Mark.ACCEPTED:
            return (*_took_effect(command, seen), *_running(command, facts))
        case Mark.ENDED:
            return _ended(command, facts, seen)
        case Mark.DAMAGED:
            return _contradicted(command, facts, facts.reason or "its journal cannot be read")
        case _ as never:
            assert_never(never)


def _of_steer(command: Command, facts: CommandFacts, seen: Observation, *, over: bool) -> tuple[Finding, ...]:
    """Words put into a turn under way: they count as taken only where that very turn's acknowledgement was seen.

    What was begun and not acknowledged may have been read, so nothing is concluded from silence, and nothing is told
    twice: only a journal that proves that nothing was begun gives the words back.
    """
    if command.state is CommandState.ACKNOWLEDGED or command.late:
        return ()
    began = command.submitted_at is not None
    match facts.mark:
        case Mark.ACCEPTED | Mark.ENDED:
            if command.target is not None and facts.proof.get("turn") == command.target:
                return (Acknowledgement(command, seen),)
            return _steer_doubted(command, "it was acknowledged, but not for the turn it was meant for")
        case Mark.REVOKED | Mark.FAILED if not began and command.state is not CommandState.RELEASED:
            return (Undone(command, facts.reason or "it was not begun", False, facts.mark is Mark.REVOKED),)
        case Mark.FAILED if command.state is not CommandState.RELEASED:
            return (Undone(command, facts.reason or "it was refused", False, revoked=False),)
        case Mark.NONE if not began and command.state is CommandState.ARMED:
            if facts.launched_here or facts.unreachable is not None:
                return (Living(command, orphaned=False, unsure=True),)
            return (MayYetBegin(command),)
        case Mark.CLAIMED if not began and command.state is CommandState.ARMED:
            if facts.performer is Presence.GONE:
                return (Undone(command, "its executor ended before anything began", False, revoked=True),)
            return (Living(command, orphaned=False, unsure=facts.performer is Presence.UNKNOWN),)
        case Mark.BEGUN if not over and facts.performer is not Presence.GONE:
            started = (Begun(command),) if command.state is CommandState.ARMED else ()
            return (*started, Living(command, orphaned=False))
        case _:
            return _steer_doubted(command, facts.reason or "it was begun, and nobody saw whether the turn took it")


def _of_answer(command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    """What a program asked leave for is being answered: taken, never begun, or gone with the program it was for."""
    if command.state in (CommandState.ACKNOWLEDGED, CommandState.RELEASED) or command.late:
        return ()
    began = command.submitted_at is not None
    match facts.mark:
        case Mark.ACCEPTED | Mark.ENDED:
            return (Acknowledgement(command, seen),)
        case Mark.REVOKED | Mark.FAILED:
            return (Undone(command, facts.reason or "it was not begun", False, facts.mark is Mark.REVOKED),)
        case Mark.NONE if not began and command.state is CommandState.ARMED:
            if facts.launched_here or facts.unreachable is not None:
                return (Living(command, orphaned=False, unsure=True),)
            return (MayYetBegin(command),)
        case Mark.CLAIMED if not began and command.state is CommandState.ARMED:
            if facts.performer is Presence.GONE:
                return (Undone(command, "its executor ended before anything began", False, revoked=True),)
            return (Living(command, orphaned=False, unsure=facts.performer is Presence.UNKNOWN),)
        case Mark.BEGUN if facts.performer is not Presence.GONE:
            started = (Begun(command),) if command.state is CommandState.ARMED else ()
            return (*started, Living(command, orphaned=False))
        case _:
            if command.state is CommandState.AMBIGUOUS:
                return ()
            return (Lost(command, facts.reason or "nobody saw whether its program took the answer"),)


def _steer_doubted(command: Command, why: str) -> tuple[Finding, ...]:
    return (Doubtful(command, why),) if command.state in (CommandState.ARMED, CommandState.SUBMITTED) else ()


def _gone(facts: CommandFacts) -> bool:
    """Whether everything that could carry the command is proven gone."""
    return facts.performer is Presence.GONE and facts.agent is Presence.GONE


def _after_verdict(command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    """A verdict settled it: evidence may still acknowledge it, and what still lives of it must not be joined."""
    took = facts.mark in (Mark.ACCEPTED, Mark.ENDED) and _bound(command, facts, seen)
    late = _acknowledged(command, seen) if took else ()
    if Presence.ALIVE in (facts.performer, facts.agent):
        return (*late, Living(command, orphaned=facts.performer is not Presence.ALIVE))
    return late


def _given_up(command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    """Its turn was seen to begin, and ended by a verdict because nobody could be asked any more."""
    return () if seen.rank is Rank.REPORTED else _after_verdict(command, facts, seen)


def _bound(command: Command, facts: CommandFacts, seen: Observation) -> bool:
    """Whether what is said to have taken effect is this command: a page proves a turn by the command's own marker."""
    took = command.kind is CommandKind.SEND and facts.mark in (Mark.ACCEPTED, Mark.ENDED)
    if seen.rank is Rank.JOURNAL or not took:
        return True
    return facts.proof.get("turn") == command.marker


def _contradicted(command: Command, facts: CommandFacts, why: str) -> tuple[Finding, ...]:
    """The journal tells nothing that can be believed; it stays under way until all that could carry it is gone."""
    if _gone(facts) and not facts.launched_here:
        return (Lost(command, why),)
    return (Doubtful(command, why),)


def _named(snapshot: Snapshot, command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    """What a turn in it has told its conversation to be called outside, where it is called otherwise here."""
    talk, session = snapshot.conversation, facts.proof.get("session")
    if command.kind is not CommandKind.SEND or talk is None or talk.id != command.conversation_id or not session:
        return ()
    if facts.mark not in (Mark.ACCEPTED, Mark.ENDED) or session == talk.identity:
        return ()
    return (Named(command, session),)


def _undone(command: Command, facts: CommandFacts, reason: str, *, revoked: bool) -> tuple[Finding, ...]:
    # An interruption has no program of its own: what runs is what it was to end, and it is tried again.
    if facts.agent is Presence.ALIVE and command.kind is not CommandKind.INTERRUPT:
        return (Doubtful(command, f"something of it runs although its journal says: {reason}"),)
    return (Undone(command, reason, facts.mendable, revoked, facts.proof.get("why")),)


def _claimed(command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    if command.submitted_at is not None:
        return _contradicted(command, facts, "its journal has forgotten that it was seen to begin")
    match facts.performer:
        case Presence.ALIVE:
            return (Living(command, orphaned=False),)
        case Presence.GONE:
            return _undone(command, facts, "its host ended before anything began", revoked=True)
        case Presence.UNKNOWN:
            return (Living(command, orphaned=False, unsure=True),)
        case _ as never:
            assert_never(never)


def _begun(command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    """The host was about to start the program. If it died there, only the processes can tell what became of it."""
    started = (Begun(command),) if command.state is CommandState.ARMED else ()
    if _gone(facts):
        return (*started, Lost(command, "its host died while starting the program, and nothing of it is left"))
    return (*started, _living(command, facts))


def _running(command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    if _gone(facts):
        return (CutShort(command, "its host died and its program is gone"),)
    return (_living(command, facts),)


def _living(command: Command, facts: CommandFacts) -> Living:
    unsure = Presence.ALIVE not in (facts.performer, facts.agent)
    orphaned = facts.performer is not Presence.ALIVE and facts.unreachable is None
    return Living(command, orphaned, unsure, turn=facts.proof.get("turn"), away=facts.unreachable)


def _ended(command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    ending = facts.ending
    if ending is None:
        return (*_took_effect(command, seen), *_contradicted(command, facts, "its journal says ended, but not how"))
    if ending.cut is not None and ending.how is How.EXIT and facts.agent is not Presence.GONE:
        # Cut short, and something of it still lives: the turn is not over until that is gone.
        unsure = facts.agent is Presence.UNKNOWN
        return (*_took_effect(command, seen), Living(command, orphaned=True, unsure=unsure))
    return (*_acknowledged(command, seen), TurnEnded(command, ending))


def _took_effect(command: Command, seen: Observation) -> tuple[Finding, ...]:
    """A turn is delivered once it has begun; a check or an interruption is settled only by its own end."""
    if command.kind is CommandKind.SEND:
        return _acknowledged(command, seen)
    return (Begun(command),) if command.state is CommandState.ARMED else ()


def _acknowledged(command: Command, seen: Observation) -> tuple[Finding, ...]:
    return () if command.state is CommandState.ACKNOWLEDGED else (Acknowledgement(command, seen),)


def outlasted(snapshot: Snapshot, findings: Iterable[Finding], now: datetime) -> bool:
    """Whether the live turn goes on past its time limit and its host, who would have ended it then, is gone."""
    live = snapshot.live
    if live is None or live.live_at is None or now - live.live_at < snapshot.run.policy.turn_limit:
        return False
    alone = (f.command.attempt_id for f in findings if isinstance(f, Living) and f.orphaned)
    return live.id in alone


def came_true(snapshot: Snapshot, resolved: Mapping[str, bool | None], now: datetime) -> tuple[Finding, ...]:
    """The open waits whose reason has gone by itself."""
    found: list[Finding] = []
    for wait in snapshot.waits:
        match wait.kind:
            case WaitKind.TASK:
                found.extend(_of_task(snapshot, wait))
            case WaitKind.PATH | WaitKind.COMMIT:
                if resolved.get(wait.id):
                    found.append(CameTrue(wait, f"{wait.subject} is there"))
            case WaitKind.LIMIT:
                found.extend(limits.of_wait(snapshot, wait, now))
            case WaitKind.TIME:
                if wait.until is not None and wait.until <= now:
                    found.append(CameTrue(wait, "the time has come"))
            case WaitKind.CAP:
                cap = caps.reached(snapshot)
                other = wait.subject is not None and cap is not None and cap.sentence != wait.question
                if cap is None or other:  # raised, and perhaps another one is reached now: that is another wait
                    found.append(CameTrue(wait, "the cap was raised"))
            case WaitKind.CHILDREN:
                found.extend(neighbours.children_ended(snapshot, wait))
            case WaitKind.HUMAN | WaitKind.PERMISSION:
                pass
            case _ as never:
                assert_never(never)
    return tuple(found)


def _of_task(snapshot: Snapshot, wait: Wait) -> tuple[Finding, ...]:
    subject = TaskId(wait.subject or "")
    if subject == snapshot.task.id:
        return (CannotComeTrue(wait, "it waits for itself"),)
    match snapshot.others.get(subject):
        case TaskState.COMPLETED:
            return (CameTrue(wait, "the task it waited for is completed"),)
        case TaskState.FAILED | TaskState.CANCELLED as ended:
            return (CannotComeTrue(wait, f"the task it waits for, {subject}, is {ended}"),)
        case TaskState.PENDING | TaskState.ACTIVE:
            return ()
        case None:
            return (CannotComeTrue(wait, f"there is no task {subject or 'named'} that it could wait for"),)
        case _ as never:
            assert_never(never)


def fence_members(
    snapshot: Snapshot,
    workspace: WorkspaceFacts | None,
    tools: Iterable[ToolFacts] = (),
    page: PageFacts | None = None,
    watched: Iterable[WatchedFacts] = (),
    flaws: Iterable[Flawed] = (),
) -> tuple[str, ...]:
    """What the fence is the digest of: identities and states, never times or counters.

    What could not be believed is among it, so that a look at such evidence agrees with no look at good one.
    """
    task, talk, last = snapshot.task, snapshot.conversation, snapshot.last
    members = [
        f"task {task.id} {task.state} {task.standing}",
        f"conversation {talk.identity} lease {talk.lease_number}" if talk else "conversation none",
        f"last {last.id} {last.outcome}" if last else "last none",
        *(f"open {command.id} {command.state}" for command in snapshot.commands),
        *(f"wait {wait.id}" for wait in snapshot.waits),
    ]
    if task.claim is not None:
        members.append(f"claim {task.claim.evidence}")
    if workspace is not None:
        members.append(f"workspace {workspace.kind} {workspace.branch or '-'} {workspace.cursor}")
    for session in tools:
        members += _tool_members(session)
    if page is not None:
        members.append(f"page {page.state} {page.composer}" if page.shown else "page not shown")
    members += [_watched_member(facts) for facts in watched]
    members += sorted({f"flawed {flaw.subject} {flaw.flaw}" for flaw in flaws})
    return tuple(sorted(members))


def _watched_member(facts: WatchedFacts) -> str:
    told = {None: "not looked at", False: "not shown", True: f"shown in {facts.window or '-'}"}[facts.shown]
    busy = {None: "unknown", False: "still", True: "generating"}[facts.generating]
    return f"watched {facts.subject} {told} {busy} {' '.join(defect.flaw for defect in facts.defects)}".rstrip()


def _tool_members(facts: ToolFacts) -> list[str]:
    about = f"tool {facts.subject}"
    plan = "no plan"
    if facts.plan is not None:
        plan = f"plan {facts.plan.id} {facts.plan.state} {facts.plan.done} of {facts.plan.steps}"
    return [
        f"{about} {facts.state or 'unread'} run {facts.run or '-'} {plan} claim {facts.claim} {facts.claim_id or '-'}",
        *(f"{about} call {call.id} {call.state}" for call in facts.calls),
        *(f"{about} job {job.id} {job.state}" for job in facts.jobs),
        *(f"{about} {defect.flaw}" for defect in facts.defects),
    ]


def still(seen: Seen, looked: Iterable[Observation], now: datetime) -> bool:
    """Whether tool sessions and watched pages, looked at again, still allow what was decided when they were `seen`.

    Whatever flaw they have now they had then, and what was seen then was not seen later. An ordinary turn minds calls
    in flight and pages that generate or move besides; one that needed two looks minds whatever was in their fence.
    """
    again = tuple(looked)
    passed = {(flaw.subject, flaw.flaw) for flaw in trust.deciding(seen.found.findings)}
    flaws = trust.deciding(trust.flaws(seen.snapshot, again, now))
    if any((flaw.subject, flaw.flaw) not in passed for flaw in flaws) or _back(seen, again):
        return False
    tools = [each.facts for each in again if isinstance(each.facts, ToolFacts)]
    pages = [each.facts for each in again if isinstance(each.facts, WatchedFacts)]
    policy = seen.snapshot.run.policy
    if any(facts.generating or outside.unquiet(facts, policy, now) is not None for facts in pages):
        return False
    if any(facts.in_flight for facts in tools):
        return False
    if not cut_short(seen.snapshot):
        return True
    before = {member for facts in seen.found.tools for member in _tool_members(facts)}
    before |= {_watched_member(facts) for facts in seen.found.watched}
    after = {member for facts in tools for member in _tool_members(facts)}
    return before == after | {_watched_member(facts) for facts in pages}


def _back(seen: Seen, looked: Iterable[Observation]) -> bool:
    """Whether any of it was seen before what the decision stands on: the clock went back, or old words came late."""
    then = {(each.source, each.subject): each.seen_at for each in seen.found.observations}
    return any(each.seen_at + signs.SKEW < then.get((each.source, each.subject), each.seen_at) for each in looked)


def digest_of(members: Iterable[str]) -> str:
    """The fence: a sha256 over the members, each on its own line."""
    return hashlib.sha256("\n".join(members).encode()).hexdigest()


def proof_needed(snapshot: Snapshot, *, anyway: bool) -> bool:
    """Whether the next turn needs two reconciliations: after an end that was not seen, for *anyway*, for a dead-man."""
    return anyway or cut_short(snapshot) or any(one.reason == wake.DEAD_MAN for one in snapshot.wakes)


def cut_short(snapshot: Snapshot) -> bool:
    """Whether the last turn that happened has an end nobody saw; a try that was never sent does not change that."""
    return snapshot.task.standing is Standing.CUT_SHORT
