"""Usage limits: whose tasks wait, until when, what it costs them, and how it is found out that one is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.support import builders as b

from tenuto.core import limits
from tenuto.core.decide import decide
from tenuto.model.command import Attempt, AttemptOutcome
from tenuto.model.decision import Continue, OpenConversation, OpenLimitWait, Rung
from tenuto.model.evidence import Hindered, Hindrance
from tenuto.model.ids import LimitId, TaskId
from tenuto.model.limit import Quiet, UsageLimit
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import AutoResume, Standing, Wait, WaitKind, Wake, WakeKind

ACCOUNT = "claude/1a2b"
TEXT = "You've hit your 5-hour limit · resets 3pm (Europe/Berlin)"
RESETS = b.NOW + 2 * b.H
AGENT = replace(b.RESUMABLE, adapter="claude")


def worked(snapshot: Snapshot | None = None, **fields: Any) -> Snapshot:
    """A task of the account with a turn under way, its third."""
    return b.with_task(
        snapshot or b.with_live(), agent=AGENT, account=ACCOUNT, model="claude-opus-4-5", attempts=3, **fields
    )


def hindered(by: Hindrance = Hindrance.LIMIT, **fields: Any) -> Hindered:
    about: dict[str, Any] = {"name": "five_hour", "resets_at": RESETS} if by is Hindrance.LIMIT else {}
    return Hindered(by, TEXT, **about | fields)


def ended(held: Hindered, **fields: Any) -> Any:
    return b.ended(b.ACKNOWLEDGED, hindered=held, exit_code=1, **fields)


def a_limit(**fields: Any) -> UsageLimit:
    row = UsageLimit(
        LimitId(b.new("limit")), 1, ACCOUNT, "five_hour", TEXT, b.NOW - b.MIN, b.NOW - b.MIN, TaskId("t-other"), 1,
        RESETS + POLICY.limit_buffer, resets_at=RESETS,
    )  # fmt: skip
    return replace(row, **fields)


def under(*rows: UsageLimit, snapshot: Snapshot | None = None, **fields: Any) -> Snapshot:
    """A task of the account that is due, where these limits stand."""
    base = b.with_task(snapshot or b.with_wake(), agent=AGENT, account=ACCOUNT, model="claude-opus-4-5", **fields)
    return replace(base, limits=rows)


def test_a_limit_is_the_accounts_and_burns_no_attempt() -> None:
    after = b.settled(worked(), ended(hindered()))
    row = after.one(UsageLimit)
    assert (row.account, row.name, row.resets_at) == (ACCOUNT, "five_hour", RESETS)
    assert row.until == RESETS + POLICY.limit_buffer
    wait = after.one(Wait)
    assert (wait.kind, wait.subject) == (WaitKind.LIMIT, row.id)
    assert wait.until is not None
    assert row.until <= wait.until <= row.until + POLICY.limit_jitter
    assert after.one(Attempt).outcome is AttemptOutcome.HINDERED
    assert (after.task.attempts, after.task.faults, after.task.progress.without) == (2, 0, 0)
    assert after.task.standing is Standing.HINDERED
    assert not after.all(Wake), "nothing asks for a turn before the reset"


def test_all_tasks_of_the_account_wait_each_until_a_moment_of_its_own() -> None:
    row = a_limit()
    decision = b.decided(under(row))
    assert isinstance(decision.intent, OpenLimitWait)
    moments = {limits.own_moment(row, replace(b.TASK, id=TaskId(f"t-{n}")), POLICY) for n in range(20)}
    assert len(moments) == 20
    assert max(moments) - min(moments) <= POLICY.limit_jitter
    assert min(moments) >= row.until


@pytest.mark.parametrize(
    ("row", "waits"),
    [
        (a_limit(), True),
        (a_limit(account="claude/other"), False),
        (a_limit(model="opus"), True),
        (a_limit(model="sonnet"), False),
        (a_limit(until=b.NOW - b.MIN), False),
    ],
)
def test_who_waits(row: UsageLimit, waits: bool) -> None:
    decision = b.decided(under(row))
    assert isinstance(decision.intent, OpenLimitWait if waits else (Continue, OpenConversation))


def test_a_model_that_is_not_known_may_be_the_limited_one() -> None:
    assert isinstance(b.decided(under(a_limit(model="sonnet"), snapshot=b.with_wake())).intent, Continue)
    assert isinstance(b.decided(b.with_task(under(a_limit(model="sonnet")), model=None)).intent, OpenLimitWait)


def test_a_task_that_nobody_asked_of_waits_for_no_limit() -> None:
    decision = b.decided(under(a_limit(), snapshot=b.IDLE))
    assert decision.because is not None
    assert decision.because.rung is Rung.NOTHING_ASKED


def test_nothing_passes_a_limit_and_explain_says_until_when() -> None:
    wait = b.a_wait(WaitKind.LIMIT, limits.sentence(a_limit()), until=RESETS, subject="l-1")
    row = a_limit(id=LimitId("l-1"))
    asked = b.with_wake(WakeKind.MANUAL, snapshot=replace(under(row, snapshot=b.IDLE), waits=(wait,)), anyway=True)
    because = decide(b.see(asked), b.NOW).because
    assert because is not None
    assert because.rung is Rung.LIMIT
    assert "5-hour limit" in because.sentence
    assert ACCOUNT in because.sentence


def test_br_095_a_limit_that_moved_is_read_anew_at_every_look() -> None:
    moved = a_limit(id=LimitId("l-1"), until=b.NOW + b.H, resets_at=b.NOW + b.H)
    wait = b.a_wait(WaitKind.LIMIT, "old", until=b.NOW - b.S, subject="l-1")
    after = b.settled(replace(under(moved, standing=Standing.HINDERED), waits=(wait,)))
    again = after.one(Wait)
    assert again.closed_at is None
    assert again.until is not None
    assert again.until >= moved.until


def test_after_the_reset_it_goes_on_once_by_one_wake() -> None:
    passed = a_limit(id=LimitId("l-1"), until=b.NOW - b.MIN, resets_at=b.NOW - 2 * b.MIN)
    wait = b.a_wait(WaitKind.LIMIT, "old", until=b.NOW - b.S, subject="l-1")
    mine = replace(under(passed, snapshot=b.IDLE, standing=Standing.HINDERED), waits=(wait,))
    after = b.settled(mine)
    assert after.one(Wait).closed_at == b.NOW
    assert after.one(Wake).kind is WakeKind.LIMIT
    other = replace(under(passed, standing=Standing.WORKING), waits=(wait,))
    assert not b.settled(other).all(Wake), "who had a reason of its own keeps that, and gets no second one"


def test_br_090_a_second_limit_right_after_the_reset_is_a_new_wait_and_no_failure() -> None:
    known = a_limit(id=LimitId("l-1"), met=1, until=b.NOW - b.S, resets_at=b.NOW - b.MIN)
    after = b.settled(replace(worked(), limits=(known,)), ended(hindered(resets_at=b.NOW + b.H)))
    row = after.one(UsageLimit)
    assert (row.id, row.met, row.resets_at) == (known.id, 2, b.NOW + b.H)
    assert after.task.faults == 0
    assert after.one(Wait).kind is WaitKind.LIMIT


def test_an_unknown_reset_stays_unknown_and_the_ladder_is_climbed_to_its_cap() -> None:
    snapshot, spans = worked(), list[timedelta]()
    for times in range(6):
        known = (a_limit(id=LimitId("l-1"), met=times, resets_at=None, until=b.NOW),) if times else ()
        row = b.settled(replace(snapshot, limits=known), ended(hindered(resets_at=None))).one(UsageLimit)
        assert row.resets_at is None
        spans.append(row.until - b.NOW)
    assert spans == [*POLICY.limit_unknown, POLICY.limit_unknown[-1], POLICY.limit_unknown[-1]]


def test_a_reset_that_has_passed_while_nobody_looked_is_over_and_no_riddle() -> None:
    assert b.LIVE.live_at is not None
    passed = b.LIVE.live_at + (b.NOW - b.LIVE.live_at) / 2
    row = b.settled(worked(), ended(hindered(resets_at=passed))).one(UsageLimit)
    assert (row.resets_at, row.until) == (passed, passed + POLICY.limit_buffer)


def test_a_reset_before_its_turn_began_is_not_believed() -> None:
    row = b.settled(worked(), ended(hindered(resets_at=b.NOW - b.H))).one(UsageLimit)
    assert row.resets_at is None
    assert row.until == b.NOW + POLICY.limit_unknown[0]


def test_where_the_reset_is_unknown_the_one_that_met_it_goes_first_by_its_own_next_turn() -> None:
    row = a_limit(resets_at=None, met_by=b.TASK.id)
    first = limits.own_moment(row, b.TASK, POLICY)
    others = [limits.own_moment(row, replace(b.TASK, id=TaskId(f"t-{n}")), POLICY) for n in range(10)]
    assert first <= row.until + POLICY.limit_jitter < row.until + POLICY.limit_lead <= min(others)


def test_a_turn_that_goes_through_ends_the_limits_that_stood_before_it() -> None:
    before, other = a_limit(met_at=b.NOW - b.H, until=b.NOW - b.MIN), a_limit(account="claude/other")
    later = a_limit(name="weekly", met_at=b.NOW)
    snapshot = replace(worked(overloads=2), limits=(before, other, later))
    after = b.settled(snapshot, b.ended(b.ACKNOWLEDGED, "status: working\nsummary: half"))
    row = after.one(UsageLimit)
    assert (row.id, row.closed_at) == (before.id, b.NOW)
    assert after.task.overloads == 0


def test_too_often_in_a_row_is_a_persons() -> None:
    known = a_limit(met=POLICY.limit_tries - 1)
    after = b.settled(replace(worked(), limits=(known,)), ended(hindered()))
    assert {row.kind for row in after.all(Wait)} == {WaitKind.LIMIT, WaitKind.HUMAN}


def test_an_overloaded_service_is_tried_again_apart_from_limits() -> None:
    after = b.settled(worked(), ended(hindered(Hindrance.OVERLOAD)))
    assert not after.all(UsageLimit)
    wait = after.one(Wait)
    assert wait.kind is WaitKind.TIME
    assert wait.until is not None
    assert POLICY.overload_retry[0] <= wait.until - b.NOW <= POLICY.overload_retry[0] * 1.25
    assert (after.task.attempts, after.task.overloads, after.task.faults) == (2, 1, 0)
    often = b.settled(worked(overloads=POLICY.overload_tries - 1), ended(hindered(Hindrance.OVERLOAD)))
    assert often.one(Wait).kind is WaitKind.HUMAN


def test_a_program_that_is_not_let_in_is_a_persons() -> None:
    after = b.settled(worked(), ended(hindered(Hindrance.LOGIN)))
    assert after.one(Wait).kind is WaitKind.HUMAN
    assert after.task.attempts == 2


def test_a_full_session_is_taken_over_by_a_fresh_one_with_one_row_of_lineage() -> None:
    after = b.settled(worked(), ended(hindered(Hindrance.CONTEXT)))
    assert after.task.session_over == b.TALK.id
    assert after.one(Wake).kind is WakeKind.EVENT
    full = b.with_wake(snapshot=b.with_task(session_over=b.TALK.id, standing=Standing.HINDERED, agent=AGENT))
    decision = b.decided(full)
    assert isinstance(decision.intent, OpenConversation)
    assert "nothing more fits" in decision.intent.why


def test_fresh_sessions_again_and_again_are_a_persons() -> None:
    after = b.settled(worked(fresh_sessions=POLICY.fresh_sessions), ended(hindered(Hindrance.CONTEXT)))
    assert after.one(Wait).kind is WaitKind.HUMAN


def test_a_stopped_task_waits_for_nothing() -> None:
    after = b.settled(b.cancelled(worked()), ended(hindered()))
    assert not after.all(Wait)
    assert not after.all(Wake)
    assert after.one(Attempt).outcome is AttemptOutcome.HINDERED


def test_br_085_pause_stop_and_manual_win_over_any_reset() -> None:
    reset = b.with_wake(WakeKind.LIMIT, snapshot=b.with_task(standing=Standing.HINDERED, agent=AGENT))
    assert isinstance(b.decided(reset).intent, Continue)
    for fields, rung in (
        ({"paused_at": b.NOW, "paused_by": "sam"}, Rung.PAUSED),
        ({"auto_resume": AutoResume.MANUAL}, Rung.MANUAL),
    ):
        because = b.because(b.with_task(reset, **fields))
        assert because.rung is rung
    assert b.because(b.cancelled(reset)).rung is Rung.TERMINAL


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "ends"),
    [
        (datetime(2026, 3, 1, 21, 59, tzinfo=UTC), None),
        (datetime(2026, 3, 1, 22, 0, tzinfo=UTC), datetime(2026, 3, 2, 6, 0, tzinfo=UTC)),
        (datetime(2026, 3, 2, 3, 0, tzinfo=UTC), datetime(2026, 3, 2, 6, 0, tzinfo=UTC)),
        (datetime(2026, 3, 2, 6, 0, tzinfo=UTC), None),
        (datetime(2026, 3, 28, 23, 0, tzinfo=UTC), datetime(2026, 3, 29, 5, 0, tzinfo=UTC)),
    ],
)
def test_quiet_hours_go_over_midnight_in_their_own_zone(now: datetime, ends: datetime | None) -> None:
    assert Quiet(time(23), time(7), BERLIN).until(now) == ends


def test_br_084_quiet_hours_hold_a_task_that_a_limit_stopped_until_a_person_asks() -> None:
    ends = b.NOW + 5 * b.H
    held = b.with_wake(WakeKind.LIMIT, snapshot=b.with_task(standing=Standing.HINDERED, agent=AGENT))
    because = decide(replace(b.see(held), quiet_until=ends), b.NOW).because
    assert because is not None
    assert (because.rung, because.until) == (Rung.LIMIT, ends)
    asked = b.with_wake(WakeKind.MANUAL, snapshot=held)
    assert isinstance(decide(replace(b.see(asked), quiet_until=ends), b.NOW).intent, Continue)
    other = b.with_wake(WakeKind.LIMIT, snapshot=b.with_task(standing=Standing.WORKING, agent=AGENT))
    assert isinstance(decide(replace(b.see(other), quiet_until=ends), b.NOW).intent, Continue)
