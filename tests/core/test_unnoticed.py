"""Small things of the core that no other test would miss: each was found by changing it and seeing nobody notice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.core import test_delivery as delivering
from tests.core import test_limits as limiting
from tests.core import test_permission as permitting
from tests.core import test_takeover as taking
from tests.support import builders as b

from tenuto.core import (
    arm,
    caps,
    classify,
    delivery,
    hindered,
    limits,
    naming,
    permission,
    progress,
    replacing,
    resets,
    rungs,
    signs,
    supervision,
)
from tenuto.core import pages as paging
from tenuto.core import playbook as playbooks
from tenuto.core.draft import Draft
from tenuto.core.signal import NoReport, WhyNoReport
from tenuto.model.decision import Because, Rung
from tenuto.model.evidence import Mark, Observation, PageFacts, Presence, Rank, WorkspaceFacts, WorkspaceKind
from tenuto.model.fact import FactKind
from tenuto.model.faults import Mistake
from tenuto.model.health import Assessment, Confidence, Health
from tenuto.model.ids import AttemptId, ChainId, CommandId, TaskId
from tenuto.model.lifecycle import CommandState, DeliveryState
from tenuto.model.limit import UsageLimit
from tenuto.model.message import MessagePolicy
from tenuto.model.permission import Permission
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Doubtful, Living, MayYetBegin, Undone
from tenuto.model.tools import PlanState
from tenuto.model.work import Progress, Standing, Wait, WaitKind, Wake


def test_a_turn_that_ends_closes_the_questions_of_that_turn_alone() -> None:
    other = permitting.a_row(attempt_id=AttemptId("a-other"))
    draft = Draft(permitting.with_row(other), b.NOW, b.new)
    permission.turn_over(draft, b.LIVE, by_itself=False)
    assert draft.puts == []
    own = Draft(permitting.with_row(permitting.a_row()), b.NOW, b.new)
    permission.turn_over(own, b.LIVE, by_itself=False)
    assert any(isinstance(row, Permission) and row.closed_at == b.NOW for row in own.puts)


def test_one_job_in_flight_is_in_flight() -> None:
    plan = replace(b.PLAN, state=PlanState.COMPLETED)
    case = classify.of(b.see(b.with_tools(), b.tools(plan=plan, jobs=(b.JOB,))), b.NOW, b.NOW)
    assert case.in_flight
    assert classify.classify(case).row == "5", "a plan that is completed while its job runs is no claim yet"


def test_words_for_the_next_turn_are_never_urgent() -> None:
    for policy in MessagePolicy:
        waiting = b.a_message(state=DeliveryState.DEFERRED, policy=policy)
        assert delivery.urgent(waiting, b.NOW) == (policy is MessagePolicy.STEER_NOW)


def test_quiet_hours_are_over_at_their_end() -> None:
    stopped = b.with_task(b.IDLE, standing=Standing.HINDERED)
    assert limits.quiet_until(stopped, b.NOW + b.S, b.NOW) == b.NOW + b.S
    assert limits.quiet_until(stopped, b.NOW, b.NOW) is None


@pytest.mark.parametrize("known", [False, True])
def test_a_page_that_says_spent_is_one_limit_for_as_long_as_a_wait_stands(known: bool) -> None:
    snapshot = b.with_wait(WaitKind.LIMIT) if known else b.IDLE
    facts = PageFacts(shown=True, state="limit")
    draft = Draft(snapshot, b.NOW, b.new)
    paging.settle(draft, replace(b.see(snapshot), found=replace(b.found(snapshot), page=facts), account="lab@x"))
    assert any(isinstance(row, UsageLimit) for row in draft.puts) == (not known)
    nobody = Draft(b.IDLE, b.NOW, b.new)
    paging.settle(nobody, replace(b.see(b.IDLE), found=replace(b.found(b.IDLE), page=facts), account=None))
    assert not any(isinstance(row, UsageLimit) for row in nobody.puts), "a limit is of an account"


def test_a_wake_is_no_anyway_unless_it_says_so() -> None:
    draft = Draft(b.IDLE, b.NOW, b.new)
    hindered.fresh(draft, "its session is full", b.LAST)
    (wake,) = [row for row in draft.puts if isinstance(row, Wake)]
    assert not wake.anyway


def test_a_question_of_a_person_has_no_moment_of_its_own() -> None:
    asked = rungs.permission(b.see(b.with_wait(WaitKind.PERMISSION)), b.NOW)
    assert asked is not None
    assert asked.until is None
    shown = rungs.permission(b.see(b.with_wait(WaitKind.PERMISSION, subject="page:login")), b.NOW)
    assert shown is not None
    assert shown.until == b.NOW + paging.LOOK, "a page is looked at again"
    for hours, after in ((0.1, paging.LOOK), (0.25, 2 * paging.LOOK), (5, paging.STANDING)):
        later = b.NOW + hours * b.H
        waiting = rungs.permission(
            b.see(b.with_wait(WaitKind.PERMISSION, subject="page:login", opened_at=b.NOW)), later
        )
        assert waiting is not None
        assert waiting.until == later + after, "and less often once its person is away for long"


@pytest.mark.parametrize(
    ("cap", "spent", "said"),
    [
        ({"max_attempts": 1}, {}, "1 turns"),
        ({"max_cost": 2_500_000}, {"cost": 3_000_000, "currency": "USD"}, "2.5 USD"),
        ({"max_live": timedelta(hours=2)}, {"live_time": timedelta(hours=3)}, "2 h"),
    ],
)
def test_a_cap_is_spelled_as_it_was_given(cap: dict[str, Any], spent: dict[str, Any], said: str) -> None:
    reached = caps.reached(b.with_task(b.with_policy(**cap), **spent))
    assert reached is not None
    assert said in reached.sentence


def test_what_fences_an_old_place_is_said_as_it_is() -> None:
    bound = b.with_tools()
    assert supervision.outside_fence(b.see(b.IDLE)) == "our lease alone"
    assert "any client" in supervision.outside_fence(b.see(bound, b.tools()))
    assert "its run r_1" not in supervision.outside_fence(b.see(bound, b.tools()))
    assert "own run r_1" in supervision.outside_fence(b.see(bound, b.tools(run="r_1")))


def test_a_steer_that_has_only_its_place_is_under_way() -> None:
    claimed = b.seen_of(delivering.STEER, Mark.CLAIMED, Presence.ALIVE, Presence.UNKNOWN)
    snapshot = replace(b.with_live(), commands=(delivering.STEER,))
    findings = [each for each in b.found(snapshot, claimed).findings if getattr(each, "command", None) is not None]
    assert any(isinstance(each, Living) and each.command.id == delivering.STEER.id for each in findings)


@pytest.mark.parametrize("state", [CommandState.ARMED, CommandState.SUBMITTED, CommandState.AMBIGUOUS])
def test_a_takeover_that_was_seen_to_begin_and_is_not_there_any_more_is_a_doubt(state: CommandState) -> None:
    seen = taking.see(taking.open_one(state), Mark.NONE)
    findings = seen.found.findings
    assert any(isinstance(each, MayYetBegin) for each in findings) == (state is CommandState.ARMED)
    assert any(isinstance(each, Doubtful) for each in findings) == (state is not CommandState.ARMED)
    armed_and_begun = replace(taking.open_one(CommandState.ARMED), submitted_at=b.NOW)
    assert not any(isinstance(each, MayYetBegin) for each in taking.see(armed_and_begun, Mark.NONE).found.findings)


def test_who_stands_in_line_keeps_its_place() -> None:
    since = b.NOW - b.H
    standing = b.with_task(b.IDLE, queued_at=since)
    commit = arm.rest(b.see(standing), b.NOW + b.H, None, b.NOW, b.new, in_line=True)
    assert b.After(commit).task.queued_at == since
    first = arm.rest(b.see(b.IDLE), b.NOW + b.H, None, b.NOW, b.new, in_line=True)
    assert b.After(first).task.queued_at == b.NOW


def test_a_lease_that_is_held_and_was_not_handed_over_is_not_taken() -> None:
    """What the protocol refuses is refused with its reason, and nothing is written."""
    looked = b.see(
        b.with_task(replace(taking.world(taking.open_one(), handed=False), commands=()), tools=()), b.workspace()
    )
    samples = tuple(b.sampled(looked, age * b.S) for age in (2, 8))
    ready = b.see(replace(looked.snapshot, samples=samples), b.workspace())
    refused = supervision.take_over(ready, taking.HEIR, b.NOW, b.new)
    assert isinstance(refused, Because), refused
    assert refused.rung is Rung.LEASE


def test_a_takeover_that_was_refused_says_by_what() -> None:
    findings = taking.see(taking.open_one(), Mark.FAILED, proof="r_x").found.findings
    assert [each.reason for each in findings if isinstance(each, Undone)] == ["why"]


def test_how_long_a_sign_tells_something_follows_from_what_it_is_of() -> None:
    def life(name: str, rank: Rank = Rank.JOURNAL) -> timedelta:
        return signs.life(signs.Sign(name, "true", rank, "x", b.NOW), POLICY)

    assert life("network_at") == POLICY.suspect_network
    assert {life(name) for name in signs.PAGE} == {POLICY.suspect_page}
    assert life("session") > 1000 * b.DAY
    assert life("session", Rank.REPORTED) == POLICY.suspect_hard


def test_an_unreadable_report_says_what_was_in_the_way() -> None:
    why = WhyNoReport.UNREADABLE_LINE
    assert NoReport(why, "?? what").sentence == f"{why.value}: ?? what"
    assert NoReport(why).sentence == why.value


def test_a_report_of_exactly_now_is_not_of_the_future() -> None:
    edge = replace(b.sighting(generating="true"), seen_at=b.NOW + signs.SKEW, made_at=b.NOW)
    assert not b.found(replace(b.IDLE, sightings=(edge,))).findings
    beyond = replace(edge, seen_at=edge.seen_at + timedelta(microseconds=1))
    assert b.found(replace(b.IDLE, sightings=(beyond,))).findings


def test_what_is_looked_at_now_is_not_told_from_memory() -> None:
    """A sighting of the same source and subject is replaced by the look, even where it knew more."""
    before = replace(
        b.sighting(source="local-shell", rank=1, session="active", plan="blocked"), subject=b.SESSION.subject
    )
    case = classify.of(b.see(replace(b.with_tools(), sightings=(before,)), b.tools()), b.NOW, b.NOW)
    assert "plan" not in case.signs
    gone = replace(before, subject="local:another")
    unbound = classify.of(b.see(replace(b.with_tools(), sightings=(gone,)), b.tools()), b.NOW, b.NOW)
    assert "plan" not in unbound.signs, "of a session that works for it no more nothing is believed"


def test_a_fresh_session_says_why_its_task_was_hindered() -> None:
    draft = Draft(b.IDLE, b.NOW, b.new)
    hindered.fresh(draft, "its session is full", b.LAST)
    assert (draft.task.standing, draft.task.standing_reason) == (Standing.HINDERED, "its session is full")
    cut = Draft(b.with_task(b.IDLE, standing=Standing.CUT_SHORT, standing_reason="it died"), b.NOW, b.new)
    hindered.fresh(cut, "its session is gone", b.LAST)
    assert (cut.task.standing, cut.task.standing_reason) == (Standing.CUT_SHORT, "it died")


@pytest.mark.parametrize("field", ["overloads", "fresh_sessions"])
def test_a_turn_that_went_well_starts_every_count_again(field: str) -> None:
    draft = Draft(b.with_task(b.IDLE, **{field: 2}), b.NOW, b.new)
    hindered.went_well(draft, None, b.LAST)
    assert (draft.task.overloads, draft.task.fresh_sessions) == (0, 0)


def test_a_limit_that_a_turn_went_through_is_told() -> None:
    snapshot = replace(limiting.worked(), limits=(limiting.a_limit(met_at=b.NOW - b.H, until=b.NOW - b.MIN),))
    after = b.settled(snapshot, b.ended(b.ACKNOWLEDGED, "status: working\nsummary: half"))
    assert after.commit is not None
    assert FactKind.LIMIT_OVER in {fact.kind for fact in after.commit.facts}


def test_the_clock_time_of_the_year_to_come() -> None:
    """A date without a year that lies long behind is of the next year, and not of the one after it."""
    seen = datetime(2026, 12, 31, 23, 0, tzinfo=UTC)
    told = resets.read("resets Jan 2 at 5pm (UTC)", seen, UTC, lambda _name: UTC)
    assert told == datetime(2027, 1, 2, 17, 0, tzinfo=UTC)


@pytest.mark.parametrize("words", ["[]", '[""]', '["", "a"]', '["a\\u0000"]', "[1]", '"a"'])
def test_a_program_in_a_playbook_is_a_list_of_words(words: str) -> None:
    text = "+++\nprogram = {}\n+++\n\n# Careful\n\nLook before you act.\n"
    plain = playbooks.read("user", "one", text.format('["agent"]')).agent
    assert plain is not None
    assert plain.argv == ("agent",)
    with pytest.raises(Mistake):
        playbooks.read("user", "one", text.format(words))


def test_what_could_not_be_measured_pauses_nothing() -> None:
    gone = WorkspaceFacts(WorkspaceKind.UNREADABLE)
    account = progress.account(Progress(cursor="w0", without=POLICY.stall_pause), gone, None, POLICY, b.NOW)
    assert (account.moved, account.external, account.warn, account.pause) == (False, False, False, False)


def test_a_steer_that_its_own_executor_has_in_hand_may_still_begin() -> None:
    snapshot = replace(b.with_live(), commands=(delivering.STEER,))
    for told in ({"launched_here": True}, {"unreachable": "it is away"}):
        handed = b.seen_of(delivering.STEER, Mark.NONE, Presence.UNKNOWN, Presence.UNKNOWN, **told)
        findings = b.found(snapshot, handed).findings
        assert any(isinstance(each, Living) and each.command.id == delivering.STEER.id for each in findings)


def test_a_rest_in_which_nothing_is_new_is_not_written() -> None:
    """The health of before is no news: a task at rest is not written again at every look."""
    health = Assessment(Health.RESTING, Confidence.MEDIUM, "14c", "its last turn ended", "nothing", b.NOW - b.H)
    at_rest = b.with_task(b.IDLE, look_at=b.NOW + b.H, health=health)
    assert arm.rest(b.see(at_rest), b.NOW + b.H, None, b.NOW, b.new, health=health) is None
    assert arm.rest(b.see(at_rest), b.NOW + b.H, None, b.NOW, b.new) is None
    other = replace(health, row="13", value=Health.RUNNING)
    assert b.After(arm.rest(b.see(at_rest), b.NOW + b.H, None, b.NOW, b.new, health=other)).task.health == other


def test_who_holds_the_lease_does_not_take_it_over() -> None:
    looked = b.see(b.IDLE, b.workspace())
    samples = tuple(b.sampled(looked, age * b.S) for age in (2, 8))
    ready = b.see(replace(b.IDLE, samples=samples), b.workspace())
    refused = supervision.take_over(ready, b.TALK, b.NOW, b.new)
    assert isinstance(refused, Because), refused
    assert "holds the lease already" in refused.sentence


def test_a_candidate_of_another_task_takes_no_session_over() -> None:
    world = replace(taking.world(taking.open_one()), commands=())
    session = taking.session(taking.OLD)
    tool = Observation("local-shell", Rank.JOURNAL, taking.BOUND.subject, b.NOW, session)
    looked = b.see(world, tool, b.workspace())
    samples = tuple(b.sampled(looked, age * b.S) for age in (2, 8))
    ready = b.see(replace(world, samples=samples), tool, b.workspace())
    stranger = replace(taking.HEIR, task_id=TaskId("t-other"))
    made = replacing.armed(ready, stranger, session, CommandId("c-new"), "local-shell", b.NOW, b.new)
    assert isinstance(made, Because)
    assert "not a candidate" in made.sentence


def test_a_clock_time_that_comes_in_a_moment_is_todays() -> None:
    seen = datetime(2026, 3, 1, 11, 59, 30, tzinfo=UTC)
    assert resets.read("resets at 12:00 (UTC)", seen, UTC, lambda _name: UTC) == datetime(2026, 3, 1, 12, tzinfo=UTC)
    late = datetime(2026, 3, 1, 12, 1, 30, tzinfo=UTC)
    assert resets.read("resets at 12:00 (UTC)", late, UTC, lambda _name: UTC) == datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize("why", sorted(paging.PERSON))
def test_a_page_that_refuses_for_want_of_its_person_asks_that_person_once(why: str) -> None:
    undone = Undone(b.SEND, "refused", True, revoked=False, why=why)
    draft = Draft(b.IDLE, b.NOW, b.new)
    assert paging.refused(draft, undone)
    (wait,) = [row for row in draft.puts if isinstance(row, Wait)]
    assert (wait.kind, wait.subject, wait.question) == (WaitKind.PERMISSION, f"page:{why}", paging.PERSON[why])
    again = Draft(b.with_wait(WaitKind.PERMISSION, subject=f"page:{why}"), b.NOW, b.new)
    assert paging.refused(again, undone)
    assert not again.puts


def test_a_turn_that_was_hindered_takes_its_questions_and_its_time_along() -> None:
    row = permitting.a_row()
    snapshot = replace(limiting.worked(), permissions=(row,), waits=(b.a_wait(WaitKind.PERMISSION, id=row.wait_id),))
    after = b.settled(snapshot, limiting.ended(limiting.hindered()))
    assert any(isinstance(each, Permission) and each.closed_at == b.NOW for each in after.rows)
    assert after.task.live_time == b.NOW - (b.LIVE.live_at or b.NOW)


def test_after_an_interruption_its_task_is_looked_at() -> None:
    halt = replace(b.HALT, state=CommandState.SUBMITTED, submitted_at=b.NOW - b.MIN)
    snapshot = replace(b.with_task(b.with_live(), look_at=b.NOW + b.DAY), commands=(halt,))
    assert b.settled(snapshot, b.ended(halt)).task.look_at == b.NOW


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("Fix the Parser!", "fix-the-parser-3"),
        ("  --  ", "unit-3"),
        ("../../etc", "etc-3"),
        ("x" * 100, "x" * 40 + "-3"),
        ("a" * 39 + " b", "a" * 39 + "-3"),
        ("ünit", "nit-3"),
    ],
)
def test_the_last_part_of_a_branch_is_plain(unit: str, name: str) -> None:
    assert naming.leaf(unit, 3) == name
    assert naming.tree(ChainId("h-1"), unit, 3) == f"h-1/{name}"


@pytest.mark.parametrize(
    ("age", "look"), [(10 * b.S, 2 * b.S), (2 * b.MIN, 4 * b.S), (b.H, rungs.LIVING_LOOK), (-b.H, 2 * b.S)]
)
def test_a_long_turn_is_looked_at_less_often(age: timedelta, look: timedelta) -> None:
    turn = replace(b.LIVE, live_at=b.NOW - age, scheduled_at=b.NOW - age)
    seen = b.see(b.with_live(attempt=turn), b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, Presence.ALIVE, Presence.ALIVE))
    fresh = replace(seen, snapshot=b.with_policy(seen.snapshot, checkpoint_after=b.DAY))
    assert rungs.next_living_look(fresh, b.NOW) == b.NOW + look
