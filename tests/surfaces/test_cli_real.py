"""The program itself, as a user runs it: real processes, a real supervisor, a registry in a directory of its own."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 60
PATIENCE = 90.0
Said = subprocess.CompletedProcess[str]


class Home:
    """One registry and whoever works there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "work"
        self.work.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")}
        self.environment = {**kept, "TENUTO_HOME": str(path / "home"), "COLUMNS": "100"}

    def tenuto(self, *arguments: str, text: str = "", environment: Mapping[str, str] | None = None) -> Said:
        """Run one command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "tenuto", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            cwd=self.work,
            env={**self.environment, **(environment or {})},
        )

    def json(self, *arguments: str) -> dict[str, Any]:
        """What a command says with --json."""
        said = self.tenuto(*arguments, "--json")
        told = json.loads(said.stdout)
        assert isinstance(told, dict), said
        return told

    def agent(self, name: str, body: str) -> str:
        """A program that is given prompts; `said(...)` ends its turn with a block."""
        path = self.path / name
        path.write_text(AGENT + body, "utf-8")
        return f"{sys.executable} {path}"

    def start(self, program: str, *more: str) -> Said:
        """`tenuto run` with an objective on standard input."""
        return self.tenuto("run", "--title", "A task", "--program", program, *more, text="Do the work.\n")

    def task(self) -> str:
        """The newest task."""
        return str(self.json("tasks")["tasks"][0]["id"])

    def until(self, path: Path) -> None:
        """Wait for a file that an agent makes."""
        wait_for(path.exists, f"{path.name} was not made")


def wait_for(holds: Any, otherwise: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(0.02)


AGENT = """
import os, subprocess, sys, time
from pathlib import Path

prompt = sys.stdin.read()


def said(status, **lines):
    told = "".join(f"{name}: {value}\\n" for name, value in lines.items())
    print(f"```tenuto\\nstatus: {status}\\nsummary: a turn\\n{told}```")


def until(path):
    end = time.monotonic() + 30
    while not Path(path).exists():
        if time.monotonic() > end:
            raise SystemExit(f"{path} never came")
        time.sleep(0.02)


def tenuto(*arguments):
    return subprocess.run([sys.executable, "-m", "tenuto", *arguments], capture_output=True, text=True, timeout=50)


"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    before = home.json("status")
    stopped = home.tenuto("stop")
    if stopped.returncode != 0 and before["pid"] and before["standing"] in ("live", "stop-fenced", "stale-alive"):
        os.kill(before["pid"], signal.SIGKILL)
    assert stopped.returncode == 0, stopped.stderr


def test_a_run_starts_a_supervisor_and_ends_with_its_task(home: Home) -> None:
    program = home.agent(
        "three.py",
        "n = len(list(Path('.').iterdir()))\nPath(f'f{n}').write_text('x')\n"
        "said('complete', evidence='f2') if n == 2 else said('working', progress=f'f{n}')\n",
    )
    said = home.start(program, "--resumable", "--accept-file", "f2")
    assert said.returncode == 0, said.stderr
    assert said.stdout == f"completed after 3 turns: a turn (f2)\nmore: tenuto show {home.task()}\n"
    assert said.stderr.startswith("no supervisor was running: started one, pid ")
    assert len(said.stderr.splitlines()) == 1, "in a pipe nothing is said on the way"

    task = home.task()
    shown = home.tenuto("show", task[-8:])
    assert "completed, verified" in shown.stdout
    assert "\x1b" not in shown.stdout
    followed = home.tenuto("follow", task[:14], "--json")
    assert followed.returncode == 0
    assert json.loads(followed.stdout.splitlines()[-1])["disposition"]["reference"] == "f2"
    assert home.json("explain", task)["because"]["rung"] == "terminal"
    assert [one["number"] for one in home.json("show", task)["attempts"]] == [3, 2, 1]
    assert home.json("events", "--task", task, "--limit", "1000")["events"][0]["kind"] == "task.created"


