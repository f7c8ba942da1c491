"""A supervisor and a host executor as two processes with state of their own, killed at every point of a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.wire import dying_host

from tenuto.surfaces.cli.client import Client

PATIENCE = 120.0
AGENT = """
import os, sys, time
from pathlib import Path

sys.stdin.read()
here = Path(sys.argv[1])
with (here / "effects").open("a") as file:
    file.write(os.environ["TENUTO_COMMAND"] + "\\n")
until = time.monotonic() + 60
while (here / "wait").exists() and time.monotonic() < until:
    time.sleep(0.02)
print("```tenuto\\nstatus: complete\\nsummary: a turn\\nevidence: effects\\n```")
"""


def wait_for(true: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)


class Machines:
    """One machine that leads, and one that lends its programs to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.agent = path / "agent.py"
        self.agent.write_text(AGENT, "utf-8")
        self.children: list[subprocess.Popen[bytes]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")}
        self.leading = {**kept, "TENUTO_HOME": str(path / "leads"), "COLUMNS": "100"}
        self.lending = {**kept, "TENUTO_HOME": str(path / "lends"), "COLUMNS": "100"}
        (path / "leads").mkdir()
        (path / "leads" / "config.toml").write_text("port = 0\n[policy]\nretry_unsent = [0.2]\nfault_recoveries = 50\n")

    @property
    def address(self) -> str:
        return str(self.path / "leads" / "state" / "api.sock")

    def tenuto(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command on the machine that leads."""
        return subprocess.run(
            [sys.executable, "-m", "tenuto", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env=self.leading,
        )

    def ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """One request to whoever leads."""
        token = (self.path / "leads" / "state" / "operator.token").read_text("ascii").strip()
        key = None if method == "GET" else f"{time.monotonic_ns()}"
        client = Client(Path(self.address), token)
        made = client.ask(method, f"/api/v1{path}", body=None if method == "GET" else body, key=key).value
        assert isinstance(made, dict)
        return made

    def token(self, name: str) -> Path:
        """A token for a host of this name, in a file of its own."""
        path = self.path / f"{name}.token"
        if not path.exists():
            made = self.ask("POST", "/tokens", role="executor", name=name)
            path.touch(0o600)
            path.write_text(made["result"]["secret"])
        return path

    def host(self, name: str) -> subprocess.Popen[bytes]:
        """An honest host."""
        command = [sys.executable, "-m", "tenuto", "host", "--name", name, "--connect", self.address]
        return self._begun([*command, "--token-file", str(self.token(name))], name)

    def dying(self, name: str, point: str, count: int = 1) -> subprocess.Popen[bytes]:
        """A host that dies at a point."""
        journal = self.path / "lends" / "state" / "hosts" / name
        command = [sys.executable, dying_host.__file__, self.address, str(self.token(name)), name, str(journal)]
        return self._begun([*command, point, str(count)], name)

    def _begun(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        with (self.path / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, env=self.lending, cwd=self.path)
        self.children.append(child)
        return child

    def work(self, name: str) -> Path:
        """A directory for a task, and whoever works there."""
        made = self.path / f"work-{name}"
        made.mkdir()
        return made

    def run(self, name: str, work: Path) -> str:
        """A task on a host; its name."""
        agent = {"argv": [sys.executable, str(self.agent), str(work)], "resumable": True, "on": f"host:{name}"}
        made = self.ask("POST", "/runs", title=name, objective="Do the work.", cwd=str(work), agent=agent)
        return str(made["result"]["task"])

    def completed(self, task: str) -> bool:
        return str(self.ask("GET", f"/tasks/{task}")["task"]["state"]) == "completed"

    def commands(self, task: str) -> list[str]:
        """The states of a task's commands, newest first."""
        return [str(each["state"]) for each in self.ask("GET", f"/tasks/{task}")["commands"]]

    def close(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in self.children:
            child.wait(PATIENCE)
        self.tenuto("stop")


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    made = Machines(tmp_path_factory.mktemp("m"))
    started = made.tenuto("start")
    assert started.returncode == 0, started.stderr
    yield made
    made.close()


def effects(work: Path) -> list[str]:
    try:
        return (work / "effects").read_text().split()
    except FileNotFoundError:
        return []


def test_its_programs_go_on_while_a_host_is_dead_and_it_tells_their_end(machines: Machines) -> None:
    work = machines.work("gone")
    (work / "wait").touch()
    task = machines.run("gone", work)
    child = machines.host("gone")
    wait_for(lambda: effects(work), "no turn began")
    wait_for(lambda: machines.commands(task) == ["acknowledged"], "the beginning was never told")
    child.kill()
    child.wait(PATIENCE)
    (work / "wait").unlink()
    machines.host("gone")
    wait_for(lambda: machines.completed(task), "the end was never told")
    assert len(effects(work)) == 1


POINTS = (
    "peer.heard",
    "handover.before_spawn",
    "handover.spawned",
    "handover.ordered",
    "peer.said_accepted",
    "peer.said_ended",
)
HOST_POINTS = ("host.claimed", "host.begun", "host.spawned", "host.accepted", "host.before_ended")


def test_whoever_dies_at_whichever_point_nothing_is_done_twice(machines: Machines) -> None:
    """All of them at once, so that it costs little: a host executor each, and a task on each."""
    names = {point: point.replace(".", "-").replace("_", "-") for point in (*POINTS, *HOST_POINTS)}
    works = {point: machines.work(name) for point, name in names.items()}
    dying = {point: machines.dying(name, point) for point, name in names.items()}
    tasks = {point: machines.run(name, works[point]) for point, name in names.items()}
    for point in POINTS:
        assert dying[point].wait(PATIENCE) == -signal.SIGKILL, point
    for point in HOST_POINTS:  # here the processes that carry programs die, one after the other
        wait_for(partial(machines.commands, tasks[point]), f"nothing was sent to {point}")
    for name in names.values():
        machines.host(name)
    for point in HOST_POINTS:
        assert dying[point].wait(PATIENCE) == 4, "the older instance leaves when a newer one comes"
    for point, task in tasks.items():
        wait_for(partial(machines.completed, task), f"the task of {point} did not end")
        done = effects(works[point])
        assert done, point
        assert len(done) == len(set(done)), f"{point}: a command had two effects"


def test_a_token_is_for_its_own_executor_and_for_nothing_else(machines: Machines) -> None:
    token = machines.token("mine")
    command = [sys.executable, "-m", "tenuto", "host", "--name", "yours", "--connect", machines.address]
    child = machines._begun([*command, "--token-file", str(token)], "yours")
    assert child.wait(PATIENCE) == 4
    assert "this token is not for host:yours" in (machines.path / "yours.log").read_text()
