"""Recorded streams of Gemini CLI, read into neutral events; and what a program that never greets is taken for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tenuto.transports.agents import events as said
from tenuto.transports.agents.adapters import ADAPTERS
from tenuto.transports.agents.channel import Start
from tenuto.transports.agents.gemini import Gemini, Reading

DATA = Path(__file__).parent.parent / "data" / "agents"
MARKER = "[tenuto:c-1]"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def read(name: str, marker: str) -> list[said.Event]:
    reading = Reading()
    reading.give(marker)
    return [event for line in lines(name) for event in reading.of(line)]


def test_a_turn_with_a_tool() -> None:
    opened, began, tool, after, words, ended = read("gemini-0.61.0-tool.jsonl", "CALL run_shell_command")
    assert isinstance(opened, said.Opened)
    assert began == said.TurnBegan("prompt-CALL run_shell_command", "CALL run_shell_command")
    assert isinstance(tool, said.ToolBegan)
    assert after == said.ToolEnded(tool.id, failed=False)
    assert isinstance(words, said.Said)
    assert words.text.startswith("RESULT")
    assert ended == said.TurnEnded("prompt-CALL run_shell_command", "success", usage=said.Usage(22, 14))


def test_words_of_somebody_else_begin_no_turn() -> None:
    assert not [event for event in read("gemini-0.61.0-tool.jsonl", MARKER) if isinstance(event, said.TurnBegan)]


def test_a_service_that_is_overloaded() -> None:
    *_, told, ended = read("gemini-0.61.0-overload.jsonl", "FAIL 400")
    assert isinstance(told, said.Overloaded)
    assert isinstance(ended, said.TurnEnded)
    assert ended.failed


def script(text: str) -> Start:
    return Start((sys.executable, "-c", text), "/", {"PATH": "/usr/bin:/bin"})


async def test_one_that_ends_before_it_has_greeted_has_told_nobody_our_words() -> None:
    channel = Gemini(script("import sys; sys.stdin.read(); sys.stderr.write('no such session\\n'); sys.exit(42)"))
    assert await channel.open("s-1") == "s-1"
    await channel.prompt(f"Go on. {MARKER}", MARKER)
    assert await channel.hear() == said.Refused(MARKER, "no such session")
    assert await channel.close(1.0) is not None


async def test_one_that_is_killed_may_have_told_them() -> None:
    channel = Gemini(script("import os, signal, sys; sys.stdin.read(); os.kill(os.getpid(), signal.SIGKILL)"))
    await channel.open(None)
    await channel.prompt(f"Go on. {MARKER}", MARKER)
    assert isinstance(await channel.hear(), said.Closed)
    await channel.close(1.0)


def test_its_own_clean_up_is_off_for_what_is_started_here() -> None:
    adapter = ADAPTERS["gemini"]
    (place,) = adapter.unless_set.values()
    assert json.loads(Path(place).read_text("utf-8"))["general"]["sessionRetention"] == {"enabled": False}
