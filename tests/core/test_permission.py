"""Leave that programs ask: who answers, for what the answer holds, and what happens when nobody does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import permission
from tenuto.core.decide import decide
from tenuto.model.command import Command, CommandKind
from tenuto.model.decision import AnswerAsk, Because, ParkAsks
from tenuto.model.evidence import Asking, Cut, Mark, Observation, Presence
from tenuto.model.ids import CommandId, PermissionId, WaitId
from tenuto.model.lifecycle import CommandState
from tenuto.model.message import Message, MessagePolicy
from tenuto.model.permission import Permission, Verdict
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Wait, WaitKind, Wake, WakeKind

ALIVE, GONE = Presence.ALIVE, Presence.GONE
WISH = Asking("7", "Bash", "make clean", "f" * 64)


def asks(*wishes: Asking) -> Observation:
    """A look at the turn under way, whose program waits with these."""
    return b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, ALIVE, ALIVE, asks=wishes)


def a_row(**fields: Any) -> Permission:
    row = Permission(
        PermissionId("e-1"), 1, b.TASK.id, b.LIVE.id, b.ACKNOWLEDGED.id, "7", "Bash", "make clean", "f" * 64, b.NOW,
        WaitId("w-1"),
    )  # fmt: skip
    return replace(row, **fields)


def with_row(row: Permission, snapshot: Snapshot | None = None, *, wait: bool = True) -> Snapshot:
    base = snapshot or b.with_live()
    open_ = (b.a_wait(WaitKind.PERMISSION, row.question, id=row.wait_id),) if wait else ()
    return replace(base, permissions=(row,), waits=open_)


def answered(snapshot: Snapshot, verdict: Verdict, words: str = "") -> b.After:
    wait = b.a_wait(WaitKind.PERMISSION, "?", id=WaitId("w-1"))
    made = permission.answer(snapshot, wait, verdict, words, "sam", b.NOW, b.new)
    assert not isinstance(made, Because), made
    return b.After(made)


def test_a_question_becomes_a_wait_with_the_very_wish_once() -> None:
    after = b.settled(b.with_live(), asks(WISH))
    row, wait = after.one(Permission), after.one(Wait)
    assert (row.request, row.fingerprint, row.wait_id) == ("7", "f" * 64, wait.id)
    assert wait.kind is WaitKind.PERMISSION
    assert "make clean" in wait.question
    assert wait.attempt_id == b.LIVE.id
    assert not b.settled(with_row(a_row()), asks(WISH)).all(Permission)


def test_what_was_not_seen_says_nothing() -> None:
    assert b.settled(with_row(a_row()), b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, ALIVE, ALIVE)).nothing


@pytest.mark.parametrize(
    ("allow", "deny", "verdict"),
    [
        (("Bash: make *",), (), Verdict.ALLOW),
        (("Bash",), (), Verdict.ALLOW),
        (("*: make *",), ("Bash: * clean",), Verdict.DENY),
        (("Bash: make",), (), None),
        (("Read",), (), None),
    ],
)
def test_rules_of_the_policy(allow: tuple[str, ...], deny: tuple[str, ...], verdict: Verdict | None) -> None:
    after = b.settled(b.with_policy(b.with_live(), allow=allow, deny=deny), asks(WISH))
    assert after.one(Permission).verdict is verdict
    assert len(after.all(Wait)) == (verdict is None)


def test_br_098_nobody_to_ask_is_a_no_at_once_and_never_consent() -> None:
    after = b.settled(b.with_task(b.with_live(), unattended=True), asks(WISH))
    row = after.one(Permission)
    assert (row.verdict, row.answered_by) == (Verdict.DENY, "nobody to ask")
    assert not after.all(Wait)


@pytest.mark.parametrize(
    ("kept", "granted"),
    [
        ({"verdict": Verdict.ALLOW_TASK}, True),
        ({"verdict": Verdict.ALLOW, "parked_at": b.NOW}, True),
        ({"verdict": Verdict.ALLOW}, False),
        ({"verdict": Verdict.ALLOW_TASK, "fingerprint": "0" * 64}, False),
        ({"verdict": Verdict.DENY}, False),
    ],
)
def test_an_answer_of_before_holds_for_the_very_same_wish(kept: dict[str, Any], granted: bool) -> None:
    before = a_row(
        request="3", wait_id=None, command_id=CommandId("c-1"), answered_by="sam", answered_at=b.NOW, told_at=b.NOW,
        **kept,
    )  # fmt: skip
    after = b.settled(with_row(before, wait=False), asks(WISH))
    row = after.one(Permission, lambda one: one.request == "7")
    assert (row.verdict is Verdict.ALLOW) is granted
    used = after.all(Permission)
    assert any(one.closed_at for one in used) is (granted and kept["verdict"] is Verdict.ALLOW)


def test_an_answer_is_told_to_the_program_by_a_command_of_its_own() -> None:
    row = a_row(verdict=Verdict.ALLOW, answered_by="sam", answered_at=b.NOW)
    intent = decide(b.see(with_row(row, wait=False), asks(WISH)), b.NOW).intent
    assert intent == AnswerAsk(row.id, "7", allow=True, words="", text=None)


def telling(row: Permission, state: CommandState = CommandState.ARMED) -> tuple[Snapshot, Command]:
    command = replace(
        b.HALT, id=CommandId("c-9"), kind=CommandKind.ANSWER, scopes=(f"ask:{row.id}",), target=row.request, state=state
    )
    snapshot = with_row(row, wait=False)
    return replace(snapshot, commands=(*snapshot.commands, command)), command


YES = a_row(verdict=Verdict.ALLOW, answered_by="sam", answered_at=b.NOW)


def test_once_it_is_told_the_question_is_closed_and_an_answer_for_the_task_stays() -> None:
    for verdict, closed in ((Verdict.ALLOW, True), (Verdict.DENY, True), (Verdict.ALLOW_TASK, False)):
        snapshot, command = telling(replace(YES, verdict=verdict))
        after = b.settled(snapshot, b.seen_of(command, Mark.ENDED, ALIVE))
        row = after.one(Permission)
        assert row.told_at == b.NOW
        assert (row.closed_at is not None) is closed


def test_it_is_not_told_twice_while_that_is_under_way() -> None:
    snapshot, command = telling(YES)
    seen = b.see(snapshot, asks(WISH), b.seen_of(command, Mark.CLAIMED, ALIVE))
    assert not isinstance(decide(seen, b.NOW).intent, AnswerAsk)


@pytest.mark.parametrize("mark", [Mark.BEGUN, Mark.CLAIMED])
def test_a_host_that_dies_while_it_tells_leaves_nothing_open(mark: Mark) -> None:
    snapshot, command = telling(YES)
    after = b.settled(snapshot, b.seen_of(command, mark, GONE))
    assert after.one(Command).state in (CommandState.RELEASED, CommandState.FAILED)


def test_what_its_program_does_not_ask_any_more_is_closed_with_its_wait() -> None:
    after = b.settled(with_row(a_row()), asks())
    assert after.one(Permission).outcome == "withdrawn by its program"
    assert after.one(Wait).closed_at == b.NOW


def test_the_turn_dies_and_the_question_with_it() -> None:
    cut = b.ended(b.ACKNOWLEDGED, cut=Cut.KILLED, signal=9, exit_code=None)
    after = b.settled(with_row(a_row()), cut)
    assert after.one(Permission).outcome == "the turn that asked is over"
    assert after.one(Wait, lambda one: one.kind is WaitKind.PERMISSION).closed_at == b.NOW


def test_nobody_answers_for_long_and_the_program_is_not_kept_waiting() -> None:
    late = b.NOW + POLICY.permission_wait
    seen = b.see(with_row(a_row()), asks(WISH), now=late)
    assert isinstance(decide(seen, late).intent, ParkAsks)
    parked = b.After(permission.parked(seen, late, b.new)).one(Permission)
    assert parked.parked_at == late
    told = decide(b.see(with_row(parked), asks(WISH), now=late), late).intent
    assert isinstance(told, AnswerAsk)
    assert (told.allow, told.words) == (False, permission.LATER)


PARKED = a_row(parked_at=b.NOW, told_at=b.NOW)


def test_its_turn_ends_and_the_question_stays() -> None:
    after = b.settled(with_row(PARKED), b.ended(b.ACKNOWLEDGED, "status: working\nsummary: half"))
    assert not after.all(Permission)
    assert not [wait for wait in after.all(Wait) if wait.closed_at]


def test_an_answer_after_its_turn_holds_for_the_next_time_and_tells_the_agent() -> None:
    after = answered(with_row(PARKED, b.IDLE), Verdict.ALLOW)
    row = after.one(Permission)
    assert (row.verdict, row.closed_at) == (Verdict.ALLOW, None)
    assert after.one(Message).policy is MessagePolicy.NEXT_TURN
    assert after.one(Wake).kind is WakeKind.EVENT
    assert after.one(Wait).closed_by == "sam"
    no = answered(with_row(PARKED, b.IDLE), Verdict.DENY, "Never.")
    assert no.one(Permission).closed_at == b.NOW


def test_words_of_a_no_go_along_where_the_program_takes_words_and_else_by_a_message() -> None:
    claude = b.with_task(b.with_live(), agent=replace(b.RESUMABLE, adapter="claude"))
    along = answered(with_row(a_row(), claude), Verdict.DENY, "Not that.")
    assert along.one(Permission).words is not None
    assert not along.all(Message)
    codex = b.with_task(b.with_live(), agent=replace(b.RESUMABLE, adapter="codex"))
    apart = answered(with_row(a_row(), codex), Verdict.DENY, "Not that.")
    assert apart.one(Message).policy is MessagePolicy.STEER_NOW


def test_a_question_whose_row_is_closed_is_refused_with_the_reason() -> None:
    refusal = permission.answer(b.with_live(), b.a_wait(WaitKind.PERMISSION), Verdict.ALLOW, "", "sam", b.NOW, b.new)
    assert isinstance(refusal, Because)
    assert "over" in refusal.sentence


def test_nothing_is_granted_to_a_task_that_is_over() -> None:
    over = replace(b.cancelled(b.IDLE), permissions=(replace(YES, verdict=Verdict.ALLOW_TASK),))
    assert b.settled(over).one(Permission).outcome == "the task ended"
