"""The ladder of *continue*: every rung alone holds, says its sentence, and is missed when it is taken away.

What *continue now* and *continue anyway* pass is tried against every rung; and a task that is not continued always has
a reason, over many worlds.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import builders as b

from tenuto.core import decide, rungs
from tenuto.model.command import AttemptOutcome, CommandKind
from tenuto.model.decision import (
    Continue,
    GiveSlotBack,
    Interrupt,
    OpenCapWait,
    OpenConversation,
    Revoke,
    RunCheck,
    Rung,
    Sampled,
    StartTask,
)
from tenuto.model.evidence import Mark, Observation, PageFacts, Presence, Rank, WorkspaceKind
from tenuto.model.ids import CommandId, ConversationId, WakeId
from tenuto.model.lifecycle import CommandState, RunState, TaskState
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import AcceptanceKind, AutoResume, Standing, WaitKind, Wake, WakeKind

ALIVE, GONE, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.UNKNOWN
DUE = b.with_wake()
ELSEWHERE = replace(b.TALK, id=ConversationId(b.new("conversation")))
CUT = b.with_task(
    replace(DUE, last=replace(b.LAST, outcome=AttemptOutcome.INTERRUPTED), conversation=ELSEWHERE),
    standing=Standing.CUT_SHORT,
)
PENDING = b.with_task(DUE, state=TaskState.PENDING, waiting_since=None)


def seen(snapshot: Snapshot, *looks: object, **more: object) -> Seen:
    return b.see(snapshot, *looks, **more)  # type: ignore[arg-type]


#: One world for every rung, in the ladder's order, in which exactly that rung decides.
HOLDS: dict[str, Seen] = {
    "terminal": seen(b.with_task(DUE, state=TaskState.FAILED)),
    "held": seen(replace(DUE, registry=replace(b.IDLE.registry, held_at=b.NOW, held_by="sam"))),
    "run_stopped": seen(replace(DUE, run=replace(b.RUN, state=RunState.STOPPED))),
    "not_leader": seen(DUE, epoch=None),
    "unresolved": seen(replace(DUE, commands=(b.DOUBTFUL,))),
    "live": seen(b.with_live(snapshot=DUE), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE)),
    "human": seen(b.with_wait(WaitKind.HUMAN, DUE)),
    "permission": seen(b.with_wait(WaitKind.PERMISSION, DUE)),
    "limit": seen(b.with_wait(WaitKind.LIMIT, DUE, until=b.NOW + b.H)),
    "dependency": seen(b.with_wait(WaitKind.PATH, DUE, subject="out.txt")),
    "paused": seen(b.with_task(DUE, paused_at=b.NOW, paused_by="sam")),
    "stalled": seen(b.with_task(DUE, stalled_at=b.NOW)),
    "claim": seen(b.claimed(AcceptanceKind.FILE, DUE)),
    "ready": seen(b.with_task(DUE, ready_at=b.NOW, ready_note="the branch is pushed")),
    "manual": seen(b.with_task(DUE, auto_resume=AutoResume.MANUAL)),
    "nothing_asked": seen(b.IDLE),
    "slot": seen(replace(PENDING, slots_used=20)),
    "lease": seen(replace(DUE, conversation=None)),
    "executor": seen(DUE, connected=False),
    "evidence": seen(DUE, b.workspace(None, WorkspaceKind.MISSING)),
    "tool": seen(b.with_tools(DUE), b.tools(calls=(b.CALL,))),
    "page": seen(DUE, Observation("ext:one", Rank.PAGE, b.TALK.id, b.NOW, PageFacts(shown=True, state="generating"))),
    "fence": seen(CUT),
    "cap": seen(b.with_task(DUE, max_attempts=1)),
}
BY_NAME = {rung.__name__: rung for rung in rungs.CONTINUE}


def test_every_rung_of_the_ladder_has_its_world_in_order() -> None:
    assert list(BY_NAME) == list(HOLDS)


@pytest.mark.parametrize("name", HOLDS)
def test_the_rung_holds_first_and_says_why(name: str) -> None:
    because = decide.first(rungs.CONTINUE, HOLDS[name], b.NOW)
    assert because is not None
    assert because.rung == (name if name != "nothing_asked" else Rung.NOTHING_ASKED)
    assert because.sentence
    assert because.change
    assert because.sentence[0].islower()
    assert because == decide.explain(HOLDS[name], b.NOW)[0]


@pytest.mark.parametrize("name", HOLDS)
def test_without_the_rung_something_else_is_decided(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = HOLDS[name]
    ladder = "JUDGE" if name == "claim" else "CONTINUE"
    with_it = decide.decide(world, b.NOW)
    rung = BY_NAME[name]
    if ladder == "JUDGE":
        monkeypatch.setattr(decide, "_judge", decide._continue)
        with_it = decide.decide(world, b.NOW)
    monkeypatch.setattr(rungs, "CONTINUE", tuple(other for other in rungs.CONTINUE if other is not rung))
    without = decide.decide(world, b.NOW) if name != "nothing_asked" else None
    assert without != with_it


@pytest.mark.parametrize("name", ["terminal", "held", "run_stopped", "not_leader", "unresolved", "live", "executor"])
def test_no_claim_is_judged_past_the_rungs_of_judging(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = HOLDS[name]
    claimed = replace(world, snapshot=b.claimed(snapshot=world.snapshot))
    assert decide.first(rungs.JUDGE, claimed, b.NOW) is not None
    assert not isinstance(decide.decide(claimed, b.NOW).intent, RunCheck)
    gone = rungs.checker if name == "executor" else BY_NAME[name]
    kept = tuple(rung for rung in rungs.JUDGE if rung is not gone)
    assert decide.first(kept, claimed, b.NOW) is None


def asking(world: Seen, *, anyway: bool) -> Seen:
    """The same world after the operator asked."""
    wake = Wake(WakeId(b.new("wake")), 1, b.TASK.id, WakeKind.MANUAL, "asked", b.NOW, b.NOW, anyway)
    return replace(world, snapshot=replace(world.snapshot, wakes=(*world.snapshot.wakes, wake)))


PASSED_ONCE = {"paused", "ready", "manual", "nothing_asked"}
PASSED_ANYWAY = PASSED_ONCE | {"human", "dependency", "stalled", "cap"}


@pytest.mark.parametrize("name", HOLDS)
@pytest.mark.parametrize("anyway", [False, True])
def test_what_asking_passes(name: str, anyway: bool) -> None:
    because = decide.first([BY_NAME[name]], asking(HOLDS[name], anyway=anyway), b.NOW)
    assert (because is None) == (name in (PASSED_ANYWAY if anyway else PASSED_ONCE))


@pytest.mark.parametrize("kind, passes", [(WorkspaceKind.UNKNOWN, True), (WorkspaceKind.MISSING, False),
                                          (WorkspaceKind.UNREADABLE, False)])  # fmt: skip
def test_anyway_passes_unknown_support_and_nothing_that_is_wrong(kind: WorkspaceKind, passes: bool) -> None:
    world = seen(DUE, b.workspace(None, kind))
    assert rungs.evidence(world, b.NOW) is not None
    assert rungs.evidence(asking(world, anyway=False), b.NOW) is not None
    assert (rungs.evidence(asking(world, anyway=True), b.NOW) is None) == passes
    assert rungs.evidence(seen(DUE, b.workspace()), b.NOW) is None


def test_continuing_carries_the_reason_that_was_due_first() -> None:
    assert b.decided(DUE).intent == Continue(WakeKind.IDLE)
    both = b.with_wake(WakeKind.RECOVERY, DUE)
    assert b.decided(both).intent == Continue(WakeKind.RECOVERY)
    assert b.decided(b.with_wake(WakeKind.MANUAL, both)).intent == Continue(WakeKind.MANUAL)


def test_a_wake_that_is_not_due_says_when() -> None:
    because = b.because(b.with_wake(in_=b.H))
    assert (because.rung, because.until) == (Rung.SPACING, b.NOW + b.H)
    silent = b.because(b.with_task(standing=Standing.SILENT, standing_reason="two blocks"))
    assert "two blocks" in silent.sentence


# -- what is under way is looked at again, whatever rung holds


@pytest.mark.parametrize("name", [name for name in HOLDS if name not in ("not_leader",)])
def test_no_rung_hides_a_turn_that_is_under_way(name: str) -> None:
    world = HOLDS[name]
    living = replace(world, snapshot=b.with_live(snapshot=world.snapshot))
    decision = decide.decide(living, b.NOW)
    assert decision.intent is None
    assert decision.look_again_at is not None
    assert b.NOW < decision.look_again_at <= b.NOW + POLICY.look_at_living_turn


def test_a_doubt_is_looked_at_again() -> None:
    assert b.decided(replace(DUE, commands=(b.DOUBTFUL,))).look_again_at == b.NOW + decide.LOOK_AT_DOUBT
    doubted = replace(b.with_live(b.DOUBTFUL), commands=(b.DOUBTFUL,))
    assert b.decided(doubted).look_again_at == b.NOW + POLICY.look_at_living_turn


@pytest.mark.parametrize(
    ("age", "looked_after"),
    [(-b.DAY, 30 * b.S), (timedelta(0), 30 * b.S), (b.H, 2 * b.MIN), (5 * b.H, 10 * b.MIN), (9 * b.DAY, 30 * b.MIN)],
)
def test_a_doubt_that_stands_for_long_is_looked_at_less_often(age: timedelta, looked_after: timedelta) -> None:
    doubt = replace(b.DOUBTFUL, submitted_at=b.NOW - age)
    older = replace(b.DOUBTFUL, id=CommandId("c-older"), submitted_at=b.NOW - 20 * b.DAY)
    for doubts in ((doubt,), (older, doubt), (doubt, older)):
        assert decide.doubted(doubts, b.NOW) == looked_after


@pytest.mark.parametrize("name", HOLDS)
@pytest.mark.parametrize("rested", [b.MIN, b.H])
def test_no_look_is_asked_for_in_the_past(name: str, rested: object) -> None:
    world = HOLDS[name]
    task = replace(world.snapshot.task, waiting_since=b.NOW - rested)  # type: ignore[operator]
    decision = decide.decide(replace(world, snapshot=replace(world.snapshot, task=task)), b.NOW)
    assert decision.intent is not None or decision.look_again_at is None or decision.look_again_at > b.NOW


# -- the words of the rungs


def test_a_live_turn_says_what_is_odd_about_it() -> None:
    orphaned = b.because(b.with_live(), b.seen_of(b.SEND, Mark.ACCEPTED, GONE, ALIVE))
    assert "its host is gone" in orphaned.sentence
    doubtful = b.because(b.with_live(), b.seen_of(b.SEND, Mark.DAMAGED, GONE, ALIVE, reason="torn"))
    assert "cannot be followed: torn" in doubtful.sentence
    assert b.because(b.with_live(), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, ALIVE)).sentence == "turn 2 is under way"


def test_an_unresolved_command_says_what_to_do() -> None:
    armed = b.because(b.with_live(b.SEND))
    assert "command reconcile" in armed.change
    doubted = b.because(b.with_live(b.DOUBTFUL), b.seen_of(b.SEND, Mark.DAMAGED, UNKNOWN, UNKNOWN, reason="torn"))
    assert "command release" in doubted.change
    assert "torn" in doubted.sentence
    assert b.because(replace(b.with_live(), commands=(b.HALT,))).rung is Rung.LIVE, "an interruption is not a doubt"


def test_what_lives_of_a_released_turn_is_not_joined() -> None:
    world = seen(replace(DUE, released=b.RELEASED), b.seen_of(b.RELEASED, Mark.BEGUN, GONE, ALIVE))
    because = decide.first(rungs.CONTINUE, world, b.NOW)
    assert because is not None
    assert because.rung is Rung.UNRESOLVED
    over = seen(replace(DUE, released=b.RELEASED), b.seen_of(b.RELEASED, Mark.BEGUN))
    assert decide.first(rungs.CONTINUE, over, b.NOW) is None


def test_dependencies_are_looked_at_again() -> None:
    for kind in (WaitKind.PATH, WaitKind.COMMIT, WaitKind.TASK):
        because = rungs.dependency(seen(b.with_wait(kind, DUE, subject="x")), b.NOW)
        assert because is not None
        assert because.until == b.NOW + 30 * b.S
    at = rungs.dependency(seen(b.with_wait(WaitKind.TIME, DUE, until=b.NOW + b.H)), b.NOW)
    assert at is not None
    assert at.until == b.NOW + b.H


# -- leases


@pytest.mark.parametrize(
    "talk, words",
    [
        (None, "no conversation yet"),
        (replace(b.TALK, expires_at=b.NOW), "ran out"),
        (replace(b.TALK, opened_at=b.NOW + b.H, expires_at=b.NOW + 3 * b.H), "clock"),
        (replace(b.TALK, expires_at=b.NOW + b.MIN + POLICY.lease_life), "clock"),
    ],
)
def test_a_conversation_is_opened_where_none_may_act(talk: object, words: str) -> None:
    decision = b.decided(replace(DUE, conversation=talk))  # type: ignore[arg-type]
    assert isinstance(decision.intent, OpenConversation)
    assert words in decision.intent.why


@pytest.mark.parametrize("outcome", AttemptOutcome)
def test_a_place_whose_last_turn_was_cut_is_left(outcome: AttemptOutcome) -> None:
    world = seen(replace(DUE, last=replace(b.LAST, outcome=outcome)))
    cut = outcome in (AttemptOutcome.INTERRUPTED, AttemptOutcome.LOST, AttemptOutcome.RELEASED)
    assert (rungs.needs_conversation(world, b.NOW) is not None) == cut
    elsewhere = replace(world, snapshot=CUT)
    assert rungs.needs_conversation(elsewhere, b.NOW) is None


# -- two looks


def fenced(*ago: float, fences: tuple[str | None, ...] = ()) -> Seen:
    """The world after a cut, with looks of so many seconds ago, newest first."""
    world = seen(CUT)
    looks = tuple(
        b.sampled(world, seconds * b.S, fences[index] if index < len(fences) else None)
        for index, seconds in enumerate(ago)
    )
    return replace(world, snapshot=replace(CUT, samples=looks))


@pytest.mark.parametrize(
    "world, waits, until",
    [
        (fenced(), True, 0),
        (fenced(1), True, 2),
        (fenced(2.9), True, 0.1),
        (fenced(3), False, None),
        (fenced(120), False, None),
        (fenced(121), True, 0),
        (fenced(-1), True, 0),
        (fenced(5, fences=("other",)), True, 0),
        (fenced(1, 5), False, None),
        (fenced(1, 5, fences=(None, "other")), True, 2),
        (fenced(1, 2, 5, fences=(None, "other", None)), True, 2),
        (fenced(1, 2, 5, fences=("a", "b", "c")), True, 30),
    ],
)
def test_two_looks_that_agree_apart_and_fresh(world: Seen, waits: bool, until: float | None) -> None:
    because = rungs.fence(world, b.NOW)
    assert (because is not None) == waits
    if because is not None:
        assert because.until is not None
        assert because.until - b.NOW == (until or 0) * b.S
        intent = decide.decide(world, b.NOW).intent
        assert isinstance(intent, Sampled) == (because.until == b.NOW)


def test_an_ordinary_turn_needs_no_second_look_and_anyway_does() -> None:
    assert rungs.fence(seen(DUE), b.NOW) is None
    assert rungs.fence(asking(seen(DUE), anyway=True), b.NOW) is not None
    assert decide.needs_workspace(asking(seen(DUE), anyway=True), b.NOW)
    assert not decide.needs_workspace(seen(DUE), b.NOW)
    assert decide.cut_short(seen(CUT))


# -- preparations


def test_a_pending_task_is_started_when_nothing_else_holds() -> None:
    assert b.decided(PENDING).intent == StartTask()
    assert b.decided(replace(PENDING, conversation=None)).intent == StartTask()


def test_a_cap_becomes_a_wait_once() -> None:
    assert isinstance(decide.decide(HOLDS["cap"], b.NOW).intent, OpenCapWait)
    waiting = b.with_wait(WaitKind.CAP, b.with_task(DUE, max_attempts=1))
    assert b.decided(waiting).intent is None
    assert b.because(b.with_wait(WaitKind.CAP, DUE)).rung is Rung.CAP
    run_cap = b.with_policy(DUE, max_attempts=1)
    assert isinstance(b.decided(run_cap).intent, OpenCapWait)


@pytest.mark.parametrize("fields", [{"auto_resume": AutoResume.MANUAL}, {"paused_at": b.NOW}, {"stalled_at": b.NOW}])
def test_only_what_would_pass_is_told_to_be_tried_again(fields: dict[str, Any]) -> None:
    world = b.with_task(**fields)
    neighbour = b.because(b.with_wake(WakeKind.MESSAGE, world, in_=b.MIN))
    assert neighbour == b.because(world), "nothing is tried when a neighbour's words are due"
    assert neighbour.until is None
    for kind, by in ((WakeKind.MESSAGE, "sam"), (WakeKind.MANUAL, None)):
        asked = b.with_wake(kind, world, in_=b.MIN, asked_by=by)
        assert b.because(asked).until == b.NOW + b.MIN


RESTS = [
    "held",
    "human",
    "permission",
    "limit",
    "dependency",
    "paused",
    "stalled",
    "ready",
    "manual",
    "nothing_asked",
    "unresolved",
]


@pytest.mark.parametrize("name", HOLDS)
def test_a_long_rest_gives_the_slot_back(name: str) -> None:
    world = HOLDS[name]
    old = replace(world, snapshot=b.with_task(world.snapshot, waiting_since=b.NOW - POLICY.slot_rest))
    gives = isinstance(decide.decide(old, b.NOW).intent, GiveSlotBack)
    assert gives == (name in RESTS)
    soon = replace(world, snapshot=b.with_task(world.snapshot, waiting_since=b.NOW - POLICY.slot_rest + b.S))
    assert not isinstance(decide.decide(soon, b.NOW).intent, GiveSlotBack)
    if gives and name != "live":
        assert decide.decide(soon, b.NOW).look_again_at == b.NOW + b.S


# -- stop, doubt and claims


def test_what_may_yet_begin_is_revoked_first() -> None:
    assert b.decided(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.NONE)).intent == Revoke(b.SEND.id)
    assert b.decided(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.NONE), epoch=None).intent is None


def test_a_stop_interrupts_again_and_again_and_never_twice_at_once() -> None:
    stopped = b.cancelled(b.with_live())
    assert b.decided(stopped).intent == Interrupt(b.LIVE.id)
    assert b.decided(stopped, epoch=None).intent is None
    assert b.decided(stopped, connected=False).intent is None
    assert b.decided(replace(stopped, commands=(b.HALT,))).intent is None
    failed = replace(b.HALT, state=CommandState.FAILED, settled_at=b.NOW)
    tried = replace(stopped, checks=(failed,))
    assert b.decided(tried).intent is None
    assert b.decided(tried, now=b.NOW + 7 * b.S).intent == Interrupt(b.LIVE.id)
    often = replace(stopped, checks=(failed,) * 4)
    assert b.decided(often, now=b.NOW + 7 * b.S).intent is None
    assert b.decided(often, now=b.NOW + 376 * b.S).intent == Interrupt(b.LIVE.id)
    future = replace(stopped, checks=(replace(failed, settled_at=b.NOW + b.H),))
    assert b.decided(future).intent == Interrupt(b.LIVE.id), "a clock that went back delays no stop"
    other = replace(stopped, checks=(replace(failed, kind=CommandKind.CHECK),))
    assert b.decided(other).intent == Interrupt(b.LIVE.id)


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.ACTIVE])
def test_only_a_stop_interrupts(state: TaskState) -> None:
    assert b.decided(b.with_task(b.with_live(), state=state)).intent is None


def test_a_turn_that_outlives_its_own_claim_is_ended_after_the_grace_of_readiness() -> None:
    grace = b.RUN.policy.ready_grace
    said = replace(b.with_live(), task=b.claimed(snapshot=b.with_live()).task)
    assert said.task.claim is not None
    assert b.decided(said, now=said.task.claim.made_at + grace - b.S).intent is None
    assert b.decided(said, now=said.task.claim.made_at + grace).intent == Interrupt(b.LIVE.id)
    over = b.with_task(b.with_live(), state=TaskState.COMPLETED, ended_at=b.NOW)
    assert b.decided(over, now=b.NOW + grace - b.S).intent is None
    assert b.decided(over, now=b.NOW + grace).intent == Interrupt(b.LIVE.id)


def test_a_claim_is_judged_before_any_other_turn() -> None:
    assert b.decided(b.claimed(snapshot=DUE)).intent == RunCheck()
    assert b.decided(replace(b.claimed(snapshot=DUE), commands=(b.CHECK,))).intent is None
    looked = b.decided(b.claimed(AcceptanceKind.FILE, DUE))
    assert looked.because is not None
    assert looked.because.rung is Rung.CLAIM
    assert b.decided(b.with_task(b.claimed(), state=TaskState.CANCELLED)).because is not None


# -- never silent

times = st.sampled_from([None, b.NOW - b.H, b.NOW, b.NOW + b.H])
worlds = st.builds(
    lambda task, talk, last, carrier, waits, wakes, held, stopped, samples, slots, look, epoch, connected: seen(
        replace(
            b.IDLE,
            task=task,
            conversation=talk,
            last=last,
            live=b.LIVE if carrier else None,
            live_command=carrier,
            commands=(carrier,) if carrier and carrier.open else (),
            waits=waits,
            wakes=wakes,
            registry=replace(b.IDLE.registry, held_at=held),
            run=replace(b.RUN, state=stopped),
            samples=samples,
            slots_used=slots,
        ),
        *look,
        epoch=epoch,
        connected=connected,
    ),
    task=st.builds(
        replace,
        st.just(b.TASK),
        state=st.sampled_from(TaskState),
        standing=st.sampled_from(Standing),
        paused_at=times,
        stalled_at=times,
        waiting_since=times,
        ended_at=times,
        claim=st.sampled_from([None, b.claimed().task.claim]),
        acceptance=st.sampled_from([b.claimed().task.acceptance, b.claimed(AcceptanceKind.FILE).task.acceptance]),
        auto_resume=st.sampled_from([None, *AutoResume]),
        max_attempts=st.sampled_from([None, 1, 9]),
    ),
    talk=st.sampled_from([None, b.TALK, replace(b.TALK, expires_at=b.NOW)]),
    last=st.sampled_from([None, *(replace(b.LAST, outcome=outcome) for outcome in AttemptOutcome)]),
    carrier=st.sampled_from([None, b.SEND, b.SUBMITTED, b.ACKNOWLEDGED, b.DOUBTFUL]),
    waits=st.lists(st.sampled_from(WaitKind).map(b.a_wait), max_size=2).map(tuple),
    wakes=st.lists(
        st.builds(
            lambda kind, at, anyway: Wake(WakeId(b.new("wake")), 1, b.TASK.id, kind, "r", at, b.NOW - b.MIN, anyway),
            st.sampled_from(WakeKind),
            st.sampled_from([b.NOW, b.NOW + b.MIN]),
            st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    held=times,
    stopped=st.sampled_from(RunState),
    samples=st.sampled_from([(), (b.sampled(seen(CUT), 5 * b.S, "x"),)]),
    slots=st.sampled_from([1, 20]),
    look=st.sampled_from(
        [(), (b.workspace(),), (b.workspace(None, WorkspaceKind.UNKNOWN),)]
        + [(b.seen_of(b.SEND, mark, here, here),) for mark in Mark for here in Presence]
    ),
    epoch=st.sampled_from([1, None]),
    connected=st.booleans(),
)


@given(worlds)
def test_a_task_that_is_not_continued_has_a_reason(world: Seen) -> None:
    decision = decide.decide(world, b.NOW)
    told = decide.explain(world, b.NOW)
    assert (decision.intent is None) != (decision.because is None)
    if decision.because is not None:
        assert decision.because in told
    if isinstance(decision.intent, Continue):
        assert not told
    elif not isinstance(decision.intent, RunCheck | StartTask):
        assert told
    assert decision.look_again_at is None or decision.look_again_at > b.NOW


@given(worlds)
def test_nothing_passes_what_nothing_may_pass(world: Seen) -> None:
    barred = {Rung.TERMINAL, Rung.HELD, Rung.RUN_STOPPED, Rung.NOT_LEADER, Rung.UNRESOLVED, Rung.LIVE,
              Rung.PERMISSION, Rung.LIMIT, Rung.LEASE, Rung.EXECUTOR}  # fmt: skip
    told = {because.rung for because in decide.explain(asking(world, anyway=True), b.NOW)}
    if told & barred:
        assert not isinstance(decide.decide(asking(world, anyway=True), b.NOW).intent, Continue)


def test_a_takeover_in_doubt_is_looked_at_as_often_as_ever() -> None:
    doubtful = replace(b.SUBMITTED, state=CommandState.AMBIGUOUS, submitted_at=b.NOW - 30 * b.DAY)
    assert decide.doubted((doubtful,), b.NOW) == decide.OLD_DOUBT
    passing = replace(doubtful, kind=CommandKind.TAKEOVER)
    assert decide.doubted(iter((doubtful, passing)), b.NOW) == decide.LOOK_AT_DOUBT
