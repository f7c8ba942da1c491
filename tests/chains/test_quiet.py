"""A chain that waits is looked at as seldom as it says: an end is worth one step, and after that its moment counts.

An hour passes on a clock that stands still between the looks, as the supervisor's rounds would make them. Whoever would
look again and again without waiting is found at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from tests.chains.test_engine import DONE, Chained, Killed, started
from tests.support.merging import Outside, commit, merging_chain
from tests.support.world import OPERATOR, World, world

from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chains import HandOff, Opening
from tenuto.engine.tending import LONGEST
from tenuto.model.chain import Blocker, Outcome
from tenuto.model.command import CommandKind
from tenuto.model.fact import FactKind
from tenuto.model.forge import PullState
from tenuto.model.ids import ChainId, TaskId
from tenuto.model.lifecycle import ChainState, CommandState, WorktreeState
from tenuto.model.phase import Landed, Looked, Sought
from tenuto.model.worktree import Base, Kept, Made, NotNow, Removed, Tree

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
#: Looks in an hour of somebody who waits a tenth of what was waited already, at least 1 s and at most 1 min.
GROWING = 120
#: More than any chain may make; one that is due again and again comes to it at once.
ENDLESS = 2000


@dataclass
class Places:
    """Worktrees and a base that are played: nothing ever lands, and a removal comes to what `standing` says."""

    looks: int = 0
    standing: NotNow | Kept | None = None
    dies: bool = False
    made: list[str] = field(default_factory=list)

    def path(self, name: str) -> str:
        return f"/played/{name}"

    def objection(self, repository: str) -> str | None:
        return None

    async def make(self, tree: Tree) -> Made:
        self.made.append(tree.path)
        return Made(commit(1))

    async def found(self, tree: Tree) -> Made | None:
        return Made(commit(1)) if tree.path in self.made else None

    async def remove(self, tree: Tree) -> Removed | NotNow | Kept:
        if self.dies:
            raise Killed
        return self.standing or Removed()

    async def default(self, repository: str, remote: str) -> str | None:
        return "main"

    async def look(self, repository: str, base: Base, sought: Sought, seen: str | None) -> Looked | str:
        self.looks += 1
        return Looked(commit(1), commit(77), since=())

    async def after(self, repository: str, base: str, commit: str) -> tuple[Landed, ...] | str | None:
        return ()

    async def merged(self, repository: str, base: Base, begun: Mapping[str, str]) -> tuple[str, ...]:
        return ()


@dataclass
class Hour:
    """What an hour came to."""

    steps: int = 0
    commits: int = 0


async def hour(it: World, chain_id: ChainId, part: int = 1) -> Hour:
    """An hour, or a part of one, of the rounds of a supervisor, in which nothing else happens."""
    chains, over, came = it.desk.chains, it.clock.now() + HOUR / part, Hour()
    first = it.ledger.chain(chain_id)
    assert first is not None
    while it.clock.now() < over:
        while due := chains.due():
            came.steps += len(due)
            last = it.ledger.chain(chain_id)
            assert came.steps < ENDLESS, f"it is due without an end: {last}"
            for one in due:
                await chains.tend_one(one)
        soonest = chains.soonest()
        wait = LONGEST if soonest is None else min(soonest - it.clock.now(), LONGEST)
        it.clock.move(max(wait, timedelta(milliseconds=50)))
    last = it.ledger.chain(chain_id)
    assert last is not None
    came.commits = last.revision - first.revision
    return came


def at_most(came: Hour, most: int, commits: int | None = None) -> None:
    assert came.steps <= most, came
    assert came.commits <= (most if commits is None else commits), came


async def ended(it: World, task: TaskId) -> None:
    """The agent's turn ends, and its word that the work is done is taken."""
    await it.settle(task)
    it.executor.finish(status="complete", summary="done", evidence="commit abc")
    await it.settle(task)
    assert it.desk.task(task).terminal


@asynccontextmanager
async def phased(folder: Path, places: Places) -> AsyncIterator[tuple[World, Chained]]:
    """A chain of phases whose first worktree stands."""
    hosts = Hosts(trees=places, history=places)
    async with world(folder, hosts=lambda _clock: hosts) as it:
        chain = await started(it, 2, worktrees=True, phases=True)
        await chain.chains.tend()
        await chain.chains.tend()
        assert chain.chains.worktrees(chain.id)[0].state is WorktreeState.READY
        yield it, chain


