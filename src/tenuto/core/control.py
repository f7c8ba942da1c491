"""The verbs of operators and agents, as commits.

Each takes a snapshot and says what the rows become, or refuses with a reason. None of them touches the world: a stop
writes that the task is cancelled, and the cycle ends what is running; a request to continue is a wake like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from tenuto.core import neighbours, permission, settle, tenancy, wake
from tenuto.core.draft import Draft, New
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.decision import Because, Rung
from tenuto.model.fact import FactKind
from tenuto.model.ids import ReportId
from tenuto.model.lifecycle import CommandEvent, CommandState, DeliveryEvent, RunState, TaskEvent
from tenuto.model.message import MessageKind, Party
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import (
    AutoResume,
    DispositionSource,
    Report,
    ReportKind,
    Standing,
    TextKind,
    Wait,
    WaitKind,
    WakeKind,
)

Outcome = Commit | Because | None


def _over(snapshot: Snapshot) -> Because | None:
    task = snapshot.task
    if task.terminal:
        return Because(Rung.TERMINAL, f"the task is {task.state}", "nothing; start a new task for more work")
    return None


def pause(snapshot: Snapshot, by: str, now: datetime, new: New) -> Outcome:
    """Stop future automatic continuation; a turn under way is left alone. None when it is paused already."""
    if because := _over(snapshot):
        return because
    if snapshot.task.paused_at is not None:
        return None
    draft = Draft(snapshot, now, new)
    draft.change(paused_at=now, paused_by=by)
    draft.note(FactKind.TASK_PAUSED, by=by)
    return draft.commit()


def resume(snapshot: Snapshot, by: str, now: datetime, new: New, *, stalled: bool) -> Outcome:
    """Clear the operator's pause; the stall pause only when `stalled` says so. None when nothing is to be cleared."""
    if because := _over(snapshot):
        return because
    task = snapshot.task
    clears_stall = stalled and task.stalled_at is not None
    if task.paused_at is None and not clears_stall:
        if task.stalled_at is not None:
            return Because(
                Rung.STALLED, "it is paused for no progress, not by the operator", f"tenuto resume --stalled {task.id}"
            )
        return None
    draft = Draft(snapshot, now, new)
    draft.change(paused_at=None, paused_by=None)
    if clears_stall:
        draft.change(stalled_at=None, progress=replace(task.progress, without=0))
    draft.note(FactKind.TASK_RESUMED, by=by, stalled=clears_stall)
    draft.look_now()
    return draft.commit()


def continue_once(snapshot: Snapshot, by: str, now: datetime, new: New, *, anyway: bool) -> Outcome:
    """Ask for one attempt. During a turn it stays a wake for the next safe one."""
    if because := _over(snapshot):
        return because
    if snapshot.run.state is not RunState.OPEN:
        return Because(Rung.RUN_STOPPED, "its run is stopped", "nothing; a stopped run stays stopped")
    draft = Draft(snapshot, now, new)
    draft.wake(WakeKind.MANUAL, "the operator asked", now, anyway=anyway, asked_by=by)
    return draft.commit()


def cancel(snapshot: Snapshot, by: str, reason: str, now: datetime, new: New) -> Outcome:
    """Stop the task for good: queued commands are cancelled, the lease ends, the cycle interrupts what runs."""
    if snapshot.task.terminal:
        return None
    draft = Draft(snapshot, now, new)
    for command in snapshot.commands:
        if command.state is CommandState.QUEUED:
            draft.command(command, CommandEvent.CANCELLED)
    draft.end_task(TaskEvent.CANCELLED, reason or f"stopped by {by}", DispositionSource.OPERATOR, None, verified=False)
    return draft.commit()


def complete(
    snapshot: Snapshot, source: DispositionSource, evidence: str, summary: str, now: datetime, new: New
) -> Outcome:
    """End a task as complete: the operator's word ends it, an agent's is a claim that its acceptance judges."""
    if because := _over(snapshot):
        return because
    draft = Draft(snapshot, now, new)
    if source is DispositionSource.AGENT and (why := neighbours.unended(snapshot)) is not None:
        return Because(Rung.DEPENDENCY, why, "claim it when they have ended")
    if source is DispositionSource.AGENT:
        settle.claim(draft, evidence, summary, snapshot.live)
    else:
        draft.end_task(TaskEvent.COMPLETED, summary or f"completed by the {source}", source, evidence, verified=False)
    return draft.commit()


