"""The MCP face: what a caller's token makes visible, flat arguments, one claim by one table, refusals word for word."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from tests.support.api import PORT, TOKEN, Api
from tests.support.world import OPERATOR, World, world

from tenuto.engine.calling import Caller
from tenuto.model.snapshot import Role
from tenuto.prompts.skills import skills
from tenuto.surfaces import verbs
from tenuto.surfaces.http import schema
from tenuto.surfaces.http.guard import BODY_BYTES
from tenuto.surfaces.mcp import mounted, tools
from tenuto.surfaces.mcp.ways import Way

pytestmark = pytest.mark.anyio
VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
AGENTS = {
    "task_status", "task_progress", "task_complete", "task_fail", "task_wait", "message_send", "message_read",
    "task_spawn", "chain_next", "chain_record", "chain_handoff", "review_verdict", "phase_open",
}  # fmt: skip
ENDING = ("task_complete", "task_fail")
# tried in tests/chains: they need a chain
CHAINED = ("chain_next", "chain_record", "chain_handoff", "review_verdict", "phase_open")
KEYS = itertools.count(1)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


@pytest.fixture
def api(it: World) -> Api:
    return Api(it)


@asynccontextmanager
async def speaking(api: Api, token: str = TOKEN, mode: str = "legacy") -> AsyncIterator[Client]:
    """A client of the protocol at the application, over HTTP without a network."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(transport=api.transport, headers=headers, timeout=30) as http:
        async with Client(streamable_http_client("http://tenuto/mcp", http_client=http), mode=mode) as client:
            yield client


async def said(client: Client, name: str, *, fails: bool = False, **arguments: Any) -> dict[str, Any]:
    """What a tool tells; the same as text and as structure."""
    told = await client.call_tool(name, arguments)
    assert told.is_error is fails, told.content
    (content,) = told.content
    assert content.type == "text"
    assert json.loads(content.text) == told.structured_content
    if fails:
        jsonschema.validate(told.structured_content, schema.ERROR)
        return dict(told.structured_content["error"])
    return dict(told.structured_content)


def key() -> str:
    return f"r-{next(KEYS)}"


async def test_an_agent_sees_its_own_tasks_tools_and_no_more(api: Api, it: World) -> None:
    task, other = await it.started(), await it.create()
    async with speaking(api, it.agent_token()) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == AGENTS
        for name, tool in listed.items():
            assert ("task" in tool.input_schema["properties"]) is (name == "message_send")
            assert not {"run", "parent", "corrective", "agent"} & set(tool.input_schema["properties"])
            changes = tools.TOOLS[name].of.mutates
            assert ("request_id" in tool.input_schema["required"]) is changes
        resources = (await client.list_resources()).resources
        assert [str(one.uri) for one in resources] == [f"tenuto://tasks/{task}/assignment"]
        (content,) = (await client.read_resource(str(resources[0].uri))).contents
        assert getattr(content, "text", None) == "Tidy the attic"
        assert (await said(client, "task_status", task=other, fails=True))["code"] == "not_allowed"
        with pytest.raises(MCPError, match="one task only"):
            await client.read_resource(f"tenuto://tasks/{other}/assignment")
        for uri in (f"tenuto://runs/{it.desk.task(task).run_id}/overview", "tenuto://registry", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(uri)
        for name in ("run_status", "hold", "task_cancel"):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, {})


async def test_the_operator_names_the_task(api: Api, it: World) -> None:
    task = await it.create()
    run = it.desk.task(task).run_id
    async with speaking(api) as client:
        listed = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert set(listed) == set(tools.TOOLS)
        assert all("task" in listed[name]["required"] for name in AGENTS - {"task_spawn"})
        assert (await said(client, "task_status", task=task[-8:]))["id"] == task
        assert [row["id"] for row in (await said(client, "run_status", run=run))["tasks"]] == [task]
        assert (await said(client, "task_status", fails=True))["field"] == "task"
        (overview,) = (await client.list_resources()).resources
        (content,) = (await client.read_resource(str(overview.uri))).contents
        assert json.loads(getattr(content, "text", ""))["run"]["id"] == run
        templates = (await client.list_resource_templates()).resource_templates
        assert {one.name for one in templates} == {"assignment", "overview"}


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.COORDINATOR, Role.AGENT])
@pytest.mark.parametrize("name", tools.TOOLS)
def test_arguments_are_flat_described_and_bounded(name: str, role: Role) -> None:
    tool = tools.TOOLS[name]
    shape = tool.schema(role)
    jsonschema.Draft202012Validator.check_schema(shape)
    assert set(shape) == {"type", "properties", "required", "additionalProperties"}
    for argument, about in shape["properties"].items():
        assert about.get("type") in ("string", "integer", "number", "boolean"), (argument, about)
        assert about.get("description"), f"{name} does not say what {argument} is"
    offered = set(tool.words) - (tool.leading if role is Role.AGENT else set())
    assert offered <= set(shape["properties"]), "it describes what it does not take"


