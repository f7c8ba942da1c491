"""A host by itself: one at a journal, gone after a while without a turn, and no secret where others can see it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tenuto.transports.agents import folder as folder_of
from tenuto.transports.agents import host


def started(folder: Path, idle: float) -> subprocess.Popen[bytes]:
    (folder / folder_of.TOKEN_FILE).write_text("a-token-that-opens-nothing\n", "ascii")
    (folder / folder_of.TOKEN_FILE).chmod(0o600)
    argv = [
        sys.executable, "-m", "tenuto.transports.agents.host", "--folder", str(folder), "--name", "t-1", "--adapter",
        "claude", "--connect", str(folder / "nobody.sock"), "--env-file", str(folder / "env"), "--idle", str(idle),
    ]  # fmt: skip
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_host_that_nobody_needs_goes_by_itself(tmp_path: Path) -> None:
    one = started(tmp_path, 0.5)
    assert one.wait(60) == 0
    assert (tmp_path / folder_of.JOURNAL / "incarnation").exists()


def test_a_second_host_leaves_the_journal_to_the_first(tmp_path: Path) -> None:
    first = started(tmp_path, 600)
    try:
        end = time.monotonic() + 60
        while not (tmp_path / folder_of.JOURNAL / "incarnation").exists():
            assert first.poll() is None
            if time.monotonic() > end:
                raise TimeoutError("it did not come about")
            time.sleep(0.05)
        assert started(tmp_path, 600).wait(60) == host.ANOTHER
        assert first.poll() is None
        told = Path(f"/proc/{first.pid}/cmdline").read_bytes() + Path(f"/proc/{first.pid}/environ").read_bytes()
        assert b"opens-nothing" not in told
    finally:
        first.terminate()
        assert first.wait(60) == 0
