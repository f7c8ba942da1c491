"""What the ledger costs beside the database it stands on.

"Raw" is the same rows written by the same statements, by hand, on a sqlite3 connection with the same settings: what
nobody can beat. The ledger is asked by one caller, who waits for each commit, and by sixteen at once. The laps of
the three take turns, because the disk of a shared machine is never equally quick for long.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from bench.world import Counting, Place, SetClock, Turn, candidate, median, place, times, turn
from tenuto.model.change import Committed
from tenuto.model.snapshot import Leadership
from tenuto.proof.bench import Row
from tenuto.store import tables
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.store.rows import Cell

ONE_GOAL = 0.8
SIXTEEN_GOAL = 6.0
CALLERS = 16
TURNS = 400
LAPS = 5

Statement = tuple[str, list[Cell]]


def measure(where: Path, effort: float) -> Iterator[Row]:
    """Rows for one caller and for sixteen."""
    ids = Counting()
    places = [place(ids) for _ in range(times(effort, TURNS, 160))]
    turns = [turn(ids, here) for here in places]
    raws: list[float] = []
    ones: list[float] = []
    sixteens: list[float] = []
    for lap in range(LAPS):
        raws.append(asyncio.run(lapped(where / f"raw{lap}", places, turns, 0)))
        ones.append(asyncio.run(lapped(where / f"one{lap}", places, turns, 1)))
        sixteens.append(asyncio.run(lapped(where / f"sixteen{lap}", places, turns, CALLERS)))
    raw, one, sixteen = median(raws), median(ones), median(sixteens)
    yield Row(
        "durable transition, one caller",
        f"{one / raw:.2f} of raw sqlite3 ({one:.0f} of {raw:.0f} a second)",
        f">= {ONE_GOAL} of raw",
        one / raw >= ONE_GOAL,
        {"raw_per_second": raw, "ledger_one_per_second": one, "ledger_one_of_raw": one / raw},
    )
    yield Row(
        f"durable transition, {CALLERS} callers",
        f"{sixteen / raw:.1f} times raw sqlite3 ({sixteen:.0f} of {raw:.0f} a second)",
        f">= {SIXTEEN_GOAL:.0f} times raw",
        sixteen / raw >= SIXTEEN_GOAL,
        {"ledger_sixteen_per_second": sixteen, "ledger_sixteen_of_raw": sixteen / raw},
    )


async def lapped(path: Path, places: list[Place], turns: list[Turn], callers: int) -> float:
    """Transactions a second in a fresh registry: through the ledger, or by hand where there are no callers."""
    file = path.with_suffix(".sqlite3")
    ledger = await opened(file, places)
    try:
        return await through(ledger, turns, callers) if callers else raw_rate(file, turns)
    finally:
        await ledger.close()


def never(_holder: Leadership) -> bool:
    return False


async def opened(path: Path, places: list[Place]) -> TableLedger:
    """A registry that leads and has these places in it."""
    ledger = open_registry(path, SetClock(), minter=Counting(10**12))
    await ledger.lead(candidate(), never)
    await asyncio.gather(*(ledger.commit(here.commit()) for here in places))
    return ledger


async def through(ledger: TableLedger, turns: list[Turn], callers: int) -> float:
    """Transactions a second through the ledger."""
    left = iter([armed.commit() for armed in turns])

    async def caller() -> None:
        for commit in left:
            if not isinstance(await ledger.commit(commit), Committed):
                raise TypeError("a commit of the bench was refused")

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(turns) / (time.perf_counter() - began)


def raw_rate(path: Path, turns: list[Turn]) -> float:
    """Transactions a second by hand: one caller, who waits for each."""
    written = hand_written()
    first = events_so_far(path) + 1
    work = [list(by_hand(written, armed, first + 2 * i)) for i, armed in enumerate(turns)]
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    began = time.perf_counter()
    for statements in work:
        connection.execute("BEGIN IMMEDIATE")
        for sql, cells in statements:
            connection.execute(sql, cells)
        connection.execute("COMMIT")
    rate = len(work) / (time.perf_counter() - began)
    connection.close()
    return rate


def events_so_far(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT coalesce(max(n), 0) FROM event").fetchone()[0]
    connection.close()
    return int(found)


def by_hand(sql: dict[str, str], armed: Turn, n: int) -> Iterator[Statement]:
    """The statements of one armed turn: its task, attempt, command, two holds and two events."""
    cells = tables.TASK.dump(armed.task)
    yield sql["task"], [*cells[1:], cells[0], armed.task.revision - 1]
    yield sql["attempt"], tables.ATTEMPT.dump(armed.attempt)
    yield sql["command"], tables.COMMAND.dump(armed.command)
    for scope in armed.command.scopes:
        yield sql["hold"], [scope, armed.command.id]
    for i, fact in enumerate(armed.commit().facts):
        yield sql["event"], [1, n + i, 0, fact.kind.value, fact.run_id, fact.task_id, json.dumps(dict(fact.data))]


def hand_written() -> dict[str, str]:
    """The same statements as the ledger's, spelled out."""
    changed = ", ".join(f"{name} = ?" for name in tables.TASK.columns[1:])
    written = {
        "attempt": tables.ATTEMPT.columns,
        "command": tables.COMMAND.columns,
        "hold": ("scope", "command_id"),
        "event": tables.EVENT.columns,
    }
    return {
        "task": f"UPDATE task SET {changed} WHERE id = ? AND revision = ?",  # noqa: S608 - column names of ours
        **{name: inserted(name, columns) for name, columns in written.items()},
    }


def inserted(name: str, columns: tuple[str, ...]) -> str:
    places = ", ".join("?" for _ in columns)
    return f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - column names of ours
