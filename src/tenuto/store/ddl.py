"""The whole schema as statements: what a fresh registry is made of.

A released schema is a file of such statements beside its migration and never changes again; a test compares the
present tables with what the migrations make.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from tenuto.store.tables import METADATA
from tenuto.store.triggers import triggers


def schema(dialect: Dialect) -> Iterator[str]:
    """CREATE statements for every table, index and trigger, parents first."""
    for table in METADATA.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect)).strip()
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            if dialect.name == "postgresql":
                index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
            yield str(CreateIndex(index).compile(dialect=dialect)).strip()
    yield from triggers(dialect)