def fail(snapshot: Snapshot, source: DispositionSource, reason: str, now: datetime, new: New) -> Outcome:
    """End a task as failed."""
    if because := _over(snapshot):
        return because
    draft = Draft(snapshot, now, new)
    draft.end_task(TaskEvent.FAILED, reason, source, None, verified=False)
    return draft.commit()


def open_wait(
    snapshot: Snapshot,
    kind: WaitKind,
    question: str,
    now: datetime,
    new: New,
    *,
    subject: str | None = None,
    until: datetime | None = None,
) -> Outcome:
    """Record a durable reason not to continue."""
    if because := _over(snapshot):
        return because
    draft = Draft(snapshot, now, new)
    draft.wait(kind, question, subject=subject, until=until, attempt=snapshot.live.id if snapshot.live else None)
    if kind is WaitKind.CHILDREN and snapshot.task.ready_at is not None:
        draft.change(ready_at=None, ready_note=None)  # it is not ready while they are not
    return draft.commit()


def answer(snapshot: Snapshot, wait: Wait, body: str, by: str, now: datetime, new: New) -> Outcome:
    """Resolve a wait with an answer, which rides in the next prompt; the task is woken.

    An ambiguous command of the turn the question was about is released with the answer as its verdict, but for words
    that were put into it: the answer does not say whether they were read. A question that was put about a task that is
    over is settled by the answer, which nobody is left to be told.
    """
    if snapshot.task.terminal and any(wait.id == other.id for other in snapshot.waits):
        seen = Draft(snapshot, now, new)
        seen.close_wait(wait, by)
        return seen.commit()
    if because := _over(snapshot):
        return because
    draft = Draft(snapshot, now, new)
    message = draft.message(by, MessageKind.ANSWER, body, text_kind=TextKind.ANSWER, party=Party.OPERATOR)
    draft.close_wait(wait, by, message.text)
    for command in snapshot.commands:
        over = snapshot.live is None or command.attempt_id != snapshot.live.id
        about = command.attempt_id == wait.attempt_id and command.kind is not CommandKind.STEER
        if command.state is CommandState.AMBIGUOUS and over and about:
            draft.command(command, CommandEvent.RELEASED, released_by=by, verdict="answered")
            draft.carried_on(command, DeliveryEvent.TURNED_AWAY)  # told again: twice does no harm, never does
    if wait.kind is WaitKind.HUMAN:
        draft.change(faults=0, unsent_in_row=0)
    draft.wake(WakeKind.EVENT, "a question was answered", now)
    return draft.commit()


def set_policy(
    snapshot: Snapshot,
    by: str,
    now: datetime,
    new: New,
    *,
    auto_resume: AutoResume | None,
    clear_auto_resume: bool,
    caps: Mapping[str, object],
) -> Outcome:
    """Override the run's policy for this task, or take the override back; `caps` are the task's own, by their names."""
    if because := _over(snapshot):
        return because
    draft = Draft(snapshot, now, new)
    if clear_auto_resume:
        draft.change(auto_resume=None)
    if auto_resume is not None:
        draft.change(auto_resume=auto_resume)
    draft.change(**caps)
    draft.note(
        FactKind.TASK_POLICY,
        by=by,
        auto_resume=draft.task.auto_resume,
        max_attempts=draft.task.max_attempts,
    )
    draft.look_now()
    return draft.commit()


def report(
    snapshot: Snapshot, kind: ReportKind, lines: tuple[tuple[str, str], ...], now: datetime, new: New
) -> Outcome:
    """Record a structured report; it informs, and ends nothing."""
    if because := _over(snapshot):
        return because
    draft = Draft(snapshot, now, new)
    attempt = snapshot.live.id if snapshot.live else None
    draft.puts.append(Report(ReportId(new("report")), snapshot.task.id, attempt, kind, lines, now))
    draft.note(FactKind.REPORT_RECORDED, kind=kind, lines=len(lines), line=headline(lines))
    draft.change(active_since_report=wake.active_from_now(snapshot, now))
    return draft.commit()


def headline(lines: tuple[tuple[str, str], ...]) -> str:
    """The first line of a report, shortened: what a coordinator is told of it."""
    return next((f"{name}: {value}"[:200] for name, value in lines if value.strip()), "")


