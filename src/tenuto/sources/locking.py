"""The lock that everybody of ours takes before a source in a file is changed: waited for, but not for ever."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds to wait for the lock, and between two tries.
PATIENCE, BREATH = 5.0, 0.01


@contextlib.contextmanager
def locked(path: Path, flags: int = 0) -> Iterator[int]:
    """The open file at `path`, made if it is missing, while nobody else has it; OSError when that takes too long."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise OSError("somebody holds the source's lock for too long") from None
                time.sleep(BREATH)
        yield handle
    finally:
        os.close(handle)
