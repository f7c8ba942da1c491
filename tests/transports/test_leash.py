"""A git that waits for ever in somebody's repository does not outlive the program that asked it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.support.gits import git

from tenuto.transports.workspace import leash

PATIENCE = 120.0
ASKS = """
import asyncio, sys
from pathlib import Path
from tenuto.transports.workspace import git
at = Path(sys.argv[1])
asyncio.run(git.ask(git.Repository(at, at / ".git"), "status", "--porcelain=v2"))
"""

pytestmark = pytest.mark.timeout(600)


def gone(process: psutil.Process) -> bool:
    """Whether a process ended, reaped or not."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until_gone(process: psutil.Process) -> None:
    until = time.monotonic() + PATIENCE
    while not gone(process):
        if time.monotonic() > until:
            raise TimeoutError(f"{process} lives on")
        time.sleep(0.01)


def blocked(asking: subprocess.Popen[bytes], index: Path) -> psutil.Process:
    """The git that waits for somebody to write to the pipe that stands where its index should be."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for child in psutil.Process(asking.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if child.name() == "git" and child.status() == psutil.STATUS_SLEEPING:
                    return child
        assert asking.poll() is None, index
        time.sleep(0.01)
    raise TimeoutError("no git waits")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose index is a pipe that nobody writes to."""
    git(tmp_path, "init", "-q", ".")
    os.mkfifo(tmp_path / ".git" / "index")
    return tmp_path


def test_a_git_that_waits_for_ever_ends_with_whoever_asked_however_that_ended(hostile: Path) -> None:
    asking = subprocess.Popen([sys.executable, "-c", ASKS, str(hostile)], start_new_session=True)
    child: psutil.Process | None = None
    try:
        child = blocked(asking, hostile / ".git" / "index")
        asking.send_signal(signal.SIGKILL)
        asking.wait(PATIENCE)
        until_gone(child)
    finally:
        if asking.poll() is None:
            asking.kill()
            asking.wait(PATIENCE)
        if child is not None and not gone(child):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def test_where_the_kernel_cannot_a_time_limit_that_needs_nobody_ends_it(
    hostile: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("programs")
    for name in ("timeout", "true", "git"):
        there = shutil.which(name)
        assert there is not None
        (place / name).symlink_to(there)
    held = leash.found(str(place))
    assert held == (str(place / "timeout"), "-s", "KILL", str(leash.LONGEST))
    soon = (*held[:-1], "0.2")
    waits = subprocess.Popen([*soon, "git", "-C", str(hostile), "status"], start_new_session=True)
    until_gone(psutil.Process(waits.pid))
    assert waits.wait(PATIENCE) != 0


def test_a_leash_that_does_not_hold_is_not_used(tmp_path: Path) -> None:
    for name in ("setpriv", "timeout"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    there = shutil.which("true")
    assert there is not None
    (tmp_path / "true").symlink_to(there)
    assert leash.found(str(tmp_path)) == ()
    assert leash.found(str(tmp_path / "nowhere")) == ()
