# ruff: noqa: INP001, S608, T201 - a program of its own that prints; its SQL is made of column names alone
"""What the ledger costs beside the database it stands on.

"Raw" is the same rows written by the same statements, by hand, on a sqlite3 connection with the same settings: what
nobody can beat. The ledger is asked by one caller, who waits for each commit, and by sixteen at once. Ratios are what
counts; the rates belong to the machine.

    python bench/ledger.py
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.ledger.world import NOW, Counting, Place, SetClock, Turn, candidate, never, place, turn

from tenuto.model.change import Commit, Committed
from tenuto.model.lifecycle import TaskState
from tenuto.store import tables
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.store.rows import Cell

CALLERS = 16
TURNS = 400
SNAPSHOTS = 300

Statement = tuple[str, list[Cell]]


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
    return {
        "task": f"UPDATE task SET {changed} WHERE id = ? AND revision = ?",
        **{name: inserted(name, columns) for name, columns in INSERTED.items()},
    }


def inserted(name: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)})"


INSERTED = {
    "attempt": tables.ATTEMPT.columns,
    "command": tables.COMMAND.columns,
    "hold": ("scope", "command_id"),
    "event": tables.EVENT.columns,
}


def raw(path: Path, turns: list[Turn]) -> float:
    """Transactions a second, by hand."""
    written = hand_written()
    work = [list(by_hand(written, armed, 1 + 2 * i)) for i, armed in enumerate(turns)]
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


async def opened(path: Path, places: list[Place]) -> TableLedger:
    """A registry that leads and has these places in it."""
    ledger = open_registry(path, SetClock(), minter=Counting(10**12))
    await ledger.lead(candidate("bench"), never)
    await asyncio.gather(*(ledger.commit(Commit(puts=here.rows)) for here in places))
    return ledger


async def through(ledger: TableLedger, turns: list[Turn], callers: int) -> float:
    """Transactions a second through the ledger."""
    left = iter([armed.commit() for armed in turns])

    async def caller() -> None:
        for commit in left:
            assert isinstance(await ledger.commit(commit), Committed)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(turns) / (time.perf_counter() - began)


def looks(ledger: TableLedger, places: list[Place]) -> float:
    """Milliseconds of one snapshot."""
    some = places[:SNAPSHOTS]
    ledger.snapshot(some[0].task.id, 20)
    began = time.perf_counter()
    for here in some:
        ledger.snapshot(here.task.id, 20)
    return 1000 * (time.perf_counter() - began) / len(some)


async def measured(directory: Path) -> dict[str, float]:
    ids = Counting()
    places = [place(ids) for _ in range(TURNS)]
    turns = [turn(ids, here) for here in places]
    rates: dict[str, list[float]] = {"raw": [], "one": [], "sixteen": []}
    look = 0.0
    for lap in range(3):
        for name, callers in (("one", 1), ("sixteen", CALLERS)):
            ledger = await opened(directory / f"{name}{lap}.sqlite3", places)
            rates[name].append(await through(ledger, turns, callers))
            look = looks(ledger, places)
            await ledger.close()
        ledger = await opened(directory / f"raw{lap}.sqlite3", places)
        await ledger.close()
        rates["raw"].append(raw(directory / f"raw{lap}.sqlite3", turns))
    middle = {name: sorted(found)[1] for name, found in rates.items()}
    return {
        "raw_per_second": middle["raw"],
        "ledger_one_per_second": middle["one"],
        "ledger_sixteen_per_second": middle["sixteen"],
        "one_of_raw": middle["one"] / middle["raw"],
        "sixteen_of_raw": middle["sixteen"] / middle["raw"],
        "snapshot_ms": look,
    }


def idle_cost(directory: Path, idle: int) -> float:
    """Milliseconds of one round (due, next_due, under_way, one snapshot) beside `idle` tasks that wait for nothing."""
    ids = Counting()
    some = place(ids, look_at=NOW)

    async def filled() -> TableLedger:
        return await opened(directory / f"idle{idle}.sqlite3", [some])

    ledger = asyncio.run(filled())
    base = replace(some.task, state=TaskState.PENDING, started_at=None, look_at=NOW + timedelta(days=1))
    sql = inserted("task", tables.TASK.columns)
    cells = tables.TASK.dump(base)[1:]
    connection = sqlite3.connect(directory / f"idle{idle}.sqlite3")
    connection.execute("PRAGMA synchronous = OFF")
    connection.executemany(sql, ([ids.new("task"), *cells] for _ in range(idle)))
    connection.commit()
    connection.close()
    spent = []
    for _ in range(300):
        began = time.perf_counter()
        for task_id in ledger.due(NOW, 64):
            ledger.snapshot(task_id, 20)
        ledger.next_due()
        ledger.under_way()
        spent.append(time.perf_counter() - began)
    asyncio.run(ledger.close())
    return 1000 * sorted(spent)[len(spent) // 2]


def ledger(idle: int = 1_000_000) -> dict[str, float]:
    """Every figure; `idle` is how many sleeping tasks the large registry has."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        found = asyncio.run(measured(directory))
        small, large = idle_cost(directory, 1000), idle_cost(directory, idle)
    return {**found, "round_small_ms": small, "round_large_ms": large, "round_large_of_small": large / small}


if __name__ == "__main__":
    print(json.dumps({name: round(value, 3) for name, value in ledger().items()}, indent=2))
