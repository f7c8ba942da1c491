"""A registry that is open for reading only.

Reads like any ledger and refuses every write in one sentence, so that a desk without a supervisor needs no second path
through the code.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

from tenuto.model.change import Commit, Result
from tenuto.model.faults import NoSupervisor
from tenuto.model.snapshot import Leadership
from tenuto.store.reader import TableReader


def refuse() -> NoReturn:
    """Say why nothing can be written."""
    raise NoSupervisor("this registry is open for reading only; start a supervisor with: tenuto start")


class ReadOnlyLedger(TableReader):
    """Implements ports.Ledger for reading; every writing method raises NoSupervisor."""

    async def commit(self, commit: Commit) -> Result:
        refuse()

    async def lead(self, candidate: Leadership, gone: Callable[[Leadership], bool]) -> Leadership | None:
        refuse()

    async def renew(self, mine: Leadership, now: datetime, expires_at: datetime) -> Leadership | None:
        refuse()

    async def resign(self, mine: Leadership, now: datetime) -> None:
        refuse()

    async def ask_stop(self, now: datetime) -> bool:
        refuse()

    async def close(self) -> None:
        """Close what was read from."""
        self.close_readers()
