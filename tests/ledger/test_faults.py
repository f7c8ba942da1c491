"""A disk that fails at each write and sync, in three ways: nothing acknowledged is lost, and errors are clear.

The faults are put in by a file system of SQLite's own kind, below its write-ahead log; the registry is looked at
afterwards through an ordinary one.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.ledger.world import Counting, SetClock, candidate, never, place, written

from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import StorageFull
from tenuto.store.dialect import Connection
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.store.sqlite import Sqlite

pytestmark = pytest.mark.anyio
FAULTS = {"io error": apsw.IOError, "short write": apsw.IOError, "disk full": apsw.FullError}
#: What the driver calls these elsewhere.
NAMED = {apsw.IOError: "SQLITE_IOERR_WRITE", apsw.FullError: "SQLITE_FULL", apsw.CorruptError: "SQLITE_CORRUPT"}
COMMITS = 4
#: Every write fails once under ./prove, and every ninth here.
STEP = 1 if os.environ.get("TENUTO_PROVE") == "1" else 9


class Failing(apsw.VFS):
    """Fails once, at the write or sync whose turn it is; `once` False goes on failing from there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.passed = 0
        self.at = 0
        self.how = ""
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - the base class's name
        return FailingFile(self, name, flags)

    def due(self) -> bool:
        self.passed += 1
        return self.passed == self.at


class FailingFile(apsw.VFSFile):
    """A file whose writes may fail."""

    def __init__(self, system: Failing, name: Any, flags: list[int]) -> None:
        self._system = system
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the base class's name
        if self._system.due():
            if self._system.how == "short write":
                super().xWrite(data[: len(data) // 2], offset)
            raise FAULTS[self._system.how]
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - the base class's name
        if self._system.due():
            raise FAULTS[self._system.how]
        super().xSync(flags)


class Answer:
    """What a statement answered."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows


class Through:
    """A connection through the failing file system, with the errors of the driver that is used everywhere else."""

    def __init__(self, path: Path, system: Failing) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=system.name)

    def execute(self, sql: str, parameters: Any = ()) -> Answer:
        try:
            rows = list(self._connection.execute(sql, tuple(parameters)))
            return Answer(rows, self._connection.changes())
        except apsw.Error as error:
            told = sqlite3.OperationalError(str(error))
            told.sqlite_errorname = NAMED.get(type(error), "SQLITE_ERROR")
            raise told from error

    def close(self) -> None:
        try:
            self._connection.close()
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error


class OnFailing(Sqlite):
    """The registry in a file that lies in the failing file system."""

    def __init__(self, path: Path, system: Failing) -> None:
        super().__init__(path)
        self._system = system

    def connect(self) -> Connection:
        through = Through(self.path, self._system)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            through.execute(f"PRAGMA {pragma}")
        return through


async def lived(path: Path, system: Failing) -> tuple[list[str], int]:
    """Lead and commit; the tasks that were acknowledged, and how many commits were refused for want of room."""
    ledger = TableLedger(OnFailing(path, system), SetClock())
    ids, refused = Counting(), 0
    said: list[str] = []
    try:
        for _ in range(2):
            try:
                if await ledger.lead(candidate("me"), never) is not None:
                    break
            except StorageFull:
                refused += 1
        for _ in range(COMMITS):
            here = place(ids)
            try:
                await written(
                    ledger, Commit(puts=here.rows, facts=(Fact(FactKind.TASK_CREATED, here.run.id, here.task.id),))
                )
            except StorageFull as full:
                refused += "make room" in str(full)
            else:
                said.append(here.task.id)
    finally:
        await ledger.close()
    return said, refused


@pytest.mark.parametrize("how", sorted(FAULTS))
async def test_no_acknowledged_row_is_lost_whichever_write_fails(tmp_path: Path, how: str) -> None:
    empty = tmp_path / "empty.sqlite3"
    await open_registry(empty, SetClock(), minter=Counting(500)).close()
    system = Failing(f"failing {how}")
    assert system.name
    system.how = how
    at, failed = 1 - STEP, 0
    while True:
        at += STEP
        path = tmp_path / f"{at}.sqlite3"
        path.write_bytes(empty.read_bytes())
        system.passed, system.at = 0, at
        said, refused = await lived(path, system)
        reader = open_registry(path, SetClock(), minter=Counting(), read_only=True)
        there = {task.id for task in reader.tasks(100)}
        assert reader.check() == ()
        reader.close_readers()
        assert set(said) <= there, f"write {at}: {how}"
        failed += refused
        if system.passed < at:
            break
        assert at < 500
    assert len(said) == COMMITS
    assert failed >= (COMMITS if STEP == 1 else 2), "most of the faults were met by a commit, and told"
