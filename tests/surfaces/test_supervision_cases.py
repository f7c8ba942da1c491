"""What went wrong in other supervisors, tried here: states, stalls, completion, time, and processes left over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import builders as b
from tests.support.world import OPERATOR, World, world

from tenuto import config
from tenuto.core import attention, classify
from tenuto.model.evidence import Mark, Observation, Presence, Rank
from tenuto.model.health import LOUD, Assessment, Health
from tenuto.model.tools import PlanState, ToolBinding, ToolFacts
from tenuto.surfaces import verbs

S = timedelta(seconds=1)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def call(it: World, name: str, **params: Any) -> Any:
    return await verbs.call(it.desk, OPERATOR, name, params)


def judged(snapshot: Any, *looks: Observation, watched: Any = b.NOW - b.H) -> Assessment:
    return classify.classify(classify.of(b.see(snapshot, *looks), watched, b.NOW))


@pytest.mark.only_on("linux")
def test_br_002_state_lies_where_the_platform_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never in a directory that a restart of the machine empties, whatever that is called."""
    for name in ("TENUTO_HOME", "TENUTO_DB", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    settings = config.load({})
    assert settings.state == tmp_path / ".local" / "state" / "tenuto"
    for path in (settings.registry_path, settings.journal, settings.spool, settings.operator_token):
        assert path.is_relative_to(settings.state)


async def test_br_055_lists_counts_and_accounts_have_one_judgement(it: World) -> None:
    task = await it.started()
    row = (await call(it, "task.list"))["tasks"][0]["health"]
    assert row == (await call(it, "task.show", task=task))["task"]["health"]
    assert row["value"] == (await call(it, "observe.list", task=task))["health"]["value"] == "running"
    assert row["since"] == (await call(it, "task.explain", task=task))["health"]["since"]


def test_br_057_who_works_is_told_by_the_binding_and_not_by_a_name() -> None:
    other = ToolBinding("local", "s_" + "9" * 24)
    stranger = Observation("local-shell", Rank.JOURNAL, other.subject, b.NOW, ToolFacts(other, state=None))
    known = b.with_tools(b.IDLE)
    assert judged(known, b.tools(calls=(b.CALL,))).row == "5"
    assert judged(known, b.tools()).row != "5"
    assert stranger.subject != b.SESSION.subject


def test_br_059_one_look_that_finds_nobody_declares_nobody_dead() -> None:
    live = b.with_live()
    unknown = b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, Presence.UNKNOWN, Presence.UNKNOWN)
    assert judged(live, unknown).value is Health.RUNNING
    half = b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, Presence.GONE, Presence.UNKNOWN)
    assert b.settled(live, half).nothing


def test_br_068_a_long_run_with_a_call_in_flight_is_no_stall() -> None:
    call = replace(b.CALL, started_at=b.NOW - 42 * b.MIN, heartbeat_at=b.NOW - 42 * b.MIN)
    said = judged(b.with_tools(b.IDLE), b.tools(calls=(call,), active_at=b.NOW - 42 * b.MIN))
    assert said.value is Health.RUNNING
    assert said.value not in LOUD


async def test_br_072_what_ended_long_ago_is_not_called_hung(it: World) -> None:
    task = await it.started()
    it.executor.finish(status="blocked", needs="a person: which?")
    await it.settle(task)
    it.clock.move(timedelta(hours=5))
    await it.settle(task)
    (row,) = (await call(it, "task.list"))["tasks"]
    assert row["health"]["value"] == "waiting"


async def test_br_076_the_same_word_again_and_again_is_no_loop_while_work_changes(it: World) -> None:
    task = await it.started()
    for turn in range(8):
        it.workspace.cursor = f"{turn:064d}"
        it.executor.finish(status="working", summary="the same words")
        await it.settle(task)
    assert len(it.executor.turns) == 9
    assert it.desk.task(task).stalled_at is None


def test_br_077_every_loud_judgement_has_its_evidence_and_a_safe_next_look() -> None:
    for row in classify.TABLE:
        if row.health in LOUD:
            assert row.mend != "nothing; it is quiet"
            assert "retry" not in row.mend


