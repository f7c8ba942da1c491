"""A copy of an SQLite file, read without the original noticing.

Opening a database in write-ahead mode makes files beside it even for reading, so the file and its log are copied into a
directory of our own and opened there. The copy may be torn if somebody writes meanwhile; SQLite's check then says so.
"""

from __future__ import annotations

import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

LIMIT: Final = 512 * 1024 * 1024
ROWS: Final = 10_000
MAGIC: Final = b"SQLite format 3\0"


class NotReadable(Exception):
    """It is there and cannot be read; the message says why."""


def is_one(path: Path) -> bool:
    """Whether a file begins as an SQLite database does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The copy. Raises NotReadable for what is too large, damaged, or no database."""
    with tempfile.TemporaryDirectory(prefix="tenuto-") as scratch:
        copy = Path(scratch) / "copy.sqlite3"
        try:
            for suffix in ("", "-wal"):
                source = Path(f"{path}{suffix}")
                if suffix and not source.exists():
                    continue
                about = source.lstat()
                if not stat.S_ISREG(about.st_mode):
                    raise NotReadable(f"{source.name} is no ordinary file")
                if about.st_size > LIMIT:
                    raise NotReadable(f"{source.name} is larger than {LIMIT} bytes")
                shutil.copyfile(source, f"{copy}{suffix}", follow_symlinks=False)
        except OSError as error:
            raise NotReadable(f"{path.name}: {error.strerror}") from None
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA query_only = ON")
                if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                    raise NotReadable(f"{path.name} is damaged, or is being written to; stop its program first")
                yield connection
        except sqlite3.Error as error:
            raise NotReadable(f"{path.name}: {error}") from None


def columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """The columns of a table, in their order."""
    return tuple(str(row["name"]) for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The names of its own tables; views are not asked."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return tuple(sorted(str(row["name"]) for row in found))


def rows(connection: sqlite3.Connection, table: str) -> list[dict[str, object]]:
    """At most ROWS rows of a table, by their columns' names."""
    quoted = table.replace('"', '""')
    return [dict(row) for row in connection.execute(f'SELECT * FROM "{quoted}" LIMIT {ROWS}')]  # noqa: S608 - quoted


def count(connection: sqlite3.Connection, table: str) -> int:
    """How many rows a table has."""
    quoted = table.replace('"', '""')
    return int(connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()[0])  # noqa: S608 - quoted


def cut(connection: sqlite3.Connection, tables: Iterable[str]) -> tuple[str, ...]:
    """What `rows` leaves out of these tables, in words."""
    held = ((table, count(connection, table)) for table in sorted(tables))
    return tuple(
        f"table {table}: {all_of_it - ROWS} of {all_of_it} rows, which are too many"
        for table, all_of_it in held
        if all_of_it > ROWS
    )
