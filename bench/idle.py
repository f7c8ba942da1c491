"""What tasks cost that wait for nothing.

Two registries, one with a thousand idle tasks and one with a million, and in each one task that is due again and
again. A round is all that the wheel and the cycle do for it between two sleeps: ask what is due, take a snapshot,
decide, commit, ask what is due next. The rounds of the two take turns. Idle tasks come in by plain SQL, because that
is not what is measured; they are rows like any other, indexed like any other.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from bench.ledger import inserted, opened
from bench.world import NOW, Counting, median, place, times
from tenuto.core import decide, reconcile
from tenuto.model.change import Commit, Committed
from tenuto.model.ids import TaskId, spelled
from tenuto.model.lifecycle import TaskState
from tenuto.model.reconciliation import Reconciliation, Seen
from tenuto.model.work import Task
from tenuto.proof.bench import Row
from tenuto.store import tables
from tenuto.store.ledger import TableLedger

GOAL = 1.2
FEW = 1_000
MANY = 1_000_000
ROUNDS = 300


def measure(where: Path, effort: float) -> Iterator[Row]:
    """One row: a round among many idle tasks beside a round among few."""
    yield asyncio.run(compared(where, MANY if effort >= 0.5 else MANY // 10, times(effort, ROUNDS, 100)))


async def compared(where: Path, many: int, rounds: int) -> Row:
    """Rounds in two registries, one after the other in turns."""
    few, large = await filled(where / "few.sqlite3", FEW), await filled(where / "many.sqlite3", many)
    small: list[tuple[float, float]] = []
    big: list[tuple[float, float]] = []
    try:
        for n in range(rounds + 10):
            for world, spent in ((few, small), (large, big)):
                took = await world.round()
                if n >= 10:  # the first ones read pages and compile statements
                    spent.append(took)
    finally:
        await few.ledger.close()
        await large.ledger.close()
    whole = median([look + write for look, write in big]) / median([look + write for look, write in small])
    looks = median([look for look, _ in big]) / median([look for look, _ in small])
    look_ms = 1000 * median([look for look, _ in big])
    return Row(
        f"a round among {many:,} idle tasks",
        f"{whole:.2f} of one among {FEW:,}; without its commit {looks:.2f} ({look_ms:.2f} ms)",
        f"<= {GOAL} of one among {FEW:,}",
        max(whole, looks) <= GOAL,
        {
            "round_many_of_few": whole,
            "round_many_of_few_without_commit": looks,
            "round_many_ms": 1000 * median([look + write for look, write in big]),
            "round_few_ms": 1000 * median([look + write for look, write in small]),
            "idle_tasks_many": many,
        },
    )


@dataclass
class World:
    """A registry with one task that is due; a round serves it and makes it due again."""

    ledger: TableLedger
    due: TaskId

    async def round(self) -> tuple[float, float]:
        """Seconds of the looks and of the commit of one round."""
        began = time.perf_counter()
        (task_id,) = self.ledger.due(NOW, 64)
        snapshot = self.ledger.snapshot(task_id, 20)
        if snapshot is None:
            raise LookupError(task_id)
        members = reconcile.fence_members(snapshot, None)
        seen = Seen(snapshot, Reconciliation((), reconcile.digest_of(members), members), 1, True)
        decide.decide(seen, NOW)
        self.ledger.next_due()
        looked = time.perf_counter()
        task = snapshot.task
        again = replace(task, revision=task.revision + 1, last_served_at=NOW)
        if not isinstance(await self.ledger.commit(Commit(puts=(again,))), Committed):
            raise TypeError("a commit of the bench was refused")
        return looked - began, time.perf_counter() - looked


async def filled(path: Path, idle: int) -> World:
    """A registry with one task that is due and so many that are not for a day."""
    some = place(Counting())
    due = replace(some, task=replace(some.task, look_at=NOW))
    ledger = await opened(path, [due])
    await asyncio.to_thread(fill, path, replace(due.task, state=TaskState.PENDING, started_at=None), idle)
    return World(ledger, due.task.id)


def fill(path: Path, like: Task, idle: int) -> None:
    """Put the idle tasks in: rows first, then the indexes as they were."""
    cells = tables.TASK.dump(replace(like, look_at=NOW + timedelta(days=1)))[1:]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    indexes = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'task' AND sql IS NOT NULL"
    ).fetchall()
    connection.execute("BEGIN IMMEDIATE")
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    sql, first = inserted("task", tables.TASK.columns), spelled("task", 1 << 120)[:-9]  # in order, as real ones are
    connection.executemany(sql, ([f"{first}{n:09}", *cells] for n in range(idle)))
    for _, made in indexes:
        connection.execute(made)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
