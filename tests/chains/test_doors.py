"""Chains as callers meet them: over HTTP, and as an agent's tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import Api
from tests.support.world import NAME, OPERATOR, World, world

from tenuto.engine.calling import Caller
from tenuto.model.faults import NotAllowed
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role
from tenuto.surfaces import verbs
from tenuto.surfaces.mcp.tools import TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
async def api(it: World) -> AsyncIterator[Api]:
    made = Api(it)
    async with made.client:
        yield made


def wanted(it: World, **more: Any) -> dict[str, Any]:
    queue = it.folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": f"u{number}"} for number in range(1, 4)]}))
    return {
        "goal": "Mend it",
        "repo": "a.b/c/d",
        "source": {"kind": "queue", "location": str(queue)},
        "cwd": str(it.folder),
        "agent": {"adapter": NAME, "argv": ["agent"], "resumable": True},
        "authorization": {"merge": False},
        "max_units": 9,
    } | more


async def test_a_chain_over_http(api: Api, it: World) -> None:
    bad = await api.post("/chains", wanted(it, max_units=None))
    assert (bad.status_code, bad.json()["error"]["field"]) == (422, "max_units")
    made = await api.post("/chains", wanted(it), key="k")
    again = await api.post("/chains", wanted(it), key="k")
    assert (made.status_code, again.status_code) == (201, 200), made.text
    chain, task = made.json()["result"]["chain"], made.json()["result"]["task"]
    assert (await api.get("/chains")).json()["chains"][0]["id"] == chain
    told = (await api.get(f"/chains/{chain}")).json()
    assert (told["links"][0]["task"], told["next"]["mine"]) == (task, "u1")
    done = await api.post(f"/tasks/{task}/chain/handoff", {"outcome": "done", "evidence": "abc"})
    assert done.json()["result"]["next_unit"] == "u2", done.text
    refused = await api.post(f"/tasks/{done.json()['result']['successor']}/chain/handoff", {"outcome": "done"})
    assert refused.status_code == 423
    swept = (await api.get(f"/chains/{chain}/sweep")).json()
    assert swept["counts"] == {"done": 1, "in_flight": 1, "pending": 1}
    assert (await api.get(f"/chains/{chain}/next")).json()["mine"] == "u2"
    assert (await api.post(f"/chains/{chain}/advance")).json()["result"]["task"] == done.json()["result"]["successor"]
    stopped = await api.post(f"/chains/{chain}/stop", {"reason": "enough"})
    assert stopped.json()["result"]["state"] == "stopped"


async def test_an_agent_has_the_tools_of_its_own_unit_only(it: World) -> None:
    made = await verbs.call(it.desk, OPERATOR, "chain.start", wanted(it), "k")
    task = TaskId(made["result"]["task"])
    await it.settle(task)
    mine = Caller(Role.AGENT, "agent", task, it.desk.task(task).lease_number)
    told: dict[str, Any] = {}
    for name, arguments in (
        ("chain_next", {}),
        ("chain_record", {"outcome": "done", "evidence": "abc", "request_id": "a"}),
        ("chain_handoff", {"outcome": "done", "evidence": "abc", "request_id": "b"}),
    ):
        tool = TOOLS[name]
        asked, key = tool.asked(arguments, task)
        told = tool.told(await verbs.call(it.desk, mine, tool.verb, asked, key))
        assert len(json.dumps(told)) < 4000
    assert told["result"]["next_unit"] == "u2"
    other = TaskId(told["result"]["successor"])
    with pytest.raises(NotAllowed):
        await verbs.call(it.desk, mine, "chain.handoff", {"task": other, "outcome": "done", "evidence": "x"}, "c")
