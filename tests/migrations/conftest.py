"""A PostgreSQL server for registries that are carried forward."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.ledger.server import Server, server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running
