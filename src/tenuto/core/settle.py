"""Turns what was found into what the rows become.

A finding about a command settles that command, the turn it carried, the messages that rode in it and the clock of
progress, in one commit. Nothing here acts: a turn whose end was not seen leads to a wake for recovery or to a
question, never to the same turn again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from tenuto.core import (
    hindered,
    neighbours,
    pages,
    permission,
    progress,
    reconcile,
    signal,
    signs,
    slots,
    takeover,
    tenancy,
    trust,
    wake,
)
from tenuto.core.draft import Draft, New
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.evidence import CommandFacts, Cut, Ending, Observation, WorkspaceFacts
from tenuto.model.fact import FactKind
from tenuto.model.ids import ObservationId, ReportId
from tenuto.model.lifecycle import CommandEvent, CommandState, DeliveryEvent, TaskEvent, TaskState
from tenuto.model.message import Message, MessageKind, MessagePolicy, Party
from tenuto.model.reconciliation import (
    Acknowledgement,
    Asked,
    Begun,
    CameTrue,
    CannotComeTrue,
    CheckpointDue,
    ChildrenEnded,
    CutShort,
    Doubtful,
    Finding,
    Flawed,
    LimitMoved,
    Living,
    Lost,
    MayYetBegin,
    Named,
    News,
    Seen,
    TurnEnded,
    Unasked,
    Undone,
)
from tenuto.model.work import (
    AcceptanceKind,
    Claim,
    DispositionSource,
    Report,
    ReportKind,
    Standing,
    Task,
    Wait,
    WaitKind,
    WakeKind,
)

#: A stopped task's turn that is not over this many graces after the stop stands in attention.
PATIENCE = 6


def settle(seen: Seen, now: datetime, new: New, prompt: str = "") -> Commit | None:
    """The commit that follows from a reconciliation; None when everything stands as it is written.

    `prompt` is what the live turn was sent, so that an echo of it is not taken for an answer.
    """
    draft = Draft(seen.snapshot, now, new)
    for finding in seen.found.findings:
        _apply(draft, finding, seen, prompt)
    if seen.found.acceptance is not None:
        _judged(draft, seen)
    _not_to_be_ended(draft, seen)
    if draft.task.terminal and draft.snapshot.live is None and draft.snapshot.permissions:
        permission.task_over(draft)
    pages.settle(draft, seen)
    _record(draft, seen)
    return draft.commit()


def _record(draft: Draft, seen: Seen) -> None:
    """Keep what is seen otherwise than before, and note what of it cannot be believed."""
    for observation in signs.news(seen.snapshot.sightings, seen.found.observations):
        identifier = ObservationId(draft.new("observation"))
        draft.puts.append(signs.sighting(draft.task.id, observation, identifier, draft.now))
        for flaw in trust.deciding(seen.found.findings):
            if flaw.subject == observation.subject:
                draft.note(FactKind.FINDING, what=f"{flaw.subject}: {flaw.why}"[:500])


def _apply(draft: Draft, finding: Finding, seen: Seen, prompt: str) -> None:
    match finding:
        case Begun(command):
            draft.command(_now(draft, command), CommandEvent.BEGUN)
        case Acknowledgement(command, evidence):
            _acknowledge(draft, _now(draft, command), f"{evidence.source} rank {int(evidence.rank)}")
            if command.kind is CommandKind.ANSWER:
                permission.told(draft, command)
            if command.kind is CommandKind.SEND:
                _accounted(draft, seen, evidence)
            if command.kind is CommandKind.TAKEOVER and isinstance(evidence.facts, CommandFacts):
                takeover.take_effect(draft, command, seen, evidence.facts.proof.get("run"))
        case Undone():
            _undone(draft, finding)
        case Named():
            pages.named(draft, finding)
        case TurnEnded(command, ending):
            _ended(draft, _now(draft, command), ending, seen, prompt)
        case CutShort(command, why):
            _cut_short(draft, _now(draft, command), seen, why)
        case Lost(command, why):
            _lost(draft, _now(draft, command), seen, why)
        case Doubtful(command, why):
            _doubt(draft, _now(draft, command), why)
        case CameTrue(wait, how):
            if _open(draft, wait):
                draft.close_wait(wait, how)
                if wait.kind is not WaitKind.LIMIT:
                    draft.wake(WakeKind.DEPENDENCY, how, draft.now)
                elif draft.task.standing is Standing.HINDERED:
                    draft.wake(WakeKind.LIMIT, how, draft.now)
        case LimitMoved(wait, until, question):
            if _open(draft, wait):
                draft.rewait(wait, until, question[:2000])
        case Asked(command, ask):
            permission.asked(draft, _now(draft, command), ask)
        case Unasked(row):
            permission.unasked(draft, row)
        case CannotComeTrue(wait, why):
            if _open(draft, wait):
                draft.close_wait(wait, why)
                draft.wait(WaitKind.HUMAN, f"{why}. What now? ({wait.question})"[:2000], attempt=wait.attempt_id)
        case ChildrenEnded(wait, children):
            if _open(draft, wait):
                _children_ended(draft, wait, children)
        case News(lines, upto):
            if not draft.task.terminal:
                _informed(draft, lines, upto)
        case CheckpointDue():
            if not draft.task.terminal and wake.checkpoint_due(draft.snapshot, draft.now):
                draft.message("tenuto", MessageKind.CHECKPOINT, None)
                draft.change(checkpoints=draft.task.checkpoints + 1)
        case MayYetBegin() | Living() | Flawed():
            pass
        case _ as never:
            assert_never(never)


def _children_ended(draft: Draft, wait: Wait, children: tuple[Task, ...]) -> None:
    """The parent is told how its children ended, each once, and goes on."""
    draft.close_wait(wait, f"{len(children)} of its children ended")
    draft.message("tenuto", MessageKind.NEWS, neighbours.ends(children))
    written = {row.id for row in draft.puts if isinstance(row, Task)}
    for child in children:
        if child.told_at is None and child.id not in written:
            draft.puts.append(replace(child, revision=child.revision + 1, told_at=draft.now))
    draft.wake(WakeKind.DEPENDENCY, "children that it waited for ended", draft.now)


def _informed(draft: Draft, lines: tuple[str, ...], upto: int) -> None:
    """The coordinator is told what its run came to; it is woken as a neighbour's words wake a task."""
    draft.change(informed=upto)
    if lines:
        draft.change(informed_at=draft.now)
        draft.message("tenuto", MessageKind.NEWS, neighbours.body(lines))
        draft.wake(WakeKind.MESSAGE, "its run has news", draft.now)


