"""The operator's and the agent's verbs: what each changes, refuses and leaves alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import control
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, Command
from tenuto.model.decision import Because, Rung
from tenuto.model.lifecycle import CommandState, DeliveryState, LeaseState, RunState, TaskState
from tenuto.model.message import Message, MessageKind
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import (
    Acceptance,
    AcceptanceKind,
    AutoResume,
    DispositionSource,
    Progress,
    Report,
    ReportKind,
    Standing,
    Text,
    TextKind,
    Wait,
    WaitKind,
    Wake,
    WakeKind,
)

OPERATOR, AGENT = DispositionSource.OPERATOR, DispositionSource.AGENT


def done(outcome: control.Outcome) -> b.After:
    assert isinstance(outcome, Commit), outcome
    return b.After(outcome)


def refused(outcome: control.Outcome) -> Because:
    assert isinstance(outcome, Because), outcome
    assert outcome.sentence
    assert outcome.change
    return outcome


def verbs(snapshot: Snapshot) -> dict[str, control.Outcome]:
    """Every verb on one task."""
    wait = snapshot.waits[0] if snapshot.waits else b.a_wait()
    now, new = b.NOW, b.new
    return {
        "pause": control.pause(snapshot, "sam", now, new),
        "resume": control.resume(snapshot, "sam", now, new, stalled=True),
        "continue": control.continue_once(snapshot, "sam", now, new, anyway=True),
        "complete": control.complete(snapshot, OPERATOR, "x", "", now, new),
        "fail": control.fail(snapshot, AGENT, "no way", now, new),
        "wait": control.open_wait(snapshot, WaitKind.HUMAN, "q?", now, new),
        "answer": control.answer(snapshot, wait, "blue", "sam", now, new),
        "policy": control.set_policy(snapshot, "sam", now, new, auto_resume=AutoResume.ON, clear_auto_resume=False,
                                     caps={}),
        "report": control.report(snapshot, ReportKind.PROGRESS, (("current", "x"),), now, new),
        "checkpoint": control.request_checkpoint(snapshot, "sam", now, new),
    }  # fmt: skip


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED])
def test_a_task_that_is_over_takes_no_verb(state: TaskState) -> None:
    over = b.with_task(b.with_wait(), state=state, paused_at=b.NOW, stalled_at=b.NOW)
    for name, outcome in verbs(over).items():
        if name != "answer":
            assert refused(outcome).rung is Rung.TERMINAL, name
    assert refused(verbs(replace(over, waits=()))["answer"]).rung is Rung.TERMINAL
    seen = done(control.answer(over, over.waits[0], "seen", "sam", b.NOW, b.new))
    assert (seen.one(Wait).closed_by, seen.all(Message), seen.all(Wake)) == ("sam", [], []), "it is settled, not told"
    assert control.cancel(over, "sam", "", b.NOW, b.new) is None


# -- pause and resume


def test_a_pause_is_once_and_leaves_a_turn_alone() -> None:
    after = done(control.pause(b.with_live(), "sam", b.NOW, b.new))
    assert (after.task.paused_at, after.task.paused_by) == (b.NOW, "sam")
    assert not after.all(Attempt)
    assert not after.all(Command)
    assert control.pause(b.with_task(paused_at=b.NOW, paused_by="sam"), "sam", b.NOW, b.new) is None


def resume(snapshot: Snapshot, *, stalled: bool = False) -> control.Outcome:
    return control.resume(snapshot, "sam", b.NOW, b.new, stalled=stalled)


def test_resume_clears_the_operators_pause_only() -> None:
    both = b.with_task(paused_at=b.NOW, paused_by="sam", stalled_at=b.NOW, progress=Progress(without=6))
    after = done(resume(both))
    assert (after.task.paused_at, after.task.paused_by) == (None, None)
    assert (after.task.stalled_at, after.task.progress.without) == (b.NOW, 6)
    assert after.task.look_at == b.NOW
    stalled = b.with_task(stalled_at=b.NOW, progress=Progress(without=6))
    assert refused(resume(stalled)).rung is Rung.STALLED
    cleared = done(resume(stalled, stalled=True))
    assert (cleared.task.stalled_at, cleared.task.progress.without) == (None, 0)
    assert resume(b.IDLE) is None
    assert resume(b.IDLE, stalled=True) is None


# -- continue


@pytest.mark.parametrize("anyway", [False, True])
def test_continue_is_one_wake_and_nothing_else(anyway: bool) -> None:
    for snapshot in (b.IDLE, b.with_live(), b.with_task(paused_at=b.NOW, paused_by="x"), b.with_wait()):
        after = done(control.continue_once(snapshot, "sam", b.NOW, b.new, anyway=anyway))
        wake = after.wakes[WakeKind.MANUAL]
        assert (wake.anyway, wake.asked_by, wake.not_before) == (anyway, "sam", b.NOW)
        assert not after.all(Command)
        assert not after.all(Wait), "a question stays open"
        assert after.task.paused_at == snapshot.task.paused_at
    stopped = replace(b.IDLE, run=replace(b.RUN, state=RunState.STOPPED))
    assert refused(control.continue_once(stopped, "sam", b.NOW, b.new, anyway=anyway)).rung is Rung.RUN_STOPPED


# -- ends


def test_a_stop_ends_everything_that_waits_and_leaves_what_runs_to_the_cycle() -> None:
    queued = replace(b.CHECK, state=CommandState.QUEUED, armed_at=None)
    snapshot = b.with_wake(snapshot=b.with_message(b.a_message(), b.with_wait(snapshot=b.with_live(b.SUBMITTED))))
    snapshot = replace(snapshot, commands=(*snapshot.commands, queued))
    after = done(control.cancel(snapshot, "sam", "", b.NOW, b.new))
    assert after.task.state is TaskState.CANCELLED
    assert after.task.disposition is not None
    assert after.task.disposition.reason == "stopped by sam"
    assert after.command(queued.id) is CommandState.CANCELLED
    assert not [command for command in after.all(Command) if command.id == b.SEND.id], "what was armed is not undone"
    assert not after.wakes
    assert after.one(Wait).closed_at == b.NOW
    assert after.one(Message).state is DeliveryState.DROPPED
    assert after.one(type(b.TALK)).state is LeaseState.ENDED
    assert after.task.look_at == b.NOW, "the cycle ends what runs"


def test_a_task_without_anything_under_way_is_over_at_once() -> None:
    after = done(control.cancel(replace(b.IDLE, conversation=None), "sam", "enough", b.NOW, b.new))
    assert (after.task.look_at, after.task.ended_at) == (None, b.NOW)


def test_the_operator_completes_and_an_agent_claims() -> None:
    ended = done(control.complete(b.IDLE, OPERATOR, "commit abc", "", b.NOW, b.new))
    assert ended.task.state is TaskState.COMPLETED
    assert ended.task.disposition is not None
    assert (ended.task.disposition.reference, ended.task.disposition.verified) == ("commit abc", False)
    checked = b.with_task(acceptance=Acceptance(AcceptanceKind.CHECK, ("make",)))
    claim = done(control.complete(checked, AGENT, "commit abc", "all", b.NOW, b.new))
    assert claim.task.state is TaskState.ACTIVE
    assert claim.task.claim is not None
    assert done(control.complete(checked, OPERATOR, "x", "", b.NOW, b.new)).task.state is TaskState.COMPLETED
    unchecked = done(control.complete(b.with_live(), AGENT, "commit abc", "", b.NOW, b.new))
    assert unchecked.task.state is TaskState.COMPLETED
    assert not unchecked.all(Attempt), "the turn that says so may still end"


def test_a_failure_says_whose_word_it_is() -> None:
    after = done(control.fail(b.IDLE, AGENT, "no way", b.NOW, b.new))
    assert after.task.disposition is not None
    assert (after.task.state, after.task.disposition.source) == (TaskState.FAILED, AGENT)


# -- waits and answers


def test_a_wait_is_bound_to_the_turn_that_opened_it() -> None:
    opened = control.open_wait(b.with_live(), WaitKind.PATH, "the file", b.NOW, b.new, subject="out", until=None)
    wait = done(opened).one(Wait)
    assert (wait.attempt_id, wait.subject, wait.kind) == (b.LIVE.id, "out", WaitKind.PATH)
    assert done(control.open_wait(b.IDLE, WaitKind.HUMAN, "q", b.NOW, b.new)).one(Wait).attempt_id is None


def answer(snapshot: Snapshot, **fields: Any) -> b.After:
    wait = b.a_wait(**fields)
    return done(control.answer(replace(snapshot, waits=(wait,)), wait, "blue", "sam", b.NOW, b.new))


def test_an_answer_closes_rides_and_wakes() -> None:
    after = answer(b.with_task(faults=4, unsent_in_row=9))
    wait, message, text = after.one(Wait), after.one(Message), after.one(Text)
    assert (wait.closed_by, wait.answer) == ("sam", text.id)
    assert (message.kind, message.text, message.state) == (MessageKind.ANSWER, text.id, DeliveryState.DEFERRED)
    assert (text.kind, text.body) == (TextKind.ANSWER, "blue")
    assert set(after.wakes) == {WakeKind.EVENT}
    assert (after.task.faults, after.task.unsent_in_row) == (0, 0)
    assert answer(b.with_task(faults=4), kind=WaitKind.PERMISSION).task.faults == 4


def test_an_answer_releases_the_doubt_it_was_asked_about_and_no_other() -> None:
    doubt = replace(b.DOUBTFUL, attempt_id=b.LAST.id)
    rides = b.a_message(state=DeliveryState.CARRIED, carried_by=doubt.id)
    snapshot = b.with_message(rides, replace(b.IDLE, commands=(doubt,)))
    after = answer(snapshot, attempt_id=b.LAST.id)
    command = after.one(Command)
    assert (command.state, command.released_by, command.late) == (CommandState.RELEASED, "sam", False)
    told = after.one(Message, lambda message: message.id == rides.id)
    assert told.state is DeliveryState.DEFERRED
    assert not answer(snapshot, attempt_id=None).all(Command)
    assert not answer(b.with_live(b.DOUBTFUL), attempt_id=b.LIVE.id).all(Command), "its turn is not over"


# -- policy, reports, words


def policy(snapshot: Snapshot = b.IDLE, **given: Any) -> b.After:
    settings = {"auto_resume": None, "clear_auto_resume": False, "caps": {}, **given}
    return done(control.set_policy(snapshot, "sam", b.NOW, b.new, **settings))


def test_an_override_is_set_and_taken_back() -> None:
    assert policy(auto_resume=AutoResume.MANUAL).task.auto_resume is AutoResume.MANUAL
    overridden = b.with_task(auto_resume=AutoResume.MANUAL, max_attempts=3)
    assert policy(overridden, clear_auto_resume=True).task.auto_resume is None
    capped = policy(overridden, caps={"max_attempts": 9}).task
    assert (capped.auto_resume, capped.max_attempts, capped.look_at) == (AutoResume.MANUAL, 9, b.NOW)


def test_a_report_informs_and_starts_the_interval_again() -> None:
    lines = (("current", "the parser"),)
    snapshot = b.with_task(b.with_live(), active_since_report=19 * b.MIN)
    after = done(control.report(snapshot, ReportKind.PROGRESS, lines, b.NOW, b.new))
    report = after.one(Report)
    assert (report.lines, report.attempt_id) == (lines, b.LIVE.id)
    assert after.task.active_since_report == -b.MIN, "the minute of the live turn so far is counted off"
    assert after.task.state is TaskState.ACTIVE
    assert not after.wakes
    idle = done(control.report(b.with_task(active_since_report=b.H), ReportKind.PROGRESS, lines, b.NOW, b.new))
    assert idle.task.active_since_report == timedelta(0)


def test_a_checkpoint_is_asked_for_once() -> None:
    after = done(control.request_checkpoint(b.IDLE, "sam", b.NOW, b.new))
    assert after.task.checkpoints == 1
    waiting = b.with_message(after.one(Message))
    assert control.request_checkpoint(waiting, "sam", b.NOW, b.new) is None


# -- release


def release(snapshot: Snapshot, command: Command, *, happened: bool) -> control.Outcome:
    return control.release(snapshot, command, "sam", happened=happened, now=b.NOW, new=b.new)


@pytest.mark.parametrize("state", [state for state in CommandState if state is not CommandState.AMBIGUOUS])
def test_only_a_doubt_is_released(state: CommandState) -> None:
    assert refused(release(b.IDLE, replace(b.SEND, state=state), happened=True)).rung is Rung.UNRESOLVED


@pytest.mark.parametrize("happened, message", [(True, DeliveryState.DELIVERED), (False, DeliveryState.RETRY_WAIT)])
def test_a_release_is_a_verdict_with_a_name(happened: bool, message: DeliveryState) -> None:
    rides = b.a_message(state=DeliveryState.CARRIED, carried_by=b.SEND.id)
    after = done(release(b.with_message(rides, b.with_live(b.DOUBTFUL)), b.DOUBTFUL, happened=happened))
    command = after.one(Command)
    assert (command.state, command.released_by) == (CommandState.RELEASED, "sam")
    assert command.verdict == ("happened" if happened else "not happened")
    assert after.one(Message).state is message
    assert after.one(Attempt).outcome is AttemptOutcome.RELEASED
    assert after.task.standing is Standing.CUT_SHORT
    assert set(after.wakes) == {WakeKind.RECOVERY}


def test_a_plain_program_that_ran_is_not_run_again_by_a_verdict() -> None:
    plain = b.with_live(b.DOUBTFUL, b.with_task(agent=b.PLAIN))
    ran = done(release(plain, b.DOUBTFUL, happened=True))
    assert ran.asked
    assert not ran.wakes
    assert set(done(release(plain, b.DOUBTFUL, happened=False)).wakes) == {WakeKind.RECOVERY}


def test_a_release_after_the_turn_or_the_task_leads_to_no_turn() -> None:
    doubt = replace(b.DOUBTFUL, attempt_id=b.LAST.id)
    assert not done(release(replace(b.IDLE, commands=(doubt,)), doubt, happened=True)).wakes
    over = done(release(b.cancelled(b.with_live(b.DOUBTFUL)), b.DOUBTFUL, happened=False))
    assert not over.wakes
    assert not over.asked
    assert over.one(Attempt).outcome is AttemptOutcome.RELEASED


# -- late words


def test_late_words() -> None:
    assert control.late_word(b.IDLE, "complete", 1) is None
    fenced = control.late_word(b.IDLE, "complete", 0)
    assert fenced is not None
    assert fenced.rung is Rung.LEASE
    over = control.late_word(b.cancelled(b.IDLE), "complete", 1)
    assert over is not None
    assert over.rung is Rung.TERMINAL
