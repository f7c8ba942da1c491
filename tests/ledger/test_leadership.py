"""One supervisor leads; whoever takes the lease fences whoever had it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.ledger.world import NOW, SECOND, Counting, SetClock, candidate, never, place, turn, written

from tenuto.model.change import Commit, Committed, NotLeader
from tenuto.model.fact import Fact, FactKind
from tenuto.model.snapshot import Leadership
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry

pytestmark = pytest.mark.anyio
SAID = Commit(facts=(Fact(FactKind.FINDING),))


@pytest.fixture
async def other(database: str, ledger: TableLedger, clock: SetClock, ids: Counting) -> AsyncIterator[TableLedger]:
    """A second supervisor's ledger on the registry that the first one leads."""
    opened = open_registry(database, clock, minter=ids)
    yield opened
    await opened.close()


async def test_nobody_writes_before_it_leads(database: str, clock: SetClock, ids: Counting) -> None:
    opened = open_registry(database, clock, minter=ids)
    assert opened.leadership() is None
    assert await opened.commit(SAID) == NotLeader(0)
    mine = await opened.lead(candidate("me"), never)
    assert mine is not None
    assert mine == opened.leadership()
    assert (mine.epoch, await opened.commit(SAID)) == (1, Committed(1))
    await opened.close()


async def test_a_living_holder_keeps_its_lease(ledger: TableLedger, other: TableLedger, clock: SetClock) -> None:
    clock.pass_(14 * SECOND)
    assert await other.lead(candidate("you", clock.now()), never) is None
    assert await other.commit(SAID) == NotLeader(1)
    assert isinstance(await ledger.commit(SAID), Committed)


async def test_an_expired_holder_is_succeeded_and_fenced(
    ledger: TableLedger, other: TableLedger, clock: SetClock, ids: Counting
) -> None:
    here = place(ids)
    await written(ledger, Commit(puts=here.rows))
    mine = ledger.leadership()
    assert mine is not None
    clock.pass_(15 * SECOND)
    yours = await other.lead(candidate("you", clock.now()), never)
    assert yours is not None
    assert yours.epoch == 2
    assert await ledger.commit(turn(ids, here).commit()) == NotLeader(2)
    assert await ledger.renew(mine, clock.now(), clock.now() + 15 * SECOND) is None
    assert await ledger.commit(SAID) == NotLeader(2)
    assert (await written(other, SAID)).n == 1
    assert [event.epoch for event in other.events(0, 5)] == [2]


async def test_a_holder_proven_gone_is_succeeded_at_once(ledger: TableLedger, other: TableLedger) -> None:
    asked: list[str] = []

    def gone(holder: Leadership) -> bool:
        asked.append(holder.owner)
        return True

    yours = await other.lead(candidate("you"), gone)
    assert asked == ["me"]
    assert yours is not None
    assert isinstance(await ledger.commit(SAID), NotLeader)


async def test_renewing_prolongs_and_resigning_gives_back(
    ledger: TableLedger, other: TableLedger, clock: SetClock
) -> None:
    mine = ledger.leadership()
    assert mine is not None
    now = clock.pass_(10 * SECOND)
    renewed = await ledger.renew(mine, now, now + 15 * SECOND)
    assert renewed == replace(mine, renewed_at=now, expires_at=now + 15 * SECOND)
    clock.pass_(10 * SECOND)
    assert await other.lead(candidate("you", clock.now()), never) is None
    await ledger.resign(mine, clock.now())
    assert await ledger.commit(SAID) == NotLeader(1)
    assert await ledger.renew(mine, clock.now(), clock.now()) is None
    yours = await other.lead(candidate("you", clock.now()), never)
    assert yours is not None
    await ledger.resign(mine, clock.now())
    assert other.leadership() == yours


async def test_a_stop_is_asked_without_leading_and_heard_at_the_next_renewal(
    ledger: TableLedger, other: TableLedger, clock: SetClock
) -> None:
    mine = ledger.leadership()
    assert mine is not None
    assert await other.ask_stop(NOW + SECOND) is True
    renewed = await ledger.renew(mine, clock.now(), clock.now() + 15 * SECOND)
    assert renewed is not None
    assert renewed.stop_asked_at == NOW + SECOND
    await ledger.resign(renewed, clock.now())
    assert await other.ask_stop(clock.now()) is False


async def test_nobody_is_asked_to_stop_when_the_lease_has_run_out(other: TableLedger) -> None:
    assert await other.ask_stop(NOW + 16 * SECOND) is False


async def test_a_clock_that_goes_back_is_recorded_once(ledger: TableLedger, clock: SetClock) -> None:
    await written(ledger, SAID)
    clock.pass_(-2 * SECOND)
    await written(ledger, SAID)
    assert [event.fact.kind for event in ledger.events(0, 10)] == [FactKind.FINDING] * 2
    clock.pass_(-3 * SECOND)
    await written(ledger, SAID)
    await written(ledger, SAID)
    kinds = [event.fact.kind for event in ledger.events(2, 10)]
    assert kinds == [FactKind.CLOCK_WENT_BACK, FactKind.FINDING, FactKind.FINDING]


async def test_a_renewal_before_the_last_one_is_recorded(ledger: TableLedger, clock: SetClock) -> None:
    mine = ledger.leadership()
    assert mine is not None
    earlier = NOW - SECOND
    renewed = await ledger.renew(mine, earlier, earlier + 15 * SECOND)
    assert renewed is not None
    again = await ledger.renew(renewed, earlier, earlier + 15 * SECOND)
    assert again is not None
    assert [event.fact.kind for event in ledger.events(0, 5)] == [FactKind.CLOCK_WENT_BACK]


async def test_of_many_that_ask_at_once_one_leads(database: str, clock: SetClock, ids: Counting) -> None:
    rivals = [open_registry(database, clock, minter=ids) for _ in range(6)]
    leases = await asyncio.gather(*(rival.lead(candidate(f"r{i}"), never) for i, rival in enumerate(rivals)))
    winners = [lease for lease in leases if lease is not None]
    assert [lease.epoch for lease in winners] == [1]
    results = await asyncio.gather(*(rival.commit(SAID) for rival in rivals))
    assert sum(isinstance(result, Committed) for result in results) == 1
    for rival in rivals:
        await rival.close()
