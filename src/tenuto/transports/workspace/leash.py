"""Programs that only look end with whoever asked them, however that one ended.

A git that waits for a pipe in a hostile repository is ended by whoever stops waiting, but nobody stops waiting who was
killed. So such a program is started on a leash: `setpriv` has the kernel end it together with the thread that started
it, and where there is none that can, `timeout` ends it after longer than anybody would have waited. Both become the
program, or hold it in its group; neither is a shell. What changes something is never started so: it would be torn off.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from typing import Final

LONGEST: Final = 600
"""Seconds after which a program that only looks is ended, where it cannot be ended with us."""

TRIED: Final = 30.0
"""Seconds in which a leash has to show that it holds."""

WAYS: Final = (
    ("setpriv", ("--pdeathsig", "KILL", "--")),
    ("timeout", ("-s", "KILL", str(LONGEST))),
)
"""What may hold a program, the better one first, and how it is told to."""


_KNOWN: Final[dict[str, tuple[str, ...]]] = {}


async def leash(path: str) -> tuple[str, ...]:
    """What stands before a program's own words to have it end with us, found on a search path; empty where nothing can.

    Tried once for each path on a program that does nothing, for older ones do not know the words.
    """
    known = _KNOWN.get(path)
    if known is None:
        known = _KNOWN[path] = await asyncio.to_thread(found, path)
    return known


def found(path: str) -> tuple[str, ...]:
    """As `leash`, looked up anew; blocks."""
    nothing = shutil.which("true", path=path)
    for name, told in WAYS:
        program = shutil.which(name, path=path)
        if program is not None and nothing is not None and _holds((program, *told, nothing), path):
            return (program, *told)
    return ()


def _holds(argv: tuple[str, ...], path: str) -> bool:
    try:
        done = subprocess.run(
            argv, check=False, env={"PATH": path, "LC_ALL": "C"}, cwd=os.sep, timeout=TRIED,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
