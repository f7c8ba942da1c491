"""The door: listens from the first moment, and furnishes the room when somebody first knocks.

It binds the Unix socket (and a port where one is wanted) itself: on loopback in the clear, anywhere else with TLS.
Until a connection waits there, nothing of the web stack is imported; then the application is built in a thread, so
that deciding goes on, and served in this loop. A socket file that was left behind is replaced only when nobody answers
at it.
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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenuto.model.faults import Conflict, Mistake

if TYPE_CHECKING:
    from uvicorn import Config, Server

SOCKET_BYTES = 100
BACKLOG = 128
GRACE = 5
CALLS_AT_ONCE = 1024
HEADER_BYTES = 32 * 1024
FRAME_BYTES = 2 * 1024 * 1024

_LOG = logging.getLogger("tenuto.door")


@dataclass(frozen=True)
class Wide:
    """A bind that is not loopback: the address, and the files of the certificate and its key."""

    address: str
    certificate: Path
    key: Path


class Door:
    """One API at one Unix socket and, if `port` is given, at one port (0: any free one) of loopback, or of `wide`.

    A port that is only `wished` for and is taken leaves the Unix socket alone, and a trouble. `make` builds the ASGI
    application; it is called once, in a thread, with the port that is bound. `closing` is called before the last
    requests are waited for, to end what would never end by itself.
    """

    def __init__(
        self,
        path: Path,
        make: Callable[[int | None], Any],
        *,
        port: int | None = None,
        wished: bool = False,
        wide: Wide | None = None,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._wished = wished
        self._wide = wide
        self._path = path
        self._make = make
        self._wanted_port = port
        self._closing = closing
        self._sockets: list[socket.socket] = []
        self._ports: list[socket.socket] = []
        self._identity: tuple[int, int] | None = None
        self._knocked = asyncio.Event()
        self._stopping = False
        self._servers: tuple[Server, ...] = ()
        self.port: int | None = None
        self.trouble: str | None = None

    @property
    def furnished(self) -> bool:
        """Whether somebody has come in yet."""
        return bool(self._servers)

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
        for server in self._servers:
            server.should_exit = True
        self._knocked.set()

    async def _knock(self) -> bool:
        """Wait for the first connection; False when it was stopped before."""
        loop = asyncio.get_running_loop()
        for one in (*self._sockets, *self._ports):
            loop.add_reader(one.fileno(), self._knocked.set)
        try:
            await self._knocked.wait()
        finally:
            for one in (*self._sockets, *self._ports):
                loop.remove_reader(one.fileno())
        return not self._stopping

    async def _furnish_and_serve(self) -> None:
        plain, wide = await asyncio.to_thread(self._furnish)
        if self._stopping:
            return
        self._servers = (plain,) if wide is None else (plain, wide)
        async with asyncio.TaskGroup() as group:
            if wide is None:
                group.create_task(plain.serve(sockets=[*self._sockets, *self._ports]))
            else:
                group.create_task(plain.serve(sockets=self._sockets))
                group.create_task(wide.serve(sockets=self._ports))

    def _furnish(self) -> tuple[Server, Server | None]:
        import uvicorn

        class Quiet(uvicorn.Server):
            """Leaves signals to the supervisor."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        app = self._make(self.port)
        secret: dict[str, Any] = {}
        if self._wide is not None:
            secret = {"ssl_certfile": str(self._wide.certificate), "ssl_keyfile": str(self._wide.key)}
        plain = Quiet(self._config(app))
        return plain, Quiet(self._config(app, **secret)) if self._wide is not None and self._ports else None

    @staticmethod
    def _config(app: Any, **more: Any) -> Config:
        import uvicorn

        config = uvicorn.Config(
            app,
            lifespan="off",
            loop="none",
            http="h11",
            ws="websockets-sansio",
            ws_max_size=FRAME_BYTES,
            ws_ping_interval=None,
            ws_per_message_deflate=False,
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
            **more,
        )
        config.load()
        return config

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
            try:
                self._bind_ports(self._wanted_port)
            except Conflict as taken:
                if not self._wished:
                    raise
                self._close_ports()
                self.trouble = f"{taken.message}, so nothing is served there; set another port in the configuration"
                _LOG.warning("%s", self.trouble)

    def _bind_ports(self, wanted: int) -> None:
        if self._wide is not None:
            self.port = self._bind_port(self._wide.address, wanted)
            return
        self.port = self._bind_port("127.0.0.1", wanted)
        with contextlib.suppress(_NoSuchAddress):
            self._bind_port("::1", self.port)

    def _bind_port(self, address: str, wanted: int) -> int:
        six = ":" in address
        try:
            mine = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            raise _NoSuchAddress(address) from None
        self._ports.append(mine)
        mine.setblocking(False)
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            if six:
                mine.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            mine.bind((address, wanted))
            mine.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise Conflict(f"port {wanted} of {address} is in use by another program", field="port") from None
            if six and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and self._wide is None:
                self._ports.remove(mine)
                mine.close()
                raise _NoSuchAddress(address) from None
            raise Mistake(f"port {wanted} of {address} cannot be bound: {error.strerror}", field="port") from None
        return int(mine.getsockname()[1])

    def _close_ports(self) -> None:
        for one in self._ports:
            one.close()
        self._ports.clear()
        self.port = None

    def _let_go(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets.clear()
        self._close_ports()
        identity, self._identity = self._identity, None
        if identity is None:
            return
        with contextlib.suppress(FileNotFoundError):
            about = self._path.lstat()
            if (about.st_dev, about.st_ino) == identity:
                self._path.unlink()


class _NoSuchAddress(Exception):
    """This machine has no such address."""


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
