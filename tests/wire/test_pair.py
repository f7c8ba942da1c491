"""A command over the wire, and the connection cut at every place: nothing is done twice, nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.world import OPERATOR
from tests.wire.pair import NAME, Burning, Died, End, paired, reborn, said, until

from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.transports.host import claim, journal

pytestmark = pytest.mark.anyio

FRAMES = ("ready", "received", "begun", "accepted", "ended")


async def test_a_turn_goes_over_the_wire_and_comes_back(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        await it.cycle.serve(task_id)
        (command,) = it.desk.commands(task_id=task_id)
        assert command.state is CommandState.ACKNOWLEDGED
        assert command.executor == NAME
        it.turns.going[command.id].set_result(said(evidence="commit abc"))
        await it.over(task_id)
        assert it.desk.task(task_id).state is TaskState.COMPLETED
        assert it.turns.effects == [command.id]


@pytest.mark.parametrize(("frame", "place"), [*itertools.product(FRAMES, ("before", "after"))])
async def test_a_cut_at_any_mark_does_nothing_twice_and_loses_nothing(tmp_path: Path, frame: str, place: str) -> None:
    async with paired(tmp_path) as it:
        cut: list[str] = []

        def watch(end: End) -> None:
            def at(name: str) -> None:
                if name == frame and not cut:
                    cut.append(name)
                    end.cut()

            setattr(end, place, at)

        it.watch = watch
        it.turns.by_itself = said(evidence="commit abc")
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        await it.over(task_id)
        assert cut == [frame]
        assert it.desk.task(task_id).state is TaskState.COMPLETED
        assert len(it.turns.effects) == len(set(it.turns.effects)) == 1
        assert not it.desk.commands(only_open=True)


async def test_a_command_that_never_arrived_is_revoked_and_another_is_sent(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:

        def watch(end: End) -> None:
            assert end.other is not None
            first = len(it.ends) == 0

            def at(name: str) -> None:
                if name == "command" and first:
                    end.cut()

            end.other.before = at

        it.watch = watch
        it.turns.by_itself = said(evidence="commit abc")
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        await it.over(task_id)
        states = sorted(command.state for command in it.desk.commands(task_id=task_id))
        assert states == [CommandState.ACKNOWLEDGED, CommandState.FAILED]
        assert len(it.turns.effects) == 1


async def test_while_it_is_away_nothing_is_concluded(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        await it.cycle.serve(task_id)
        (command,) = it.desk.commands(task_id=task_id)
        it.reachable = False
        it.ends[-1].cut()
        await until(lambda: not it.bridge.standings()[0].connected)
        for _ in range(3):
            rest = await it.cycle.serve(task_id)
            assert rest is not None
            assert rest.because is not None
            assert rest.because.rung == "live"
            assert "agent:test is not connected" in rest.because.sentence
        it.turns.going[command.id].set_result(said(evidence="commit abc"))
        it.reachable = True
        await it.over(task_id)
        assert it.turns.effects == [command.id]


async def test_an_agent_that_lives_on_is_not_what_is_left_of_an_interrupted_turn(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        await it.cycle.serve(task_id)
        await it.desk.cancel(OPERATOR, task_id, reason="enough")
        for _ in range(20):
            await it.cycle.serve(task_id)
            await asyncio.sleep(0.01)
            if it.desk.attempts(task_id)[0].state != "live":
                break
        assert it.desk.attempts(task_id)[0].outcome == "interrupted"


async def undisturbed(folder: Path) -> list[tuple[str, int]]:
    """Every point that a supervisor passes on the way of one turn, with the count of its passing."""
    fuse = Burning()
    async with paired(folder, fuse=fuse) as it:
        it.turns.by_itself = said(evidence="commit abc")
        it.executor.begin(it.group, it.connect)
        await it.joined()
        await it.over(await it.create())
    seen: Counter[str] = Counter()
    points = []
    for point in fuse.passed:
        seen[point] += 1
        points.append((point, seen[point]))
    return points


async def test_a_supervisor_that_dies_anywhere_sends_nothing_twice(tmp_path: Path) -> None:
    points = await undisturbed(tmp_path / "whole")
    assert {"arm.committed", "wire.before_command", "wire.commanded", "settle.committed"} <= {
        name for name, _ in points
    }
    for number, (point, count) in enumerate(points):
        fuse = Burning(point, count)
        async with paired(tmp_path / str(number), fuse=fuse) as it:
            it.turns.by_itself = said(evidence="commit abc")
            it.executor.begin(it.group, it.connect)
            await it.joined()
            task_id = await it.create()
            with suppress(Died):
                await it.over(task_id)
            if fuse.left == 0:
                await reborn(it)
                await it.joined()
                await it.over(task_id)
            else:  # what came in two pieces then may come in one now, and be settled at once
                assert count > 1, f"{point} was not passed"
            assert it.desk.task(task_id).state is TaskState.COMPLETED, point
            assert len(it.turns.effects) == len(set(it.turns.effects)) == 1, point
            assert not it.desk.commands(only_open=True), point
            await it.executor.end()


async def test_a_supervisor_that_dies_while_it_revokes_concludes_nothing_by_itself(tmp_path: Path) -> None:
    for number, point in enumerate(("revoke.before", "revoke.done")):
        fuse = Burning(point, 1)
        async with paired(tmp_path / str(number), fuse=fuse) as it:
            lost: list[str] = []

            def watch(end: End, lost: list[str] = lost) -> None:
                assert end.other is not None
                theirs = end

                def at(name: str) -> None:
                    if name == "command" and not lost:
                        lost.append(name)
                        theirs.cut()

                end.other.before = at

            it.watch = watch
            it.turns.by_itself = said(evidence="commit abc")
            it.executor.begin(it.group, it.connect)
            await it.joined()
            task_id = await it.create()
            with pytest.raises(Died):
                await it.over(task_id)
            await reborn(it)
            await it.joined()
            await it.over(task_id)
            assert len(it.turns.effects) == 1
            states = sorted(command.state for command in it.desk.commands(task_id=task_id))
            assert states == [CommandState.ACKNOWLEDGED, CommandState.FAILED], point
            await it.executor.end()


async def test_what_is_long_over_is_forgotten_when_the_registry_says_so(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.turns.by_itself = said(evidence="commit abc")
        it.executor.begin(it.group, it.connect)
        await it.joined()
        await it.over(await it.create())
        (first,) = it.turns.effects
        await it.over(await it.create())
        second = it.turns.effects[-1]
        await it.executor.end()
        folder, now = it.executor.folder, it.clock.now()
        for command in (first, second):
            os.utime(claim.path_of(str(folder), command), (now.timestamp(),) * 2)
        it.bridge._forgettable = lambda command: command == first
        it.clock.move(timedelta(days=2))
        it.executor.begin(it.group, it.connect)
        await until(lambda: journal.held(folder) == (second,))
        assert it.ledger.command(first) is not None, "only the journal forgets"
