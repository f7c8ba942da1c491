"""The table of verbs: every verb answers, mistakes name their field, and an agent is held to its own task."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import order
from tests.support.world import OPERATOR, World, world

from tenuto.engine.desk import Caller
from tenuto.model.faults import Conflict, Mistake, NoSupervisor, NotAllowed, NotFound, Refused
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role
from tenuto.surfaces import verbs
from tenuto.surfaces.routes import PREFIX, ROUTES, address

pytestmark = pytest.mark.anyio

MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("run.create", {"objective": ""}, "objective"),
    ("run.create", {"objective": "x" * (256 * 1024 + 1)}, "objective"),
    ("run.create", {"objective": "a\x00b"}, "objective"),
    ("run.create", {"objective": "a\ud800b"}, "objective"),
    ("run.create", {"objective": 7}, "objective"),
    ("run.create", {"objective": "é" * 150_000}, "objective"),
    ("run.create", {"title": "x" * 201}, "title"),
    ("run.create", {"colour": "blue"}, "colour"),
    ("run.create", {"agent": {"argv": []}}, "agent.argv"),
    ("run.create", {"agent": {"argv": ["x"], "env": ["A=secret"]}}, "agent.env.0"),
    ("run.create", {"agent": {"adapter": "nobody", "argv": ["x"]}}, "agent"),
    ("run.create", {"acceptance": {"kind": "check"}}, "acceptance.argv"),
    ("run.create", {"acceptance": {"kind": "file"}}, "acceptance.path"),
    ("run.create", {"max_attempts": 0}, "max_attempts"),
    ("run.create", {"max_attempts": True}, "max_attempts"),
    ("run.create", {"policy": {"haste": 1}}, "haste"),
    ("run.create", {"policy": {"idle-delay": float("inf")}}, "policy.idle-delay"),
    ("task.show", {"task": "abc"}, "task"),
    ("task.show", {"task": "../../etc/passwd"}, "task"),
    ("task.wait", {"task": "T", "kind": "cap", "question": "?"}, "kind"),
    ("task.wait", {"task": "T", "kind": "time", "until": "2026-03-01T12:00:00"}, "until"),
    ("task.wait", {"task": "T", "kind": "time", "until": "tomorrow"}, "until"),
    ("task.wait", {"task": "T", "kind": "human", "question": " "}, "question"),
    ("task.wait", {"task": "T", "kind": "path", "question": "?"}, "on"),
    ("task.complete", {"task": "T", "evidence": " "}, "evidence"),
    ("task.fail", {"task": "T", "reason": ""}, "reason"),
    ("task.report", {"task": "T", "lines": []}, "lines"),
    ("task.explain", {"task": "T", "at": "now"}, "at"),
    ("task.answer", {"task": "T", "answer": "x" * (64 * 1024 + 1)}, "answer"),
    ("message.send", {"task": "T", "text": "   "}, "message"),
    ("policy.set", {"task": "T", "changes": {"max-attempts": "many"}}, "max-attempts"),
    ("policy.set", {"task": "T", "changes": {"colour": "blue"}}, "colour"),
    ("events", {"after": "-1"}, "after"),
    ("events", {"limit": 0}, "limit"),
    ("command.release", {"command": "c-000000", "verdict": "perhaps"}, "verdict"),
]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def call(it: World, name: str, key: str | None = None, caller: Caller = OPERATOR, **params: Any) -> Any:
    """Call a verb, and see that its answer is JSON that holds no secret."""
    said = await verbs.call(it.desk, caller, name, params, key)
    text = json.dumps(said)
    assert "secret-of-an-agent" not in text
    return said


async def test_every_verb_answers(it: World) -> None:
    made = await call(it, "run.create", "k0", **order(it))
    task, run = made["result"]["task"], made["result"]["run"]
    assert made["text"].startswith("made task t-")
    await it.settle(task)
    told = {name: await call(it, name, **params) for name, params in {
        "status": {},
        "whoami": {},
        "run.list": {"unfinished": True},
        "run.show": {"run": run},
        "task.list": {"run": run},
        "task.show": {"task": task},
        "task.assignment": {"task": task},
        "task.follow": {"task": task, "after": 0},
        "task.explain": {"task": task},
        "policy.show": {"task": task},
        "attention": {},
        "events": {"task": task, "limit": 5},
        "message.list": {"task": task},
        "checkpoint.show": {"task": task},
        "command.list": {"only_open": True},
    }.items()}  # fmt: skip
    assert told["status"]["standing"] == "live"
    assert told["status"]["supervisor"]["epoch"] == 1
    assert told["status"]["counts"]["active"] == 1
    assert [row["id"] for row in told["run.list"]["runs"]] == [run]
    assert [row["id"] for row in told["run.show"]["tasks"]] == [task]
    assert told["task.show"]["objective"] == "Tidy the attic\nand say so"
    assert told["whoami"]["role"] == "operator"
    assert told["whoami"]["verbs"] == list(verbs.VERBS)
    assert told["task.assignment"]["objective"] == "Tidy the attic\nand say so"
    assert told["task.show"]["because"]["rung"] == "live"
    assert told["task.explain"]["because"]["sentence"] == told["task.explain"]["text"]
    assert told["task.follow"]["events"][0]["id"].startswith("1-")
    assert len(told["events"]["events"]) == 5
    assert {row["name"] for row in told["policy.show"]["policy"]} > {"turn_limit", "auto_resume"}
    (command,) = told["command.list"]["commands"] or (await call(it, "command.list", task=task))["commands"]
    assert (await call(it, "command.show", command=command["id"]))["command"]["task"] == task

    done = [
        await call(it, "task.pause", "k1", task=task),
        await call(it, "task.resume", "k2", task=task),
        await call(it, "task.continue", "k3", task=task, anyway=True),
        await call(it, "message.send", "k4", task=task, text="mind the cat"),
        await call(it, "checkpoint.request", "k5", task=task),
        await call(it, "task.report", "k6", task=task, lines=[{"name": "completed", "value": "two rooms"}]),
        await call(it, "policy.set", "k7", task=task, changes={"max-attempts": 7}),
        await call(it, "policy.set", "k8", task=run, changes={"idle-delay": 3.5}),
        await call(it, "task.wait", "k9", task=task, kind="human", question="which attic?"),
    ]
    assert all(one["text"] and not one["replayed"] for one in done)
    (item,) = (await call(it, "attention"))["items"]
    assert item["question"] == "which attic?"
    answered = await call(it, "task.answer", "k10", task=task, answer="the upper one")
    assert answered["text"].startswith("answered t-")
    said = (await call(it, "message.list", task=task))["messages"]
    assert {row["text"] for row in said if row["kind"] != "checkpoint"} == {"mind the cat", "the upper one"}
    (report,) = (await call(it, "checkpoint.show", task=task))["reports"]
    assert report["lines"] == [{"name": "completed", "value": "two rooms"}]
    assert (await call(it, "hold"))["text"] == "everything is held"
    assert (await call(it, "status"))["held"]["by"] == "operator"
    assert (await call(it, "unhold"))["text"] == "the hold is lifted"
    assert (await call(it, "task.complete", "k11", task=task, evidence="commit abc"))["effects"][0]["changed"]
    assert (await call(it, "task.show", task=task))["task"]["text"].startswith("completed: ")

    second = TaskId((await call(it, "run.create", "k12", **order(it)))["result"]["task"])
    assert (await call(it, "task.fail", "k13", task=second, reason="no attic"))["result"]["task"] == second
    third = (await call(it, "run.create", "k14", **order(it)))["result"]
    stopped = await call(it, "task.cancel", "k15", task=third["run"], reason="enough")
    assert "1 of 1 tasks changed" in stopped["text"]
    await call(it, "stop")
    assert it.stops == [None]


async def test_a_doubtful_command_is_looked_at_and_released(it: World) -> None:
    task, command = await it.doubted()
    (item,) = [one for one in (await call(it, "attention"))["items"] if one["kind"] == "ambiguous command"]
    assert item["task"] == task
    looked = await call(it, "command.reconcile", "r1", command=command)
    assert looked["result"]["state"] == "ambiguous"
    await call(it, "command.release", "r2", command=command, verdict="not-happened")
    assert (await call(it, "command.show", command=command))["command"]["verdict"] == "not happened"


async def test_explain_at_tells_what_was_recorded(it: World) -> None:
    task = await it.started()
    it.clock.move(timedelta(minutes=1))
    await call(it, "task.pause", task=task)
    then = await call(it, "task.explain", task=task, at="2026-03-01T13:00:30+01:00")
    now = await call(it, "task.explain", task=task, at="2026-03-01T12:01:00Z")
    before = await call(it, "task.explain", task=task, at="2025-01-01T00:00:00Z")
    assert then["recorded"]
    assert then["text"] != "paused, by operator"
    assert now["text"] == "paused, by operator"
    assert before["text"] == "nothing was recorded about it until then"


@pytest.mark.parametrize(("name", "params", "field"), MISTAKES, ids=lambda value: str(value)[:40])
async def test_a_mistake_names_its_field(it: World, name: str, params: dict[str, Any], field: str) -> None:
    if params.get("task") == "T":
        params = params | {"task": await it.started()}
    whole = order(it) | params if name == "run.create" else params
    with pytest.raises(Mistake) as caught:
        await verbs.call(it.desk, OPERATOR, name, whole)
    assert caught.value.field == field
    assert field.rsplit(".", maxsplit=1)[-1] in caught.value.message or caught.value.message


async def test_what_is_not_there_conflicts_and_is_refused(it: World) -> None:
    task = await it.create()
    with pytest.raises(NotFound):
        await call(it, "task.show", task="t-zzzzzz")
    await call(it, "message.send", "same", task=task, text="one")
    assert (await call(it, "message.send", "same", task=task, text="one"))["replayed"]
    with pytest.raises(Conflict):
        await call(it, "message.send", "same", task=task, text="two")
    await call(it, "task.cancel", task=task)
    with pytest.raises(Refused):
        await call(it, "task.pause", task=task)
    with pytest.raises(Mistake):
        await call(it, "task.dance", task=task)


async def test_a_desk_without_a_supervisor_reads_and_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as first:
        task = await first.create()
    async with world(tmp_path, led=False) as it:
        assert (await call(it, "task.show", task=task))["task"]["id"] == task
        with pytest.raises(NoSupervisor):
            await call(it, "task.pause", task=task)


async def test_an_agent_is_held_to_its_own_task(it: World) -> None:
    mine, other = await it.started(), await it.create()
    agent = Caller(Role.AGENT, "agent", mine, 1)
    assert (await call(it, "task.show", caller=agent, task=mine))["task"]["id"] == mine
    assert (await call(it, "task.show", caller=agent, task=mine[-8:]))["task"]["id"] == mine
    told = await call(it, "whoami", caller=agent)
    assert (told["role"], told["task"], told["run"]) == ("agent", mine, it.desk.task(mine).run_id)
    assert told["verbs"] == [name for name, verb in verbs.VERBS.items() if Role.AGENT in verb.roles]
    for name, verb in verbs.VERBS.items():
        if name == "whoami":
            continue
        if name == "task.spawn":
            with pytest.raises(NotAllowed):
                await call(it, name, caller=agent, prompt="p", parent=other)
            continue
        if Role.AGENT in verb.roles:
            least = {"task": other, "evidence": "e", "reason": "r", "text": "t", "question": "q", "note": "n"}
            least |= {"outcome": "done", "verdict": "pass", "head": "a" * 40}
            least["pull"] = 1  # type: ignore[assignment]
            least["lines"] = [{"name": "a", "value": "b"}]  # type: ignore[assignment]
            params = {key: value for key, value in least.items() if key in verb.params.model_fields}
            with pytest.raises(NotAllowed):
                await call(it, name, caller=agent, **params)
            with pytest.raises(NotAllowed):
                await call(it, name, caller=agent, **(params | {"task": "t-zzzzzzzz"}))
        else:
            with pytest.raises(NotAllowed):
                await call(it, name, caller=agent)


async def test_a_late_word_is_refused_and_recorded(it: World) -> None:
    task = await it.started()
    late = Caller(Role.AGENT, "agent", task, 0)
    with pytest.raises(Refused):
        await call(it, "task.complete", caller=late, task=task, evidence="commit abc")
    assert any(row["kind"] == "late.word" for row in (await call(it, "events", task=task, limit=1000))["events"])


def test_the_table_and_the_routes_are_one() -> None:
    assert set(verbs.VERBS) == set(ROUTES)
    places = [(route.method, path) for route in ROUTES.values() for path in (route.path, route.run_path) if path]
    assert len(places) == len(set(places))
    for name, route in ROUTES.items():
        params = verbs.VERBS[name].params.model_fields
        for part in route.path.split("/"):
            assert not part.startswith("{") or part.strip("{}") in params


def test_an_address_is_filled_in() -> None:
    assert address("task.pause", {"task": "a/b"}) == ("POST", f"{PREFIX}/tasks/a%2Fb/pause", {})
    assert address("events", {"after": 3}) == ("GET", f"{PREFIX}/events", {"after": 3})
    with pytest.raises(KeyError):
        address("task.pause", {})


async def test_what_names_a_task_is_missed_as_a_task(it: World) -> None:
    for given, missed in (("t-zzzzzzzz", "no task 't-zzzzzzzz'"), ("r-zzzzzzzz", "no run 'r-zzzzzzzz'")):
        with pytest.raises(NotFound, match=missed):
            await call(it, "task.pause", "k", task=given)
