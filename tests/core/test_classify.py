"""The table of health: one world for every row, and what no evidence may ever bring about."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.support import builders as b

from tenuto.core import classify, signs
from tenuto.model.evidence import Mark, Observation, PageFacts, Presence, Rank, WorkspaceKind
from tenuto.model.health import LOUD, Confidence, Health
from tenuto.model.lifecycle import TaskState
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import CallState, ClaimState, Defect, Flaw, PlanState, SessionState, ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import AutoResume, Standing, WaitKind

ALIVE, GONE, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.UNKNOWN
BOUND = b.with_tools(b.with_task(b.IDLE, standing=Standing.CUT_SHORT))
LIVE = b.with_live()
FRESH = b.with_task(replace(b.IDLE, last=None, conversation=None), attempts=0, standing=Standing.NEW)


def page(**said: str) -> Snapshot:
    """A task whose page was seen so, by a sensor of ours."""
    snapshot = b.with_task(b.IDLE, standing=Standing.CUT_SHORT)
    told: dict[str, Any] = dict(said)
    return replace(snapshot, sightings=(b.sighting(source="page", rank=2, **told),))


def case(snapshot: Snapshot, *looks: Observation, watched: Any = b.NOW - b.H) -> classify.Case:
    return classify.of(b.see(snapshot, *looks), watched, b.NOW)


def away(since: Any, watched: Any = b.NOW - b.H) -> classify.Case:
    """A turn whose executor could not be asked since then."""
    seen = b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, UNKNOWN, UNKNOWN, unreachable="agent:far is not connected")
    return classify.of(b.see(LIVE, seen), watched, b.NOW, since)


def ago(seconds: int) -> str:
    return (b.NOW - seconds * b.S).isoformat()


#: number of the row, what must come out, and the world.
WORLDS: tuple[tuple[str, Health, Confidence, classify.Case], ...] = (
    ("1", Health.COMPLETED, Confidence.HIGH, case(b.with_task(state=TaskState.COMPLETED))),
    ("1", Health.FAILED, Confidence.HIGH, case(b.with_task(LIVE, state=TaskState.FAILED))),
    ("1", Health.CANCELLED, Confidence.HIGH, case(b.with_task(state=TaskState.CANCELLED))),
    ("1b", Health.WAITING, Confidence.HIGH, case(b.with_wait(WaitKind.HUMAN))),
    ("1b", Health.RESTING, Confidence.HIGH, case(b.with_task(paused_at=b.NOW, paused_by="sam"))),
    ("1b", Health.RESTING, Confidence.HIGH, case(b.with_task(auto_resume=AutoResume.MANUAL))),
    ("1b", Health.RUNNING, Confidence.MEDIUM, case(page(retrying="true"))),
    ("2", Health.CLAIMED, Confidence.HIGH, case(BOUND, b.tools(state=SessionState.COMPLETED))),
    ("3", Health.BLOCKED, Confidence.HIGH, case(BOUND, b.tools(plan=replace(b.PLAN, state=PlanState.BLOCKED)))),
    ("4", Health.CLAIMED, Confidence.HIGH, case(BOUND, b.tools(plan=replace(b.PLAN, state=PlanState.COMPLETED)))),
    ("5", Health.RUNNING, Confidence.HIGH, case(BOUND, b.tools(calls=(b.CALL,)))),
    ("5", Health.RUNNING, Confidence.HIGH, case(BOUND, b.tools(jobs=(b.JOB,)))),
    ("5", Health.RUNNING, Confidence.HIGH, case(LIVE, b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, ALIVE, ALIVE))),
    ("5b", Health.NEEDS_HUMAN, Confidence.MEDIUM,
     case(BOUND, b.tools(calls=(replace(b.CALL, state=CallState.ORPHANED),)))),
    ("5c", Health.NEEDS_HUMAN, Confidence.HIGH, away(b.NOW - 600 * b.S)),
    ("6", Health.NEEDS_HUMAN, Confidence.HIGH, case(b.IDLE, b.workspace(None, WorkspaceKind.MISSING))),
    ("6b", Health.RECONCILING, Confidence.MEDIUM,
     case(BOUND, b.tools(state=None, defects=(Defect(Flaw.UNKNOWN_VERSION, "version 9"),)))),
    ("7", Health.RECONCILING, Confidence.HIGH, case(page(delivery_error="true", generating="false"))),
    ("7", Health.RECONCILING, Confidence.HIGH, case(replace(b.IDLE, commands=(b.DOUBTFUL,)))),
    ("8", Health.RECONCILING, Confidence.MEDIUM, case(page(send_ready="true", tool_card="true"))),
    ("9", Health.RUNNING, Confidence.MEDIUM, case(BOUND, b.tools(plan=b.PLAN, claim=ClaimState.PENDING))),
    ("9b", Health.NEEDS_HUMAN, Confidence.HIGH,
     case(BOUND, b.tools(plan=b.PLAN, claim=ClaimState.EXHAUSTED, active_at=b.NOW - 181 * b.S))),
    ("10", Health.SUSPECT, Confidence.MEDIUM, case(BOUND, b.tools(plan=b.PLAN, due_at=b.NOW))),
    ("10", Health.RECONCILING, Confidence.MEDIUM,
     case(replace(BOUND, sightings=(b.sighting(rank=4, network_at=ago(20)),)), b.tools(plan=b.PLAN, due_at=b.NOW))),
    ("11", Health.SUSPECT, Confidence.MEDIUM, case(BOUND, b.tools(plan=b.PLAN, active_at=b.NOW - 200 * b.S))),
    ("11", Health.SUSPECT, Confidence.HIGH, case(BOUND, b.tools(plan=b.PLAN, active_at=b.NOW - 700 * b.S))),
    ("12", Health.RUNNING, Confidence.MEDIUM, case(page(generating="true"))),
    ("13", Health.RUNNING, Confidence.MEDIUM, case(BOUND, b.tools(plan=b.PLAN))),
    ("13a", Health.RUNNING, Confidence.LOW, case(BOUND, b.tools(active_at=b.NOW - b.S))),
    ("13b", Health.RUNNING, Confidence.LOW, case(LIVE, b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, UNKNOWN, UNKNOWN))),
    ("14", Health.STARTING, Confidence.HIGH, case(b.with_task(FRESH, state=TaskState.PENDING, started_at=None))),
    ("14", Health.STARTING, Confidence.MEDIUM, case(b.with_task(FRESH, started_at=b.NOW - b.MIN))),
    ("14b", Health.RECOVERING, Confidence.MEDIUM, case(b.with_task(standing=Standing.CUT_SHORT))),
    ("14c", Health.RESTING, Confidence.MEDIUM, case(b.IDLE)),
    ("15", Health.UNKNOWN, Confidence.HIGH, case(b.with_task(FRESH, started_at=b.NOW - b.H))),
    ("16", Health.SUSPECT, Confidence.LOW,
     case(replace(b.with_task(FRESH, started_at=b.NOW - b.H), sightings=(b.sighting(generating="false"),)))),
)  # fmt: skip


@pytest.mark.parametrize(("number", "health", "confidence", "world"), WORLDS, ids=[f"{n}-{h}" for n, h, *_ in WORLDS])
def test_a_world_is_judged_by_its_row(
    number: str, health: Health, confidence: Confidence, world: classify.Case
) -> None:
    said = classify.classify(world)
    assert (said.row, said.value, said.confidence) == (number, health, confidence)
    assert said.why
    assert "{" not in said.mend


def test_every_row_has_a_world_and_is_missed_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, decided = classify.TABLE, set()
    for *_, world in WORLDS:
        place = next(place for place, row in enumerate(whole) if row.when(world) is not None)
        decided.add(place)
        with_it = classify.classify(world)
        monkeypatch.setattr(classify, "TABLE", (*whole[:place], *whole[place + 1 :], whole[-1]))
        without = classify.classify(world)
        said, left = ((each.row, each.value, each.confidence) for each in (with_it, without))
        assert place == len(whole) - 1 or said != left
        monkeypatch.setattr(classify, "TABLE", whole)
    assert decided == set(range(len(whole)))


def test_a_live_call_outweighs_every_idle_look_of_a_page() -> None:
    """BR-058, BR-053: a page that looks ready to send says nothing against a tool call that is open."""
    for said in itertools.product(("true", "false"), repeat=3):
        idle = page(send_ready=said[0], tool_card=said[1], generating=said[2])
        world = case(b.with_tools(idle), b.tools(calls=(b.CALL,)))
        assert classify.classify(world).row == "5"


ADDED: dict[str, dict[str, Any]] = {
    "call": {"calls": (b.CALL,)},
    "job": {"jobs": (b.JOB,)},
    "claim": {"claim": ClaimState.PENDING},
}

PAGE = ToolBinding("desk", "https://chat.example/c/1")
WATCHED = b.with_task(BOUND, tools=(*BOUND.task.tools, PAGE))
GENERATING = Observation(
    "accessibility", Rank.OUTSIDE, PAGE.subject, b.NOW, WatchedFacts(PAGE, shown=True, window="w-1", generating=True)
)


@pytest.mark.parametrize("number", [number for number, *_ in WORLDS if number in {"10", "11", "13"}])
@pytest.mark.parametrize("added", [*ADDED, "page"])
def test_stronger_evidence_of_activity_never_makes_a_task_look_worse(number: str, added: str) -> None:
    for plan, due, active in itertools.product((None, b.PLAN), (None, b.NOW), (10, 200, 700)):
        fields: dict[str, Any] = {"plan": plan, "due_at": due, "active_at": b.NOW - active * b.S}
        before = classify.classify(case(BOUND, b.tools(**fields)))
        more = b.tools(**fields, **ADDED.get(added, {}))
        after = classify.classify(case(WATCHED, more, GENERATING) if added == "page" else case(BOUND, more))
        assert not (after.value in LOUD and before.value not in LOUD), (before, after)


@pytest.mark.parametrize("first", [0, 1])
def test_a_session_that_is_over_says_nothing_of_another_that_works(first: int) -> None:
    """Whichever was looked at first, and a moment before the other."""
    other = ToolBinding("local", "s_" + "9" * 24)
    over = b.tools(state=SessionState.COMPLETED, plan=replace(b.PLAN, state=PlanState.COMPLETED))
    at_work = replace(b.tools(binding=other, plan=b.PLAN, calls=(b.CALL,)), subject=other.subject)
    looks = [over, at_work] if first == 0 else [at_work, over]
    looks = [replace(look, seen_at=b.NOW - (2 - place) * b.S) for place, look in enumerate(looks)]
    both = b.with_task(BOUND, tools=(b.SESSION, other))
    assert classify.classify(case(both, *looks)).row == "5"
    idle = replace(b.tools(binding=other, plan=b.PLAN), subject=other.subject, seen_at=at_work.seen_at)
    assert (
        classify.classify(case(both, *(idle if look.subject == other.subject else look for look in looks))).row == "13"
    )
    assert classify.classify(case(both, over)).row == "2"


def test_silence_counts_only_while_somebody_looked() -> None:
    """Quiet counts from the start of uninterrupted observation."""
    silent = b.tools(plan=b.PLAN, active_at=b.NOW - b.DAY)
    assert classify.classify(case(BOUND, silent, watched=b.NOW - 10 * b.S)).row == "13"
    assert classify.classify(case(BOUND, silent, watched=None)).row == "13"
    assert classify.classify(case(BOUND, silent, watched=b.NOW - 181 * b.S)).value is Health.SUSPECT


def test_a_heartbeat_is_no_word_of_the_agent() -> None:
    stale = replace(b.CALL, state=CallState.STALE, heartbeat_at=b.NOW)
    world = case(BOUND, b.tools(plan=b.PLAN, calls=(stale,), active_at=b.NOW - 700 * b.S))
    assert classify.classify(world).value is Health.SUSPECT
    clocks = classify.clocks(world)
    assert clocks.call_heartbeat == b.NOW
    assert clocks.progressed is None


def test_the_last_continuation_is_given_the_time_to_be_taken_up() -> None:
    """What the server may not continue again is a person's when nothing came of the last time, and not at once."""
    spent = b.tools(plan=b.PLAN, claim=ClaimState.EXHAUSTED, active_at=b.NOW - 180 * b.S)
    assert classify.classify(case(BOUND, spent)).row == "13"
    later = b.tools(plan=b.PLAN, claim=ClaimState.EXHAUSTED, active_at=b.NOW - 181 * b.S)
    assert classify.classify(case(BOUND, later)).row == "9b"


