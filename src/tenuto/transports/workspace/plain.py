"""The cursor of a directory that no repository covers.

It is a digest of path, size and time of change of at most 10,000 files; more is unknown.
Symbolic links are counted, never followed. Of a repository nested in the directory only HEAD
and its log count, because git's own bookkeeping changes when nothing was done. Blocking: call
it in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from tenuto.transports.workspace.content import AbandonedError
from tenuto.transports.workspace.facts import PATH_LIMIT, digest

DIRECTORY_LIMIT: Final = 20_000
NESTED: Final = (b"HEAD", b"logs/HEAD")


def plain_cursor(top: bytes, stopped: Callable[[], bool]) -> str | None:
    """Sha256 hex of everything below ``top``, None when it holds too much.

    Raises ``AbandonedError`` soon after ``stopped()`` turns true, and ``OSError`` when ``top`` itself is not readable.
    """
    files: list[tuple[bytes, bytes]] = []
    waiting: list[bytes] = [b""]
    directories = 0
    while waiting:
        relative = waiting.pop()
        directories += 1
        if stopped():
            raise AbandonedError
        if directories > DIRECTORY_LIMIT:
            return None
        try:
            below = list(_entries(top, relative, waiting))
        except OSError as error:
            if not relative:
                raise
            below = [(relative, b"unreadable %d" % (error.errno or 0))]
        files += below
        if len(files) > PATH_LIMIT:
            return None
    files.sort()
    return digest(part for file in files for part in file)


def _entries(top: bytes, relative: bytes, waiting: list[bytes]) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    with os.scandir(top + b"/" + relative) as entries:
        for entry in entries:
            path = relative + b"/" + entry.name if relative else entry.name
            if not entry.is_dir(follow_symlinks=False):
                found.append((path, _size_and_time(top + b"/" + path)))
            elif entry.name == b".git":
                nested = (path + b"/" + name for name in NESTED)
                found += ((name, _size_and_time(top + b"/" + name)) for name in nested)
            else:
                waiting.append(path)
            if len(found) > PATH_LIMIT:
                break
    return found


def _size_and_time(path: bytes) -> bytes:
    try:
        seen = os.lstat(path)
    except OSError:
        return b"absent"
    return b"%d %d" % (seen.st_size, seen.st_mtime_ns)
