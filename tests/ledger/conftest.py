"""An open ledger that leads, over every database the suite knows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.ledger.server import Server, programs, server
from tests.ledger.world import Counting, SetClock, candidate, never

from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry

DATABASES = ["sqlite", "postgresql"] if programs() else ["sqlite"]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def ids() -> Counting:
    return Counting()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a registry that does not exist yet may be made."""
    if request.param == "postgresql":
        running: Server = request.getfixturevalue("postgresql")
        return running.database()
    return f"sqlite:///{tmp_path / 'state' / 'registry.sqlite3'}"


@pytest.fixture
async def ledger(database: str, clock: SetClock, ids: Counting) -> AsyncIterator[TableLedger]:
    opened = open_registry(database, clock, minter=ids)
    assert await opened.lead(candidate("me"), never) is not None
    yield opened
    await opened.close()
