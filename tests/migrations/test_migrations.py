"""A fresh registry is what the migrations make, and the migrations make what the tables say."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.ledger.world import NOW
from tests.migrations.freeze import DIALECTS, FIRST, frozen

from tenuto.model.snapshot import Registry
from tenuto.store import opening
from tenuto.store.ddl import schema
from tenuto.store.migrating import carry_forward, script

IDENTITY = Registry("g-1", 1, NOW)


def shape(connection: sqlite3.Connection) -> dict[str, str]:
    """Every table, index and trigger with the words that made it, spaces apart."""
    found = connection.execute("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {name: " ".join(sql.split()) for name, sql in found if "alembic" not in name}


def test_a_migrated_registry_is_a_fresh_one(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    path.touch()
    carry_forward(path, IDENTITY)
    migrated = sqlite3.connect(path)
    fresh = sqlite3.connect(":memory:")
    for statement in schema(DIALECTS["sqlite"]):
        fresh.execute(statement)
    assert shape(migrated) == shape(fresh)
    assert migrated.execute("SELECT id FROM registry").fetchall() == [("g-1",)]
    migrated.close()
    fresh.close()


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_the_first_schema_is_the_present_one(name: str) -> None:
    """Until a release has frozen it: `python -m tests.migrations.freeze` writes it anew."""
    assert (FIRST / f"{name}.sql").read_text(encoding="utf-8") == frozen(DIALECTS[name])


def test_the_versions_that_are_known_are_those_that_come_with_the_program() -> None:
    revisions = [revision.revision for revision in script().walk_revisions()]
    assert tuple(reversed(revisions)) == opening.KNOWN
    assert script().get_current_head() == opening.PRESENT


def test_carrying_forward_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    path.touch()
    carry_forward(path, IDENTITY)
    before = path.read_bytes()
    carry_forward(path, Registry("g-2", 1, NOW))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT id FROM registry").fetchall() == [("g-1",)]
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] > 40
    connection.close()
    assert len(path.read_bytes()) == len(before)


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "registry.sqlite3"
    path.touch()

    def broken(*_arguments: object) -> None:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("tenuto.store.migrating._identify", broken)
    with pytest.raises(RuntimeError):
        carry_forward(path, IDENTITY)
    assert opening.version_of(path) is None
    monkeypatch.undo()
    carry_forward(path, IDENTITY)
    assert opening.version_of(path) == opening.PRESENT
