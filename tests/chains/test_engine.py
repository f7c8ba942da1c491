"""A chain over a queue file, a real registry and a played agent: one successor, whoever asks, and whoever dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import NAME, OPERATOR, World, world

from tenuto.core.chain import Checks
from tenuto.engine.calling import Caller
from tenuto.engine.chains import Chains, HandOff, Start
from tenuto.model.chain import Blocker, Caps, Link, Outcome, SourcePlace
from tenuto.model.command import CommandKind
from tenuto.model.faults import Conflict, Mistake, Refused
from tenuto.model.ids import ChainId, TaskId
from tenuto.model.lifecycle import ChainState, CommandState, TaskState
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent

pytestmark = pytest.mark.anyio
DONE = HandOff(Outcome.DONE, "commit abc")


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Fuse:
    """Kills at the n-th passing of a point."""

    at: str = ""
    left: int = 0

    def burn(self, point: str) -> None:
        if point == self.at:
            self.left -= 1
            if self.left == 0:
                raise Killed(point)


@dataclass
class Chained:
    """A chain in a world."""

    world: World
    queue: Path
    id: ChainId

    @property
    def chains(self) -> Chains:
        return self.world.desk.chains

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(reversed(self.chains.links(self.id)))

    @property
    def state(self) -> ChainState:
        chain = self.world.ledger.chain(self.id)
        assert chain is not None
        return chain.state

    @property
    def reason(self) -> str:
        chain = self.world.ledger.chain(self.id)
        assert chain is not None
        return chain.reason or ""

    def units(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in json.loads(self.queue.read_text())["units"]}

    def edit(self, unit: str, **changed: Any) -> None:
        document = json.loads(self.queue.read_text())
        for row in document["units"]:
            if row["id"] == unit:
                row |= changed
        self.queue.write_text(json.dumps(document))

    async def hand_off(self, task: TaskId, word: HandOff = DONE, caller: Caller = OPERATOR) -> dict[str, Any]:
        return dict((await self.chains.hand_off(caller, task, word)).result)


async def started(it: World, count: int = 3, **more: Any) -> Chained:
    queue = it.folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": f"u{n}", "mine": n} for n in range(1, count + 1)]}))
    asked = Start(
        goal="Mend everything",
        repo="https://github.com/Some/Where.git",
        selector="all",
        source=SourcePlace("queue", str(queue)),
        cwd=str(it.folder),
        caps=Caps(units=100),
        authorization=(("merge", False), ("push", True)),
        agent=Agent(NAME, ("agent", "--go"), resumable=True),
    )
    done = await it.desk.chains.start(
        OPERATOR, replace(asked, **more), f"key-{count}-{sorted(more)}-{more.get('caps')}"
    )
    return Chained(it, queue, ChainId(str(done.result["chain"])))


@pytest.fixture
def fuse() -> Fuse:
    return Fuse()


@pytest.fixture
async def it(tmp_path: Path, fuse: Fuse) -> AsyncIterator[World]:
    async with world(tmp_path, fuse=fuse) as made:
        yield made


async def test_a_chain_works_its_units_one_at_a_time_and_ends_when_all_are_done(it: World) -> None:
    chain = await started(it)
    for number in (1, 2, 3):
        (*_, last) = chain.links
        assert (last.unit, last.position, len(chain.links)) == (f"u{number}", number, number)
        told = await chain.hand_off(last.task_id)
        assert told["recorded"] is True
        assert told["next_unit"] == (f"u{number + 1}" if number < 3 else None)
    assert chain.state is ChainState.COMPLETE
    assert {name: row["state"] for name, row in chain.units().items()} == dict.fromkeys(("u1", "u2", "u3"), "done")
    assert chain.units()["u2"]["mine"] == 2, "what is not ours is carried along"
    assert not it.ledger.commands(10, only_open=True)
    records = [one for one in it.ledger.commands(10) if one.kind is CommandKind.RECORD]
    assert [one.state for one in records] == [CommandState.ACKNOWLEDGED] * 3
    assert [link.predecessor for link in chain.links] == [None, *(link.task_id for link in chain.links[:2])]


async def test_the_same_key_is_answered_as_before_however_its_repository_is_spelled(it: World) -> None:
    first = await started(it, 2)
    again = await started(it, 2)
    assert (first.id, len(again.links)) == (again.id, 1), "a URL is kept as its canonical name"


async def test_a_task_is_handed_one_unit_and_the_authorization_never_changes(it: World) -> None:
    chain = await started(it)
    told = []
    for _ in range(3):
        task = it.desk.task(chain.links[-1].task_id)
        text = it.desk.text(task.objective) or ""
        told.append(next(line for line in text.splitlines() if line.startswith("Authorised")))
        assert f"only this one: {chain.links[-1].unit}" in text
        await chain.hand_off(task.id)
    assert told == ["Authorised: merge=no, push=yes"] * 3


async def test_br_both_callers_at_once_and_retries_after_days_make_one_successor(it: World) -> None:
    chain = await started(it)
    first = chain.links[0].task_id
    both = await asyncio.gather(
        *(chain.hand_off(first) for _ in range(5)), *(chain.chains.tend() for _ in range(5)), return_exceptions=True
    )
    assert [one for one in both if isinstance(one, BaseException)] == []
    assert len(chain.links) == 2
    it.clock.move(timedelta(days=9))
    again = await chain.hand_off(first)
    assert again["successor"] == chain.links[1].task_id
    assert len(chain.links) == 2
    with pytest.raises(Conflict):
        await chain.hand_off(first, HandOff(Outcome.BLOCKED, blocker=Blocker("me", "it", "then")))


async def test_the_supervisor_hands_over_when_the_task_has_ended(it: World) -> None:
    chain = await started(it)
    await it.desk.complete(OPERATOR, chain.links[0].task_id, "commit 1")
    await chain.chains.tend()
    assert [link.unit for link in chain.links] == ["u1", "u2"]
    assert chain.units()["u1"]["evidence"] == "commit 1"


@pytest.mark.parametrize("point", ["record.armed", "record.written", "advance.before_commit", "advance.committed"])
async def test_whoever_dies_anywhere_leaves_one_successor(it: World, fuse: Fuse, point: str) -> None:
    chain = await started(it)
    first = chain.links[0].task_id
    fuse.at, fuse.left = point, 1
    with pytest.raises(Killed):
        await chain.hand_off(first)
    await chain.chains.tend()
    assert [link.unit for link in chain.links] == ["u1", "u2"]
    assert chain.units()["u1"]["attempts"] == 1
    assert not [one for one in it.ledger.commands(10, only_open=True) if one.kind is CommandKind.RECORD]
    assert (await chain.hand_off(first))["successor"] == chain.links[1].task_id
    assert it.ledger.chain(chain.id).processed == 1  # type: ignore[union-attr]


async def test_a_failed_unit_is_tried_again_up_to_its_cap_and_then_blocked(it: World) -> None:
    chain = await started(it, 2, attempt_cap=2)
    for attempt in (1, 2):
        assert (chain.links[-1].unit, chain.links[-1].attempt) == ("u1", attempt)
        await it.desk.fail(OPERATOR, chain.links[-1].task_id, "it broke")
        await chain.chains.tend()
    assert chain.units()["u1"]["state"] == "blocked"
    assert chain.links[-1].unit == "u2"
    await chain.hand_off(chain.links[-1].task_id)
    assert chain.state is ChainState.OPEN, "blocked is never complete"
    assert "blocked" in chain.reason


async def test_a_blocked_chain_wakes_when_its_blocker_clears(it: World) -> None:
    chain = await started(it, 1)
    task = chain.links[0].task_id
    with pytest.raises(Refused):
        await chain.hand_off(task, HandOff(Outcome.BLOCKED))
    await chain.hand_off(task, HandOff(Outcome.BLOCKED, blocker=Blocker("me", "the key", "it is there")))
    assert it.desk.task(task).state is TaskState.FAILED
    assert (chain.state, len(chain.links)) == (ChainState.OPEN, 1)
    chain.edit("u1", state="eligible")
    it.clock.move(timedelta(seconds=16))
    await chain.chains.tend()
    assert [(link.unit, link.attempt) for link in chain.links] == [("u1", 1), ("u1", 2)]


async def test_all_in_flight_is_never_complete(it: World) -> None:
    chain = await started(it, 2)
    chain.edit("u2", state="in_flight")
    await chain.hand_off(chain.links[0].task_id)
    assert chain.state is ChainState.OPEN
    assert "not complete" in chain.reason


async def test_two_chains_never_have_one_unit(it: World) -> None:
    one = await started(it, 2)
    queue = one.queue
    done = await it.desk.chains.start(
        OPERATOR,
        Start("Again", "a.b/c/d", "all", SourcePlace("queue", f"{queue.parent}/./queue.json"), str(it.folder),
              Caps(tasks=5), agent=Agent(NAME, ("agent",), resumable=True)),
        "another",
    )  # fmt: skip
    other = Chained(it, queue, ChainId(str(done.result["chain"])))
    assert ([link.unit for link in one.links], [link.unit for link in other.links]) == (["u1"], ["u2"])


async def test_an_edit_by_somebody_else_is_noticed_and_not_undone(it: World) -> None:
    chain = await started(it)
    chain.edit("u1", state="done", evidence="by hand")
    told = await chain.hand_off(chain.links[0].task_id)
    assert told["next_unit"] == "u2"
    assert chain.units()["u1"]["evidence"] == "by hand"
    (record,) = [one for one in it.ledger.commands(10) if one.kind is CommandKind.RECORD]
    assert record.state is CommandState.FAILED


async def test_a_source_out_of_order_keeps_the_record_until_it_is_back(it: World) -> None:
    chain = await started(it)
    whole = chain.queue.read_text()
    chain.queue.write_text("{")
    told = await chain.hand_off(chain.links[0].task_id)
    assert (told["recorded"], told["successor"]) == (False, None)
    assert "out of order" in chain.reason
    chain.queue.write_text(whole)
    it.clock.move(timedelta(seconds=6))
    await chain.chains.tend()
    assert [link.unit for link in chain.links] == ["u1", "u2"]


async def test_a_person_who_stops_the_task_stops_the_chain_until_it_is_asked_on(it: World) -> None:
    chain = await started(it)
    await it.desk.cancel(OPERATOR, chain.links[0].task_id)
    await chain.chains.tend()
    await chain.chains.tend()
    assert len(chain.links) == 1
    assert "chain advance" in chain.reason
    assert chain.units()["u1"].get("state") in (None, "eligible")
    assert "claimed_by" not in chain.units()["u1"]
    await chain.chains.advance(OPERATOR, chain.id)
    assert chain.reason.startswith("the source did not advance"), "the same cursor makes no second task"
    chain.edit("u1", title="again")
    await chain.chains.advance(OPERATOR, chain.id)
    assert [link.unit for link in chain.links] == ["u1", "u1"]


async def test_caps_end_a_chain_and_one_without_a_cap_is_refused(it: World) -> None:
    chain = await started(it, caps=Caps(tasks=1))
    await chain.hand_off(chain.links[0].task_id)
    assert chain.state is ChainState.CAPPED
    with pytest.raises(Mistake) as mistake:
        await started(it, caps=Caps())
    assert mistake.value.field == "max_units"


async def test_a_stopped_chain_begins_nothing_and_still_records(it: World) -> None:
    chain = await started(it)
    await chain.chains.stop(OPERATOR, chain.id, "enough")
    await chain.hand_off(chain.links[0].task_id)
    assert (chain.state, len(chain.links)) == (ChainState.STOPPED, 1)
    assert chain.units()["u1"]["state"] == "done"


async def test_an_agent_speaks_for_its_own_unit_and_red_checks_refuse(it: World) -> None:
    chain = await started(it)
    task = chain.links[0].task_id
    await it.settle(task)
    mine = Caller(Role.AGENT, "agent", task, it.desk.task(task).lease_number)
    with pytest.raises(Refused):
        await chain.hand_off(task, replace(DONE, checks=Checks.RED), mine)
    told = await chain.hand_off(task, replace(DONE, only_record=True), mine)
    assert (told["recorded"], told["successor"]) == (True, None)
    told = await chain.hand_off(task, DONE, mine)
    assert told["successor"] == chain.links[1].task_id
    assert it.desk.task(task).state is TaskState.COMPLETED, "the hand-off is the claim of completion"
    successor = it.desk.task(chain.links[1].task_id)
    assert successor.slot_from == task, "the slot goes to the successor"


async def test_a_chain_whose_task_is_at_work_is_left_alone(it: World) -> None:
    chain = await started(it)
    task = chain.links[0].task_id
    for word in (None, replace(DONE, only_record=True)):
        if word is not None:
            await chain.hand_off(task, word)
        it.clock.move(timedelta(hours=1))
        soonest = await chain.chains.tend()
        assert soonest is not None
        assert soonest > it.clock.now(), "nothing is due while a task works"
        assert len(chain.links) == 1


async def test_status_and_sweep_change_nothing(it: World) -> None:
    chain = await started(it)
    await chain.hand_off(chain.links[0].task_id)
    chain.edit("u1", state="eligible")
    before = (chain.queue.read_bytes(), it.ledger.last_event())
    told = {one.unit: str(one.what) for one in await chain.chains.sweep(chain.id)}
    assert told == {"u1": "stale_open_but_shipped", "u2": "in_flight", "u3": "pending"}
    await chain.chains.foresee(chain.id)
    assert (chain.queue.read_bytes(), it.ledger.last_event()) == before
