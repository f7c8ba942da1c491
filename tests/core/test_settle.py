"""Settling: what the rows become after each finding, and what never follows from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import settle, wake
from tenuto.core.draft import Draft
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.evidence import Cut, Mark, Presence, WorkspaceKind
from tenuto.model.fact import FactKind
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import AttemptState, CommandState, DeliveryState, TaskState
from tenuto.model.message import Message, MessageKind
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import (
    Acceptance,
    AcceptanceKind,
    DispositionSource,
    Progress,
    Report,
    Standing,
    Wait,
    WaitKind,
    WakeKind,
)

ALIVE, GONE, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.UNKNOWN
WORKING = "status: working\nsummary: half of it\nprogress: file a\nnext: file b"
COMPLETE = "status: complete\nsummary: all done\nevidence: commit abc"
PLAIN = b.with_task(agent=b.PLAIN)


def carried(state: DeliveryState = DeliveryState.CARRIED) -> Message:
    return b.a_message(state=state, carried_by=b.SEND.id)


def test_nothing_found_writes_nothing() -> None:
    assert b.settled(b.IDLE).nothing
    assert b.settled(b.with_live(), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE)).nothing
    assert b.settled(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.CLAIMED, ALIVE)).nothing
    assert b.settled(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.NONE)).nothing


# -- delivery


def test_accepted_acknowledges_the_send_and_delivers_what_rode_in_it() -> None:
    snapshot = b.with_task(b.with_message(carried(), b.with_live(b.SEND)), unsent_in_row=2)
    after = b.settled(snapshot, b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE))
    assert after.command() is CommandState.ACKNOWLEDGED
    assert after.one(Message).state is DeliveryState.DELIVERED
    assert after.task.unsent_in_row == 0
    assert after.commit is not None
    assert after.commit.frees == (b.SEND.id,)
    assert not after.all(Attempt), "a healthy turn goes on"


def test_begun_is_submitted() -> None:
    after = b.settled(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.BEGUN, ALIVE))
    assert after.command() is CommandState.SUBMITTED


def test_a_late_acknowledgement_of_a_released_command() -> None:
    ambiguous = carried(DeliveryState.AMBIGUOUS)
    snapshot = b.with_task(replace(b.with_message(ambiguous), released=b.RELEASED), unsent_in_row=1)
    after = b.settled(snapshot, b.ended(b.RELEASED, WORKING))
    command = after.one(Command)
    assert (command.state, command.late) == (CommandState.ACKNOWLEDGED, True)
    assert after.one(Message).state is DeliveryState.DELIVERED
    assert after.task.unsent_in_row == 1, "an old turn says nothing of new ones"
    assert not after.wakes
    assert not after.all(Attempt)


# -- undone


def test_undone_costs_nothing_and_the_reason_stands() -> None:
    live = replace(b.LIVE, reason=WakeKind.MANUAL, anyway=True)
    snapshot = b.with_task(b.with_message(carried(), b.with_live(b.SEND, attempt=live)), attempts=2)
    after = b.settled(snapshot, b.seen_of(b.SEND, Mark.REVOKED))
    assert after.command() is CommandState.FAILED
    assert after.one(Attempt).outcome is AttemptOutcome.UNSENT
    assert (after.task.attempts, after.task.unsent_in_row, after.task.faults) == (1, 1, 0)
    assert after.one(Message).state is DeliveryState.RETRY_WAIT
    again = after.wakes[WakeKind.MANUAL]
    assert (again.anyway, again.not_before) == (True, b.NOW), "what was revoked at a restart is tried at once"


@pytest.mark.parametrize("row, least", [(0, 5), (1, 15), (2, 60), (3, 300), (40, 300)])
def test_undone_is_tried_again_later_and_later(row: int, least: int) -> None:
    snapshot = b.with_task(b.with_live(b.SEND), unsent_in_row=row)
    after = b.settled(snapshot, b.seen_of(b.SEND, Mark.FAILED))
    wait = after.wakes[WakeKind.EVENT].not_before - b.NOW
    assert least * b.S <= wait <= least * b.S * 1.25
    assert not after.asked


def test_undone_for_a_day_is_a_persons() -> None:
    row = next(row for row in range(1, 1000) if wake.unsent_for(row, POLICY) >= POLICY.delivery_end)
    after = b.settled(b.with_task(b.with_live(b.SEND), unsent_in_row=row - 1), b.seen_of(b.SEND, Mark.FAILED))
    assert "no turn could be started for" in after.asked[0]
    assert not after.wakes
    before = b.settled(b.with_task(b.with_live(b.SEND), unsent_in_row=row - 2), b.seen_of(b.SEND, Mark.FAILED))
    assert before.wakes
    assert not before.asked


def test_what_only_a_person_can_mend_is_asked_at_once() -> None:
    after = b.settled(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.FAILED, mendable=True, reason="API_KEY is missing"))
    assert "API_KEY is missing" in after.asked[0]
    assert not after.wakes


def test_an_ambiguous_send_of_an_old_turn_may_prove_undone() -> None:
    snapshot = b.with_message(carried(), replace(b.IDLE, commands=(b.DOUBTFUL,)))
    after = b.settled(snapshot, b.seen_of(b.DOUBTFUL, Mark.REVOKED))
    assert after.command() is CommandState.FAILED
    assert after.one(Message).state is DeliveryState.RETRY_WAIT
    assert after.task.attempts == b.TASK.attempts


# -- cut short, lost, doubtful


@pytest.mark.parametrize(
    "mark, outcome", [(Mark.ACCEPTED, AttemptOutcome.INTERRUPTED), (Mark.BEGUN, AttemptOutcome.LOST)]
)
def test_a_turn_without_an_end_of_its_own(mark: Mark, outcome: AttemptOutcome) -> None:
    after = b.settled(b.with_live(b.SUBMITTED), b.seen_of(b.SEND, mark))
    assert after.one(Attempt).outcome is outcome
    assert (after.task.standing, after.task.faults) == (Standing.CUT_SHORT, 1)
    assert set(after.wakes) == {WakeKind.RECOVERY}
    assert after.task.active_since_report == b.MIN
    expected = CommandState.RELEASED if outcome is AttemptOutcome.LOST else CommandState.ACKNOWLEDGED
    assert after.command() is expected


def test_lost_and_not_resumable_stays_ambiguous_until_somebody_knows() -> None:
    snapshot = b.with_message(carried(), b.with_live(b.SUBMITTED, PLAIN))
    after = b.settled(snapshot, b.seen_of(b.SEND, Mark.BEGUN))
    assert after.command() is CommandState.AMBIGUOUS
    assert not after.all(Message), "what rode in it stays with it"
    assert "What did it do" in after.asked[0]
    assert not after.wakes
    doubted = replace(b.SUBMITTED, state=CommandState.AMBIGUOUS, revision=3, attempt_id=b.LAST.id)
    again = b.settled(replace(PLAIN, commands=(doubted,)), b.seen_of(doubted, Mark.BEGUN))
    assert again.nothing, "the same look at the same doubt changes nothing"


def test_lost_and_resumable_tells_what_rode_in_it_again() -> None:
    after = b.settled(b.with_message(carried(), b.with_live(b.SUBMITTED)), b.seen_of(b.SEND, Mark.BEGUN))
    assert after.one(Message).state is DeliveryState.DEFERRED


def test_faults_run_out() -> None:
    snapshot = b.with_task(b.with_live(), faults=POLICY.fault_recoveries)
    after = b.settled(snapshot, b.seen_of(b.SEND, Mark.ACCEPTED))
    assert "keep being cut short" in after.asked[0]
    assert not after.wakes
    moved = b.with_task(snapshot, progress=Progress(cursor="w0"))
    after = b.settled(moved, b.seen_of(b.SEND, Mark.ACCEPTED), b.workspace("w1"))
    assert after.task.faults == 1, "durable progress fills them up"
    assert set(after.wakes) == {WakeKind.RECOVERY}


def test_doubt_makes_a_send_ambiguous_and_ends_nothing() -> None:
    after = b.settled(b.with_live(b.SUBMITTED), b.seen_of(b.SEND, Mark.DAMAGED, UNKNOWN, UNKNOWN))
    assert after.command() is CommandState.AMBIGUOUS
    assert not after.all(Attempt)
    assert not after.wakes


def test_doubt_about_an_acknowledged_turn_asks_once_and_ends_nothing() -> None:
    doubt = b.seen_of(b.SEND, Mark.DAMAGED, GONE, ALIVE)
    after = b.settled(b.with_live(), doubt)
    assert "cannot be followed" in after.asked[0]
    assert not after.all(Attempt)
    assert b.settled(b.with_wait(WaitKind.HUMAN, b.with_live(), attempt_id=b.LIVE.id), doubt).nothing


def test_evidence_of_another_turn_never_ends_the_live_one() -> None:
    old = replace(b.DOUBTFUL, id=b.CHECK.id, attempt_id=b.LAST.id, submitted_at=b.NOW)
    snapshot = replace(b.with_live(), commands=(old,))
    for mark in (Mark.BEGUN, Mark.ACCEPTED, Mark.ENDED, Mark.DAMAGED):
        after = b.settled(snapshot, b.seen_of(old, mark, ending=b.ending(WORKING) if mark is Mark.ENDED else None))
        assert not after.all(Attempt), mark


# -- the turn's own end


def test_working_leads_to_an_idle_wake() -> None:
    after = b.settled(b.with_live(snapshot=b.with_policy(idle_delay=5 * b.S)), b.ended(b.SEND, WORKING))
    attempt = after.one(Attempt)
    assert (attempt.outcome, attempt.signal, attempt.exit_code) == (AttemptOutcome.TURN_END, "working", 0)
    assert after.wakes[WakeKind.IDLE].not_before == b.NOW + 5 * b.S
    assert (after.task.standing, after.task.standing_reason) == (Standing.WORKING, "file b")
    assert ("next", "file b") in after.one(Report).lines


def test_complete_without_acceptance_ends_the_task_visibly_unverified() -> None:
    snapshot = b.with_wake(WakeKind.IDLE, b.with_message(b.a_message(), b.with_live()))
    after = b.settled(snapshot, b.ended(b.SEND, COMPLETE))
    ending = after.task.disposition
    assert after.task.state is TaskState.COMPLETED
    assert ending is not None
    assert (ending.source, ending.reference, ending.verified) == (DispositionSource.AGENT, "commit abc", False)
    assert not after.wakes
    assert after.one(Message).state is DeliveryState.DROPPED


def test_complete_with_acceptance_is_a_claim() -> None:
    snapshot = b.with_task(b.with_live(), acceptance=Acceptance(AcceptanceKind.CHECK, ("make",)))
    after = b.settled(snapshot, b.ended(b.SEND, COMPLETE))
    assert after.task.state is TaskState.ACTIVE
    assert after.task.claim is not None
    assert not after.wakes


def test_a_failed_program_cannot_claim() -> None:
    after = b.settled(b.with_live(), b.ended(b.SEND, COMPLETE, exit_code=3))
    assert after.task.standing is Standing.SILENT
    assert after.task.state is TaskState.ACTIVE


@pytest.mark.parametrize(
    "needs, kind, subject",
    [
        ("which colour?", WaitKind.HUMAN, None),
        ("task:t-abc", WaitKind.TASK, "t-abc"),
        ("path:out/x.txt", WaitKind.PATH, "out/x.txt"),
        ("merged:feature into main", WaitKind.COMMIT, "feature into main"),
        ("until:2026-03-01T15:00:00+00:00", WaitKind.TIME, None),
    ],
)
def test_blocked_opens_the_wait_it_names(needs: str, kind: WaitKind, subject: str | None) -> None:
    after = b.settled(b.with_live(), b.ended(b.SEND, f"status: blocked\nsummary: cannot\nneeds: {needs}"))
    wait = after.one(Wait)
    assert (wait.kind, wait.subject, wait.attempt_id) == (kind, subject, b.LIVE.id)
    assert (wait.until is not None) == (kind is WaitKind.TIME)
    assert not after.wakes


@pytest.mark.parametrize("blocks", [(), (WORKING, WORKING), ("status: perhaps",)])
def test_no_signal_is_reminded_where_the_agent_is_resumable(blocks: tuple[str, ...]) -> None:
    after = b.settled(b.with_live(), b.ended(b.SEND, *blocks))
    assert after.task.standing is Standing.SILENT
    assert set(after.wakes) == {WakeKind.IDLE}
    assert not after.all(Report)


def test_more_blocks_than_were_kept_are_no_signal() -> None:
    after = b.settled(b.with_live(), b.ended(b.SEND, WORKING, signal_count=2))
    assert after.task.standing is Standing.SILENT


def test_no_signal_of_a_plain_program_is_a_persons_or_its_checks() -> None:
    after = b.settled(b.with_live(snapshot=PLAIN), b.ended(b.SEND))
    assert after.asked
    assert not after.wakes
    checked = b.with_task(PLAIN, acceptance=Acceptance(AcceptanceKind.CHECK, ("make",)))
    assert b.settled(b.with_live(snapshot=checked), b.ended(b.SEND)).task.claim is not None
    failed = b.settled(b.with_live(snapshot=checked), b.ended(b.SEND, exit_code=3))
    assert "exit code 3" in failed.asked[0]


@pytest.mark.parametrize("cut", Cut)
def test_a_turn_that_was_cut_ignores_its_block(cut: Cut) -> None:
    after = b.settled(b.with_live(), b.ended(b.SEND, COMPLETE, cut=cut, exit_code=None, signal=9))
    assert after.one(Attempt).outcome is AttemptOutcome.INTERRUPTED
    assert after.task.state is TaskState.ACTIVE
    assert set(after.wakes) == {WakeKind.RECOVERY}
    plain = b.settled(b.with_live(snapshot=PLAIN), b.ended(b.SEND, COMPLETE, cut=cut, exit_code=None, signal=9))
    assert plain.asked
    assert not plain.wakes


def test_a_report_is_shown_and_never_taken_for_the_signal() -> None:
    report = "completed: parser\nremaining: tests"
    snapshot = b.with_task(b.with_live(), active_since_report=19 * b.MIN)
    after = b.settled(snapshot, b.ended(b.SEND, WORKING, reports=(report,)))
    assert FactKind.REPORT_RECORDED in after.told
    assert after.task.active_since_report == timedelta(0), "the turn that answered is counted off"
    bad = b.settled(snapshot, b.ended(b.SEND, WORKING, reports=("nonsense",)))
    assert FactKind.FINDING in bad.told
    assert bad.task.active_since_report == 20 * b.MIN


def test_the_place_counts_its_turns() -> None:
    after = b.settled(b.with_live(), b.ended(b.SEND, WORKING))
    assert after.one(type(b.TALK)).turns == b.TALK.turns + 1


def test_a_word_from_a_fenced_conversation_is_shown_not_obeyed() -> None:
    snapshot = b.with_task(b.with_live(), lease_number=2)
    after = b.settled(snapshot, b.ended(b.SEND, COMPLETE))
    assert FactKind.LATE_WORD in after.told
    assert after.task.state is TaskState.ACTIVE
    assert not after.wakes


@pytest.mark.parametrize("signal", [WORKING, COMPLETE, "status: blocked\nsummary: s\nneeds: a colour", ""])
@pytest.mark.parametrize("cut", [None, Cut.INTERRUPT])
def test_a_task_that_is_over_gets_no_wake_and_no_question(signal: str, cut: Cut | None) -> None:
    snapshot = b.cancelled(b.with_live())
    after = b.settled(snapshot, b.ended(b.SEND, *([signal] if signal else []), cut=cut))
    assert after.one(Attempt).state is AttemptState.ENDED
    assert not after.wakes
    assert not after.asked
    assert after.task.state is TaskState.CANCELLED
    assert after.task.faults == 0


@pytest.mark.parametrize("mark", [Mark.REVOKED, Mark.FAILED, Mark.BEGUN, Mark.DAMAGED])
def test_no_end_of_a_stopped_tasks_turn_leads_anywhere(mark: Mark) -> None:
    after = b.settled(b.cancelled(b.with_live(b.SEND)), b.seen_of(b.SEND, mark, mendable=True))
    assert not after.wakes
    assert not after.asked
    assert after.one(Attempt).state is AttemptState.ENDED


def test_a_stopped_turn_that_cannot_be_ended_is_a_persons_until_it_ends() -> None:
    snapshot = b.cancelled(b.with_live())
    living = b.seen_of(b.SEND, Mark.ACCEPTED, GONE, ALIVE)
    assert b.settled(snapshot, living, now=b.NOW + 59 * b.S).nothing
    after = b.settled(snapshot, living, now=b.NOW + b.MIN)
    assert "could not be ended" in after.asked[0]
    assert not after.wakes
    asked = replace(snapshot, waits=(after.one(Wait),))
    assert b.settled(asked, living, now=b.NOW + b.H).nothing
    over = b.settled(asked, b.seen_of(b.SEND, Mark.ACCEPTED), now=b.NOW + b.H)
    assert over.one(Wait).closed_at is not None


# -- progress


def test_durable_progress_is_counted_at_the_end_of_a_turn() -> None:
    snapshot = b.with_task(b.with_live(), progress=Progress(cursor="w0", without=5), faults=2, stalled_at=b.NOW)
    after = b.settled(snapshot, b.ended(b.SEND, WORKING), b.workspace("w1"))
    assert (after.task.progress.without, after.task.faults, after.task.stalled_at) == (0, 0, None)
    assert FactKind.TASK_PROGRESSED in after.told


@pytest.mark.parametrize("without, stalled, fact", [(1, False, None), (2, False, FactKind.TASK_STALL_WARNED),
                                                    (5, True, FactKind.TASK_STALLED)])  # fmt: skip
def test_turns_without_progress_warn_then_pause(without: int, stalled: bool, fact: FactKind | None) -> None:
    snapshot = b.with_task(b.with_live(), progress=Progress(cursor="w1", head="h1", without=without))
    after = b.settled(snapshot, b.ended(b.SEND, "status: working\nsummary: s"), b.workspace("w1"))
    assert (after.task.stalled_at is not None) == stalled
    noted = {FactKind.TASK_STALL_WARNED, FactKind.TASK_STALLED} & set(after.told)
    assert noted == ({fact} if fact else set())


def test_a_claim_is_not_counted_before_it_is_judged() -> None:
    acceptance = Acceptance(AcceptanceKind.CHECK, ("make",))
    snapshot = b.with_task(b.with_live(), acceptance=acceptance, progress=Progress(cursor="w1", head="h1", without=3))
    after = b.settled(snapshot, b.ended(b.SEND, COMPLETE), b.workspace("w1"))
    assert after.task.progress.without == 3


# -- checks and claims

JUDGED = replace(b.claimed(), commands=(b.CHECK,))


def test_a_check_that_exits_zero_completes_the_task_verified() -> None:
    after = b.settled(JUDGED, b.ended(b.CHECK))
    assert after.task.state is TaskState.COMPLETED
    assert after.task.disposition is not None
    assert after.task.disposition.verified
    assert after.command(b.CHECK.id) is CommandState.ACKNOWLEDGED


@pytest.mark.parametrize("fields", [{"exit_code": 1}, {"exit_code": None, "cut": Cut.TIME_LIMIT},
                                    {"exit_code": None, "cut": Cut.KILLED}])  # fmt: skip
def test_a_check_that_fails_is_told_to_the_agent(fields: dict[str, Any]) -> None:
    after = b.settled(JUDGED, b.ended(b.CHECK, **fields))
    assert after.task.claim is None
    assert after.one(Message).kind is MessageKind.CHECK_FAILED
    assert set(after.wakes) == {WakeKind.EVENT}
    assert after.task.progress.without == 1


@pytest.mark.parametrize("tries, asks", [(0, False), (1, False), (2, True)])
@pytest.mark.parametrize("how", ["vanished", "lost", "undone", "cut"])
def test_a_check_without_a_result_is_run_again_a_few_times(tries: int, asks: bool, how: str) -> None:
    snapshot = replace(b.claimed(tries=tries), commands=(b.CHECK,))
    looks = {
        "vanished": b.ended(b.CHECK, exit_code=None, cut=Cut.VANISHED),
        "lost": b.seen_of(b.CHECK, Mark.BEGUN),
        "undone": b.seen_of(b.CHECK, Mark.REVOKED),
        "cut": b.seen_of(b.CHECK, Mark.ACCEPTED),
    }
    after = b.settled(snapshot, looks[how])
    states = {"vanished": "acknowledged", "lost": "released", "undone": "failed", "cut": "released"}
    assert after.command(b.CHECK.id) == states[how]
    assert bool(after.asked) == asks
    assert (after.task.claim is None) == asks
    assert not after.wakes


def test_a_check_in_doubt_is_released_once_it_is_gone() -> None:
    doubtful = replace(b.CHECK, state=CommandState.AMBIGUOUS, revision=2)
    after = b.settled(replace(b.claimed(), commands=(doubtful,)), b.seen_of(doubtful, Mark.DAMAGED))
    assert after.command(b.CHECK.id) is CommandState.RELEASED


def test_a_check_that_cannot_be_started_is_a_persons_and_not_run_for_ever() -> None:
    after = b.settled(JUDGED, b.seen_of(b.CHECK, Mark.FAILED, mendable=True, reason="there is no make"))
    assert "there is no make" in after.asked[0]
    assert after.task.claim is None


def test_a_check_of_a_task_that_ended_meanwhile_says_nothing() -> None:
    over = b.with_task(replace(b.IDLE, commands=(b.CHECK,)), state=TaskState.COMPLETED, ended_at=b.NOW)
    after = b.settled(over, b.ended(b.CHECK, exit_code=1))
    assert after.command(b.CHECK.id) is CommandState.ACKNOWLEDGED
    assert not after.wakes
    assert b.settled(over, b.seen_of(b.CHECK, Mark.BEGUN)).command(b.CHECK.id) is CommandState.RELEASED


def test_a_file_or_commit_is_judged_by_looking() -> None:
    claim = b.claimed(AcceptanceKind.FILE)
    assert b.settled(claim, b.acceptance(True)).task.state is TaskState.COMPLETED
    refuted = b.settled(claim, b.acceptance(False))
    assert (refuted.task.claim, set(refuted.wakes)) == (None, {WakeKind.EVENT})
    assert b.settled(claim, b.acceptance(None)).nothing
    assert "cannot be told" in b.settled(claim, b.acceptance(None), now=b.NOW + POLICY.check_limit).asked[0]
    assert b.settled(b.IDLE, b.acceptance(True)).nothing


def test_a_refuted_claim_of_a_plain_program_is_a_persons_unless_it_said_complete() -> None:
    claim = b.with_task(JUDGED, agent=b.PLAIN)
    asked = b.settled(replace(claim, last=replace(b.LAST, signal="none")), b.ended(b.CHECK, exit_code=1))
    assert asked.asked
    assert not asked.wakes
    said = b.settled(replace(claim, last=replace(b.LAST, signal="complete")), b.ended(b.CHECK, exit_code=1))
    assert set(said.wakes) == {WakeKind.EVENT}


# -- waits and checkpoints


def test_a_wait_that_came_true_closes_and_wakes() -> None:
    after = b.settled(b.with_wait(WaitKind.TIME, until=b.NOW))
    assert after.one(Wait).closed_at == b.NOW
    assert set(after.wakes) == {WakeKind.DEPENDENCY}


def test_a_wait_that_cannot_come_true_becomes_a_question() -> None:
    other = TaskId("t-other")
    snapshot = replace(
        b.with_wait(WaitKind.TASK, subject=other, question="the parser"), others={other: TaskState.FAILED}
    )
    after = b.settled(snapshot)
    assert [wait.kind for wait in after.all(Wait)] == [WaitKind.TASK, WaitKind.HUMAN]
    assert "is failed" in after.asked[0]
    assert "the parser" in after.asked[0]
    assert not after.wakes


def test_completing_and_a_wait_that_comes_true_in_one_look() -> None:
    snapshot = b.with_wait(WaitKind.TIME, b.with_live(), until=b.NOW)
    after = b.settled(snapshot, b.ended(b.SEND, COMPLETE))
    assert after.task.state is TaskState.COMPLETED
    assert not after.wakes
    other = TaskId("t-other")
    hopeless = replace(b.with_wait(WaitKind.TASK, b.with_live(), subject=other), others={other: TaskState.CANCELLED})
    assert not b.settled(hopeless, b.ended(b.SEND, COMPLETE)).asked


def test_a_checkpoint_is_stored_once() -> None:
    worked = b.with_task(b.with_live(), active_since_report=22 * b.MIN)
    after = b.settled(worked)
    assert after.one(Message).kind is MessageKind.CHECKPOINT
    assert (after.task.checkpoints, after.task.active_since_report) == (1, 22 * b.MIN)
    assert b.settled(b.with_message(after.one(Message), worked)).nothing


def test_a_checkpoint_that_was_answered_in_the_same_look_is_not_asked() -> None:
    worked = b.with_task(b.with_live(), active_since_report=22 * b.MIN)
    after = b.settled(worked, b.ended(b.SEND, WORKING, reports=("completed: it",)))
    assert not after.all(Message)
    complete = b.settled(worked, b.ended(b.SEND, COMPLETE))
    assert not [m for m in complete.all(Message) if m.kind is MessageKind.CHECKPOINT]


# -- interruptions


def test_an_interruption_that_ended_something_is_settled() -> None:
    snapshot = replace(b.cancelled(b.with_live()), commands=(b.HALT,))
    after = b.settled(snapshot, b.ended(b.HALT))
    assert after.command(b.HALT.id) is CommandState.ACKNOWLEDGED
    failed = b.settled(snapshot, b.seen_of(b.HALT, Mark.FAILED))
    assert failed.command(b.HALT.id) is CommandState.FAILED
    lost = b.settled(snapshot, b.seen_of(b.HALT, Mark.BEGUN))
    assert lost.command(b.HALT.id) is CommandState.RELEASED
    assert lost.one(Command, lambda c: c.kind is CommandKind.INTERRUPT).verdict == "lost, and repeatable"


def test_every_commit_names_the_run_it_was_decided_under() -> None:
    for snapshot, look in ((b.with_live(b.SEND), b.seen_of(b.SEND, Mark.BEGUN)), (JUDGED, b.ended(b.CHECK))):
        after = b.settled(snapshot, look)
        assert after.commit is not None
        assert [guard.table for guard in after.commit.guards] == ["run"]
        assert after.task.revision == b.TASK.revision + 1


def test_a_missing_workspace_counts_nothing() -> None:
    snapshot: Snapshot = b.with_task(b.with_live(), progress=Progress(cursor="w1", without=4))
    after = b.settled(
        snapshot, b.ended(b.SEND, "status: working\nsummary: s"), b.workspace(None, WorkspaceKind.MISSING)
    )
    assert after.task.progress.without == 4


def test_a_steer_that_carried_no_words_any_more_asks_for_no_turn() -> None:
    """Its message may have been dropped meanwhile: then nothing is left that would want one."""
    snapshot = replace(b.IDLE, messages=(), wakes=())
    draft = Draft(snapshot, b.NOW, b.new)
    settle.untaken(draft, replace(b.SUBMITTED, kind=CommandKind.STEER))
    assert draft.commit() is None
