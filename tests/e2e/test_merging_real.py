"""A real chain that advances itself over a bare remote, while its supervisor, hosts and agents are killed at random.

Each unit is worked in a worktree, gated and reviewed at one commit by somebody else, and merged by one push. In the end
each unit is in the base once, by a command that says so, and nothing else is.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from pathlib import Path

import pytest
from tests.e2e import merge_agent, merge_gate
from tests.e2e.test_phases_real import left, over, standing
from tests.storm.weather import Storm
from tests.support.gits import git, remote
from tests.support.home import Home

pytestmark = pytest.mark.only_on("linux")
AGENT, GATE = Path(merge_agent.__file__), Path(merge_gate.__file__)
SETTINGS = "[policy]\nreconcile_separation = 0.1\nfault_recoveries = 30\nmerge_rate = 1000\n"


def advancing(folder: Path, units: int, kills: int, seed: int, seconds: float) -> None:
    home, at = Home(folder), remote(folder)
    storm, chance = Storm(folder, 0, seed), random.Random(seed)
    (folder / "home").mkdir(mode=0o700, exist_ok=True)
    (folder / "home" / "config.toml").write_text(SETTINGS)
    names = [f"u{number:02}" for number in range(1, units + 1)]
    queue = folder / "queue.json"
    queue.write_text(json.dumps({"version": 1, "units": [{"id": name} for name in names]}))
    storm._start()
    try:
        home.until("the supervisor", (folder / "home" / "state" / "api.sock").exists)
        program = f"{sys.executable} {AGENT}"
        made = home.json(
            "chain", "start", "--repo", str(at.bare), "--queue", str(queue), "--cwd", str(at.clone), "--resumable",
            "--program", program, "--max-tasks", str(6 * units), "--worktrees", "--attempt-cap", "20",
            "--merge-at", f"git:{at.bare}", "--gate", f"{sys.executable} {GATE}", "--reviewer", program,
            "--allow", "merge", "--file", "-", text="Add every file",
        )  # fmt: skip
        chain, until = made["result"]["chain"], time.monotonic() + seconds
        while not over(now := standing(storm)):
            if time.monotonic() > until:
                raise TimeoutError(f"not over after {seconds} s: {now}; killed {storm.killed}; {left(storm)}")
            if sum(storm.killed.values()) < kills and chance.random() < 0.5:
                storm._strike(chance)
            storm._start()
            time.sleep(chance.random() * 0.4)
        judge(home, at.bare, chain, names)
    finally:
        storm._end()


def judge(home: Home, bare: Path, chain: str, names: list[str]) -> None:
    """Each unit once in the base, each merge by one command of ours, each reviewed at its own commit."""
    told = home.json("chain", "status", chain)
    assert told["chain"]["state"] == "complete", told
    assert told["counts"] == {"done": len(names)}
    history = git(bare, "log", "--first-parent", "--format=%H%x1f%B%x1e", "main").split("\x1e")
    merges = [entry for entry in history if "tenuto-pull: " in entry]
    assert [re.search(r"\x1f(u\d+) ", entry)[1] for entry in reversed(merges)] == names  # type: ignore[index]
    commands = {row["id"]: row for row in home.json("command", "list")["commands"]}
    for entry in merges:
        (marker,) = re.findall(r"\[tenuto:(c-\S+)\]", entry)
        assert commands[marker]["kind"] == "merge"
        assert commands[marker]["state"] == "acknowledged"
    acknowledged = [row for row in commands.values() if row["kind"] == "merge" and row["state"] == "acknowledged"]
    assert len(acknowledged) == len(names), "as many merges as units, and no more"
    for number, name in enumerate(names, 1):
        assert git(bare, "show", f"main:unit-{name[1:]}.txt") == f"done {number}"
    if len(names) >= 2:
        links = [link for link in told["links"] if link["unit"] == "u02" and link["outcome"] == "failed"]
        assert any("only a draft" in (link["evidence"] or "") for link in links), told["links"]
    if len(names) >= 3:
        links = [link for link in told["links"] if link["unit"] == "u03" and link["outcome"] == "failed"]
        assert any("the gate is red" in (link["evidence"] or "") for link in links), told["links"]
    assert not home.json("command", "list", "--open")["commands"]


@pytest.mark.timeout(600)
def test_a_chain_that_advances_itself_while_everybody_is_killed(tmp_path: Path) -> None:
    advancing(tmp_path, 3, 5, 7, 540)


@pytest.mark.prove
@pytest.mark.timeout(2400)
def test_twenty_merges_and_forty_kills(tmp_path: Path) -> None:
    advancing(tmp_path, 20, 40, 8, 2000)
