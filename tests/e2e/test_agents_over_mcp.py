"""Real agent programs do a whole task through our MCP server, over standard input and over HTTP.

A supervisor runs, a task's program is Claude Code or Codex, and the model it talks to is scripted. The program reads
its assignment, reports progress, sends a message and completes the task; what the registry then holds is compared.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.home import Home
from tests.support.model_dialects import Asked
from tests.support.programs import Program, Server, claude, codex, wrapped
from tests.support.scripted_model import Call, Say, ScriptedModel, Step

PATIENCE = 150.0
OBJECTIVE = "Count the spiders in the attic, and write the number down.\n"
STDIO = Server(command=(sys.executable, "-m", "tenuto", "mcp"))
URI = re.compile(r"tenuto://tasks/t-[0-9a-z]+/assignment")


def ended(home: Home, task: str) -> dict[str, Any]:
    """Everything about a task when it and its last turn are over."""
    seen: list[dict[str, Any]] = []

    def over() -> bool:
        seen[:] = [home.json("show", task)]
        return seen[0]["task"]["ended_at"] is not None and all(one["ended_at"] for one in seen[0]["attempts"])

    home.until("the end of the task", over, PATIENCE)
    return seen[0]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    made.tenuto("start")
    yield made
    made.tenuto("stop")


def assignment(asked: Asked) -> dict[str, Any]:
    """Which resource to read, from the list that the program got."""
    found = [uri.group() for text in asked.results if (uri := URI.search(text))]
    return {"server": "tenuto", "uri": found[-1] if found else "tenuto://none"}


def story(listing: str, reading: str) -> list[Step]:
    """What the model has its program do."""
    return [
        Call(listing, {"server": "tenuto"}),
        Call(reading, assignment),
        Call("task_progress", {"summary": "counted", "progress": "attic.txt", "request_id": "p-1"}),
        Call("message_send", {"text": "There are seven.", "request_id": "m-1"}),
        Call("task_complete", {"evidence": "attic.txt", "summary": "seven spiders", "request_id": "c-1"}),
        Say("It is done."),
    ]


Make = Callable[[Path, str, Server], Program]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize(
    ("make", "listing", "reading"),
    [
        pytest.param(claude, "ListMcpResourcesTool", "ReadMcpResourceTool", id="claude"),
        pytest.param(codex, "list_mcp_resources", "read_mcp_resource", id="codex"),
    ],
)
def test_a_real_program_does_its_task(home: Home, make: Make, listing: str, reading: str, over: str) -> None:
    server = STDIO if over == "stdio" else Server(url=f"http://127.0.0.1:{home.port}/mcp")
    with ScriptedModel(story(listing, reading)) as model:
        program = make(home.folder / "agent", model.url, server)
        line = wrapped(program, home.folder / "printed")
        made = home.tenuto("run", "--title", "Spiders", "--program", line, "--detach", text=OBJECTIVE)
        shown = ended(home, made.strip())
    told = {name: (home.folder / "printed" / name).read_text("utf-8")[-4000:] for name in ("out", "err")}
    assert model.complaints == [], told
    assert any("Count the spiders" in text for asked in model.asked[:1] for text in asked.words), "it got no prompt"
    assert any("Count the spiders" in text for text in model.results), "it did not read its assignment"
    assert not any('"error"' in text for text in model.results), model.results
    assert shown["task"]["state"] == "completed", (shown["task"], told)
    assert shown["task"]["disposition"]["source"] == "agent"
    (report,) = [one for one in shown["reports"] if one["kind"] == "progress"]
    assert {row["name"]: row["value"] for row in report["lines"]} == {"summary": "counted", "progress": "attic.txt"}
    sent = home.json("message", "list", made.strip())["messages"]
    assert [row["text"] for row in sent] == ["There are seven."]
    assert len(shown["attempts"]) == 1
