"""What a chain costs: one hand-off, shown at the beginning of a queue, in its middle and near its end.

A registry on disk, the real record at a queue file, the real commits; no agent and no turn. The rows of the units
before a position are laid into the registry directly, as a chain would have left them. `python -m bench.chains [UNITS]`
prints milliseconds, of the clock and of the processor.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.support.world import NAME, OPERATOR, Counting, world

from tenuto.core import chain as rules
from tenuto.engine.chains import HandOff, Start
from tenuto.model.chain import Board, Caps, Outcome, SourcePlace, Unit, UnitState
from tenuto.model.ids import TaskId
from tenuto.model.work import Agent

STEPS = 20
MANY = 100_000


@dataclass(frozen=True)
class Cost:
    """Medians of some hand-offs that follow each other, in milliseconds."""

    took: float
    cpu: float


def queue_of(path: Path, units: int, done: int) -> None:
    """A queue of so many units, the first of them done as a chain writes it."""
    rows: list[dict[str, object]] = [{"id": f"u{number}"} for number in range(units)]
    for row in rows[:done]:
        row |= {"state": "done", "attempts": 1, "recorded_by": f"[tenuto:c-{row['id']}]", "evidence": "commit abc"}
    path.write_text(json.dumps({"version": 1, "units": rows}))


def laid(registry: Path, first: TaskId, ended: TaskId, position: int) -> None:
    """Put a chain's first link at a position: those before it are recorded, their tasks copies of one that ended."""
    mint = Counting(1 << 20)
    with closing(sqlite3.connect(registry, isolation_level=None, timeout=60)) as rows:
        rows.execute("BEGIN IMMEDIATE")
        chain, run, at = rows.execute(
            "SELECT link.chain_id, chain.run_id, link.made_at FROM link JOIN chain ON chain.id = link.chain_id"
            " WHERE link.task_id = ?", (first,),
        ).fetchone()  # fmt: skip
        names = {table: [row[1] for row in rows.execute(f"PRAGMA table_info({table})")] for table in ("task", "link")}
        tasks = [mint.new("task") for _ in range(position - 1)]
        for number, task in enumerate(tasks):
            before = tasks[number - 1] if number else None
            _copied(rows, names["task"], "task", ("id", ended), {"id": task, "run_id": run, "parent": before})
        rows.execute("UPDATE link SET position = ?, predecessor = ? WHERE task_id = ?", (position, tasks[-1], first))
        for number, task in enumerate(tasks):
            changed = {
                "id": mint.new("link"), "position": number + 1, "predecessor": tasks[number - 1] if number else None,
                "task_id": task, "unit": f"u{number}", "key": f"{number:064x}", "outcome": "done",
                "evidence": "commit abc", "command_id": None, "handed_at": at, "recorded_at": at,
            }  # fmt: skip
            _copied(rows, names["link"], "link", ("task_id", first), changed)
        rows.execute("UPDATE chain SET position = ?, processed = ? WHERE id = ?", (position, position - 1, chain))
        rows.execute("COMMIT")


def _copied(
    rows: sqlite3.Connection, names: list[str], table: str, of: tuple[str, str], changed: dict[str, str | int | None]
) -> None:
    told = ", ".join("?" if name in changed else name for name in names)
    given = [changed[name] for name in names if name in changed]
    columns = ", ".join(names)
    rows.execute(f"INSERT INTO {table} ({columns}) SELECT {told} FROM {table} WHERE {of[0]} = ?", (*given, of[1]))  # noqa: S608


async def measured(units: int, position: int, steps: int = STEPS) -> Cost:
    """The hand-offs of a chain at a position (from 1) of a queue of so many units."""
    with tempfile.TemporaryDirectory() as folder:
        queue = Path(folder) / "queue.json"
        queue_of(queue, units, position - 1)
        took, cpu = [], []
        async with world(Path(folder)) as it:
            asked = Start(
                "goal", "a.b/c/d", "all", SourcePlace("queue", str(queue)), folder, Caps(units=units + 1),
                agent=Agent(NAME, ("agent",), resumable=True),
            )  # fmt: skip
            begun = await it.desk.chains.start(OPERATOR, asked, "k")
            task = TaskId(str(begun.result["task"]))
            if position > 1:
                ended = await it.create()
                await it.desk.complete(OPERATOR, ended, "abc")
                laid(Path(folder) / "state" / "registry.sqlite3", task, ended, position)
            for _ in range(steps):
                before, used = time.perf_counter(), time.process_time()
                told = await it.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, "abc"))
                took.append((time.perf_counter() - before) * 1000)
                cpu.append((time.process_time() - used) * 1000)
                task = TaskId(str(told.result["successor"]))
        return Cost(statistics.median(took), statistics.median(cpu))


def resolving() -> list[tuple[str, float]]:
    """What it takes the processor to find the next of very many units, in milliseconds, by how they stand."""
    boards: dict[str, Callable[[int], UnitState]] = {
        "every other is done": lambda number: UnitState.DONE if number % 2 else UnitState.ELIGIBLE,
        "all but the last hundred are done": lambda number: (
            UnitState.DONE if number < MANY - 100 else UnitState.ELIGIBLE
        ),
        "all are blocked": lambda number: UnitState.BLOCKED,
    }
    told = []
    for name, state in boards.items():
        board = Board(tuple(Unit(f"u{number}", state(number)) for number in range(MANY)), "r")
        before = time.process_time()
        rules.resolve(board, None, frozenset(), {}, 10)
        told.append((name, (time.process_time() - before) * 1000))
    return told


def main() -> None:
    units = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for position in (1, units // 2, units * 99 // 100):
        cost = asyncio.run(measured(units, position))
        sys.stdout.write(
            f"hand-off at {position} of {units}: {cost.took:.1f} ms, of them {cost.cpu:.1f} of the processor\n"
        )
    for name, took in resolving():
        sys.stdout.write(f"resolve over {MANY} units, {name}: {took:.1f} ms of the processor\n")


if __name__ == "__main__":
    main()
