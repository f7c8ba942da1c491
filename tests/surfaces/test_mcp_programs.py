"""MCP as other programs meet it: `tenuto mcp` as a process, and the protocol's own inspector at both transports.

A supervisor runs with a task that an agent is at work on. The inspector lists and calls every tool, with the
operator's token and with the agent's; a client of the library goes on when the supervisor is gone and back.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters
from tests.support.home import Home
from tests.support.programs import installed, path

from tenuto.model.snapshot import Role
from tenuto.surfaces.mcp import tools

pytestmark = pytest.mark.anyio
AGENT = """
import os, sys, time
from pathlib import Path

kept = {name: value for name, value in os.environ.items() if name.startswith("TENUTO_")}
Path("turn.part").write_text(__import__("json").dumps(kept))
Path("turn.part").rename("turn.json")
end = time.monotonic() + 100
while not Path("go").exists() and time.monotonic() < end:
    time.sleep(0.05)
"""
GOAL_MB = 130


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    made.tenuto("start")
    yield made
    (made.work / "go").touch()
    made.tenuto("stop")


def started(home: Home) -> tuple[str, dict[str, str]]:
    """A task with a turn under way, and what its agent was given."""
    program = home.folder / "agent.py"
    program.write_text(AGENT, "utf-8")
    task = home.tenuto("run", "--program", f"{sys.executable} {program}", "--detach", text="Sweep the yard.\n").strip()
    home.until("the turn", (home.work / "turn.json").exists)
    return task, dict(json.loads((home.work / "turn.json").read_text("utf-8")))


def inspected(folder: Path, target: list[str], *more: str) -> dict[str, Any]:
    """What the inspector prints about one method; it ends with 5 where a tool's result is an error."""
    program = installed("@modelcontextprotocol/inspector/clients/launcher/build/index.js")
    said = subprocess.run(
        ["node", str(program), "--cli", *target, *more],
        capture_output=True, text=True, timeout=60, check=False, env={"PATH": path(), "HOME": str(folder)},
    )  # fmt: skip
    assert said.returncode in (0, 5), (said.stdout[-1500:], said.stderr[-1500:])
    return dict(json.loads(said.stdout))


def arguments(tool: tools.Tool, given: Mapping[str, str]) -> list[str]:
    """The least a tool of the operator's takes, as the inspector wants it."""
    words = {"summary": "swept", "evidence": "yard", "reason": "rain", "text": "Hello", "question": "Which broom?"}
    words |= {"outcome": "done", "verdict": "pass", "head": "a" * 40, "pull": "7"}
    more = {"task_wait": ["question"], "task_spawn": ["parent"]}.get(tool.name, [])
    needed = [*tool.schema(Role.OPERATOR)["required"], *more]
    known = {**words, **given, "request_id": f"i-{tool.name}", "prompt": "Sweep the roof.", "parent": given["task"]}
    return [part for name in needed for part in ("--tool-arg", f"{name}={known[name]}")]


#: Last, since they end the task.
ENDING = ("task_complete", "task_fail")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("over", ["stdio", "http"])
def test_the_inspector_lists_and_calls_every_tool(home: Home, over: str, tmp_path: Path) -> None:
    task, _ = started(home)
    run = home.json("show", task)["run"]["id"]
    if over == "http":
        token = home.tenuto("token", "--show").strip()
        target = [f"http://127.0.0.1:{home.port}/mcp", "--transport", "http"]
        target += ["--header", f"Authorization: Bearer {token}"]
    else:
        target = [sys.executable, "-m", "tenuto", "mcp"]
        target += [part for name, value in home.environment.items() for part in ("-e", f"{name}={value}")]
    listed = inspected(tmp_path, target, "--method", "tools/list", "--strict")
    assert {tool["name"] for tool in listed["tools"]} == set(tools.TOOLS)
    assert inspected(tmp_path, target, "--method", "prompts/list")["prompts"]
    assert inspected(tmp_path, target, "--method", "resources/list")["resources"]

    def called(name: str) -> dict[str, Any]:
        given = arguments(tools.TOOLS[name], {"task": task, "run": run})
        return inspected(tmp_path, target, "--method", "tools/call", "--tool-name", name, *given)

    with ThreadPoolExecutor(3) as pool:
        others = [name for name in tools.TOOLS if name not in ENDING]
        for name, told in zip(others, pool.map(called, others), strict=True):
            if name.startswith("chain_"):
                assert told["isError"], "the task is no unit of a chain"
                assert "no unit of a chain" in json.dumps(told)
                continue
            if name in ("review_verdict", "phase_open"):
                assert told["isError"], f"{name} is a word of reviewers, or of tasks of a chain"
                continue
            assert not told.get("isError"), (name, told)
    assert not called("task_complete").get("isError")
    refused = called("task_fail")
    assert refused["isError"], "the task was complete already"
    assert "error" in refused["structuredContent"]
    if over == "http":
        resident = psutil.Process(home.json("status")["pid"]).memory_info().rss / 1e6
        assert resident <= GOAL_MB, f"{resident:.0f} MB with MCP in use"


@pytest.mark.timeout(120)
async def test_an_agents_client_goes_on_when_the_supervisor_is_gone_and_back(home: Home) -> None:
    task, turn = started(home)
    about = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **turn}
    async with Client(StdioServerParameters(command=sys.executable, args=["-m", "tenuto", "mcp"], env=about)) as client:
        assert "run_status" not in {tool.name for tool in (await client.list_tools()).tools}
        assert (await client.call_tool("task_status", {})).structured_content["id"] == task
        home.tenuto("stop")
        gone = await client.call_tool("task_status", {})
        assert gone.is_error
        assert gone.structured_content["error"]["code"] == "no_supervisor"
        left = await client.call_tool("task_complete", {"evidence": "yard", "request_id": "c-1"})
        assert "it is written down" in left.structured_content["text"]
        home.tenuto("start")
        home.until("the claim", lambda: home.json("show", task)["task"]["state"] == "completed")
        again = await client.call_tool("task_complete", {"evidence": "yard", "request_id": "c-1"})
        assert again.structured_content["replayed"], again.structured_content


def test_the_process_shows_no_token_and_ends_with_its_input(home: Home) -> None:
    _, turn = started(home)
    environment = {**home.environment, **turn}
    program = [sys.executable, "-m", "tenuto", "mcp"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        words = shlex.join(psutil.Process(process.pid).cmdline())
        assert turn["TENUTO_TOKEN"] not in words
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"")
