"""What must stay the same, or may only go one way, when evidence is changed: over made-up worlds of every sort.

The table of health and the ladder are asked together. More evidence that something is going on, or that something is
wrong, never permits a send that was not permitted; a clock that stands elsewhere, the order of what was seen at one
moment, and the same word twice change nothing.
"""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import builders as b

from tenuto.core import classify, decide
from tenuto.model.decision import Continue, Decision
from tenuto.model.evidence import Mark, Observation, Presence, Rank, WorkspaceKind
from tenuto.model.health import Assessment
from tenuto.model.lifecycle import TaskState
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import CallState, ClaimState, Defect, Flaw, PlanState, SessionState, ToolBinding, ToolFacts
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import AutoResume, Standing, WaitKind

OTHER = ToolBinding("local", "s_" + "9" * 24)
PAGE = ToolBinding("desk", "https://chat.example/c/1")
UNKNOWN = Presence.UNKNOWN
FRESH = b.with_task(replace(b.IDLE, last=None, conversation=None), attempts=0, standing=Standing.NEW)
BASES: dict[str, Snapshot] = {
    "due": b.with_wake(),
    "asked": b.with_wake(anyway=True),
    "cut short": b.with_task(b.with_wake(), standing=Standing.CUT_SHORT),
    "idle": b.IDLE,
    "live": b.with_live(),
    "pending": b.with_task(FRESH, state=TaskState.PENDING, started_at=None),
    "just started": b.with_task(FRESH, started_at=b.NOW - b.MIN),
    "started long ago": b.with_task(FRESH, started_at=b.NOW - b.H),
    "in doubt": replace(b.IDLE, commands=(b.DOUBTFUL,)),
    "waiting": b.with_wait(WaitKind.HUMAN),
    "paused": b.with_task(paused_at=b.NOW, paused_by="sam"),
    "manual": b.with_task(auto_resume=AutoResume.MANUAL),
    **{state.value: b.with_task(state=state) for state in TaskState if state is not TaskState.PENDING},
}
PLANS = (None, *(replace(b.PLAN, state=state) for state in PlanState))
CALLS = tuple(replace(b.CALL, id=name * 32, state=state) for name, state in zip("cde", CallState, strict=True))
DEFECT = Defect(Flaw.UNKNOWN_VERSION, "version 9")


def ago(seconds: int | None) -> datetime | None:
    return None if seconds is None else b.NOW - seconds * b.S


def session(binding: ToolBinding, **said: Any) -> Observation:
    """One session of a tool server."""
    look = b.tools(binding=binding, **said)
    return replace(look, subject=binding.subject)


def page(said: dict[str, str], changed: int | None, traffic: int | None, rank: int) -> tuple[Any, ...]:
    """What was written down of a page, and of traffic."""
    told: dict[str, Any] = dict(said)
    if changed is not None:
        told["page_changed_at"] = (b.NOW - changed * b.S).isoformat()
    made = [b.sighting(source="page", rank=rank, **told)] if told else []
    if traffic is not None:
        made.append(b.sighting(source="wire", rank=4, network_at=(b.NOW - traffic * b.S).isoformat()))
    return tuple(made)


World = tuple[Snapshot, tuple[Observation, ...], timedelta | None]


def made(
    base: str,
    sessions: list[dict[str, Any]],
    seen: tuple[Any, ...],
    where: WorkspaceKind | None,
    watched: timedelta | None,
) -> World:
    """A world: what the registry has, what is seen now, and for how long somebody looked."""
    snapshot, looks = replace(BASES[base], sightings=seen), [b.workspace("w1", where)] if where is not None else []
    if base == "live":
        looks.append(b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, UNKNOWN, UNKNOWN))
    for binding, said in zip((b.SESSION, OTHER), sessions, strict=False):
        snapshot = b.with_task(snapshot, tools=(*snapshot.task.tools, binding))
        looks.append(session(binding, **said))
    return snapshot, tuple(looks), watched


