"""Every registry that a release has left opens, goes forward, and is worked in, on both databases."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, insert
from sqlalchemy.engine import Engine
from sqlalchemy.pool import NullPool
from tests.ledger.server import Server
from tests.ledger.world import NOW, Counting, SetClock, candidate, written
from tests.migrations.keeping import kept, undumped, undumped_there
from tests.migrations.test_migrations import fresh, shape
from tests.supervisors.homes import Home
from tests.support.world import world

from tenuto.model.change import Commit
from tenuto.model.faults import Refused, StorageFull
from tenuto.model.leadership import Leadership
from tenuto.model.lifecycle import TaskState
from tenuto.store import opening, tables
from tenuto.store.migrating import kept_before, upgrade
from tenuto.store.sqlite import APPLICATION
from tenuto.transports import processes

pytestmark = pytest.mark.anyio
#: Tables that no shape of a row is of.
BESIDE = ("hold", "idempotency")
DATABASES = ("postgresql", "sqlite")
OLDER = [version for version in opening.KNOWN if version != opening.PRESENT]


class Left:
    """A registry as a release left it, in a database."""

    def __init__(self, where: str, folder: Path) -> None:
        self.where, self.folder = where, folder

    @property
    def version(self) -> str | None:
        if self.where.startswith(opening.SERVER):
            return opening.server(self.where).version()
        return opening.version_of(opening.place(self.where))

    def ask(self, sentence: str) -> list[tuple[object, ...]]:
        """What the database itself says, by a connection of its own."""
        if self.where.startswith(opening.SERVER):
            import psycopg

            with psycopg.connect(self.where) as connection:
                return connection.execute(sentence.encode()).fetchall()
        with closing(sqlite3.connect(opening.place(self.where))) as connection:
            return connection.execute(sentence).fetchall()

    def counted(self) -> dict[str, int]:
        """How many rows each table has that is known now."""
        each = (f"SELECT '{name}', count(*) FROM \"{name}\"" for name in tables.TABLES)
        return {str(name): int(str(count)) for name, count in self.ask(" UNION ALL ".join(each))}


Leave = Callable[[str, str, str], Left]


@pytest.fixture
def leave(tmp_path: Path, request: pytest.FixtureRequest) -> Leave:
    """Put what was kept of a version into a database."""

    def put(version: str, way: str, database: str) -> Left:
        told = kept(version, way, database).read_text("utf-8")
        folder = tmp_path / "there"
        if database == "postgresql":
            running: Server = request.getfixturevalue("postgresql")
            url = running.database()
            undumped_there(told, url, folder)
            return Left(url, folder)
        path = folder / "state" / "registry.sqlite3"
        undumped(told, path)
        return Left(str(path), folder)

    return put


@pytest.mark.parametrize("version", opening.KNOWN)
@pytest.mark.parametrize("database", DATABASES)
async def test_it_opens_goes_forward_and_is_worked_in(leave: Leave, version: str, database: str) -> None:
    left = leave(version, "written", database)
    assert left.version == version
    before = left.counted()
    assert {name for name, count in before.items() if not count} <= {"sample", "sighting", "report"}
    ledger = opening.open_registry(left.where, SetClock(), minter=Counting(10**9), gone=lambda _holder: True)
    assert left.version == opening.PRESENT
    assert left.counted() == before, "nothing is lost on the way"
    assert ledger.check() == ()
    assert everything_reads(left) >= sum(1 for count in before.values() if count) - len(BESIDE)
    mine = await ledger.lead(candidate("after"), lambda _holder: True)
    assert mine is not None
    assert mine.epoch == 2
    (task,) = [task for task in ledger.tasks(10) if ledger.snapshot(task.id, 9).live is not None]  # type: ignore[union-attr]
    changed = replace(task, revision=task.revision + 1, title="worked in")
    await written(ledger, Commit(puts=(changed,)))
    assert ledger.task(task.id) == changed
    assert ledger.replayed("operator", "once") == ("d" * 64, {"task": task.id})
    await ledger.close()


@pytest.mark.parametrize("version", opening.KNOWN)
@pytest.mark.parametrize("database", DATABASES)
async def test_what_was_under_way_in_it_is_brought_to_its_end(leave: Leave, version: str, database: str) -> None:
    left = leave(version, "lived", database)
    before = left.counted()
    assert {"sample", "report", "message", "text", "event"} <= {name for name, count in before.items() if count}
    async with world(left.folder, database=left.where, first=10**6) as it:
        assert it.lease.epoch == 2
        assert left.counted() == before
        assert everything_reads(left) > 0
        by_title = {task.title: task for task in it.ledger.tasks(10)}
        ended, waiting, going_on = (by_title[name] for name in ("Ended", "Waiting", "Going on"))
        assert (ended.state, waiting.state) == (TaskState.COMPLETED, TaskState.ACTIVE)
        assert it.desk.text(ended.objective) == "Sweep the floor"
        assert "which colour?" in str(await it.desk.explain(waiting.id))
        (command,) = it.ledger.commands(10, task_id=going_on.id)
        it.executor.found(command)
        it.clock.move(timedelta(hours=1))
        assert await it.settle(going_on.id) is not None
        it.executor.finish(command.id, status="working", summary="the tiles are on")
        await it.settle(going_on.id)
        assert len(it.executor.turns) == 1, "the next turn, and not the one before again"
        order = it.executor.orders[it.executor.turns[0]]
        assert "Mind the gutter." in str(order), "what was said before rides along"
        it.executor.finish(status="complete", summary="mended", evidence="it is dry")
        await it.settle(going_on.id)
        assert it.ledger.task(going_on.id).state is TaskState.COMPLETED  # type: ignore[union-attr]
        assert it.ledger.check() == ()


def everything_reads(left: Left) -> int:
    """How many rows there are, each of a shape that the program knows."""
    count = 0
    for table in (*tables.ORDER, tables.EVENT, tables.LEADERSHIP):
        names = ", ".join(f'"{name}"' for name in table.columns)
        for cells in left.ask(f'SELECT {names} FROM "{table.name}"'):
            table.load(cells)
            count += 1
    return count


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """Have this process killed before its statement of that number."""
    seen = 0

    def counted(*_arguments: object) -> None:
        nonlocal seen
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1

    event.listen(Engine, "before_cursor_execute", counted)
    yield
    event.remove(Engine, "before_cursor_execute", counted)


def carried_forward_and_killed(left: Left, step: int) -> bool:
    """Carry it forward in a process that is killed before a statement; whether it was, or was done before."""
    child = os.fork()
    if not child:
        try:
            with killed_at(step):
                opening.open_registry(left.where, SetClock(), minter=Counting(10**9)).close_readers()
        finally:
            os._exit(7)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 7
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("version", OLDER)
def test_a_file_that_is_carried_forward_is_copied_first(leave: Leave, version: str) -> None:
    """The program that made it can be gone back to; a copy of an earlier try is not taken for it."""
    left = leave(version, "lived", "sqlite")
    path = opening.place(left.where)
    copy = kept_before(path, version)
    copy.write_text("of an earlier try", "utf-8")
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
    opening.open_registry(left.where, SetClock(), minter=Counting(10**9)).close_readers()
    assert (opening.version_of(copy), left.version) == (version, opening.PRESENT)
    with closing(sqlite3.connect(copy)) as connection:
        assert list(connection.iterdump()) == before
    assert copy.stat().st_mode & 0o777 == 0o600
    opening.open_registry(left.where, SetClock(), minter=Counting(10**9)).close_readers()
    with closing(sqlite3.connect(copy)) as connection:
        assert list(connection.iterdump()) == before, "nothing is copied where nothing is carried"


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("database", DATABASES)
def test_nothing_is_carried_forward_under_one_who_leads(leave: Leave, version: str, database: str) -> None:
    """Not before its lease has run out, by the clock that it is measured by."""
    left = leave(version, "written", database)
    before = left.counted()
    with pytest.raises(Refused, match=r"pid 4711 on host.*tenuto restart"):
        opening.open_registry(left.where, SetClock(), minter=Counting(10**9))
    assert (left.version, left.counted()) == (version, before)
    if database == "sqlite":
        assert not kept_before(opening.place(left.where), version).exists()
    late = SetClock(NOW + timedelta(seconds=15))
    opening.open_registry(left.where, late, minter=Counting(10**9)).close_readers()
    assert left.version == opening.PRESENT
    opening.open_registry(left.where, SetClock(), minter=Counting(10**9)).close_readers()  # nothing to carry


@pytest.mark.parametrize("version", OLDER)
def test_the_databases_clock_says_whether_a_lease_has_run_out(leave: Leave, version: str) -> None:
    left = leave(version, "written", "postgresql")
    opening.open_registry(left.where, SetClock(), minter=Counting(10**9), shared=True).close_readers()
    assert left.version == opening.PRESENT


def test_a_newer_supervisor_waits_for_an_older_one_to_be_gone(tmp_path: Path) -> None:
    """`up` ends as it does where another leads, so that nothing starts it again; the older one gone, it leads."""
    home = Home(tmp_path / "home", str(tmp_path / "home" / "state" / "registry.sqlite3"))
    path = Path(home.database)
    with subprocess.Popen(["sleep", "1000"]) as older:
        try:
            there = processes.identity_of(older.pid)
            assert there is not None
            now = datetime.now(UTC)
            mine = replace(
                candidate("older", now, timedelta(days=1)), epoch=1, host=socket.gethostname(), pid=there.pid,
                started=str(there.start), boot_id=there.boot or "",
            )  # fmt: skip
            old_one(path, OLDER[-1], mine)
            ended = home.up().wait(300)
            assert ended == 5, home.log()
            assert opening.version_of(path) == OLDER[-1]
            assert "Stop that one, or run: tenuto restart" in home.log()
        finally:
            older.kill()
    try:
        home.up()
        home.led()
        assert opening.version_of(path) == opening.PRESENT
    finally:
        home.close()


def old_one(path: Path, version: str, lease: Leadership | None = None) -> None:
    """A registry of an earlier schema, and whoever leads it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        upgrade(connection, version)
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
        if lease is not None:
            row = dict(zip(tables.LEADERSHIP.columns, tables.LEADERSHIP.dump(lease), strict=True))
            connection.execute(insert(tables.leadership).values(row))
    engine.dispose()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("where", ["directory", "file", "made"])
