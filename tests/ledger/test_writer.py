"""Where a commit is made, and what it writes: alone on a quick disk where it was asked for, else in the thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.server import Server
from tests.ledger.world import NOW, Counting, SetClock, candidate, never, place, turn, written

from tenuto.model.change import Busy, Commit, Committed, Guard, Key, NotLeader, Replayed, Stale
from tenuto.model.command import Armed
from tenuto.model.fact import Fact, FactKind
from tenuto.model.lifecycle import CommandState
from tenuto.store import writer
from tenuto.store.dialect import Connection
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.store.sqlite import Sqlite

pytestmark = pytest.mark.anyio
FINDING = Commit(facts=(Fact(FactKind.FINDING),))


class Watched(Sqlite):
    """Remembers which thread commits, and every statement that is run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.threads: list[int] = []
        self.statements: list[str] = []
        #: The threads that carried the log over.
        self.carried_over: queue.SimpleQueue[int] = queue.SimpleQueue()

    def connect(self) -> Connection:
        connection = super().connect()
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(self.statements.append)
        return connection

    def commit(self, connection: Connection) -> None:
        self.threads.append(threading.get_ident())
        super().commit(connection)

    def catch_up(self, connection: Connection) -> None:
        super().catch_up(connection)
        self.carried_over.put(threading.get_ident())

    def here(self, count: int) -> int:
        """How many of the last commits were made in the thread that asks."""
        return sum(thread == threading.get_ident() for thread in self.threads[-count:])


@pytest.fixture
def disk(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "registry.sqlite3")


@pytest.fixture
async def ledger(disk: Watched, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TableLedger]:
    monkeypatch.setattr(writer, "QUICK", 60.0)
    await open_registry(disk.path, SetClock(), minter=Counting()).close()
    opened = TableLedger(disk, SetClock())
    assert await opened.lead(candidate("me"), never) is not None
    yield opened
    await opened.close()


async def calm(ledger: TableLedger) -> None:
    for _ in range(writer.CALM + 1):
        await written(ledger, FINDING)


async def test_a_commit_alone_on_a_quick_disk_is_made_where_it_is_asked_for(ledger: TableLedger, disk: Watched) -> None:
    await written(ledger, FINDING)
    assert disk.here(1) == 0
    await calm(ledger)
    await written(ledger, FINDING)
    assert disk.here(1) == 1
    assert [event.n for event in ledger.events(0, 10**6)] == list(range(1, ledger.last_event() + 1))


