"""What a chain costs: one hand-off, and whether the ten-thousandth costs more than the first.

A registry on disk, the real record at a queue file, the real commits; no agent and no turn. `python -m bench.chains
[UNITS]` prints milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.support.world import NAME, OPERATOR, world

from tenuto.core import chain as rules
from tenuto.engine.chains import HandOff, Start
from tenuto.model.chain import Board, Caps, Outcome, SourcePlace, Unit, UnitState
from tenuto.model.ids import TaskId
from tenuto.model.work import Agent

STEPS = 100


async def measured(units: int, steps: int) -> list[float]:
    """Milliseconds of each of the first hand-offs of a chain whose queue has so many units."""
    with tempfile.TemporaryDirectory() as folder:
        queue = Path(folder) / "queue.json"
        queue.write_text(json.dumps({"version": 1, "units": [{"id": f"u{n}"} for n in range(units)]}))
        took = []
        async with world(Path(folder)) as it:
            asked = Start(
                "goal", "a.b/c/d", "all", SourcePlace("queue", str(queue)), folder, Caps(units=units + 1),
                agent=Agent(NAME, ("agent",), resumable=True),
            )  # fmt: skip
            task = (await it.desk.chains.start(OPERATOR, asked, "k")).result["task"]
            for _ in range(steps):
                before = time.perf_counter()
                told = await it.desk.chains.hand_off(OPERATOR, TaskId(str(task)), HandOff(Outcome.DONE, "abc"))
                took.append((time.perf_counter() - before) * 1000)
                task = told.result["successor"]
        return took


def main() -> None:
    units = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for count in (100, units):
        took = asyncio.run(measured(count, min(STEPS, count - 1)))
        half = len(took) // 2
        first, last = statistics.median(took[:half]), statistics.median(took[half:])
        sys.stdout.write(f"hand-off, queue of {count}: first half {first:.1f} ms, second half {last:.1f} ms\n")
    board = Board(tuple(Unit(f"u{n}", UnitState.DONE if n % 2 else UnitState.ELIGIBLE) for n in range(100_000)), "r")
    before = time.perf_counter()
    rules.resolve(board, None, frozenset(), {}, 10)
    sys.stdout.write(f"resolve over 100000 units: {(time.perf_counter() - before) * 1000:.1f} ms\n")


if __name__ == "__main__":
    main()
