"""A disk that is full under a supervisor that runs: it stops arming, says so, still reads, and goes on by itself."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.supervisors.homes import Home, effects_of, program, wait_for

from tenuto.wiring.board import SIZE

pytestmark = [pytest.mark.timeout(240), pytest.mark.only_on("linux")]  # a limit of another process is Linux's


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", str(tmp_path / "home" / "state" / "registry.sqlite3"))
    yield made
    made.close()


@contextmanager
def full(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """No file of this process may grow, as on a full disk; what has its place already may be written over.

    What it has started already is not meant.
    """
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (SIZE, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_stops_every_turn_and_none_is_made_twice_or_lost(tmp_path: Path, home: Home) -> None:
    effects, turns = tmp_path / "effects", 40
    process = home.up()
    home.led()
    task = home.run(program(tmp_path, effects, turns=turns, seconds=0.05), tmp_path)
    wait_for(lambda: len(effects_of(effects)) >= 3, "turns go by")
    with full(process):
        told = wait_for(lambda: "full" in " ".join(troubles(home)), f"it says so: {home.log()[-2000:]}")
        print(f"said after {told:.2f} s")
        begun = len(effects_of(effects))
        refused = home.tenuto("message", "send", task, "--file", "-", text="a word")
        assert refused.returncode not in (0, 2), refused.stderr
        assert "the disk has no room" in refused.stderr, refused.stderr
        assert home.task(task)["state"] == "active", "what is there is still told"
        past = home.json("status")["expires_at"]
        wait_for(lambda: home.ask(f"SELECT 1 WHERE '{past}' < strftime('%Y-%m-%dT%H:%M:%fZ')"), "its lease runs out")
        assert process.poll() is None, "nobody takes its place, so it stays"
        assert len(effects_of(effects)) <= begun + 1, "what was armed before may still begin, and nothing else"
    wait_for(lambda: home.over(task), f"it goes on: {home.log()[-2000:]}", 120)
    assert process.poll() is None
    assert home.task(task)["state"] == "completed"
    assert troubles(home) == []
    assert len(effects_of(effects)) == turns
    assert set(effects_of(effects).values()) == {1}


def troubles(home: Home) -> list[str]:
    """What the supervisor says is the matter."""
    return [str(each) for each in home.json("status").get("troubles", [])]
