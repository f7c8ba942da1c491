"""Homes of supervisors that share a registry, the programs they run, and a way to the database that can be cut."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

TIMEOUT = 240
PATIENCE = 120.0
AGENT = """
import os, sys, time
sys.stdin.read()
with open({effects!r}, "a") as file:
    file.write(os.environ["TENUTO_COMMAND"] + "\\n")
time.sleep({seconds})
turns = len(open({effects!r}).read().split())
word = "complete" if turns >= {turns} else "working"
print("```tenuto\\nstatus: " + word + "\\nsummary: turn " + str(turns) + "\\nevidence: done\\n```")
"""


SKEWED = Path(__file__).with_name("skewed.py")


def wait_for(true: Callable[[], object], what: str, within: float = PATIENCE) -> float:
    """Seconds until it was true; fails with `what` when it never was."""
    begun = time.monotonic()
    while time.monotonic() - begun < within:
        if true():
            return time.monotonic() - begun
        time.sleep(0.05)
    raise TimeoutError(f"within {within} s: {what}")


class Home:
    """One supervisor's home. `machine` is what it believes its machine is called, `off` how wrong its clock is."""

    def __init__(self, path: Path, database: str, machine: str | None = None, more: str = "", off: float = 0.0) -> None:
        self.path = path
        self.state = path / "state"
        self.database = database
        path.mkdir(parents=True, mode=0o700)
        named = f'machine = "{machine}"\n' if machine else ""
        (path / "config.toml").write_text(f'{named}database = "{database}"\nport = 0\n{more}', "utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")}
        self.environment = {**kept, "TENUTO_HOME": str(path), "COLUMNS": "200"}
        self.program = [sys.executable, "-m", "tenuto"] if not off else [sys.executable, str(SKEWED), str(off)]
        self.processes: list[subprocess.Popen[bytes]] = []

    def tenuto(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "tenuto", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env=self.environment,
        )

    def json(self, *arguments: str, text: str = "") -> dict[str, Any]:
        """What a command says with --json."""
        said = self.tenuto(*arguments, "--json", text=text)
        told = json.loads(said.stdout or "{}")
        assert isinstance(told, dict), said
        return told

    def up(self, *more: str) -> subprocess.Popen[bytes]:
        """A supervisor in the foreground, in a process of ours."""
        process = subprocess.Popen(
            [*self.program, "up", *more],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def leads(self) -> bool:
        """Whether the supervisor of this home leads, and answers."""
        found = self.ask("SELECT address FROM leadership WHERE released_at IS NULL")
        path = self.state / "api.sock"
        if found != [(str(path),)] or not path.exists():
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            return client.connect_ex(str(path)) == 0

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """What the registry answers; nothing while there is none, or it is away."""
        try:
            if not self.database.startswith("postgresql:"):
                with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as file:
                    return [tuple(row) for row in file.execute(sql).fetchall()]
            with psycopg.connect(self.database, connect_timeout=30) as server:
                return [tuple(row) for row in server.execute(sql.encode()).fetchall()]
        except (sqlite3.Error, psycopg.Error):
            return []

    def over(self, task: str) -> bool:
        """Whether a task has ended, one way or another."""
        return self.ask(f"SELECT state FROM task WHERE id = '{task}'") in ([("completed",)], [("failed",)])

    def led(self) -> None:
        """Wait until it does."""
        wait_for(self.leads, f"{self.path} leads; its log: {self.log()[-2000:]}")

    def run(self, program: str, cwd: Path, *more: str) -> str:
        """A task for a program; its id."""
        done = self.json(
            "run",
            "--detach",
            "--objective-file",
            "-",
            "--cwd",
            str(cwd),
            "--program",
            program,
            "--resumable",
            *more,
            text="Tidy up",
        )
        return str(done["result"]["task"])

    def task(self, task: str) -> dict[str, Any]:
        """The task as the command line tells it."""
        found = self.json("show", task).get("task")
        return found if isinstance(found, dict) else {}

    def log(self) -> str:
        """What its supervisor has written."""
        path = self.state / "supervisor.log"
        return path.read_text("utf-8") if path.exists() else ""

    def close(self) -> None:
        """End what was started here, and what that has started."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(timeout=30)
        journals = self.state / "journal"
        for journal in journals.glob("c-*.jsonl") if journals.is_dir() else ():
            for found in re.finditer(r'"pid":(\d+),"start":(\d+)', journal.read_text("utf-8")):
                _end(int(found[1]), int(found[2]))


def _end(pid: int, start: int) -> None:
    """End a process that is still the one that was started then."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        if int(told[19]) == start:
            os.kill(pid, signal.SIGKILL)
    except (OSError, IndexError):
        return


def program(folder: Path, effects: Path, *, turns: int = 1, seconds: float = 0.0) -> str:
    """An agent that leaves a line for every command it was begun for, before it does anything else."""
    path = folder / f"agent{len(list(folder.glob('agent*')))}.py"
    path.write_text(AGENT.format(effects=str(effects), turns=turns, seconds=seconds), "utf-8")
    return f"{sys.executable} {path}"


def effects_of(effects: Path) -> Counter[str]:
    """How often the world has seen each command."""
    return Counter(effects.read_text("utf-8").split()) if effects.exists() else Counter()


class Cut:
    """A way to a server that can be cut: while it is, nothing passes and nobody is told."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open = threading.Event()
        self._open.set()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Let nothing pass any more."""
        self._open.clear()

    def mend(self) -> None:
        """Let it pass again, what was held back first."""
        self._open.set()

    def close(self) -> None:
        """End it."""
        self._closed.set()
        self._open.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                coming, _ = self._listener.accept()
                going = socket.create_connection(("127.0.0.1", self._to), timeout=30)
            except OSError:
                continue
            threading.Thread(target=self._carry, args=(coming, going), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        pairs: Mapping[socket.socket, socket.socket] = {one: other, other: one}
        try:
            while not self._closed.is_set():
                ready, _, _ = select.select(list(pairs), [], [], 0.2)
                for side in ready:
                    self._open.wait()
                    data = side.recv(65536)
                    if not data:
                        return
                    pairs[side].sendall(data)
        except OSError:
            return
        finally:
            one.close()
            other.close()
