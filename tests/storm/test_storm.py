"""Whoever is killed at whatever instant: every task ends or says what it needs, and no command has two effects."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ledger.server import server
from tests.storm.weather import Storm


def judged(storm: Storm, kills: int, least: int) -> None:
    assert storm.broken() == []
    assert sum(storm.killed.values()) >= least, f"only {dict(storm.killed)} were killed of {kills}"


@pytest.mark.timeout(300)
def test_a_small_storm(tmp_path: Path) -> None:
    storm = Storm(tmp_path, tasks=5, seed=1)
    storm.rage(kills=20, seconds=240)
    judged(storm, 20, least=8)


@pytest.mark.prove
@pytest.mark.timeout(5400)
def test_a_storm(tmp_path: Path) -> None:
    storm = Storm(tmp_path, tasks=50, seed=2)
    storm.rage(kills=200, seconds=4500)
    judged(storm, 200, least=150)


@pytest.mark.prove
@pytest.mark.timeout(5400)
def test_a_storm_over_a_server(tmp_path: Path) -> None:
    with server() as postgres:
        storm = Storm(tmp_path, tasks=50, seed=3, database=postgres.database())
        storm.rage(kills=200, seconds=4500)
        judged(storm, 200, least=150)
