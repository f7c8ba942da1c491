"""A registry whose tasks are worked by real agent programs that talk to a scripted model; any of them can be killed.

Every program, host and supervisor is found by what it carries or says of itself, and only those of this very home.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from tests.support.home import Home
from tests.support.model_dialects import Asked
from tests.support.programs import Server, claude, codex, gemini, installed, opencode, pi
from tests.support.scripted_model import Say, ScriptedModel, Step

PATIENCE = 150.0
NAMES = {"HOME", "PATH"}
UNASKED = ("-c", "approval_policy='\"never\"'", "-c", "sandbox_mode='\"danger-full-access\"'")
"""How Codex is told that it may do everything unasked."""


def block(status: str, **lines: str) -> str:
    """An answer with an output block."""
    told = "".join(f"{name}: {value}\n" for name, value in lines.items())
    return f"Some words.\n\n```tenuto\nstatus: {status}\n{told}```\n"


DONE = block("complete", evidence="log", summary="all of it")
WORKING = block("working", progress="log", next="the rest")


def answers(times: int, recovered: str = DONE, other: str = "Words of a turn that nobody hears.") -> list[Say]:
    """Answers for whoever asks: one to a prompt of recovery, another to anybody else."""

    def told(asked: Asked) -> str:
        return recovered if any("did not come to its own end" in text for text in asked.words) else other

    return [Say(told)] * times


def lined(folder: Path, agent: str, about: str, *flags: str) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """How `tenuto run --agent` names a program against the model at `about`, its variables, and the names it needs.

    For `acp` `about` is the line itself.
    """
    place = folder / "agent-home"
    match agent:
        case "acp":
            return about, {}, ()
        case "claude":
            made = claude(place, about, Server(command=("true",)))
            line = f"claude:{installed('@anthropic-ai/claude-code-*/claude')} --allowedTools Bash"
        case "gemini":
            made = gemini(folder, about)
            line = f"gemini:{' '.join(made.argv)}"
        case "opencode":
            made = opencode(folder, about)
            line = f"opencode:{' '.join(made.argv)}"
        case "pi":
            made = pi(folder, about)
            line = f"pi:{' '.join(made.argv)}"
        case _:
            made = codex(place, about, Server(command=("true",)))
            line = f"codex:{installed('@openai/codex-*/vendor/*/bin/codex')} {' '.join(flags)}"
            settings = place / ".codex" / "config.toml"
            told, _, _ = settings.read_text("utf-8").partition("[mcp_servers")
            settings.write_text(told, "utf-8")
    environment = {name: value for name, value in made.environment.items() if name not in NAMES}
    if agent == "codex":
        environment["CODEX_HOME"] = str(place / ".codex")
    return line, environment, ("SCRIPTED_KEY",) if agent == "codex" else ()


class Stage:
    """One home with one sort of agent program. `line` is how `tenuto run --agent` names it.

    `about` is the model's address, or for `acp` the line itself.
    """

    def __init__(self, folder: Path, agent: str, about: str, *flags: str) -> None:
        self.home = Home(folder)
        self.log = self.home.work / "log"
        self.line, environment, self.named = lined(folder, agent, about, *flags)
        self.home.environment |= environment
        self.home.tenuto("start")

    def run(self, objective: str = "Keep the log.\n", *more: str) -> str:
        """A task under way."""
        names = [part for name in self.named for part in ("--env", name)]
        return self.home.tenuto("run", "--agent", self.line, "--detach", *names, *more, text=objective).strip()

    def shown(self, task: str) -> dict[str, Any]:
        """Everything about a task."""
        return self.home.json("show", task)

    def rows(self, sentence: str, *values: str) -> list[sqlite3.Row]:
        """What the registry holds, read beside its supervisor."""
        file = self.home.folder / "home" / "state" / "registry.sqlite3"
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(sentence, values).fetchall()

    def ended(self, task: str, patience: float = PATIENCE) -> dict[str, Any]:
        """Everything about a task, once it is over."""
        over = "SELECT 1 FROM task WHERE id = ? AND ended_at IS NOT NULL"
        try:
            self.home.until("its end", lambda: bool(self.rows(over, task)), patience)
        except TimeoutError as late:
            raise TimeoutError(f"{self.told(task)}\n{self.home.tenuto('explain', task)}") from late
        return self.shown(task)

    def told(self, task: str) -> str:
        """The journals and the host's own log, for a failure's message."""
        place = self.home.folder / "home" / "state" / "agents" / task
        found = sorted((place / "journal").glob("*.jsonl"))
        return "\n".join(one.read_text("utf-8")[-3000:] for one in [*found, place / "host.log"] if one.exists())

    def until_logged(self, line: str, times: int = 1) -> None:
        """Wait until the work's own log holds a line."""
        self.home.until(line, lambda: self.logged().count(line) >= times)

    def logged(self) -> list[str]:
        """What was done, as the disk tells it."""
        return self.log.read_text("utf-8").split() if self.log.exists() else []

    def carrying(self, name: str, value: str) -> list[psutil.Process]:
        """Every process with this in its environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def host_of(self, task: str) -> list[psutil.Process]:
        """The host of a task."""
        return self.carrying("TENUTO_AGENT_HOST", f"agent:{task}")

    def program_of(self, task: str) -> psutil.Process:
        """The agent program of a task's turn: the leader of what carries the task."""
        (found,) = [one for one in self.carrying("TENUTO_TASK", task) if os.getsid(one.pid) == one.pid and
                    one.parent() is not None and one.parent() in self.host_of(task)]  # fmt: skip
        return found

    def kill(self, who: str, task: str) -> None:
        """SIGKILL for the agent program, its host, or the supervisor, which is then started again."""
        match who:
            case "agent":
                self.program_of(task).send_signal(signal.SIGKILL)
            case "host":
                (host,) = self.host_of(task)
                host.send_signal(signal.SIGKILL)
            case _:
                psutil.Process(self.home.json("status")["pid"]).send_signal(signal.SIGKILL)
                self.home.tenuto("start")

    def close(self, *tasks: str) -> None:
        """Stop the supervisor and end the hosts of these tasks; nothing of them may be left."""
        self.home.tenuto("stop")
        for task in tasks:
            for one in [*self.host_of(task), *self.carrying("TENUTO_TASK", task)]:
                with_gone(one)
        for task in tasks:
            assert not self.carrying("TENUTO_TASK", task), "something of the agent is left"


@contextmanager
def staged(
    folder: Path, agent: str, steps: Sequence[Step], *flags: str, ready: Callable[[Stage], None] | None = None
) -> Iterator[tuple[Stage, ScriptedModel, list[str]]]:
    """A stage whose programs talk to these answers; `ready` has it before its first task. The tasks named are ended."""
    with ScriptedModel(steps) as model:
        stage, tasks = Stage(folder, agent, model.url, *flags), list[str]()
        try:
            if ready is not None:
                ready(stage)
            yield stage, model, tasks
        finally:
            stage.close(*tasks)


def with_gone(process: psutil.Process) -> None:
    """End one process and wait for it."""
    try:
        process.terminate()
        process.wait(10)
    except (psutil.NoSuchProcess, ChildProcessError):
        return
    except psutil.TimeoutExpired:
        process.kill()


def logging(*words: str, pause: float = 0.0) -> dict[str, Any]:
    """Arguments of a shell tool: the words go into the log, one after the other."""
    command = f"; sleep {pause}; ".join(f"echo {word} >> log" for word in words)
    return {"command": command}
