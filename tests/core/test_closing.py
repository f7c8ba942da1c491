"""Closing the page of a task that is over: only one of our own, once, written first, and never what a person uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core.test_pages import NAME, READY, Paged, made
from tests.support.world import OPERATOR, World, world

from tenuto.core import closing
from tenuto.engine.cycle import Cycle, Surroundings
from tenuto.model.command import Accepted, Armed, Command, CommandKind, Outcome, Unsent
from tenuto.model.evidence import Ending, Mark, PageFacts, Presence
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState
from tenuto.ports import ClosePage, Fuse, NoFuse
from tenuto.ports import Order as Ordered

pytestmark = pytest.mark.anyio
OURS = replace(READY, ours=True)


@dataclass
class Closer(Paged):
    """A played browser whose pages can be closed. `refuses`: it finds somebody at work in them."""

    refuses: bool = False
    able: bool = True

    def capable(self, capability: str) -> bool:
        """Whether it says that it can."""
        return self.able and capability == "close"

    async def perform(self, armed: Armed, order: Ordered) -> Outcome:
        """As ever; a page that is closed is not shown any more."""
        if not isinstance(order, ClosePage):
            return await super().perform(armed, order)
        assert armed.command.id not in self.journal
        self.orders[armed.command.id] = order
        if self.refuses:
            self._write(armed.command, Mark.FAILED, Presence.GONE, reason="somebody is at work in that page")
            return Unsent("somebody is at work in that page")
        self._write(armed.command, Mark.ENDED, Presence.GONE)
        self.journal[armed.command.id] = replace(self.journal[armed.command.id], ending=Ending(None, None, None))
        self.shows = PageFacts(shown=False)
        return Accepted()

    @property
    def closes(self) -> list[str]:
        """The pages that were closed, or tried."""
        return [order.identity for order in self.orders.values() if isinstance(order, ClosePage)]


class Died(Exception):
    """The supervisor was killed."""


class Passing:
    """Notes the points of closing that it passes, and dies at the one it was told to."""

    def __init__(self, dies_at: str | None = None) -> None:
        self.dies_at = dies_at

    def burn(self, point: str) -> None:
        if point == self.dies_at:
            self.dies_at = None
            raise Died(point)


@asynccontextmanager
async def browser(folder: Path, fuse: Fuse | None = None) -> AsyncIterator[tuple[World, Closer]]:
    played: Callable[[object], Closer] = lambda clock: Closer(clock, NAME)  # type: ignore[arg-type]  # noqa: E731
    async with world(folder, played=played, fuse=fuse or NoFuse()) as it:
        executors = {NAME: it.executor}
        it.cycle._executors = it.desk._executors = it.desk.adopting._executors = executors
        assert isinstance(it.executor, Closer)
        yield it, it.executor


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[tuple[World, Closer]]:
    async with browser(tmp_path) as both:
        yield both


async def over(it: World, page: Closer, shows: PageFacts) -> TaskId:
    """A task that has completed, with what its page shows then."""
    task = await made(it)
    await it.settle(task)
    page.shows = shows
    page.finish(status="complete", evidence="done")
    await it.settle(task)
    row = it.ledger.task(task)
    assert row is not None
    assert row.terminal
    return task


def closings(it: World, task: TaskId) -> list[Command]:
    return [one for one in it.ledger.commands(50, task_id=task) if one.kind is CommandKind.PAGE_CLOSE]


async def test_br_166_the_page_of_a_task_that_is_over_is_closed_once(at: tuple[World, Closer]) -> None:
    it, page = at
    task = await over(it, page, OURS)
    (command,) = closings(it, task)
    assert command.state is CommandState.ACKNOWLEDGED
    (talk,) = it.ledger.conversations(task)
    assert page.closes == [talk.identity]
    assert set(command.scopes) == {f"page:{NAME}/{talk.id}", f"conversation:{talk.identity}"}
    for _ in range(3):
        it.clock.move(timedelta(minutes=1))
        await it.settle(task)
    assert len(page.closes) == 1


STAYS = {
    "not ours": replace(OURS, ours=False),
    "several": replace(OURS, several=True),
    "a person's turn": replace(OURS, foreign_turns=1),
    "not shown": PageFacts(shown=False),
}


@pytest.mark.parametrize("shows", STAYS.values(), ids=list(STAYS))
async def test_what_is_not_ours_stays_and_is_not_looked_at_again(at: tuple[World, Closer], shows: PageFacts) -> None:
    it, page = at
    task = await over(it, page, shows)
    row = it.ledger.task(task)
    assert row is not None
    assert (page.closes, row.look_at) == ([], None)


BUSY = {
    "typing": replace(OURS, typing=True),
    "a draft": replace(OURS, state="draft", composer="foreign"),
    "generating": replace(OURS, state="generating", generating="yes"),
    "an approval": replace(OURS, approval="card"),
    "unknown": replace(OURS, state="unknown"),
    "nobody answers": PageFacts(shown=None),
}


@pytest.mark.parametrize("shows", BUSY.values(), ids=list(BUSY))
async def test_what_is_in_use_is_closed_when_it_is_not_and_then_stays(
    at: tuple[World, Closer], shows: PageFacts
) -> None:
    it, page = at
    task = await over(it, page, shows)
    row = it.ledger.task(task)
    assert row is not None
    assert row.look_at == it.clock.now() + closing.AGAIN
    page.shows = OURS
    await it.settle(task)
    assert len(page.closes) == 1
    other = await over(it, page, shows)
    it.clock.move(closing.PATIENCE)
    page.shows = OURS
    await it.settle(other)
    assert closings(it, other) == []


async def test_a_refusal_is_tried_again_a_few_times_and_bothers_nobody(at: tuple[World, Closer]) -> None:
    it, page = at
    page.refuses = True
    task = await over(it, page, OURS)
    for _ in range(5):
        it.clock.move(closing.AGAIN)
        await it.settle(task)
    assert len(page.closes) == closing.TRIES
    assert {one.state for one in closings(it, task)} == {CommandState.FAILED}
    assert [item for item in it.desk.attention() if item.task_id == task] == []


async def test_nothing_is_closed_under_a_hold_or_by_who_cannot(at: tuple[World, Closer]) -> None:
    it, page = at
    await it.desk.hold(OPERATOR)
    task = await made(it)
    await it.desk.hold(OPERATOR, lift=True)
    await it.settle(task)
    page.shows = OURS
    await it.desk.hold(OPERATOR)
    page.finish(status="complete", evidence="done")
    await it.settle(task)
    assert page.closes == []
    await it.desk.hold(OPERATOR, lift=True)
    page.able = False
    await it.settle(task)
    assert page.closes == []
    page.able = True
    await it.settle(task)
    assert len(page.closes) == 1


@pytest.mark.parametrize("point", ["page_close.before_commit", "page_close.committed", "page_close.handed_over"])
async def test_wherever_the_supervisor_dies_the_page_is_closed_at_most_once(tmp_path: Path, point: str) -> None:
    fuse = Passing(point)
    async with browser(tmp_path, fuse) as (it, page):
        task = await made(it)
        await it.settle(task)
        page.shows = OURS
        page.finish(status="complete", evidence="done")
        with pytest.raises(Died):
            await it.settle(task)
        around = Surroundings(str(tmp_path / "api.sock"), str(tmp_path / "spool"), str(tmp_path))
        cycle = Cycle(it.ledger, {NAME: page}, it.workspace, it.clock, it.minter, NoFuse(), around, 20)
        cycle.epoch = it.cycle.epoch
        for _ in range(4):
            it.clock.move(closing.AGAIN)
            await cycle.serve(task)
        assert len(page.closes) == 1
        assert [one.state for one in closings(it, task)].count(CommandState.ACKNOWLEDGED) == 1
        assert [one for one in closings(it, task) if one.open] == []
