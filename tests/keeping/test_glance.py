"""A quick look at a registry that is being made at that very moment."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from tests.ledger.world import Counting, SetClock

from tenuto.config import load
from tenuto.model.faults import Corrupt
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.wiring.glance import Glimpse, glimpse


def test_a_registry_that_comes_between_two_questions_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load({"TENUTO_HOME": str(tmp_path)})
    settings.state.mkdir(parents=True)
    settings.registry_path.touch()
    assert glimpse(settings).registry_id is None

    made: list[TableLedger] = []

    def makes(_connection: sqlite3.Connection) -> bool:
        made.append(open_registry(settings.database, SetClock(), minter=Counting()))
        return False

    monkeypatch.setattr(Glimpse, "_empty", staticmethod(makes))
    assert glimpse(settings).registry_id is not None
    asyncio.run(made[0].close())


def test_a_database_of_something_else_is_called_that_and_is_not_to_be_upgraded(tmp_path: Path) -> None:
    settings = load({"TENUTO_HOME": str(tmp_path)})
    settings.state.mkdir(parents=True)
    with sqlite3.connect(settings.registry_path) as connection:
        connection.execute("CREATE TABLE other(x)")
    with pytest.raises(Corrupt, match="a database of something else") as told:
        glimpse(settings)
    assert "upgrade" not in str(told.value)
