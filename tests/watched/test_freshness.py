"""Whoever looks at a page may be slow: what it saw is looked at anew, and is acted on only while it is fresh."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import OPERATOR, World, world

from tenuto.model.evidence import Observation, Rank
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.policy import POLICY
from tenuto.model.tools import ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.surfaces import verbs

S = timedelta(seconds=1)
URL = "https://chat.example/c/1"


@dataclass
class Slow:
    """A witness whose looks are as old as `ages` says, look by look; those after them are as old as `then`."""

    it: World
    ages: list[float] = field(default_factory=list)
    then: float = 0.0
    looks: int = 0

    async def look(self, binding: ToolBinding) -> Observation:
        self.looks += 1
        age = self.ages.pop(0) if self.ages else self.then
        facts = WatchedFacts(binding, shown=True, window="w-1", generating=False)
        return Observation("accessibility", Rank.OUTSIDE, binding.subject, self.it.clock.now() - age * S, facts)

    async def shown(self) -> tuple[ShownPage, ...]:
        return ()


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        made.cycle.witnesses = {"desk": Slow(made)}
        yield made


def desk(it: World) -> Slow:
    found = it.cycle.witnesses["desk"]
    assert isinstance(found, Slow)
    return found


async def watching(it: World, **more: Any) -> TaskId:
    task = await it.create(**more)
    await verbs.call(it.desk, OPERATOR, "page.watch", {"task": task, "url": URL, "by": "desk"}, None)
    return task


FRESH = POLICY.page_fresh.total_seconds()


async def test_a_page_that_was_seen_too_long_ago_is_looked_at_anew(it: World) -> None:
    task = await watching(it)
    desk(it).ages = [FRESH + 1]
    await it.settle(task)
    assert len(it.executor.turns) == 1
    assert it.ledger.samples(task, 9)[-1].members == tuple(
        member for member in it.ledger.samples(task, 9)[-1].members if not member.startswith("flawed ")
    )


async def test_a_page_that_is_always_seen_too_late_holds_and_says_so(it: World) -> None:
    task = await watching(it)
    desk(it).then = FRESH + 1
    rest = await it.settle(task)
    assert rest is not None
    assert rest.because is not None
    assert (rest.because.rung, "stale" in rest.because.sentence) == ("evidence", True)
    assert rest.look_again_at is not None
    assert not it.executor.turns
    desk(it).then = FRESH
    it.clock.move(60 * S)
    await it.settle(task)
    assert len(it.executor.turns) == 1


async def test_a_page_that_is_seen_too_late_right_before_the_step_stops_the_hand_over(it: World) -> None:
    task = await watching(it)
    watcher = desk(it)
    commands: tuple[Any, ...] = ()
    for good in range(12):
        watcher.ages, watcher.then = [0.0] * good, FRESH + 1
        await it.settle(task)
        commands = it.desk.commands(task_id=task)
        if commands:
            break
        it.clock.move(60 * S)
    (command,) = commands
    assert command.state == "failed", "proven that nothing happened"
    assert not it.executor.turns
    (attempt,) = it.desk.attempts(task)
    assert attempt.outcome == "unsent"
    watcher.ages, watcher.then = [], 0.0
    it.clock.move(400 * S)
    await it.settle(task)
    assert len(it.executor.turns) == 1


async def test_a_page_that_grew_old_while_the_turn_was_made_arms_nothing(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment of the commit counts, not that of the decision: what was seen is seen anew first."""
    task = await watching(it, policy={"arm_within": 3600})
    told: list[tuple[CommandId, int]] = []
    plain: Callable[..., Any] = it.cycle._prompter.tell

    def tell(seen: Any, command: CommandId, now: datetime) -> Any:
        told.append((command, desk(it).looks))
        if len(told) == 1:
            it.clock.move(POLICY.page_fresh + S)
        return plain(seen, command, now)

    monkeypatch.setattr(it.cycle._prompter, "tell", tell)
    await it.settle(task)
    (first, before), (second, after) = told
    assert after > before
    assert list(it.executor.turns) == [second]
    assert first not in [command.id for command in it.desk.commands(task_id=task)]


async def test_how_long_a_page_is_believed_is_the_runs_own_number(it: World) -> None:
    task = await watching(it, policy={"page_fresh": 90})
    desk(it).then = 89
    await it.settle(task)
    assert len(it.executor.turns) == 1
    strict = await watching(it, policy={"page_fresh": 5})
    await it.settle(strict)
    assert len(it.executor.turns) == 1


async def test_a_page_that_moved_just_now_holds_for_as_long_as_it_must_be_still(
    it: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = it.clock.now()
    plain = desk(it).look

    async def look(binding: ToolBinding) -> Observation:
        told = await plain(binding)
        assert isinstance(told.facts, WatchedFacts)
        return replace(told, facts=replace(told.facts, changed_at=moved))

    monkeypatch.setattr(desk(it), "look", look)
    task = await watching(it)
    rest = await it.settle(task)
    assert rest is not None
    assert rest.because is not None
    assert (rest.because.rung, rest.look_again_at) == ("page", moved + POLICY.page_quiet)
    it.clock.move(POLICY.page_quiet)
    await it.settle(task)
    assert len(it.executor.turns) == 1
