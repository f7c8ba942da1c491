"""Looks after chains for whoever leads: whenever something was committed, and when a chain's own moment comes.

It only calls the step that everybody calls, for every chain beside the others: one whose remote is slow holds nobody
up, and none is stepped twice at once. A chain that cannot be stepped now is left for later, and a registry out of reach
is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Protocol

from tenuto.model.faults import NoSupervisor, OutOfReach, StorageFull
from tenuto.model.ids import ChainId
from tenuto.ports import Clock

LONGEST = timedelta(seconds=60)
AFTER_TROUBLE = timedelta(seconds=5)
#: Seconds in which commits that follow each other ring once.
BREATH = 0.05
#: Chains that are stepped at once.
AT_ONCE = 16


class Tended(Protocol):
    """Chains that can be tended."""

    def due(self) -> tuple[ChainId, ...]: ...

    def soonest(self, but: Collection[ChainId] = ()) -> datetime | None: ...

    async def tend_one(self, chain_id: ChainId) -> None: ...


class Tender:
    """The rounds of one supervisor."""

    def __init__(self, chains: Tended, clock: Clock) -> None:
        self._chains = chains
        self._clock = clock
        self._bell = asyncio.Event()
        self._stopping = False
        self._under_way: dict[ChainId, asyncio.Task[None]] = {}

    def ring(self) -> None:
        """Something was committed that may concern a chain."""
        self._bell.set()

    def stop(self) -> None:
        """Step nothing more; what is under way is given up, and whoever leads next finds it."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """One round after another, until stopped."""
        async with asyncio.TaskGroup() as group:
            while not self._stopping:
                self._bell.clear()
                soonest = self._round(group)
                wait = LONGEST if soonest is None else min(max(soonest - self._clock.now(), timedelta(0)), LONGEST)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(wait.total_seconds(), BREATH)):
                        await self._bell.wait()
                if not self._stopping:
                    await asyncio.sleep(BREATH)
            for step in self._under_way.values():
                step.cancel()

    def _round(self, group: asyncio.TaskGroup) -> datetime | None:
        """Begin the steps that are due, and say when the next moment is."""
        try:
            for chain_id in self._chains.due():
                if chain_id not in self._under_way and len(self._under_way) < AT_ONCE:
                    self._under_way[chain_id] = group.create_task(self._one(chain_id), name=f"chain {chain_id}")
            return self._chains.soonest(self._under_way)
        except (OutOfReach, StorageFull, NoSupervisor):
            return self._clock.now() + AFTER_TROUBLE

    async def _one(self, chain_id: ChainId) -> None:
        try:
            await self._chains.tend_one(chain_id)
        finally:
            del self._under_way[chain_id]
            self._bell.set()
