"""A server that remembers what it was told, and homes that are ended with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.ledger.server import Server, server
from tests.supervisors.homes import Home

Make = Callable[..., Home]


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server(durable=True) as running:
        yield running


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Make]:
    """Make homes; each is ended, with all that it started."""
    made: list[Home] = []

    def make(name: str, database: str, machine: str | None = None, more: str = "", off: float = 0.0) -> Home:
        home = Home(tmp_path / name, database, machine, more, off)
        made.append(home)
        return home

    yield make
    for home in made:
        home.close()