async def test_what_a_tool_takes_is_what_its_verb_takes(it: World) -> None:
    """The least a schema asks for is enough for the verb, and its answer fits what the tool tells."""
    task = await it.started()
    given = {"task": task, "run": it.desk.task(task).run_id}
    words = {
        "prompt": "Sweep",
        "summary": "half of it",
        "evidence": "commit abc",
        "reason": "r",
        "question": "Which?",
        "text": "Hello",
    }
    for tool in (tool for tool in tools.TOOLS.values() if tool.name not in ENDING and tool.name not in CHAINED):
        needed = tool.schema(Role.OPERATOR)["required"]
        arguments = {name: (given | words | {"request_id": key()})[name] for name in needed}
        if tool.name == "task_wait":
            arguments["question"] = words["question"]
        if tool.name == "task_spawn":
            arguments["parent"] = task
        if tool.name == "task_spawn":
            arguments["parent"] = task
        asked, repeat = tool.asked(arguments, None)
        told = tool.told(await verbs.call(it.desk, OPERATOR, tool.verb, asked, repeat))
        assert len(json.dumps(told)) < 4000, tool.name


async def test_a_coordinator_looks_after_its_run(api: Api, it: World) -> None:
    task = await it.started()
    run = it.desk.task(task).run_id
    await it.desk.coordinate(OPERATOR, run, task)
    wanted = {"role": "coordinator", "name": "minder", "task": task}
    made = await verbs.call(it.desk, OPERATOR, "token.new", wanted, key())
    async with speaking(api, str(made["result"]["secret"])) as client:
        listed = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert set(listed) == set(tools.TOOLS)
        assert not any({"task", "run"} & set(shape["required"]) for shape in listed.values())
        assert (await said(client, "run_status"))["run"]["id"] == run
        uris = [str(one.uri) for one in (await client.list_resources()).resources]
        assert uris == [f"tenuto://tasks/{task}/assignment", f"tenuto://runs/{run}/overview"]
        other = await it.create()
        refused = await said(client, "run_status", run=it.desk.task(other).run_id, fails=True)
        assert refused["code"] == "not_allowed"


async def test_a_request_id_makes_it_once(api: Api, it: World) -> None:
    task = await it.started()
    async with speaking(api, it.agent_token()) as client:
        assert (await said(client, "task_progress", summary="half", fails=True))["field"] == "request_id"
        first = await said(client, "task_progress", summary="half", progress="commit abc", request_id="once")
        again = await said(client, "task_progress", summary="half", progress="commit abc", request_id="once")
        assert (first["replayed"], again["replayed"]) == (False, True)
        assert first["result"] == again["result"]
        other = await said(client, "task_progress", summary="more", request_id="once", fails=True)
        assert other["code"] == "conflict"
        bad = await said(client, "task_progress", summary="x", request_id="a b", fails=True)
        assert bad["field"] == "request_id"
        needless = await said(client, "task_status", request_id="x", fails=True)
        assert needless["field"] == "request_id"
    (report,) = it.desk.reports(task)
    assert dict(report.lines) == {"summary": "half", "progress": "commit abc"}


async def test_all_that_an_agent_does_in_a_turn(api: Api, it: World) -> None:
    task = await it.started()
    await it.desk.say(OPERATOR, task, "Mind the spiders")
    async with speaking(api, it.agent_token()) as client:
        assert (await said(client, "task_status"))["because"]["rung"] == "live"
        told = await said(client, "message_read")
        assert [row["text"] for row in told["messages"]] == ["Mind the spiders"]
        await said(client, "message_send", text="Done with the spiders", request_id=key())
        wrong = await said(client, "task_wait", kind="human", request_id=key(), fails=True)
        assert wrong["field"] == "question"
        await said(client, "task_wait", kind="human", question="Keep the lamp?", request_id=key())
        claimed = await said(client, "task_complete", evidence="commit abc", summary="tidy", request_id=key())
        assert claimed["result"]["task"] == task
    shown = await it.desk.show(task)
    assert (shown.task.claim is not None) or shown.task.disposition is not None


async def test_a_late_word_is_refused_word_for_word(api: Api, it: World) -> None:
    task = await it.started()
    token = it.agent_token()
    await it.desk.cancel(OPERATOR, task)
    await it.settle(task)
    async with speaking(api, token) as client:
        refused = await said(client, "task_complete", evidence="commit abc", request_id=key(), fails=True)
    told = await api_post(api, token, task)
    assert refused == told.json()["error"]
    assert refused["code"] == "refused"
    assert refused["because"] == refused["message"]


