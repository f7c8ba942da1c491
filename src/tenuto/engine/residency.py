"""One resident supervisor per registry.

Takes the supervisor lease, keeps it fresh, and gives it up when asked. A supervisor that cannot renew, or finds
another's epoch, stops at once and writes nothing more; a clean stop resigns and cancels nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from tenuto.engine.cycle import Cycle, Deposed
from tenuto.engine.standing import Standing, standing
from tenuto.engine.wheel import Wheel
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Corrupt, OutOfReach, StorageFull
from tenuto.model.snapshot import Leadership
from tenuto.ports import Clock, Fuse, Ledger

__all__ = ["LIFE", "NotFree", "Residency", "Standing", "standing"]

HEARTBEAT = timedelta(seconds=5)
LIFE = timedelta(seconds=15)
MARGIN = timedelta(seconds=3)


@dataclass(frozen=True)
class NotFree:
    """Another supervisor leads this registry."""

    holder: Leadership | None


class Residency:
    """The resident life of one supervisor: lead, serve, renew, resign."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        wheel: Wheel,
        clock: Clock,
        fuse: Fuse,
        me: Leadership,
        gone: Callable[[Leadership], bool],
        floor: Callable[[], int] = lambda: 0,
    ) -> None:
        """`floor` is the highest epoch that any host here was ordered under: a restored registry may be behind it."""
        self._ledger = ledger
        self._cycle = cycle
        self._wheel = wheel
        self._clock = clock
        self._fuse = fuse
        self._me = me
        self._gone = gone
        self._floor = floor
        self._mine: Leadership | None = None
        self._stopping = asyncio.Event()
        #: When the last renewal that succeeded was asked for, by a clock that never goes back.
        self._renewed = clock.monotonic()
        cycle.holds = self.holds

    def holds(self) -> bool:
        """Whether the lease is still surely ours: whoever waits for it to run out waits longer than this."""
        return self._clock.monotonic() - self._renewed < (LIFE - MARGIN).total_seconds()

    @property
    def lease(self) -> Leadership | None:
        """The lease as it was last renewed; None while another leads."""
        return self._mine

    async def lead(self) -> Leadership | NotFree:
        """Take the lease, or say who has it."""
        now, asked = self._clock.now(), self._clock.monotonic()
        candidate = replace(self._me, epoch=self._floor(), taken_at=now, renewed_at=now, expires_at=now + LIFE)
        self._fuse.burn("lead.before")
        taken = await self._ledger.lead(candidate, self._gone)
        self._fuse.burn("lead.taken")
        if taken is None:
            return NotFree(self._ledger.leadership())
        self._mine, self._renewed = taken, asked
        self._cycle.epoch = taken.epoch
        await self._told(FactKind.SUPERVISOR_LEADS, taken)
        return taken

    async def _told(self, kind: FactKind, lease: Leadership) -> None:
        """Write down who leads, or led."""
        data: dict[str, Scalar] = {"epoch": lease.epoch, "host": lease.host, "pid": lease.pid}
        await self._ledger.commit(Commit(facts=(Fact(kind, data=data),)))

    def stop(self) -> None:
        """Come to rest and resign; nothing is cancelled."""
        self._stopping.set()
        self._wheel.stop()

    async def serve(self) -> None:
        """Serve until asked to stop; raises Deposed when the lease is lost. Resigns on a clean stop."""
        if self._mine is None:
            raise Deposed("it does not lead")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._renew(), name="renew")
                group.create_task(self._turn(), name="wheel")
        except* Deposed as deposed:
            raise Deposed(str(deposed.exceptions[0])) from None
        self._fuse.burn("resign.before")
        try:
            await self._told(FactKind.SUPERVISOR_STOPPED, self._mine)
            self._cycle.epoch = None
            await self._ledger.resign(self._mine, self._clock.now())
        except OutOfReach:
            self._cycle.epoch = None  # the lease runs out by itself

    async def _turn(self) -> None:
        try:
            await self._wheel.run()
        finally:
            self._stopping.set()

    async def _renew(self) -> None:
        """Renew in time, notice a stop that was asked for; a lease that is another's by now is lost."""
        while not self._stopping.is_set():
            mine = self._mine
            if mine is None:
                raise Deposed("it does not lead")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), timeout=HEARTBEAT.total_seconds())
                return
            now, asked = self._clock.now(), self._clock.monotonic()
            try:
                renewed = await self._ledger.renew(mine, now, now + LIFE)
            except (StorageFull, OutOfReach):
                continue  # nothing can be armed either; whoever leads next is fenced by the epoch all the same
            except Corrupt as broken:
                raise Deposed(f"its registry is of no use any more: {broken}") from broken
            if renewed is None:
                raise Deposed("its lease was taken over")
            self._mine, self._renewed = renewed, asked
            if renewed.stop_asked_at is not None:
                self.stop()
