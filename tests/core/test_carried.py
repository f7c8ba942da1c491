"""What was said to a task ends: it is delivered, told again, or dropped with the task. And old looks do not count."""

from __future__ import annotations

from dataclasses import replace

from tests.support.builders import (
    DOUBTFUL,
    HALT,
    IDLE,
    LAST,
    LIVE,
    MIN,
    NOW,
    SEND,
    SUBMITTED,
    TASK,
    a_message,
    a_wait,
    cancelled,
    found,
    new,
    see,
    seen_of,
    settled,
    with_live,
    with_message,
    with_task,
)

from tenuto.core import control, rungs
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.evidence import Mark, Presence, Sample
from tenuto.model.ids import ReconciliationId
from tenuto.model.lifecycle import CommandState, DeliveryState
from tenuto.model.message import Message, MessageKind
from tenuto.model.reconciliation import Undone
from tenuto.model.work import Standing

CARRIED = a_message(MessageKind.ANSWER, DeliveryState.CARRIED, carried_by=SEND.id)


def states(commit: Commit | None) -> list[DeliveryState]:
    """The states a message goes through in a commit."""
    assert commit is not None
    return [row.state for row in commit.puts if isinstance(row, Message) and row.id == CARRIED.id]


def test_an_answer_in_a_turn_that_was_lost_is_told_again() -> None:
    world = with_message(CARRIED, with_live(SUBMITTED))
    world = replace(world, commands=(SUBMITTED,))
    assert states(settled(world, seen_of(SUBMITTED, Mark.BEGUN)).commit) == [DeliveryState.DEFERRED]


def test_an_answer_releases_a_doubtful_turn_and_what_rode_in_it_is_told_again() -> None:
    lost = replace(LIVE, state=LAST.state, ended_at=NOW, outcome=AttemptOutcome.LOST)
    wait = a_wait(attempt_id=LIVE.id)
    world = replace(with_message(CARRIED), commands=(DOUBTFUL,), last=lost, waits=(wait,))
    outcome = control.answer(world, wait, "go on", "operator", NOW, new)
    assert isinstance(outcome, Commit)
    assert states(outcome) == [DeliveryState.DEFERRED]


def test_an_answer_to_a_turn_says_nothing_of_words_that_nobody_saw_it_take() -> None:
    ended = replace(LIVE, state=LAST.state, ended_at=NOW, outcome=AttemptOutcome.TURN_END)
    words = replace(DOUBTFUL, kind=CommandKind.STEER)
    wait = a_wait(attempt_id=LIVE.id)
    world = replace(with_message(CARRIED), commands=(words,), last=ended, waits=(wait,))
    outcome = control.answer(world, wait, "go on", "operator", NOW, new)
    assert isinstance(outcome, Commit)
    assert states(outcome) == []
    assert not [row for row in outcome.puts if isinstance(row, Command)], "only a verdict on the words themselves does"


def test_what_rode_in_a_turn_that_never_began_is_dropped_with_its_task() -> None:
    world = cancelled(replace(with_message(CARRIED, with_live(SEND)), commands=(SEND,)))
    found = settled(world, seen_of(SEND, Mark.REVOKED))
    assert states(found.commit) == [DeliveryState.RETRY_WAIT, DeliveryState.DROPPED]


def test_looks_from_before_the_last_end_are_no_sign_of_a_changing_workspace() -> None:
    cut = replace(LAST, outcome=AttemptOutcome.INTERRUPTED)
    looks = tuple(
        Sample(ReconciliationId(new("reconciliation")), TASK.id, str(number) * 64, ("last none",), NOW - MIN)
        for number in range(3)
    )
    world = with_task(replace(IDLE, last=cut, samples=looks), standing=Standing.CUT_SHORT)
    because = rungs.fence(see(world), NOW)
    assert because is not None
    assert because.until == NOW


def test_a_verdict_on_an_interruption_says_nothing_of_the_turn_it_was_to_end() -> None:
    doubtful = replace(HALT, revision=2, state=CommandState.AMBIGUOUS)
    world = cancelled(replace(with_live(), commands=(doubtful,)))
    outcome = control.release(world, doubtful, "operator", happened=True, now=NOW, new=new)
    assert isinstance(outcome, Commit)
    assert not [row for row in outcome.puts if isinstance(row, Attempt)]


def test_an_interruption_that_came_to_nothing_is_undone_although_its_target_lives() -> None:
    world = cancelled(replace(with_live(), commands=(HALT,)))
    seen = found(world, seen_of(HALT, Mark.FAILED, agent=Presence.ALIVE))
    assert [type(finding) for finding in seen.findings] == [Undone]
