"""Pages age within seconds: what was seen too long ago, moved just now or cannot all be true holds a send back."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import arm, decide, reconcile, trust
from tenuto.model.command import CommandKind
from tenuto.model.decision import Continue, Rung
from tenuto.model.evidence import Observation, PageFacts, Rank
from tenuto.model.ids import CommandId
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Flawed, Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import Defect, Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import Standing, WakeKind

URL = "https://chat.example/c/1"
DESK, WEB = ToolBinding("desk", URL), ToolBinding("web", URL)
DUE = b.with_task(b.with_wake(), tools=(DESK,))
CUT = b.with_task(DUE, standing=Standing.CUT_SHORT)
BOTH = b.with_task(DUE, tools=(DESK, WEB))
JUST = timedelta(microseconds=1)


def page(at: datetime = b.NOW, binding: ToolBinding = DESK, **more: Any) -> Observation:
    told: dict[str, Any] = {"shown": True, "window": "w-1", "generating": False, **more}
    return Observation("accessibility", Rank.OUTSIDE, binding.subject, at, WatchedFacts(binding, **told))


def flaws(snapshot: Snapshot, *looks: Observation) -> list[Flaw]:
    return [each.flaw for each in b.found(snapshot, *looks).findings if isinstance(each, Flawed)]


def goes_on(seen: Seen) -> bool:
    return isinstance(decide.decide(seen, b.NOW).intent, Continue)


def until(snapshot: Snapshot, *looks: Observation, anyway: bool = False) -> datetime | None:
    """Until when a turn may be written down on what was seen."""
    intent = Continue(WakeKind.MANUAL, anyway=anyway)
    seen = b.see(snapshot, *looks)
    written = arm.turn(seen, intent, CommandId("c-1"), "[tenuto:c-1]\nGo on.", (), "digest", None, b.NOW, b.new)
    assert written is not None
    return written.commit.valid_until


# -- too old


@pytest.mark.parametrize(
    ("number", "more"),
    [("page_fresh", {}), ("network_fresh", {"requests": 0}), ("network_fresh", {"heard_at": b.NOW - b.MIN})],
    ids=["page", "lines", "heard"],
)
def test_a_page_is_believed_for_as_long_as_the_policy_says_and_no_longer(number: str, more: dict[str, Any]) -> None:
    for fresh in (getattr(POLICY, number), 7 * b.S):
        rules = b.with_policy(DUE, **{number: fresh})
        assert goes_on(b.see(rules, page(b.NOW - fresh, **more)))
        late = page(b.NOW - fresh - JUST, **more)
        assert flaws(rules, late) == [Flaw.STALE]
        because = b.because(rules, late)
        assert (because.rung, because.until is not None) == (Rung.EVIDENCE, True)


def test_the_page_of_a_conversation_ages_as_fast() -> None:
    def shown(ago: timedelta) -> Observation:
        return Observation("extension", Rank.PAGE, URL, b.NOW - ago, PageFacts(shown=True, state="ready"))

    assert flaws(b.with_wake(), shown(POLICY.page_fresh)) == []
    assert flaws(b.with_wake(), shown(POLICY.page_fresh + JUST)) == [Flaw.STALE]
    other = b.with_policy(b.with_wake(), page_fresh=90 * b.S)
    assert flaws(other, shown(90 * b.S)) == []


def test_a_turn_is_written_down_only_while_its_page_is_fresh() -> None:
    assert until(DUE, page()) == b.NOW + POLICY.arm_within, "a look of now bounds less than the rest"
    assert until(DUE, page(b.NOW - 25 * b.S)) == b.NOW - 25 * b.S + POLICY.page_fresh
    slow = b.with_policy(DUE, arm_within=b.MIN, network_fresh=20 * b.S)
    assert until(slow, page(requests=0)) == b.NOW + 20 * b.S
    two = b.with_policy(BOTH, arm_within=b.MIN)
    assert until(two, page(), page(b.NOW - 10 * b.S, WEB)) == b.NOW + 20 * b.S, "the oldest of them counts"
    assert until(DUE, page(b.NOW - b.MIN), anyway=True) == b.NOW + POLICY.arm_within, "what a person passed is passed"


def test_nothing_but_a_send_waits_for_a_fresh_page() -> None:
    """Ending what is running is never held up by a page that nobody looked at."""
    seen = b.see(b.with_task(b.with_live(), tools=(DESK,)), page(b.NOW - b.H))
    assert seen.snapshot.live is not None
    written = arm.interrupt(seen, seen.snapshot.live.id, b.NOW, b.new)
    assert written is not None
    assert written.command.kind is CommandKind.INTERRUPT
    assert written.commit.valid_until == b.NOW + POLICY.arm_within


# -- right before the step


@pytest.mark.parametrize(
    "again",
    [
        [page(b.NOW - POLICY.page_fresh - JUST)],
        [page(b.NOW + b.MIN)],
        [page(b.NOW - 6 * b.S)],
        [page(), page()],
        [page(), page(generating=None)],
        [page(send_ready=True, generating=True)],
        [page(changed_at=b.NOW - b.S)],
        [page(heard_at=b.NOW - b.S)],
        [page(changed_at=b.NOW + b.MIN)],
        [],
    ],
    ids=["stale", "future", "back", "twice", "unlike", "untrue", "moved", "heard", "moves later", "gone"],
)
def test_what_is_seen_again_right_before_the_step_must_be_good_too(again: list[Observation]) -> None:
    seen = b.see(DUE, page())
    assert goes_on(seen)
    assert reconcile.still(seen, [page()], b.NOW)
    assert not reconcile.still(seen, again, b.NOW)


def test_what_a_person_passed_is_passed_right_before_the_step_too_and_nothing_else_is() -> None:
    old = page(b.NOW - b.MIN)
    seen = b.see(b.with_wake(WakeKind.MANUAL, DUE, anyway=True), old)
    assert reconcile.still(seen, [old], b.NOW)
    torn = page(b.NOW - b.MIN, defects=(Defect(Flaw.UNREADABLE, "x"),))
    assert not reconcile.still(seen, [torn], b.NOW)


# -- moved just now


@pytest.mark.parametrize(
    ("number", "moment"), [("page_quiet", "changed_at"), ("network_quiet", "heard_at")], ids=["page", "network"]
)
def test_a_page_that_moved_just_now_holds_a_send_until_it_has_been_still(number: str, moment: str) -> None:
    def moved(ago: timedelta, **more: Any) -> Observation:
        told: dict[str, Any] = {moment: b.NOW - ago, **more}
        return page(**told)

    for quiet in (getattr(POLICY, number), 2 * b.S):
        rules = b.with_policy(DUE, **{number: quiet})
        because = b.because(rules, moved(quiet - JUST))
        assert (because.rung, because.until) == (Rung.PAGE, b.NOW + JUST)
        assert "page unwatch" in because.change
        assert goes_on(b.see(rules, moved(quiet)))
    soon = b.because(DUE, moved(-b.S))
    assert soon.rung is Rung.PAGE, "a clock may differ by a little"
    waits_not = b.with_policy(DUE, **{number: timedelta(0)})
    assert goes_on(b.see(waits_not, moved(timedelta(0))))
    assert goes_on(b.see(DUE, moved(timedelta(0), shown=False, window=None, generating=None)))


# -- not to be believed


@pytest.mark.parametrize(
    ("flaw", "snapshot", "looks"),
    [
        (Flaw.STALE, DUE, (page(b.NOW - b.MIN),)),
        (Flaw.FUTURE, DUE, (page(b.NOW + b.MIN),)),
        (Flaw.FUTURE, DUE, (page(changed_at=b.NOW + b.MIN),)),
        (Flaw.FUTURE, DUE, (page(heard_at=b.NOW + b.MIN),)),
        (Flaw.DUPLICATED, DUE, (page(), page())),
        (Flaw.CONTRADICTORY, DUE, (page(), page(generating=True))),
        (Flaw.CONTRADICTORY, DUE, (page(generating=True, send_ready=True),)),
        (Flaw.CONTRADICTORY, DUE, (page(shown=False),)),
        (Flaw.CONTRADICTORY, DUE, (page(shown=None, generating=None, send_ready=True),)),
        (Flaw.CONTRADICTORY, BOTH, (page(), page(binding=WEB, generating=True))),
        (Flaw.MISSING, BOTH, (page(),)),
    ],
)
def test_a_flaw_of_a_page_is_a_finding_and_stops_the_ladder(
    flaw: Flaw, snapshot: Snapshot, looks: tuple[Observation, ...]
) -> None:
    assert flaws(snapshot, *looks) == [flaw]
    assert b.because(snapshot, *looks).rung is Rung.EVIDENCE
    refused = trust.deciding(b.found(snapshot, *looks).findings)
    assert [each.rank for each in refused] == [Rank.OUTSIDE]


def test_a_page_that_was_seen_before_what_is_known_of_it_goes_back() -> None:
    known = replace(b.sighting(source="accessibility", rank=3, shown="true"), subject=DESK.subject, seen_at=b.NOW)
    snapshot = replace(DUE, sightings=(known,))
    assert flaws(snapshot, page(b.NOW - 10 * b.S)) == [Flaw.ROLLED_BACK]
    assert b.because(snapshot, page(b.NOW - 10 * b.S)).rung is Rung.EVIDENCE
    assert flaws(snapshot, page()) == []
    ahead = replace(known, seen_at=b.NOW + b.H)
    assert flaws(replace(DUE, sightings=(ahead,)), page()) == [], "the clock went back: a fresh look is no old one"


def test_witnesses_that_may_look_at_two_windows_do_not_contradict_each_other() -> None:
    named = ToolBinding("web", f"{URL} in w-2")
    snapshot = b.with_task(DUE, tools=(DESK, named))
    assert flaws(snapshot, page(), page(binding=named, generating=True)) == []
    assert flaws(BOTH, page(), page(binding=WEB, generating=None)) == []
    assert flaws(BOTH, page(), page(binding=WEB, shown=False, window=None, generating=None)) == []


def test_a_look_at_what_cannot_be_believed_agrees_with_no_good_one() -> None:
    """Somebody records looks by hand while a page is seen late: they prove nothing for a recovery."""
    good, late = b.see(CUT, page()), b.see(CUT, page(b.NOW - b.MIN))
    assert late.found.fence != good.found.fence
    assert f"flawed {DESK.subject} stale" in late.found.members
    doubtful = replace(CUT, samples=(b.sampled(late, 5 * b.S), b.sampled(late, 10 * b.S)))
    assert not goes_on(b.see(doubtful, page()))
    proven = replace(CUT, samples=(b.sampled(good, 5 * b.S), b.sampled(good, 10 * b.S)))
    assert goes_on(b.see(proven, page()))
