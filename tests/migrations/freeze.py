"""Writes the present tables into the files of the first migration, and the registry that is kept of it, anew.

Of use only until the first release.

python -m tests.migrations.freeze
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import Dialect

import tenuto.store.migrations
from tenuto.store.ddl import schema
from tenuto.store.opening import PRESENT

FIRST = Path(tenuto.store.migrations.__file__).parent / "versions" / "0001_first"
DIALECTS: dict[str, Dialect] = {"sqlite": SQLiteDialect_pysqlite(), "postgresql": PGDialect_psycopg()}  # type: ignore[no-untyped-call]


def frozen(dialect: Dialect) -> str:
    """The whole schema as the file says it."""
    tidy = ("\n".join(line.rstrip() for line in statement.splitlines()) for statement in schema(dialect))
    return "\n;;\n".join(tidy) + "\n"


if __name__ == "__main__":
    for name, dialect in DIALECTS.items():
        (FIRST / f"{name}.sql").write_text(frozen(dialect), encoding="utf-8")
    from tests.migrations.keeping import KEPT, dumped, make  # what it makes has the tables just written

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "registry.sqlite3"
        asyncio.run(make(made))
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{PRESENT}.sql").write_text(dumped(made), encoding="utf-8")
