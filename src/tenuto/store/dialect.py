"""What differs between databases, in one small protocol.

Statements are written once in Core and compiled to SQL text with named parameters; they run on the driver's own
connection, which is several times faster than running them through Core. A dialect says how to connect, how a
transaction begins, and what a driver's error means.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sqlalchemy.engine.interfaces import Dialect as CoreDialect
from sqlalchemy.sql.base import Executable

from tenuto.store.rows import Cell

Parameters = Mapping[str, Cell]


class Cursor(Protocol):
    """What a statement answered."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A driver's connection, as far as it is used here."""

    def execute(self, sql: Any, parameters: Any = ..., /) -> Cursor: ...

    def close(self) -> None: ...


class Listening(Protocol):
    """A connection that hears hints. They may be lost: who listens looks by himself now and then."""

    def notified(self, seconds: float) -> bool:
        """Whether one came within these seconds; blocks."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Taken:
    """A unique truth that something else holds: the name of its index, or of the table whose key it is."""

    name: str
    key: bool


class Dialect(Protocol):
    """One kind of database, and where this registry lies in it."""

    name: str
    core: CoreDialect
    #: Whether a whole transaction can be on its way before the first of its statements is answered.
    one_way: bool
    #: The driver's base class of errors.
    failure: type[Exception]

    def connect(self) -> Connection:
        """A connection that writes."""
        ...

    def connect_reader(self) -> Connection:
        """A connection that cannot write."""
        ...

    def lost(self, connection: Connection) -> bool:
        """Whether nothing can be asked of a connection any more, and another has to be made."""
        ...

    def now(self, connection: Connection) -> datetime | None:
        """The moment by a clock that all who reach this database share; None where it has none."""
        ...

    def hint(self, connection: Connection) -> None:
        """Tell whoever listens, with this transaction's commit, that the lease has changed."""
        ...

    def listen(self) -> Listening | None:
        """What hears such hints; None where nobody can listen."""
        ...

    def hurry(self, connection: Connection, on: bool) -> bool:
        """Wait for nobody to begin a transaction; or no longer.

        False where a commit is never short enough to be waited for by whoever has other things to do.
        """
        ...

    def catch_up(self, connection: Connection) -> None:
        """Do what commits have put off, because it need not be done for them to be durable."""
        ...

    def together(self, connection: Connection) -> AbstractContextManager[object]:
        """While it lasts, what is asked may be sent before what was asked earlier is answered.

        At its end everything is answered. Whatever fails may only be told there, and nothing after it was done.
        """
        ...

    def demanding(self, sql: str) -> str:
        """A statement that answers with one row, or changes one, as one that fails where it does not."""
        ...

    def begin(self, connection: Connection) -> None: ...

    def begin_read(self, connection: Connection) -> None: ...

    def commit(self, connection: Connection) -> None: ...

    def rollback(self, connection: Connection) -> None:
        """End the transaction if there is one; never raises."""
        ...

    def taken(self, error: Exception) -> Taken | None:
        """The unique truth that `error` says is held, if that is what it says."""
        ...

    def refused(self, error: Exception) -> bool:
        """Whether a constraint or trigger refused what was to be written."""
        ...

    def damage(self, connection: Connection) -> list[str]:
        """What the database itself finds broken, as sentences; reads everything."""
        ...

    def backup(self, to: Path) -> None:
        """A consistent copy in a new file at `to`, while others read and write; Mistake when that cannot be."""
        ...

    def translated(self, error: Exception) -> Exception:
        """`error` in our words: StorageFull, Corrupt, OutOfReach, or itself when it says none of them."""
        ...


class Sentence(NamedTuple):
    """A statement as SQL, and what stands at each of its places."""

    sql: str
    names: tuple[str, ...]

    def cells(self, given: Parameters) -> tuple[Cell, ...]:
        """The parameters in their places."""
        return tuple([given[name] for name in self.names])


class Texts:
    """Compiled statements of one dialect, each compiled once."""

    def __init__(self, core: CoreDialect) -> None:
        self._core = core
        self._known: dict[tuple[Executable, tuple[str, ...] | None], Sentence] = {}

    def of(self, statement: Executable, columns: tuple[str, ...] | None = None) -> Sentence:
        """The statement's text; `columns` names the parameters of an INSERT or of an UPDATE's SET."""
        known = self._known.get((statement, columns))
        if known is None:
            compiled: Any = statement.compile(dialect=self._core, column_keys=columns)  # type: ignore[attr-defined]
            given = [
                name for name, value in compiled.params.items() if value is not None and name not in (columns or ())
            ]
            if given:
                raise TypeError(f"a statement brings values of its own ({given}); say them as parameters or literals")
            known = self._known[statement, columns] = Sentence(str(compiled), tuple(compiled.positiontup))
        return known


_TEXTS: dict[str, Texts] = {}


def texts_of(dialect: Dialect) -> Texts:
    """The statements of this program as one kind of database has them, compiled once in a process."""
    if dialect.name not in _TEXTS:
        _TEXTS[dialect.name] = Texts(dialect.core)
    return _TEXTS[dialect.name]
