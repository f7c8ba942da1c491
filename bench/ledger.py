"""What the ledger costs beside the database it stands on.

"Raw" is the same transition written by hand on a sqlite3 connection: the same rows, in a registry of the same schema
with its indexes, checks and triggers, each changed by the statement that says no more than what changes, on WAL with
`synchronous=FULL` and foreign keys, one BEGIN IMMEDIATE and COMMIT for each. Its statements and their parameters are
made before the clock runs, and it asks nothing: neither who leads nor what number the last event has. The ledger is
asked by one caller, who waits for each commit, and by sixteen at once; beside those stands the raw caller who writes
sixteen transitions in one transaction, which is what sharing syncs can bring at most on this disk. Each of the four
has its registry and they take turns, a few dozen transitions at a time, because the disk of a shared machine is never
equally quick for long; the ratios are medians of the laps' ratios.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
#: Transitions in one lap of each: six full groups.
TURNS = 6 * CALLERS
LAPS = 24

#: What arming a turn changes in its task's row.
CHANGED = ("revision", "attempts", "last_served_at")

Statement = tuple[str, list[Cell]]


@dataclass
class Lane:
    """One registry and the way it is written: by hand or through the ledger, so many callers or transitions at once."""

    ledger: TableLedger
    hand: sqlite3.Connection | None
    callers: int
    rates: list[float] = field(default_factory=list)

    async def lap(self, places: list[Place], turns: list[Turn]) -> None:
        """Transitions a second for these turns; the tasks they belong to are made before the clock runs."""
        for here in places:
            await self.ledger.commit(here.commit())
        if self.hand is None:
            self.rates.append(await through(self.ledger, turns, self.callers))
        else:
            self.rates.append(by_hand_rate(self.hand, self.ledger.last_event(), turns, self.callers))


def measure(where: Path, effort: float) -> Iterator[Row]:
    """Rows for one caller and for sixteen."""
    raws, grouped, ones, sixteens = asyncio.run(laps(where, times(effort, LAPS, 8)))
    raw, one, sixteen = median(raws), ratio(ones, raws), ratio(sixteens, raws)
    most, part = ratio(grouped, raws), ratio(sixteens, grouped)
    yield Row(
        "durable transition, one caller",
        f"{one:.2f} of raw sqlite3 ({median(ones):.0f} of {raw:.0f} a second)",
        f">= {ONE_GOAL} of raw",
        one >= ONE_GOAL,
        {"raw_per_second": raw, "ledger_one_per_second": median(ones), "ledger_one_of_raw": one},
    )
    yield Row(
        f"durable transition, {CALLERS} callers",
        f"{sixteen:.1f} times raw ({median(sixteens):.0f} of {raw:.0f} a second), {part:.2f} of the most that this disk"
        f" gives (by hand, sharing syncs: {most:.1f})",
        f">= {SIXTEEN_GOAL:.0f} times raw",
        sixteen >= SIXTEEN_GOAL,
        {
            "ledger_sixteen_per_second": median(sixteens),
            "ledger_sixteen_of_raw": sixteen,
            "raw_sixteen_in_one_of_raw": most,
            "ledger_sixteen_of_raw_sixteen_in_one": part,
        },
    )


def ratio(these: list[float], those: list[float]) -> float:
    """The median of the laps' ratios."""
    return median([this / that for this, that in zip(these, those, strict=True)])


async def laps(where: Path, count: int) -> list[list[float]]:
    """Transitions a second of each lap: by hand, by hand in groups, one caller of the ledger, sixteen."""
    files = [where / f"{name}.sqlite3" for name in ("raw", "grouped", "one", "sixteen")]
    ledgers = [await opened(file) for file in files]
    hands = [by_hand_connection(file) for file in files[:2]]
    lanes = [
        Lane(ledger, hand, callers)
        for ledger, hand, callers in zip(ledgers, [*hands, None, None], (1, CALLERS, 1, CALLERS), strict=True)
    ]
    ids = Counting()
    for lap in range(count):
        places = [place(ids) for _ in range(TURNS)]
        turns = [turn(ids, here) for here in places]
        for number in range(len(lanes)):
            await lanes[(number + lap) % len(lanes)].lap(places, turns)
    for hand in hands:
        hand.close()
    for ledger in ledgers:
        await ledger.close()
    return [lane.rates for lane in lanes]