def test_traffic_is_a_clock_of_its_own_and_the_weakest_word() -> None:
    """That something came from a program keeps nothing healthy, is no progress and makes no row."""
    stirred = replace(b.facts(b.SEND, Mark.ACCEPTED), heard_at=b.NOW - b.S)
    world = case(BOUND, Observation("host", Rank.JOURNAL, b.SEND.id, b.NOW, stirred))
    clocks = classify.clocks(world)
    assert (clocks.network, clocks.progressed, clocks.page_changed) == (b.NOW - b.S, None, None)
    assert world.signs["network_at"].rank is Rank.NETWORK
    silent = case(BOUND, Observation("host", Rank.JOURNAL, b.SEND.id, b.NOW, replace(stirred, heard_at=None)))
    assert classify.clocks(silent).network is None, "where nobody hears it, nothing is said"
    assert classify.classify(world) == classify.classify(silent)
    assert not signs.news((), [Observation("host", Rank.JOURNAL, b.SEND.id, b.NOW, stirred)])


def test_a_page_that_may_be_still_is_not_suspect() -> None:
    """A page whose turn is over has nothing to show; one that should be at work has."""

    def world(generating: str) -> classify.Case:
        facts = PageFacts(shown=True, state="ready", generating=generating, changed_at=b.NOW - b.H)
        return case(b.IDLE, Observation("ext:one", Rank.PAGE, "p", b.NOW, facts), watched=b.NOW - b.H)

    assert classify.clocks(world("no")).page_changed == b.NOW - b.H
    assert classify.classify(world("no")).value is Health.RESTING
    assert classify.classify(world("unknown")).value is Health.SUSPECT


