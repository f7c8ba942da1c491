"""A few worlds keep every promise, the same seed lives the same, and a core with a promise taken out is caught."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.simulation import spoiled, unkept

from tenuto.core import reconcile, slots
from tenuto.proof.simulation.plan import Kind, Plan, drawn
from tenuto.proof.simulation.run import lived, run, told
from tenuto.proof.simulation.shrink import shrunk
from tenuto.proof.simulation.universe import live

SEEDS = 2


@pytest.mark.timeout(300)
def test_a_few_worlds_keep_every_promise() -> None:
    report = run([drawn(seed, 6, 2) for seed in range(1, SEEDS + 1)], jobs=1)
    assert [(life.plan.seed, life.broken) for life in report.broken] == []
    assert report.turns > 10
    assert sum(life.deaths for life in report.lives) >= SEEDS, "nobody died, so nothing was tried"


@pytest.mark.timeout(300)
def test_the_same_seed_lives_the_same_also_elsewhere() -> None:
    plan = drawn(5, 3, 1)
    here = live(plan, telling=True).transcript
    program = "import json; from tests.simulation.spoiled import transcript; print(json.dumps(transcript(5, 3, 1)))"
    root = Path(__file__).parents[2]
    there = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, check=True, timeout=200)
    assert list(here) == json.loads(there.stdout)
    assert len(here) > 50


@pytest.fixture
def honest() -> Iterator[None]:
    """Put the core back as it was."""
    before = reconcile.of_command
    yield
    reconcile.of_command = before


@pytest.mark.timeout(300)
@pytest.mark.parametrize("spoil", spoiled.SPOILS)
@pytest.mark.usefixtures("honest")
def test_a_core_with_a_promise_taken_out_is_caught(spoil: str) -> None:
    spoiled.spoil(spoil)
    caught = next((said for seed in range(1, 6) if (said := lived(drawn(seed, 6, 4)).broken) is not None), None)
    assert caught is not None, "five worlds, and nobody noticed"
    assert spoiled.SPOILS[spoil][1] in caught


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("honest")
def test_a_world_that_broke_a_promise_is_made_smaller_and_told() -> None:
    spoiled.spoil("unknown_is_gone")
    broken = next(life for seed in range(1, 6) if (life := lived(drawn(seed, 4, 2))).broken is not None)
    story = told(broken, tries=12)
    assert any(line.startswith("BROKEN ") for line in story)
    assert len(story) > 5


@pytest.mark.timeout(300)
def test_a_world_with_fewer_slots_than_tasks_misses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    few = drawn(2, 6, 1)
    assert few.slots == 4
    assert lived(few).broken is None
    monkeypatch.setattr(slots, "may_start", lambda snapshot: True)
    broken = lived(few).broken
    assert broken is not None
    assert "there are 4 slots" in broken


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sabotage", unkept.SABOTAGES, ids=lambda sabotage: sabotage.__name__)
def test_a_promise_of_pages_words_or_limits_that_is_not_kept_is_missed(
    sabotage: Callable[[unkept.Put], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, words = unkept.SABOTAGES[sabotage]
    sabotage(monkeypatch.setattr)
    lives = (lived(drawn(each, 5, 1.5)).broken for each in range(seed, seed + 12))
    assert any(broken is not None and words in broken for broken in lives)


def test_everything_that_may_befall_a_world_is_planned() -> None:
    assert {fault.kind for seed in range(1, 9) for fault in drawn(seed, 5, 3).faults} == set(Kind)


def test_shrinking_leaves_only_what_is_needed() -> None:
    whole = drawn(1, 10, 5)
    kept = next(fault for fault in whole.faults if fault.kind is Kind.CRASH)

    def breaks(plan: Plan) -> bool:
        return kept in plan.faults and 7 in plan.tasks

    small = shrunk(whole, breaks, 2_000)
    assert (small.tasks, small.faults, small.mishaps) == ((7,), (kept,), False)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_many_worlds_keep_every_promise() -> None:
    report = run([drawn(seed, 12, 8) for seed in range(1_000, 1_020)], jobs=2)
    assert [(life.plan.seed, life.broken) for life in report.broken] == []