async def test_what_commits_put_off_is_done_by_the_thread(
    ledger: TableLedger, disk: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PUT_OFF", 3 * writer.CALM)
    await calm(ledger)
    assert disk.carried_over.empty()
    for _ in range(2 * writer.CALM):
        await written(ledger, FINDING)
    assert await asyncio.to_thread(disk.carried_over.get, timeout=120) != threading.get_ident()
    await written(ledger, FINDING)
    assert ledger.last_event() == 3 * writer.CALM + 2


async def test_on_a_slow_disk_the_loop_never_waits(
    ledger: TableLedger, disk: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await calm(ledger)
    monkeypatch.setattr(writer, "QUICK", 0.0)
    await written(ledger, FINDING)
    assert disk.here(1) == 1  # that is how it found out
    for _ in range(writer.CALM * 2):
        await written(ledger, FINDING)
    assert disk.here(writer.CALM * 2) == 0


async def test_several_who_ask_at_once_share_a_sync(ledger: TableLedger, disk: Watched) -> None:
    await calm(ledger)
    before = len(disk.threads)
    await asyncio.gather(*(written(ledger, FINDING) for _ in range(16)))
    assert len(disk.threads) - before == 2  # the first did not know of the others
    before = len(disk.threads)
    await asyncio.gather(*(written(ledger, FINDING) for _ in range(16)))
    assert len(disk.threads) - before == 1
    assert disk.here(1) == 1
    before = len(disk.threads)
    await asyncio.gather(*(written(ledger, FINDING) for _ in range(writer.HERE + 1)))
    assert len(disk.threads) - before == 1
    assert disk.here(1) == 0  # so many at once are the thread's


async def test_one_of_several_that_is_refused_takes_no_other_with_it(ledger: TableLedger, disk: Watched) -> None:
    await calm(ledger)
    here = place(Counting())
    await written(ledger, Commit(puts=here.rows))
    stale = Commit(puts=(replace(here.task, revision=5),), facts=FINDING.facts)
    for _ in range(2):
        told = await asyncio.gather(*(ledger.commit(commit) for commit in (FINDING, stale, FINDING)))
        assert [type(one) for one in told] == [Committed, Stale, Committed]
    assert ledger.last_event() == writer.CALM + 1 + 4


async def test_a_task_that_writes_without_end_lets_others_have_their_turn(
    ledger: TableLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SPELL", 0.0)
    await calm(ledger)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while turns < 1000:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    for _ in range(20):
        await written(ledger, FINDING)
    assert turns >= 19
    turns = 1000
    await running


async def test_whoever_keeps_the_file_locked_keeps_no_loop_waiting(ledger: TableLedger, disk: Watched) -> None:
    await calm(ledger)
    with contextlib.closing(sqlite3.connect(disk.path, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(written(ledger, FINDING))
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        stranger.execute("ROLLBACK")
    async with asyncio.timeout(30):
        await waiting
    assert disk.here(1) == 0


async def test_a_revision_writes_what_it_changes_and_nothing_else(ledger: TableLedger, disk: Watched) -> None:
    here = place(Counting())
    await written(ledger, Commit(puts=here.rows))
    disk.statements.clear()
    served = replace(here.task, revision=2, attempts=1, last_served_at=NOW)
    await written(ledger, Commit(puts=(served,)))
    (update,) = [sql for sql in disk.statements if sql.startswith("UPDATE task")]
    assert update.count("=") == 5  # three columns, the id, the revision
    assert ledger.task(served.id) == served


async def test_only_what_is_durable_is_remembered(ledger: TableLedger, disk: Watched) -> None:
    here = place(Counting())
    await written(ledger, Commit(puts=here.rows))
    second = replace(here.task, revision=2, title="kept")
    refused = replace(here.task, revision=2, title="refused", attempts=7)
    await written(ledger, Commit(puts=(second,)))
    assert isinstance(await ledger.commit(Commit(puts=(refused,))), Stale)
    third = replace(second, revision=3, attempts=1)
    await written(ledger, Commit(puts=(third,)))
    assert ledger.task(here.task.id) == third
    assert await ledger.lead(candidate("me again"), lambda _: True) is not None
    disk.statements.clear()
    await written(ledger, Commit(puts=(replace(third, revision=4, attempts=2),)))
    update = next(sql for sql in disk.statements if sql.startswith("UPDATE task"))
    assert "title" in update  # another may have led in between: the row is written whole


class Way:
    """What lies between a program and a server, and counts how often the program had to wait for an answer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._asked = False
        self.waits = 0
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port = int(self._sockets[0].getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def _begin(self, work: Callable[..., None], *about: object) -> None:
        self._threads.append(threading.Thread(target=work, args=about, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._sockets[0].accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += (client, server)
                self._begin(self._pass_on, client, server, True)
                self._begin(self._pass_on, server, client, False)

    def _pass_on(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while said := one.recv(65536):
                self.waits += asks and not self._asked
                self._asked = asks
                other.sendall(said)
            other.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()


@pytest.fixture
def way(postgresql: Server) -> Iterator[Way]:
    way = Way(postgresql.port)
    yield way
    way.close()


@pytest.fixture
async def far(postgresql: Server, way: Way) -> AsyncIterator[TableLedger]:
    """A ledger that leads in a database at the end of that way."""
    url = postgresql.database().replace(f":{postgresql.port}/", f":{way.port}/")
    ledger = open_registry(url, SetClock(), minter=Counting())
    assert await ledger.lead(candidate("me"), never) is not None
    yield ledger
    await ledger.close()


async def test_a_server_is_waited_for_once_in_a_transition(far: TableLedger, way: Way) -> None:
    ids = Counting()
    places = [place(ids) for _ in range(12)]
    for here in places:
        await written(far, Commit(puts=here.rows, facts=FINDING.facts))
    for here in places[:-1]:  # one makes it known how things stand, and the driver prepares its statements
        await written(far, turn(ids, here).commit())
    before = way.waits
    await written(far, turn(ids, places[-1]).commit())
    assert way.waits - before == 1
    run, task = places[-1].run, places[-1].task
    guarded = Commit(facts=FINDING.facts, guards=(Guard("run", run.id, 1), Guard("task", task.id, 2)))
    before = way.waits
    await written(far, guarded)
    assert way.waits - before == 1
    before = way.waits
    await asyncio.gather(*(written(far, FINDING) for _ in range(16)))
    assert way.waits - before == 1


async def test_what_is_not_as_it_must_be_fails_on_its_way_and_is_told_as_ever(far: TableLedger) -> None:
    ids = Counting()
    here = place(ids)
    await written(far, Commit(puts=here.rows, facts=FINDING.facts))
    first = turn(ids, here)
    await written(far, first.commit())
    key = Key("tasks", "k1", "digest", {})
    await written(far, Commit(facts=FINDING.facts, key=key))
    again = turn(ids, here, number=2, revision=3)
    late = Commit(puts=(replace(here.task, revision=9),), facts=FINDING.facts)
    kept = far.last_event()
    for _ in range(7):  # more than what the driver prepares after
        assert await far.commit(Commit(guards=(Guard("task", here.task.id, 9),), facts=FINDING.facts)) == Stale(
            f"task {here.task.id}"
        )
        assert await far.commit(Commit(puts=(here.task,), facts=FINDING.facts)) == Stale(f"task {here.task.id}")
        assert await far.commit(late) == Stale(f"task {here.task.id}")
        assert await far.commit(again.commit()) == Busy("one_live_attempt_per_task")
        assert await far.commit(Commit(facts=FINDING.facts, key=key)) == Replayed({})
        assert far.last_event() == kept
    told = await asyncio.gather(*(far.commit(commit) for commit in (FINDING, late, FINDING)))
    assert [type(one) for one in told] == [Committed, Stale, Committed]
    assert far.last_event() == kept + 2


async def test_on_one_way_too_only_the_put_that_arms_gives_an_armed(far: TableLedger) -> None:
    ids = Counting()
    here = place(ids)
    await written(far, Commit(puts=here.rows, facts=FINDING.facts))
    armed = turn(ids, here)
    queued = replace(armed.command, state=CommandState.QUEUED, armed_at=None)
    assert (await written(far, Commit(puts=(armed.attempt, queued)))).armed == ()
    now_armed = replace(armed.command, revision=2)
    assert (await written(far, Commit(puts=(now_armed,)))).armed == (Armed(now_armed),)
    noted = replace(now_armed, revision=3, detail="handed over")
    assert (await written(far, Commit(puts=(noted,)))).armed == ()


async def test_whoever_leads_no_more_is_refused_on_one_way_too(postgresql: Server) -> None:
    url = postgresql.database()
    far, other = (open_registry(url, SetClock(), minter=Counting()) for _ in range(2))
    assert await far.lead(candidate("me"), never) is not None
    await written(far, FINDING)
    await written(far, FINDING)
    assert await other.lead(candidate("another"), lambda _: True) is not None
    assert await far.commit(FINDING) == NotLeader(2)
    await written(other, FINDING)
    assert far.last_event() == 3
    await far.close()
    await other.close()