def test_what_is_missing_is_unknown_and_never_idle() -> None:
    """BR-056, BR-062: no signal at all is no health."""
    nobody = b.with_task(FRESH, started_at=b.NOW - b.H)
    assert classify.classify(case(nobody)).value is Health.UNKNOWN


def test_the_stronger_rank_wins_and_the_newer_of_equals() -> None:
    """BR-067: what is newest among equals, whatever came in first; a stale word has no voice."""
    newer = b.sighting(source="b", rank=2, at=b.NOW - b.S, generating="true")
    older = b.sighting(source="a", rank=2, at=b.NOW - 9 * b.S, generating="false")
    hearsay = b.sighting(source="c", rank=5, at=b.NOW, generating="false")
    for order in itertools.permutations((newer, older, hearsay)):
        sign = case(replace(b.IDLE, sightings=order)).signs["generating"]
        assert (sign.source, sign.rank) == ("b", Rank.PAGE)
    old = b.sighting(source="a", rank=2, at=b.NOW - b.H, generating="true")
    assert "generating" not in case(replace(b.IDLE, sightings=(old,))).signs
    future = b.sighting(source="a", rank=2, at=b.NOW + b.MIN, generating="true")
    assert "generating" not in case(replace(b.IDLE, sightings=(future,))).signs


def test_an_episode_goes_on_while_it_says_the_same() -> None:
    world = case(BOUND, b.tools(plan=replace(b.PLAN, state=PlanState.BLOCKED)))
    first = classify.classify(world)
    later = classify.classify(replace(world, now=b.NOW + b.H))
    assert classify.episode(first, later).since == b.NOW
    other = classify.classify(case(b.IDLE))
    assert classify.episode(first, other) == other


def test_an_executor_that_is_away_is_a_matter_for_a_person_only_after_the_longest_silence() -> None:
    """And only as far as somebody looked: a supervisor that has just begun has not seen anybody stay away."""
    assert classify.classify(away(b.NOW - 599 * b.S)).row == "13b"
    assert classify.classify(away(b.NOW - b.H, watched=b.NOW - 599 * b.S)).row == "13b"
    assert classify.classify(away(b.NOW - b.H, watched=None)).row == "13b"
    said = classify.classify(away(b.NOW - b.H))
    assert "agent:far is not connected" in said.why
    assert f"tenuto command release {b.ACKNOWLEDGED.id} --verdict happened" in said.mend
