"""Whoever is killed at whatever point of a turn: it takes effect at most once, and nothing of it is lost."""

from __future__ import annotations

import pytest
from tests.crash.paths import TURNS, walk, worker

from tenuto.proof.matrix import Worker

__all__ = ["worker"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", TURNS)
def test_every_point_of_a_turn_can_be_survived(worker: Worker, scenario: str) -> None:
    walk(worker, scenario)
