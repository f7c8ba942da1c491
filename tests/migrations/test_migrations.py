"""A fresh registry is what the migrations make, and the migrations make what the tables say."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.ledger.server import Server
from tests.ledger.world import NOW, Counting, SetClock
from tests.migrations.freeze import DIALECTS, RELEASED, digest, files
from tests.migrations.keeping import KEPT, WAYS, kept, undumped

from tenuto.model.snapshot import Registry
from tenuto.store import opening
from tenuto.store.ddl import schema
from tenuto.store.migrating import carry_forward, script
from tenuto.store.sqlite import APPLICATION

IDENTITY = Registry("g-1", 1, NOW)


def shape(connection: sqlite3.Connection) -> dict[str, str]:
    """Every table, index and trigger with the words that made it, spaces apart."""
    found = connection.execute("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {
        name: " ".join(sql.replace("\n", " ").replace("(", " ( ").split()) for name, sql in found if "alem" not in name
    }


#: What a database of PostgreSQL is made of, as it tells it.
SHAPE = (
    """SELECT table_name || '.' || column_name, data_type, is_nullable, column_default FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name <> 'alembic_version'""",
    """SELECT conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND conrelid IS DISTINCT FROM to_regclass('alembic_version')""",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'",
    "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
)


def shape_there(url: str) -> list[list[tuple[object, ...]]]:
    import psycopg

    with psycopg.connect(url) as connection:
        return [sorted(connection.execute(one.encode()).fetchall(), key=str) for one in SHAPE]


def fresh() -> dict[str, str]:
    connection = sqlite3.connect(":memory:")
    for statement in schema(DIALECTS["sqlite"]):
        connection.execute(statement)
    told = shape(connection)
    connection.close()
    return told


def test_a_migrated_registry_is_a_fresh_one(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    path.touch()
    carry_forward(path, IDENTITY)
    migrated = sqlite3.connect(path)
    assert shape(migrated) == fresh()
    assert migrated.execute("SELECT id FROM registry").fetchall() == [("g-1",)]
    migrated.close()


@pytest.mark.parametrize("version", opening.KNOWN)
@pytest.mark.parametrize("way", WAYS)
def test_one_that_a_release_has_left_becomes_a_fresh_one(tmp_path: Path, version: str, way: str) -> None:
    path = tmp_path / "registry.sqlite3"
    undumped(kept(version, way, "sqlite").read_text("utf-8"), path)
    carry_forward(path, IDENTITY)
    with sqlite3.connect(path) as migrated:
        assert shape(migrated) == fresh()
        assert migrated.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        assert migrated.execute("SELECT id FROM registry").fetchone() != ("g-1",), "it keeps its own name"
    migrated.close()


def test_a_migrated_database_of_postgresql_is_a_fresh_one(postgresql: Server) -> None:
    import psycopg

    url, made = postgresql.database(), postgresql.database()
    opening.open_registry(url, SetClock(), minter=Counting()).close_readers()
    with psycopg.connect(made, autocommit=True) as connection:
        for statement in schema(DIALECTS["postgresql"]):
            connection.execute(statement.encode())
    assert shape_there(url) == shape_there(made)
    assert all(shape_there(url))


def test_what_a_release_has_gone_out_with_is_as_it_was() -> None:
    """A change of the schema is a new step, never a change of one that somebody's registry was made by."""
    assert {version: digest(version) for version in RELEASED} == RELEASED
    assert set(RELEASED) <= set(opening.KNOWN)
    assert len(opening.KNOWN) - len(RELEASED) <= 1, "only the newest may still change"


def test_two_registries_are_kept_of_every_schema() -> None:
    """`python -m tests.migrations.freeze` writes those of the newest, until it is released."""
    expected = {(version, way, name) for version in opening.KNOWN for way in WAYS for name in DIALECTS}
    found = {(path.parent.name, *path.name.split(".")[:2]) for path in KEPT.rglob("*.sql")}
    assert found == expected
    for version in opening.KNOWN:
        assert {path.name for path in files(version)} >= {"sqlite.sql", "postgresql.sql"}


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