async def test_a_night_until_a_pull_request_is_merged(tmp_path: Path) -> None:
    places = Places()
    async with phased(tmp_path, places) as (it, chain):
        task = chain.links[0].task_id
        await chain.chains.open_phase(OPERATOR, task, Opening(1))
        await ended(it, task)
        came = await hour(it, chain.id)
        assert "not part of the base" in chain.reason or "pull request 1" in chain.reason
        at_most(came, GROWING)
        assert places.looks <= GROWING
        later = await hour(it, chain.id)
        at_most(later, 61)


async def test_a_night_until_a_person_records_a_pull_request_that_is_missing(tmp_path: Path) -> None:
    async with phased(tmp_path, Places()) as (it, chain):
        task = chain.links[0].task_id
        await ended(it, task)
        at_most(await hour(it, chain.id), GROWING)
        row = it.ledger.chain(chain.id)
        assert row is not None
        assert "no pull request of it is recorded" in (row.asks or "")
        await chain.chains.open_phase(OPERATOR, task, Opening(1))
        assert chain.id in chain.chains.due(), "what a person says is heard at once"


async def test_a_worktree_that_cannot_be_removed_now(tmp_path: Path) -> None:
    places = Places(standing=NotNow("somebody stands in it"))
    async with phased(tmp_path, places) as (it, chain):
        await it.desk.cancel(OPERATOR, chain.links[0].task_id, reason="enough")
        await it.settle(chain.links[0].task_id)
        at_most(await hour(it, chain.id, 4), 75, 20)
        assert "to go on: tenuto chain advance" in chain.reason
        places.standing = None
        at_most(await hour(it, chain.id), 3)
        row = it.ledger.chain(chain.id)
        assert row is not None
        assert row.look_at is None, "it waits for a person, and for nothing else"
        assert [one.state for one in chain.chains.worktrees(chain.id)] == [WorktreeState.GONE]


async def test_a_removal_that_a_death_left_is_finished_though_its_chain_rests(tmp_path: Path) -> None:
    places = Places(standing=Kept("work that is nowhere else"))
    async with phased(tmp_path, places) as (it, chain):
        await it.desk.cancel(OPERATOR, chain.links[0].task_id, reason="enough")
        await it.settle(chain.links[0].task_id)
        await hour(it, chain.id, 4)
        (tree,) = chain.chains.worktrees(chain.id)
        row = it.ledger.chain(chain.id)
        assert (tree.state, row and row.look_at) == (WorktreeState.KEPT, None)
        places.dies = True
        with pytest.raises(Killed):
            await chain.chains.remove(OPERATOR, tree.id)
        assert [one.kind for one in it.ledger.commands(9, only_open=True)] == [CommandKind.WORKTREE_REMOVE]
        places.standing, places.dies = None, False
        await hour(it, chain.id, 20)
        assert [one.state for one in chain.chains.worktrees(chain.id)] == [WorktreeState.GONE]
        assert not it.ledger.commands(9, only_open=True)


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


@pytest.fixture
async def it(tmp_path: Path, outside: Outside) -> AsyncIterator[World]:
    async with world(tmp_path, hosts=outside.hosts) as made:
        yield made