def _open(draft: Draft, wait: Wait) -> bool:
    return any(other.id == wait.id for other in draft.snapshot.waits)


def _now(draft: Draft, command: Command) -> Command:
    """The command as this draft has it by now."""
    return draft.commands.get(command.id, command)


def _acknowledge(draft: Draft, command: Command, evidence: str) -> None:
    events = [CommandEvent.ACKNOWLEDGED]
    if command.state is CommandState.ARMED:
        events.insert(0, CommandEvent.BEGUN)
    late = command.state is CommandState.RELEASED
    draft.command(command, *events, evidence=evidence, late=late)
    if command.kind in (CommandKind.SEND, CommandKind.STEER):
        draft.carried_on(command, DeliveryEvent.DELIVERED)
        if not late and command.kind is CommandKind.SEND:
            draft.change(unsent_in_row=0)


def _accounted(draft: Draft, seen: Seen, evidence: Observation) -> None:
    """Whose usage the turn takes and what model it is, as far as that is told: limits are the account's."""
    told = evidence.facts.proof.get("model") if isinstance(evidence.facts, CommandFacts) else None
    agent = draft.task.agent
    apart = f"{agent.adapter}@{agent.carrier}" if agent.keeps_session else None  # nobody here can tell whose it is
    account, model = seen.account or draft.task.account or apart, told or draft.task.model
    if (account, model) != (draft.task.account, draft.task.model):
        draft.change(account=account, model=model)


