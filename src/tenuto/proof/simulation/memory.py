"""The real ledger in memory: the same tables, triggers and statements, without a disk and without a thread.

One connection reads and writes; a commit is made where it is asked for. The disk can be said to be full.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TypeVar

from tenuto.model.faults import StorageFull
from tenuto.model.ids import spelled
from tenuto.model.snapshot import Registry
from tenuto.ports import Fuse
from tenuto.proof.simulation.virtual import BEGINNING
from tenuto.store.dialect import Connection
from tenuto.store.migrating import carry_forward
from tenuto.store.sqlite import Sqlite

T = TypeVar("T")


@cache
def _empty() -> sqlite3.Connection:
    """An empty registry of the present schema, made once in this process."""
    blank = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory(prefix="tenuto-simulation-") as folder:
        path = Path(folder) / "registry.sqlite3"
        path.touch()
        carry_forward(path, Registry(spelled("registry", 1), 1, BEGINNING))
        with closing(sqlite3.connect(path)) as made:
            made.backup(blank)
    return blank


class Memory(Sqlite):
    """A registry that lives as long as this value."""

    def __init__(self) -> None:
        super().__init__(Path("simulated"))
        self.full = False
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=1024
        )
        _empty().backup(self.connection)
        self.connection.execute("PRAGMA foreign_keys = ON")

    def connect(self) -> Connection:
        return self.connection

    def connect_reader(self) -> Connection:
        return self.connection

    def begin(self, connection: Connection) -> None:
        connection.execute("BEGIN")

    def begin_read(self, connection: Connection) -> None:
        """Nobody writes while somebody looks: there is one thread, and no look waits for anything."""

    def rollback(self, connection: Connection) -> None:
        if self.connection.in_transaction:
            super().rollback(connection)

    def commit(self, connection: Connection) -> None:
        if self.full:
            raise StorageFull("the simulated disk is full")
        connection.execute("COMMIT")


class AtOnce:
    """Writes a job where it is asked for, in place of the writer with its thread."""

    def __init__(self, dialect: Memory, fuse: Fuse, made: Callable[[object], None]) -> None:
        self._dialect = dialect
        self._fuse = fuse
        self._made = made

    async def do(self, job: Callable[[Connection], T], *, brief: bool = False) -> T:
        """Run `job` in a transaction of its own; what it raises leaves nothing behind."""
        dialect, connection = self._dialect, self._dialect.connection
        dialect.begin(connection)
        try:
            value = job(connection)
            self._fuse.burn("write.prepared")
            dialect.commit(connection)
        except Exception as error:
            dialect.rollback(connection)
            raise dialect.translated(error) from error
        except BaseException:
            dialect.rollback(connection)
            raise
        self._made(value)
        self._fuse.burn("write.durable")
        return value

    def close(self) -> None:
        """There is nothing to let go of."""
