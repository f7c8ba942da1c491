"""Wakes coalesce and take precedence; spreads are pure; checkpoints count active work; caps belong to a task or run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import builders as b

from tenuto.core import wake
from tenuto.model.ids import TaskId
from tenuto.model.message import MessageKind
from tenuto.model.policy import POLICY
from tenuto.model.work import WaitKind, WakeKind


def test_wakes_of_a_kind_coalesce_to_the_earliest_and_keep_what_was_asked() -> None:
    snapshot = b.with_wake(WakeKind.MANUAL, in_=b.H, anyway=True)
    (old,) = snapshot.wakes
    later = wake.added(snapshot, WakeKind.MANUAL, "again", b.NOW + 2 * b.H, b.NOW, b.new)
    assert (later.id, later.revision, later.not_before, later.anyway) == (old.id, 2, b.NOW + b.H, True)
    sooner = wake.added(snapshot, WakeKind.MANUAL, "again", b.NOW, b.NOW, b.new, asked_by="sam")
    assert (sooner.not_before, sooner.asked_by, sooner.reason) == (b.NOW, "sam", "again")
    other = wake.added(snapshot, WakeKind.IDLE, "idle", b.NOW, b.NOW, b.new)
    assert (other.revision, other.anyway) == (1, False)
    assert other.id != old.id


def test_precedence_names_every_kind_once() -> None:
    assert sorted(wake.PRECEDENCE) == sorted(WakeKind)
    snapshot = b.IDLE
    for kind in reversed(wake.PRECEDENCE):
        snapshot = b.with_wake(kind, snapshot)
    assert [row.kind for row in wake.due(snapshot, b.NOW)] == list(wake.PRECEDENCE)


def test_a_wake_is_due_at_its_time_and_when_the_clock_went_back() -> None:
    snapshot = b.with_wake(in_=b.MIN)
    assert not wake.due(snapshot, b.NOW)
    assert wake.due(snapshot, b.NOW + b.MIN)
    assert wake.due(snapshot, b.NOW - b.S), "it was made later than now: the clock went back"
    assert wake.earliest(snapshot) == b.NOW + b.MIN
    assert wake.earliest(b.IDLE) is None


def test_only_a_request_that_is_due_counts_as_asked() -> None:
    assert wake.asked(b.with_wake(WakeKind.IDLE), b.NOW) is None
    assert wake.asked(b.with_wake(WakeKind.MANUAL, in_=b.S), b.NOW) is None
    assert wake.asked(b.with_wake(WakeKind.MANUAL), b.NOW) is not None


@given(st.text(min_size=1), st.integers(0, 10**6), st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=1)))
def test_jitter_is_pure_and_bounded(task: str, sequence: int, width: timedelta) -> None:
    first = wake.jitter(TaskId(task), sequence, width)
    assert first == wake.jitter(TaskId(task), sequence, width)
    assert timedelta(0) <= first <= width


def test_jitter_spreads() -> None:
    spread = {wake.jitter(TaskId(f"t-{n}"), s, b.MIN) for n in range(20) for s in range(20)}
    assert len(spread) == 400
    assert max(spread) - min(spread) > 55 * b.S


@given(st.text(min_size=1), st.integers(0, 1000))
def test_a_checkpoint_is_due_after_20_to_21_minutes(task: str, sequence: int) -> None:
    assert 20 * b.MIN <= wake.checkpoint_threshold(TaskId(task), sequence, POLICY) <= 21 * b.MIN


def test_active_work_includes_the_live_turn_and_never_runs_backwards() -> None:
    snapshot = b.with_task(b.with_live(), active_since_report=10 * b.MIN)
    assert wake.active_work(snapshot, b.NOW) == 11 * b.MIN
    assert wake.active_work(snapshot, b.NOW - b.H) == 10 * b.MIN
    assert wake.active_work(b.with_task(active_since_report=b.MIN), b.NOW) == b.MIN
    reported = b.with_task(b.with_live(), active_since_report=wake.active_from_now(b.with_live(), b.NOW))
    assert wake.active_work(reported, b.NOW) == timedelta(0)
    assert wake.active_work(reported, b.NOW + 5 * b.MIN) == 5 * b.MIN
    assert wake.active_work(reported, b.NOW - b.H) == timedelta(0)
    assert wake.active_from_now(b.IDLE, b.NOW) == timedelta(0)


def test_the_moment_of_the_next_checkpoint() -> None:
    threshold = wake.checkpoint_threshold(b.TASK.id, 0, POLICY)
    assert wake.checkpoint_at(b.with_live(), b.NOW) == b.NOW + threshold - b.MIN
    assert wake.checkpoint_at(b.with_task(b.with_live(), active_since_report=b.H), b.NOW) == b.NOW
    assert wake.checkpoint_at(b.IDLE, b.NOW) is None
    waiting = b.with_message(b.a_message(MessageKind.CHECKPOINT), b.with_live())
    assert wake.checkpoint_at(waiting, b.NOW) is None
    assert not wake.checkpoint_due(b.with_task(waiting, active_since_report=b.H), b.NOW)
    assert wake.checkpoint_due(b.with_live(), b.NOW + threshold - b.MIN)
    assert not wake.checkpoint_due(b.with_live(), b.NOW + threshold - b.MIN - b.S)


def test_the_waits_between_tries_grow_and_end() -> None:
    steps = [wake.unsent_delay(b.TASK.id, row, POLICY) for row in range(1, 8)]
    for step, least in zip(steps, [5, 15, 60, 300, 300, 300, 300], strict=True):
        assert least * b.S <= step <= least * 1.25 * b.S
    assert [wake.unsent_for(row, POLICY) for row in (1, 2, 3, 4, 5, 6)] == [
        seconds * b.S for seconds in (0, 5, 20, 80, 380, 680)
    ]


@pytest.mark.parametrize(
    "own, runs, spent, reached",
    [
        (None, None, 99, False),
        (2, None, 1, False),
        (2, None, 2, True),
        (None, 3, 3, True),
        (5, 3, 4, False),
        (2, 9, 2, True),
    ],
)
def test_the_cap(own: int | None, runs: int | None, spent: int, reached: bool) -> None:
    snapshot = b.with_policy(b.with_task(max_attempts=own, attempts=spent), max_attempts=runs)
    assert wake.cap_reached(snapshot) == reached


def test_an_open_cap_wait_is_known() -> None:
    assert wake.cap_wait_open(b.with_wait(WaitKind.CAP))
    assert not wake.cap_wait_open(b.with_wait(WaitKind.HUMAN))
    assert wake.cap_of(replace(b.IDLE)) is None