def _undone(draft: Draft, finding: Undone) -> None:
    """Nothing happened: the turn costs nothing, what rode in it waits again, and the reason to continue stands."""
    command = _now(draft, finding.command)
    draft.command(command, CommandEvent.PROVEN_UNDONE, detail=finding.reason)
    if command.kind is CommandKind.STEER:
        untaken(draft, command)
        return
    if command.kind is CommandKind.ANSWER:
        permission.not_told(draft, command, finding.reason, revoked=finding.revoked)
        return
    if command.kind is not CommandKind.SEND:
        if finding.mendable and command.kind is CommandKind.CHECK:
            _unclaimed(draft)
            _ask(draft, f"the acceptance check could not be started: {finding.reason}", None)
        elif command.kind is CommandKind.CHECK:
            _tried(draft, finding.reason)
        return
    live = draft.snapshot.live
    if live is None or command.attempt_id != live.id:
        draft.carried_on(command, DeliveryEvent.UNSENT)
        return
    ended = draft.end_attempt(AttemptOutcome.UNSENT, detail=finding.reason)
    row = draft.task.unsent_in_row + 1
    draft.change(attempts=max(draft.task.attempts - 1, 0), unsent_in_row=row)
    policy = draft.before.run.policy
    delay = timedelta(0) if finding.revoked and row == 1 else wake.unsent_delay(draft.task.id, row, policy)
    riders = draft.carried_on(command, DeliveryEvent.UNSENT, not_before=draft.now + delay)
    if draft.task.terminal or ended is None:
        return
    again = pages.refused(draft, finding)
    if hindered.session_gone(finding):
        hindered.fresh(draft, finding.reason, ended)
    elif finding.mendable and not again:
        _ask(draft, f"the turn could not be started: {finding.reason}", ended)
    elif wake.unsent_for(row, policy) >= policy.delivery_end:
        _ask(draft, f"no turn could be started for {policy.delivery_end}: {finding.reason}. Shall it be tried?", ended)
    else:
        why = f"the last try did not happen: {finding.reason}"
        asked_by = _asked_by(riders) if ended.reason is WakeKind.MESSAGE else None
        draft.wake(ended.reason, why, draft.now + delay, anyway=ended.anyway, asked_by=asked_by)
        if urgent := tuple(message for message in riders if message.policy is MessagePolicy.STEER_NOW):
            draft.wake(WakeKind.MESSAGE, why, draft.now + delay, asked_by=_asked_by(urgent))


def untaken(draft: Draft, command: Command) -> None:
    """Words that a turn provably did not take wait for the next one, as the same message, and ask for it."""
    back = draft.carried_on(command, DeliveryEvent.TURNED_AWAY, policy=MessagePolicy.NEXT_TURN)
    if back and not draft.task.terminal:
        draft.wake(WakeKind.MESSAGE, "the turn did not take the words", draft.now, asked_by=_asked_by(back))


def _asked_by(messages: tuple[Message, ...]) -> str | None:
    """The operator, where words of the operator are among them."""
    return next((m.sender for m in messages if m.party is Party.OPERATOR and m.kind is MessageKind.WORDS), None)


def _lost(draft: Draft, command: Command, seen: Seen, why: str) -> None:
    """Whether it ran cannot be told. A resumable agent is sent to look; otherwise a person is."""
    if command.kind is not CommandKind.SEND:
        _side_lost(draft, command, why)
        return
    doubted = _doubted(draft, command, why)
    if doubted.state is CommandState.AMBIGUOUS and (draft.task.agent.resumable or draft.task.terminal):
        draft.command(
            doubted,
            CommandEvent.RELEASED,
            released_by="policy",
            verdict="everything that could carry it is gone; the next turn, if there is one, verifies first",
        )
        # Words that are told twice do no harm; an answer that was never told leaves the agent to guess.
        draft.carried_on(command, DeliveryEvent.TURNED_AWAY)
    _cut(draft, command, AttemptOutcome.LOST, seen, why)


def _doubted(draft: Draft, command: Command, why: str) -> Command:
    """The command as ambiguous, where it is open; what rides in it stays with it until somebody knows."""
    if command.state in (CommandState.ARMED, CommandState.SUBMITTED):
        return draft.command(command, CommandEvent.DOUBTED, detail=why)
    return command


def _cut_short(draft: Draft, command: Command, seen: Seen, why: str) -> None:
    if command.kind is not CommandKind.SEND:
        _side_lost(draft, command, why)
        return
    _cut(draft, command, AttemptOutcome.INTERRUPTED, seen, why)


