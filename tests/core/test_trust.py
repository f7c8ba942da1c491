"""Evidence that cannot be believed is a finding, and nothing that is added to it makes a send more permitted."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import decide, reconcile, rungs, signs, trust
from tenuto.model.decision import Continue, Rung
from tenuto.model.evidence import Observation, Rank, Sighting, WorkspaceFacts
from tenuto.model.reconciliation import Flawed, Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import CallState, ClaimState, Defect, Flaw, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import Standing, WakeKind

DUE = b.with_tools(b.with_wake())
CUT = b.with_task(DUE, standing=Standing.CUT_SHORT)
QUIET = b.tools()


def flaws(snapshot: Snapshot, *looks: Observation) -> list[Flaw]:
    found = b.found(snapshot, *looks).findings
    return [each.flaw for each in found if isinstance(each, Flawed)]


def proven(snapshot: Snapshot, *looks: Observation) -> Seen:
    """As seen after two looks that agreed."""
    seen = b.see(snapshot, *looks)
    samples = (b.sampled(seen, 5 * b.S), b.sampled(seen, 10 * b.S))
    return b.see(replace(snapshot, samples=samples), *looks)


def goes_on(seen: Seen) -> bool:
    return isinstance(decide.decide(seen, b.NOW).intent, Continue)


def test_quiet_tools_hold_nothing() -> None:
    assert goes_on(b.see(DUE, QUIET))
    assert goes_on(proven(CUT, QUIET))


@pytest.mark.parametrize(
    ("flaw", "looks"),
    [
        (Flaw.FUTURE, (b.tools(at=b.NOW + b.MIN),)),
        (Flaw.STALE, (b.tools(at=b.NOW - b.H),)),
        (Flaw.DUPLICATED, (QUIET, QUIET)),
        (Flaw.CONTRADICTORY, (QUIET, b.tools(sequence=9))),
        (Flaw.MISSING, ()),
        (Flaw.UNREADABLE, (b.tools(state=None, defects=(Defect(Flaw.UNREADABLE, "cut off"),)),)),
        (Flaw.UNKNOWN_VERSION, (b.tools(state=None, defects=(Defect(Flaw.UNKNOWN_VERSION, "9"),)),)),
    ],
)
def test_a_flaw_is_found_and_stops_the_ladder(flaw: Flaw, looks: tuple[Observation, ...]) -> None:
    assert flaws(DUE, *looks) == [flaw]
    because = b.because(DUE, *looks)
    assert because.rung is Rung.EVIDENCE
    assert because.until is not None
    assert not goes_on(b.see(DUE, *looks))


def test_records_that_go_back_are_found() -> None:
    known = signs.sighting(b.TASK.id, b.tools(sequence=9), b.new("observation"), b.NOW)  # type: ignore[arg-type]
    assert flaws(replace(DUE, sightings=(known,)), b.tools(sequence=8)) == [Flaw.ROLLED_BACK]
    assert flaws(replace(DUE, sightings=(known,)), b.tools(sequence=9)) == []
    again = signs.sighting(b.TASK.id, b.tools(sequence=8), b.new("observation"), b.NOW)  # type: ignore[arg-type]
    kept = (known, replace(again, seen_at=b.NOW + b.S))
    assert flaws(replace(DUE, sightings=kept), b.tools(sequence=8)) == [Flaw.ROLLED_BACK], "kept is not believed"
    late = b.tools(at=b.NOW - b.MIN, sequence=9)
    assert flaws(replace(DUE, sightings=(known,)), late) == [Flaw.ROLLED_BACK]


def test_a_clock_that_went_back_makes_no_fresh_look_look_old() -> None:
    known = signs.sighting(b.TASK.id, b.tools(sequence=9), b.new("observation"), b.NOW)  # type: ignore[arg-type]
    ahead = replace(known, seen_at=b.NOW + b.H)
    assert flaws(replace(DUE, sightings=(ahead,)), b.tools(sequence=9)) == []


def test_a_clock_that_went_back_makes_no_look_news_again_and_again() -> None:
    busy = signs.sighting(b.TASK.id, b.tools(calls=(b.CALL,)), b.new("observation"), b.NOW)  # type: ignore[arg-type]
    ahead = replace(DUE, sightings=(replace(busy, seen_at=b.NOW + b.H),))
    kept = b.settled(ahead, QUIET).one(Sighting)
    assert b.settled(replace(ahead, sightings=(*ahead.sightings, kept)), QUIET).nothing


def test_hearsay_is_shown_and_decides_nothing() -> None:
    """Rank 5 never decides a send: neither what it says nor what is wrong with it."""
    said = b.sighting(calls="3", jobs="2", plan="blocked")
    future = replace(b.sighting(generating="true"), seen_at=b.NOW + b.H)
    twice = replace(said, id=b.new("observation"), facts=(("calls", "0"),), digest="x")  # type: ignore[arg-type]
    snapshot = replace(DUE, sightings=(said, twice, future))
    assert set(flaws(snapshot, QUIET)) == {Flaw.FUTURE, Flaw.CONTRADICTORY}
    assert goes_on(b.see(snapshot, QUIET))
    assert not trust.deciding(b.found(snapshot, QUIET).findings)


ADDED: dict[str, dict[str, Any]] = {
    "call": {"calls": (b.CALL,)},
    "orphan": {"calls": (replace(b.CALL, state=CallState.ORPHANED),)},
    "job": {"jobs": (b.JOB,)},
    "claim": {"claim": ClaimState.PENDING, "plan": b.PLAN},
    "flaw": {"defects": (Defect(Flaw.CONTRADICTORY, "two ways"),)},
}
PAGE = ToolBinding("desk", "https://chat.example/c/1")
GENERATING = Observation(
    "accessibility", Rank.OUTSIDE, PAGE.subject, b.NOW, WatchedFacts(PAGE, shown=True, window="w-1", generating=True)
)
WORLDS = {
    "ordinary": DUE,
    "cut short": CUT,
    "asked": b.with_wake(WakeKind.MANUAL, DUE),
    "anyway": b.with_wake(WakeKind.MANUAL, DUE, anyway=True),
    "cut short, anyway": b.with_wake(WakeKind.MANUAL, CUT, anyway=True),
}


@pytest.mark.parametrize("world", WORLDS)
def test_more_activity_never_makes_a_send_more_permitted(world: str) -> None:
    """Over every set of additions and every larger one: what the larger permits, the smaller permits too."""
    permitted: dict[frozenset[str], bool] = {}
    for size in range(len(ADDED) + 2):
        for names in itertools.combinations((*ADDED, "page"), size):
            fields: dict[str, Any] = {}
            for name in names:
                fields |= ADDED.get(name, {})
            if {"call", "orphan"} <= set(names):
                fields["calls"] = (b.CALL, replace(b.CALL, id="d" * 32, state=CallState.ORPHANED))
            snapshot, looks = WORLDS[world], [b.tools(**fields)]
            if "page" in names:
                snapshot = b.with_task(snapshot, tools=(*snapshot.task.tools, PAGE))
                looks.append(GENERATING)
            permitted[frozenset(names)] = goes_on(proven(snapshot, *looks))
    assert permitted[frozenset()]
    for smaller, larger in itertools.product(permitted, permitted):
        if smaller <= larger and permitted[larger]:
            assert permitted[smaller], (smaller, larger)
    for these, may in permitted.items():
        held = {"call", "orphan", "page"} | ({"job", "claim"} if world not in ("ordinary", "asked") else set())
        held |= set() if "anyway" in world else {"flaw"}
        assert may == (not these & held), (world, these)


def test_a_service_never_ends_and_holds_nothing() -> None:
    service = replace(b.JOB, service=True)
    assert goes_on(proven(CUT, b.tools(jobs=(service,))))
    because = b.because(CUT, b.tools(jobs=(b.JOB,)))
    assert because.rung is Rung.TOOL
    assert b.JOB.id in because.change


def test_an_orphan_is_never_sent_past_and_says_how_long() -> None:
    world = b.with_wake(WakeKind.MANUAL, DUE, anyway=True)
    because = b.because(world, b.tools(calls=(replace(b.CALL, state=CallState.ORPHANED),)))
    assert because.rung is Rung.TOOL
    assert "60 s" in because.sentence
    assert "unbind" in because.change


def test_tools_are_in_the_fence_by_what_they_are_and_not_by_their_times() -> None:
    fence = b.found(DUE, QUIET).fence
    assert b.found(DUE, b.tools(active_at=b.NOW, sequence=70)).fence == fence
    for fields in ADDED.values():
        assert b.found(DUE, b.tools(**fields)).fence != fence
    other = b.workspace()
    assert isinstance(other.facts, WorkspaceFacts)
    moved = replace(other, facts=replace(other.facts, branch="other"))
    assert b.found(DUE, QUIET, other).fence != b.found(DUE, QUIET, moved).fence


def test_a_call_that_began_since_the_arming_is_not_joined() -> None:
    seen = b.see(DUE, QUIET)
    assert reconcile.still(seen, [QUIET], b.NOW)
    assert not reconcile.still(seen, [b.tools(calls=(b.CALL,))], b.NOW)
    assert reconcile.still(seen, [b.tools(jobs=(b.JOB,))], b.NOW)
    assert not reconcile.still(b.see(CUT, QUIET), [b.tools(jobs=(b.JOB,))], b.NOW)


def test_the_look_is_kept_once_and_again_when_it_says_something_else() -> None:
    kept = b.settled(DUE, QUIET).one(Sighting)
    known = replace(DUE, sightings=(kept,))
    assert b.settled(known, b.tools(at=b.NOW + b.S, sequence=8)).nothing
    again = b.settled(known, b.tools(calls=(b.CALL,))).one(Sighting)
    assert dict(again.facts)["calls"] == "1"
    assert rungs.TOOL_LOOK > 0 * b.S
    assert kept.rank == Rank.JOURNAL