TRUTH = st.sampled_from(("true", "false"))
SESSIONS = st.fixed_dictionaries(
    {
        "state": st.sampled_from(SessionState),
        "plan": st.sampled_from(PLANS),
        "claim": st.sampled_from(ClaimState),
        "calls": st.lists(st.sampled_from(CALLS), max_size=2, unique=True).map(tuple),
        "jobs": st.sampled_from(((), (b.JOB,))),
        "due_at": st.sampled_from((None, b.NOW, b.NOW + b.H)),
        "active_at": st.sampled_from((10, 170, 200, 700)).map(ago),
        "defects": st.sampled_from(((), (), (), (DEFECT,))),
    }
)
PAGES = st.builds(
    page,
    st.dictionaries(st.sampled_from(("generating", "send_ready", "tool_card", "delivery_error", "retrying")), TRUTH),
    st.sampled_from((None, 5, 100, 130, 700)),
    st.sampled_from((None, 20, 400)),
    st.sampled_from((2, 3, 5)),
)
WORLDS = st.builds(
    made,
    st.sampled_from(sorted(BASES)),
    st.lists(SESSIONS, max_size=2),
    PAGES,
    st.sampled_from((WorkspaceKind.GIT, WorkspaceKind.GIT, WorkspaceKind.MISSING, WorkspaceKind.UNKNOWN, None)),
    st.sampled_from((None, b.S, 150 * b.S, b.H)),
)


def judged(world: World, now: datetime = b.NOW) -> Assessment:
    snapshot, looks, watched = world
    since = None if watched is None else now - watched
    return classify.classify(classify.of(b.see(snapshot, *looks, now=now), since, now))


def told(said: Assessment) -> tuple[object, ...]:
    return said.row, said.value, said.confidence


def decided(world: World, now: datetime = b.NOW) -> Decision:
    snapshot, looks, _ = world
    return decide.decide(b.see(snapshot, *looks, now=now), now)


def rung(decision: Decision) -> tuple[object, ...]:
    return type(decision.intent), decision.because.rung if decision.because is not None else None


def sends(world: World) -> bool:
    """Whether a turn would be sent now."""
    return type(decided(world).intent) is Continue


def shifted(value: Any, span: timedelta) -> Any:
    """The same value with every instant in it moved."""
    if isinstance(value, datetime):
        return value + span
    if is_dataclass(value) and not isinstance(value, type):
        kept = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{name: shifted(each, span) for name, each in kept.items()})
    if isinstance(value, tuple):
        if len(value) == 2 and isinstance(value[0], str) and value[0].endswith("_at") and isinstance(value[1], str):
            return value[0], (datetime.fromisoformat(value[1]) + span).isoformat()
        return tuple(shifted(each, span) for each in value)
    return value


@given(WORLDS, st.sampled_from((-7 * b.DAY, -b.S, b.S, b.H, 400 * b.DAY)))
def test_all_clocks_moved_by_one_span_change_nothing(world: World, span: timedelta) -> None:
    snapshot, looks, watched = world
    moved = (shifted(snapshot, span), shifted(looks, span), watched)
    assert told(judged(moved, b.NOW + span)) == told(judged(world))
    assert rung(decided(moved, b.NOW + span)) == rung(decided(world))


@given(WORLDS, st.randoms(use_true_random=False))
def test_the_order_of_what_was_seen_at_one_moment_makes_no_difference(world: World, chance: random.Random) -> None:
    snapshot, looks, watched = world
    mixed, kept = list(looks), list(snapshot.sightings)
    chance.shuffle(mixed)
    chance.shuffle(kept)
    bound = list(snapshot.task.tools)
    chance.shuffle(bound)
    other = b.with_task(replace(snapshot, sightings=tuple(kept)), tools=tuple(bound))
    assert told(judged((other, tuple(mixed), watched))) == told(judged(world))
    assert rung(decided((other, tuple(mixed), watched))) == rung(decided(world))


@given(WORLDS)
def test_the_same_word_twice_is_one_word(world: World) -> None:
    """What was written down twice is one; a source that tells of one thing twice in a look is a doubt."""
    snapshot, looks, watched = world
    kept = (replace(snapshot, sightings=snapshot.sightings * 2), looks, watched)
    assert told(judged(kept)) == told(judged(world))
    assert rung(decided(kept)) == rung(decided(world))
    assert sends(world) or not sends((snapshot, looks * 2, watched))


GENERATING = Observation(
    "accessibility", Rank.OUTSIDE, PAGE.subject, b.NOW, WatchedFacts(PAGE, shown=True, window="w-1", generating=True)
)
MORE: dict[str, dict[str, Any]] = {
    "call": {"calls": (b.CALL,)},
    "orphan": {"calls": (replace(b.CALL, state=CallState.ORPHANED),)},
    "job": {"jobs": (b.JOB,)},
    "claim": {"claim": ClaimState.PENDING, "plan": b.PLAN},
    "flaw": {"defects": (DEFECT,)},
}


