"""One writer, first come first served, whose commits are durable when they return.

While one group is being synced to disk others queue up; whatever is queued when the sync returns is the next group.
Nobody is waited for, but what one turn of an event loop asks for comes in together: callers who were told in the same
moment would otherwise send the first of them ahead, to a sync of its own. A job that fails takes nothing with it: its
group is written again with a savepoint around each job, and if that fails as a whole, each job is tried alone. A
caller hears of its job only after the commit.

The way to the writer's thread and back takes as long as a good part of a quick disk's sync. What short jobs come
together in one turn of the loop are therefore written where they were asked for, while the last few syncs were quick;
and one that comes alone at once. The event loop waits for that one sync; one that takes longer than QUICK sends the
next ones to the thread again, and so does anybody else who writes.

Where a server is on the other end, a group whose jobs can all be sent without an answer is sent with its begin and its
commit, and waited for once. If anything was not as a job takes it to be, nothing was written, and the group is written
as any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from tenuto.model.faults import Corrupt, OutOfReach, StorageFull
from tenuto.ports import Fuse, NoFuse
from tenuto.store.dialect import Connection, Dialect

T = TypeVar("T")
Job = Callable[[Connection], T]

#: The most jobs that share one commit.
GROUP = 64
#: A sync within so many seconds was quick.
QUICK = 0.005
#: After so many quick ones in a row the next is done where it was asked for.
CALM = 8
#: For so many seconds may a task do that before others in its loop have their turn.
SPELL = 0.0015
#: So many may be done together where they were asked for.
HERE = 24
#: After so many jobs the thread does what their commits have put off, and whoever asks meanwhile waits for it there.
PUT_OFF = 192
#: What says that the medium or the way to it failed, and no job.
_MEDIUM = (StorageFull, Corrupt, OutOfReach)


class Closed(Exception):
    """The ledger was closed; nothing more is written."""


@runtime_checkable
class Sendable(Protocol):
    """A job that can also be sent without waiting for answers; it raises, here or there, where that cannot be."""

    def send(self, connection: Connection, /) -> Any: ...


@dataclass(slots=True)
class _Item(Generic[T]):
    """A job, and what came of it."""

    job: Job[T]
    brief: bool
    value: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class _Asked(_Item[T]):
    """A job that somebody waits for."""

    loop: AbstractEventLoop = field(kw_only=True)
    future: Future[T] = field(kw_only=True)


@dataclass(slots=True)
class _Spell:
    """What one task writes by itself in one turn of the event loop, and when that has been long enough."""

    task: asyncio.Task[Any] | None
    until: float


class Writing(Protocol):
    """What runs jobs, each in a transaction, and gives what they gave once that is durable."""

    async def do(self, job: Job[T], *, brief: bool = False) -> T: ...

    def close(self) -> None: ...


class Writer:
    """Runs jobs on its own thread and its own connection, each in a transaction that it shares with its group."""

    def __init__(self, dialect: Dialect, fuse: Fuse | None = None) -> None:
        self._dialect = dialect
        self._fuse = fuse or NoFuse()
        self._queue: queue.SimpleQueue[list[_Asked[Any]] | None] = queue.SimpleQueue()
        self._coming: dict[AbstractEventLoop, list[_Asked[Any]]] = {}
        self._door = threading.Lock()
        #: Held by whoever writes.
        self._pen = threading.Lock()
        #: How much of what came in is not written yet.
        self._handed = 0
        self._calm = 0
        #: How many were made since what they put off was done, and whether the thread was told to do it.
        self._put_off = 0
        self._owing = False
        #: Whether several asked in one turn of the loop the last time: then each waits for the others of its turn.
        self._crowd = False
        self._spell: _Spell | None = None
        self._hurried = False
        self._connection: Connection | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="tenuto-writer", daemon=True)
        self._thread.start()

    async def do(self, job: Job[T], *, brief: bool = False) -> T:
        """Run `job` in a transaction and give what it gave, once that is durable; what it raises is raised here.

        A job that raises leaves nothing behind. It may run more than once, each time on a clean transaction. One that
        is `brief` waits for nothing but the database, so that it may be run in the caller's own thread.
        """
        loop = asyncio.get_running_loop()
        if brief and self._calm >= CALM and not self._crowd and not self._dialect.one_way:
            item = _Item(job, brief)
            if await self._at_once(item, loop):
                if item.error is not None:
                    raise item.error
                return item.value  # type: ignore[no-any-return]
        future: Future[T] = loop.create_future()
        with self._door:
            if self._closed:
                raise Closed("the registry is closed")
            coming = self._coming.get(loop)
            if coming is None:
                coming = self._coming[loop] = []
                loop.call_soon(self._come_in, loop)
            coming.append(_Asked(job, brief, loop=loop, future=future))
        return await future

    def close(self) -> None:
        """Finish what was asked for, then stop; blocks until it has."""
        with self._door:
            if not self._closed:
                self._closed = True
                for coming in self._coming.values():
                    self._handed += 1
                    self._queue.put(coming)
                self._coming.clear()
                self._queue.put(None)
        self._thread.join()

    def _come_in(self, loop: AbstractEventLoop) -> None:
        """Write what this turn of the loop has asked for, or queue it."""
        with self._door:
            coming = self._coming.pop(loop, None)
            if not coming:
                return
            self._handed += 1
            self._crowd = len(coming) > 1
            here = self._may_be_here(len(coming)) and self._handed == 1 and all(item.brief for item in coming)
            if not here:
                self._queue.put(coming)
                return
        if self._here(coming):
            self._taken_off(1)
            self._made(len(coming))
            _settle(coming)
            return
        with self._door:
            if not self._closed:
                self._queue.put(coming)
                return
            self._handed -= 1
        for item in coming:  # the thread was told to stop meanwhile, and takes nothing more
            item.error = Closed("the registry is closed")
        _settle(coming)

    def _may_be_here(self, count: int) -> bool:
        """Whether so many more may be written in the thread that asks; never where a server is on the other end."""
        if self._closed or self._owing or self._dialect.one_way:
            return False
        return self._calm >= CALM and count <= HERE

    def _made(self, count: int) -> None:
        """So many more are durable, and no more than that."""
        self._put_off += count
        if self._put_off >= PUT_OFF and not self._owing:
            self._owing = True
            self._queue.put([])

    async def _at_once(self, item: _Item[T], loop: AbstractEventLoop) -> bool:
        """Write a job here and now, if the disk is quick and nobody else wants to write; whether that was done."""
        task, spell = asyncio.current_task(loop), self._spell
        if spell is not None and spell.task is task and time.perf_counter() >= spell.until:
            await asyncio.sleep(0)
            spell = self._spell
        with self._door:
            if spell is not None and spell.task is not task:
                self._crowd = True  # several ask in one turn of the loop: they share a sync
                return False
            if self._handed or self._coming or not self._may_be_here(1):
                return False
            if spell is None:
                self._spell = _Spell(task, time.perf_counter() + SPELL)
                loop.call_soon(self._spell_over)
            self._handed += 1  # whoever comes now, from another thread, waits for the end of this
        try:
            return self._here([item])
        finally:
            self._taken_off(1)
            self._made(1)

    def _spell_over(self) -> None:
        self._spell = None

    def _here(self, items: Sequence[_Item[Any]]) -> bool:
        """Write in the thread that asked for it; False, and nothing written, when that has to be done by the other."""
        with self._pen:
            try:
                connection = self._hurrying(on=True)
                if not self._hurried:
                    self._calm = 0
                    return False
                self._dialect.begin(connection)
            except Exception:  # noqa: BLE001 - whatever it is, the thread finds it too, and has the time to mend it
                self._calm = 0
                return False
            if len(items) > 1:
                return self._all(connection, items)
            self._finish(connection, items[0])
        return True

    def _hurrying(self, *, on: bool) -> Connection:
        """The connection, told whether its commits are waited for by a loop."""
        connection = self._connected()
        if on is not self._hurried:
            self._hurried = self._dialect.hurry(connection, on) and on
        return connection

    def _taken_off(self, count: int) -> None:
        with self._door:
            self._handed -= count

    def _serve(self) -> None:
        going = True
        while going:
            group, count, going = self._gather()
            parts = [group[first : first + GROUP] for first in range(0, len(group), GROUP)]
            for part in parts:
                with self._pen:
                    self._write(part)
                if part is parts[-1]:
                    self._put_off += len(group)
                    self._owing = self._owing or self._put_off >= PUT_OFF  # before anybody may write without us
                    self._taken_off(count)  # before they are told, so that what they ask for next finds nobody ahead
                _tell(part)
            if self._owing:
                self._caught_up()
        with self._pen:
            self._disconnect()

    def _caught_up(self) -> None:
        """Do what commits have put off; that it fails is for the next commit to find."""
        with self._pen:
            if self._connection is not None:
                with contextlib.suppress(self._dialect.failure):
                    self._dialect.catch_up(self._connection)
        self._put_off = 0
        self._owing = False

    def _gather(self) -> tuple[list[_Asked[Any]], int, bool]:
        """The jobs that are there now, at least one; in how many parts they came, and whether to go on after them."""
        group: list[_Asked[Any]] = []
        count = 0
        items = self._queue.get()
        while items is not None:
            group += items
            count += bool(items)
            if len(group) >= GROUP:
                return group, count, True
            try:
                items = self._queue.get_nowait()
            except queue.Empty:
                return group, count, True
        return group, count, False

    def _write(self, group: list[_Asked[Any]]) -> None:
        if self._dialect.one_way and self._on_one_way(group):
            return
        if len(group) > 1 and (self._together(group, apart=False) or self._together(group, apart=True)):
            return
        for item in group:
            self._alone(item)

    def _on_one_way(self, group: list[_Asked[Any]]) -> bool:
        """Send the group with its begin and its commit; False, and nothing written, when that failed.

        What was on its way when the server or the way was lost may have been written: nothing is tried again.
        """
        jobs: list[object] = [item.job for item in group]
        sends = [job.send for job in jobs if isinstance(job, Sendable)]
        if len(sends) < len(group):
            return False
        try:
            connection = self._connected()
            with self._dialect.together(connection):
                self._dialect.begin(connection)
                for item, send in zip(group, sends, strict=True):
                    item.value, item.error = send(connection), None
                self._fuse.burn("write.prepared")
                self._dialect.commit(connection)
        except Exception as error:  # noqa: BLE001 - the jobs are tried again, and each hears its own reason
            return self._perhaps_written(group, error)
        self._fuse.burn("write.durable")
        return True

    def _perhaps_written(self, group: Sequence[_Item[Any]], error: Exception) -> bool:
        """After a commit failed: tell each, if nobody knows what became of it; False, and nothing written, if not."""
        if not isinstance(self._dialect.translated(error), _MEDIUM):
            self._back_out()
            return False
        for item in group:
            self._failed(item, error)
        return True

    def _together(self, group: Sequence[_Item[Any]], *, apart: bool) -> bool:
        """Write the group in one transaction; False, and nothing written, when that failed.

        Apart, each job has a savepoint and fails alone. Savepoints cost a fifth of a commit, so a group is first
        tried without them, and then any job that fails, fails the try.
        """
        try:
            connection = self._begun()
        except Exception:  # noqa: BLE001 - the jobs are tried again, and each hears its own reason
            self._back_out()
            return False
        return self._all(connection, group, apart=apart)

    def _all(self, connection: Connection, group: Sequence[_Item[Any]], *, apart: bool = False) -> bool:
        """Write the group in the transaction that is open, and commit; False, and nothing written, when that failed.

        A commit that was asked for and whose answer was lost may have been made: nothing is tried again.
        """
        asked = False
        try:
            for item in group:
                if apart:
                    self._in_savepoint(connection, item)
                else:
                    item.value, item.error = item.job(connection), None
            asked = True
            self._commit(connection)
        except Exception as error:  # noqa: BLE001 - the jobs are tried again, and each hears its own reason
            if asked:
                return self._perhaps_written(group, error)
            self._back_out()
            return False
        except BaseException:
            self._back_out()
            raise
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
        except Exception as error:  # noqa: BLE001 - whatever went wrong is the caller's to hear
            self._failed(item, error)
            return
        self._finish(connection, item)

    def _finish(self, connection: Connection, item: _Item[Any]) -> None:
        """Run a job in the transaction that is open, and commit."""
        try:
            item.value, item.error = item.job(connection), None
            self._commit(connection)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is the caller's to hear
            self._failed(item, error)
        except BaseException:
            self._back_out()
            raise

    def _failed(self, item: _Item[Any], error: Exception) -> None:
        item.error = self._dialect.translated(error)
        self._back_out()
        if isinstance(item.error, _MEDIUM):
            self._calm = 0  # it may fail slowly, too
            self._disconnect()

    def _commit(self, connection: Connection) -> None:
        self._fuse.burn("write.prepared")
        began = time.perf_counter()
        calm, self._calm = self._calm, 0  # one that fails is not quick
        self._dialect.commit(connection)
        if time.perf_counter() - began < QUICK:
            self._calm = calm + 1
        self._fuse.burn("write.durable")

    def _begun(self) -> Connection:
        """A connection with an open transaction; a connection that was lost while nobody used it is made again."""
        connection = self._hurrying(on=False)
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
        self._hurried = False
        if connection is not None:
            with contextlib.suppress(self._dialect.failure):  # what a failing medium says at the end changes nothing
                connection.close()

    def _back_out(self) -> None:
        if self._connection is not None:
            self._dialect.rollback(self._connection)


def _tell(group: list[_Asked[Any]]) -> None:
    """Wake each event loop once for all that it waits for."""
    by_loop: defaultdict[AbstractEventLoop, list[_Asked[Any]]] = defaultdict(list)
    for item in group:
        by_loop[item.loop].append(item)
    for loop, items in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, items)
        except RuntimeError:
            continue  # that loop is closed: nobody waits there any more


def _settle(items: list[_Asked[Any]]) -> None:
    for item in items:
        if item.future.done():
            continue
        if item.error is None:
            item.future.set_result(item.value)
        else:
            item.future.set_exception(item.error)
