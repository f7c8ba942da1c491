"""A supervisor, a chat site that lies as it is told, and a real browser with the real extension between them.

What the site's server accepted is the only truth there is about sends: `judge` holds every command against it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from tests.extension.browsers import BROWSERS, PATIENCE, Browser, until
from tests.support.home import Home
from tests.support.lab import Accepted, Answer, Lab

from tenuto.config import load
from tenuto.surfaces.cli.client import Client, Unreachable
from tenuto.surfaces.cli.exits import Failure
from tenuto.surfaces.routes import address

MARKER: Final = re.compile(r"\[tenuto:(c-[0-9a-z]+)\]")
OVER: Final = ("completed", "failed", "cancelled")


class Chats:
    """One of each, with the extension paired as ext:browser."""

    def __init__(self, home: Home, lab: Lab, browser: Browser) -> None:
        self.home = home
        self.lab = lab
        self.browser = browser

    def run(self, objective: str, *more: str) -> str:
        """A task for the chat; its id."""
        said = self.home.tenuto("run", "--chat", "chatgpt", "--objective-file", "-", "--detach", *more, text=objective)
        return said.strip()

    def ask(self, verb: str, **params: Any) -> dict[str, Any]:
        """One verb at the supervisor's socket, without a command line; while it is killed, once it is there again."""
        method, path, rest = address(verb, params)
        reads, key, places = method == "GET", uuid.uuid4().hex, load(self.home.environment)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                client = Client(places.socket, places.operator_token.read_text("utf-8").strip())
                told = client.ask(method, path, query=rest if reads else None, body=None if reads else rest, key=key)
                return cast(dict[str, Any], told.value)
            except (Unreachable, OSError, Failure) as error:
                if isinstance(error, Failure) and error.code != "unknown_outcome":
                    raise
                if time.monotonic() > end:
                    raise TimeoutError(f"nobody answered {verb}: {error}") from None
                time.sleep(0.1)

    def begin(self, objective: str) -> str:
        """As `run`, without a command line."""
        agent = {"adapter": "chatgpt", "argv": ["chatgpt"], "resumable": True, "on": "ext:browser"}
        made = self.ask("run.create", objective=objective, cwd=str(self.home.work), agent=agent)
        return str(made["result"]["task"])

    def shown(self, task: str) -> dict[str, Any]:
        """Everything about a task."""
        return self.home.json("show", task)

    def state(self, task: str) -> str:
        """Its state."""
        return str(self.shown(task)["task"]["state"])

    def ends(self, task: str, patience: float = 240.0) -> str:
        """Wait until it has ended; how."""
        until(f"the end of {task}", lambda: self.state(task) in OVER, patience)
        return self.state(task)

    def commands(self, task: str, kind: str = "send") -> list[dict[str, Any]]:
        """Its commands of a kind, newest first."""
        return [row for row in self.home.json("command", "list", "--task", task)["commands"] if row["kind"] == kind]

    def attention(self) -> list[dict[str, Any]]:
        """What only a person can settle."""
        return list(self.home.json("attention")["items"])

    def accepted_of(self, task: str) -> list[Accepted]:
        """The turns of this task that the site took."""
        mine = {row["id"] for row in self.commands(task)} | {row["id"] for row in self.commands(task, "steer")}
        return [turn for turn in self.lab.accepted() if mine & set(MARKER.findall(turn.text))]

    def judge(self) -> Counter[str]:
        """How often each command was accepted by the site's server; nothing twice, and no button but Send and Stop."""
        counted = Counter(MARKER.findall(turn.text)[0] for turn in self.lab.accepted() if MARKER.search(turn.text))
        twice = {command: count for command, count in counted.items() if count > 1}
        assert not twice, f"accepted more than once: {twice}"
        assert self.lab.pressed() == []
        return counted

    def leave_nothing(self) -> None:
        """What a test left unfinished is ended: it would go on in the next one, and take its answers."""
        for row in self.home.json("tasks")["tasks"]:
            if row["state"] not in OVER:
                self.home.tenuto("cancel", row["id"])

    def site(self, **send: int) -> None:
        """The user's own numbers for sending on the site, from the next turn on."""
        place = self.home.folder / "home" / "sites"
        place.mkdir(exist_ok=True)
        told = "\n".join(f"{name} = {value}" for name, value in {"patience_ms": 120_000, **send}.items())
        text = f'schema = "tenuto-site/1"\nextends = "chatgpt"\n[send]\n{told}\n'
        (place / "mine.new").write_text(text, "utf-8")
        (place / "mine.new").replace(place / "mine.toml")

    def kill_supervisor(self) -> None:
        """As a crash does it."""
        pid = int(self.home.json("status")["pid"])
        os.kill(pid, signal.SIGKILL)

    def forget_wakes(self, task: str) -> None:
        """Take away what a task is to be continued by, behind the back of a supervisor that is not there."""
        (registry,) = (self.home.folder / "home").rglob("registry.sqlite3")
        lost = "UPDATE wake SET consumed_at = created_at, revision = revision + 1"
        with contextlib.closing(sqlite3.connect(registry)) as rows, rows:
            rows.execute(f"{lost} WHERE task_id = ? AND consumed_at IS NULL", (task,))

    def start_supervisor(self) -> None:
        """Begin again, however long that takes on a loaded machine."""
        started(self.home)

    def connected(self) -> bool:
        """Whether the extension is connected."""
        told = self.home.json("executor", "list")["executors"]
        return any(row["name"] == "ext:browser" and row["connected"] for row in told)


def answering(turns: int, pieces: int = 4, pace: float = 0.05) -> Callable[[str], Answer]:
    """Answers with a signal block; each task's conversation is told to be complete with the `turns`th answer."""
    told: Counter[str] = Counter()

    def answer(prompt: str) -> Answer:
        told["all"] += 1
        word = "complete" if told["all"] >= turns else "working"
        lines = [f"status: {word}", f"summary: turn {told['all']}", f"progress: step {told['all']}", "evidence: done"]
        return Answer("Here it is.\n\n```tenuto\n" + "\n".join(lines) + "\n```\n", pieces, pace)

    return answer


def started(home: Home) -> None:
    """Have a supervisor lead; TimeoutError where none does however often it was started."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            home.tenuto("start", "--within", "40")
            return
        except (AssertionError, subprocess.TimeoutExpired) as error:
            if time.monotonic() > end:
                raise TimeoutError(f"no supervisor leads: {error}") from None


@contextmanager
def chats(folder: Path, kind: str, settings: str = "") -> Iterator[Chats]:
    """A world of its own, begun and ended. `settings` is the text of its configuration."""
    home = Home(folder / "h")
    if settings:
        (home.folder / "home").mkdir()
        (home.folder / "home" / "config.toml").write_text(settings, "utf-8")
    with Lab.start() as lab:
        try:
            started(home)
            place = Path(home.json("extension", "path", "--browser", kind)["path"])
            with BROWSERS[kind](place, lab) as browser:
                browser.pair(str(home.json("extension", "pair")["code"]))
                yield Chats(home, lab, browser)
        finally:
            subprocess.run(
                [sys.executable, "-m", "tenuto", "stop"], env=home.environment, cwd=home.work, timeout=60,
                check=False, capture_output=True,
            )  # fmt: skip
