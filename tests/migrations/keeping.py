"""Registries as earlier releases left them: a dump for each schema, with a row in every table that can be written.

Until the first release `python -m tests.migrations.freeze` writes the only one anew; from then on a file here never
changes, and a new schema brings a new file.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.ledger.test_tables import World
from tests.ledger.world import Counting, SetClock, candidate, never, written

from tenuto.model.change import Commit, Key
from tenuto.store import tables
from tenuto.store.opening import open_registry
from tenuto.store.sqlite import APPLICATION

KEPT = Path(__file__).parent / "kept"


def rows(world: World) -> tuple[object, ...]:
    """Every row the world holds by name, and those of its second task."""
    classes = tuple(shape.cls for shape in tables.ORDER)
    named = [row for row in vars(world).values() if isinstance(row, classes)]
    return (*named, *world.beside.rows)


async def make(path: Path) -> None:
    """A registry that has been led, with a turn under way in it."""
    world = World(Counting())
    ledger = open_registry(path, SetClock(), minter=Counting(10**6))
    assert await ledger.lead(candidate("me"), never) is not None
    armed = world.turn.commit()
    key = Key("operator", "once", "d" * 64, {"task": world.task.id})
    await written(ledger, Commit(puts=rows(world), holds=armed.holds, facts=armed.facts, key=key))  # type: ignore[arg-type]
    await ledger.close()


def dumped(path: Path) -> str:
    """The whole file as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        return f"PRAGMA application_id = {APPLICATION};\n" + "\n".join(connection.iterdump()) + "\n"


def undumped(text: str, path: Path) -> None:
    """The file that a dump was made of."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(text)
