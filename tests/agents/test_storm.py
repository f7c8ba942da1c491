"""Agents with a session while anybody is killed at any instant: agent, host, supervisor, in mid turn and in mid tool.

The agent writes the command of its turn into a file of effects, as the tool of a real one would; nobody else writes
there. So the file alone tells how often the world has seen a command, whatever the registry says.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from tests.support.agents import Stage

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
    chance, file, script = random.Random(seed), folder / "effects", folder / "agent.py"
    script.write_text(AGENT, "utf-8")
    stage = Stage(folder, "acp", f"acp:{sys.executable} {script} {file} {effects}")
    task, died = "", Counter[str]()
    try:
        numbers = [part for one in HASTY for part in ("--policy", one)]
        task = stage.run("Make the effects.\n", *numbers)
        for _ in range(kills):
            time.sleep(chance.uniform(0.0, 0.9))
            died[killed(stage, task, chance)] += 1
        shown = stage.ended(task, 300.0)
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