def test_where_the_copy_finds_no_room_nothing_is_carried_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, code: int
) -> None:
    """Told as a full disk. The earlier copy is there until another takes its place, whose name is synced before."""
    path, version = tmp_path / "registry.sqlite3", OLDER[-1]
    old_one(path, version)
    copy = kept_before(path, version)
    copy.write_text("of an earlier try", "utf-8")
    real_sync, real_open = os.fsync, os.open

    def sync(descriptor: int) -> None:
        if (where == "directory") == stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        real_sync(descriptor)

    def opened(name: str | Path, *more: Any, **named: Any) -> int:
        if str(name).endswith(".unfinished"):
            raise OSError(code, os.strerror(code))
        return real_open(name, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "open", opened) if where == "made" else (os, "fsync", sync)))
        with pytest.raises(StorageFull, match="make room"):
            opening.open_registry(path, SetClock(), minter=Counting())
    assert opening.version_of(path) == version
    if where == "directory":
        assert opening.version_of(copy) == version
    else:
        assert copy.read_text("utf-8") == "of an earlier try"
    assert [found.name for found in tmp_path.iterdir() if found.name.endswith(".unfinished")] == []
    opening.open_registry(path, SetClock(), minter=Counting()).close_readers()
    assert (opening.version_of(path), opening.version_of(copy)) == (opening.PRESENT, version)


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("database", DATABASES)
def test_carrying_forward_by_hand_is_told(leave: Leave, version: str, database: str, tmp_path: Path) -> None:
    """A reader is told what to do; `db upgrade` does it, says from what to what, and where the copy lies."""
    left = leave(version, "lived", database)
    home = Home(tmp_path / "home", left.where)
    refused = home.tenuto("tasks")
    assert refused.returncode != 0
    assert "schema" in refused.stderr or "db upgrade" in refused.stderr, refused
    told = home.tenuto("db", "upgrade").stdout
    assert f"carried from {version} to {opening.PRESENT}" in told
    if database == "sqlite":
        copy = kept_before(opening.place(left.where), version)
        assert copy.name in told
        assert opening.version_of(copy) == version
    again = home.json("db", "upgrade")
    assert (again["ok"], again["before"], again["after"]) == (True, opening.PRESENT, opening.PRESENT), again
    assert {task["title"] for task in home.json("tasks")["tasks"]} == {"Ended", "Waiting", "Going on"}


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("database", DATABASES)
def test_killed_on_the_way_it_is_the_old_one_or_the_new_one(leave: Leave, version: str, database: str) -> None:
    left = leave(version, "lived", database)
    before = left.counted()
    for step in range(200):
        killed = carried_forward_and_killed(left, step)
        if not killed:
            break
        assert left.version == version, f"killed before statement {step}, nothing of it is there"
        assert left.counted() == before
    assert step > 5
    assert left.version == opening.PRESENT
    assert left.counted() == before
    if database == "sqlite":
        with closing(sqlite3.connect(opening.place(left.where))) as connection:
            assert shape(connection) == fresh()
    opened = opening.open_registry(left.where, SetClock(), minter=Counting(10**9))
    assert opened.check() == ()
    opened.close_readers()
