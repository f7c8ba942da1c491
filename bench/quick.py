"""How long a person waits for `tenuto status`.

A process of its own each time, warm, beside a Python that does nothing: the two take turns, and the difference is
what this program brings in. Once without a supervisor; what a supervisor answers is read from the same file.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.world import NotMeasured, clean_environment, home, leading, median, times
from tenuto.proof.bench import Row

GOAL_MS = 150.0
RUNS = 20


def measure(place: Path, effort: float) -> Iterator[Row]:
    """One row: `tenuto status` of a registry that has been led."""
    settings = home(place / "home")

    async def led() -> None:
        async with leading(settings):
            pass

    asyncio.run(led())
    environment = clean_environment(place / "home", place.parent / "bytecode")
    status, nothing = [], []
    for n in range(times(effort, RUNS, 10) + 2):
        told = timed([sys.executable, "-m", "tenuto", "status"], environment)
        bare = timed([sys.executable, "-c", "pass"], environment)
        if n >= 2:
            status.append(told)
            nothing.append(bare)
    yield Row(
        "tenuto status, median",
        f"{median(status):.0f} ms (python that does nothing {median(nothing):.0f}; {len(status)} runs)",
        f"<= {GOAL_MS:.0f} ms",
        median(status) <= GOAL_MS,
        {"status_median_ms": median(status), "python_that_does_nothing_ms": median(nothing)},
    )


def timed(argv: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of one run; its exit code may say that there is no supervisor, but not that it failed."""
    began = time.perf_counter()
    done = subprocess.run(argv, env=environment, capture_output=True, check=False, timeout=60)
    took = 1000 * (time.perf_counter() - began)
    if done.returncode not in (0, 3):
        raise NotMeasured(f"{argv[-1]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-200:]}")
    return took
