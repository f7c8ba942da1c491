"""The scripted model itself: in every dialect it plays its steps in order, and complains of what was not written."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx2
import pytest
from tests.support.scripted_model import Call, Fail, Say, ScriptedModel, Step, Wait

TOOL = {"name": "mcp__t__look", "description": "d", "input_schema": {"type": "object"}}
FUNCTION = {"name": "mcp__t__look", "parameters": {"type": "object"}}
SPACE = {"type": "namespace", "name": "mcp__t", "tools": [{"type": "function", "name": "look"}]}
USER = [{"role": "user", "content": "Hello"}]
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "messages": ("/v1/messages", {"model": "m", "messages": USER, "tools": [TOOL]}),
    "responses": ("/v1/responses", {"model": "m", "input": USER, "tools": [SPACE]}),
    "chat": ("/v1/chat/completions", {"model": "m", "messages": USER, "tools": [{"function": FUNCTION}]}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], "tools": [{"functionDeclarations": [FUNCTION]}]},
    ),
}


def post(url: str, body: dict[str, Any]) -> httpx2.Response:
    return httpx2.post(url, json=body, timeout=90)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", ASKED)
def test_steps_are_played_in_order(dialect: str, stream: bool) -> None:
    path, body = ASKED[dialect]
    if stream and dialect == "gemini":
        path = path.replace(":generateContent", ":streamGenerateContent")
    body = body | ({"stream": True} if stream and dialect != "gemini" else {})
    held = threading.Event()
    held.set()
    steps: list[Step] = [
        Call("look", lambda asked: {"at": asked.words[-1]}),
        Fail(503, "later"),
        Wait(5, held),
        Say("Seen."),
    ]
    with ScriptedModel(steps) as model:
        plain = {name: value for name, value in body.items() if name != "tools"}
        assert post(model.url + path, plain).status_code == 200, "it plays no step where no tool is offered"
        assert model.left == tuple(steps)
        call = post(model.url + path, body).text
        failed = post(model.url + path, body)
        words = post(model.url + path, body).text
        more = post(model.url + path, body).text
    assert "look" in call
    assert "Hello" in call
    assert (failed.status_code, "later" in failed.text) == (503, True)
    assert "Seen." in words
    assert "Nothing more" in more
    assert model.complaints == ["asked for more than was written"]
    assert {asked.tools for asked in model.asked} == {("mcp__t__look",)}
    if stream:
        data = [line[6:] for line in words.splitlines() if line.startswith("data: ")]
        assert all(json.loads(line) for line in data if line != "[DONE]")


def test_a_tool_that_is_not_offered_is_a_complaint() -> None:
    path, body = ASKED["messages"]
    with ScriptedModel([Call("dig")]) as model:
        assert "There is no tool dig" in post(model.url + path, body).text
    assert model.complaints == ["no tool dig among ['mcp__t__look']"]


def test_what_a_tool_answered_is_read_back() -> None:
    path, body = ASKED["messages"]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "seven"}]}
    with ScriptedModel([Say(lambda asked: f"It said {asked.results[-1]}.")]) as model:
        assert "It said seven." in post(model.url + path, body | {"messages": [*USER, result]}).text
        assert model.results == ("seven",)
