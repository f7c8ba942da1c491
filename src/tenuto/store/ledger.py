"""The ledger: one registry, read by anyone and written by one writer under the epoch it leads with.

It decides nothing about tasks. What it is given it writes as a whole or refuses with the reason; what it has written
it gives back as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from tenuto.model.change import Commit, Result
from tenuto.model.policy import Keeping
from tenuto.model.snapshot import Leadership
from tenuto.ports import Clock, Fuse
from tenuto.store.dialect import Connection, Dialect, Listening, texts_of
from tenuto.store.leader import Leaders
from tenuto.store.reader import TableReader
from tenuto.store.retention import forget
from tenuto.store.transaction import Prepared, Refusal, Transactions
from tenuto.store.writer import Writer, Writing


class _Write:
    """A commit as a job of the writer: with every answer waited for, or sent on one way."""

    __slots__ = ("_ledger", "_prepared")

    def __init__(self, ledger: TableLedger, prepared: Prepared) -> None:
        self._ledger = ledger
        self._prepared = prepared

    def __call__(self, connection: Connection) -> Result:
        ledger = self._ledger
        return ledger._transactions.write(connection, self._prepared, ledger._epoch, ledger._clock.now())

    def send(self, connection: Connection) -> Result:
        ledger = self._ledger
        return ledger._transactions.send(connection, self._prepared, ledger._epoch, ledger._clock.now())


class TableLedger(TableReader):
    """Implements ports.Ledger. Opened by `opening.open_registry`."""

    def __init__(
        self,
        dialect: Dialect,
        clock: Clock,
        fuse: Fuse | None = None,
        *,
        writer: Writing | None = None,
        shared: bool = False,
    ) -> None:
        """With `shared`, leases are measured by the database's clock where it has one."""
        texts = texts_of(dialect)
        super().__init__(dialect, texts)
        self._clock = clock
        self._writer: Writing = writer or Writer(dialect, fuse)
        self._transactions = Transactions(dialect, texts)
        self._leaders = Leaders(dialect, texts, self._transactions, shared=shared)
        self._listening: Listening | None = None
        self._epoch: int | None = None

    async def commit(self, commit: Commit) -> Result:
        """Write all of it or nothing; durable when it returns.

        Raises StorageFull or Corrupt when the medium fails, and IllegalMove for what the tables never take."""
        prepared = self._transactions.prepare(commit)
        try:
            result = await self._writer.do(_Write(self, prepared), brief=True)
        except Refusal as refusal:
            return refusal.result
        self._transactions.remember(prepared)
        return result

    async def lead(self, candidate: Leadership, gone: Callable[[Leadership], bool]) -> Leadership | None:
        """Take the supervisor lease, or None while another supervisor leads. `gone` is asked in the writer's thread."""

        def take(connection: Connection) -> Leadership | None:
            return self._leaders.take(connection, candidate, gone, self._clock.now())

        try:
            mine = await self._writer.do(take)
        except self._dialect.failure as error:
            if self._dialect.taken(error) is None:
                raise
            mine = None  # another took the first lease of all in the same moment
        if mine is not None:
            self._epoch = mine.epoch
            self._transactions.forget()
        return mine

    async def renew(self, mine: Leadership, now: datetime, expires_at: datetime) -> Leadership | None:
        renewed = await self._writer.do(lambda connection: self._leaders.renew(connection, mine, now, expires_at))
        if renewed is None and self._epoch == mine.epoch:
            self._epoch = None
        return renewed

    async def resign(self, mine: Leadership, now: datetime) -> None:
        await self._writer.do(lambda connection: self._leaders.resign(connection, mine, now))
        if self._epoch == mine.epoch:
            self._epoch = None

    async def forget(self, keep: Keeping, now: datetime) -> bool:
        """Forget a little of what nobody needs any more; False when there was nothing, or another leads."""
        what = await asyncio.to_thread(self.overdue, keep, now)
        if what.nothing:
            return False

        def write(connection: Connection) -> None:
            self._transactions.fence(connection, self._epoch)
            forget(connection, self._sql, what, now)

        try:
            await self._writer.do(write)
        except Refusal:
            return False
        return True

    async def changed(self, within: float) -> bool:
        """Wait until somebody says that the lease has changed, at most `within` seconds; whether somebody did.

        It is a hint: False says nothing, and where nobody can listen it only waits.
        """
        try:
            if self._listening is None:
                self._listening = await asyncio.to_thread(self._dialect.listen)
            if self._listening is not None:
                return await asyncio.to_thread(self._listening.notified, within)
        except self._dialect.failure:
            if self._listening is not None:
                self._listening.close()
                self._listening = None
        await asyncio.sleep(within)
        return False

    async def ask_stop(self, now: datetime) -> bool:
        return await self._writer.do(lambda connection: self._leaders.ask_stop(connection, now))

    async def close(self) -> None:
        """Finish what is queued, then let go of the registry."""
        await asyncio.to_thread(self._writer.close)
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self.close_readers()
