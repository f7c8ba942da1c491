"""How soon work goes on after the supervisor was killed.

A real supervisor process is killed with SIGKILL while a turn runs and between two turns, in turns, and started again
at once. What counts is the time from the kill to the first act of the next turn's program; when a turn was running,
the rest of that turn is not counted, because nobody may begin another before it has ended. Two registries go through
this side by side, which makes every restart slower than it is alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.detached import Detached, supervisor_of
from bench.world import Stamp, centile, filling, given, home, median, stamping, stamps, times
from tenuto.config import Settings
from tenuto.proof.bench import Row

GOAL_S = 2.0
KILLS = 50
LANES = 2
TURN_S = 0.15
IDLE_S = 0.15
#: How long after a turn's last act it is surely settled, and the next one not yet due.
SETTLED_S = 0.08


def measure(place: Path, effort: float) -> Iterator[Row]:
    """One row: the slowest and the median continuation after so many kills."""
    kills = times(effort, KILLS, 4)
    for n in range(LANES):
        (place / f"lane{n}").mkdir()
        asyncio.run(filled(home(place / f"lane{n}" / "home"), place / f"lane{n}" / "stamps", place))
    with ThreadPoolExecutor(LANES) as lanes:
        shares = [kills // LANES + (n < kills % LANES) for n in range(LANES)]
        found = list(lanes.map(lane, [place / f"lane{n}" for n in range(LANES)], shares))
    spent = [seconds for each in found for seconds in each]
    yield Row(
        "supervisor killed -> work goes on",
        f"{max(spent):.2f} s at most, median {median(spent):.2f} s ({len(spent)} kills)",
        f"<= {GOAL_S:.0f} s",
        max(spent) <= GOAL_S,
        {
            "continued_after_kill_max_s": max(spent),
            "continued_after_kill_median_s": median(spent),
            "continued_after_kill_p90_s": centile(spent, 0.9),
            "kills": len(spent),
        },
    )


def lane(place: Path, kills: int) -> list[float]:
    """Seconds from each kill to the next turn, of one registry."""
    file = place / "stamps"
    with supervisor_of(place / "home", place.parent.parent / "bytecode") as supervisor:
        supervisor.start()
        return [killed(supervisor, file, mid_turn=n % 2 == 0) for n in range(kills)]


async def filled(settings: Settings, file: Path, cwd: Path) -> None:
    async with filling(settings) as supervisor:
        await given(supervisor, stamping(file, TURN_S), cwd, idle_delay=IDLE_S)


def killed(supervisor: Detached, file: Path, *, mid_turn: bool) -> float:
    """Kill it at the moment that was asked for, start another at once, and wait for the next turn."""
    word = "begin" if mid_turn else "end"
    known = len(stamps(file))
    supervisor.until(f"a turn's {word}", lambda: any(stamp.word == word for stamp in stamps(file)[known:]))
    time.sleep(SETTLED_S)
    supervisor.kill()
    at = time.time()  # noqa: TID251 - the same clock as the programs' stamps
    before = len([stamp for stamp in stamps(file) if stamp.word == "begin"])
    supervisor.start()
    supervisor.until("the next turn", lambda: len(begins(stamps(file))) > before)
    found = stamps(file)
    live = begins(found)[before - 1]
    ended = next((stamp.at for stamp in found if stamp.word == "end" and stamp.attempt == live.attempt), at)
    return begins(found)[before].at - max(at, ended)


def begins(found: list[Stamp]) -> list[Stamp]:
    return [stamp for stamp in found if stamp.word == "begin"]
