"""Importing as an operator meets it: shown first, done when asked, once, and nothing of it begins by itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import NOW, OPERATOR, World, world

from tenuto.engine.desk import Caller
from tenuto.model.faults import Mistake, NotAllowed
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import LeaseState
from tenuto.model.snapshot import Role
from tenuto.surfaces import verbs

SESSION = "s_" + "1" * 24


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def item(it: World, origin: str, **more: Any) -> dict[str, Any]:
    return {
        "origin": origin, "objective": f"do {origin}", "cwd": str(it.folder), "state": "RUNNING",
        "facts": {"state": "running", "workers": "1"}, "seen_at": "2026-02-28T00:00:00+00:00",
    } | more  # fmt: skip


async def take(it: World, *items: dict[str, Any], caller: Caller = OPERATOR, **more: Any) -> Any:
    params = {"source": "cws abc", "items": list(items), "agent": {"adapter": "played", "argv": ["agent"]}} | more
    told = await verbs.call(it.desk, caller, "import", params, None)
    return told["result"]


async def test_what_is_imported_is_paused_manual_and_bound_to_what_worked_on_it(it: World) -> None:
    told = await take(it, item(it, "t1", place="https://chat.example/c/1", session=SESSION, title="First"))
    assert told["made"] == 1
    task_id = TaskId(told["items"][0]["task"])
    task = it.ledger.task(task_id)
    assert task is not None
    assert (task.title, task.auto_resume, task.paused_at, task.attempts) == ("First", "manual", NOW, 0)
    assert [binding.subject for binding in task.tools] == [f"local/{SESSION}"]
    (place,) = it.ledger.conversations(task_id)
    assert (place.identity, place.state, place.lease_number) == ("https://chat.example/c/1", LeaseState.CANDIDATE, None)
    (seen,) = it.ledger.sightings(task_id, 10)
    assert (seen.rank, dict(seen.facts)["state"]) == (5, "running")
    assert seen.seen_at < NOW
    rest = await it.settle(task_id)
    assert rest is not None
    assert rest.because is not None
    assert rest.because.rung == "paused"
    assert not it.executor.turns, "nothing begins by itself"
    assert not it.desk.commands(task_id=task_id)


async def test_the_first_turn_is_one_that_the_operator_asks_for(it: World) -> None:
    task_id = TaskId((await take(it, item(it, "t1")))["items"][0]["task"])
    await it.desk.resume(OPERATOR, task_id)
    await it.settle(task_id)
    assert not it.executor.turns, "it is manual still"
    await verbs.call(it.desk, OPERATOR, "task.continue", {"task": task_id}, None)
    await it.settle(task_id)
    assert len(it.executor.turns) == 1


async def test_the_same_source_is_imported_once_whatever_became_of_it(it: World) -> None:
    first = await take(it, item(it, "t1"), item(it, "t2"))
    again = await take(it, item(it, "t1", objective="said otherwise by now"), item(it, "t3"))
    assert [row["why"] for row in again["items"]] == ["it was imported before", None]
    assert again["items"][0]["task"] == first["items"][0]["task"]
    assert again["made"] == 1
    nothing = await take(it, item(it, "t1"), item(it, "t2"), item(it, "t3"))
    assert (nothing["made"], nothing["run"]) == (0, None)
    twin = await take(it, item(it, "t9", objective="do t2"), source="another")
    assert twin["made"] == 0
    assert "this objective" in twin["items"][0]["why"]


async def test_one_that_cannot_be_made_is_said_and_holds_up_no_other(it: World) -> None:
    told = await take(
        it,
        item(it, "good"),
        item(it, "odd", facts={"nonsense": "1"}),
        item(it, "empty", objective="  \n"),
    )
    assert {row["origin"]: row["task"] is not None for row in told["items"]} == {
        "good": True, "odd": False, "empty": False,
    }  # fmt: skip
    it.executor.objecting = ("cwd", "there is no such directory")
    refused = await take(it, item(it, "t5"))
    assert "no such directory" in refused["items"][0]["why"]


async def test_who_may_and_how_much(it: World) -> None:
    with pytest.raises(NotAllowed):
        await take(it, item(it, "t1"), caller=Caller(Role.COORDINATOR, "c", TaskId("t-x"), 1))
    with pytest.raises(Mistake, match="named twice"):
        await take(it, item(it, "t1"), item(it, "t1"))
    with pytest.raises(Mistake):
        await take(it, *[item(it, f"t{number}") for number in range(201)])
    with pytest.raises(Mistake, match="offset"):
        await take(it, item(it, "t1", seen_at="2026-02-28T00:00:00"))
    assert json.dumps(await take(it, item(it, "t1")))
