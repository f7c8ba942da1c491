"""Looks after chains for whoever leads: whenever something was committed, and when a chain's own moment comes.

It only calls the step that everybody calls. A chain that cannot be stepped now is left for later, and a registry out of
reach is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Protocol

from tenuto.model.faults import NoSupervisor, OutOfReach, StorageFull
from tenuto.ports import Clock

LONGEST = timedelta(seconds=60)
AFTER_TROUBLE = timedelta(seconds=5)
#: Seconds in which commits that follow each other ring once.
BREATH = 0.05


class Tended(Protocol):
    """Chains that can be tended."""

    async def tend(self) -> datetime | None: ...


class Tender:
    """The rounds of one supervisor."""

    def __init__(self, chains: Tended, clock: Clock) -> None:
        self._chains = chains
        self._clock = clock
        self._bell = asyncio.Event()
        self._stopping = False

    def ring(self) -> None:
        """Something was committed that may concern a chain."""
        self._bell.set()

    def stop(self) -> None:
        """Step nothing more."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """One round after another, until stopped."""
        while not self._stopping:
            self._bell.clear()
            try:
                soonest = await self._chains.tend()
            except (OutOfReach, StorageFull, NoSupervisor):
                soonest = self._clock.now() + AFTER_TROUBLE
            wait = LONGEST if soonest is None else min(max(soonest - self._clock.now(), timedelta(0)), LONGEST)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(wait.total_seconds(), BREATH)):
                    await self._bell.wait()
            if not self._stopping:
                await asyncio.sleep(BREATH)
