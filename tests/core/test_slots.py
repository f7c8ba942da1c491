"""The line for slots: its order, whom it holds up, and what an active task does with the slot it has."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import builders as b

from tenuto.core import slots
from tenuto.core.slots import Occupancy
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import InLine
from tenuto.model.work import Claim

NOW = b.NOW
MINUTE = timedelta(minutes=1)
PENDING = b.with_task(state=TaskState.PENDING)


def waiting(name: str, age: int, *, returns: bool = False, inherits: bool = False, giver: str | None = None) -> InLine:
    made = NOW - age * MINUTE
    return InLine(
        TaskId(name), made if returns else None, made, NOW, inherits, None if giver is None else TaskId(giver)
    )


def test_successors_go_first_then_who_returns_then_the_oldest() -> None:
    line = [
        waiting("young", 1),
        waiting("old", 9),
        waiting("back", 2, returns=True),
        waiting("heir", 0, inherits=True),
        waiting("too-soon", 30, inherits=True, giver="parent"),
    ]
    assert [one.task_id for one in slots.in_order(line)] == ["heir", "back", "old", "young", "too-soon"]
    assert slots.next_up(line, 2) == ("heir", "back")
    assert slots.next_up(line, 9) == ("heir", "back", "old", "young")
    assert slots.next_up(line, 0) == slots.next_up(line, -1) == ()


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), min_size=1, max_size=12), st.integers(0, 6)
)
def test_exactly_as_many_may_start_as_slots_are_free(people: list[tuple[int, bool, bool]], free: int) -> None:
    line = tuple(
        waiting(f"t{n}", age, returns=returns, giver="parent" if bound else None, inherits=bound)
        for n, (age, returns, bound) in enumerate(people)
    )
    base = PENDING
    ready = [one for one in line if one.giver is None]
    starting = [
        one.task_id
        for one in line
        if slots.may_start(
            replace(base, task=replace(base.task, id=one.task_id), line=line, slots=10, slots_used=10 - free)
        )
    ]
    assert len(starting) == min(free, len(ready))
    assert set(starting) == set(slots.next_up(line, free))


def test_who_is_not_looked_at_any_more_holds_up_nobody() -> None:
    stuck = replace(waiting("stuck", 9), look_at=NOW - slots.FORGOTTEN - MINUTE)
    gone = replace(waiting("gone", 9), look_at=None)
    base = PENDING
    me = InLine(base.task.id, None, NOW, NOW)
    seen = replace(base, line=(stuck, gone, me), slots=1, slots_used=0)
    assert slots.may_start(seen)
    assert not slots.may_start(replace(seen, line=(waiting("fresh", 9), me)))


@pytest.mark.parametrize(
    ("said", "stored", "comes"),
    [(True, False, True), (False, True, False), (None, True, True), (None, False, False), (None, None, False)],
)
def test_what_is_said_goes_before_what_the_parent_has(said: bool | None, stored: bool | None, comes: bool) -> None:
    assert slots.inherited(said, stored) is comes


def test_what_a_task_does_with_its_slot() -> None:
    task = replace(b.IDLE.task, attempts=0)
    live, sent = replace(b.LIVE, live_at=NOW), b.ACKNOWLEDGED

    def word(task_: object = task, live_: object = live, sent_: object = sent, later: timedelta = MINUTE) -> Occupancy:
        return slots.occupancy(task_, live_, sent_, POLICY, NOW + later).occupancy  # type: ignore[arg-type]

    assert word() is Occupancy.WORKING
    assert word(sent_=replace(sent, state=CommandState.ARMED)) is Occupancy.LAUNCHING
    assert word(sent_=replace(sent, state=CommandState.AMBIGUOUS)) is Occupancy.HUNG
    assert word(later=POLICY.turn_limit + POLICY.interrupt_grace + MINUTE) is Occupancy.HUNG
    assert word(live_=None, sent_=None) is Occupancy.LAUNCHING
    assert word(replace(task, attempts=2, waiting_since=NOW), None, None) is Occupancy.RESTING
    claimed = replace(task, claim=Claim("abc", "done", None, NOW))
    assert word(claimed) is Occupancy.FINISHED
    assert not slots.occupancy(claimed, live, sent, POLICY, NOW).counts
    assert not slots.holds(claimed)
    signalled = replace(task, ready_at=NOW, ready_note="all done")
    assert word(signalled) is Occupancy.FINISHED
    assert slots.occupancy(signalled, live, sent, POLICY, NOW).counts


def test_only_a_spawn_that_never_started_outlives_its_place_in_line() -> None:
    task = replace(PENDING.task, started_at=None, spawned_by="operator", queued_at=NOW)
    late = NOW + POLICY.pending_life
    assert slots.expired(task, POLICY, late)
    assert not slots.expired(task, POLICY, late - MINUTE)
    for other in (
        replace(task, spawned_by=None),
        replace(task, started_at=NOW),
        replace(task, queued_at=None),
    ):
        assert not slots.expired(other, POLICY, late)