def added(world: World, what: str) -> World:
    """The same world, in which one more thing is seen."""
    snapshot, looks, watched = world
    binding = ToolBinding("more", "s_" + "7" * 24) if what != "page" else PAGE
    look = GENERATING if what == "page" else session(binding, **MORE[what])
    return b.with_task(snapshot, tools=(*snapshot.task.tools, binding)), (*looks, look), watched


@given(WORLDS, st.sampled_from((*MORE, "page")))
def test_more_that_is_going_on_or_wrong_permits_no_more(world: World, what: str) -> None:
    assert sends(world) or not sends(added(world, what))


@given(WORLDS, st.sampled_from(("call", "job")))
def test_a_call_or_job_of_one_session_makes_nothing_look_silent(world: World, what: str) -> None:
    """Whatever other sessions and pages say; what is over, blocked or completed by its own word stays that."""
    assert judged(added(world, what)).row not in {"10", "11", "16"}


def beating(seen: Any, at: datetime) -> Any:
    """The same facts, with a beat of every call."""
    if not isinstance(seen, ToolFacts):
        return seen
    return replace(seen, calls=tuple(replace(call, heartbeat_at=at) for call in seen.calls))


@given(WORLDS, st.sampled_from((5, 60)))
def test_a_beat_a_repaint_or_traffic_is_no_progress(world: World, seconds: int) -> None:
    """They move clocks of their own. A beat changes no judgement at all."""
    snapshot, looks, watched = world
    at = b.NOW - seconds * b.S
    beaten = tuple(replace(look, facts=beating(look.facts, at)) for look in looks)
    assert told(judged((snapshot, beaten, watched))) == told(judged(world))
    stirred = page({}, seconds, seconds, 2)
    painted = replace(snapshot, sightings=stirred)
    since = None if watched is None else b.NOW - watched
    clocks = [
        classify.clocks(classify.of(b.see(each, *looks), since, b.NOW))
        for each in (snapshot, painted)
    ]  # fmt: skip
    assert clocks[0].progressed == clocks[1].progressed == snapshot.task.progress.at


@settings(max_examples=300)
@given(WORLDS)
def test_the_first_row_that_holds_decides(world: World) -> None:
    snapshot, looks, watched = world
    since = None if watched is None else b.NOW - watched
    case = classify.of(b.see(snapshot, *looks), since, b.NOW)
    place = next(place for place, row in enumerate(classify.TABLE) if row.when(case) is not None)
    row = classify.TABLE[place]
    assert told(classify.classify(case)) == (row.number, row.health, row.confidence)


def test_every_row_is_reached_by_what_is_made_up() -> None:
    """All but the row of an executor that is away, which is no evidence and has its own test."""
    chance, reached = random.Random(7), set()
    for _ in range(4000):
        said = {
            "state": chance.choice([SessionState.ACTIVE] * 3 + list(SessionState)),
            "plan": chance.choice(PLANS),
            "claim": chance.choice([ClaimState.NONE] * 4 + list(ClaimState)),
            "calls": chance.choice([()] * 5 + [(call,) for call in CALLS]),
            "jobs": chance.choice([()] * 5 + [(b.JOB,)]),
            "due_at": chance.choice((None, None, b.NOW)),
            "active_at": ago(chance.choice((10, 200, 700))),
            "defects": chance.choice([()] * 8 + [(DEFECT,)]),
        }
        names = ("generating", "send_ready", "tool_card", "delivery_error", "retrying")
        seen = page(
            {name: chance.choice(("true", "false")) for name in names if chance.random() < 0.2},
            chance.choice((None, None, 130, 700)), chance.choice((None, 20)), 2,
        )  # fmt: skip
        where = chance.choice([WorkspaceKind.GIT] * 5 + [None] * 4 + [WorkspaceKind.MISSING])
        sessions = [said] if chance.random() < 0.6 else []
        world = made(chance.choice(sorted(BASES)), sessions, seen if chance.random() < 0.6 else (), where, b.H)
        said_ = judged(world)
        reached.add((said_.row, said_.value, said_.confidence))
    assert {(row.number, row.health, row.confidence) for row in classify.TABLE} - reached == {
        (row.number, row.health, row.confidence) for row in classify.TABLE if row.number == "5c"
    }
