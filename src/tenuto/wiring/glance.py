"""The supervisor at a glance: the lease row and the process table, by the standard library alone.

`tenuto status` must answer at once, so this reads the registry with sqlite3 directly and imports neither the database
toolkit nor the web stack. It opens read-only, makes nothing and takes no lock.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tenuto.model.evidence import Presence
from tenuto.model.faults import Corrupt, UnsupportedVersion
from tenuto.model.leadership import Leadership

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEASE = (
    "SELECT epoch, owner, host, pid, started, boot_id, address, taken_at, renewed_at, expires_at, stop_asked_at, "
    "released_at FROM leadership"
)
COUNTS = "SELECT state, count(*) FROM task GROUP BY state"
OPEN = "SELECT count(*) FROM command WHERE state IN ('armed', 'submitted', 'ambiguous')"


class Glimpse:
    """One quick read-only look at a registry file."""

    def __init__(self, path: Path) -> None:
        self.lease: Leadership | None = None
        self.registry_id: str | None = None
        self.held_at: datetime | None = None
        self.held_by: str | None = None
        self.tasks: dict[str, int] = {}
        self.open_commands = 0
        if path.is_file():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2.0)
        except sqlite3.Error as error:
            raise Corrupt(f"{path} cannot be opened: {error}") from None
        try:
            self._ask(connection)
        except sqlite3.DatabaseError as error:
            if "no such table" in str(error) and self._empty(connection):
                return
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


def presence_of(lease: Leadership | None) -> Presence:
    """Whether the holder's process is there."""
    from tenuto.wiring.world import holder_presence  # imports the process table, which a missing lease does not need

    return holder_presence(lease) if lease is not None else Presence.GONE
