"""The registry as one SQLite file.

A commit is durable when it returns: the write-ahead log is synced at every commit, because a lost armed row is a
duplicate send. One connection writes; any number read, and a reader never waits for the writer.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import Dialect as CoreDialect

from tenuto.model.faults import Conflict, Corrupt, StorageFull
from tenuto.store.dialect import Connection, Taken
from tenuto.store.tables import UNIQUE

#: How long a statement waits for another process's write before it is an error, in seconds.
PATIENCE = 10.0
#: Pages in the write-ahead log at which a commit also carries it over into the file, if that was not done before.
CARRIED_OVER = 4000
APPLICATION = 0x54454E55

_EACH_BY_ITSELF: AbstractContextManager[object] = nullcontext()
_INDEXES = {", ".join(f"{column.table.name}.{column.name}" for column in index.columns): index.name for index in UNIQUE}
_UNIQUE = "UNIQUE constraint failed: "
_FULL = {"SQLITE_FULL", "SQLITE_READONLY_DBMOVED", "SQLITE_CANTOPEN"}
_BROKEN = {"SQLITE_CORRUPT", "SQLITE_NOTADB"}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
#: What may lie beside a file, and is taken for its own by whoever opens it.
BESIDE = ("-journal", "-wal", "-shm")


class Sqlite:
    """A registry in the file at `path`."""

    name = "sqlite"
    one_way = False
    failure: type[Exception] = sqlite3.Error

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = os.fspath(path)
        self.core: CoreDialect = SQLiteDialect_pysqlite(paramstyle="qmark")
        #: The file that is written, once one is: another under its name is another registry.
        self._file: tuple[int, int] | None = None

    def connect(self) -> Connection:
        self._still_there()
        connection = open_file(self.path, "rw")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CARRIED_OVER}")
        connection.execute("PRAGMA foreign_keys = ON")
        if self._file is None:
            about = self.path.stat()
            self._file = (about.st_dev, about.st_ino)
        return connection

    def _still_there(self) -> None:
        """Raises Corrupt when the file that is written has lost its name: what goes there reaches nobody any more."""
        if self._file is None:
            return
        try:
            about = os.stat(self._name)  # noqa: PTH116 - before every commit, so quickly
        except FileNotFoundError:
            about = None
        if about is None or (about.st_dev, about.st_ino) != self._file:
            raise Corrupt(
                f"{self.path} was removed or replaced while it was in use; nothing more is written."
                " Put the file back, or go on with what is there now, and start again"
            )

    def connect_reader(self) -> Connection:
        connection: Connection = open_file(self.path, "ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            connection = self._without_shared_memory()
        return connection

    def _without_shared_memory(self) -> Connection:
        """A reader for a place where nothing may be written: good only while nobody writes, so only without a log."""
        log = self.path.with_name(self.path.name + "-wal")
        if log.exists() and log.stat().st_size > 0:
            raise PermissionError(
                f"{self.path} has a write-ahead log, and reading it needs the right to write {self.path.name}-shm"
                " beside it; ask as the user who owns the registry"
            )
        return open_file(self.path, "ro", immutable=True)

    def lost(self, connection: Connection) -> bool:
        return False

    def now(self, connection: Connection) -> None:
        return None

    def hint(self, connection: Connection) -> None:
        """Nobody can listen to a file."""

    def listen(self) -> None:
        return None

    def hurry(self, connection: Connection, on: bool) -> bool:
        connection.execute(f"PRAGMA busy_timeout = {0 if on else int(PATIENCE * 1000)}")
        return True

    def catch_up(self, connection: Connection) -> None:
        """Carry the log over, so that it is written from its beginning again: syncing one that grows takes longer."""
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def together(self, connection: Connection) -> AbstractContextManager[object]:
        """A call into a library is answered when it returns."""
        return _EACH_BY_ITSELF

    def demanding(self, sql: str) -> str:
        """Every statement is answered before the next: its answer is looked at."""
        return sql

    def begin(self, connection: Connection) -> None:
        self._still_there()
        connection.execute("BEGIN IMMEDIATE")

    def begin_read(self, connection: Connection) -> None:
        connection.execute("BEGIN")

    def commit(self, connection: Connection) -> None:
        connection.execute("COMMIT")

    def rollback(self, connection: Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            return  # a failing medium has ended the transaction already

    def taken(self, error: Exception) -> Taken | None:
        said = str(error)
        if not isinstance(error, sqlite3.IntegrityError) or not said.startswith(_UNIQUE):
            return None
        columns = said.removeprefix(_UNIQUE)
        name = _INDEXES.get(columns)
        return Taken(columns.partition(".")[0], key=True) if name is None else Taken(str(name), key=False)

    def refused(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.IntegrityError)

    def damage(self, connection: Connection) -> list[str]:
        said = [str(cells[0]) for cells in connection.execute("PRAGMA integrity_check").fetchall()]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        return [line for line in said if line != "ok"] + [
            f"a {table} (row {row}) belongs to a {parent} that is not there" for table, row, parent, _ in orphans
        ]

    def backup(self, to: Path, *, over: bool = False) -> None:
        """Copy it to `to`, which with `over` may be there: it is kept until the copy takes its place."""
        if not over and to.exists():
            raise Conflict(f"{to} exists already; name a new file", field="path")
        unfinished = to.with_name(f".{to.name}.unfinished")
        try:
            os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
            self._copy(unfinished)
            remove_beside(to)
            unfinished.replace(to)
            synced(to.parent)
        except sqlite3.Error as error:
            raise self.translated(error) from error
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise StorageFull(f"{to} cannot be written ({error.strerror}); make room, nothing was changed") from error
        finally:
            unfinished.unlink(missing_ok=True)
            remove_beside(unfinished)

    def _copy(self, to: Path) -> None:
        """Copy every page, and have the copy stand alone: synced, and without a log beside it."""
        source, target = open_file(self.path, "ro"), open_file(to, "rw")
        try:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()
            source.close()
        synced(to)

    def translated(self, error: Exception) -> Exception:
        code = getattr(error, "sqlite_errorname", None) or ""
        if code in _FULL or code.startswith("SQLITE_IOERR"):
            return StorageFull(f"the disk of {self.path} takes no more ({code}); make room, nothing was written")
        if code in _BROKEN or code.startswith("SQLITE_CORRUPT"):
            return Corrupt(broken(self.path, str(error)))
        if code.startswith("SQLITE_BUSY"):
            return TimeoutError(f"another process kept {self.path} locked for {PATIENCE:.0f} s; nothing was written")
        return error


def open_file(path: Path, mode: str, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection without transactions of its own; `mode` is ro, rw or rwc."""
    where = f"file:{quote(os.fspath(path.absolute()))}?mode={mode}{'&immutable=1' if immutable else ''}"
    return sqlite3.connect(
        where, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=256
    )


def remove_beside(path: Path) -> None:
    """Remove the logs of a file that is not there any more: the next one of its name would be given what they hold."""
    for suffix in BESIDE:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def synced(path: Path) -> None:
    """Have a file, or the names in a directory, outlast a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def broken(path: Path, why: str) -> str:
    """What a person is told about a registry that cannot be read."""
    return (
        f"{path} cannot be used as a registry ({why}). It was left as it is: look with `tenuto db check`,"
        " put a backup in its place with `tenuto db restore`, or name another file with --db"
    )
