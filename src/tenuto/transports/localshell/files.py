"""Reading a file that somebody else replaces at any moment.

A file is opened below its directory without following a link, must be a regular file of bounded size, and is read
whole; a replacement meanwhile is tried again. What cannot be read is said in a sentence and never taken for absent.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

TRIES: Final = 3
PAUSE: Final = 0.02
#: Where a link must not be followed: part of the flags on every platform that has it.
NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
NOBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0)


class Unreadable(Exception):
    """The file is there and cannot be believed; the message says why."""


@contextmanager
def directory(path: Path | str, within: int | None = None) -> Iterator[int | None]:
    """A descriptor of a directory; None when it is not there. Below another one no link is followed.

    Raises Unreadable for anything that is not a directory.
    """
    flags = os.O_RDONLY | DIRECTORY | (NOFOLLOW if within is not None else 0)
    try:
        descriptor = os.open(path, flags, dir_fd=within)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise Unreadable(f"{Path(path).name}: {error.strerror}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(name: str, within: int, limit: int, *, tail: bool = False) -> bytes | None:
    """A file's bytes; None when it is not there. Raises Unreadable. `tail`: at most the last `limit` bytes."""
    try:
        descriptor = os.open(name, os.O_RDONLY | NOFOLLOW | NOBLOCK, dir_fd=within)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreadable(f"{name}: {'it is a link' if error.errno == errno.ELOOP else error.strerror}") from None
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise Unreadable(f"{name} is no ordinary file")
        if seen.st_size > limit:
            if not tail:
                raise Unreadable(f"{name} is larger than {limit} bytes")
            os.lseek(descriptor, seen.st_size - limit, os.SEEK_SET)
        parts: list[bytes] = []
        left = limit + 1
        while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        if left <= 0 and not tail:
            raise Unreadable(f"{name} is larger than {limit} bytes")
        return b"".join(parts)
    except OSError as error:
        raise Unreadable(f"{name}: {error.strerror}") from None
    finally:
        os.close(descriptor)


Mark = tuple[int, int, int, int]


def mark(name: str, within: int) -> Mark | None:
    """What tells one writing of a file from the next: device, number, moment and size; None when it is not there."""
    try:
        seen = os.stat(name, dir_fd=within, follow_symlinks=False)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size


def document(name: str, within: int, limit: int) -> dict[str, Any] | None:
    """A JSON object; None when the file is not there. Half-written files are read again, then Unreadable."""
    for left in reversed(range(TRIES)):
        body = read(name, within, limit)
        if body is None:
            return None
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            if left:
                time.sleep(PAUSE)
                continue
            raise Unreadable(f"{name} is not whole: it is no JSON") from None
        if not isinstance(found, dict):
            raise Unreadable(f"{name} holds no object")
        return found
    raise AssertionError("the last try returns or raises")
