"""Registries as earlier releases left them: for each schema two of them, as dumps for both databases.

`written` has a row in every table that a commit can write; `lived` was made by the desk and the cycle, with a task that
ended, one that waits for a person and one with a turn under way. The dumps for PostgreSQL are what `db move` brought
there. Once a schema is released its files never change; a new schema brings new ones (`freeze`).
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from tests.ledger.server import programs
from tests.ledger.test_tables import World
from tests.ledger.world import Counting, SetClock, candidate, never, written
from tests.support.world import OPERATOR, world

from tenuto.model.change import Commit, Key
from tenuto.store import tables
from tenuto.store.copying import copy
from tenuto.store.dialect import texts_of
from tenuto.store.opening import open_registry, server
from tenuto.store.sqlite import APPLICATION, Sqlite

KEPT = Path(__file__).parent / "kept"
WAYS = ("lived", "written")
#: Stands in a dump where the directory was in which it was made.
HERE = "/the-place-it-was-made"
#: What stands after the last statement of a dump.
AFTER = "\n--\n-- PostgreSQL database dump complete"


def kept(version: str, way: str, database: str) -> Path:
    """The file of one of them."""
    return KEPT / version / f"{way}.{database}.sql"


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


async def live(folder: Path) -> Path:
    """A registry in which tasks have been worked on, and the file it is in."""
    async with world(folder) as it:
        ended = await it.started(title="Ended", objective="Sweep the floor")
        it.executor.finish(status="working", summary="half of it")
        await it.settle(ended)
        it.executor.finish(status="complete", summary="swept", evidence="it is clean")
        await it.settle(ended)
        waiting = await it.started(title="Waiting", objective="Paint the door")
        it.executor.finish(status="blocked", needs="a person: which colour?")
        await it.settle(waiting)
        it.clock.move(timedelta(minutes=1))
        going_on = await it.started(title="Going on", objective="Mend the roof")
        await it.desk.say(OPERATOR, going_on, "Mind the gutter.", key="once")
        await it.desk.report(OPERATOR, going_on, (("step", "tiles"),))
        await it.ledger.resign(it.lease, it.clock.now())
    return folder / "state" / "registry.sqlite3"


def dumped(path: Path, here: Path | None = None) -> str:
    """A whole file as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        told = f"PRAGMA application_id = {APPLICATION};\n" + "\n".join(connection.iterdump()) + "\n"
    return told if here is None else told.replace(str(here), HERE)


def undumped(text: str, path: Path) -> None:
    """The file that a dump was made of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(text.replace(HERE, str(path.parent.parent)))


def moved(path: Path, url: str, here: Path | None = None) -> str:
    """What a file comes to in an empty database of PostgreSQL, as SQL."""
    open_registry(url, SetClock(), minter=Counting(10**7)).close_readers()
    there, here_ = server(url), Sqlite(path)
    with closing(here_.connect()) as source, closing(there.connect()) as target:
        there.begin(target)
        copy(source, texts_of(here_), target, texts_of(there), lambda _line: None)
        there.commit(target)
    where = programs()
    assert where is not None
    told = subprocess.run(
        [where / "pg_dump", "--column-inserts", "--no-owner", "--no-privileges", url],
        check=True, capture_output=True, text=True, timeout=120, env=dict(os.environ),
    ).stdout  # fmt: skip
    told = told[told.index("CREATE ") :].partition(AFTER)[0].rstrip() + "\n"
    return told if here is None else told.replace(str(here), HERE)


def undumped_there(text: str, url: str, folder: Path) -> None:
    """Put what a dump was made of into an empty database of PostgreSQL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.replace(HERE, str(folder)).encode())
