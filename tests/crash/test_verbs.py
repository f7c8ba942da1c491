"""Whoever is killed while verbs are given, claims judged and waits ended: the same holds."""

from __future__ import annotations

import pytest
from tests.crash.paths import TURNS, walk, worker

from tenuto.proof.matrix import Worker
from tenuto.proof.scenarios import ALL

__all__ = ["worker"]
TALKS = ("talk", "talk-asks", "talk-steered", "talk-cut")
LONG = ("chain", "chain-phases", "chain-merges", "merge-revoked", "elsewhere", "elsewhere-cancel", *TALKS)
"""Paths of several tasks, or processes: walked whole where long proofs are, and at their own points beside."""
VERBS = [
    pytest.param(scenario.name, marks=pytest.mark.prove) if scenario.name in LONG else scenario.name
    for scenario in ALL
    if scenario.name not in TURNS
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", VERBS)
def test_every_point_of_a_verb_can_be_survived(worker: Worker, scenario: str) -> None:
    walk(worker, scenario)
