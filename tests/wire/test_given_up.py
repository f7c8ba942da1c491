"""A turn whose executor does not come back: one question after a time, the mend that gives it up, no second agent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.world import OPERATOR
from tests.wire.pair import NAME, End, Paired, paired, said, until

from tenuto.core.attention import Item
from tenuto.model.command import Command
from tenuto.model.faults import Refused
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState, TaskState

pytestmark = pytest.mark.anyio
STEP = timedelta(seconds=100)
HARD = timedelta(seconds=600)


async def begun(it: Paired) -> tuple[TaskId, Command]:
    """A task whose turn is under way at the executor."""
    it.executor.begin(it.group, it.connect)
    await it.joined()
    task_id = await it.create()
    await it.cycle.serve(task_id)
    (command,) = it.desk.commands(task_id=task_id)
    assert command.state is CommandState.ACKNOWLEDGED
    return task_id, command


async def lost(it: Paired) -> None:
    """The connection is cut, and no other is made."""
    it.reachable = False
    it.ends[-1].cut()
    await until(lambda: not it.bridge.standings()[0].connected)


async def waited(it: Paired, task_id: TaskId, long: timedelta) -> tuple[Item, ...]:
    """What stands in attention after somebody has looked for so long without a break."""
    for _ in range(long // STEP):
        await it.cycle.serve(task_id)
        it.clock.move(STEP)
    await it.cycle.serve(task_id)
    return it.desk.attention()


async def test_an_executor_that_stays_away_becomes_one_question_with_its_mend(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        task_id, command = await begun(it)
        await lost(it)
        assert await waited(it, task_id, HARD - STEP) == ()
        (item,) = await waited(it, task_id, 2 * STEP)
        assert f"{NAME} is not connected" in item.question
        assert f"tenuto command release {command.id} --verdict happened" in item.mend
        (again,) = await waited(it, task_id, HARD)
        assert again.episode == item.episode, "it is told once"
        it.reachable = True
        await it.joined()
        await it.cycle.serve(task_id)
        assert it.desk.attention() == (), "it is over when the executor is back"


async def test_a_turn_that_is_given_up_is_not_joined_by_another_while_it_lives(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        task_id, command = await begun(it)
        await lost(it)
        await waited(it, task_id, HARD + STEP)
        await it.desk.release(OPERATOR, command.id, happened=True)
        (attempt,) = it.desk.attempts(task_id)
        assert attempt.outcome == "released"
        assert it.desk.command(command.id).state is CommandState.ACKNOWLEDGED, "it was seen to begin: that stays"
        assert [item.kind for item in await waited(it, task_id, STEP)] == []
        it.reachable = True
        await it.joined()
        for _ in range(3):
            await it.cycle.serve(task_id)
            it.clock.move(STEP)
        assert it.turns.effects == [command.id]
        assert "still runs" in (await it.desk.explain(task_id)).rungs[0].sentence
        it.turns.by_itself = said(evidence="commit abc")
        it.turns.going[command.id].set_result(said("working"))
        await it.over(task_id)
        assert it.desk.task(task_id).state is TaskState.COMPLETED
        assert len(it.turns.effects) == len(set(it.turns.effects)) == 2


async def test_a_turn_that_can_be_followed_is_not_given_up(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        task_id, command = await begun(it)
        with pytest.raises(Refused, match="acknowledged, not ambiguous"):
            await it.desk.release(OPERATOR, command.id, happened=True)
        await lost(it)
        with pytest.raises(Refused, match="was seen to begin"):
            await it.desk.release(OPERATOR, command.id, happened=False)
        assert it.desk.attempts(task_id)[0].outcome is None


async def test_an_order_that_nobody_can_be_asked_about_is_given_up_too(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:

        def watch(end: End) -> None:
            assert end.other is not None

            def at(name: str) -> None:
                if name == "command":
                    it.reachable = False
                    end.cut()

            end.other.before = at

        it.watch = watch
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        (item,) = await waited(it, task_id, HARD + STEP)
        (command,) = it.desk.commands(task_id=task_id)
        assert command.state is CommandState.ARMED
        assert command.id in item.mend
        await it.desk.release(OPERATOR, command.id, happened=False)
        it.watch, it.reachable = lambda end: None, True
        it.turns.by_itself = said(evidence="commit abc")
        await it.over(task_id)
        assert it.desk.command(command.id).state is CommandState.RELEASED
        assert command.id not in it.turns.effects
        assert len(it.turns.effects) == 1
