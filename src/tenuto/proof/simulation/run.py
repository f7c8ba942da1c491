"""Many worlds, from many seeds, in as many processes as are given.

A world that broke a promise is lived through again to see that it does so again, made smaller, and told.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from tenuto.proof.simulation.plan import Plan, drawn
from tenuto.proof.simulation.shrink import shrunk
from tenuto.proof.simulation.universe import Lived, live
from tenuto.surfaces.cli.entrances import Proof

SHRINKS = 120
"""Most worlds that are lived through to make one smaller."""

LINES = 60
"""Last lines of a transcript that are told."""


@dataclass(frozen=True)
class Report:
    """What all of them came to."""

    lives: tuple[Lived, ...]
    seconds: float

    @property
    def task_days(self) -> float:
        return sum(life.task_days for life in self.lives)

    @property
    def turns(self) -> int:
        return sum(life.turns for life in self.lives)

    @property
    def broken(self) -> tuple[Lived, ...]:
        return tuple(life for life in self.lives if life.broken is not None)


def lived(plan: Plan) -> Lived:
    """Live through one plan; a world that falls apart is a broken promise of ours."""
    with warnings.catch_warnings():
        # A supervisor that dies leaves coroutines that are never awaited: that is what dying means.
        warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)
        return live(plan)


def run(plans: list[Plan], jobs: int, heard: Callable[[Lived], None] = lambda lived: None) -> Report:
    """Live through all plans, `jobs` at a time, in their order."""
    began = time.monotonic()
    lives = []
    for life in _lives(plans, jobs):
        lives.append(life)
        heard(life)
    return Report(tuple(lives), time.monotonic() - began)


def _lives(plans: list[Plan], jobs: int) -> Iterator[Lived]:
    if jobs == 1:
        yield from map(lived, plans)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(lived, plans)


def told(broken: Lived, tries: int = SHRINKS) -> list[str]:
    """The story of a world that broke a promise, as small as it could be made; says so if it is another each time."""
    again = lived(broken.plan)
    if again.broken != broken.broken:
        return [f"{broken.plan}", f"broke: {broken.broken}", f"and the second time: {again.broken}"]
    small = shrunk(broken.plan, lambda plan: lived(plan).broken is not None, tries)
    end = live(small, telling=True)
    return [str(small), f"BROKEN {end.broken}", *(f"  {line}" for line in end.transcript[-LINES:])]


def as_proof(
    *, seed: int, tasks: int, days: float, worlds: int, turns_a_day: float, jobs: int, say: Callable[[str], None]
) -> Proof:
    """Worlds from `seed` on, as the command line shows them."""

    def heard(life: Lived) -> None:
        if life.broken is not None:
            say(f"BROKEN seed {life.plan.seed}: {life.broken}")

    plans = [drawn(seed + number, tasks, days, turns_a_day) for number in range(worlds)]
    report = run(plans, min(jobs, worlds), heard)
    lines: list[str] = []
    for broken in report.broken[:3]:
        lines += told(broken)
    a_minute = report.task_days / report.seconds * 60
    commits, deaths = sum(life.commits for life in report.lives), sum(life.deaths for life in report.lives)
    summary = (
        f"{len(report.lives)} worlds, {report.task_days:.0f} task-days with {report.turns} turns in"
        f" {report.seconds:.0f} s ({a_minute:.0f} task-days a minute): {commits} steps checked,"
        f" {deaths} supervisors died, promises broken {len(report.broken)}"
    )
    result: dict[str, object] = {
        "worlds": len(report.lives),
        "seed": seed,
        "task_days": round(report.task_days, 1),
        "turns": report.turns,
        "steps": commits,
        "supervisors_died": deaths,
        "seconds": round(report.seconds, 2),
        "task_days_per_minute": round(a_minute),
        "broken": [{"seed": life.plan.seed, "sentence": life.broken} for life in report.broken],
    }
    return Proof(not report.broken, summary, lines, result)
