"""The process table of Linux, read from /proc with nothing but the standard library.

It tells what the kernel tells and refuses to fill gaps: a process that exists but cannot be
read is reported as such, never left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from tenuto.transports.processes.identity import Identity, Seen

PROC: Final = "/proc"
ENVIRONMENT_LIMIT: Final = 16 << 20
FINISHED: Final = (b"Z", b"X", b"x")


class HiddenError(Exception):
    """A process is there and may not be looked at."""


@lru_cache(maxsize=1)
def boot_id() -> str:
    """The kernel's id of this boot, "" when it tells none."""
    try:
        return Path(PROC, "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def pids() -> list[int]:
    """Every pid the table shows now; raises ``OSError`` without /proc."""
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 - one call per look, on the fast path


def seen(pid: int) -> Seen | None:
    """One row, None when no such process exists; raises ``HiddenError`` when it exists and cannot be read."""
    try:
        line = _read(f"{PROC}/{pid}/stat", 4096)
    except (FileNotFoundError, ProcessLookupError):
        if _exists(pid):
            raise HiddenError(pid) from None
        return None
    except OSError:
        raise HiddenError(pid) from None
    return parse_stat(line, pid, boot_id())


def parse_stat(line: bytes, pid: int, boot: str) -> Seen:
    """Read /proc/PID/stat, whose second field, the program's name, may itself hold spaces and brackets."""
    fields = line[line.rindex(b")") + 2 :].split()
    state, threads = fields[0], int(fields[17])
    # A leader that ended before its other threads shows as a zombie while the program runs on.
    finished = state in FINISHED and threads <= 1
    return Seen(Identity(pid, int(fields[19]), boot), group=int(fields[2]), session=int(fields[3]), finished=finished)


def owner(pid: int) -> int | None:
    """The real user id of a process, None when it is gone or does not tell."""
    try:
        status = _read(f"{PROC}/{pid}/status", 1 << 16)
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return None


def carries(pid: int, needle: bytes) -> bool | None:
    """Whether an environment holds ``needle`` (``NAME=value``); None when it may not be read; False when it is gone."""
    try:
        environment = _leader_environment(pid) or b"\0".join(_thread_environments(pid))
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return None
    return b"\0" + needle + b"\0" in b"\0" + environment + b"\0"


def _leader_environment(pid: int) -> bytes:
    """Empty for a kernel thread, and for a leader that ended before its other threads: those still hold it.

    Without privileges the memory of such a leader is not empty but forbidden, just like that of
    a program which guards its secrets; the other threads tell the two apart.
    """
    try:
        return _environment(f"{PROC}/{pid}/environ")
    except PermissionError:
        if not _other_threads(pid):
            raise
        return b""


def _thread_environments(pid: int) -> Iterator[bytes]:
    for thread in _other_threads(pid):
        yield _environment(f"{PROC}/{pid}/task/{thread}/environ")


def _other_threads(pid: int) -> list[str]:
    return [thread for thread in os.listdir(f"{PROC}/{pid}/task") if thread != str(pid)]  # noqa: PTH208 - as above


def _environment(path: str) -> bytes:
    """What stands there; empty for who has no memory left: newer kernels then say "no such process"."""
    try:
        return _read(path, ENVIRONMENT_LIMIT)
    except ProcessLookupError:
        return b""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(path: str, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        held = os.read(descriptor, min(limit, 1 << 16))
        if len(held) < 2048:  # /proc gives at most a page at a time; less than half of one is all there is
            return held
        while len(held) < limit and (more := os.read(descriptor, 1 << 16)):
            held += more
        return held
    finally:
        os.close(descriptor)
