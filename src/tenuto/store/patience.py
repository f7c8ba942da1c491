"""A PostgreSQL connection that does not wait for ever.

A network that drops what is sent answers nothing, and a driver that waits for an answer waits with it. Each statement
has a limit; when it has passed, a thread of this module shuts the socket down, and the statement fails as it does when
the server has gone. It decides nothing about what failed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

#: How often overdue statements are looked for, in seconds.
EVERY = 0.5


class Patient:
    """A driver's connection whose statements are given up after `patience` seconds."""

    def __init__(self, connection: Any, patience: float) -> None:
        self._connection = connection
        self._patience = patience
        self.due: float | None = None
        _watch(self)

    @property
    def lost(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return bool(self._connection.closed or self._connection.broken)

    def execute(self, sql: Any, parameters: Any = (), /) -> Any:
        before, self.due = self.due, time.monotonic() + self._patience
        try:
            return self._connection.execute(sql, parameters)
        finally:
            self.due = before

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Send what is executed in here without waiting for each answer; they are all there at its end."""
        self.due = time.monotonic() + self._patience
        try:
            with self._connection.pipeline():
                yield
        finally:
            self.due = None

    def notified(self, seconds: float) -> bool:
        """Whether anything was notified within these seconds; for the connection that listens."""
        return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))

    def close(self) -> None:
        self._connection.close()

    def cut(self) -> None:
        """Shut its socket down, from another thread than the one that waits."""
        with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._connection.fileno())) as other:
            other.shutdown(socket.SHUT_RDWR)


_connections: weakref.WeakSet[Patient] = weakref.WeakSet()
_lock = threading.Lock()
_watching: list[threading.Thread] = []


def _watch(connection: Patient) -> None:
    with _lock:
        _connections.add(connection)
        if not _watching:
            _watching.append(threading.Thread(target=_look, name="tenuto-patience", daemon=True))
            _watching[0].start()


def _look() -> None:
    while True:
        time.sleep(EVERY)
        now = time.monotonic()
        with _lock:
            waiting = tuple(_connections)
        for connection in waiting:
            due = connection.due
            if due is not None and due < now:
                connection.due = None
                connection.cut()
