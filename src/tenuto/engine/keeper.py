"""Forgets what is over, slowly: a little at a time, with a breath between, once an hour.

It is ordinary work of whoever leads. It never touches what is open, waits while the registry is in trouble, and comes
to rest as soon as it is asked to.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from typing import Protocol

from tenuto.model.command import Command
from tenuto.model.faults import OutOfReach, StorageFull
from tenuto.model.ids import CommandId
from tenuto.model.policy import Keeping
from tenuto.ports import Clock

#: Seconds from the start to the first round, between rounds, and between two small steps of one.
FIRST, EVERY, BREATH = 60.0, 3600.0, 0.2

_LOG = logging.getLogger("tenuto.keeper")


class Forgetting(Protocol):
    """A registry that can forget a little of what is over."""

    async def forget(self, keep: Keeping, now: datetime) -> bool: ...

    def command(self, command_id: CommandId) -> Command | None: ...


class Journals(Protocol):
    """Where settled journals lie."""

    def old(self, age: timedelta) -> tuple[CommandId, ...]: ...

    def clean(self, keep: tuple[CommandId, ...], age: timedelta) -> tuple[CommandId, ...]: ...


class Keeper:
    """The rounds of one supervisor."""

    def __init__(self, ledger: Forgetting, journals: Journals, clock: Clock, keep: Keeping) -> None:
        self._ledger = ledger
        self._journals = journals
        self._clock = clock
        self._keep = keep
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Forget nothing more."""
        self._stopping.set()

    async def run(self) -> None:
        """One round after another, until stopped."""
        await self._pause(FIRST)
        while not self._stopping.is_set():
            try:
                await self.round()
            except (OutOfReach, StorageFull, OSError) as trouble:
                _LOG.warning("what is over is kept for now: %s", trouble)
            await self._pause(EVERY)

    async def round(self) -> None:
        """Forget all that is over by now."""
        while not self._stopping.is_set() and await self._ledger.forget(self._keep, self._clock.now()):
            await self._pause(BREATH)
        if not self._stopping.is_set():
            await asyncio.to_thread(self._journals_too)

    def _journals_too(self) -> None:
        """Remove old journals whose commands the registry knows as settled; what it does not know stays as evidence."""
        age = self._keep.journals
        keep = tuple(command_id for command_id in self._journals.old(age) if not self._settled(command_id))
        self._journals.clean(keep, age)

    def _settled(self, command_id: CommandId) -> bool:
        command = self._ledger.command(command_id)
        return command is not None and not command.open and command.settled_at is not None

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), timeout=seconds)
