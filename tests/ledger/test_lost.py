"""What a writer does when an answer is lost, a commit fails, or it is closed: each caller hears once, and truly."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest
from tests.ledger.conftest import DATABASES
from tests.ledger.server import Server
from tests.ledger.world import NOW, SECOND, Counting, SetClock, candidate, never, place, written

from tenuto.model.change import Commit, Committed, Guard, Stale
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import OutOfReach, StorageFull
from tenuto.store import postgresql as store
from tenuto.store import writer
from tenuto.store.dialect import Connection, Dialect
from tenuto.store.opening import open_registry
from tenuto.store.patience import Patient
from tenuto.store.postgresql import Postgresql
from tenuto.store.sqlite import Sqlite
from tenuto.store.writer import Closed, Writer

pytestmark = pytest.mark.anyio
only_with_a_server = pytest.mark.skipif("postgresql" not in DATABASES, reason="PostgreSQL is not installed")
PATIENCE = 120.0
FINDING = Commit(facts=(Fact(FactKind.FINDING),))


def add(connection: Connection) -> None:
    connection.execute("INSERT INTO t VALUES (1)")


def refuse(_connection: Connection) -> None:
    raise ValueError("refused")


def counted(dialect: Dialect) -> int:
    connection = dialect.connect_reader()
    try:
        return int(connection.execute("SELECT count(*) FROM t").fetchone()[0])
    finally:
        connection.close()


class File(Sqlite):
    """A file with one table; what happens to it can be arranged, and is remembered."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with sqlite3.connect(path) as made:
            made.execute("CREATE TABLE t (a)")
        made.close()
        self.lose = self.fail = False
        self.commits: list[int] = []
        #: Held while set: who carries the log over says so, and waits.
        self.gate: threading.Event | None = None
        self.at_gate: queue.SimpleQueue[None] = queue.SimpleQueue()

    def commit(self, connection: Connection) -> None:
        self.commits.append(threading.get_ident())
        failed = sqlite3.OperationalError("disk I/O error")
        failed.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        if self.fail:
            raise failed
        super().commit(connection)
        if self.lose:
            self.lose = False
            raise failed

    def catch_up(self, connection: Connection) -> None:
        if self.gate is not None:
            self.at_gate.put(None)
            self.gate.wait(PATIENCE)
        super().catch_up(connection)

    def count(self) -> int:
        return counted(self)


