"""An executor is made ready for a turn that is expected; one that does not come is given up and leaves nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from tests.playbooks.stage import Hall, Stage
from tests.support.world import OPERATOR

from tenuto.engine.foresight import AT_MOST, IDLE, SPARES, Foresight
from tenuto.model.ids import CommandId, TaskId
from tenuto.ports import Foreseeing

pytestmark = pytest.mark.anyio
SOON = timedelta(seconds=10)


@dataclass
class Ready(Hall):
    """The same executor, which can be made ready."""

    waiting: list[CommandId] = field(default_factory=list)
    given_up: list[CommandId] = field(default_factory=list)

    def foresee(self, command_id: CommandId) -> None:
        if command_id not in self.waiting:
            self.waiting.append(command_id)

    def forgo(self, command_id: CommandId) -> None:
        if command_id in self.waiting:
            self.waiting.remove(command_id)
            if command_id not in self.journal:
                self.given_up.append(command_id)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    made.hall = Ready(made.clock)
    await made.open()
    yield made
    await made.close()


async def rests(stage: Stage) -> tuple[Ready, TaskId, CommandId]:
    """A task whose turn has ended and whose next one is due in ten seconds, and the spare that waits for it."""
    hall = stage.hall
    assert isinstance(hall, Ready)
    assert isinstance(hall, Foreseeing)
    task = await stage.create(policy={"idle_delay": SOON.total_seconds()})
    (spare,) = hall.waiting
    assert spare not in (hall.running(), *hall.given_up)
    await stage.seen("ends working")
    await stage.turn_the_wheel()
    assert (hall.waiting, hall.given_up) == ([spare], [])
    return hall, task, spare


async def test_the_turn_that_comes_is_the_one_that_was_made_ready_for(stage: Stage) -> None:
    hall, task, spare = await rests(stage)
    for _ in range(2):
        await stage.cycle.foresee(task, stage.clock.now() + SOON)
        assert hall.waiting == [spare]
    assert stage.ledger.command(spare) is None, "nothing is written down for it"
    await stage.pass_time(SOON)
    assert hall.running() == spare
    (follows,) = hall.waiting
    assert follows > spare
    assert hall.given_up == []


async def test_a_turn_that_does_not_come_is_given_up(stage: Stage) -> None:
    hall, task, spare = await rests(stage)
    await stage.cycle.foresee(task, stage.clock.now() + SOON)
    await stage.desk.pause(OPERATOR, task)
    await stage.turn_the_wheel()
    assert (hall.waiting, hall.given_up) == ([], [spare])
    await stage.pass_time(2 * SOON)
    assert stage.ledger.command(spare) is None


async def test_nothing_is_made_ready_for_a_task_that_would_not_go_on(stage: Stage) -> None:
    hall, task, spare = await rests(stage)
    await stage.cycle.foresee(task, stage.clock.now())
    await stage.desk.pause(OPERATOR, task)
    await stage.cycle.foresee(task, stage.clock.now() + SOON)
    await stage.turn_the_wheel()
    assert (hall.waiting, hall.given_up) == ([spare], []), "the spare is nobody's, and waits for whoever comes first"


async def test_a_turn_that_ends_at_work_is_followed_by_the_one_that_waited(stage: Stage) -> None:
    hall = stage.hall
    assert isinstance(hall, Ready)
    await stage.create()
    for _ in range(3):
        (spare,) = hall.waiting
        await stage.seen("ends working")
        await stage.turn_the_wheel()
        assert hall.running() == spare
    assert hall.given_up == []


async def test_a_turn_that_ends_at_work_has_the_next_made_ready_while_it_is_looked_at(stage: Stage) -> None:
    hall = stage.hall
    assert isinstance(hall, Ready)
    await stage.create()
    await stage.pass_time(timedelta(seconds=IDLE))
    stage.cycle.tend()
    assert hall.waiting == []
    asked: list[str] = []
    foresee = hall.foresee

    def told(command_id: CommandId) -> None:
        asked.append(command_id)
        foresee(command_id)

    hall.foresee = told  # type: ignore[method-assign]
    await stage.seen("ends working")
    await stage.turn_the_wheel()
    assert asked[0] == hall.running(), "made ready before the end was settled"


async def test_a_spare_that_nobody_needs_is_given_up(stage: Stage) -> None:
    hall, _, spare = await rests(stage)
    assert isinstance(hall, Ready)
    stage.cycle.tend()
    assert hall.waiting == [spare]
    stage.clock.time += timedelta(seconds=IDLE)
    stage.cycle.tend()
    assert (hall.waiting, hall.given_up) == ([], [spare])


async def test_few_spares_wait_and_those_named_first_are_taken_first(stage: Stage) -> None:
    hall, other = Ready(stage.clock), Ready(stage.clock)
    ahead = Foresight(stage.minter)
    first, second, third = (TaskId(f"t-{n}") for n in range(3))
    ahead.begun(first, hall)
    ahead.provide(0.0)
    ahead.begun(first, hall)
    ahead.provide(1.0)
    assert len(hall.waiting) == 1, "one task works"
    for n, task in enumerate((second, third, first)):
        ahead.begun(task, hall)
        ahead.provide(2.0 + n)
    assert len(hall.waiting) == SPARES
    older, newer = hall.waiting
    assert older < newer
    assert ahead.take(first, other) not in hall.waiting, "it waits elsewhere"
    assert ahead.take(third, hall) == older
    ahead.make_ready(first, hall, 5.0)
    assert ahead.take(first, hall) == newer
    named = ahead.take(first, hall)
    assert named > newer
    assert hall.given_up == []


async def test_only_so_many_wait_at_once(stage: Stage) -> None:
    hall = stage.hall
    assert isinstance(hall, Ready)
    ahead = Foresight(stage.minter)
    for n in range(AT_MOST + 3):
        ahead.make_ready(TaskId(f"t-{n}"), hall, 0.0)
    assert len(hall.waiting) == AT_MOST
    other = Ready(stage.clock)
    assert ahead.take(TaskId("t-0"), other) not in hall.waiting
    ahead.let_go(TaskId("t-0"))
    assert len(hall.waiting) == AT_MOST - 1
    assert ahead.take(TaskId("t-1"), hall) in hall.waiting


async def test_whoever_waits_for_the_turn_of_a_task_that_does_not_come_is_given_up_in_time(stage: Stage) -> None:
    hall, task = Ready(stage.clock), TaskId("t-0")
    ahead = Foresight(stage.minter)
    ahead.begun(task, hall)
    ahead.provide(0.0)
    (spare,) = hall.waiting
    ahead.make_ready(task, hall, IDLE - 1)
    ahead.tend(2 * IDLE - 2)
    assert (hall.waiting, hall.given_up) == ([spare], []), "it counts from when it was meant for the task"
    ahead.tend(2 * IDLE - 1)
    assert (hall.waiting, hall.given_up) == ([], [spare])
    assert ahead.take(task, hall) != spare