def _cut(
    draft: Draft,
    command: Command,
    outcome: AttemptOutcome,
    seen: Seen,
    why: str,
    **fields: object,
) -> None:
    """The turn that this command carries is over without an end of its own; what it moved is counted all the same."""
    if draft.snapshot.live is None or command.attempt_id != draft.snapshot.live.id:
        return
    _measure(draft, seen.found.workspace, None, count=False, jobs=_jobs(draft, seen))
    ended = draft.end_attempt(outcome, detail=why, **fields)
    if ended is None:
        return
    permission.turn_over(draft, ended, by_itself=False)
    _spend_time(draft, ended)
    draft.look_now()
    if draft.task.terminal:
        return
    draft.change(standing=Standing.CUT_SHORT, standing_reason=why, faults=draft.task.faults + 1)
    if not draft.task.agent.resumable:
        _ask(draft, f"turn {ended.number} was cut short ({why}). What did it do, and shall the agent go on?", ended)
    elif draft.task.faults > draft.before.run.policy.fault_recoveries:
        _ask(draft, f"its turns keep being cut short ({draft.task.faults} times; last: {why}). Shall it go on?", ended)
    else:
        draft.wake(WakeKind.RECOVERY, why, draft.now)


def _doubt(draft: Draft, command: Command, why: str) -> None:
    """Nothing is concluded from evidence that contradicts itself: the turn goes on, and a person is asked once."""
    if command.kind is CommandKind.PAGE_CLOSE:
        _side_lost(draft, command, why)
        return
    if command.kind is CommandKind.STEER:
        if _doubted(draft, command, why).state is CommandState.AMBIGUOUS:
            draft.carried_on(command, DeliveryEvent.DOUBTED)
        return
    _doubted(draft, command, why)
    live = draft.snapshot.live
    asked = live is not None and any(wait.attempt_id == live.id for wait in draft.snapshot.waits)
    if command.state is CommandState.ACKNOWLEDGED and live is not None and not asked:
        _ask(draft, f"turn {live.number} cannot be followed any more: {why}. End what is left of it", live)


def _not_to_be_ended(draft: Draft, seen: Seen) -> None:
    """A turn that goes on in spite of being interrupted is a person's: a stopped task's, or one past its time."""
    task, live = draft.task, draft.snapshot.live
    if live is None or draft.snapshot.waits:
        return
    if task.state is TaskState.CANCELLED:
        since, why = task.ended_at, "the task was stopped, and its"
    elif live.live_at is not None and reconcile.outlasted(draft.snapshot, seen.found.findings, draft.now):
        since, why = live.live_at + draft.before.run.policy.turn_limit, "its host is gone and its time is over, but"
    else:
        return
    if since is not None and draft.now - since >= PATIENCE * draft.before.run.policy.interrupt_grace:
        by_hand = "Press Stop in its page" if task.agent.in_page else "End its processes by hand"
        question = f"{why} turn {live.number} could not be ended. {by_hand}"
        draft.wait(WaitKind.HUMAN, question, attempt=live.id)


def _ask(draft: Draft, question: str, attempt: Attempt | None) -> None:
    if not draft.task.terminal:
        draft.wait(WaitKind.HUMAN, question, attempt=attempt.id if attempt else None)


def _spend_time(draft: Draft, ended: Attempt) -> None:
    if ended.live_at is not None:
        spent = max(draft.now - ended.live_at, timedelta(0))
        draft.change(active_since_report=draft.task.active_since_report + spent)


# -- a turn's own end


def _ended(draft: Draft, command: Command, ending: Ending, seen: Seen, prompt: str) -> None:
    match command.kind:
        case CommandKind.SEND:
            _turn_ended(draft, command, ending, seen, prompt)
        case CommandKind.CHECK:
            _check_ended(draft, command, ending)
        case CommandKind.INTERRUPT:
            draft.look_now()
        case CommandKind.ANSWER:
            pass  # that it was taken is all there is to it
        case CommandKind.STEER:
            pass  # words have no end of their own; the turn that took them has
        case CommandKind.RECORD | CommandKind.CLAIM | CommandKind.WORKTREE_MAKE | CommandKind.WORKTREE_REMOVE:
            pass  # what a source says is settled by whoever keeps chains
        case CommandKind.GATE | CommandKind.MERGE:
            pass  # what came of it is settled by whoever merges
        case CommandKind.TAKEOVER:
            pass  # it has no end of its own; that it took effect is seen at the session
        case CommandKind.PAGE_CLOSE:
            pass  # a page that is closed is closed
        case _ as never:
            assert_never(never)


