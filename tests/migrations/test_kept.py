"""Every registry that a release has left opens, goes forward, and is worked in, on both databases."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tests.ledger.server import Server
from tests.ledger.world import Counting, SetClock, candidate, written
from tests.migrations.keeping import kept, undumped, undumped_there
from tests.migrations.test_migrations import fresh, shape
from tests.supervisors.homes import Home
from tests.support.world import world

from tenuto.model.change import Commit
from tenuto.model.lifecycle import TaskState
from tenuto.store import opening, tables
from tenuto.store.migrating import kept_before

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
    ledger = opening.open_registry(left.where, SetClock(), minter=Counting(10**9))
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
