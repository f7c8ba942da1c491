"""The lease protocol: one holder, numbers that fence, and a clock that may go back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support import builders as b

from tenuto.core import tenancy
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Rung
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import LeaseState, TaskState
from tenuto.model.policy import POLICY

FREE = replace(b.TASK, lease_number=0)
LIFE = POLICY.lease_life


def candidate(parent: Conversation | None = None) -> Conversation:
    return tenancy.register(b.TASK, "elsewhere", "host", b.NOW, b.new, parent)


def held() -> tenancy.Tenure:
    claimed = tenancy.claim(FREE, candidate(), None, POLICY, b.NOW)
    assert isinstance(claimed, tenancy.Tenure)
    return claimed


def refused(outcome: object) -> str:
    assert isinstance(outcome, Because)
    assert outcome.rung is Rung.LEASE
    assert outcome.change
    return outcome.sentence


def test_a_candidate_holds_nothing() -> None:
    talk = candidate()
    assert (talk.state, talk.lease_number, talk.expires_at) == (LeaseState.CANDIDATE, None, None)
    assert (talk.parent, talk.root) == (None, talk.id)


def test_lineage_is_kept() -> None:
    first = candidate()
    second = candidate(first)
    third = candidate(second)
    assert (second.parent, second.root) == (first.id, first.id)
    assert (third.parent, third.root) == (second.id, first.id)


def test_claiming_gives_the_next_number_and_a_life() -> None:
    tenure = held()
    assert (tenure.task.lease_number, tenure.holder.lease_number) == (1, 1)
    assert (tenure.holder.state, tenure.holder.expires_at) == (LeaseState.ACTIVE, b.NOW + LIFE)


def test_nobody_claims_what_somebody_holds() -> None:
    holder = held().holder
    assert "another conversation" in refused(tenancy.claim(b.TASK, candidate(), holder, POLICY, b.NOW))
    late = b.NOW + 2 * LIFE
    assert "another conversation" in refused(tenancy.claim(b.TASK, candidate(), holder, POLICY, late))
    assert "already" in refused(tenancy.claim(b.TASK, holder, holder, POLICY, b.NOW))


def test_the_same_conversation_claims_again_after_expiry_with_a_new_number() -> None:
    tenure = held()
    again = tenancy.claim(tenure.task, tenure.holder, tenure.holder, POLICY, b.NOW + LIFE)
    assert isinstance(again, tenancy.Tenure)
    assert (again.holder.id, again.holder.lease_number) == (tenure.holder.id, 2)
    assert tenancy.late(again.task, 1)
    assert not tenancy.late(again.task, 2)


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED])
def test_nothing_is_claimed_of_a_task_that_is_over(state: TaskState) -> None:
    over = replace(FREE, state=state)
    assert state in refused(tenancy.claim(over, candidate(), None, POLICY, b.NOW))
    assert state in refused(tenancy.take_over(over, candidate(), held().holder, POLICY, b.NOW, proven_over=True))
    assert tenancy.late(over, 0)


def test_a_conversation_of_another_task_is_refused() -> None:
    other = replace(candidate(), task_id=TaskId("t-other"))
    assert "another task" in refused(tenancy.claim(FREE, other, None, POLICY, b.NOW))


def test_a_heartbeat_prolongs_what_lives_and_revives_nothing() -> None:
    holder = held().holder
    beat = tenancy.heartbeat(holder, 1, POLICY, b.NOW + b.H)
    assert isinstance(beat, Conversation)
    assert beat.expires_at == b.NOW + b.H + LIFE
    assert "run out" in refused(tenancy.heartbeat(holder, 1, POLICY, b.NOW + LIFE))
    assert "later lease" in refused(tenancy.heartbeat(holder, 2, POLICY, b.NOW))
    superseded = replace(holder, state=LeaseState.SUPERSEDED)
    assert "later lease" in refused(tenancy.heartbeat(superseded, 1, POLICY, b.NOW))


Step = Callable[[Conversation], object]


@pytest.mark.parametrize(
    "step",
    [
        lambda holder: tenancy.heartbeat(holder, 1, POLICY, b.NOW - b.H),
        lambda holder: tenancy.claim(FREE, holder, None, POLICY, b.NOW - b.H),
        lambda holder: tenancy.claim(FREE, candidate(), None, POLICY, b.NOW - b.H),
    ],
)
def test_a_clock_that_went_back_refuses(step: Step) -> None:
    assert "clock" in refused(step(held().holder))


def test_a_clock_behind_the_last_renewal_refuses_and_a_small_step_does_not() -> None:
    beat = tenancy.heartbeat(held().holder, 1, POLICY, b.NOW + b.H)
    assert isinstance(beat, Conversation)
    assert "clock" in refused(tenancy.heartbeat(beat, 1, POLICY, b.NOW + b.MIN))
    assert isinstance(tenancy.heartbeat(beat, 1, POLICY, b.NOW + b.H - b.S), Conversation)


def test_take_over_supersedes_and_claims_in_one_step() -> None:
    tenure, new = held(), candidate()
    assert "not handed" in refused(tenancy.take_over(tenure.task, new, tenure.holder, POLICY, b.NOW))
    offered = tenancy.offer(tenure.holder, new, b.NOW)
    assert isinstance(offered, Conversation)
    for holder, now, over in (
        (offered, b.NOW, False),
        (tenure.holder, b.NOW + LIFE, False),
        (tenure.holder, b.NOW, True),
    ):
        taken = tenancy.take_over(tenure.task, new, holder, POLICY, now, proven_over=over)
        assert isinstance(taken, tenancy.Tenure)
        old, fresh = taken.conversations
        assert (old.state, old.ended_at, fresh.state) == (LeaseState.SUPERSEDED, now, LeaseState.ACTIVE)
        assert (fresh.lease_number, taken.task.lease_number) == (2, 2)
        assert tenancy.late(taken.task, old.lease_number)


def test_a_take_over_that_cannot_claim_supersedes_nobody() -> None:
    other = replace(candidate(), task_id=TaskId("t-other"))
    assert refused(tenancy.take_over(b.TASK, other, held().holder, POLICY, b.NOW, proven_over=True))


def test_only_the_holder_offers_and_only_to_a_candidate() -> None:
    holder = held().holder
    assert "only the holder" in refused(tenancy.offer(candidate(), candidate(), b.NOW))
    assert "candidate" in refused(tenancy.offer(holder, holder, b.NOW))
    assert "candidate" in refused(tenancy.offer(holder, replace(candidate(), task_id=TaskId("t-x")), b.NOW))


def test_ending_a_lease_ends_no_task() -> None:
    holder = held().holder
    assert tenancy.end(holder, b.NOW).state is LeaseState.ENDED
    assert tenancy.end(holder, b.NOW, abandoned=True).state is LeaseState.ABANDONED