def request_checkpoint(snapshot: Snapshot, by: str, now: datetime, new: New) -> Outcome:
    """Ask for a structured report in the next turn; None when one is asked for already."""
    if because := _over(snapshot):
        return because
    if any(message.kind is MessageKind.CHECKPOINT for message in snapshot.messages):
        return None
    draft = Draft(snapshot, now, new)
    draft.message(by, MessageKind.CHECKPOINT, None, party=Party.OPERATOR)
    draft.change(checkpoints=snapshot.task.checkpoints + 1)
    return draft.commit()


def release(
    snapshot: Snapshot, command: Command, by: str, *, happened: bool, now: datetime, new: New, unfollowed: bool = False
) -> Outcome:
    """A person's verdict on a command that looking could not settle. It is never an acknowledgement.

    With `unfollowed` nobody can be asked what became of it: then the turn under way is released as well, whether it
    was seen to begin or not. What still lives of it, if its executor ever comes back, is not joined by another turn.
    """
    live = snapshot.live
    its_turn = unfollowed and command.kind is CommandKind.SEND and live is not None and live.id == command.attempt_id
    begun = command.state is CommandState.ACKNOWLEDGED
    if its_turn and begun and not happened:
        return Because(Rung.UNRESOLVED, "its turn was seen to begin", "release it with the verdict that it happened")
    if command.state is not CommandState.AMBIGUOUS and not (its_turn and (begun or command.open)):
        return Because(
            Rung.UNRESOLVED, f"the command is {command.state}, not ambiguous", "only an ambiguous command is released"
        )
    draft = Draft(snapshot, now, new)
    verdict = "happened" if happened else "not happened"
    if not begun:
        doubted = () if command.state is CommandState.AMBIGUOUS else (CommandEvent.DOUBTED,)
        draft.command(command, *doubted, CommandEvent.RELEASED, released_by=by, verdict=verdict)
    if command.kind is CommandKind.STEER and not happened:
        settle.untaken(draft, command)
    elif not begun:
        draft.carried_on(command, DeliveryEvent.DELIVERED if happened else DeliveryEvent.UNSENT)
    if command.kind is CommandKind.SEND and live is not None and live.id == command.attempt_id:
        ended = draft.end_attempt(AttemptOutcome.RELEASED, detail=f"{verdict}, says {by}")
        if ended is not None:
            permission.turn_over(draft, ended, by_itself=False)
        if not snapshot.task.terminal:
            draft.change(standing=Standing.CUT_SHORT, standing_reason=f"its command was released: {verdict}")
            _after_release(draft, ended, happened=happened)
    draft.look_now()
    return draft.commit()


def _after_release(draft: Draft, ended: Attempt | None, *, happened: bool) -> None:
    """A program that is not resumable and has run is not run again unasked, whoever says that it has run."""
    if happened and not draft.task.agent.resumable:
        question = "its turn happened and nobody saw its end. Is the work done, or shall the program be run again?"
        draft.wait(WaitKind.HUMAN, question, attempt=ended.id if ended else None)
    else:
        draft.wake(WakeKind.RECOVERY, "a command was released", draft.now)


def ready(snapshot: Snapshot, note: str, now: datetime, new: New) -> Outcome:
    """The agent says that its work can be closed; None when it has said so. It ends nothing by itself."""
    if because := _over(snapshot):
        return because
    if (why := neighbours.unended(snapshot)) is not None:
        return Because(Rung.DEPENDENCY, why, "say it once they have ended")
    if snapshot.task.ready_at is not None or snapshot.task.claim is not None:
        return None
    draft = Draft(snapshot, now, new)
    draft.change(ready_at=now, ready_note=note[:2000])
    draft.note(FactKind.TASK_READY, note=note[:500], auto_close=snapshot.task.auto_close)
    draft.look_now()
    return draft.commit()


def late_word(snapshot: Snapshot, said: str, lease_number: int | None) -> Because | None:
    """Why a word from a conversation is too late to count; None when it counts."""
    if not tenancy.late(snapshot.task, lease_number):
        return None
    if snapshot.task.terminal:
        return Because(Rung.TERMINAL, f"the task is {snapshot.task.state}; {said} came too late", "nothing")
    return Because(
        Rung.LEASE, f"a later conversation holds the lease; {said} came too late", "stop work in this conversation"
    )
