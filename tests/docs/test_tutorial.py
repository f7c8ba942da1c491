"""The tutorial is done as it is written: its blocks are run in order, in a place of their own.

Only three things are put in: where the program is, which task is meant, and a shorter pause for the agent.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("tenuto")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITHIN = 120


class Reader:
    """Somebody who types what stands in the page, in one directory after the other."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = place / "first" / "home"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TENUTO_", "GIT_"))}
        self.environment = {**kept, "HOME": str(place), "TENUTO_HOME": str(self.home)}
        self.cwd = place

    def types(self, block: str) -> str:
        """Run a block where the last one ended; what it printed. A command that fails ends it."""
        end = self.place / "where"
        script = f'set -eu\ntenuto() {{ "{PROGRAM}" "$@"; }}\n{block}\npwd > "{end}"\n'
        said = subprocess.run(
            ["bash", "-c", script],
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        assert said.returncode == 0, f"{block}\nended with {said.returncode}:\n{said.stdout}{said.stderr}"
        self.cwd = Path(end.read_text("utf-8").strip())
        return said.stdout

    def tenuto(self, *arguments: str) -> str:
        """Ask the program something the page does not."""
        return subprocess.run(
            [PROGRAM, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=True,
        ).stdout

    def newest(self) -> str:
        """The task that was made last, by the end of its name."""
        task = json.loads(self.tenuto("tasks", "--json"))["tasks"][0]["id"]
        return str(task)[-6:]

    def waits_for_the_end_of(self, pid: int) -> None:
        """Until nobody has this number any more: whoever adopted the process has to collect it first."""
        until = time.monotonic() + WITHIN
        while time.monotonic() < until:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        raise TimeoutError(f"process {pid} is there still")

    def chapters(self) -> list[str]:
        """What the agent has committed, oldest first."""
        said = subprocess.run(
            ["git", "log", "--reverse", "--format=%s"],
            cwd=self.cwd,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        return said.stdout.splitlines()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader, and nothing of theirs left running."""
    one = Reader(tmp_path)
    yield one
    if one.home.exists():
        one.tenuto("stop")


@pytest.mark.timeout(240)
def test_the_tutorial_can_be_done(reader: Reader) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text("utf-8").replace("sleep 3 ", "sleep 1 ")
    _clone, _alias, away, agent, work, look, again, unkind, resume, why, leave = BLOCK.findall(page)
    book = ["An agent", "Chapter 1", "Chapter 2", "Chapter 3"]

    reader.types(away)
    reader.types(agent)
    assert "completed after 4 turns" in reader.types(work)
    assert reader.chapters() == book
    assert "was armed" in reader.types(look.replace("TASK", reader.newest()))

    reader.types(again)
    kill, pause, status = unkind.splitlines()
    pid = json.loads(reader.tenuto("status", "--json"))["pid"]
    reader.types(kill)
    reader.waits_for_the_end_of(pid)
    assert pause == "sleep 1"
    assert re.search("dead|gone", reader.types(status))
    assert "completed" in reader.types(resume.replace("TASK", reader.newest()))
    assert reader.chapters() == [*book, "Start over", *book[1:]]

    make, _, ask = why.partition("\n")
    reader.types(make)
    assert "manual" in reader.types(ask.replace("TASK", reader.newest()))
    reader.types(leave)
    assert not reader.home.exists()
