"""Spawning over the API: every outcome, what each of them made, and what becomes of the tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import Api
from tests.support.world import NAME, OPERATOR, World, world

from tenuto.model.decision import Rung
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import TaskState
from tenuto.model.policy import POLICY
from tenuto.model.work import Acceptance, AcceptanceKind, WaitKind
from tenuto.surfaces.http.auth import digest_of

pytestmark = pytest.mark.anyio
FEW = replace(POLICY, pending_tasks=3, spawn_rate=5)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, slots=2, defaults=FEW) as made:
        yield made


@pytest.fixture
async def api(it: World) -> AsyncIterator[Api]:
    made = Api(it)
    async with made.client:
        yield made


def wanted(it: World, prompt: str = "Sweep the attic", **more: Any) -> dict[str, Any]:
    agent = {"adapter": NAME, "argv": ["agent", "--go"], "resumable": True}
    return {"prompt": prompt, "cwd": str(it.folder), "agent": agent} | more


def made(it: World) -> int:
    return len(it.desk.tasks())


async def spawned(api: Api, it: World, prompt: str, **more: Any) -> TaskId:
    answer = await api.post("/tasks", wanted(it, prompt, **more))
    assert answer.status_code == 201, answer.text
    return TaskId(answer.json()["result"]["task"])


async def test_br_020_the_same_key_makes_one_task_and_another_body_conflicts(api: Api, it: World) -> None:
    first = await api.post("/tasks", wanted(it), key="k")
    again = await api.post("/tasks", wanted(it), key="k")
    other = await api.post("/tasks", wanted(it, "Sweep the cellar"), key="k")
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.headers["idempotent-replay"] == "true"
    assert first.json()["result"] == again.json()["result"]
    assert other.json()["error"]["code"] == "conflict"
    bare = await api.client.post("/api/v1/tasks", json=wanted(it), headers=api.headers())
    assert (bare.status_code, bare.json()["error"]["field"]) == (422, "Idempotency-Key")
    assert made(it) == 1


async def test_a_key_is_known_for_a_day(api: Api, it: World) -> None:
    first = await api.post("/tasks", wanted(it), key="k")
    it.clock.move(timedelta(hours=23, minutes=59))
    assert (await api.post("/tasks", wanted(it), key="k")).status_code == 200
    it.clock.move(timedelta(minutes=2))
    await it.desk.cancel(OPERATOR, first.json()["result"]["task"])
    later = await api.post("/tasks", wanted(it), key="k")
    assert later.status_code == 201
    assert later.json()["result"]["task"] != first.json()["result"]["task"]


async def test_br_017_a_hundred_retries_at_once_make_one(api: Api, it: World) -> None:
    answers = await asyncio.gather(*(api.post("/tasks", wanted(it), key="k") for _ in range(40)))
    assert sorted({one.status_code for one in answers}) == [200, 201]
    assert len({one.json()["result"]["task"] for one in answers}) == 1
    assert made(it) == 1


async def test_br_021_the_same_work_is_named_and_not_begun_again(api: Api, it: World) -> None:
    first = await spawned(api, it, "Sweep the attic")
    same = await api.post("/tasks", wanted(it))
    said = same.json()["error"]
    assert (same.status_code, said["code"], said["see"]) == (409, "duplicate", f"tenuto show {first}")
    assert first in said["message"]
    assert made(it) == 1
    (it.folder / "elsewhere").mkdir()
    assert (await api.post("/tasks", wanted(it, cwd=str(it.folder / "elsewhere")))).status_code == 201
    forced = await api.post("/tasks", wanted(it, force="the first one is on the wrong branch"))
    assert forced.status_code == 201
    facts = [one.fact.data for one in it.desk.events(0, 1000) if one.fact.kind == "task.spawned"]
    assert facts[-1]["forced"] == "the first one is on the wrong branch"
    for task in it.desk.tasks():
        await it.desk.cancel(OPERATOR, task.id)
    assert (await api.post("/tasks", wanted(it))).status_code == 201  # nothing of it is under way any more


async def test_br_018_two_at_once_under_two_keys_begin_the_same_work_once(api: Api, it: World) -> None:
    answers = await asyncio.gather(*(api.post("/tasks", wanted(it)) for _ in range(4)))
    assert sorted(one.status_code for one in answers) == [201, 409, 409, 409]
    assert made(it) == 1


async def test_a_full_line_and_a_hasty_source_make_nothing(api: Api, it: World) -> None:
    for number in range(3):
        await spawned(api, it, f"part {number}")
    full = await api.post("/tasks", wanted(it, "part 3"))
    assert (full.status_code, full.json()["error"]["code"]) == (429, "back_pressure")
    assert int(full.headers["retry-after"]) > 0
    assert made(it) == 3
    for task in it.desk.tasks():
        await it.settle(task.id)
    await spawned(api, it, "part 3")  # two have started, so there is room again
    await spawned(api, it, "part 4")
    hasty = await api.post("/tasks", wanted(it, "part 5"))
    assert (hasty.status_code, hasty.json()["error"]["code"]) == (429, "rate_limited")
    assert hasty.headers["retry-after"] == "600"
    assert made(it) == 5
    it.clock.move(timedelta(seconds=600))
    told = await api.post("/tasks", wanted(it, "part 5"))
    assert told.json()["error"]["code"] == "back_pressure"


async def test_br_022_an_agent_spawns_children_of_its_own_task(api: Api, it: World) -> None:
    parent = await it.started()
    api.token = it.agent_token()
    child = await api.post("/tasks", {"prompt": "Sweep one corner"})
    assert child.status_code == 201, child.text
    row = it.desk.task(TaskId(child.json()["result"]["task"]))
    mother = it.desk.task(parent)
    assert (row.parent, row.run_id, row.agent, row.cwd) == (parent, mother.run_id, mother.agent, mother.cwd)
    assert row.spawned_by == f"agent:{parent}"
    other = await it.create("Other")
    for more in ({"parent": other}, {"run": it.desk.task(other).run_id}, {"agent": wanted(it)["agent"]}):
        refused = await api.post("/tasks", {"prompt": "Something else"} | more)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed"), more
    it.executor.finish(status="complete", evidence="abc")
    await it.settle(parent)
    late = await api.post("/tasks", {"prompt": "Too late"})
    assert late.status_code in (401, 423)
    assert made(it) == 3


async def test_where_it_belongs_and_what_is_missing(api: Api, it: World) -> None:
    parent = await it.create()
    run = it.desk.task(parent).run_id
    child = await spawned(api, it, "a child", parent=parent, agent=None)
    assert it.desk.task(child).run_id == run
    sibling = await spawned(api, it, "a sibling", run=run)
    assert it.desk.task(sibling).parent is None
    elsewhere = await it.create("Other")
    for more, field in (
        ({"agent": None}, "agent"),
        ({"prompt": " "}, "prompt"),
        ({"run": it.desk.task(elsewhere).run_id, "parent": parent}, "run"),
        ({"hand_over": True}, "hand_over"),
        ({"playbook": "../../etc/passwd"}, "playbook"),
        ({"delivery": "merge"}, "delivery"),
        ({"prompt": "x" * (POLICY.objective_bytes + 1)}, "prompt"),
    ):
        wrong = await api.post("/tasks", wanted(it, "another thing") | more)
        assert (wrong.status_code, wrong.json()["error"].get("field")) == (422, field), (more, wrong.text)
    await it.desk.cancel(OPERATOR, run)
    assert (await api.post("/tasks", wanted(it, "more", run=run))).status_code == 423


async def test_how_it_is_done_comes_from_the_playbook_alone(api: Api, it: World) -> None:
    (it.folder / ".git").mkdir()
    place = it.folder / ".tenuto" / "playbooks"
    place.mkdir(parents=True)
    (it.folder / "deep").mkdir()
    (place / "careful.md").write_text(
        f'+++\nprogram = ["agent", "--careful"]\nagent = "{NAME}"\ndelivery = "merge"\ndirectory = "deep"\n'
        'accept-file = "done.txt"\nmax-attempts = 3\nauto-close = true\nunattended = true\n'
        "[policy]\nstall-pause = 4\n+++\nLook first."
    )
    answer = await api.post("/tasks", {"prompt": "Go", "cwd": str(it.folder), "playbook": "careful"})
    assert answer.status_code == 201, answer.text
    row = it.desk.task(TaskId(answer.json()["result"]["task"]))
    assert (row.playbook, row.delivery, row.cwd) == ("project/careful", "merge", str(it.folder / "deep"))
    assert row.agent.argv == ("agent", "--careful")
    assert row.acceptance == Acceptance(AcceptanceKind.FILE, (), "done.txt")
    assert (row.max_attempts, row.auto_close, row.unattended) == (3, True, True)
    assert it.desk.run(row.run_id).policy.stall_pause == 4
    assert it.desk.text(row.objective) == "Look first.\n\nGo"
    await it.settle(row.id)
    given = it.executor.given()
    assert (given["TENUTO_DELIVERY"], given["TENUTO_UNATTENDED"]) == ("merge", "1")
    child = await api.post("/tasks", {"prompt": "A part", "parent": row.id, "auto_close": False})
    below = it.desk.task(TaskId(child.json()["result"]["task"]))
    assert (below.auto_close, below.unattended, below.delivery) == (False, True, None)
    in_run = await api.post("/tasks", {"prompt": "B", "cwd": str(it.folder), "playbook": "careful", "run": row.run_id})
    assert in_run.json()["error"]["field"] == "playbook"
    named = {"prompt": "C", "cwd": str(it.folder), "playbook": "careful", "agent": wanted(it)["agent"]}
    assert (await api.post("/tasks", named)).status_code == 422


# -- slots


async def test_who_returns_goes_first_then_the_oldest(api: Api, it: World) -> None:
    first, second = await it.started(), await it.started()
    third = await spawned(api, it, "third")
    fourth = await spawned(api, it, "fourth")
    for task in (fourth, third):
        rest = await it.settle(task)
        assert rest is not None
        assert rest.because is not None
        assert rest.because.rung is Rung.SLOT
    told = (await api.get("/slots")).json()
    assert (told["slots"], told["free"]) == (2, 0)
    assert [one["task"] for one in told["line"]] == [third, fourth]
    assert {one["occupancy"] for one in told["held"]} == {"working"}
    await it.desk.wait(OPERATOR, first, WaitKind.HUMAN, "which colour?")
    (turn, _) = it.executor.under_way
    it.executor.finish(turn)
    await it.settle(first)
    it.clock.move(POLICY.slot_rest + timedelta(minutes=1))
    await it.settle(first)
    assert it.desk.task(first).state is TaskState.PENDING
    await it.settle(fourth)
    assert it.desk.task(fourth).state is TaskState.PENDING  # the free slot is the third's
    await it.desk.answer(OPERATOR, first, "blue")
    await it.settle(first)
    assert it.desk.task(first).state is TaskState.ACTIVE  # who returns goes before both
    await it.settle(third)
    assert it.desk.task(third).state is TaskState.PENDING
    await it.desk.cancel(OPERATOR, second)
    await it.settle(fourth)
    await it.settle(third)
    assert (it.desk.task(third).state, it.desk.task(fourth).state) == (TaskState.ACTIVE, TaskState.PENDING)


async def test_a_spawn_that_never_started_goes_to_a_person(api: Api, it: World) -> None:
    await it.started()
    await it.started()
    task = await spawned(api, it, "third")
    await it.settle(task)
    it.clock.move(POLICY.pending_life)
    await it.settle(task)
    (item,) = (await api.get("/attention")).json()["items"]
    assert item["task"] == task
    assert "in line" in item["question"]
    assert it.desk.slots().spawned_pending == 0
    await it.desk.answer(OPERATOR, task, "let it wait")
    await it.settle(task)
    assert it.desk.slots().spawned_pending == 1


async def test_a_completion_frees_the_slot_while_its_turn_still_runs(api: Api, it: World) -> None:
    check = Acceptance(AcceptanceKind.FILE, (), "done.txt")
    first, second = await it.started(acceptance=check), await it.started()
    third = await spawned(api, it, "third")
    await it.settle(third)
    token = it.ledger.token(digest_of(it.agent_token(it.executor.turns[0])))
    assert token is not None
    assert token.task_id == first
    api.token = it.agent_token(it.executor.turns[0])
    assert (await api.post(f"/tasks/{first}/complete", {"evidence": "done.txt"})).status_code == 201
    await it.settle(third)
    assert it.desk.task(third).state is TaskState.ACTIVE
    held = {one.task.id: one.occupancy for one in it.desk.slots().held}
    assert held[first] == "finished_awaiting_ack"
    it.workspace.accepted = False
    it.executor.finish(it.executor.turns[0])
    await it.settle(first)
    assert it.desk.task(first).state is TaskState.PENDING  # refused, and its slot is another's now
    assert it.desk.slots().line[0].task_id == first
    await it.desk.cancel(OPERATOR, second)
    await it.settle(first)
    assert it.desk.task(first).state is TaskState.ACTIVE


async def test_readiness_closes_after_a_grace_or_stands_in_attention(api: Api, it: World) -> None:
    closing = await spawned(api, it, "one", auto_close=True)
    staying = await spawned(api, it, "two")
    for task in (closing, staying):
        await it.settle(task)
        api.token = it.agent_token()
        said = await api.post(f"/tasks/{task}/ready", {"note": "all that was asked is done"})
        assert said.status_code == 201, said.text
        assert (await api.post(f"/tasks/{task}/ready", {"note": "again"})).status_code == 200
        it.executor.finish()
        rest = await it.settle(task)
        assert rest is not None
        assert rest.because is not None
        assert rest.because.rung is Rung.READY
    assert {one.occupancy for one in it.desk.slots().held} == {"finished_awaiting_ack"}
    assert [item.task_id for item in it.desk.attention()] == [staying]
    it.clock.move(POLICY.ready_grace)
    for task in (closing, staying):
        await it.settle(task)
    done = it.desk.task(closing)
    assert done.state is TaskState.COMPLETED
    assert done.disposition is not None
    assert not done.disposition.verified
    assert it.desk.task(staying).state is TaskState.PENDING  # it rested too long to keep its slot, and is not closed
    await it.desk.continue_(OPERATOR, staying)
    await it.settle(staying)
    assert it.desk.task(staying).ready_at is None


async def test_readiness_frees_the_slot_of_a_turn_that_does_not_end(api: Api, it: World) -> None:
    task = await spawned(api, it, "one", auto_close=True)
    await it.settle(task)
    api.token = it.agent_token()
    assert (await api.post(f"/tasks/{task}/ready", {"note": "done"})).status_code == 201
    it.clock.move(POLICY.ready_grace)
    await it.settle(task)
    assert it.desk.task(task).state is TaskState.COMPLETED
    assert it.desk.slots().free == 2
    it.executor.finish()
    await it.settle(task)


async def test_a_successor_begins_in_its_parents_slot_and_in_no_other(api: Api, it: World) -> None:
    parent = await it.started()
    api.token = it.agent_token()
    answer = await api.post("/tasks", {"prompt": "the next unit", "hand_over": True})
    assert answer.status_code == 201, answer.text
    heir = TaskId(answer.json()["result"]["task"])
    again = await api.post("/tasks", {"prompt": "another unit", "hand_over": True})
    assert again.status_code == 423
    await it.settle(heir)
    assert it.desk.task(heir).state is TaskState.PENDING  # a slot is free, and it is not this one's
    await it.started()
    rival = await it.create("Rival")
    await it.settle(rival)
    it.executor.finish(it.executor.turns[0], status="complete", evidence="abc")
    await it.settle(parent)
    await it.settle(rival)
    assert it.desk.task(rival).state is TaskState.PENDING
    await it.settle(heir)
    assert it.desk.task(heir).state is TaskState.ACTIVE
    assert it.desk.task(parent).state is TaskState.COMPLETED
