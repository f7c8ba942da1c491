"""A supervisor and a host executor as two processes with state of their own, killed at every point of a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.wire import dying_host

PATIENCE = 60.0
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
        assert time.monotonic() < end, what
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
        (path / "leads" / "config.toml").write_text("port = 0\n")

    @property
    def address(self) -> str:
        return str(self.path / "leads" / "state" / "api.sock")

    def tenuto(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """One command on the machine that leads."""
        return subprocess.run(
            [sys.executable, "-m", "tenuto", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env=self.leading,
        )

    def told(self, *arguments: str) -> dict[str, Any]:
        made = json.loads(self.tenuto(*arguments, "--json").stdout)
        assert isinstance(made, dict)
        return made

    def token(self, name: str) -> Path:
        """A token for a host of this name, in a file of its own."""
        path = self.path / f"{name}.token"
        if not path.exists():
            made = self.tenuto("token", "new", "--role", "executor", "--name", name)
            assert made.returncode == 0, made.stderr
            path.touch(0o600)
            path.write_text(made.stdout)
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
        program = f"{sys.executable} {self.agent} {work}"
        said = self.tenuto(
            "run", "--title", name, "--program", program, "--on", f"host:{name}", "--cwd", str(work), "--resumable",
            "--detach", text="Do the work.\n",
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        return said.stdout.strip()

    def completed(self, task: str) -> None:
        def over() -> bool:
            return str(self.told("show", task)["task"]["state"]) == "completed"

        end = time.monotonic() + PATIENCE
        while not over():
            assert time.monotonic() < end, self.tenuto("explain", task).stdout
            time.sleep(0.1)

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
    wait_for(
        lambda: machines.told("command", "list", "--task", task)["commands"][0]["state"] == "acknowledged", "never told"
    )
    child.kill()
    child.wait(PATIENCE)
    (work / "wait").unlink()
    machines.host("gone")
    machines.completed(task)
    assert len(effects(work)) == 1


POINTS = (
    "peer.heard",
    "handover.before_spawn",
    "handover.spawned",
    "handover.ordered",
    "peer.said_received",
    "peer.said_begun",
    "peer.said_accepted",
    "peer.said_ended",
)
HOST_POINTS = ("host.claimed", "host.begun", "host.spawned", "host.accepted", "host.before_ended")


@pytest.mark.parametrize("point", [*POINTS, *HOST_POINTS])
def test_a_host_that_dies_at_a_point_does_nothing_twice(machines: Machines, point: str) -> None:
    name = point.replace(".", "-").replace("_", "-")
    work = machines.work(name)
    child = machines.dying(name, point)
    task = machines.run(name, work)
    if point in POINTS:
        assert child.wait(PATIENCE) == -signal.SIGKILL
        machines.host(name)
    machines.completed(task) if point in POINTS else _replaced(machines, child, name, task)
    done = effects(work)
    assert len(done) == len(set(done)), "a command had two effects"
    assert done


def _replaced(machines: Machines, child: subprocess.Popen[bytes], name: str, task: str) -> None:
    """The processes that carry programs die, every one of them, until an honest host takes over."""
    wait_for(lambda: len(machines.told("command", "list", "--task", task)["commands"]) >= 1, "nothing was sent")
    machines.host(name)
    assert child.wait(PATIENCE) == 0, "the older instance leaves when a newer one comes"
    machines.completed(task)


def test_a_token_is_for_its_own_executor_and_for_nothing_else(machines: Machines) -> None:
    token = machines.token("mine")
    command = [sys.executable, "-m", "tenuto", "host", "--name", "yours", "--connect", machines.address]
    child = machines._begun([*command, "--token-file", str(token)], "yours")
    assert child.wait(PATIENCE) == 4
    assert "this token is not for host:yours" in (machines.path / "yours.log").read_text()
