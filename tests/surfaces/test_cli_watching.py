"""Supervision at the command line, over a real supervisor and a tool server's real files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.surfaces.test_cli_real import Home, wait_for

from tenuto.transports.localshell import servers

DATA = Path(__file__).parent.parent / "data" / "localshell"
SESSION = "s_" + "1" * 24


def settled(home: Home, health: str) -> None:
    wait_for(lambda: home.json("tasks")["tasks"][0]["health"]["value"] == health, f"it never was {health}")


def test_a_call_in_flight_is_seen_explained_and_waited_for(tmp_path: Path) -> None:
    home = Home(tmp_path)
    state = tmp_path / "lsm"
    (state / "sessions").mkdir(parents=True)
    (state / "jobs").mkdir()
    shutil.copy(DATA / "jobs.json", state / "jobs.json")
    session = state / "sessions" / f"{SESSION}.json"
    server = tmp_path / "local-shell-mcp"
    server.write_text("import time\ntime.sleep(300)\n")
    environment = {**os.environ, "LOCAL_SHELL_MCP_STATE_DIR": str(state)}
    running = subprocess.Popen([sys.executable, str(server)], env=environment)
    wait_for(lambda: servers.alive(state).since, "the server's process is not found")
    now = time.time() + 2  # the start of a process is known to a second only
    tree = json.loads((DATA / "session-v1.json").read_text())
    calling = {"f" * 32: {"started_at": now, "heartbeat_at": now}}
    session.write_text(json.dumps(tree | {"in_flight_calls": calling}))
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text(f'[tool_servers]\nlocal = "{state}"\n')
    program = home.agent("agent.py", 'said("working", "on it")\n')
    try:
        assert home.tenuto("start").returncode == 0
        assert home.start(program, "--manual", "--detach").returncode == 0
        task = home.task()
        settled(home, "starting")
        assert SESSION in home.tenuto("tool", "list").stdout
        assert home.tenuto("tool", "bind", task, "--session", SESSION).returncode == 0
        settled(home, "running")
        told = home.tenuto("dispatch", "plan", task)
        assert "holds  tool: a tool call is in flight" in told.stdout
        refused = home.tenuto("dispatch", "execute", task, "--confirm-task", task)
        assert (refused.returncode, "in flight" in refused.stderr) == (4, True)
        assert home.tenuto("dispatch", "execute", task, "--confirm-task", task[:-1]).returncode == 2
        shown = home.tenuto("observe", task)
        assert shown.stdout.startswith("running (high, row 5)")
        assert "call heartbeat" in shown.stdout
        assert "running" in home.tenuto("tasks").stdout
        assert "nothing needs a person" in home.tenuto("attention").stdout
        jobs = home.json("job", "list", task)["jobs"]
        assert home.tenuto("job", "mark-service", task, jobs[0]["id"]).returncode == 0
        seen = tmp_path / "seen.json"
        seen.write_text(
            json.dumps([{"source": "me", "subject": "page", "seen_at": "2026-03-01T12:00:00Z", "facts": {"calls": 1}}])
        )
        assert "1 kept" in home.tenuto("observe", task, "--file", str(seen)).stdout
        session.write_text(json.dumps(tree))
        assert "two looks agree" not in home.tenuto("reconcile", task).stdout
        assert home.json("orchestrate")["considered"][0]["task"] == task
        sent = home.json("dispatch", "execute", task, "--confirm-task", task)
        assert sent["result"]["command"].startswith("c-")
        wait_for(lambda: home.json("show", task)["task"]["attempts"] == 1, "no turn was made")
        assert home.json("lease", "list", task)["holder"]
        session.write_text(json.dumps(tree | {"in_flight_calls": calling}))
        running.kill()
        running.wait(30)
        wait_for(lambda: home.json("observe", task)["tools"][0]["calls"][0]["state"] == "orphaned", "it has no orphan")
        assert "outlived" in home.tenuto("dispatch", "plan", task).stdout
    finally:
        home.tenuto("stop")
        running.kill()
        running.wait(30)
