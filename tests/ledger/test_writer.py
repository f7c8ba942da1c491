"""Where a commit is made, and what it writes: alone on a quick disk where it was asked for, else in the thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.server import Server
from tests.ledger.world import NOW, Counting, SetClock, candidate, never, place, turn, written

from tenuto.model.change import Commit, Stale
from tenuto.model.fact import Fact, FactKind
from tenuto.store import writer
from tenuto.store.dialect import Connection
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.store.patience import Patient
from tenuto.store.sqlite import Sqlite

pytestmark = pytest.mark.anyio
FINDING = Commit(facts=(Fact(FactKind.FINDING),))


class Watched(Sqlite):
    """Remembers which thread commits, and every statement that is run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.threads: list[int] = []
        self.statements: list[str] = []

    def connect(self) -> Connection:
        connection = super().connect()
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(self.statements.append)
        return connection

    def commit(self, connection: Connection) -> None:
        self.threads.append(threading.get_ident())
        super().commit(connection)

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
    count = 2 * writer.IN_A_ROW + 2
    for _ in range(count):
        await written(ledger, FINDING)
    assert count // 2 < disk.here(count) < count  # now and then the thread has its turn
    assert any("wal_checkpoint" in sql for sql in disk.statements)
    assert [event.n for event in ledger.events(0, 10**6)] == list(range(1, ledger.last_event() + 1))


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
    assert disk.here(1) == 0


async def test_a_task_that_writes_without_end_lets_others_have_their_turn(ledger: TableLedger) -> None:
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
    assert turns >= 20 // writer.SPELL - 1
    turns = 1000
    await running


async def test_whoever_keeps_the_file_locked_keeps_no_loop_waiting(ledger: TableLedger, disk: Watched) -> None:
    await calm(ledger)
    with closing(sqlite3.connect(disk.path, isolation_level=None)) as stranger:
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


async def test_a_server_is_waited_for_four_times_in_a_transition(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_registry(postgresql.database(), SetClock(), minter=Counting())
    assert await ledger.lead(candidate("me"), never) is not None
    ids = Counting()
    here = place(ids)
    await written(ledger, Commit(puts=here.rows))
    waits: list[str] = []
    inside: list[Patient] = []
    execute, together = Patient.execute, Patient.together

    def told(patient: Patient, sql: Any, parameters: Any = (), /) -> Any:
        if not inside:
            waits.append(sql)
        return execute(patient, sql, parameters)

    @contextmanager
    def once(patient: Patient) -> Iterator[None]:
        waits.append("together")
        inside.append(patient)
        with together(patient):
            yield
        inside.clear()

    monkeypatch.setattr(Patient, "execute", told)
    monkeypatch.setattr(Patient, "together", once)
    await written(ledger, turn(ids, here).commit())
    assert waits == ["BEGIN", "together", "together", "COMMIT"]
    await ledger.close()
