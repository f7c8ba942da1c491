"""Hashing what a working tree holds, by reading it ourselves.

Git would run filters to read a file; this module only opens regular files, never follows a
symbolic link, never waits on a pipe or device, and stops at a byte budget, past which a file
counts by size and time of change instead. Blocking: call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tenuto.transports.workspace.facts import digest
from tenuto.transports.workspace.status import Change

FILE_LIMIT: Final = 8 << 20
"""A larger file counts by size, time of change and path."""

TOTAL_LIMIT: Final = 256 << 20
"""Bytes read in one look; files past it count by size and time of change."""


class AbandonedError(Exception):
    """Nobody waits for the answer any more."""


def dirty_digest(top: bytes, changes: Sequence[Change], heads: Mapping[bytes, str], stopped: Callable[[], bool]) -> str:
    """Sha256 hex over every change below ``top``; ``heads`` gives the HEAD of each nested repository.

    Raises ``AbandonedError`` soon after ``stopped()`` turns true.
    """
    parts: list[bytes] = []
    budget = TOTAL_LIMIT
    for change in sorted(changes, key=lambda change: change.path):
        if stopped():
            raise AbandonedError
        seen: bytes
        if change.gitlink:
            seen = b"repository " + heads.get(change.path, "").encode()
        else:
            seen, read = fingerprint(top + b"/" + change.path, budget, stopped)
            budget -= read
        parts += (change.path, change.index, seen)
    return digest(parts)


def fingerprint(path: bytes, budget: int, stopped: Callable[[], bool]) -> tuple[bytes, int]:
    """What stands at ``path``, and how many bytes were read for it. Never raises for the state of the file."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return b"link " + os.fsencode(Path(os.fsdecode(path)).readlink()), 0
        if not stat.S_ISREG(found.st_mode):
            return b"special %o" % stat.S_IFMT(found.st_mode), 0
        if found.st_size > min(FILE_LIMIT, budget):
            return _by_stat(b"large", found), 0
        content, read = _sha256(path, stopped)
    except (FileNotFoundError, NotADirectoryError):
        return b"absent", 0
    except OSError as error:
        return b"unreadable %d" % (error.errno or 0), 0
    executable = b"x" if found.st_mode & stat.S_IXUSR else b"-"
    return b"file " + executable + content, read


def _by_stat(word: bytes, found: os.stat_result) -> bytes:
    return b"%s %d %d" % (word, found.st_size, found.st_mtime_ns)


def _sha256(path: bytes, stopped: Callable[[], bool]) -> tuple[bytes, int]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return b"special", 0
        total, read = hashlib.sha256(), 0
        while chunk := os.read(descriptor, 1 << 20):
            total.update(chunk)
            read += len(chunk)
            if stopped():
                raise AbandonedError
            if read > FILE_LIMIT:  # it grew while it was read
                return _by_stat(b"large", os.fstat(descriptor)), read
        return total.digest(), read
    finally:
        os.close(descriptor)
