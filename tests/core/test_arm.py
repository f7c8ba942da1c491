"""Writing ahead: what one commit holds before anything is done."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import arm
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Continue, Rung
from tenuto.model.evidence import Sample, WorkspaceFacts, WorkspaceKind
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import AttemptState, CommandState, DeliveryState, LeaseState, TaskState
from tenuto.model.message import Message, MessageKind
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Role, Snapshot, Token
from tenuto.model.work import Agent, Progress, Standing, Text, Wait, WaitKind, Wake, WakeKind

ID = CommandId("c-1")
PROMPT = "[tenuto:c-1]\nGo on."
BASE = WorkspaceFacts(WorkspaceKind.GIT, head="h0", cursor="w0")


def armed(
    snapshot: Snapshot, intent: Continue | None = None, *, carried: tuple[Any, ...] = (), **more: Any
) -> arm.Written | None:
    world = b.see(snapshot, **more)
    return arm.turn(world, intent or Continue(WakeKind.IDLE), ID, PROMPT, carried, "digest", BASE, b.NOW, b.new)


def read(written: arm.Written | None) -> b.After:
    assert written is not None
    return b.After(written.commit)


def test_a_turn_is_written_whole() -> None:
    snapshot = b.with_wake(WakeKind.MANUAL, b.with_wake(WakeKind.IDLE), anyway=True)
    after = read(armed(snapshot, Continue(WakeKind.MANUAL, anyway=True)))
    attempt, command, text, token = after.one(Attempt), after.one(Command), after.one(Text), after.one(Token)
    assert (attempt.number, attempt.state, attempt.reason, attempt.anyway) == (
        2,
        AttemptState.LIVE,
        WakeKind.MANUAL,
        True,
    )
    assert (attempt.lease_number, attempt.idempotency_key) == (1, f"{b.TASK.id}/2")
    assert (command.id, command.state, command.epoch, command.attempt_id) == (ID, CommandState.ARMED, 1, attempt.id)
    assert command.scopes == (f"task:{b.TASK.id}", f"conversation:{b.TALK.identity}")
    assert (text.body, command.digest) == (PROMPT, hashlib.sha256(PROMPT.encode()).hexdigest())
    assert (token.role, token.digest, token.lease_number) == (Role.AGENT, "digest", 1)
    assert command.fence == b.found(snapshot).fence == after.one(Sample).fence
    assert after.task.attempts == b.TASK.attempts + 1
    assert (after.task.waiting_since, after.task.last_served_at) == (None, b.NOW)
    assert after.task.look_at == b.NOW + POLICY.turn_limit + POLICY.interrupt_grace
    assert {wake.consumed_by for wake in after.all(Wake)} == {attempt.id}
    assert after.one(Conversation).expires_at == b.NOW + POLICY.lease_life
    commit = after.commit
    assert commit is not None
    assert commit.holds == tuple((scope, ID) for scope in command.scopes)
    assert commit.valid_until == b.NOW + POLICY.arm_within
    assert {(guard.table, guard.revision) for guard in commit.guards} == {("run", 1), ("registry", 1)}


def test_wakes_of_later_stay() -> None:
    snapshot = b.with_wake(WakeKind.LIMIT, b.with_wake(), in_=b.H)
    after = read(armed(snapshot))
    assert [wake.kind for wake in after.all(Wake)] == [WakeKind.IDLE]


def test_only_what_waits_rides() -> None:
    waiting = b.a_message()
    later = b.a_message(not_before=b.NOW + b.H, state=DeliveryState.RETRY_WAIT)
    spaced = b.a_message(not_before=b.NOW + b.H)
    tried = b.a_message(state=DeliveryState.RETRY_WAIT)
    riding = b.a_message(state=DeliveryState.CARRIED, carried_by=b.SEND.id)
    doubtful = b.a_message(state=DeliveryState.AMBIGUOUS)
    back = b.a_message(not_before=b.NOW + b.H, created_at=b.NOW + b.H)
    snapshot = b.IDLE
    for message in (waiting, later, spaced, tried, riding, doubtful, back):
        snapshot = b.with_message(message, snapshot)
    may = arm.carries_now(b.see(snapshot), b.NOW)
    assert may == (waiting.id, spaced.id, tried.id, back.id), "the spacing of words holds for a turn under way only"
    after = read(armed(snapshot, carried=may[:1]))
    carried = after.one(Message)
    assert (carried.id, carried.state, carried.carried_by, carried.tries) == (waiting.id, DeliveryState.CARRIED, ID, 1)


def test_a_checkpoint_that_rides_starts_the_interval_again() -> None:
    asks = b.a_message(MessageKind.CHECKPOINT)
    snapshot = b.with_task(b.with_message(asks), active_since_report=25 * b.MIN)
    assert read(armed(snapshot, carried=(asks.id,))).task.active_since_report == timedelta(0)
    assert read(armed(snapshot)).task.active_since_report == 25 * b.MIN


def test_the_baseline_is_taken_before_the_first_turn_only() -> None:
    assert read(armed(b.IDLE)).task.progress.cursor == "w0"
    assert read(armed(b.with_task(progress=Progress(cursor="w9")))).task.progress.cursor == "w9"


def test_the_first_turn_is_number_one() -> None:
    assert read(armed(replace(b.IDLE, last=None))).one(Attempt).number == 1


@pytest.mark.parametrize(
    "snapshot, epoch",
    [
        (replace(b.IDLE, conversation=None), 1),
        (replace(b.IDLE, conversation=replace(b.TALK, lease_number=None)), 1),
        (replace(b.IDLE, conversation=replace(b.TALK, expires_at=b.NOW)), 1),
        (b.IDLE, None),
    ],
)
def test_nothing_is_armed_without_a_lease_or_an_epoch(snapshot: Snapshot, epoch: int | None) -> None:
    assert armed(snapshot, epoch=epoch) is None
    if epoch is None:
        assert arm.check(b.see(b.claimed(), epoch=None), b.NOW, b.new) is None
        assert arm.interrupt(b.see(b.with_live(), epoch=None), b.LIVE.id, b.NOW, b.new) is None


def test_a_check_holds_its_own_scope() -> None:
    written = arm.check(b.see(b.claimed()), b.NOW, b.new)
    command = read(written).one(Command)
    assert (command.kind, command.scopes, command.attempt_id) == (CommandKind.CHECK, (f"check:{b.TASK.id}",), b.LAST.id)
    assert written is not None
    assert written.attempt is None
    assert written.commit.holds == ((command.scopes[0], command.id),)
    assert arm.check(b.see(b.IDLE), b.NOW, b.new) is None
    assert read(arm.check(b.see(replace(b.claimed(), last=None)), b.NOW, b.new)).one(Command).attempt_id is None


def test_an_interruption_goes_to_the_executor_that_carries_the_turn() -> None:
    elsewhere = replace(b.ACKNOWLEDGED, executor="played")
    written = arm.interrupt(b.see(b.cancelled(b.with_live(elsewhere))), b.LIVE.id, b.NOW, b.new)
    command = read(written).one(Command)
    assert (command.executor, command.scopes) == ("played", (f"interrupt:{b.LIVE.id}",))
    assert read(arm.check(b.see(replace(b.claimed(), conversation=None)), b.NOW, b.new)).one(Command).executor == "host"


def test_the_claim_of_a_chat_in_a_page_is_checked_by_the_host() -> None:
    agent = Agent("lab", ("chat",), resumable=True, on="ext:browser")
    snapshot = b.claimed()
    snapshot = replace(snapshot, task=replace(snapshot.task, agent=agent))
    written = arm.check(b.see(snapshot), b.NOW, b.new, "here:1:there")
    assert written is not None
    assert (written.command.executor, written.command.place) == ("host", "here:1:there")


# -- preparations


def opened(snapshot: Snapshot, now: Any = b.NOW) -> b.After:
    commit = arm.open_conversation(b.see(snapshot, now=now), "host", now, b.new)
    assert isinstance(commit, Commit), commit
    return b.After(commit)


def test_a_first_conversation_claims() -> None:
    after = opened(b.with_task(replace(b.IDLE, conversation=None), lease_number=0))
    talk = after.one(Conversation)
    assert (talk.state, talk.lease_number, after.task.lease_number) == (LeaseState.ACTIVE, 1, 1)
    assert (talk.parent, talk.root) == (None, talk.id)


def test_an_expired_one_claims_again_and_a_cut_one_is_left() -> None:
    late = b.NOW + POLICY.lease_life
    again = opened(b.IDLE, late).one(Conversation)
    assert (again.id, again.lease_number) == (b.TALK.id, 2)
    cut = b.with_task(replace(b.IDLE, last=replace(b.LAST, outcome="interrupted")), standing=Standing.CUT_SHORT)  # type: ignore[arg-type]
    old, fresh = opened(cut, late).all(Conversation)
    if old.id != b.TALK.id:
        old, fresh = fresh, old
    assert (old.state, fresh.state, fresh.lease_number) == (LeaseState.SUPERSEDED, LeaseState.ACTIVE, 2)
    assert (fresh.parent, fresh.root) == (b.TALK.id, b.TALK.root)
    assert len(opened(b.IDLE, b.NOW - b.DAY).all(Conversation)) == 2, "a clock that went back opens another"


def test_no_conversation_is_opened_for_a_task_that_is_over() -> None:
    outcome = arm.open_conversation(b.see(b.with_task(state=TaskState.FAILED)), "host", b.NOW, b.new)
    assert isinstance(outcome, Because)
    assert outcome.rung is Rung.LEASE


def written(commit: Commit | None) -> b.After:
    assert commit is not None
    return b.After(commit)


def test_slots_are_taken_and_given_back() -> None:
    pending = b.with_task(state=TaskState.PENDING, started_at=None, waiting_since=None)
    started = written(arm.start(b.see(pending), b.NOW, b.new)).task
    assert (started.state, started.started_at, started.waiting_since) == (TaskState.ACTIVE, b.NOW, b.NOW)
    again = written(arm.start(b.see(b.with_task(state=TaskState.PENDING)), b.NOW, b.new)).task
    assert again.started_at == b.TASK.started_at
    back = written(arm.give_slot_back(b.see(b.IDLE), b.NOW, b.new, b.NOW + b.H)).task
    assert (back.state, back.waiting_since, back.look_at) == (TaskState.PENDING, None, b.NOW + b.H)


def test_looks_questions_and_caps_are_rows() -> None:
    world = b.see(b.IDLE)
    sample = written(arm.sampled(world, b.NOW, b.new)).one(Sample)
    assert (sample.fence, sample.members) == (world.found.fence, world.found.members)
    assert written(arm.cap_wait(world, "spent", "t max-cost", b.NOW, b.new)).one(Wait).subject == "t max-cost"
    asked = written(arm.ask(world, "too long", b.NOW, b.new)).one(Wait)
    assert (asked.kind, asked.question) == (WaitKind.HUMAN, "too long")


def test_a_rest_is_written_when_it_is_news() -> None:
    world: Seen = b.see(b.IDLE)
    because = Because(Rung.MANUAL, "nobody asked", "ask")
    assert arm.rest(world, None, None, b.NOW, b.new) is None
    moved = written(arm.rest(world, b.NOW + b.H, None, b.NOW, b.new))
    assert (moved.task.look_at, moved.told) == (b.NOW + b.H, [])
    assert written(arm.rest(world, None, because, b.NOW, b.new)).told == ["decision.rested"]
