"""Every registry that a release has left opens, goes forward, and is worked in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ledger.world import Counting, SetClock, candidate, written
from tests.migrations.keeping import KEPT, dumped, make, undumped

from tenuto.model.change import Commit
from tenuto.store import opening, tables

pytestmark = pytest.mark.anyio
#: What no commit of a task puts there: alembic's own table.
BESIDE = {"alembic_version"}


def test_there_is_one_for_every_schema() -> None:
    assert {path.stem for path in KEPT.glob("*.sql")} == set(opening.KNOWN)


@pytest.mark.parametrize("version", opening.KNOWN)
async def test_it_opens_goes_forward_and_is_worked_in(tmp_path: Path, version: str) -> None:
    path = tmp_path / "registry.sqlite3"
    undumped((KEPT / f"{version}.sql").read_text("utf-8"), path)
    assert opening.version_of(path) == version
    before = counted(path)
    assert {name for name, count in before.items() if not count} <= {"sample", "sighting", "report"}
    ledger = opening.open_registry(path, SetClock(), minter=Counting(10**9))
    assert opening.version_of(path) == opening.PRESENT
    after = counted(path)
    assert {name: after.get(name) for name in before} == before, "nothing is lost on the way"
    assert ledger.check() == ()
    assert everything_reads(path)
    mine = await ledger.lead(candidate("after"), lambda _holder: True)
    assert mine is not None
    assert mine.epoch == 2
    (task,) = [task for task in ledger.tasks(10) if ledger.snapshot(task.id, 9).live is not None]  # type: ignore[union-attr]
    changed = replace(task, revision=task.revision + 1, title="worked in")
    await written(ledger, Commit(puts=(changed,)))
    assert ledger.task(task.id) == changed
    assert ledger.replayed("operator", "once") == ("d" * 64, {"task": task.id})
    await ledger.close()


async def test_the_present_one_is_what_is_made_now(tmp_path: Path) -> None:
    """Until a release has frozen it: `python -m tests.migrations.freeze` writes it anew."""
    path = tmp_path / "registry.sqlite3"
    await make(path)
    assert (KEPT / f"{opening.PRESENT}.sql").read_text("utf-8") == dumped(path)


def counted(path: Path) -> dict[str, int]:
    """How many rows each table has."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in names
            if name not in BESIDE
        }


def everything_reads(path: Path) -> bool:
    """Whether every row is one the program knows the shape of."""
    with closing(sqlite3.connect(path)) as connection:
        for shape in (*tables.ORDER, tables.EVENT, tables.LEADERSHIP):
            for cells in connection.execute(f"SELECT {', '.join(shape.columns)} FROM {shape.name}"):
                shape.load(cells)
    return True
