"""A real chain over a real repository with a bare remote, while its supervisor is killed again and again.

Every unit is committed once, the queue names its commit, and the registry tells the same order as the history.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.e2e import chain_agent
from tests.support.home import PATIENCE, Home

AGENT = Path(chain_agent.__file__)


def chained(folder: Path, units: int, kills: int, seed: int) -> None:
    home, chance = Home(folder), random.Random(seed)
    bare, clone, queue = folder / "bare.git", folder / "work" / "clone", folder / "queue.json"
    chain_agent.git(folder, "init", "-q", "--bare", "-b", "main", str(bare))
    chain_agent.git(folder, "clone", "-q", str(bare), str(clone))
    chain_agent.git(clone, "commit", "-q", "--allow-empty", "-m", "begin")
    chain_agent.git(clone, "push", "-q", "origin", "HEAD:main")
    names = [f"u{number:02}" for number in range(1, units + 1)]
    queue.write_text(json.dumps({"version": 1, "units": [{"id": name} for name in names]}))
    home.tenuto("start")
    try:
        made = home.json(
            "chain", "start", "--repo", str(bare), "--queue", str(queue), "--cwd", str(clone), "--resumable",
            "--program", f"{sys.executable} {AGENT}", "--max-units", "100", "--file", "-", text="Add every file",
        )  # fmt: skip
        chain = made["result"]["chain"]
        until = time.monotonic() + 20 * units + PATIENCE
        while True:
            told = home.json("chain", "status", chain)
            if told["chain"]["state"] != "open":
                break
            if time.monotonic() > until:
                raise TimeoutError(f"not over: {told}")
            if kills and chance.random() < 0.6:
                kills -= 1
                os.kill(home.json("status")["pid"], signal.SIGKILL)
                home.tenuto("start")
            time.sleep(chance.random() * 0.5)
        assert told["chain"]["state"] == "complete", told
        assert told["chain"]["processed"] == units
        rows = {row["id"]: row for row in json.loads(queue.read_text())["units"]}
        log = chain_agent.git(bare, "log", "--reverse", "--format=%H %s", "main").splitlines()[1:]
        assert [line.split(" ", 1)[1] for line in log] == [f"unit {name}" for name in names], "each once, in order"
        assert {name: row["state"] for name, row in rows.items()} == dict.fromkeys(names, "done")
        links = [link for link in reversed(told["links"]) if link["outcome"] == "done"]
        assert [link["unit"] for link in links] == names[-len(links) :]
        assert len({link["unit"] for link in links}) == len(links)
        assert not home.json("command", "list", "--open")["commands"]
    finally:
        subprocess.run(
            [sys.executable, "-m", "tenuto", "stop"], check=False, capture_output=True, timeout=60,
            env=home.environment, cwd=home.work,
        )  # fmt: skip


def test_a_chain_of_units_over_a_real_repository_with_kills(tmp_path: Path) -> None:
    chained(tmp_path, 8, 4, 7)


@pytest.mark.prove
def test_forty_units_with_kills_all_along(tmp_path: Path) -> None:
    chained(tmp_path, 40, 60, 8)
