"""Phases and worktrees as callers meet them: over HTTP, on the command line, and as an agent's tool."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import Api
from tests.support.gits import Remote, git, remote
from tests.support.world import NAME, OPERATOR, World, world

from tenuto.engine.calling import Caller
from tenuto.engine.chaining.hosts import Hosts
from tenuto.model.faults import NotAllowed
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role
from tenuto.surfaces import verbs
from tenuto.surfaces.mcp.tools import TOOLS
from tenuto.transports.workspace.hand import Hand
from tenuto.transports.workspace.history import GitHistory
from tenuto.transports.workspace.trees import GitWorktrees

pytestmark = [pytest.mark.anyio, pytest.mark.only_on("linux", "darwin")]


@pytest.fixture
def at(tmp_path: Path) -> Remote:
    return remote(tmp_path)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    hand = Hand()
    history = GitHistory(hand)
    hosts = Hosts(trees=GitWorktrees(tmp_path / "trees", hand, history), history=history)
    async with world(tmp_path, hosts=lambda _clock: hosts) as made:
        yield made


def wanted(it: World, at: Remote) -> dict[str, Any]:
    queue = it.folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": "u1"}, {"id": "u2"}]}))
    return {
        "goal": "Mend it",
        "repo": "a.b/c/d",
        "source": {"kind": "queue", "location": str(queue)},
        "cwd": str(at.clone),
        "agent": {"adapter": NAME, "argv": ["agent"], "resumable": True},
        "max_units": 9,
        "phases": True,
    }


async def test_phases_and_worktrees_over_http(it: World, at: Remote) -> None:
    api = Api(it)
    async with api.client:
        made = await api.post("/chains", wanted(it, at), key="k")
        assert made.status_code == 201, made.text
        chain, task = made.json()["result"]["chain"], made.json()["result"]["task"]
        await it.desk.chains.tend()
        (tree,) = (await api.get(f"/worktrees?chain={chain}")).json()["worktrees"]
        assert (tree["state"], tree["base"], tree["task"]) == ("ready", "origin/main", task)
        busy = await api.post(f"/worktrees/{tree['id']}/remove", {})
        assert busy.status_code == 423, "its task works in it"
        refused = await api.post(f"/tasks/{task}/chain/handoff", {"outcome": "done", "evidence": "abc"})
        assert (refused.status_code, "phase open" in refused.text) == (423, True)
        bad = await api.post(f"/tasks/{task}/chain/pull", {"pull": 0})
        assert bad.status_code == 422
        opened = await api.post(f"/tasks/{task}/chain/pull", {"pull": 7})
        assert opened.json()["result"]["pull"] == 7, opened.text
        told = (await api.get(f"/chains/{chain}/phases")).json()
        assert [(one["unit"], one["pull"], one["state"]) for one in told["phases"]] == [("u1", 7, "open")]
        assert told["base"] == "origin/main"
        done = await api.post(f"/tasks/{task}/chain/handoff", {"outcome": "done", "evidence": "abc"})
        assert done.json()["result"]["successor"] is None
        status = (await api.get(f"/chains/{chain}")).json()
        assert (status["counts"], status["chain"]["phases"]) == ({"in_flight": 1, "pending": 1}, True)
        text = it.desk.text(it.desk.task(TaskId(task)).objective) or ""
        assert f"on branch {tree['branch']}, begun at origin/main" in text
        git(Path(tree["path"]), "status")


async def test_an_agent_records_the_pull_request_of_its_own_unit_only(it: World, at: Remote) -> None:
    made = await verbs.call(it.desk, OPERATOR, "chain.start", wanted(it, at), "k")
    task = TaskId(made["result"]["task"])
    await it.desk.chains.tend()
    await it.settle(task)
    mine = Caller(Role.AGENT, "agent", task, it.desk.task(task).lease_number)
    tool = TOOLS["phase_open"]
    asked, key = tool.asked({"pull": 3, "request_id": "a"}, task)
    told = tool.told(await verbs.call(it.desk, mine, tool.verb, asked, key))
    assert told["result"]["pull"] == 3
    other = await it.create()
    with pytest.raises(NotAllowed):
        await verbs.call(it.desk, mine, "phase.open", {"task": other, "pull": 4}, "b")
    for verb in ("worktree.list", "worktree.remove", "phase.status"):
        with pytest.raises(NotAllowed):
            await verbs.call(it.desk, mine, verb, {"chain": made["result"]["chain"]}, "c")
