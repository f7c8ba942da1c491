"""How much memory a supervisor takes, and whether serving turns makes it take more.

A process of its own with a thousand unfinished tasks, before anybody has knocked at its door: what the web stack and
MCP add comes with the first visitor. Then one of its tasks makes turn after turn, and the resident memory of the
supervisor alone is read again; hosts and programs are processes of their own and are not counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.detached import Detached, supervisor_of, warmed
from bench.world import OPERATOR, filling, given, home, stamping, stamps, times
from tenuto.config import Settings
from tenuto.proof.bench import Row

GOAL_MB = 80.0
#: More than this from a fifth of the turns to the last of them is growth, not noise.
FLAT_MB = 4.0
TASKS = 1_000
TURNS = 1_000
#: As many as an effort of 1 has time for; the thousand take an effort of 4.
SOME_TURNS = 250
AT_ONCE = 4
MB = 1_000_000
PATIENCE = 600.0


def measure(place: Path, effort: float) -> Iterator[Row]:
    """One row: memory with a thousand tasks, before and after many turns."""
    folder = place / "home"
    turns = min(times(effort, SOME_TURNS, 60), TURNS)
    turns -= turns % AT_ONCE
    files = [place / f"stamps{n}" for n in range(AT_ONCE)]
    settings = home(folder)
    asyncio.run(filled(settings, files, place, turns // AT_ONCE))
    warmed(folder, place.parent / "bytecode")
    with supervisor_of(folder, place.parent / "bytecode") as supervisor:
        pid = supervisor.start()
        supervisor.until("the first turns", lambda: ended(files) >= AT_ONCE)
        first = resident(pid)
        early = watched(supervisor, pid, files, turns // 5)
        late = watched(supervisor, pid, files, turns)
        peak = max(first, early, late)
    grew = late - early
    yield Row(
        f"supervisor's memory with {TASKS:,} tasks",
        f"{first:.0f} MB; {late:.0f} MB after {turns:,} turns ({grew:+.1f} MB since the first fifth)",
        f"<= {GOAL_MB:.0f} MB, and flat",
        peak <= GOAL_MB and grew <= FLAT_MB,
        {"rss_first_mb": first, "rss_early_mb": early, "rss_late_mb": late, "rss_growth_mb": grew, "rss_turns": turns},
    )


def resident(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / MB


def ended(files: list[Path]) -> int:
    return sum(stamp.word == "end" for file in files for stamp in stamps(file))


def watched(supervisor: Detached, pid: int, files: list[Path], turns: int) -> float:
    """The resident memory once so many turns were made."""
    supervisor.until(f"turn {turns}", lambda: ended(files) >= turns, PATIENCE)
    return resident(pid)


async def filled(settings: Settings, files: list[Path], cwd: Path, turns: int) -> None:
    """A registry with a thousand tasks, all but a few of them paused."""
    async with filling(settings) as supervisor:
        for _ in range(TASKS - len(files)):
            task = await given(supervisor, ("true",), cwd)
            await supervisor.desk.pause(OPERATOR, task)
        for file in files:
            await given(supervisor, stamping(file), cwd, max_attempts=turns)
