"""Fuses: named points of this program at which a proof kills the process, for real.

A fuse knows nothing of what happens at its points; it counts how often each was passed and, at the one it was made
for, ends its own process by SIGKILL (or stops it by SIGSTOP), so that nothing can be tidied up. Everyday life has
`ports.NoFuse` in its place.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

RESTING: Final = frozenset({"_worker", "_gather", "wait", "select", "poll"})
"""In which functions a thread waits for work: of the pool, the writer, `threading`, and an event loop."""

PATIENCE: Final = 5.0
"""Seconds to wait for the other threads; then the process stands still all the same."""


class KillFuse:
    """Kills its own process at the `count`-th passing of `point`; passes every other one."""

    def __init__(self, point: str, count: int, number: signal.Signals = signal.SIGKILL) -> None:
        self._point = point
        self._left = count
        self._number = number

    def burn(self, point: str) -> None:
        """Pass, or never return."""
        if point != self._point:
            return
        self._left -= 1
        if self._left == 0:
            if self._number is signal.SIGSTOP:
                _alone()
            # To this very thread: sent to the process, another thread may be the one to take it, and this one goes on.
            signal.pthread_kill(threading.get_ident(), self._number)


def _alone() -> None:
    """Wait until every other thread has nothing to do, for a while: whoever stands still holds no lock of theirs.

    A supervisor that stands still in the middle of another thread's write keeps the registry from whoever takes over,
    as any process does that is stopped there; that is not what a case of one point is about.
    """
    mine, end = threading.get_ident(), time.monotonic() + PATIENCE
    while time.monotonic() < end:
        frames = [frame.f_code.co_name for thread, frame in sys._current_frames().items() if thread != mine]
        if all(name in RESTING for name in frames):
            return
        time.sleep(0.01)


class Recorder:
    """Writes each passing as a line (`point`) before anything else happens there, then tells `then` about it.

    The lines survive the process: each is one write to a file opened for appending.
    """

    def __init__(self, path: Path, then: Callable[[str, int], None] = lambda point, count: None) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._seen: Counter[str] = Counter()
        self._then = then

    def burn(self, point: str) -> None:
        """Write the passing down."""
        os.write(self._descriptor, f"{point}\n".encode())
        self._seen[point] += 1
        self._then(point, self._seen[point])


class Fuses:
    """Several fuses one after the other, as one."""

    def __init__(self, *fuses: KillFuse | Recorder) -> None:
        self._fuses = fuses

    def burn(self, point: str) -> None:
        """Pass each of them in turn."""
        for fuse in self._fuses:
            fuse.burn(point)


def passings(path: Path) -> tuple[tuple[str, int], ...]:
    """What a recorder has written: (point, which passing of it) in the order they happened; nothing if it never ran."""
    if not path.exists():
        return ()
    seen: Counter[str] = Counter()
    found = []
    for point in path.read_text("ascii").splitlines():
        seen[point] += 1
        found.append((point, seen[point]))
    return tuple(found)
