"""Who leads: the supervisor lease and its epoch.

One row says which process decides. Whoever takes it raises the epoch by one, and every later commit under an older
epoch is refused; so a supervisor that lost its lease without noticing can write nothing. A lease is taken over only
when it was given back, has run out, or its holder is proven gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeGuard

from sqlalchemy import bindparam, insert, select, update

from tenuto.model.snapshot import Leadership
from tenuto.store import tables
from tenuto.store.dialect import Connection, Dialect, Texts
from tenuto.store.rows import moment
from tenuto.store.transaction import Transactions, went_back

_SHAPE = tables.LEADERSHIP
_TABLE = tables.leadership
READ = select(*(_TABLE.c[name] for name in _SHAPE.columns))
_LOCKED = READ.with_for_update()
_ADD = insert(_TABLE)
_REPLACE = update(_TABLE).where(_TABLE.c.epoch == bindparam("old_epoch"))
_ASK = update(_TABLE).where(_TABLE.c.released_at.is_(None))


class Leaders:
    """Changes the leadership row on an open transaction.

    The moments are the caller's, or with `shared` those of the clock that all who reach the database share.
    """

    def __init__(self, dialect: Dialect, texts: Texts, transactions: Transactions, *, shared: bool = False) -> None:
        self._dialect = dialect
        self._sql = texts
        self._transactions = transactions
        self._shared = shared

    def _now(self, connection: Connection, now: datetime) -> datetime:
        return (self._dialect.now(connection) if self._shared else None) or now

    def holder(self, connection: Connection) -> Leadership | None:
        """Whoever took the lease last, locked for this transaction."""
        cells = connection.execute(self._sql.of(_LOCKED).sql).fetchone()
        return None if cells is None else _SHAPE.load(cells)

    def take(
        self, connection: Connection, candidate: Leadership, gone: Callable[[Leadership], bool], now: datetime
    ) -> Leadership | None:
        """The lease under a new epoch, above that of the candidate, or None while another holds it.

        What the candidate holds already (the answer to an earlier try was lost) it takes again.
        """
        holder = self.holder(connection)
        now, life = self._now(connection, now), candidate.expires_at - candidate.taken_at
        if self._shared:
            candidate = replace(candidate, taken_at=now, renewed_at=now, expires_at=now + life)
        self._dialect.hint(connection)
        if holder is None:
            mine = replace(candidate, epoch=candidate.epoch + 1, stop_asked_at=None, released_at=None)
            connection.execute(self._sql.of(_ADD, _SHAPE.columns).sql, _SHAPE.dump(mine))
            return mine
        held = holder.released_at is None and holder.expires_at > now and holder.owner != candidate.owner
        if held and not gone(holder):
            return None
        epoch = max(holder.epoch, candidate.epoch) + 1
        mine = replace(candidate, epoch=epoch, stop_asked_at=None, released_at=None)
        self._store(connection, mine, holder.epoch)
        return mine

    def renew(self, connection: Connection, mine: Leadership, now: datetime, expires_at: datetime) -> Leadership | None:
        """The lease until `expires_at`; a clock that went back since the last time is recorded."""
        holder = self.holder(connection)
        if not _same(holder, mine):
            return None
        life, now = expires_at - now, self._now(connection, now)
        expires_at = now + life
        if now < holder.renewed_at:
            self._transactions.record(connection, went_back(holder.renewed_at, now), mine.epoch, now)
        renewed = replace(holder, renewed_at=now, expires_at=expires_at)
        self._store(connection, renewed, mine.epoch)
        return renewed

    def resign(self, connection: Connection, mine: Leadership, now: datetime) -> None:
        """Give the lease back, if it is still ours."""
        holder = self.holder(connection)
        if _same(holder, mine):
            self._store(connection, replace(holder, released_at=self._now(connection, now)), mine.epoch)
            self._dialect.hint(connection)

    def ask_stop(self, connection: Connection, now: datetime) -> bool:
        """Leave word for whoever leads; False when nobody does."""
        holder, now = self.holder(connection), self._now(connection, now)
        if holder is None or holder.released_at is not None or holder.expires_at <= now:
            return False
        connection.execute(self._sql.of(_ASK, ("stop_asked_at",)).sql, (moment(now),))
        return True

    def _store(self, connection: Connection, row: Leadership, old_epoch: int) -> None:
        connection.execute(self._sql.of(_REPLACE, _SHAPE.columns).sql, [*_SHAPE.dump(row), old_epoch])


def _same(holder: Leadership | None, mine: Leadership) -> TypeGuard[Leadership]:
    if holder is None or holder.released_at is not None:
        return False
    return (holder.epoch, holder.owner) == (mine.epoch, mine.owner)
