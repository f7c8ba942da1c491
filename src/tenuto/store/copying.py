"""Copies a whole registry from one database into another, and proves that all of it arrived.

Every table is written in one transaction of the target. Each is counted and digested on both sides, whatever order a
database gives its rows in; where count or digest differ, nothing was copied. What is copied keeps its identity and
its epochs, so hosts and journals go on as if nothing had happened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnClause, Table, bindparam, delete, func, insert, literal_column, select

from tenuto.model.faults import Conflict, Corrupt
from tenuto.store import tables
from tenuto.store.dialect import Connection, Texts
from tenuto.store.rows import document

#: How many rows are held at once.
BATCH = 500
_ZERO: ColumnClause[int] = literal_column("0")


@dataclass(frozen=True)
class Measure:
    """How many rows a table has, and the digest of all of them together."""

    rows: int
    digest: str


def ordered() -> tuple[Table, ...]:
    """Every table, parents before their children."""
    return tuple(tables.METADATA.sorted_tables)


def measured(cells: Iterable[tuple[Any, ...]]) -> Measure:
    """Count and digest rows in any order: the sum of each row's sha256."""
    count = total = 0
    for row in cells:
        count += 1
        total = (total + int.from_bytes(hashlib.sha256(document(list(row)).encode()).digest())) % (1 << 256)
    return Measure(count, f"{total:064x}")


def copy(
    source: Connection, source_texts: Texts, target: Connection, target_texts: Texts, say: Callable[[str], None]
) -> dict[str, Measure]:
    """Copy everything, on open transactions of both; what was copied, by table. Conflict where the target holds work.

    Raises Corrupt when what arrived is not what was sent; whoever calls then undoes the target's transaction.
    """
    _must_be_empty(target, target_texts)
    told: dict[str, Measure] = {}
    for table in ordered():
        names = tuple(column.name for column in table.columns)
        add = target_texts.of(insert(table), names).sql
        for row in _rows(source, source_texts, table):
            target.execute(add, row)
        sent, arrived = (
            measured(_rows(connection, texts, table))
            for connection, texts in ((source, source_texts), (target, target_texts))
        )
        if sent != arrived:
            raise Corrupt(f"table {table.name}: {sent.rows} rows were sent and {arrived.rows} arrived, or not the same")
        told[table.name] = arrived
        if arrived.rows:
            say(f"{table.name}: {arrived.rows} rows")
    return told


def _must_be_empty(target: Connection, texts: Texts) -> None:
    for table in ordered():
        if table.name == tables.registry.name:
            target.execute(texts.of(delete(table)).sql, ())
            continue
        found = target.execute(texts.of(select(func.count()).select_from(table)).sql, ()).fetchone()
        if found[0]:
            raise Conflict(f"the target has a registry with {found[0]} rows in {table.name}; name an empty database")


def _rows(connection: Connection, texts: Texts, table: Table) -> Iterator[tuple[Any, ...]]:
    """All rows, in the order of their keys, a batch at a time."""
    keys = list(table.primary_key.columns) or list(table.columns)
    if len(keys) != 1:
        yield from (
            tuple(row) for row in connection.execute(texts.of(select(table).order_by(*keys)).sql, ()).fetchall()
        )
        return
    (key,) = keys
    place = list(table.columns).index(key)
    first = select(table).order_by(key).limit(bindparam("most")).offset(_ZERO)
    more = first.where(key > bindparam("after"))
    sentence = texts.of(first)
    found = connection.execute(sentence.sql, sentence.cells({"most": BATCH})).fetchall()
    while found:
        yield from (tuple(row) for row in found)
        sentence = texts.of(more)
        after = {"most": BATCH, "after": found[-1][place]}
        found = connection.execute(sentence.sql, sentence.cells(after)).fetchall()
