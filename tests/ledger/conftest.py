"""An open ledger that leads, over every database the suite knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ledger.world import Counting, SetClock, candidate, never

from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def ids() -> Counting:
    return Counting()


@pytest.fixture(params=["sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a registry that does not exist yet may be made."""
    return f"sqlite:///{tmp_path / 'state' / 'registry.sqlite3'}"


@pytest.fixture
async def ledger(database: str, clock: SetClock, ids: Counting) -> AsyncIterator[TableLedger]:
    opened = open_registry(database, clock, minter=ids)
    assert await opened.lead(candidate("me"), never) is not None
    yield opened
    await opened.close()
