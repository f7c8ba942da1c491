"""A supervisor whose registry is lost to it stops at once, by name, and writes nothing more."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

import pytest
from tests.ledger.world import SetClock, candidate

from tenuto.engine import residency
from tenuto.engine.cycle import Cycle, Deposed
from tenuto.engine.residency import Residency
from tenuto.engine.wheel import Wheel
from tenuto.model.change import Commit, Committed
from tenuto.model.faults import Corrupt, StorageFull
from tenuto.model.leadership import Leadership
from tenuto.ports import Ledger, NoFuse

pytestmark = pytest.mark.anyio


class Failing:
    """A ledger that leads, and whose renewals fail one after the other."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.resigned = False

    async def lead(self, candidate: Leadership, gone: object) -> Leadership:
        return candidate

    async def commit(self, commit: Commit) -> Committed:
        return Committed(1)

    async def renew(self, mine: Leadership, now: object, expires_at: object) -> Leadership:
        raise self.faults.pop(0)

    async def resign(self, mine: Leadership, now: object) -> None:
        self.resigned = True


class Turning:
    """A wheel that turns until it is stopped, a cycle that has an epoch."""

    epoch: int | None = None

    def __init__(self) -> None:
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        await self.stopping.wait()

    def stop(self) -> None:
        self.stopping.set()


async def test_a_registry_that_is_lost_deposes_and_a_full_disk_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residency, "HEARTBEAT", timedelta(milliseconds=1))
    ledger, turning = Failing(StorageFull("full"), Corrupt("it was removed")), Turning()
    it = Residency(
        cast(Ledger, ledger),
        cast(Cycle, turning),
        cast(Wheel, turning),
        SetClock(),
        NoFuse(),
        candidate("me"),
        lambda holder: False,
    )
    await it.lead()
    async with asyncio.timeout(90):
        with pytest.raises(Deposed, match="it was removed"):
            await it.serve()
    assert ledger.faults == []
    assert not ledger.resigned
