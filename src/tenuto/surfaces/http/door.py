"""The door: listens from the first moment, and furnishes the room when somebody first knocks.

It binds the Unix socket (and a loopback port where one is wanted) itself. Until a connection waits there, nothing of
the web stack is imported; then the application is built in a thread, so that deciding goes on, and served in this
loop. A socket file that was left behind is replaced only when nobody answers at it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenuto.model.faults import Conflict, Mistake

if TYPE_CHECKING:
    from uvicorn import Server

SOCKET_BYTES = 100
BACKLOG = 128
GRACE = 5
CALLS_AT_ONCE = 256
HEADER_BYTES = 32 * 1024

_LOG = logging.getLogger("tenuto.door")


class Door:
    """One API at one Unix socket and, if `port` is given, at one loopback port (0: any free one).

    `make` builds the ASGI application; it is called once, in a thread, with the port that is bound. `closing` is
    called before the last requests are waited for, to end what would never end by itself.
    """

    def __init__(
        self,
        path: Path,
        make: Callable[[int | None], Any],
        *,
        port: int | None = None,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._make = make
        self._wanted_port = port
        self._closing = closing
        self._sockets: list[socket.socket] = []
        self._identity: tuple[int, int] | None = None
        self._knocked = asyncio.Event()
        self._stopping = False
        self._server: Server | None = None
        self.port: int | None = None

    @property
    def furnished(self) -> bool:
        """Whether somebody has come in yet."""
        return self._server is not None

    def open(self, *, succeeds: bool = False) -> None:
        """Bind. Raises Conflict when somebody answers there already, Mistake when the place cannot be used.

        `succeeds` says that whoever had this place before has lost it to us: one that stands still still takes calls.
        """
        try:
            self._bind(succeeds)
        except BaseException:
            self._let_go()
            raise

    async def serve(self) -> None:
        """Serve until stopped; bound in `open`. Lets requests that run finish, within a bound."""
        try:
            if await self._knock():
                await self._furnish_and_serve()
        finally:
            self._let_go()

    def stop(self) -> None:
        """Take nobody in any more, and come to rest."""
        self._stopping = True
        self._closing()
        if self._server is not None:
            self._server.should_exit = True
        self._knocked.set()

    async def _knock(self) -> bool:
        """Wait for the first connection; False when it was stopped before."""
        loop = asyncio.get_running_loop()
        for one in self._sockets:
            loop.add_reader(one.fileno(), self._knocked.set)
        try:
            await self._knocked.wait()
        finally:
            for one in self._sockets:
                loop.remove_reader(one.fileno())
        return not self._stopping

    async def _furnish_and_serve(self) -> None:
        server = await asyncio.to_thread(self._furnish)
        if self._stopping:
            return
        self._server = server
        await server.serve(sockets=self._sockets)

    def _furnish(self) -> Server:
        import uvicorn

        class Quiet(uvicorn.Server):
            """Leaves signals to the supervisor."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        config = uvicorn.Config(
            self._make(self.port),
            lifespan="off",
            loop="none",
            http="h11",
            ws="websockets-sansio",
            interface="asgi3",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CALLS_AT_ONCE,
            h11_max_incomplete_event_size=HEADER_BYTES,
            timeout_graceful_shutdown=GRACE,
            backlog=BACKLOG,
        )
        config.load()
        return Quiet(config)

    # -- binding

    def _bind(self, succeeds: bool) -> None:
        _private(self._path.parent)
        if len(os.fsencode(self._path)) > SOCKET_BYTES:
            raise Mistake(f"{self._path} is too long a name for a socket", field="socket")
        _make_room(self._path, succeeds=succeeds)
        mine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sockets.append(mine)
        mine.setblocking(False)
        try:
            mine.bind(str(self._path))
        except OSError as error:
            raise Mistake(f"{self._path} cannot be bound: {error.strerror}", field="socket") from None
        self._path.chmod(0o600)
        about = self._path.stat()
        self._identity = (about.st_dev, about.st_ino)
        mine.listen(BACKLOG)
        if self._wanted_port is not None:
            self._bind_port(self._wanted_port)

    def _bind_port(self, wanted: int) -> None:
        mine = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sockets.append(mine)
        mine.setblocking(False)
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            mine.bind(("127.0.0.1", wanted))
            mine.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise Conflict(f"port {wanted} is in use by another program", field="port") from None
            raise Mistake(f"port {wanted} cannot be bound: {error.strerror}", field="port") from None
        self.port = int(mine.getsockname()[1])

    def _let_go(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets.clear()
        identity, self._identity = self._identity, None
        if identity is None:
            return
        with contextlib.suppress(FileNotFoundError):
            about = self._path.lstat()
            if (about.st_dev, about.st_ino) == identity:
                self._path.unlink()


def _private(folder: Path) -> None:
    """A directory of our own that nobody else can reach into."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        raise Mistake(f"{folder} is not a directory of yours", field="socket")
    if about.st_mode & 0o077:
        raise Mistake(f"{folder} can be reached by others; give it mode 0700", field="socket")


def _make_room(path: Path, *, succeeds: bool) -> None:
    """Take away a socket file that nobody answers at, or nobody has a right to any more."""
    try:
        about = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(about.st_mode):
        raise Mistake(f"{path} is there and is no socket", field="socket")
    if succeeds:
        path.unlink(missing_ok=True)
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            _LOG.info("replaced a socket that nobody answered at")
            return
        except OSError as error:
            raise Mistake(f"{path} cannot be looked at: {error.strerror or error}", field="socket") from None
    raise Conflict(f"somebody answers at {path} already", field="socket")
