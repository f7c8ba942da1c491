"""The registry as one PostgreSQL database, for supervisors on several machines.

The rules are the tables'; what differs is here. A writer's transaction locks the leadership row, so a supervisor that
takes the lease waits for the commit under way, and the commit after it is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import psycopg
from psycopg import errors
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine.interfaces import Dialect as CoreDialect

from tenuto.model.faults import Corrupt, Refused, StorageFull
from tenuto.store.dialect import Connection, Taken

_FULL = (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded)
_BROKEN = (errors.DataCorrupted, errors.IndexCorrupted)


class Postgresql:
    """A registry in the database that a `postgresql://` URL names."""

    name = "postgresql"
    failure: type[Exception] = psycopg.Error

    def __init__(self, url: str) -> None:
        self._url = url
        self.core: CoreDialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]

    def connect(self) -> Connection:
        return self._connected()

    def connect_reader(self) -> Connection:
        connection = self._connected()
        connection.execute("SET default_transaction_read_only = on", ())
        return connection

    def version(self) -> str | None:
        """The schema of the registry in the database, None when there is none yet."""
        connection = self.connect_reader()
        try:
            if connection.execute("SELECT to_regclass('alembic_version')", ()).fetchone()[0] is None:
                return None
            found = connection.execute("SELECT version_num FROM alembic_version", ()).fetchone()
            return None if found is None else str(found[0])
        finally:
            connection.close()

    def _connected(self) -> Connection:
        return cast(
            "Connection", psycopg.connect(self._url, autocommit=True, application_name="tenuto", connect_timeout=10)
        )

    def begin(self, connection: Connection) -> None:
        connection.execute("BEGIN", ())

    def begin_read(self, connection: Connection) -> None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())

    def commit(self, connection: Connection) -> None:
        connection.execute("COMMIT", ())

    def rollback(self, connection: Connection) -> None:
        try:
            connection.execute("ROLLBACK", ())
        except psycopg.Error:
            return  # a connection that is lost has ended the transaction already

    def taken(self, error: Exception) -> Taken | None:
        if not isinstance(error, errors.UniqueViolation):
            return None
        name = error.diag.constraint_name or ""
        return Taken(name.removesuffix("_pkey"), key=name.endswith("_pkey"))

    def refused(self, error: Exception) -> bool:
        return isinstance(error, psycopg.IntegrityError)

    def damage(self, connection: Connection) -> list[str]:
        unchecked = connection.execute(
            "SELECT conname FROM pg_constraint"
            " WHERE NOT convalidated AND connamespace = current_schema()::regnamespace",
            (),
        ).fetchall()
        return [f"the constraint {name} was never checked" for (name,) in unchecked]

    def backup(self, to: Path) -> None:
        raise Refused(f"a PostgreSQL registry is backed up with pg_dump, not into {to}")

    def translated(self, error: Exception) -> Exception:
        if isinstance(error, _FULL):
            return StorageFull(f"the database takes no more ({type(error).__name__}); nothing was written")
        if isinstance(error, _BROKEN):
            return Corrupt(f"the database is damaged ({error}); restore a backup")
        return error
