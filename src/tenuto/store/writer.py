"""One writer, first come first served, whose commits are durable when they return.

While one group is being synced to disk others queue up; whatever is queued when the sync returns is the next group.
Nobody is waited for, but what one turn of an event loop asks for comes in together: callers who were told in the same
moment would otherwise send the first of them ahead, to a sync of its own. A job that fails takes nothing with it: its
group is written again with a savepoint around each job, and if that fails as a whole, each job is tried alone. A
caller hears of its job only after the commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from asyncio import AbstractEventLoop, Future
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from tenuto.model.faults import Corrupt, OutOfReach, StorageFull
from tenuto.ports import Fuse, NoFuse
from tenuto.store.dialect import Connection, Dialect

T = TypeVar("T")
Job = Callable[[Connection], T]

#: The most jobs that share one commit.
GROUP = 64


class Closed(Exception):
    """The ledger was closed; nothing more is written."""


@dataclass
class _Item(Generic[T]):
    job: Job[T]
    loop: AbstractEventLoop
    future: Future[T]
    value: Any = None
    error: BaseException | None = field(default=None)


class Writing(Protocol):
    """What runs jobs, each in a transaction, and gives what they gave once that is durable."""

    async def do(self, job: Job[T]) -> T: ...

    def close(self) -> None: ...


class Writer:
    """Runs jobs on its own thread and its own connection, each in a transaction that it shares with its group."""

    def __init__(self, dialect: Dialect, fuse: Fuse | None = None) -> None:
        self._dialect = dialect
        self._fuse = fuse or NoFuse()
        self._queue: queue.SimpleQueue[list[_Item[Any]] | None] = queue.SimpleQueue()
        self._coming: dict[AbstractEventLoop, list[_Item[Any]]] = {}
        self._door = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="tenuto-writer", daemon=True)
        self._thread.start()

    async def do(self, job: Job[T]) -> T:
        """Run `job` in a transaction and give what it gave, once that is durable; what it raises is raised here.

        A job that raises leaves nothing behind. It may run more than once, each time on a clean transaction.
        """
        loop = asyncio.get_running_loop()
        future: Future[T] = loop.create_future()
        with self._door:
            if self._closed:
                raise Closed("the registry is closed")
            coming = self._coming.get(loop)
            if coming is None:
                coming = self._coming[loop] = []
                loop.call_soon(self._come_in, loop)
            coming.append(_Item(job, loop, future))
        return await future

    def close(self) -> None:
        """Finish what was asked for, then stop; blocks until it has."""
        with self._door:
            if not self._closed:
                self._closed = True
                for coming in self._coming.values():
                    self._queue.put(coming)
                self._coming.clear()
                self._queue.put(None)
        self._thread.join()

    def _come_in(self, loop: AbstractEventLoop) -> None:
        """Queue what this turn of the loop has asked for."""
        with self._door:
            coming = self._coming.pop(loop, None)
            if coming:
                self._queue.put(coming)

    def _serve(self) -> None:
        going = True
        while going:
            group, going = self._gather()
            for first in range(0, len(group), GROUP):
                self._write(group[first : first + GROUP])
                _tell(group[first : first + GROUP])
        self._disconnect()

    def _gather(self) -> tuple[list[_Item[Any]], bool]:
        """The jobs that are there now, at least one; and whether to go on after them."""
        group: list[_Item[Any]] = []
        items = self._queue.get()
        while items is not None:
            group += items
            if len(group) >= GROUP:
                return group, True
            try:
                items = self._queue.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _write(self, group: list[_Item[Any]]) -> None:
        if len(group) > 1 and (self._together(group, apart=False) or self._together(group, apart=True)):
            return
        for item in group:
            self._alone(item)

    def _together(self, group: list[_Item[Any]], *, apart: bool) -> bool:
        """Write the group in one transaction; False, and nothing written, when that failed.

        Apart, each job has a savepoint and fails alone. Savepoints cost a fifth of a commit, so a group is first
        tried without them, and then any job that fails, fails the try.
        """
        try:
            connection = self._begun()
            for item in group:
                if apart:
                    self._in_savepoint(connection, item)
                else:
                    item.value, item.error = item.job(connection), None
            self._commit(connection)
        except Exception:  # noqa: BLE001 - the jobs are tried again, and each hears its own reason
            self._back_out()
            return False
        return True

    def _in_savepoint(self, connection: Connection, item: _Item[Any]) -> None:
        connection.execute("SAVEPOINT job")
        try:
            item.value, item.error = item.job(connection), None
        except Exception as error:  # noqa: BLE001 - whatever a job raises is its caller's to hear
            item.error = self._dialect.translated(error)
            connection.execute("ROLLBACK TO SAVEPOINT job")
        connection.execute("RELEASE SAVEPOINT job")

    def _alone(self, item: _Item[Any]) -> None:
        try:
            connection = self._begun()
            item.value, item.error = item.job(connection), None
            self._commit(connection)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is the caller's to hear
            item.error = self._dialect.translated(error)
            self._back_out()
            if isinstance(item.error, (StorageFull, Corrupt, OutOfReach)):
                self._disconnect()

    def _commit(self, connection: Connection) -> None:
        self._fuse.burn("write.prepared")
        self._dialect.commit(connection)
        self._fuse.burn("write.durable")

    def _begun(self) -> Connection:
        """A connection with an open transaction; a connection that was lost while nobody used it is made again."""
        connection = self._connected()
        try:
            self._dialect.begin(connection)
        except self._dialect.failure:
            if not self._dialect.lost(connection):
                raise
            self._disconnect()
            connection = self._connected()
            self._dialect.begin(connection)
        return connection

    def _connected(self) -> Connection:
        if self._connection is not None and self._dialect.lost(self._connection):
            self._disconnect()
        if self._connection is None:
            self._connection = self._dialect.connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(self._dialect.failure):  # what a failing medium says at the end changes nothing
                connection.close()

    def _back_out(self) -> None:
        if self._connection is not None:
            self._dialect.rollback(self._connection)


def _tell(group: list[_Item[Any]]) -> None:
    """Wake each event loop once for all that it waits for."""
    by_loop: defaultdict[AbstractEventLoop, list[_Item[Any]]] = defaultdict(list)
    for item in group:
        by_loop[item.loop].append(item)
    for loop, items in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, items)
        except RuntimeError:
            continue  # that loop is closed: nobody waits there any more


def _settle(items: list[_Item[Any]]) -> None:
    for item in items:
        if item.future.done():
            continue
        if item.error is None:
            item.future.set_result(item.value)
        else:
            item.future.set_exception(item.error)