async def test_a_gate_that_runs_and_a_review_that_goes_on(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    at_most(await hour(it, chain.id, 4), 35)  # every 30 s
    await chain.gated()
    at_most(await hour(it, chain.id), 15)  # every 5 min
    await chain.said()
    assert chain.units()["u1"]["state"] == "done"


@pytest.mark.parametrize("what", ["closed", "out", "off"])
async def test_a_gate_ends_while_something_else_is_waited_for(it: World, outside: Outside, what: str) -> None:
    chain = await merging_chain(it, outside)
    task = await chain.hand_in()
    match what:
        case "closed":
            outside.forge.change(1, state=PullState.CLOSED)
        case "out":
            outside.forge.out = "no way there"
        case _:
            outside.off = "the operator says so"
    await it.settle(task)
    command = chain.proposal.gate_command
    assert command is not None
    outside.gate.finish(command, exit_code=0, block=False)
    await it.settle(task)
    row = it.ledger.command(command)
    assert row is not None
    assert row.state is CommandState.ACKNOWLEDGED
    at_most(await hour(it, chain.id, 6), {"closed": 5, "out": 125, "off": 125}[what])
    assert chain.proposal.gate is None, "it was not taken up, and is not forgotten"


async def test_a_reviewer_that_ends_while_the_host_is_out_of_reach(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    reviewer = chain.review.task_id
    outside.forge.out = "no way there"
    await it.desk.cancel(OPERATOR, reviewer, reason="enough")
    await it.settle(reviewer)
    at_most(await hour(it, chain.id, 6), 125)  # every 5 s
    outside.forge.out = None
    await chain.later(6)
    assert chain.review.task_id != reviewer, "another is asked as soon as the host answers"


async def test_a_source_that_is_out_of_order_when_the_task_ends(it: World) -> None:
    chain = await started(it, 2)
    aside = chain.queue.with_name("aside.json")
    chain.queue.rename(aside)
    await ended(it, chain.links[0].task_id)
    at_most(await hour(it, chain.id, 6), 125)  # every 5 s
    aside.rename(chain.queue)
    it.clock.move(timedelta(seconds=6))
    await chain.chains.tend()
    assert [link.unit for link in chain.links] == ["u1", "u2"]


async def test_a_unit_that_is_blocked_and_a_task_that_ends_afterwards(it: World) -> None:
    chain = await started(it, 2)
    chain.edit("u2", state="blocked", tracked_by="me", blocked_on="the weather", resume_when="it is fine")
    task = chain.links[0].task_id
    await chain.hand_off(task, HandOff(Outcome.DONE, "commit abc", only_record=True))
    await ended(it, task)
    at_most(await hour(it, chain.id, 4), 65)  # every 15 s
    assert (chain.state, len(chain.links)) == (ChainState.OPEN, 1)
    chain.edit("u2", state="eligible")
    it.clock.move(timedelta(seconds=16))
    await chain.chains.tend()
    assert chain.links[-1].unit == "u2"


async def test_a_blocked_unit_is_waited_for(it: World) -> None:
    chain = await started(it, 1)
    told = HandOff(Outcome.BLOCKED, blocker=Blocker("me", "the weather", "it is fine"))
    await chain.hand_off(chain.links[0].task_id, told)
    at_most(await hour(it, chain.id, 4), 65)
    events = [event.fact.kind for event in it.ledger.events(0, 5000)]
    assert events.count(FactKind.CHAIN_WAITS) == 1, "why it waits is told once"
    assert events.count(FactKind.CHAIN_SWEPT) == 1


async def test_a_chain_whose_task_was_stopped_by_a_person(it: World) -> None:
    chain = await started(it, 2)
    await it.desk.cancel(OPERATOR, chain.links[0].task_id, reason="enough")
    at_most(await hour(it, chain.id), 3)
    assert "to go on: tenuto chain advance" in chain.reason


async def test_a_chain_whose_task_is_at_work(it: World) -> None:
    chain = await started(it, 2)
    await it.settle(chain.links[0].task_id)
    at_most(await hour(it, chain.id), 8)  # every 10 min, should nobody ring
    await chain.hand_off(chain.links[0].task_id, DONE)
    at_most(await hour(it, chain.id), 8)
    assert chain.links[-1].unit == "u2"


async def test_a_step_that_fails_does_not_count(it: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = await started(it, 2)
    await ended(it, chain.links[0].task_id)
    step = chain.chains.step

    async def failing(*_args: object, **_more: object) -> object:
        raise LookupError("a fault of our own")

    monkeypatch.setattr(chain.chains, "step", failing)
    at_most(await hour(it, chain.id, 4), 35)  # every 30 s
    assert len(chain.links) == 1
    monkeypatch.setattr(chain.chains, "step", step)
    it.clock.move(timedelta(seconds=31))
    await chain.chains.tend()
    assert chain.links[-1].unit == "u2", "the end that was not taken up is still worth a step"
