"""What was acknowledged is there: after a kill, and after a disk that was full."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ledger.world import Counting, SetClock, candidate, never, place, written

from tenuto.model.change import Commit, Committed
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import Corrupt, StorageFull
from tenuto.store.dialect import Connection
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.store.sqlite import Sqlite

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]

#: Leads, then commits from eight callers and says each number once it is acknowledged, until it is killed.
CHILD = """
import asyncio, os, sys
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind
from tenuto.store.opening import open_registry
from tests.ledger.world import Counting, SetClock, candidate, place, written

async def main(where, start):
    ledger = open_registry(where, SetClock(), minter=Counting(start))
    assert await ledger.lead(candidate(str(start)), lambda holder: True) is not None
    ids = Counting(start)

    async def caller():
        while True:
            here = place(ids)
            fact = Fact(FactKind.TASK_CREATED, here.run.id, here.task.id)
            await written(ledger, Commit(puts=here.rows, facts=(fact,)))
            os.write(1, (here.task.id + chr(10)).encode())

    await asyncio.gather(*(caller() for _ in range(8)))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def test_every_commit_acknowledged_before_a_kill_is_there(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    said: set[str] = set()
    for lap in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(10**9 * (lap + 1))],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert child.stdout is not None
        for _ in range(40 + 17 * lap):
            said.add(child.stdout.readline().decode().strip())
        child.send_signal(signal.SIGKILL)
        said |= set(child.stdout.read().decode().split("\n")[:-1])
        child.stdout.close()
        assert child.wait(timeout=90) == -signal.SIGKILL
        reader = open_registry(path, SetClock(), minter=Counting(), read_only=True)
        there = {task.id for task in reader.tasks(10**6)}
        assert "" not in said
        assert said <= there
        events = reader.events(0, 10**6)
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        assert {event.fact.task_id for event in events} == there
        assert reader.check() == ()
        reader.close_readers()


class Narrow(Sqlite):
    """A registry on a disk that has room for so many pages."""

    pages = 2**30

    def connect(self) -> Connection:
        connection = super().connect()
        connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return connection


async def test_a_full_disk_writes_nothing_and_is_forgotten_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    await open_registry(path, SetClock(), minter=Counting()).close()
    disk = Narrow(path)
    ledger = TableLedger(disk, SetClock())
    assert await ledger.lead(candidate("me"), never) is not None
    large = Commit(facts=(Fact(FactKind.FINDING, data={"text": "x" * 300_000}),))
    small = Commit(facts=(Fact(FactKind.FINDING),))
    await ledger._writer.do(lambda connection: connection.execute("PRAGMA max_page_count = 80"))
    with pytest.raises(StorageFull, match="nothing was written"):
        await ledger.commit(large)
    disk.pages = 80
    with pytest.raises(StorageFull):
        await ledger.commit(large)
    assert ledger.last_event() == 0
    assert isinstance(await ledger.commit(small), Committed)
    disk.pages = 2**30
    await ledger._writer.do(lambda connection: connection.execute(f"PRAGMA max_page_count = {2**30}"))
    assert (await written(ledger, large)).n == 2
    assert ledger.check() == ()
    await ledger.close()


async def test_on_a_full_disk_neighbours_that_still_fit_are_written(tmp_path: Path) -> None:
    import asyncio

    path = tmp_path / "registry.sqlite3"
    await open_registry(path, SetClock(), minter=Counting()).close()
    disk = Narrow(path)
    disk.pages = 90
    ledger = TableLedger(disk, SetClock())
    assert await ledger.lead(candidate("me"), never) is not None
    large = Commit(facts=(Fact(FactKind.FINDING, data={"text": "x" * 300_000}),))
    small = Commit(facts=(Fact(FactKind.FINDING, data={"small": True}),))
    commits = [small, small, large, small, small]
    results = await asyncio.gather(*map(ledger.commit, commits), return_exceptions=True)
    assert [type(result) for result in results] == [Committed, Committed, StorageFull, Committed, Committed]
    assert [event.fact.data for event in ledger.events(0, 9)] == [{"small": True}] * 4
    await ledger.close()


def test_a_file_that_may_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    """The kernel refuses the bytes themselves here, in a process of its own whose files may not pass a limit."""
    script = """
import asyncio, resource, sys
from tests.ledger.test_durable import full_by_limit
asyncio.run(full_by_limit(sys.argv[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "registry.sqlite3")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def full_by_limit(where: str) -> None:
    """Run in a process of its own: no file may grow past a limit, then the limit is lifted."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger = open_registry(where, SetClock(), minter=Counting())
    assert await ledger.lead(candidate("me"), never) is not None
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    count = 0
    fact = Fact(FactKind.FINDING, data={"text": "x" * 20_000})
    full = None
    for _ in range(100):
        try:
            count = (await written(ledger, Commit(facts=(fact,)))).n
        except StorageFull as error:
            full = error
            break
    assert full is not None
    assert ledger.last_event() == count
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert (await written(ledger, Commit(facts=(fact,)))).n == count + 1
    assert ledger.check() == ()
    await ledger.close()


async def test_damage_stops_with_a_word_for_a_person(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    ledger = open_registry(path, SetClock(), minter=Counting())
    assert await ledger.lead(candidate("me"), never) is not None
    ids = Counting()
    for _ in range(60):
        await written(ledger, Commit(puts=place(ids).rows))
    await ledger.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 8192))
    reader = open_registry_after_damage(path)
    assert isinstance(reader, Corrupt)
    assert "db check" in str(reader)


def open_registry_after_damage(path: Path) -> Corrupt | None:
    try:
        reader = open_registry(path, SetClock(), minter=Counting(), read_only=True)
        reader.tasks(10)
    except Corrupt as error:
        return error
    return None


async def test_a_backup_is_whole_while_the_ledger_writes(tmp_path: Path, ids: Counting) -> None:
    ledger = open_registry(tmp_path / "registry.sqlite3", SetClock(), minter=ids)
    assert await ledger.lead(candidate("me"), never) is not None
    for _ in range(5):
        await written(ledger, Commit(puts=place(ids).rows))
    copy = tmp_path / "copy.sqlite3"
    ledger.backup(copy)
    await written(ledger, Commit(puts=place(ids).rows))
    await ledger.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["copy.sqlite3", "registry.sqlite3"]
    reader = open_registry(copy, SetClock(), minter=ids, read_only=True)
    assert len(reader.tasks(10)) == 5
    assert reader.check() == ()
    reader.close_readers()
    with sqlite3.connect(copy) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())
