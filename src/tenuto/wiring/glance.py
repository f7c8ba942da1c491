"""The supervisor at a glance: the lease row and the process table, by the driver of the database alone.

`tenuto status` must answer at once, so this reads the registry directly, with sqlite3 or by one query of PostgreSQL,
and imports neither the database toolkit nor the web stack. It opens read-only, makes nothing and takes no lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tenuto.config import Settings
from tenuto.model.evidence import Presence
from tenuto.model.faults import Corrupt, Mistake, OutOfReach, UnsupportedVersion
from tenuto.model.leadership import Leadership

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEASE = (
    "SELECT epoch, owner, host, pid, started, boot_id, address, taken_at, renewed_at, expires_at, stop_asked_at, "
    "released_at FROM leadership"
)
COUNTS = "SELECT state, count(*) FROM task GROUP BY state"
OPEN = "SELECT count(*) FROM command WHERE state IN ('armed', 'submitted', 'ambiguous')"


ALL = f"""
SELECT r.id, r.held_at, r.held_by, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    (SELECT json_object_agg(state, n) FROM (SELECT state, count(*) AS n FROM task GROUP BY state) AS counted),
    ({OPEN}), l.* FROM registry AS r LEFT JOIN ({LEASE}) AS l ON true
"""  # noqa: S608 - made of constants


def glimpse(settings: Settings) -> Glimpse:
    """One quick look at the registry that is in force."""
    found = Glimpse(None if settings.server else settings.registry_path)
    if settings.server:
        found.ask_server(settings.database)
    return found


class Glimpse:
    """One quick read-only look at a registry. `now` is the moment by its own clock, where it has one."""

    def __init__(self, path: Path | None) -> None:
        self.now: datetime | None = None
        self.lease: Leadership | None = None
        self.registry_id: str | None = None
        self.held_at: datetime | None = None
        self.held_by: str | None = None
        self.tasks: dict[str, int] = {}
        self.open_commands = 0
        if path is not None and path.is_file():
            self._read(path)

    def ask_server(self, url: str) -> None:
        """Look at a PostgreSQL database, by one query. Raises OutOfReach or UnsupportedVersion."""
        try:
            import psycopg
        except ImportError as missing:
            raise Mistake(f"PostgreSQL needs the extra 'postgres': {missing}", field="database") from None
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=5, application_name="tenuto") as connection:
                row = connection.execute(ALL.encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return
        except psycopg.errors.UndefinedColumn as error:
            raise UnsupportedVersion(
                f"this database holds another version ({error.diag.message_primary}); try: tenuto db upgrade"
            ) from None
        except psycopg.Error as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise OutOfReach(said[0][:300]) from None
        if row is not None:
            self._told(row)

    def _told(self, row: Sequence[Any]) -> None:
        self.registry_id, self.held_at, self.held_by, self.now = row[0], moment(row[1]), row[2], moment(row[3])
        counted: Mapping[str, int] = row[4] or {}
        self.tasks = dict(counted)
        self.open_commands = int(row[5])
        if row[6] is not None:
            self.lease = lease_of(tuple(row[6:]))

    def _read(self, path: Path) -> None:
        try:
            connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2.0)
        except sqlite3.Error as error:
            raise Corrupt(f"{path} cannot be opened: {error}") from None
        try:
            try:
                self._ask(connection)
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                # It is being made: between two questions all of its tables may have come.
                if not self._empty(connection):
                    self._ask(connection)
        except sqlite3.DatabaseError as error:
            if "no such table: registry" in str(error):
                raise Corrupt(f"{path} is a database of something else") from None
            if "no such" in str(error):
                raise UnsupportedVersion(
                    f"{path} is a registry of another version ({error}); try: tenuto db upgrade"
                ) from None
            raise Corrupt(f"{path} cannot be read ({error}); see: tenuto db check") from None
        finally:
            connection.close()

    @staticmethod
    def _empty(connection: sqlite3.Connection) -> bool:
        try:
            return int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]) == 0
        except sqlite3.Error:
            return False

    def _ask(self, connection: sqlite3.Connection) -> None:
        if row := connection.execute("SELECT id, held_at, held_by FROM registry").fetchone():
            self.registry_id, self.held_at, self.held_by = row[0], moment(row[1]), row[2]
        if row := connection.execute(LEASE).fetchone():
            self.lease = lease_of(row)
        self.tasks = {str(state): int(count) for state, count in connection.execute(COUNTS)}
        self.open_commands = int(connection.execute(OPEN).fetchone()[0])


def moment(micros: int | None) -> datetime | None:
    """An aware instant from microseconds since 1970."""
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def lease_of(row: tuple[Any, ...]) -> Leadership:
    """The lease row as the model's value."""
    first = [moment(value) for value in row[7:12]]
    taken, renewed, expires = first[0], first[1], first[2]
    if taken is None or renewed is None or expires is None:
        raise Corrupt("the lease row has no times")
    return Leadership(
        *(int(row[0]), str(row[1]), str(row[2]), int(row[3]), str(row[4]), str(row[5]), str(row[6])),
        taken_at=taken,
        renewed_at=renewed,
        expires_at=expires,
        stop_asked_at=first[3],
        released_at=first[4],
    )


def presence_of(lease: Leadership | None, machine: str | None = None) -> Presence:
    """Whether the holder's process is there."""
    from tenuto.wiring.world import holder_presence  # imports the process table, which a missing lease does not need

    return holder_presence(lease, machine) if lease is not None else Presence.GONE