def _turn_ended(draft: Draft, command: Command, ending: Ending, seen: Seen, prompt: str) -> None:
    live = draft.snapshot.live
    if live is None or command.attempt_id != live.id:
        return
    facts: dict[str, object] = {
        "exit_code": ending.exit_code,
        "output_bytes": ending.output_bytes,
        "tokens_in": ending.tokens_in,
        "tokens_out": ending.tokens_out,
        "cost": ending.cost,
        "currency": ending.currency,
    }
    if ending.cut is not None:
        why = {
            Cut.KILLED: f"its program was killed by signal {ending.signal}",
            Cut.TIME_LIMIT: "it reached the time limit of a turn",
            Cut.INTERRUPT: "it was interrupted",
            Cut.VANISHED: "its program vanished",
        }[ending.cut]
        _cut(draft, command, AttemptOutcome.INTERRUPTED, seen, why, **facts)
        _report(draft, ending, live, prompt)
        return
    if ending.hindered is not None:
        _measure(draft, seen.found.workspace, None, count=False, jobs=_jobs(draft, seen))
        held_up = hindered.follow(draft, ending.hindered, seen.account, **facts)
        if held_up is not None:
            permission.turn_over(draft, held_up, by_itself=False)
            _spend_time(draft, held_up)
        _report(draft, ending, live, prompt)
        return
    said = _read(ending, prompt)
    word = _word(said)
    ended = draft.end_attempt(AttemptOutcome.TURN_END, signal=word, detail=_detail(said), **facts)
    if ended is None:
        return
    permission.turn_over(draft, ended, by_itself=True)
    hindered.went_well(draft, seen.account, ended)
    _spend_time(draft, ended)
    _report(draft, ending, live, prompt)
    draft.look_now()
    talk = draft.snapshot.conversation
    if talk is not None and talk.id == ended.conversation_id:
        draft.talk(replace(talk, turns=talk.turns + 1))
    if draft.task.terminal:
        if isinstance(said, signal.Complete | signal.Blocked):
            draft.note(FactKind.LATE_WORD, attempt=ended.id, said=word, why="the task had ended before")
        return
    if tenancy.late(draft.task, ended.lease_number):
        draft.note(FactKind.LATE_WORD, attempt=ended.id, said=word, why="a later conversation holds the lease")
        return
    line = said.progress if not isinstance(said, signal.NoSignal) else None
    counts = not isinstance(said, signal.Complete)
    _measure(draft, seen.found.workspace, line or None, count=counts, jobs=_jobs(draft, seen))
    _follow(draft, said, ended)


def _read(ending: Ending, prompt: str) -> signal.Signal | signal.NoSignal:
    raw = ending.signals if ending.signal_count == len(ending.signals) else (*ending.signals, *ending.signals)
    return signal.effective(
        signal.read_signal(raw, prompt=prompt), ending.exit_code, signalled=ending.signal is not None
    )


def _word(said: signal.Signal | signal.NoSignal) -> str:
    match said:
        case signal.Working():
            return "working"
        case signal.Complete():
            return "complete"
        case signal.Blocked():
            return "blocked"
        case signal.NoSignal():
            return "none"
        case _ as never:
            assert_never(never)


def _detail(said: signal.Signal | signal.NoSignal) -> str | None:
    return said.sentence if isinstance(said, signal.NoSignal) else said.summary[:500] or None


def _follow(draft: Draft, said: signal.Signal | signal.NoSignal, ended: Attempt) -> None:
    """What the turn's word leads to."""
    delay = pages.idle_delay(draft.task, draft.before.run.policy.idle_delay)
    match said:
        case signal.Working():
            draft.change(standing=Standing.WORKING, standing_reason=said.next or said.summary or None)
            _signal_report(draft, said, ended)
            draft.wake(WakeKind.IDLE, "the turn ended and there is more to do", draft.now + delay)
        case signal.Complete() if (why := neighbours.unended(draft.before)) is not None:
            draft.change(standing=Standing.WORKING, standing_reason=why)
            draft.note(FactKind.TASK_CLAIMED, evidence=said.evidence[:2000])
            draft.note(FactKind.TASK_CHECK_FAILED, why=why)
            _signal_report(draft, said, ended)
        case signal.Complete():
            draft.change(standing=Standing.COMPLETE, standing_reason=said.summary or None)
            _signal_report(draft, said, ended)
            claim(draft, said.evidence, said.summary, ended)
        case signal.Blocked():
            draft.change(standing=Standing.BLOCKED, standing_reason=said.asked)
            _signal_report(draft, said, ended)
            _block(draft, said, ended)
        case signal.NoSignal():
            draft.change(standing=Standing.SILENT, standing_reason=said.sentence)
            _silent(draft, said, ended, delay)
        case _ as never:
            assert_never(never)