def never(_holder: Leadership) -> bool:
    return False


async def lapped(path: Path, places: list[Place], turns: list[Turn], callers: int) -> float:
    """Transitions a second in a registry of its own: through the ledger, or by hand where there are no callers."""
    file = path.with_suffix(".sqlite3")
    ledger = await opened(file)
    hand = None if callers else by_hand_connection(file)
    try:
        lane = Lane(ledger, hand, callers or 1)
        await lane.lap(places, turns)
        return lane.rates[0]
    finally:
        if hand is not None:
            hand.close()
        await ledger.close()


async def warmed(path: Path, count: int, callers: int) -> float:
    """Transitions a second through the ledger in a registry of its own, after as many that are not counted."""
    ids, which = Counting(), await opened(path.with_suffix(".sqlite3"))
    lane = Lane(which, None, callers)
    try:
        for _ in range(2):
            places = [place(ids) for _ in range(count)]
            await lane.lap(places, [turn(ids, here) for here in places])
        return lane.rates[-1]
    finally:
        await which.close()


async def opened(path: Path, places: Sequence[Place] = ()) -> TableLedger:
    """A registry that leads and has these places in it."""
    ledger = open_registry(path, SetClock(), minter=Counting(10**12))
    await ledger.lead(candidate(), never)
    await asyncio.gather(*(ledger.commit(here.commit()) for here in places))
    return ledger


async def through(ledger: TableLedger, turns: list[Turn], callers: int) -> float:
    """Transitions a second through the ledger."""
    left = iter([armed.commit() for armed in turns])

    async def caller() -> None:
        for commit in left:
            if not isinstance(await ledger.commit(commit), Committed):
                raise TypeError("a commit of the bench was refused")

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(turns) / (time.perf_counter() - began)


def by_hand_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def by_hand_rate(connection: sqlite3.Connection, last: int, turns: list[Turn], together: int) -> float:
    """Transitions a second by hand: one caller, who writes so many in one transaction and waits for it."""
    written = hand_written()
    work = [list(by_hand(written, armed, last + 1 + 2 * i)) for i, armed in enumerate(turns)]
    began = time.perf_counter()
    for group in range(0, len(work), together):
        connection.execute("BEGIN IMMEDIATE")
        for statements in work[group : group + together]:
            for sql, cells in statements:
                connection.execute(sql, cells)
        connection.execute("COMMIT")
    return len(work) / (time.perf_counter() - began)


def by_hand(sql: dict[str, str], armed: Turn, n: int) -> Iterator[Statement]:
    """The statements of one armed turn: its task, attempt, command, two holds and two events."""
    cells = dict(zip(tables.TASK.columns, tables.TASK.dump(armed.task), strict=True))
    yield sql["task"], [*(cells[name] for name in CHANGED), armed.task.id, armed.task.revision - 1]
    yield sql["attempt"], tables.ATTEMPT.dump(armed.attempt)
    yield sql["command"], tables.COMMAND.dump(armed.command)
    for scope in armed.command.scopes:
        yield sql["hold"], [scope, armed.command.id]
    for i, fact in enumerate(armed.commit().facts):
        yield sql["event"], [1, n + i, 0, fact.kind.value, fact.run_id, fact.task_id, json.dumps(dict(fact.data))]


def hand_written() -> dict[str, str]:
    """The statements, spelled out."""
    changed = ", ".join(f"{name} = ?" for name in CHANGED)
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
