"""What keeps a supervisor from its work, where everybody can read it without asking.

A small file of a fixed size, written over in place: a full disk has room for it, because it took its room when the
supervisor started. `tenuto status` reads it while the lease says that its writer leads; it never decides anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

SIZE = 4096
NAME = "troubles"
#: How often it is looked at whether there is something to write, in seconds.
EVERY = 1.0


class Board:
    """The writer's side."""

    def __init__(self, state: Path, troubles: Callable[[], Sequence[str]]) -> None:
        self._path = state / NAME
        self._troubles = troubles
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Write nothing more."""
        self._stopping.set()

    async def run(self) -> None:
        """Keep it true until stopped; leaves it empty."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return  # a place where nothing can be written says so in other ways
        try:
            said: Sequence[str] | None = None
            while not self._stopping.is_set():
                now = tuple(self._troubles())
                if now != said:
                    _put(descriptor, now)
                    said = now
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), timeout=EVERY)
            _put(descriptor, ())
        finally:
            os.close(descriptor)


def read(state: Path, pid: int) -> tuple[str, ...]:
    """What the supervisor of this process says it is in trouble with; nothing when that cannot be read."""
    try:
        descriptor = os.open(state / NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ()
    try:
        told = json.loads(os.read(descriptor, SIZE))
        return tuple(str(text) for text in told["troubles"]) if told["pid"] == pid else ()
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    finally:
        os.close(descriptor)


def _put(descriptor: int, troubles: Sequence[str]) -> None:
    told = [text[:600] for text in troubles[:5]]
    data = json.dumps({"pid": os.getpid(), "troubles": told}).encode("ascii")
    while len(data) > SIZE and told:
        told.pop()
        data = json.dumps({"pid": os.getpid(), "troubles": told}).encode("ascii")
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, data.ljust(SIZE), 0)