async def api_post(api: Api, token: str, task: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key()}
    return await api.client.post(f"/api/v1/tasks/{task}/complete", json={"evidence": "commit abc"}, headers=headers)


@pytest.mark.parametrize("version", VERSIONS)
async def test_each_version_of_the_protocol_is_spoken(api: Api, it: World, version: str) -> None:
    await it.started()
    token = it.agent_token()
    if version == VERSIONS[-1]:
        async with speaking(api, token, version) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == AGENTS
            assert (await said(client, "task_status"))["state"] == "active"
        return
    answer = await posted(api, token, hello(version))
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["serverInfo"]["name"] == "tenuto"
    listed = await posted(api, token, {"method": "tools/list", "id": 2, "params": {}}, version)
    assert {tool["name"] for tool in listed["result"]["tools"]} == AGENTS


def hello(version: str) -> dict[str, Any]:
    about = {"name": "t", "version": "1"}
    return {
        "method": "initialize",
        "id": 1,
        "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": about},
    }


async def posted(api: Api, token: str, message: dict[str, Any], version: str | None = None) -> dict[str, Any]:
    """One message by hand; no session is opened, and none is asked for."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    headers |= {} if version is None else {"MCP-Protocol-Version": version}
    response = await api.client.post("/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)
    assert response.status_code == 200, response.text
    assert "mcp-session-id" not in response.headers
    (data,) = [line[5:] for line in response.text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return dict(json.loads(data))


async def test_the_guard_stands_before_it(api: Api, it: World) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    kind = {"Content-Type": "application/json"}
    body = {"jsonrpc": "2.0", **hello(VERSIONS[0])}
    port = httpx2.ASGITransport(app=api.app)
    async with httpx2.AsyncClient(transport=port, base_url=f"http://127.0.0.1:{PORT}") as client:
        assert (await client.post("/mcp", json=body, headers=headers)).status_code == 200
        for changed, status in (
            ({"Host": "evil.example.com"}, {403, 421}),
            ({"Host": "tenuto"}, {403, 421}),
            ({"Origin": "http://evil.example.com"}, {403}),
            ({"Origin": "null"}, {403}),
            ({"Authorization": "Bearer nobody"}, {401}),
            ({"Content-Type": "text/plain"}, {415}),
        ):
            answer = await client.post("/mcp", content=json.dumps(body), headers=kind | headers | changed)
            assert answer.status_code in status, (changed, answer.status_code)
        large = await client.post("/mcp", json=body | {"x": "x" * BODY_BYTES}, headers=headers)
        assert large.status_code == 413
        for method in ("GET", "DELETE"):
            answer = await client.request(method, "/mcp", headers=headers)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_prompts_are_the_skills(api: Api) -> None:
    async with speaking(api) as client:
        listed = (await client.list_prompts()).prompts
        assert {prompt.name for prompt in listed} == set(skills())
        assert "durable-continuation-output" in skills()
        (message,) = (await client.get_prompt("durable-continuation-output")).messages
        assert message.content.type == "text"
        assert "status: working | complete | blocked" in message.content.text
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("../secrets")


def test_a_directory_without_front_matter_is_no_skill(tmp_path: Path) -> None:
    for name, text in (
        ("good", "---\nname: a\ndescription: b\n---\nBody\n"),
        ("bad", "Body\n"),
        ("half", "---\nname: a\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(text, "utf-8")
    assert {skill.name: skill.body for skill in skills(tmp_path).values()} == {"a": "Body\n"}


async def test_many_callers_at_once_and_the_first_of_them_loads(api: Api, it: World) -> None:
    await it.started()
    token = it.agent_token()

    async def one() -> str:
        async with speaking(api, token) as client:
            return str((await said(client, "task_status"))["state"])

    assert await asyncio.gather(*(one() for _ in range(8))) == ["active"] * 8


async def test_without_the_library_it_says_what_to_install() -> None:
    def missing() -> mounted.Serve:
        raise ModuleNotFoundError("No module named 'mcp'", name="mcp")

    def nobody(_caller: Caller) -> Way:
        raise AssertionError("nobody is served")

    transport = httpx2.ASGITransport(app=mounted.Mounted(nobody, load=missing))
    async with httpx2.AsyncClient(transport=transport, base_url="http://tenuto") as client:
        answer = await client.post("/mcp", json={})
    assert answer.status_code == 501
    jsonschema.validate(answer.json(), schema.ERROR)
    assert "tenuto[mcp]" in answer.json()["error"]["message"]


def test_the_application_alone_does_not_import_the_library() -> None:
    program = (
        "import sys; import tenuto.surfaces.http.app, tenuto.surfaces.mcp.mounted, tenuto.surfaces.mcp.tools; "
        "print([name for name in sys.modules if name.partition('.')[0] in ('mcp', 'mcp_types')])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"
