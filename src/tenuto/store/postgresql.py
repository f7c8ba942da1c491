"""The registry as one PostgreSQL database, for supervisors on several machines.

The rules are the tables'; what differs is here. A writer's transaction locks the leadership row, so a supervisor that
takes the lease waits for the commit under way, and the commit after it is refused.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path

import psycopg
from psycopg import errors
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine.interfaces import Dialect as CoreDialect

from tenuto.model.faults import Corrupt, OutOfReach, Refused, StorageFull
from tenuto.store.dialect import Connection, Taken
from tenuto.store.patience import Patient
from tenuto.store.rows import at

_FULL = (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded)
_BROKEN = (errors.DataCorrupted, errors.IndexCorrupted)
#: Classes and codes of SQLSTATE that say the server, or the way to it, is not there for now.
_AWAY = ("08", "57P", "53300", "25006", "XX000")
#: A lock that somebody does not give up, a statement that somebody has cancelled.
_GIVEN_UP = ("55P03", "57014", "25P03", "40001", "40P01")
#: Seconds after which a statement of a reader, of a writer, and of making a connection is given up.
READING, WRITING, CONNECTING = 15.0, 8.0, 5
#: What hears that the lease has changed.
CHANNEL = "tenuto_lease"
#: A writer whose network is gone must not keep the leadership row locked for whoever waits to lead.
_SESSION = "SET idle_in_transaction_session_timeout = '4s'; SET lock_timeout = '6s'"
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Postgresql:
    """A registry in the database that a `postgresql://` URL names."""

    name = "postgresql"
    one_way = True
    failure: type[Exception] = psycopg.Error

    def __init__(self, url: str) -> None:
        self._url = url
        self.core: CoreDialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]

    def connect(self) -> Connection:
        connection = self._connected(WRITING)
        connection.execute(_SESSION)
        connection.execute(_DURABLE)
        return connection

    def connect_reader(self) -> Connection:
        connection = self._connected(READING)
        connection.execute("SET default_transaction_read_only = on", ())
        return connection

    def listen(self) -> Patient:
        """A connection of its own that hears of every change of the lease."""
        connection = self._connected(WRITING)
        connection.execute(f"LISTEN {CHANNEL}")
        return connection

    def lost(self, connection: Connection) -> bool:
        return isinstance(connection, Patient) and connection.lost

    def now(self, connection: Connection) -> datetime:
        return at(int(connection.execute(_NOW).fetchone()[0]))

    def hint(self, connection: Connection) -> None:
        connection.execute(f"NOTIFY {CHANNEL}")

    def version(self) -> str | None:
        """The schema of the registry in the database, None when there is none yet."""
        try:
            connection = self.connect_reader()
        except psycopg.Error as error:
            raise self.translated(error) from error
        try:
            if connection.execute("SELECT to_regclass('alembic_version')", ()).fetchone()[0] is None:
                return None
            found = connection.execute("SELECT version_num FROM alembic_version", ()).fetchone()
            return None if found is None else str(found[0])
        finally:
            connection.close()

    def _connected(self, patience: float) -> Patient:
        return Patient(connected(self._url), patience)

    def hurry(self, connection: Connection, on: bool) -> bool:
        """A network and a server lie between: their haste is not ours to promise."""
        return False

    def catch_up(self, connection: Connection) -> None:
        """Nothing was put off."""

    def together(self, connection: Connection) -> AbstractContextManager[object]:
        """One way to the server and back for all of it."""
        return connection.together() if isinstance(connection, Patient) else nullcontext()

    def demanding(self, sql: str) -> str:
        """What it has changed or found is counted, and one is divided by that."""
        told = sql + " RETURNING 1" if sql.startswith("UPDATE") else sql
        return f"WITH one AS ({told}) SELECT 1 / count(*) FROM one"  # noqa: S608 - a statement of ours

    def begin(self, connection: Connection) -> None:
        connection.execute("BEGIN", ())

    def begin_read(self, connection: Connection) -> None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())

    def commit(self, connection: Connection) -> None:
        connection.execute("COMMIT", ())

    def rollback(self, connection: Connection) -> None:
        try:
            if isinstance(connection, Patient):
                connection.rollback()
            else:
                connection.execute("ROLLBACK", ())
        except psycopg.Error:
            return  # a connection that is lost has ended the transaction already

    def taken(self, error: Exception) -> Taken | None:
        if not isinstance(error, errors.UniqueViolation):
            return None
        name = error.diag.constraint_name or ""
        return Taken(name.removesuffix("_pkey"), key=name.endswith("_pkey"))

    def refused(self, error: Exception) -> bool:
        return isinstance(error, (psycopg.IntegrityError, psycopg.DataError))

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
        if isinstance(error, psycopg.InterfaceError) or (
            isinstance(error, psycopg.OperationalError)
            and (error.sqlstate is None or error.sqlstate.startswith(_AWAY) or error.sqlstate in _GIVEN_UP)
        ):
            said = str(error).strip().splitlines() or [type(error).__name__]
            return OutOfReach(said[0][:300])
        return error


def connected(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection whose every statement is its own transaction unless one is begun; made within CONNECTING seconds."""
    return psycopg.connect(
        url,
        autocommit=True,
        application_name="tenuto",
        connect_timeout=CONNECTING,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=10_000,
    )
