"""Opens a registry: makes it when it is not there, carries it forward when it is old, refuses what it does not know.

What is refused is not touched. A file that is no registry, or is damaged, is Corrupt; one made by a newer program is
an UnsupportedVersion; both say what a person can do. State is made readable by its owner only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from tenuto.model.faults import Corrupt, Mistake, NotFound, UnsupportedVersion
from tenuto.model.snapshot import Leadership, Registry
from tenuto.ports import Clock, Fuse, Minter
from tenuto.store.dialect import Connection, texts_of
from tenuto.store.ledger import TableLedger
from tenuto.store.reading import ReadOnlyLedger
from tenuto.store.sqlite import APPLICATION, Sqlite, broken, open_file

if TYPE_CHECKING:
    from tenuto.store.postgresql import Postgresql

#: The schema this program writes, and every one it can carry forward.
PRESENT = "0002"
KNOWN = ("0001", "0002")

SERVER = "postgresql://"
_MAGIC = b"SQLite format 3\x00"


def _unproven(_holder: Leadership) -> bool:
    return False


@overload
def open_registry(where: str | Path, clock: Clock, *, minter: Minter, read_only: Literal[True]) -> ReadOnlyLedger: ...


@overload
def open_registry(
    where: str | Path,
    clock: Clock,
    *,
    minter: Minter,
    read_only: Literal[False] = False,
    fuse: Fuse | None = None,
    shared: bool = False,
    gone: Callable[[Leadership], bool] = _unproven,
) -> TableLedger: ...


def open_registry(
    where: str | Path,
    clock: Clock,
    *,
    minter: Minter,
    read_only: bool = False,
    fuse: Fuse | None = None,
    shared: bool = False,
    gone: Callable[[Leadership], bool] = _unproven,
) -> TableLedger | ReadOnlyLedger:
    """The registry at a path or URL (`sqlite:///PATH`, `postgresql://...`), made if it is not there.

    Read-only it must exist and be of the present schema. With `shared`, leases are measured by the database's clock
    where it has one. An older one is carried forward unless a supervisor leads whom `gone` does not say to be gone
    (Refused). Raises OutOfReach, Mistake where the driver of that database is not installed, NotFound, Corrupt
    or UnsupportedVersion; whatever is refused keeps its bytes.
    """
    if isinstance(where, str) and where.startswith(SERVER):
        return _open_server(where, clock, minter, fuse, gone, read_only=read_only, shared=shared)
    path = place(where)
    version = version_of(path)
    dialect = Sqlite(path)
    if read_only:
        _readable(version, str(path))
        return ReadOnlyLedger(dialect, texts_of(dialect))
    if version != PRESENT:
        _make_place(path)
        from tenuto.store.migrating import carry_forward

        carry_forward(path, Registry(minter.new("registry"), 1, clock.now()), gone=gone)
    return TableLedger(dialect, clock, fuse, shared=shared)


def server(url: str) -> Postgresql:
    """The database that a URL names; Mistake where its driver is not installed."""
    try:
        from tenuto.store.postgresql import Postgresql
    except ImportError as missing:
        raise Mistake(
            f"PostgreSQL needs the extra 'postgres' of this program ({missing}): pip install 'tenuto[postgres]'",
            field="db",
        ) from None
    return Postgresql(url)


def _open_server(
    url: str,
    clock: Clock,
    minter: Minter,
    fuse: Fuse | None,
    gone: Callable[[Leadership], bool],
    *,
    read_only: bool,
    shared: bool,
) -> TableLedger | ReadOnlyLedger:
    dialect = server(url)
    version = dialect.version()
    _known(version, "this database")
    if read_only:
        _readable(version, "this database")
        return ReadOnlyLedger(dialect, texts_of(dialect))
    if version != PRESENT:
        from tenuto.store.migrating import carry_server_forward

        identity = Registry(minter.new("registry"), 1, clock.now())
        carry_server_forward(dialect, url, identity, gone=gone, shared=shared)
    return TableLedger(dialect, clock, fuse, shared=shared)


def _readable(version: str | None, where: str) -> None:
    if version is None:
        raise NotFound(f"there is no registry in {where}; a supervisor makes it when it first starts")
    if version != PRESENT:
        raise UnsupportedVersion(f"{where} has schema {version}; start the supervisor once to carry it forward")


def _known(version: str | None, where: str) -> None:
    if version is not None and version not in KNOWN:
        raise UnsupportedVersion(
            f"{where} has schema {version}, which this program ({PRESENT}) does not know; it was left as it is."
            " Use the newer program that made it, or restore a backup that this one made"
        )


def place(where: str | Path) -> Path:
    """The file that a path or `sqlite:///` URL names."""
    if isinstance(where, Path):
        return where
    if where.startswith("sqlite:///"):
        return Path(where.removeprefix("sqlite:///"))
    if "://" in where:
        kind = where.partition("://")[0]
        raise Mistake(f"no database of the kind {kind} is known; use a path, sqlite:///PATH or {SERVER}...", field="db")
    return Path(where)


def version_of(path: Path) -> str | None:
    """The schema of the registry in a file, None when there is none yet; reads with the standard library alone.

    Raises Corrupt for what is no registry and UnsupportedVersion for a newer one.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError:
        return None
    if not magic:
        return None
    if magic != _MAGIC:
        raise Corrupt(broken(path, "it is not a database"))
    try:
        version = _untouched_version(path)
    except Corrupt as error:
        raise Corrupt(broken(path, str(error))) from error
    except sqlite3.DatabaseError as error:
        translated = Sqlite(path).translated(error)
        raise (Corrupt(broken(path, str(error))) if translated is error else translated) from error
    _known(version, str(path))
    return version


def _untouched_version(path: Path) -> str | None:
    """Read without making so much as a lock file, unless a log says that somebody may be writing."""
    if not path.with_name(path.name + "-wal").exists():
        try:
            return _read_version(open_file(path, "ro", immutable=True))
        except (Corrupt, sqlite3.DatabaseError):
            if not path.with_name(path.name + "-wal").exists():
                raise
    return _read_version(Sqlite(path).connect_reader())


def _read_version(connection: Connection) -> str | None:
    """Raises Corrupt with its reason alone; who calls knows the file."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
        if not names and application in (0, APPLICATION):
            return None
        if application != APPLICATION or "alembic_version" not in names:
            raise Corrupt("it is a database of something else")
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        if len(found) != 1:
            raise Corrupt("it does not say which schema it has")
        return str(found[0][0])
    finally:
        connection.close()


def _make_place(path: Path) -> None:
    """The directory and the empty file, for their owner only; what is there already keeps its rights."""
    for directory in reversed([parent for parent in path.absolute().parents if not parent.exists()]):
        directory.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