def _block(draft: Draft, said: signal.Blocked, ended: Attempt) -> None:
    need = said.needs
    question = said.summary or said.asked
    match need:
        case signal.HumanNeed():
            draft.wait(WaitKind.HUMAN, said.asked, attempt=ended.id)
        case signal.TaskNeed(task_id):
            draft.wait(WaitKind.TASK, question, subject=task_id, attempt=ended.id)
        case signal.PathNeed(path):
            draft.wait(WaitKind.PATH, question, subject=path, attempt=ended.id)
        case signal.CommitNeed(ref, into):
            draft.wait(WaitKind.COMMIT, question, subject=f"{ref} into {into}", attempt=ended.id)
        case signal.TimeNeed(at):
            draft.wait(WaitKind.TIME, question, until=at, attempt=ended.id)
        case _ as never:
            assert_never(never)


def _silent(draft: Draft, said: signal.NoSignal, ended: Attempt, delay: timedelta) -> None:
    """No signal: one reminder and the stall rule, unless it is a program that is never run again unasked."""
    task = draft.task
    if task.agent.resumable:
        draft.wake(WakeKind.IDLE, "the turn ended without a signal", draft.now + delay)
    elif (why := neighbours.unended(draft.before)) is not None:
        draft.change(standing=Standing.WORKING, standing_reason=why)
    elif task.acceptance.kind is not AcceptanceKind.NONE and ended.exit_code == 0:
        claim(draft, "the acceptance given at its creation", said.sentence, ended)
    else:
        code = f" (exit code {ended.exit_code})" if ended.exit_code else ""
        _ask(draft, f"{said.sentence}{code}. Is the work done, or shall the program be run again?", ended)


def claim(draft: Draft, evidence: str, summary: str, attempt: Attempt | None) -> None:
    """Record a claim of completion; with no acceptance to judge it by, the task is completed, visibly unverified."""
    made = Claim(evidence[:2000], summary[:2000], attempt.id if attempt else None, draft.now)
    draft.note(FactKind.TASK_CLAIMED, evidence=made.evidence)
    if draft.task.acceptance.kind is AcceptanceKind.NONE:
        draft.end_task(
            TaskEvent.COMPLETED,
            made.summary or "the agent says it is complete",
            DispositionSource.AGENT,
            made.evidence,
            verified=False,
        )
        return
    draft.change(claim=made)
    draft.look_now()


def _jobs(draft: Draft, seen: Seen) -> tuple[str, ...]:
    """The jobs that ended well since the last attempt before the one that ends now, or since that one began."""
    before = draft.before
    since = before.last.ended_at if before.last is not None else None
    if since is None and before.live is not None:
        since = before.live.live_at
    return progress.jobs_done(seen.found.tools, since, draft.now)


def _measure(
    draft: Draft, facts: WorkspaceFacts | None, line: str | None, *, count: bool, jobs: tuple[str, ...] = ()
) -> None:
    task, policy = draft.task, draft.before.run.policy
    account = progress.account(task.progress, facts, line, policy, draft.now, jobs)
    if task.terminal or (not count and not account.moved):
        return
    draft.change(progress=account.progress)
    if account.external:
        draft.change(faults=0, stalled_at=None)
    if account.moved:
        draft.note(FactKind.TASK_PROGRESSED, why=account.progress.reason, head=account.progress.head)
    if account.warn:
        draft.note(FactKind.TASK_STALL_WARNED, without=account.progress.without)
    if account.pause and task.stalled_at is None:
        draft.change(stalled_at=draft.now)
        draft.note(FactKind.TASK_STALLED, without=account.progress.without)


def _signal_report(draft: Draft, said: signal.Signal, ended: Attempt) -> None:
    pairs = [("status", _word(said)), ("summary", said.summary), ("progress", said.progress)]
    if isinstance(said, signal.Working | signal.Blocked):
        pairs.append(("next", said.next))
    if isinstance(said, signal.Blocked):
        pairs.append(("needs", said.asked))
    if isinstance(said, signal.Complete):
        pairs.append(("evidence", said.evidence))
    lines = tuple((name, value) for name, value in pairs if value)
    draft.puts.append(
        Report(ReportId(draft.new("report")), draft.task.id, ended.id, ReportKind.SIGNAL, lines, draft.now)
    )