class Far(Postgresql):
    """A database with one table; the answer to a commit can be lost."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        with psycopg.connect(url, autocommit=True) as made:
            made.execute("CREATE TABLE t (a integer)")
        self.lose = False
        self.looked: list[int] = []

    def commit(self, connection: Connection) -> None:
        super().commit(connection)
        if self.lose:
            self.lose = False
            connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    def lost(self, connection: Connection) -> bool:
        self.looked.append(threading.get_ident())
        return super().lost(connection)

    def count(self) -> int:
        return counted(self)


@pytest.fixture
async def file(tmp_path: Path) -> File:
    return File(tmp_path / "t.sqlite3")


@pytest.fixture
async def quick(file: File, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Writer]:
    """A writer that writes where it is asked, because its disk has been quick."""
    monkeypatch.setattr(writer, "QUICK", 60.0)
    opened = Writer(file)
    await calm(opened)
    assert file.commits[-1] == threading.get_ident()
    yield opened
    if file.gate is not None:
        file.gate.set()
    await asyncio.to_thread(opened.close)


async def calm(writing: Writer) -> None:
    for _ in range(writer.CALM + 2):
        await writing.do(add, brief=True)


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("refused", [False, True])
async def test_a_commit_whose_answer_was_lost_is_not_made_again(
    database: str, tmp_path: Path, jobs: int, refused: bool
) -> None:
    dialect = Far(database) if database.startswith("postgresql") else File(tmp_path / "t.sqlite3")
    writing = Writer(dialect)
    await writing.do(add)
    dialect.lose = True
    asked = [add] * jobs + [refuse] * refused  # one that is refused has the others written apart
    told = await asyncio.gather(*(writing.do(job) for job in asked), return_exceptions=True)
    assert {type(one) for one in told[:jobs]} == {OutOfReach if isinstance(dialect, Far) else StorageFull}
    assert len({id(one) for one in told}) == len(asked)
    assert dialect.count() == 1 + jobs
    await writing.do(add)
    assert dialect.count() == 2 + jobs
    await asyncio.to_thread(writing.close)


async def test_no_loop_waits_for_commits_that_fail(quick: Writer, file: File) -> None:
    with pytest.raises(ValueError, match="refused"):
        await quick.do(refuse, brief=True)
    await quick.do(add, brief=True)
    assert file.commits[-1] == threading.get_ident()  # a refusal says nothing of the disk
    file.fail = True
    before = len(file.commits)
    for _ in range(4):
        with pytest.raises(StorageFull):
            await quick.do(add, brief=True)
    first, *others = file.commits[before:]
    assert first == threading.get_ident()
    assert others
    assert threading.get_ident() not in others
    file.fail = False


async def test_no_loop_waits_for_commits_of_several_that_fail(quick: Writer, file: File) -> None:
    await asyncio.gather(*(quick.do(add, brief=True) for _ in range(3)))
    file.fail = True
    before = len(file.commits)
    for _ in range(3):
        told = await asyncio.gather(*(quick.do(add, brief=True) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in told] == [StorageFull] * 3
    first, *others = file.commits[before:]
    assert first == threading.get_ident()
    assert others
    assert threading.get_ident() not in others
    file.fail = False


async def test_no_loop_waits_while_the_thread_carries_the_log_over(
    quick: Writer, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PUT_OFF", writer.HERE + 1)
    file.gate = threading.Event()
    asked = writer.HERE + 2  # the first does not know of the others, and they are too many
    await asyncio.gather(*(quick.do(add, brief=True) for _ in range(asked)))
    assert file.commits[-1] != threading.get_ident()
    await asyncio.to_thread(file.at_gate.get, timeout=PATIENCE)
    waiting = [asyncio.create_task(quick.do(add, brief=True)) for _ in range(2)]
    before = len(file.commits)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(file.commits) == before
    file.gate.set()
    await asyncio.gather(*waiting)
    assert threading.get_ident() not in file.commits[before:]


async def test_whoever_asked_before_a_close_is_answered(quick: Writer) -> None:
    here = threading.current_thread()
    closing = threading.Thread(target=quick.close)

    def refuse_while_closing(_connection: Connection) -> None:
        if threading.current_thread() is here:
            closing.start()
            until = time.monotonic() + PATIENCE
            while not quick._closed:
                if time.monotonic() > until:
                    raise TimeoutError("nobody closed the writer")
                time.sleep(0.001)
        raise ValueError("refused")

    await asyncio.gather(*(quick.do(add, brief=True) for _ in range(3)))  # now several are waited for
    asked = [quick.do(job, brief=True) for job in (add, refuse_while_closing)]
    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in told] == [Closed, Closed]
    await asyncio.to_thread(closing.join)


@only_with_a_server
async def test_no_loop_ever_looks_at_a_connection_to_a_server(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUICK", 60.0)
    dialect = Far(postgresql.database())
    writing = Writer(dialect)
    for _ in range(2):
        await calm(writing)
        await asyncio.gather(*(writing.do(add, brief=True) for _ in range(2)))
    assert dialect.looked
    assert threading.get_ident() not in dialect.looked
    await asyncio.to_thread(writing.close)


@only_with_a_server
@pytest.mark.parametrize("one_way", [True, False])
async def test_what_is_guarded_is_asked_after_waiting_for_whoever_writes(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch, one_way: bool
) -> None:
    monkeypatch.setattr(store, "_SESSION", "SELECT 1")
    monkeypatch.setattr(store, "WRITING", PATIENCE)
    url = postgresql.database()
    ledger = open_registry(url, SetClock(), minter=Counting())
    mine = await ledger.lead(candidate("me"), never)
    assert mine is not None
    here = place(Counting(1000))
    await written(ledger, Commit(puts=here.rows, facts=FINDING.facts))
    guarded = Commit(facts=FINDING.facts, guards=(Guard("run", here.run.id, 1),))
    assert isinstance(await ledger.commit(guarded), Committed)
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as looking:
        other.execute("SELECT epoch FROM leadership FOR UPDATE")  # as a commit of this very lease that was cut off
        other.execute("UPDATE run SET revision = 2 WHERE id = %s", (here.run.id,))
        asked: list[asyncio.Task[object]] = [asyncio.create_task(ledger.commit(guarded))]
        if not one_way:  # what a renewal comes with takes the way on which everything is answered
            asked.append(asyncio.create_task(ledger.renew(mine, NOW, NOW + 15 * SECOND)))
        await until(lambda: _waiting(looking))
        other.commit()
    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*asked)
    assert told[0] == Stale(f"run {here.run.id}")
    await ledger.close()


def _waiting(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Whether anybody waits for a lock in this database."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return connection.execute(asked).fetchone() is not None


async def until(so: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE
    while not so():
        if time.monotonic() > last:
            raise TimeoutError("it did not come to that")
        await asyncio.sleep(0.01)


def test_a_connection_with_a_high_descriptor_is_looked_at_as_any_other() -> None:
    fcntl, resource, socket = (pytest.importorskip(name) for name in ("fcntl", "resource", "socket"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("so many files may not be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    try:
        one, other = socket.socketpair()
        with one, other, socket.socket(fileno=fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 1100)) as high:

            class Held:
                closed = broken = False
                fileno = high.fileno

            assert high.fileno() >= 1024
            assert not Patient(Held(), 1.0).lost
            other.close()
            assert Patient(Held(), 1.0).lost
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
