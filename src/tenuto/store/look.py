"""One consistent look: statements run on one open read transaction, and rows that are kept as they were loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy.sql.base import Executable

from tenuto.store.dialect import Connection, Cursor, Texts
from tenuto.store.rows import Cell, Shape

R = TypeVar("R")
#: Rows that are looked at all the time and seldom change, and how many of each kind are kept as they were loaded.
OFTEN = ("registry", "run", "task", "conversation", "attempt", "command", "wait", "wake", "sample", "sighting")
KEPT = 256
Kept = dict[str, dict[tuple[Any, ...], Any]]


class Look:
    """Statements run on one open read transaction."""

    def __init__(self, connection: Connection, texts: Texts, kept: Kept) -> None:
        self.connection = connection
        self._sql = texts
        self._kept = kept

    def cells(self, statement: Executable, **cells: Cell) -> list[Any]:
        return self._run(statement, cells).fetchall()

    def one(self, shape: Shape[R], statement: Executable, **cells: Cell) -> R | None:
        found = self._run(statement, cells).fetchone()
        return None if found is None else self._loaded(shape, found)

    def all(self, shape: Shape[R], statement: Executable, **cells: Cell) -> tuple[R, ...]:
        return tuple([self._loaded(shape, found) for found in self._run(statement, cells).fetchall()])

    def _loaded(self, shape: Shape[R], cells: tuple[Any, ...]) -> R:
        """The row of these cells: the same value as the last time, where it is of a kind that is looked at often.

        Rows are values and nobody changes them, so one may be given out many times.
        """
        kept = self._kept.get(shape.name)
        if kept is None:
            return shape.load(cells)
        row: R | None = kept.get(cells)
        if row is None:
            if len(kept) >= KEPT:
                kept.clear()
            row = kept[cells] = shape.load(cells)
        return row

    def _run(self, statement: Executable, cells: Mapping[str, Cell]) -> Cursor:
        sentence = self._sql.of(statement)
        return self.connection.execute(sentence.sql, sentence.cells(cells))
