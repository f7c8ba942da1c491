"""Carries a registry to the present schema, in one transaction: all steps that are missing, or none.

Two programs that start at once are no trouble: the second waits for the write lock and finds nothing left to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
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


def carry_forward(path: Path, identity: Registry) -> None:
    """Bring the file at `path` to the present schema; a registry that is new gets `identity`."""
    engine = create_engine("sqlite://", creator=lambda: open_file(path, "rw"), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
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
