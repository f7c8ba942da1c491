"""What the tests of the crash matrix share: one path of it, every point killed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenuto.proof.catalogue import cases_of, path_of
from tenuto.proof.matrix import Worker

TURNS = (
    "plain", "slow", "cut-short", "cut-short-person", "time-limit", "blocked", "silent", "stall", "lease",
    "unstartable", "unnamed", "stopped", "two", "limit", "permission",
)  # fmt: skip
"""Paths of turns and what becomes of them; the rest are paths of verbs, claims and checks."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Give a process that plays cases."""
    made = Worker()
    try:
        yield made
    finally:
        made.close()


def walk(worker: Worker, scenario: str) -> None:
    """Kill at every point of a path, and fail with the names of the cases that broke a promise."""
    undisturbed = worker.play(scenario)
    assert undisturbed.broken == ()
    cases = cases_of(path_of(scenario, undisturbed.passings, undisturbed.turns))
    results = [worker.play(str(case)) for case in cases]
    assert {result.case: result.broken for result in results if result.broken} == {}
    assert max(result.most_effects for result in results) == 1
    assert sum(result.turns_lost + result.rows_lost for result in results) == 0
    # Paths are not walked in lockstep: a few kills may find their point not passed this time, most must.
    reached = sum(result.reached for result in results)
    if reached < 0.8 * len(results):
        raise TimeoutError(f"only {reached} of {len(results)} kills came to their point: the machine is too busy")
