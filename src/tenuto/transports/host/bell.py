"""The bell: where hosts say that a journal has changed, and the deaths that are heard without it.

A ring is a hint and carries nothing but a command's name; whoever hears it reads the journal. A lost ring
costs time, never truth. Nothing here judges what a process is: whoever watches one says what it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tenuto.model.ids import SHAPE, CommandId
from tenuto.transports.processes import Identity, Presence, presence

LONGEST: Final = 100
"""Most bytes of a socket's path that every platform takes."""

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at a process whose end cannot be waited for."""

Ring = Callable[[CommandId], None]

LEFT: Final[set[int]] = set()
"""Children of this process that nobody watches now; a pid stays its own until its parent has reaped it."""


def placed(path: Path) -> Path:
    """A socket's path, or a short one of this user's own that stands for it, where it is too long."""
    if len(os.fsencode(path)) <= LONGEST:
        return path
    around = os.environ.get("XDG_RUNTIME_DIR") or str(Path(tempfile.gettempdir(), f"tenuto-{os.getuid()}"))
    short = hashlib.sha256(os.fsencode(path)).hexdigest()[:20]
    return Path(around, f"tenuto-{short}.sock")


class Bell(asyncio.DatagramProtocol):
    """Listens at a socket that only this user can write to."""

    def __init__(self, path: Path, ring: Ring) -> None:
        self.path = placed(path)
        self._ring = ring
        self._transport: asyncio.DatagramTransport | None = None
        self._inode: int | None = None

    async def open(self) -> None:
        """Bind, in the place of whoever listened there before; raises OSError."""
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError(f"{folder} is not ours")
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(self.path.lstat().st_mode):
                self.path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            listening.setblocking(False)
            listening.bind(os.fspath(self.path))
            self.path.chmod(0o600)
            self._inode = self.path.lstat().st_ino
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=listening)
        except BaseException:
            listening.close()
            raise

    def close(self) -> None:
        """Stop listening; the socket's name goes too unless somebody else has it by now."""
        if self._transport is None:
            return
        self._transport.close()
        self._transport = None
        with contextlib.suppress(OSError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()

    def datagram_received(self, data: bytes, addr: object) -> None:
        """Pass on the name of a command; anything else is noise."""
        name = data[:64].decode("ascii", "replace")
        if SHAPE.fullmatch(name):
            self._ring(CommandId(name))

    def error_received(self, exc: Exception) -> None:
        """A ring that failed is a ring not heard."""


class Deaths:
    """Rings once for each watched process when it ends, and reaps it if it was our child."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._watched: dict[CommandId, Callable[[], None]] = {}
        self._children: dict[CommandId, int] = {}

    def watching(self, command_id: CommandId) -> bool:
        return command_id in self._watched

    def watch_child(self, command_id: CommandId, pid: int) -> None:
        """Watch a child of ours that nobody else reaps; its pid is its own until it is reaped here."""
        self._children[command_id] = pid
        self._watch(command_id, pid, lambda: reaped(pid))

    def reap(self) -> None:
        """Reap the children that ended while nobody of this process was watching them."""
        for pid in tuple(LEFT):
            if reaped(pid):
                LEFT.discard(pid)

    def watch(self, command_id: CommandId, who: Identity) -> None:
        """Watch a process by its identity; if it is gone already, rings soon."""
        if presence(who) is Presence.ALIVE:
            self._watch(command_id, who.pid, lambda: presence(who) is Presence.GONE)
        else:
            self._look_later(asyncio.get_running_loop(), command_id, lambda: presence(who) is Presence.GONE, 0.0)

    def close(self) -> None:
        """Stop watching. Nobody is ended by it; children are remembered, to be reaped by the next one who watches."""
        LEFT.update(self._children.values())
        self._children.clear()
        for stop in tuple(self._watched.values()):
            stop()
        self._watched.clear()

    def _watch(self, command_id: CommandId, pid: int, gone: Callable[[], bool]) -> None:
        if command_id in self._watched:
            return
        loop = asyncio.get_running_loop()
        try:
            pinned = os.pidfd_open(pid)
        except (AttributeError, OSError):  # it is gone, or its end cannot be waited for here: look now and then
            self._look_later(loop, command_id, gone, 0.0)
            return

        def stop() -> None:
            loop.remove_reader(pinned)
            os.close(pinned)

        def ended() -> None:
            try:
                os.waitid(os.P_PIDFD, pinned, os.WEXITED | os.WNOHANG)
            except ChildProcessError:  # somebody else's child, or reaped already
                pass
            LEFT.discard(pid)
            self._watched.pop(command_id)()
            self._over(command_id)

        loop.add_reader(pinned, ended)
        self._watched[command_id] = stop

    def _over(self, command_id: CommandId) -> None:
        self._children.pop(command_id, None)
        self._ring(command_id)

    def _look_later(
        self, loop: asyncio.AbstractEventLoop, command_id: CommandId, gone: Callable[[], bool], seconds: float
    ) -> None:
        def look() -> None:
            if gone():
                del self._watched[command_id]
                self._over(command_id)
            else:
                self._look_later(loop, command_id, gone, LOOK_AGAIN)

        self._watched[command_id] = loop.call_later(seconds, look).cancel


def reaped(pid: int) -> bool:
    """Whether a child of ours has ended; it is reaped by being asked, if it was not before."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
