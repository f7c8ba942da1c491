"""The last small things of the core that nobody noticed: how long, since when, in whose name, and in which words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.core import test_authority as mandated
from tests.core import test_chain as chaining
from tests.core import test_delivery as delivering
from tests.core import test_permission as permitting
from tests.core import test_takeover as taking
from tests.support import builders as b

from tenuto.core import arm, chain, control, delivery, permission, resets, rungs, signal, signs, supervision
from tenuto.core import pages as paging
from tenuto.core.draft import Draft
from tenuto.core.settle import settle
from tenuto.model.chain import Board, Caps, Unit, UnitState
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Continue, SteerTurn
from tenuto.model.evidence import Asking, Mark, PageFacts, Presence
from tenuto.model.fact import FactKind
from tenuto.model.ids import CommandId, ConversationId
from tenuto.model.lifecycle import CommandEvent, CommandState, LeaseState, TaskState
from tenuto.model.message import MessagePolicy, Party
from tenuto.model.permission import Permission, Verdict
from tenuto.model.reconciliation import Flawed, MayYetBegin
from tenuto.model.tools import Flaw
from tenuto.model.work import AcceptanceKind, WaitKind, WakeKind

ALIVE = Presence.ALIVE


def test_a_command_is_told_when_it_is_armed_and_at_every_step() -> None:
    intent = SteerTurn((delivering.WORDS.id,), "turn 1")
    steer = arm.steer(delivering.live(), intent, CommandId("c-1"), "look", (delivering.WORDS.id,), b.NOW, b.new)
    assert steer is not None
    assert [one.data["command"] for one in steer.commit.facts if one.kind is FactKind.COMMAND_ARMED] == ["c-1"]
    draft = Draft(b.with_live(b.SEND), b.NOW, b.new)
    draft.command(b.SEND, CommandEvent.BEGUN, CommandEvent.ACKNOWLEDGED)
    assert [one.kind for one in draft.facts] == [FactKind.COMMAND_SUBMITTED, FactKind.COMMAND_ACKNOWLEDGED]


def test_a_report_is_told_by_its_first_line_that_says_something() -> None:
    assert control.headline((("current", " "), ("completed", "the parser"), ("risks", "none"))) == (
        "completed: the parser"
    )
    assert control.headline((("current", "x" * 300),)) == f"current: {'x' * 300}"[:200]
    assert control.headline(()) == ""


def test_an_envelope_says_of_what_there_is_none() -> None:
    bare = replace(
        chaining.WHOLE, authorization=(), cursor=replace(chaining.CURSOR, source_revision=None, remaining_units=())
    )
    lines = chain.render(bare).split("\n")
    for said in (
        "Source revision: none",
        "Authorised: nothing beyond the unit itself",
        "Left after it, not yours: none",
    ):
        assert said in lines


def test_a_stale_pointer_is_told_by_how_its_own_unit_stands() -> None:
    board = Board((Unit("U-1", UnitState.ELIGIBLE), Unit("U-2", UnitState.IN_FLIGHT)), None)
    found = chain.resolve(board, "U-2", frozenset(), {}, 3)
    assert (found.unit, found.healed) == ("U-1", "U-2")
    assert f"is stale ({UnitState.IN_FLIGHT})" in found.notes[0]


def test_a_date_that_has_passed_by_more_than_a_day_is_of_another_year() -> None:
    """And so long no limit lasts; one of yesterday may be of a clock that goes before ours."""
    seen = datetime(2026, 3, 2, 18, 0, tzinfo=UTC)
    for day, told in ((1, None), (2, datetime(2026, 3, 2, 12, tzinfo=UTC))):
        assert resets.read(f"resets Mar {day} at 12pm (UTC)", seen, UTC, lambda _name: UTC) == told


def test_who_is_not_connected_is_named() -> None:
    away = rungs.executor(b.see(b.IDLE, connected=False), b.NOW)
    assert away is not None
    assert away.sentence == f"its executor is not connected ({b.RESUMABLE.carrier})"
    apart = rungs.executor(replace(b.see(b.IDLE, connected=False), apart="far"), b.NOW)
    assert apart is not None
    assert apart.sentence.startswith("its programs run on far,")


def test_whose_usage_it_is_where_nobody_can_tell_is_the_executors() -> None:
    for agent, account in ((replace(b.RESUMABLE, on="ext:browser"), "program@ext:browser"), (b.RESUMABLE, None)):
        seen = b.see(b.with_task(b.with_live(b.SEND), agent=agent), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE))
        assert b.After(settle(seen, b.NOW, b.new)).task.account == account


def test_a_claim_without_a_word_that_holds_says_that_it_holds() -> None:
    for summary, reason in (("", "the acceptance holds"), ("all done", "all done")):
        ended = b.settled(b.claimed(AcceptanceKind.FILE, summary=summary), b.acceptance(True)).task.disposition
        assert ended is not None
        assert (ended.reason, ended.verified) == (reason, True)


def test_what_is_long_is_cut_where_a_row_ends() -> None:
    wait = b.a_wait(WaitKind.TASK, "q" * 2000, subject=b.TASK.id)
    (asked,) = b.settled(replace(b.IDLE, waits=(wait,))).asked
    assert len(asked) == 2000
    long = b.settled(b.with_live(), b.ended(b.ACKNOWLEDGED, f"status: working\nsummary: {'s' * 900}"))
    assert long.one(Attempt).detail == "s" * 500
    draft = Draft(b.with_live(), b.NOW, b.new)
    permission.asked(draft, b.ACKNOWLEDGED, Asking("7", "Bash", "w" * 900, "f" * 64))
    assert [one.data["what"] for one in draft.facts if one.kind is FactKind.PERMISSION_ASKED] == ["w" * 500]
    page = PageFacts(shown=True, state="unknown", missing=("composer",) * 40)
    held = paging.page(replace(b.see(b.IDLE), found=replace(b.found(b.IDLE), page=page)), b.NOW)
    assert held is not None
    assert len(dict(held.facts)["missing"]) == 200


def test_an_answer_and_its_telling_are_one_revision_each() -> None:
    for verdict in (Verdict.ALLOW, Verdict.DENY, Verdict.ALLOW_TASK):
        row = permitting.a_row(revision=4)
        answered = permitting.answered(permitting.with_row(row), verdict).one(Permission)
        assert answered.revision == 5
        draft = Draft(permitting.with_row(answered), b.NOW, b.new)
        permission.told(draft, replace(b.HALT, scopes=(f"ask:{row.id}",)))
        assert [each.revision for each in draft.puts if isinstance(each, Permission)] == [6]


@pytest.mark.parametrize(("value", "good"), [("0", True), ("9" * 9, True), ("9" * 10, False), ("-1", False)])
def test_a_count_is_a_small_whole_number(value: str, good: bool) -> None:
    assert (signs.objection("calls", value) is None) == good


def test_a_line_of_a_fence_has_a_longest_length() -> None:
    opening = "```tenuto"
    for length, blocks in ((signal.FENCE_LINE_BYTES, 1), (signal.FENCE_LINE_BYTES + 1, 0)):
        text = opening + " " * (length - len(opening)) + "\nstatus: working\n```\n"
        assert len(signal.blocks_in(text)) == blocks


def test_a_lease_that_was_claimed_has_its_task_looked_at() -> None:
    world = b.with_task(replace(b.IDLE, conversation=None), look_at=b.NOW + b.H)
    claimed = supervision.claim(world, taking.HEIR, b.NOW, b.new)
    assert isinstance(claimed, Commit)
    assert b.After(claimed).task.look_at == b.NOW
    over = b.with_task(b.IDLE, state=TaskState.COMPLETED)
    refused = supervision.register(over, (), "elsewhere", "host", "sam", b.NOW, b.new)
    assert isinstance(refused, Because)
    assert isinstance(supervision.register(b.IDLE, (), "elsewhere", "host", "sam", b.NOW, b.new), Commit)


def test_words_for_a_next_turn_that_nothing_holds_come_now() -> None:
    words = b.a_message(policy=MessagePolicy.NEXT_TURN)
    foretold = delivery.prospect(b.see(b.with_wake()), words, b.NOW)
    assert (foretold.way, foretold.by, foretold.because) == (delivery.Way.NEXT_TURN, b.NOW, None)


def test_a_chain_without_a_cap_is_not_capped() -> None:
    bare = replace(mandated.CHAIN, caps=Caps(), processed=9, position=9)
    assert chain.capped(bare, 9, bare.created_at + b.DAY) is None
    for caps, said in ((Caps(units=9), "9 units"), (Caps(tasks=9), "9 tasks"), (Caps(cost=9), "in cost")):
        reached = chain.capped(replace(bare, caps=caps), 9, bare.created_at)
        assert reached is not None
        assert said in reached
        assert chain.capped(replace(bare, caps=caps, processed=8, position=8), 8, bare.created_at) is None


def test_a_turn_that_was_cut_short_elsewhere_takes_no_lease_away() -> None:
    ran_out = replace(b.TALK, expires_at=b.NOW)
    last = replace(b.LAST, outcome=AttemptOutcome.INTERRUPTED)
    for talk, again in ((ConversationId("v-before"), True), (b.TALK.id, False)):
        world = replace(b.IDLE, conversation=ran_out, last=replace(last, conversation_id=talk))
        after = b.After(arm.open_conversation(b.see(world), "host", b.NOW, b.new))
        holder = after.one(Conversation, lambda row: row.state is LeaseState.ACTIVE)
        assert (holder.id == b.TALK.id) == again
        assert holder.lease_number == 2


@pytest.mark.parametrize(("party", "by"), [(Party.OPERATOR, "sam"), (Party.TENUTO, None)])
def test_urgent_words_for_which_a_prompt_has_no_room_ask_for_the_next(party: Party, by: str | None) -> None:
    words = b.a_message(policy=MessagePolicy.STEER_NOW, party=party, sender="sam")
    world = b.with_message(words, b.with_wake())
    for carried in ((), (words.id,)):
        made = arm.turn(
            b.see(world), Continue(WakeKind.IDLE), CommandId("c-1"), "go on", carried, "digest", None, b.NOW, b.new
        )
        assert made is not None
        wakes = b.After(made.commit).wakes
        assert (WakeKind.MESSAGE in wakes) == (not carried)
        assert carried or wakes[WakeKind.MESSAGE].asked_by == by


def test_a_persons_own_turn_in_a_ready_page_is_given_its_time() -> None:
    for state, until in (("ready", paging.OPERATOR_TURN - b.MIN), ("error", paging.LOOK)):
        page = PageFacts(shown=True, state=state, foreign_turns=1, foreign_age=60.0)
        held = paging.page(replace(b.see(b.IDLE), found=replace(b.found(b.IDLE), page=page)), b.NOW)
        assert held is not None
        assert held.until == b.NOW + until


def test_an_answer_in_doubt_of_which_nothing_is_seen_stays_in_doubt() -> None:
    telling = replace(b.HALT, kind=CommandKind.ANSWER, state=CommandState.AMBIGUOUS)
    world = replace(b.with_live(), commands=(telling,))
    assert not b.found(world, b.seen_of(telling, Mark.NONE)).findings
    armed = replace(telling, state=CommandState.ARMED)
    found = b.found(replace(world, commands=(armed,)), b.seen_of(armed, Mark.NONE)).findings
    assert [type(one) for one in found] == [MayYetBegin]


def test_a_call_that_began_just_now_is_in_flight_for_no_time() -> None:
    for began, said in ((b.NOW, "for 0 s"), (b.NOW + b.S, "for 0 s"), (b.NOW - b.MIN, "for 60 s")):
        held = rungs.tool(b.see(b.with_tools(), b.tools(calls=(replace(b.CALL, started_at=began),))), b.NOW)
        assert held is not None
        assert held.sentence.endswith(said)


def test_a_check_that_cannot_begin_asks_nothing_of_a_task_that_is_over() -> None:
    for world, asked in ((b.claimed(), 1), (b.cancelled(b.claimed()), 0)):
        look = b.seen_of(b.CHECK, Mark.FAILED, reason="no such program", mendable=True)
        assert len(b.settled(replace(world, commands=(b.CHECK,)), look).asked) == asked


def test_hearsay_of_later_does_not_make_a_look_an_old_one() -> None:
    look = b.tools(at=b.NOW - b.MIN)
    for rank, flawed in ((1, 1), (5, 0)):
        told = b.sighting(source=look.source, rank=rank, at=b.NOW, session="active")
        world = replace(b.with_tools(), sightings=(replace(told, subject=look.subject),))
        found = b.found(world, look).findings
        assert len([one for one in found if isinstance(one, Flawed) and one.flaw is Flaw.ROLLED_BACK]) == flawed
