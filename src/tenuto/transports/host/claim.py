"""The journal of one command, as its writer sees it: who comes first owns it, and every mark is on the disk.

The first line is made elsewhere and linked into its place whole, so a place is either empty or taken by
exactly one writer; a claim and a revocation meet here and one of them loses. It refuses orders of a
supervisor that a later one has replaced. Standard library only: the host process runs this.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from typing import Final

VERSION: Final = 1
SUFFIX: Final = ".jsonl"
EPOCHS: Final = "epoch"
EPOCHS_LIMIT: Final = 64 * 1024
SECOND: Final = 1_000_000_000
HEARD: Final = 1
"""Nanoseconds past a whole second in the time of a journal's file, where it says when the program was heard."""

Line = Mapping[str, object]


class TakenError(Exception):
    """Somebody else has the journal's place already."""


class Journal:
    """A journal that is ours to write. Lines are written at their own offset, so a torn one is overwritten."""

    def __init__(self, descriptor: int, size: int, unsynced: str | None = None) -> None:
        self._descriptor = descriptor
        self._size = size
        #: The directory whose names are still to be synced, with the first mark.
        self._unsynced = unsynced

    def mark(self, line: Line) -> None:
        """Write one line and wait until the disk has it; raises OSError and leaves the journal as it was."""
        data = _encoded(line)
        try:
            _write_all(self._descriptor, data, self._size)
            os.fsync(self._descriptor)
            if self._unsynced is not None:
                sync_folder(self._unsynced)
                self._unsynced = None
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    def heard(self, at: float) -> None:
        """Let the file's own time say when its program was heard last (seconds since 1970); nothing is written."""
        told = int(at) * SECOND + HEARD
        try:
            os.utime(self._descriptor, ns=(told, told))
        except OSError:  # then nobody is told
            pass

    def close(self) -> None:
        os.close(self._descriptor)


def path_of(folder: str, command_id: str) -> str:
    """Where the journal of a command stands; the caller has checked the shape of the identifier."""
    return f"{folder}/{command_id}{SUFFIX}"


def take(folder: str, command_id: str, first: Line, *, durable: bool = True) -> Journal:
    """Take the place with its first line; TakenError when it is not free, OSError when the disk refuses.

    Where `durable` is False the first mark syncs line, name and mark together. A claim that a power failure takes
    back was one under which nothing had begun, and whoever made it is gone too.
    """
    data = _encoded({"v": VERSION, **first})
    made = f"{folder}/.{command_id}.{os.urandom(6).hex()}.new"
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            _write_all(descriptor, data, 0)
            if durable:
                os.fsync(descriptor)
            os.link(made, path_of(folder, command_id))
        except FileExistsError:
            raise TakenError(command_id) from None
        finally:
            os.unlink(made)  # noqa: PTH108 - pathlib would cost the host a third of its start
        if durable:
            sync_folder(folder)
    except BaseException:
        os.close(descriptor)
        raise
    return Journal(descriptor, len(data), None if durable else folder)


def admit(folder: str, registry: str, epoch: int) -> bool:
    """Whether no supervisor after `epoch` has been seen for this registry; remembers `epoch` when it is the highest.

    Raises ValueError when the record cannot be read: then nothing is known, and nothing may begin.
    """
    known = epochs(folder).get(registry, 0)
    if known >= epoch:
        return known == epoch
    lock = os.open(f"{folder}/.{EPOCHS}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        seen = epochs(folder)
        if seen.get(registry, 0) >= epoch:
            return seen[registry] == epoch
        replace(folder, EPOCHS, _encoded({**seen, registry: epoch}))
        return True
    finally:
        os.close(lock)


def epochs(folder: str) -> dict[str, int]:
    """The highest epoch seen of each registry; ValueError when the record is damaged."""
    try:
        descriptor = os.open(f"{folder}/{EPOCHS}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    try:
        held = json.loads(os.read(descriptor, EPOCHS_LIMIT))
    finally:
        os.close(descriptor)
    if not isinstance(held, dict) or not all(isinstance(number, int) for number in held.values()):
        raise ValueError("the record of epochs is damaged")
    return held


def sync_folder(folder: str) -> None:
    """Make names in a directory durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(folder: str, name: str, data: bytes) -> None:
    """Put a file in the place of whatever has its name, whole and durable; OSError leaves what was there."""
    made = f"{folder}/.{name}.{os.urandom(6).hex()}.new"
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(descriptor, data, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(made, f"{folder}/{name}")  # noqa: PTH104 - as above
    sync_folder(folder)


def _encoded(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
