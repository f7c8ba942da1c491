"""pi: recorded streams of its rpc mode, read into neutral events; and the program itself as a worker.

What it does not say by one event, that a turn is over, is asked of it: a played one shows when it counts as an end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import DONE, WORKING, answers, logging, staged
from tests.support.scripted_model import Call, Say, Step

from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.agents.pi import Pi, Reading

DATA = Path(__file__).parent.parent / "data" / "agents"
PATIENCE = 200.0


def read(name: str, *markers: str) -> list[said.Event]:
    reading = Reading()
    for marker in markers:
        reading.give(marker)
    lines = (DATA / f"pi-0.73.1-{name}.jsonl").read_text("utf-8").splitlines()
    return [event for line in lines for event in reading.of(json.loads(line))]


def test_a_turn_with_a_tool() -> None:
    began, tool, after, words, ended = read("tool", "[tenuto:c-1]")
    assert began == said.TurnBegan("prompt-c-1", "[tenuto:c-1]")
    assert isinstance(tool, said.ToolBegan)
    assert tool.name == "bash"
    assert after == said.ToolEnded(tool.id, failed=False)
    assert isinstance(words, said.Said)
    assert ended == said.TurnEnded("prompt-c-1", "stop", usage=said.Usage(22, 14, 0, "USD"))


def test_words_into_a_turn_are_taken_by_that_turn() -> None:
    told = read("steer", "[tenuto:c-2]", "[tenuto:c-9]")
    assert told.index(said.Steered("prompt-c-2", "[tenuto:c-9]")) > told.index(
        said.TurnBegan("prompt-c-2", "[tenuto:c-2]")
    )
    assert isinstance(told[-1], said.TurnEnded)


def test_a_turn_that_was_cut() -> None:
    *_, ended = read("cut", "[tenuto:c-3]")
    assert isinstance(ended, said.TurnEnded)
    assert (ended.stop, ended.interrupted, ended.failed) == ("aborted", True, False)


def test_a_session_that_was_too_full_is_made_smaller_and_the_turn_goes_on() -> None:
    told = read("compacted", "[tenuto:c-5]")
    kinds = [type(one).__name__ for one in told]
    assert kinds == ["TurnBegan", "ContextFull", "Compacted", "Said", "TurnEnded"], told
    assert isinstance(told[-1], said.TurnEnded)
    assert not told[-1].failed


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [("overload", said.Overloaded, "529 overloaded"), ("login", said.LoggedOut, "401 Incorrect API key provided")],
)
def test_what_hindered_it(name: str, kind: type[said.Overloaded | said.LoggedOut], text: str) -> None:
    _, told, ended = read(name, f"[tenuto:c-{name}]")
    assert isinstance(told, kind)
    assert told.text.startswith(text)
    assert isinstance(ended, said.TurnEnded)
    assert ended.failed


def test_words_of_somebody_else_begin_no_turn() -> None:
    assert not [one for one in read("tool", "[tenuto:c-8]") if isinstance(one, said.TurnBegan)]


SCRIPT = """
import json, sys
def say(**told):
    print(json.dumps(told), flush=True)
rest = iter(json.loads(sys.argv[1]))
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "get_state":
        if told["id"] == "open":
            say(id="open", type="response", command="get_state", success=True, data={"sessionId": "s-1"})
            say(type="extension_ui_request", id="d-1", method="confirm", title="May I?", message="Really?")
            continue
        for one in next(rest):
            say(**one)
    elif told["type"] == "prompt":
        say(id=told["id"], type="response", command="prompt", success=True)
        say(type="agent_start")
        say(type="message_start", message={"role": "user", "content": [{"type": "text", "text": told["message"]}]})
    elif told["type"] == "steer":
        say(id=told["id"], type="response", command="steer", success=True)
        say(type="agent_end", messages=[])
    elif told["type"] == "extension_ui_response":
        say(type="tool_execution_start", toolCallId=str(told.get("cancelled")), toolName="dialog")
"""


def state(**told: object) -> dict[str, Any]:
    return {"type": "response", "command": "get_state", "success": True, "data": told}


@contextmanager
def played(answers: list[list[dict[str, Any]]]) -> Iterator[Pi]:
    yield Pi(Start((sys.executable, "-c", SCRIPT, json.dumps(answers)), "/", {"PATH": "/usr/bin:/bin"}))


async def heard(channel: Pi) -> list[said.Event]:
    found = [await channel.hear()]
    while not isinstance(found[-1], said.TurnEnded | said.Closed):
        found.append(await channel.hear())
    return found


async def test_it_is_asked_until_it_rests_and_words_that_it_never_took_are_refused() -> None:
    still = [state(isStreaming=True, pendingMessageCount=1)]
    again = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "529"}
    over: list[dict[str, Any]] = [{"type": "agent_start"}, {"type": "agent_end", "messages": []}]
    rests = [state(isStreaming=False, isCompacting=False, pendingMessageCount=1)]
    with played([still, [again, *over], rests]) as channel:
        assert await channel.open(None) == "s-1"
        await channel.prompt("Go on. [tenuto:c-1]", "[tenuto:c-1]")
        began, dialog = await channel.hear(), await channel.hear()
        assert dialog == said.ToolBegan("True", "dialog"), "nobody is there to say yes"
        assert isinstance(began, said.TurnBegan)
        await channel.steer("Blue. [tenuto:c-2]", "[tenuto:c-2]", began.turn)
        retrying, refused, ended = await heard(channel)
        assert retrying == said.Retrying(1, 3, 2.0, "529")
        assert isinstance(refused, said.Refused)
        assert refused.marker == "[tenuto:c-2]"
        assert isinstance(ended, said.TurnEnded)
        await channel.close(1.0)


async def test_another_session_than_the_one_that_is_meant_is_not_opened() -> None:
    with played([]) as channel:
        with pytest.raises(NotOpened, match="s-1 and not s-2"):
            await channel.open("s-2")
        assert await channel.close(1.0) is not None


@pytest.mark.timeout(400)
def test_a_task_over_two_turns_in_one_session(tmp_path: Path) -> None:
    steps: list[Step] = [Call("bash", logging("one")), Say(WORKING), Call("bash", logging("two")), Say(DONE)]
    with staged(tmp_path, "pi", steps) as (stage, model, tasks):
        tasks.append(task := stage.run())
        shown = stage.ended(task, PATIENCE)
        second, first = shown["attempts"]
        assert stage.logged() == ["one", "two"], stage.told(task)
        assert [first["signal"], second["signal"]] == ["working", "complete"]
        assert (first["tokens_in"], second["tokens_in"]) == (22, 22)
        (talk,) = shown["conversations"]
        assert ":" not in talk["identity"], "it is called what the program calls its session"
        assert any("Keep the log" in text for text in model.asked[-1].words), "the session remembers its first turn"
        assert model.complaints == []


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("who", ["agent", "host"])
def test_killed_in_mid_tool_it_is_gone_on_with_in_its_session(tmp_path: Path, who: str) -> None:
    steps: list[Step] = [Call("bash", logging("began", "over", pause=6)), *answers(4)]
    with staged(tmp_path, "pi", steps) as (stage, model, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.kill(who, task)
        shown = stage.ended(task, PATIENCE)
        assert stage.logged().count("began") == 1
        assert [row["outcome"] for row in reversed(shown["attempts"])] == ["interrupted", "turn_end"], stage.told(task)
        assert len(shown["conversations"]) == 1
        assert any("did not come to its own end" in text for text in model.asked[-1].words)