def test_a_question_ends_with_8_and_its_answer_goes_on(home: Home) -> None:
    program = home.agent(
        "asks.py", "said('complete', evidence='x') if 'teal' in prompt else said('blocked', needs='which colour?')\n"
    )
    said = home.start(program, "--resumable")
    assert said.returncode == 8, said.stderr
    task = home.task()
    assert "which colour?" in said.stdout
    assert f"do: tenuto answer {task} --file ANSWER" in said.stdout
    assert "which colour?" in home.tenuto("attention").stdout
    answered = home.tenuto("answer", task, "--file", "-", text="teal, please")
    assert answered.returncode == 0, answered.stderr
    followed = home.tenuto("follow", task)
    assert (followed.returncode, followed.stdout.splitlines()[0]) == (
        0,
        "completed after 2 turns: a turn (x), unverified",
    )
    again = home.tenuto("answer", task, "--file", "-", text="red")
    assert (again.returncode, again.stderr.startswith("error: ")) == (4, True)


def test_a_program_that_says_nothing_is_a_persons(home: Home) -> None:
    said = home.start(home.agent("silent.py", "Path('ran').touch()\n"))
    assert said.returncode == 8, said.stderr
    assert (home.work / "ran").exists()
    assert len(home.json("show", home.task())["attempts"]) == 1, "it was run again unasked"


def test_a_failed_task_ends_with_1(home: Home) -> None:
    program = home.agent("fails.py", "tenuto('fail', '--reason', 'cannot be done')\nsaid('working')\n")
    said = home.start(program, "--resumable")
    assert said.returncode == 1, said.stderr
    assert "cannot be done" in said.stdout


def test_ctrl_c_lets_go_and_the_work_goes_on(home: Home) -> None:
    program = home.agent("slow.py", "Path('begun').touch()\nuntil('go')\nsaid('complete', evidence='x')\n")
    with subprocess.Popen(
        [sys.executable, "-m", "tenuto", "run", "--program", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home.work,
        env=home.environment,
    ) as watching:
        assert watching.stdin is not None
        watching.stdin.write("Be slow.\n")
        watching.stdin.close()
        watching.stdin = None
        home.until(home.work / "begun")
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=TIMEOUT)
    assert (watching.returncode, out) == (130, ""), err
    assert f"tenuto follow {home.task()}" in err
    assert home.json("explain", home.task())["because"]["rung"] == "live"
    (home.work / "go").touch()
    assert home.tenuto("follow", home.task()).returncode == 0


def test_the_operators_verbs_on_a_manual_task(home: Home) -> None:
    program = home.agent("works.py", "Path(f'{time.monotonic_ns()}').touch()\nsaid('working', progress='one more')\n")
    first = home.start(program, "--manual", "--detach", "--key", "k", "--policy", "stall-pause=9")
    assert first.returncode == 0, first.stderr
    task = first.stdout.strip()
    again = home.start(program, "--manual", "--detach", "--key", "k", "--policy", "stall-pause=9")
    assert again.stdout.strip() == task
    other = home.start(program, "--manual", "--detach", "--key", "k")
    assert other.returncode == 5

    waiting = home.tenuto("follow", task)
    assert (waiting.returncode, "its policy is manual" in waiting.stdout) == (8, True)
    assert home.tenuto("continue", task).returncode == 0
    wait_for(lambda: len(list(home.work.iterdir())) == 1, "it was not continued")
    assert home.tenuto("follow", task).returncode == 8
    for line in ("pause", "resume", "checkpoint request", "policy set {} max-attempts=3", "show", "cancel"):
        words = line.split() if "{}" in line else [*line.split(), "{}"]
        said = home.tenuto(*(word.replace("{}", task) for word in words))
        assert said.returncode == 0, (line, said.stderr)
    sources = {row["name"]: row["source"] for row in home.json("policy", "show", task)["policy"]}
    assert (sources["max_attempts"], sources["stall_pause"]) == ("task", "run")
    assert home.tenuto("follow", task).returncode == 1
    assert home.tenuto("show", home.json("runs")["runs"][0]["id"]).returncode == 0


