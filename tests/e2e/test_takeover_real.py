"""A real Local Shell MCP server whose session is taken over by its own tools, and supervisors that die at it.

Version 4.0.1 fences its runs: one command makes one new run, wherever the supervisor dies, and our lease passes only
when that run was seen. Version 5.1.4 has no such fence: there our own lease is the fence, and says so.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.localshell import Refused, Session, Shell

pytestmark = [pytest.mark.only_on("linux"), pytest.mark.timeout(600)]

#: Where the supervisor dies, what becomes of the command, and how many runs the server has made more.
DEATHS = [
    ("takeover.before_commit", None, 0),
    ("takeover.committed", "failed", 0),
    ("takeover.claimed", "failed", 0),
    ("takeover.answered", "acknowledged", 1),
    ("takeover.journaled", "acknowledged", 1),
    ("takeover.handed_over", "acknowledged", 1),
    ("settle.before_commit", "acknowledged", 1),
    ("settle.committed", "acknowledged", 1),
]


@dataclass
class Place:
    """A server with one session, and a home whose supervisors are processes of their own."""

    shell: Shell
    session: Session
    folder: Path
    door: str = ""

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.door = f"http://127.0.0.1:{self.shell.port}/mcp"
        (self.folder / "session").write_text(self.session.id)

    def supervisor(self, act: str, point: str = "none") -> dict[str, Any]:
        """What a supervisor told at its end; nothing where it died."""
        (self.folder / "told").unlink(missing_ok=True)
        ended = subprocess.run(
            [
                sys.executable, "-m", "tests.support.taking_over",
                str(self.folder), str(self.shell.state), self.door, point, act,
            ],
            check=False, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        if not (self.folder / "told").exists():
            assert ended.returncode == -signal.SIGKILL, ended.stderr
            return {}
        return dict(json.loads((self.folder / "told").read_text()))

    @property
    def runs(self) -> list[str]:
        """The runs of the session in the server's own record, oldest first."""
        held = json.loads((self.shell.state / "sessions" / f"{self.session.id}.json").read_text())
        return [run["run_id"] for run in held.get("runs", [])]

    @property
    def active(self) -> str | None:
        held = json.loads((self.shell.state / "sessions" / f"{self.session.id}.json").read_text())
        return str(held["active_run_id"]) if held.get("active_run_id") else None


def place(version: str, folder: Path) -> Iterator[Place]:
    shell = Shell(version, folder / "shell")
    try:
        shell.start()
        made = Place(shell, shell.begin("held"), folder / "tenuto")
        made.supervisor("begin")
        yield made
    finally:
        shell.close()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Place]:
    yield from place("4.0.1", tmp_path)


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Place]:
    yield from place("5.1.4", tmp_path)


def test_the_old_run_is_shut_out_before_the_lease_passes(old: Place) -> None:
    before = old.runs
    told = old.supervisor("take")
    assert told["result"]["outside"] == f"a new run of real/{old.session.id}"
    assert (told["result"]["state"], told["holder"], told["lease"]) == ("acknowledged", "place-1", 2)
    assert old.runs[: len(before)] == before
    assert len(old.runs) == len(before) + 1
    assert old.active == old.runs[-1]
    assert told["messages"] == 1, "the new place is told which run it calls by"
    with pytest.raises(Refused):
        old.session.plan("get")  # what the old place was called by opens nothing any more
    other = old.shell.again()
    assert other.tool("job_list", session_run_id=old.active) is not None, "any client that knows the new run goes on"


def test_whoever_dies_anywhere_makes_one_new_run_at_most(old: Place) -> None:
    holder, lease = "place-0", 1
    told: dict[str, Any] = {}
    for number, (point, becomes, more) in enumerate(DEATHS, 1):
        before = old.runs
        assert old.supervisor("take", point) == {}, f"it was to die at {point}"
        told = old.supervisor("look")
        states = [state for state, _ in told["commands"]]
        assert (states[:1] if becomes else []) == ([becomes] if becomes else []), (point, told)
        assert len(old.runs) - len(before) == more, (point, told)
        if more:
            holder, lease = f"place-{number}", lease + 1
        assert (told["holder"], told["lease"], told["waits"]) == (holder, lease, []), point
    runs = old.runs
    assert old.supervisor("look") == told, "nothing more comes of any of it"
    assert old.runs == runs


def test_a_call_that_may_have_gone_out_is_never_made_again(old: Place) -> None:
    """Killed between the mark and the call: only the server can tell, and only once it cannot hear it any more."""
    before = old.runs
    assert old.supervisor("take", "takeover.begun") == {}
    told = old.supervisor("look")
    ((state, why),) = told["commands"]
    assert state == "ambiguous"
    assert "nobody saw its answer" in why
    assert (told["holder"], old.runs) == ("place-0", before)
    refused = old.supervisor("take")
    assert "unresolved" in refused["refused"], "nothing else is done for the task while that is open"
    old.shell.kill()
    old.shell.start()
    told = old.supervisor("look")
    ((state, why),) = told["commands"]
    assert state == "failed", "a server that began later has not heard of it, and its log says so"
    assert (told["holder"], old.runs) == ("place-0", before)
    told = old.supervisor("take")
    assert told["result"]["state"] == "acknowledged"
    assert len(old.runs) == len(before) + 1


def test_a_session_at_work_is_not_taken_over(old: Place) -> None:
    gate = old.shell.folder / "work" / "gate"
    before = old.runs
    with old.session.calling(f"while [ ! -e {gate} ]; do sleep 0.05; done"):
        told = old.supervisor("take")
        gate.touch()
    assert "refused" in told
    assert old.runs == before


def test_without_a_door_it_is_refused_with_what_to_do(old: Place) -> None:
    old.door = "http://127.0.0.1:9/mcp"
    told = old.supervisor("take")
    assert "cannot be reached" in told["refused"]
    assert told["commands"] == []
    old.door = "-"  # found by the server's own process
    assert old.supervisor("take")["result"]["state"] == "acknowledged"


def test_where_the_server_has_no_fence_our_lease_is_it(new: Place) -> None:
    told = new.supervisor("take")
    assert "any client" in told["result"]["outside"]
    assert (told["holder"], told["lease"], told["commands"]) == ("place-1", 2, [])
