"""A PostgreSQL connection that does not wait for ever.

A network that drops what is sent answers nothing, and a driver that waits for an answer waits with it. Each statement
has a limit; when it has passed, a thread of this module shuts the socket down, and the statement fails as it does when
the server has gone. It decides nothing about what failed.
"""

from __future__ import annotations

import contextlib
import os
import select
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
        """Whether nothing can be asked of it any more; also where a server that nobody asked has said something."""
        if self._connection.closed or self._connection.broken:
            return True
        return _has_said(self._connection.fileno())

    def execute(self, sql: Any, parameters: Any = (), /) -> Any:
        before, self.due = self.due, time.monotonic() + self._patience
        try:
            return self._connection.execute(sql, parameters)
        finally:
            self.due = before

    def rollback(self) -> None:
        """End a transaction that failed.

        By the driver's own way: what it prepared while something failed is not there, and only so does it notice.
        """
        before, self.due = self.due, time.monotonic() + self._patience
        try:
            self._connection.rollback()
        finally:
            self.due = before

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Send what is executed in here without waiting for each answer; they are all there at its end.

        What failed first is raised, once everything is answered.
        """
        failed: Exception | None = None
        self.due = time.monotonic() + self._patience
        try:
            with self._connection.pipeline():
                try:
                    yield
                except Exception as error:  # noqa: BLE001 - raised below, when nothing is on its way any more
                    failed = error
        except Exception as error:
            if failed is None:
                raise
            raise failed from error
        finally:
            self.due = None
        if failed is not None:
            raise failed

    def notified(self, seconds: float) -> bool:
        """Whether anything was notified within these seconds; for the connection that listens."""
        return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))

    def close(self) -> None:
        self._connection.close()

    def cut(self) -> None:
        """Shut its socket down, from another thread than the one that waits."""
        with contextlib.suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._connection.fileno())) as other:
            other.shutdown(socket.SHUT_RDWR)


def _has_said(descriptor: int) -> bool:
    """Whether something can be read there, be it the end; a process with many files open has high descriptors."""
    if not hasattr(select, "poll"):
        return bool(select.select((descriptor,), (), (), 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


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
