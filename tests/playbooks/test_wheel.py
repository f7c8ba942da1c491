"""The wheel: it never spins on a task whose serving fails, and it notices a clock that went back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

import pytest
from tests.support import builders as b
from tests.support.world import SetClock

from tenuto.engine.cycle import Cycle, Deposed, Rest, Restless
from tenuto.engine.foresight import AHEAD
from tenuto.engine.wheel import Wheel
from tenuto.model.command import Command
from tenuto.model.faults import Corrupt, OutOfReach, StorageFull
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.work import Task
from tenuto.ports import Ledger, NoFuse

ILL, WELL = TaskId("t-ill"), TaskId("t-well")


class Rows:
    """A ledger that knows only when tasks are due."""

    def __init__(self, due: dict[TaskId, datetime]) -> None:
        self.looks = due

    def under_way(self) -> tuple[TaskId, ...]:
        return ()

    def due(self, now: datetime, limit: int) -> tuple[TaskId, ...]:
        return tuple(task for task, at in sorted(self.looks.items(), key=lambda each: each[1]) if at <= now)[:limit]

    def tasks(self, limit: int, *, unfinished: bool = False) -> tuple[Task, ...]:
        return ()

    def next_due(self) -> datetime | None:
        return min(self.looks.values(), default=None)


class Serving:
    """A cycle that serves by rote: an ill task always fails, and any other comes to rest."""

    def __init__(self, rows: Rows, fault: Exception, *, foresees: bool = False) -> None:
        self.rows = rows
        self.fault = fault
        self.served: list[TaskId] = []
        self.foresees = foresees
        self.foreseen: list[TaskId] = []
        self.expected = asyncio.Event()

    async def foresee(self, task_id: TaskId, at: datetime) -> None:
        assert at >= self.rows.looks[task_id]
        self.foreseen.append(task_id)
        self.expected.set()
        raise self.fault

    def tend(self) -> None:
        """Nothing waits."""

    async def serve(self, task_id: TaskId) -> Rest | None:
        self.served.append(task_id)
        await asyncio.sleep(0)
        if task_id == ILL:
            raise self.fault
        self.rows.looks.pop(task_id, None)
        return Rest(None, None)


def wheel(clock: SetClock, serving: Serving) -> Wheel:
    return Wheel(cast(Cycle, serving), cast(Ledger, serving.rows), clock, NoFuse())


async def turning(it: Wheel, enough: asyncio.Event | None = None, most: float = 0.3) -> None:
    """Let the wheel turn until there was enough, at most for so many seconds, and stop it."""
    async with asyncio.TaskGroup() as group:
        group.create_task(it.run())
        try:
            async with asyncio.timeout(most):
                await (enough or asyncio.Event()).wait()
        except TimeoutError:
            pass
        it.stop()


@pytest.mark.parametrize("fault", [ValueError("ours"), Restless(ILL), StorageFull("full"), Corrupt("gone")])
async def test_a_task_whose_serving_fails_is_left_alone_for_a_while(fault: Exception) -> None:
    clock = SetClock()
    rows = Rows({ILL: clock.now() - timedelta(minutes=1), WELL: clock.now()})
    serving = Serving(rows, fault)
    it = wheel(clock, serving)
    await turning(it)
    assert serving.served.count(ILL) == 1, "it spins"
    assert WELL in serving.served, "a neighbour's fault is not its own"


async def test_a_clock_that_went_back_shows_what_it_hid() -> None:
    clock = SetClock()
    rows = Rows({WELL: clock.now() + timedelta(hours=2)})
    serving = Serving(rows, ValueError())
    it = wheel(clock, serving)
    last = (clock.now(), clock.monotonic())
    clock.time -= timedelta(hours=1)
    ticks = clock.monotonic() + 3600
    clock.monotonic = lambda: ticks  # type: ignore[method-assign]
    it._mind_the_clock(last)
    assert it._rung == {WELL}


async def test_a_deposed_supervisor_stops_turning() -> None:
    clock = SetClock()
    serving = Serving(Rows({ILL: clock.now()}), Deposed("epoch 2 leads"))
    with pytest.raises(Deposed):
        await wheel(clock, serving).run()


async def test_what_is_due_in_a_moment_is_made_ready_for_once_and_a_fault_of_that_is_nobodys() -> None:
    clock = SetClock()
    rows = Rows({WELL: clock.now() + AHEAD / 2, ILL: clock.now() + 3 * AHEAD})
    serving = Serving(rows, ValueError(), foresees=True)
    it = wheel(clock, serving)
    await turning(it, serving.expected, 30.0)
    await turning(it)
    assert serving.foreseen == [WELL]
    assert serving.served == []
    clock.time += AHEAD
    it = wheel(clock, serving)
    await turning(it)
    assert serving.served == [WELL]


async def test_whose_a_command_is_is_asked_until_it_is_known_and_not_again() -> None:
    asked: list[CommandId] = []
    known: dict[CommandId, Command] = {}

    class Commands(Rows):
        def command(self, command_id: CommandId) -> Command | None:
            asked.append(command_id)
            if not known:
                raise OutOfReach("it is away")
            return known.get(command_id)

    rows = Commands({})
    it = wheel(SetClock(), Serving(rows, ValueError()))
    mine = replace(b.SEND, task_id=WELL)
    it.ring_for(mine.id)
    known[CommandId("c-other")] = mine
    it.ring_for(mine.id)
    assert it._rung == set()
    known[mine.id] = mine
    for _ in range(3):
        it.ring_for(mine.id)
    assert it._rung == {WELL}
    assert asked == [mine.id] * 3
