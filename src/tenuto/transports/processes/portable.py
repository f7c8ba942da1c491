"""The process table of other platforms, through psutil, behind the same functions as ``linux``."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from functools import lru_cache

import psutil

from tenuto.transports.processes.identity import Identity, Seen
from tenuto.transports.processes.linux import HiddenError


@lru_cache(maxsize=1)
def boot_id() -> str:
    """The id of this boot where the platform keeps one (macOS), else "": start times are absolute here and suffice."""
    if sys.platform != "darwin":
        return ""
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    size, held = ctypes.c_size_t(64), ctypes.create_string_buffer(64)
    if library.sysctlbyname(b"kern.bootsessionuuid", held, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return ""
    return held.value.decode("ascii", "replace")


def pids() -> list[int]:
    """Every pid the table shows now."""
    return psutil.pids()


def seen(pid: int) -> Seen | None:
    """One row, None when no such process exists; raises ``HiddenError`` when it exists and cannot be read."""
    try:
        process = psutil.Process(pid)
        started = round(process.create_time() * 1_000_000)
        finished = process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
        group, session = _group(pid), _session(pid)
    except psutil.ZombieProcess:
        return None
    except (psutil.NoSuchProcess, ProcessLookupError):
        return None
    except (psutil.AccessDenied, OSError):
        raise HiddenError(pid) from None
    return Seen(Identity(pid, started, boot_id()), group, session, finished)


def owner(pid: int) -> int | None:
    """The real user id of a process, None when it is gone, does not tell, or the platform has no such ids."""
    try:
        return psutil.Process(pid).uids().real
    except (psutil.Error, AttributeError):
        return None


def carries(pid: int, needle: bytes) -> bool | None:
    """Whether an environment holds ``needle`` (``NAME=value``); None when it may not be read; False when it is gone."""
    name, _, value = os.fsdecode(needle).partition("=")
    try:
        return psutil.Process(pid).environ().get(name) == value
    except psutil.NoSuchProcess:
        return False
    except (psutil.AccessDenied, OSError):
        return None


def _group(pid: int) -> int:
    return os.getpgid(pid) if hasattr(os, "getpgid") else 0


def _session(pid: int) -> int:
    return os.getsid(pid) if hasattr(os, "getsid") else 0