def test_what_a_turn_says_while_no_supervisor_is_there_is_not_lost(home: Home) -> None:
    program = home.agent(
        "late.py",
        "Path('begun').touch()\nuntil('go')\n"
        "told = tenuto('complete', '--evidence', 'x')\n"
        "Path('told').write_text(told.stdout + told.stderr)\nsaid('working')\n",
    )
    task = home.start(program, "--detach").stdout.strip()
    home.until(home.work / "begun")
    assert home.tenuto("stop").returncode == 0
    (home.work / "go").touch()
    home.until(home.work / "told")
    assert "it is written down" in (home.work / "told").read_text("utf-8")
    assert home.tenuto("start").returncode == 0
    followed = home.tenuto("follow", task)
    assert followed.returncode == 0, followed.stdout + followed.stderr


def test_an_agent_opens_its_own_task_and_no_more(home: Home) -> None:
    program = home.agent(
        "curious.py",
        "codes = [tenuto(*line.split()).returncode for line in ('show', 'hold', 'tasks', 'stop', 'token --show')]\n"
        "Path('codes').write_text(' '.join(map(str, codes)))\nsaid('complete', evidence='x')\n",
    )
    said = home.start(program)
    assert said.returncode == 0, said.stdout + said.stderr
    assert (home.work / "codes").read_text("utf-8") == "0 4 4 4 4"


def test_without_a_supervisor_one_may_look_and_not_touch(home: Home) -> None:
    assert home.start(home.agent("done.py", "said('complete', evidence='x')\n")).returncode == 0
    task = home.task()
    assert home.tenuto("stop").returncode == 0
    for line in ("tasks", "runs", f"show {task}", f"explain {task}", "attention", "events", "command list"):
        said = home.tenuto(*line.split())
        assert said.returncode == 0, (line, said.stderr)
        assert "no supervisor is running" in said.stderr
        assert said.stdout
    said = home.tenuto("pause", task)
    assert (said.returncode, said.stderr.splitlines()[-1]) == (3, "mend: tenuto start")
    assert home.tenuto("follow", task).returncode == 3
    assert home.json("status")["standing"] == "missing"


def test_there_is_one_supervisor_and_a_restart_is_another(home: Home) -> None:
    assert home.json("start")["started"] is True
    first = home.json("status")
    assert home.json("start")["started"] is False
    assert home.tenuto("up").returncode == 5
    assert home.tenuto("restart").returncode == 0
    second = home.json("status")
    assert (second["standing"], second["epoch"]) == ("live", first["epoch"] + 1)
    assert second["pid"] != first["pid"]
    assert home.tenuto("doctor").returncode == 0
    assert "leading with epoch" in home.tenuto("logs").stdout
    os.kill(second["pid"], signal.SIGKILL)
    wait_for(lambda: home.json("status")["standing"] == "fresh-dead", "its end was not noticed")
    assert home.json("start")["started"] is True, "whoever is proven dead may be succeeded at once"


def test_no_secret_stands_in_the_process_table_or_the_log(home: Home) -> None:
    program = home.agent("waits.py", "Path('begun').touch()\nuntil('go')\nsaid('complete', evidence='x')\n")
    task = home.start(program, "--detach").stdout.strip()
    home.until(home.work / "begun")
    token = home.tenuto("token", "--show").stdout.strip()
    pid = home.json("status")["pid"]
    said = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=True)
    assert "tenuto" in said.stdout
    assert token not in said.stdout
    (home.work / "go").touch()
    assert home.tenuto("follow", task).returncode == 0
    assert token not in home.tenuto("logs", "-n", "1000").stdout


STATUS = [sys.executable, "-m", "tenuto", "status"]


def test_status_loads_nothing_heavy(home: Home) -> None:
    assert home.tenuto("start").returncode == 0
    said = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tenuto", "status"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
        env=home.environment,
    )
    loaded = {line.rpartition("|")[2].strip() for line in said.stderr.splitlines() if line.startswith("import time:")}
    assert "tenuto.surfaces.cli.glancing" in loaded
    heavy = {"sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn", "pydantic", "typer", "rich"}
    assert not heavy & loaded


@pytest.mark.prove
def test_status_answers_at_once(home: Home) -> None:
    assert home.tenuto("start").returncode == 0
    took = []
    for _ in range(9):
        began = time.monotonic()
        subprocess.run(STATUS, check=True, capture_output=True, timeout=TIMEOUT, env=home.environment)
        took.append(time.monotonic() - began)
    assert statistics.median(took) <= 0.150
