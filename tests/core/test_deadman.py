"""The dead-man switch: what is counted as silence, and what a question of an extension comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core.test_pages import NAME, READY, Paged, made, paged
from tests.support.world import OPERATOR, World, world

from tenuto.core import deadman, wake
from tenuto.core.deadman import Silence
from tenuto.engine.deadman import EVERY, DeadMan
from tenuto.model.change import Commit, Committed
from tenuto.model.command import Command
from tenuto.model.decision import Rung
from tenuto.model.fact import FactKind
from tenuto.model.ids import RunId, TaskId
from tenuto.model.policy import LONGEST
from tenuto.model.work import WaitKind, Wake, WakeKind
from tenuto.ports import Turn

pytestmark = pytest.mark.anyio
S = timedelta(seconds=1)
ROUNDS = 31
"""Listenings that make ten minutes and one more."""


@dataclass
class Signs:
    """What is heard of executors, as a test says."""

    here: bool = True
    working: set[str] = field(default_factory=set)

    def connected(self, executor: str) -> bool:
        return self.here

    def alive(self, command: Command) -> bool:
        return command.id in self.working


@dataclass
class Listening:
    """A world whose run has ended a turn without a word, and who listens to it."""

    it: World
    signs: Signs
    man: DeadMan
    rung: list[TaskId]
    task: TaskId

    @property
    def run(self) -> RunId:
        row = self.it.ledger.task(self.task)
        assert row is not None
        return row.run_id

    async def rounds(self, count: int = ROUNDS) -> None:
        """So many listenings, each at its time."""
        for _ in range(count):
            self.it.clock.move(EVERY)
            await self.man.round()

    @property
    def wakes(self) -> list[str]:
        return [one.reason for one in self.pending if one.kind is WakeKind.RECOVERY]

    @property
    def pending(self) -> tuple[Wake, ...]:
        snapshot = self.it.ledger.snapshot(self.task, 20)
        assert snapshot is not None
        return snapshot.wakes

    def facts(self, kind: FactKind) -> list[dict[str, object]]:
        told = self.it.ledger.events(0, 1000, run_id=self.run)
        return [dict(one.fact.data) for one in told if one.fact.kind is kind]

    async def switch(self, **numbers: float) -> None:
        await self.it.desk.set_policy(OPERATOR, self.run, {name: str(value) for name, value in numbers.items()})


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Listening]:
    def played(clock: object) -> Paged:
        return Paged(clock, NAME)  # type: ignore[arg-type]

    async with world(tmp_path, played=played) as it:
        executors = {NAME: it.executor}
        it.cycle._executors = executors
        it.desk._executors = executors
        signs, rung = Signs(), list[TaskId]()
        man = DeadMan(it.ledger, it.clock, it.minter, 20, signs, rung.append)
        it.cycle.watched = man.watch
        task = await made(it)
        at = Listening(it, signs, man, rung, task)
        await at.switch(**{"dead-man": 1})
        await it.settle(task)
        yield at


async def silent(at: Listening) -> None:
    """Its turn ends, and the wake for the next one is lost, as by a fault of ours."""
    paged(at.it).finish()
    await at.it.settle(at.task)
    (due,) = at.pending
    gone = replace(due, revision=due.revision + 1, consumed_at=at.it.clock.now())
    assert isinstance(await at.it.ledger.commit(Commit(puts=(gone,))), Committed)
    at.it.clock.move(timedelta(minutes=1))
    rest = await at.it.settle(at.task)
    assert rest is not None
    assert rest.because is not None
    assert rest.because.rung is Rung.NOTHING_ASKED


def test_what_is_counted_is_awake_and_connected_and_ends_with_a_sign() -> None:
    quiet = deadman.listened(None, "a", 20 * S, alive=False, connected=True)
    assert quiet == Silence(0 * S, "a")
    quiet = deadman.listened(quiet, "a", 20 * S, alive=False, connected=True)
    assert quiet.quiet == 20 * S
    assert deadman.listened(quiet, "a", 20 * S, alive=False, connected=False).quiet == 20 * S
    slept = deadman.listened(quiet, "a", timedelta(hours=8), alive=False, connected=True)
    assert slept.quiet == 20 * S + deadman.LONGEST
    assert deadman.listened(quiet, "a", -5 * S, alive=False, connected=True).quiet == 20 * S
    assert deadman.listened(quiet, "a", 20 * S, alive=True, connected=True).quiet == 0 * S
    assert deadman.listened(quiet, "b", 20 * S, alive=False, connected=True) == Silence(0 * S, "b")


async def test_a_silent_run_is_woken_once_and_looked_at_twice_before_its_turn(at: Listening) -> None:
    await silent(at)
    before = len(paged(at.it).turns)
    await at.rounds(16)
    at.man.asked(NAME, at.run)
    await at.man.round()
    assert at.wakes == []  # asked after its five minutes; ours are ten
    await at.rounds(16)
    assert at.wakes == [wake.DEAD_MAN]
    assert at.rung == [at.task]
    assert at.facts(FactKind.RUN_DEAD_MAN) == [{"by": NAME, "tasks": 1}]
    rest = await at.it.settle(at.task)
    assert rest is not None
    assert rest.because is not None
    assert rest.because.rung is Rung.FENCE
    assert len(paged(at.it).turns) == before
    at.it.clock.move(4 * S)
    await at.it.settle(at.task)
    assert len(paged(at.it).turns) == before + 1
    order = paged(at.it).orders[paged(at.it).turns[-1]]
    assert isinstance(order, Turn)
    assert order.watched == (at.run, timedelta(minutes=5))


async def test_questions_asked_twice_and_soon_again_come_to_one(at: Listening) -> None:
    await silent(at)
    await at.rounds()
    for _ in range(3):
        at.man.asked(NAME, at.run)
        at.man.asked("ext:other", at.run)
        await at.man.round()
    assert len(at.facts(FactKind.RUN_DEAD_MAN)) == 1
    assert len(at.wakes) == 1
    at.it.clock.move(timedelta(minutes=29))
    other = DeadMan(at.it.ledger, at.it.clock, at.it.minter, 20, at.signs, at.rung.append)
    at.man = other  # a supervisor that leads next counts anew, and knows what was granted
    at.man.watch(at.run)
    at.man.asked(NAME, at.run)
    await at.man.round()
    assert len(at.facts(FactKind.RUN_DEAD_MAN)) == 1
    assert at.facts(FactKind.RUN_DEAD_MAN_REFUSED)[-1]["why"] == "it was granted not long ago"


async def test_the_longest_time_between_two_grants_is_reckoned_with(at: Listening) -> None:
    await at.switch(**{"dead-man-apart": LONGEST.total_seconds()})
    await silent(at)
    await at.rounds()
    for _ in range(2):
        at.man.asked(NAME, at.run)
        await at.man.round()
    assert len(at.facts(FactKind.RUN_DEAD_MAN)) == 1


async def test_off_changes_nothing(at: Listening) -> None:
    await at.switch(**{"dead-man": 0})
    await silent(at)
    await at.rounds(1)
    assert not at.man.listening
    at.man.asked(NAME, at.run)
    await at.rounds()
    assert at.wakes == []
    assert [one["why"] for one in at.facts(FactKind.RUN_DEAD_MAN_REFUSED)] == ["its dead-man switch is off"]
    assert not at.man.listening


@pytest.mark.parametrize("sign", ["heard", "working", "away"])
async def test_a_sign_ends_the_silence_and_who_is_away_makes_none(at: Listening, sign: str) -> None:
    await silent(at)
    for _ in range(ROUNDS * 2):
        if sign == "heard":
            at.man.heard(at.task)
        elif sign == "away":
            at.signs.here = False
        else:
            at.man.watch(at.run)
        at.man.asked(NAME, at.run)
        await at.rounds(1)
    assert at.wakes == []
    assert at.facts(FactKind.RUN_DEAD_MAN) == []


@pytest.mark.parametrize("why", ["live", "paused", "manual", "waits", "stopped"])
async def test_what_is_under_way_or_held_by_a_person_is_left_alone(at: Listening, why: str) -> None:
    if why != "live":
        await silent(at)
    match why:
        case "paused":
            await at.it.desk.pause(OPERATOR, at.task)
        case "manual":
            await at.it.desk.set_policy(OPERATOR, at.task, {"auto-resume": "manual"})
        case "waits":
            await at.it.desk.wait(OPERATOR, at.task, WaitKind.HUMAN, "which one?")
        case "stopped":
            await at.it.desk.cancel(OPERATOR, at.run, reason="enough")
        case _:
            assert at.it.executor.under_way
    at.man.asked(NAME, at.run)
    await at.rounds(ROUNDS + 2)
    assert at.wakes == []
    refused = at.facts(FactKind.RUN_DEAD_MAN_REFUSED)
    assert len(refused) == 1, refused
    assert at.facts(FactKind.RUN_DEAD_MAN) == []


async def test_a_turn_that_is_seen_to_go_on_is_a_sign(at: Listening) -> None:
    at.signs.working = set(at.it.executor.under_way)
    at.man.asked(NAME, at.run)
    await at.rounds(ROUNDS * 2)
    assert at.facts(FactKind.RUN_DEAD_MAN_REFUSED) == []
    snapshot = at.it.ledger.snapshot(at.task, 20)
    assert snapshot is not None
    assert not deadman.idle(snapshot)
    paged(at.it).shows = replace(READY)
