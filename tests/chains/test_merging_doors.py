"""Merging as callers meet it: over HTTP, as a reviewer's tool, and on a real remote with real checkouts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import Api
from tests.support.merging import MergingChain, Outside, commit, merging_chain
from tests.support.world import NAME, OPERATOR, Played, SetClock, World, world
from tests.transports.test_bare_forge import Place

from tenuto.core import authority
from tenuto.engine.calling import Caller
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chains import HandOff
from tenuto.model.chain import Outcome
from tenuto.model.command import CommandKind
from tenuto.model.faults import NotAllowed
from tenuto.model.forge import ForgePlace, MergeMethod
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import ChainState, CommandState
from tenuto.model.merging import Verdict
from tenuto.model.snapshot import Role
from tenuto.ports import Forge
from tenuto.surfaces import verbs
from tenuto.surfaces.mcp.tools import TOOLS
from tenuto.transports.forge.bare import BareForge
from tenuto.transports.forge.checkouts import Checkouts
from tenuto.transports.forge.git import remote

pytestmark = pytest.mark.anyio


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


@pytest.fixture
async def it(tmp_path: Path, outside: Outside) -> AsyncIterator[World]:
    async with world(tmp_path, hosts=outside.hosts) as made:
        yield made


@pytest.fixture
async def api(it: World) -> AsyncIterator[Api]:
    made = Api(it)
    async with made.client:
        yield made


def wanted(it: World, **more: Any) -> dict[str, Any]:
    queue = it.folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": "u1"}, {"id": "u2"}]}))
    merges = {
        "forge": "github", "location": "github.com/some/where", "gate": ["./check"],
        "reviewer": {"adapter": NAME, "argv": ["reviewer"], "resumable": True},
    }  # fmt: skip
    return {
        "goal": "Mend it", "repo": "a.b/c/d", "source": {"kind": "queue", "location": str(queue)},
        "cwd": str(it.folder), "agent": {"adapter": NAME, "argv": ["agent"], "resumable": True},
        "authorization": {"merge": True}, "max_units": 9, "merging": merges,
    } | more  # fmt: skip


async def test_merging_over_http(api: Api, it: World, outside: Outside) -> None:
    bad = await api.post("/chains", wanted(it, authorization={"merge": False}))
    assert (bad.status_code, bad.json()["error"]["field"]) == (422, "authorization")
    made = (await api.post("/chains", wanted(it))).json()["result"]
    chain, task = MergingChain(it, outside, made["chain"], it.folder / "queue.json"), made["task"]
    told = (await api.get(f"/chains/{chain.id}/gates")).json()
    assert (told["proposal"], told["mandate"]["gate"]) == (None, ["./check"])
    outside.forge.propose(chain.id, 1, draft=True)
    word = {"outcome": "done", "evidence": "pull 1", "pull": 1}
    refused = await api.post(f"/tasks/{task}/chain/handoff", word)
    assert (refused.status_code, refused.json()["error"]["field"]) == (423, "pull")
    outside.forge.change(1, draft=False)
    handed = await api.post(f"/tasks/{task}/chain/handoff", word)
    assert (handed.json()["result"]["pull"], handed.json()["result"]["successor"]) == (1, None)
    told = (await api.get(f"/chains/{chain.id}/gates")).json()
    assert [one["gate"] for one in told["held"]] == ["gate", "review"]
    held = await api.post(f"/chains/{chain.id}/merge")
    assert held.status_code == 423
    await chain.gated()
    judged = {"verdict": "pass", "head": commit(77)}
    own = await api.post(f"/tasks/{chain.review.task_id}/review", judged)
    assert own.status_code == 403, "not even the operator gives a verdict"
    off = await api.post("/self-advancing", {"on": False})
    assert off.json()["result"] == {"on": False, "changed": True}
    await chain.said()
    told = (await api.get(f"/chains/{chain.id}/gates")).json()
    assert [one["gate"] for one in told["held"]] == ["switch"]
    assert told["reviews"][0]["verdict"] == "pass"
    await api.post("/self-advancing", {"on": True})
    await chain.later(6)
    told = (await api.get(f"/chains/{chain.id}/gates")).json()
    assert (told["proposal"]["state"], told["proposal"]["merged_as"]) == ("merged", commit(1001))
    plain = await api.get("/chains/h-00000000000000000000000000/gates")
    assert plain.status_code == 404


async def test_a_reviewer_says_so_by_its_tool_and_others_have_nothing_to_say(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    worker = await chain.hand_in()
    await chain.gated()
    reviewer = await chain.reviewer()
    tool, task = TOOLS["review_verdict"], chain.review.task_id
    asked, key = tool.asked({"verdict": "pass", "head": commit(77), "request_id": "a"}, task)
    lease = it.desk.task(worker).lease_number
    for stranger in (Caller(Role.AGENT, "worker", worker, lease), Caller(Role.EXECUTOR, "host"), OPERATOR):
        with pytest.raises(NotAllowed):
            await verbs.call(it.desk, stranger, tool.verb, asked, key)
    with pytest.raises(NotAllowed):
        await verbs.call(it.desk, replace(reviewer, task_id=TaskId(worker)), tool.verb, asked, key)
    told = tool.told(await verbs.call(it.desk, reviewer, tool.verb, asked, key))
    assert told["result"] == {"task": task, "verdict": "pass", "head": commit(77)}
    await chain.world.desk.chains.tend()
    assert len(outside.forge.done) == 1


class RealForges:
    """Remotes without a host, for real."""

    def __init__(self, folder: Path, clock: SetClock) -> None:
        self.folder, self.clock = folder, clock

    def open(self, place: ForgePlace) -> Forge:
        return BareForge(remote(place.location), self.folder / "store.git", self.clock.now, place.base)


@pytest.mark.parametrize("method", [MergeMethod.MERGE, MergeMethod.SQUASH])
async def test_a_chain_merges_over_a_bare_remote_each_unit_once(tmp_path: Path, method: MergeMethod) -> None:
    place = Place(tmp_path / "place")
    place.begin()
    outside = Outside(tmp_path)

    def hosts(clock: SetClock) -> Hosts:
        outside.gates.append(Played(clock, name="host"))
        checkouts = Checkouts(tmp_path / "checkouts")
        return Hosts(RealForges(tmp_path, clock), checkouts, {"host": outside.gate})

    async with world(tmp_path / "world", hosts=hosts) as it:
        chain = await merging_chain(
            it, outside, 3, forge=ForgePlace("git", str(place.remote)), cwd=str(place.work), method=method
        )
        for unit in ("u1", "u2", "u3"):
            link = chain.links[-1]
            branch = f"{authority.namespace(chain.id)}{unit}"
            place.git("fetch", "--quiet", "origin")
            place.git("checkout", "--quiet", "-B", branch, "origin/main")
            head = place.commit(f"{unit}.txt", unit, f"Do {unit}\n\n{authority.chain_marker(chain.id)}")
            place.git("push", "--quiet", "origin", branch)
            word = HandOff(Outcome.DONE, f"branch {branch}", branch=branch)
            await it.desk.chains.hand_off(OPERATOR, link.task_id, word)
            order = outside.gate.orders[chain.proposal.gate_command or chain.proposal.id]  # type: ignore[index]
            assert (Path(order.cwd) / f"{unit}.txt").read_text() == unit, "the gate stands at the commit"  # type: ignore[union-attr]
            await chain.gated()
            assert chain.review.head == head
            await chain.said(Verdict.PASS)
        assert chain.chain.state is ChainState.COMPLETE
        assert [line.partition(" ")[0] for line in place.history()] == ["u3", "u2", "u1", "first"]
        merges = [one for one in it.ledger.commands(100) if one.kind is CommandKind.MERGE]
        assert [one.state for one in merges] == [CommandState.ACKNOWLEDGED] * 3
        message = place.git("log", "-1", "--format=%B", "main", at=place.remote)
        assert merges[0].marker in message
        assert place.git("show", "main:u2.txt", at=place.remote) == "u2"
