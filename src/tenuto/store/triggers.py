"""The moves of every lifecycle, as triggers that refuse all others.

They are made from the lifecycle tables of the model, so there is one place where a move is allowed. A terminal state
has no moves, so a terminal row keeps its state for good. An event that is written is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine.interfaces import Dialect

from tenuto.model.lifecycle import Lifecycle
from tenuto.store.tables import LIFECYCLES


def triggers(dialect: Dialect) -> Iterator[str]:
    """The statements that make them, for SQLite or PostgreSQL."""
    quote = dialect.identifier_preparer.quote
    make = _postgresql if dialect.name == "postgresql" else _sqlite
    for table, lifecycle in LIFECYCLES.items():
        condition = f"NEW.state <> OLD.state AND NOT ({_allowed(lifecycle)})"
        yield from make(f"{table}_moves", quote(table), "UPDATE OF state", condition, f"{table}: no such move")
    yield from make("event_stays", "event", "UPDATE", "1 = 1", "event: what happened is not rewritten")


def _allowed(lifecycle: Lifecycle) -> str:  # type: ignore[type-arg]
    moves = [f"OLD.state = '{old.value}' AND NEW.state = '{new.value}'" for old, new in sorted(lifecycle.pairs)]
    return " OR ".join(f"({move})" for move in moves)


def _sqlite(name: str, table: str, event: str, condition: str, sentence: str) -> Iterator[str]:
    yield (
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW\n"
        f"WHEN {condition}\n"
        f"BEGIN SELECT RAISE(ABORT, '{sentence}'); END"
    )


def _postgresql(name: str, table: str, event: str, condition: str, sentence: str) -> Iterator[str]:
    yield (
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        f"BEGIN RAISE EXCEPTION '{sentence}' USING ERRCODE = 'check_violation'; END $$"
    )
    yield (
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW\nWHEN ({condition})\nEXECUTE FUNCTION {name}()"
    )
