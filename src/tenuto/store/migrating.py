"""Carries a registry to the present schema, in one transaction: all steps that are missing, or none.

Two programs that start at once are no trouble: the second waits for the write lock and finds nothing left to do. A file
that is carried forward is copied first, so that the program that made it can still be gone back to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, event, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tenuto.model.snapshot import Registry
from tenuto.store import tables
from tenuto.store.dialect import Dialect
from tenuto.store.sqlite import APPLICATION, Sqlite, open_file


def script() -> ScriptDirectory:
    """The steps that come with the program."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def kept_before(path: Path, version: str) -> Path:
    """Where the copy lies that was made before the file at `path` was carried forward from `version`."""
    return path.with_name(f"{path.stem}-schema-{version}{path.suffix}")


def _copied(path: Path, version: str) -> None:
    """Copy the file as it is now; a copy of an earlier try, after which it may have been worked in, goes."""
    copy = kept_before(path, version)
    copy.unlink(missing_ok=True)
    Sqlite(path).backup(copy)


def carry_forward(path: Path, identity: Registry, *, keep: bool = True) -> None:
    """Bring the file at `path` to the present schema; a registry that is new gets `identity`.

    One of an older schema is copied beside itself first, unless `keep` is False. Raises StorageFull where there is no
    room for that, with nothing changed.
    """
    engine = create_engine("sqlite://", creator=lambda: open_file(path, "rw"), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            before = MigrationContext.configure(connection).get_current_revision()
            if keep and before is not None and before != script().get_current_head():
                _copied(path, before)
            upgrade(connection)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
            _identify(connection, identity)
    except DBAPIError as error:
        raise Sqlite(path).translated(error.orig if isinstance(error.orig, Exception) else error) from error
    finally:
        engine.dispose()


def carry_server_forward(dialect: Dialect, url: str, identity: Registry) -> None:
    """Bring a PostgreSQL database to the present schema; whoever comes second waits, and finds it done."""
    import psycopg

    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({APPLICATION})")
            upgrade(connection)
            _identify(connection, identity)
    except DBAPIError as error:
        raise dialect.translated(error.orig if isinstance(error.orig, Exception) else error) from error
    finally:
        engine.dispose()


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run the steps that are missing on an open transaction."""
    steps = script()

    def missing(revision: Any, _context: Any) -> Any:
        return steps._upgrade_revs(to, revision)

    with EnvironmentContext(Config(), steps, fn=missing, destination_rev=to) as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        environment.run_migrations()


def _identify(connection: Connection, identity: Registry) -> None:
    if connection.execute(select(tables.registry.c.id)).first() is None:
        connection.execute(
            insert(tables.registry).values(
                dict(zip(tables.REGISTRY.columns, tables.REGISTRY.dump(identity), strict=True))
            )
        )
