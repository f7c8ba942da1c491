"""The rules about time and tasks refuse what they are meant to refuse, where they are meant to."""

import subprocess
import sys
from pathlib import Path

import pytest

CLOCK = "from datetime import UTC, datetime\n\nnow = datetime.now(UTC)\n"
EPOCH = "import time\n\nnow = time.time()\n"
LOOSE = (
    "import asyncio\n\n\nasync def main() -> None:\n    task = asyncio.create_task(asyncio.sleep(0))\n    await task\n"
)


def refused(root: Path, place: str, program: str) -> bool:
    """Tell whether the banned interfaces refuse a program that would stand at place."""
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--output-format=concise",
            "--stdin-filename",
            place,
            "-",
        ],
        cwd=root,
        input=f'"""A module of some words that reads well."""\n\n{program}',
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "TID251" in said.stdout


@pytest.mark.parametrize("program", [CLOCK, EPOCH, LOOSE], ids=["datetime.now", "time.time", "create_task"])
@pytest.mark.parametrize("room", ["model", "core", "store", "engine", "transports", "sources", "surfaces", "proof"])
def test_a_room_may_not(room: str, program: str, root: Path) -> None:
    assert refused(root, f"src/tenuto/{room}/somewhere.py", program)


def test_the_wiring_may_read_the_time(root: Path) -> None:
    assert not refused(root, "src/tenuto/wiring/world.py", CLOCK)
