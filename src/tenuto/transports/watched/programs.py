"""Which process a window is of, in the same words on every system.

A process is its number and its start: a number alone is given away again. What is gone, or is nobody's to ask about,
has neither name nor start, and a window of it is then known by what its own system calls it.
"""

from __future__ import annotations

import psutil


def process(pid: int | None) -> tuple[str, float | None]:
    """What a process is called, and when it began (seconds since 1970); nothing of one that is gone or not told."""
    if pid is None:
        return "", None
    try:
        found = psutil.Process(pid)
        return found.name(), found.create_time()
    except (psutil.Error, OSError, ValueError, OverflowError):
        return "", None
