"""Agents with a session while anybody is killed at any instant: agent, host, supervisor, in mid turn and in mid tool.

The agent writes the command of its turn into a file of effects, as the tool of a real one does; nobody else writes
there. So the file alone tells how often the world has seen a command, whatever the registry says. In the long proofs
real agents are killed too, whose model has each turn call the tool once and then end.
"""

from __future__ import annotations

import random
import shlex
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.agents import DONE, UNASKED, WORKING, Stage
from tests.support.scripted_model import Call, Fail, Say, ScriptedModel

AGENT = """\
import json, os, sys, time

def say(told):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **told}) + "\\n")
    sys.stdout.flush()

def update(**told):
    say({"method": "session/update", "params": {"sessionId": "storm", "update": told}})

for line in sys.stdin:
    told = json.loads(line)
    name, number = told.get("method"), told.get("id")
    if name == "initialize":
        say({"id": number, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}})
    elif name in ("session/new", "session/load"):
        say({"id": number, "result": {"sessionId": "storm"}})
    elif name == "session/prompt":
        update(sessionUpdate="tool_call", toolCallId="one", title="effect")
        time.sleep(0.1)
        with open(sys.argv[1], "a") as file:
            file.write(os.environ["TENUTO_COMMAND"] + "\\n")
        time.sleep(0.1)
        update(sessionUpdate="tool_call_update", toolCallId="one", status="completed")
        done = sum(1 for _ in open(sys.argv[1])) >= int(sys.argv[2])
        lines = "status: complete\\nevidence: effects\\nsummary: all" if done else "status: working"
        text = "```tenuto\\n" + lines + "\\n```"
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
        say({"id": number, "result": {"stopReason": "end_turn"}})
"""

HASTY = (
    "reconcile_separation=0.1", "fault_recoveries=1000", "stall_warn=100000", "stall_pause=100000",
    "look_at_living_turn=0.3",
)  # fmt: skip


def killed(stage: Stage, task: str, chance: random.Random) -> str:
    """Somebody is killed, if there is anybody; who it was."""
    who = chance.choice(["agent", "host", "supervisor"])
    if who == "supervisor":
        for one in psutil.process_iter():
            try:
                if one.environ().get("TENUTO_HOME") == str(stage.home.folder / "home") and "up" in one.cmdline():
                    one.send_signal(signal.SIGKILL)
                    one.wait(10)
            except psutil.Error:
                continue
        stage.home.tenuto("start")
        return who
    found = stage.host_of(task) if who == "host" else stage.carrying("TENUTO_TASK", task)
    for one in found[:1]:
        one.send_signal(signal.SIGKILL)
    return who if found else "nobody"


def storm(folder: Path, seed: int, kills: int, effects: int) -> tuple[Counter[str], Counter[str]]:
    """A task of so many effects with so many kills; how often each command was seen, and who was killed."""
    file, script = folder / "effects", folder / "agent.py"
    script.write_text(AGENT, "utf-8")
    stage = Stage(folder, "acp", f"acp:{sys.executable} {script} {file} {effects}")
    chance = random.Random(seed)

    def blow(task: str) -> Counter[str]:
        died = Counter[str]()
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 0.9))
            died[killed(stage, task, chance)] += 1
        return died

    return weathered(stage, file, blow, 300.0)


def weathered(
    stage: Stage, file: Path, blow: Callable[[str], Counter[str]], patience: float
) -> tuple[Counter[str], Counter[str]]:
    """A task on this stage to its end, while and after it blows, and what came of it."""
    folder, task = stage.home.folder, ""
    try:
        numbers = [part for one in HASTY for part in ("--policy", one)]
        task = stage.run("Make the effects.\n", *numbers)
        died = blow(task)
        shown = stage.ended(task, patience)
        assert shown["task"]["state"] == "completed", shown["task"]
        assert not [row for row in shown["commands"] if row["state"] in ("armed", "submitted", "ambiguous")]
        known = {row["id"] for row in shown["commands"]}
        seen = Counter(file.read_text("ascii").split())
        registry = sqlite3.connect(folder / "home" / "state" / "registry.sqlite3")
        known |= {row[0] for row in registry.execute("SELECT id FROM command")}
        registry.close()
        assert set(seen) <= known, "an effect of a command that was never written down"
        return seen, died
    finally:
        stage.close(*filter(None, [task]))


@pytest.mark.timeout(400)
def test_a_few_kills_and_each_command_is_seen_once_at_most(tmp_path: Path) -> None:
    seen, died = storm(tmp_path, seed=5, kills=5, effects=6)
    assert max(seen.values()) == 1
    assert sum(seen.values()) >= 6, died


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(4))
def test_many_kills_and_each_command_is_seen_once_at_most(tmp_path: Path, seed: int) -> None:
    seen, died = storm(tmp_path, seed=100 + seed, kills=40, effects=40)
    assert max(seen.values()) == 1
    assert sum(died.values()) == 40


class Once(ScriptedModel):
    """A model that has each turn call the tool once and then end; done at so many effects, once it is calm."""

    def __init__(self, tool: str, file: Path, effects: int) -> None:
        super().__init__([])
        told = f"echo $TENUTO_COMMAND >> {shlex.quote(str(file))}; sleep 0.3"
        name = "cmd" if tool == "exec_command" else "command"
        self._call = Call(tool, {name: told, "description": "make the effect"})
        self._file, self._effects = file, effects
        self.calm = threading.Event()

    async def _next(self) -> Say | Call | Fail:
        if not answered(self.bodies[-1]):
            return self._call
        seen = self._file.read_text("ascii").split() if self._file.exists() else []
        return Say(DONE if len(seen) >= self._effects and self.calm.is_set() else WORKING)


def answered(body: dict[str, Any]) -> bool:
    """Whether what a model is asked ends with what a tool has answered."""
    rows = body.get("messages") or body.get("input") or body.get("contents") or [{}]
    last = rows[-1]
    if last.get("role") == "tool" or last.get("type") == "function_call_output":
        return True
    parts = last.get("content") or last.get("parts") or []
    return isinstance(parts, list) and any(
        part.get("type") == "tool_result" or "functionResponse" in part for part in parts
    )


REAL = {"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command", "pi": "bash"}


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("agent", sorted(REAL))
def test_real_programs_are_killed_at_random_and_each_command_is_seen_once_at_most(tmp_path: Path, agent: str) -> None:
    seen, died = real_storm(tmp_path, agent, seed=len(agent), kills=40)
    assert max(seen.values()) == 1
    assert sum(died.values()) == 40


def real_storm(folder: Path, agent: str, seed: int, kills: int) -> tuple[Counter[str], Counter[str]]:
    """So many kills of somebody who was there, and a task that goes on until they are over."""
    file, chance = folder / "effects", random.Random(seed)
    with Once(REAL[agent], file, 5) as model:
        stage = Stage(folder, agent, model.url, *UNASKED)

        def blow(task: str) -> Counter[str]:
            died, end = Counter[str](), time.monotonic() + 90.0 * kills
            while sum(died.values()) < kills:
                time.sleep(chance.uniform(0.0, 3.0))
                who = killed(stage, task, chance)
                if who != "nobody":
                    died[who] += 1
                elif time.monotonic() > end:
                    raise TimeoutError(f"only {dict(died)} were there to be killed")
            model.calm.set()
            return died

        seen, died = weathered(stage, file, blow, 1800.0)
    sys.stdout.write(f"{agent}: {sum(seen.values())} effects of {len(seen)} commands, killed {dict(died)}\n")
    return seen, died