def test_br_078_a_call_that_hangs_shows_how_long() -> None:
    call = replace(b.CALL, started_at=b.NOW - 106 * b.MIN)
    because = b.because(b.with_tools(b.with_wake()), b.tools(calls=(call,)))
    assert f"for {106 * 60} s" in because.sentence


async def test_br_079_silence_never_makes_a_turn(it: World) -> None:
    task = await it.started()
    for _ in range(20):
        it.clock.move(48 * S)
        await it.settle(task)
    assert len(it.executor.turns) == 1


async def test_br_117_a_claim_by_evidence_ends_nothing(it: World) -> None:
    """A plan or a session that says it is complete is a judgement, and only the task's own word ends the task."""
    snapshot = b.with_tools(b.with_wake())
    done = b.tools(plan=replace(b.PLAN, state=PlanState.COMPLETED))
    assert judged(snapshot, done).value is Health.CLAIMED
    assert b.settled(snapshot, done).task.state == snapshot.task.state


async def test_br_121_words_without_work_come_to_an_end(it: World) -> None:
    task = await it.started()
    for _ in range(10):
        if not it.executor.under_way:
            break
        it.executor.finish(status="working", summary="nearly")
        await it.settle(task)
    assert len(it.executor.turns) <= 7
    assert [item["kind"] for item in (await call(it, "attention"))["items"]] == ["stalled"]


async def test_br_202_what_was_missed_asleep_comes_once(it: World) -> None:
    task = await it.create()
    await call(it, "task.pause", task=task)
    for _ in range(5):
        await call(it, "checkpoint.request", task=task)
    await call(it, "task.resume", task=task)
    it.clock.move(timedelta(hours=30))
    await it.settle(task)
    await it.settle(task)
    assert len(it.executor.turns) == 1


def descriptors() -> int:
    """How many this process has."""
    return len([*Path("/dev/fd").iterdir()])


async def test_br_210_a_supervisor_that_serves_for_long_leaks_no_descriptor(it: World) -> None:
    task = await it.started()

    async def turns(count: int) -> int:
        for number in range(count):
            it.workspace.cursor = f"{it.desk.last_event()}{number:064d}"[-64:]
            it.executor.finish(status="working", summary="on")
            await it.settle(task)
        return descriptors()

    before = await turns(5)
    assert await turns(40) <= before


def test_attention_has_one_order_whatever_it_was_given_in() -> None:
    loud = [
        replace(b.TASK, id=f"t-{n:026d}", health=replace(judged(b.IDLE), value=Health.SUSPECT, since=b.NOW))  # type: ignore[arg-type]
        for n in range(4)
    ]
    one = attention.queue((), (), loud, (), b.NOW)
    assert one == attention.queue((), (), loud[::-1], (), b.NOW)
    assert len({item.episode for item in one}) == 4


async def test_br_128_a_continuation_is_the_next_attempt_of_the_same_run_and_task(it: World) -> None:
    task = await it.started()
    run = it.desk.task(task).run_id
    for turn in range(3):
        it.executor.finish(status="working", summary=f"part {turn}", next="more")
        await it.settle(task)
    attempts = sorted(it.desk.attempts(task), key=lambda attempt: attempt.number)
    assert [attempt.number for attempt in attempts] == [1, 2, 3, 4]
    assert {attempt.task_id for attempt in attempts} == {task}
    assert len({attempt.conversation_id for attempt in attempts}) == 1
    assert it.desk.task(task).run_id == run


async def test_br_129_what_happened_in_another_run_is_not_heard(it: World) -> None:
    """Events of an earlier run are not in the account of a new one, by run or by task."""
    first = await it.started()
    it.executor.finish(status="complete", summary="done", evidence="commit one")
    await it.settle(first)
    second = await it.started(title="Another", objective="Something else")
    runs = {task: it.desk.task(task).run_id for task in (first, second)}
    heard = {task: it.desk.events(0, 1000, run_id=run) for task, run in runs.items()}
    assert {event.fact.run_id for event in heard[second]} == {runs[second]}
    assert {event.fact.task_id for event in heard[second]} <= {second, None}
    assert {event.fact.task_id for event in it.desk.events(0, 1000, task_id=second)} == {second}
    assert not {event.n for event in heard[first]} & {event.n for event in heard[second]}
    assert "commit one" not in str(await call(it, "task.explain", task=second))