def _report(draft: Draft, ending: Ending, live: Attempt, prompt: str) -> None:
    """A checkpoint's answer: shown, and never taken for the turn's signal."""
    if not ending.reports:
        return
    read = signal.read_report(ending.reports, prompt=prompt)
    if isinstance(read, signal.NoReport):
        draft.note(FactKind.FINDING, attempt=live.id, what=read.sentence)
        return
    draft.puts.append(
        Report(ReportId(draft.new("report")), draft.task.id, live.id, ReportKind.CHECKPOINT, read.lines, draft.now)
    )
    line = next((f"{name}: {value}"[:200] for name, value in read.lines if value.strip()), "")
    draft.note(FactKind.REPORT_RECORDED, attempt=live.id, lines=len(read.lines), line=line)
    draft.change(active_since_report=timedelta(0))


# -- judging a claim


def _check_ended(draft: Draft, command: Command, ending: Ending) -> None:
    if draft.task.claim is None or draft.task.terminal:
        return
    if ending.cut is None and ending.exit_code == 0:
        _verified(draft)
    elif ending.cut is Cut.INTERRUPT or ending.cut is Cut.VANISHED:
        _tried(draft, f"its program was cut short ({ending.cut})")
    else:
        how = f"it exited {ending.exit_code}" if ending.cut is None else f"it was cut short ({ending.cut})"
        _refuted(draft, f"{' '.join(draft.task.acceptance.argv)}: {how}")


def _side_lost(draft: Draft, command: Command, why: str) -> None:
    """What is repeatable is released by policy where it is lost: checks, interruptions, the closing of a page."""
    doubted = _doubted(draft, command, why)
    if doubted.state is CommandState.AMBIGUOUS and command.kind is not CommandKind.TAKEOVER:
        draft.command(doubted, CommandEvent.RELEASED, released_by="policy", verdict="lost, and repeatable")
    if command.kind is CommandKind.CHECK:
        _tried(draft, why)


def _tried(draft: Draft, why: str) -> None:
    """A check came to no result: it is run again a few times, then a person is asked."""
    standing = draft.task.claim
    if standing is None or draft.task.terminal:
        return
    tries = standing.tries + 1
    draft.change(claim=replace(standing, tries=tries))
    draft.look_now()
    if tries >= draft.before.run.policy.check_tries:
        _unclaimed(draft)
        _ask(draft, f"its acceptance check came to no result {tries} times (last: {why}). Is the work done?", None)


def _judged(draft: Draft, seen: Seen) -> None:
    facts = seen.found.acceptance
    if facts is None or draft.task.claim is None or draft.task.terminal or draft.snapshot.live is not None:
        return
    if facts.holds is True:
        _verified(draft)
    elif facts.holds is False:
        _refuted(draft, facts.reason)
    elif draft.now - draft.task.claim.made_at >= draft.before.run.policy.check_limit:
        _unclaimed(draft)
        _ask(draft, f"whether its acceptance holds cannot be told: {facts.reason}. Is the work done?", None)


def _unclaimed(draft: Draft) -> None:
    """The claim is off. What it had given up, its slot, it has again only if one is left; else it returns in line."""
    draft.change(claim=None)
    if draft.task.state is TaskState.ACTIVE and draft.snapshot.live is None and slots.full(draft.before):
        draft.move(TaskEvent.SLOT_GIVEN_BACK)
        draft.change(waiting_since=None, queued_at=draft.now)


def _verified(draft: Draft) -> None:
    made = draft.task.claim
    if made is None:
        return
    draft.end_task(
        TaskEvent.COMPLETED,
        made.summary or "the acceptance holds",
        DispositionSource.AGENT,
        made.evidence,
        verified=True,
    )


def _refuted(draft: Draft, why: str) -> None:
    """The claim does not hold: the agent is told in its next prompt, and the turn counts as no progress."""
    draft.note(FactKind.TASK_CHECK_FAILED, why=why)
    draft.message("tenuto", MessageKind.CHECK_FAILED, why)
    _unclaimed(draft)
    draft.change(standing=Standing.WORKING, standing_reason=f"the acceptance did not hold: {why}")
    last = draft.snapshot.last
    if draft.task.agent.resumable or last is None or last.signal == "complete":
        _measure(draft, None, None, count=True)
        draft.wake(WakeKind.EVENT, "the acceptance check failed", draft.now)
    else:
        _ask(draft, f"the acceptance does not hold ({why}) and the program is not run again unasked", None)
