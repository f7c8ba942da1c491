"""Carries a registry to the present schema, in one transaction: all steps that are missing, or none.

Two programs that start at once are no trouble: the second waits for the write lock and finds nothing left to do. A file
that is carried forward is copied first, so that the program that made it can still be gone back to.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, event, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tenuto.model.faults import Refused
from tenuto.model.snapshot import Leadership, Registry
from tenuto.store import leader, tables
from tenuto.store.dialect import Dialect
from tenuto.store.sqlite import APPLICATION, Sqlite, open_file

Gone = Callable[[Leadership], bool]


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
    Sqlite(path).backup(kept_before(path, version), over=True)


def _unled(connection: Connection, gone: Gone, now: datetime) -> None:
    """Raises Refused while a supervisor leads that is not proven gone: it knows nothing of the schema to come."""
    cells = connection.execute(leader.READ.with_for_update()).first()
    holder = None if cells is None else tables.LEADERSHIP.load(tuple(cells))
    if holder is None or holder.released_at is not None or holder.expires_at <= now or gone(holder):
        return
    raise Refused(
        f"a supervisor of an older version uses this registry: pid {holder.pid} on {holder.host}; it was left as it is."
        " Stop that one, or run: tenuto restart",
        see="tenuto stop",
    )


def carry_forward(path: Path, identity: Registry, *, keep: bool = True, gone: Gone | None = None) -> None:
    """Bring the file at `path` to the present schema; a registry that is new gets `identity`, which is made now.

    One of an older schema is copied beside itself first, unless `keep` is False. Raises StorageFull where there is no
    room for that, and Refused while one leads whom `gone` does not say to be gone, with nothing changed; without `gone`
    nobody can: it is a copy.
    """
    engine = create_engine("sqlite://", creator=lambda: open_file(path, "rw"), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            before = MigrationContext.configure(connection).get_current_revision()
            if before is not None and before != script().get_current_head():
                if gone is not None:
                    _unled(connection, gone, identity.created_at)
                if keep:
                    _copied(path, before)
            upgrade(connection)
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
            _identify(connection, identity)
    except DBAPIError as error:
        raise Sqlite(path).translated(error.orig if isinstance(error.orig, Exception) else error) from error
    finally:
        engine.dispose()


def carry_server_forward(
    dialect: Dialect, url: str, identity: Registry, *, gone: Gone | None = None, shared: bool = False
) -> None:
    """Bring a PostgreSQL database to the present schema; whoever comes second waits, and finds it done.

    Raises Refused like `carry_forward`; with `shared`, by the database's clock.
    """
    import psycopg

    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({APPLICATION})")
            before = MigrationContext.configure(connection).get_current_revision()
            if gone is not None and before is not None and before != script().get_current_head():
                now = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one() if shared else None
                _unled(connection, gone, now or identity.created_at)
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
