"""The tasks of Kookr, a dashboard of terminal agents: its file of tasks, versions 1 (a list) and 2 (in an envelope),
and its newer store in SQLite, schema 1.

Its tasks carry a prompt, a directory and the terminal sessions that worked on them. What waits or is under way there
can be taken; what was terminated there cannot: it may be meant to be tried again, or to be over. The newer store keeps
each task as one text with some columns beside it; a row whose columns say something else than its text is refused, and
so is every task of a terminal that more than one of them has.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from tenuto.model.foreign import Item, Left
from tenuto.transports.foreign import database, taking

KNOWN: Final = (1, 2)
#: What every task of its file says, whatever else it says.
MARKS: Final = frozenset({"id", "prompt", "cwd", "status", "sessions", "createdAt"})
OPEN: Final = frozenset({"open", "pending", "inProgress"})
OVER: Final = frozenset({"completed", "cancelled"})
SHARED: Final = "a terminal of it is another task's as well"

#: The schema of the store in SQLite, by its own word, and what makes a database one of these.
SCHEMA: Final = "1"
TABLES: Final[Mapping[str, frozenset[str]]] = {
    "tasks": frozenset({"id", "status", "agent_type", "created_at", "updated_at", "is_terminal", "data"}),
    "task_sessions": frozenset({"tmux_session", "task_id"}),
    "store_meta": frozenset({"key", "value"}),
}

Row = Mapping[str, Any]


def tasks(tree: object) -> Sequence[Row] | None:
    """The tasks of such a file; None for any other. Raises NotReadable for a version that is not known."""
    version: object = 1
    rows = tree
    if isinstance(tree, dict):
        version, rows = tree.get("version"), tree.get("tasks")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        return None
    if not all(set(row) >= MARKS and isinstance(row["sessions"], list) for row in rows):
        return None
    if isinstance(version, bool) or version not in KNOWN:
        raise database.NotReadable(f"it has version {str(version)[:20]}; {KNOWN[0]} and {KNOWN[-1]} are known")
    return rows


def recognised(connection: sqlite3.Connection) -> bool:
    """Whether the tables are those of its newer store."""
    return all(columns <= set(database.columns(connection, table)) for table, columns in TABLES.items())


def stored(connection: sqlite3.Connection) -> tuple[tuple[Row, ...], tuple[Left, ...], tuple[str, ...]]:
    """The tasks of its newer store as its file would have them, the rows that contradict themselves, and what is not
    taken along. Raises NotReadable for a schema that is not known.
    """
    meta = {row["key"]: row["value"] for row in database.rows(connection, "store_meta")}
    held = database.rows(connection, "tasks")
    version = meta.get("schema_version")
    if version != SCHEMA and (held or version is not None):
        raise database.NotReadable(f"it has schema {str(version)[:20]}; {SCHEMA} is known")
    texts = [_text(row) for row in held]
    named: list[tuple[object, object]] = [
        (name, row["id"]) for row, text in zip(held, texts, strict=True) if text for name in _terminals(text)
    ]
    named += [(row["tmux_session"], row["task_id"]) for row in database.rows(connection, "task_sessions")]
    shared = _shared(named)
    told: list[Row] = []
    left: list[Left] = []
    for row, text in zip(held, texts, strict=True):
        found = _stored(row, text, shared)
        if isinstance(found, Left):
            left.append(found)
        else:
            told.append(found)
    unread = tuple(
        f"table {table}: {count} rows"
        for table in database.tables(connection)
        if table not in TABLES and (count := database.count(connection, table))
    )
    return tuple(told), tuple(left), (*unread, *database.cut(connection, TABLES))


def _text(row: Row) -> Row | None:
    """The task that a row's text tells; None where it is none."""
    try:
        told = json.loads(row["data"]) if isinstance(row["data"], str) else None
    except (ValueError, RecursionError):
        return None
    good = isinstance(told, dict) and set(told) >= MARKS and isinstance(told["sessions"], list)
    return told if good else None


def _terminals(told: Row) -> list[str]:
    """The terminals that a task names."""
    names = [taking.mapping(session).get("tmuxSession") for session in told["sessions"]]
    return [name for name in names if isinstance(name, str)]


def _shared(named: Iterable[tuple[object, object]]) -> frozenset[object]:
    """The tasks of terminals that several tasks have."""
    owners: dict[object, set[object]] = {}
    for terminal, task in named:
        owners.setdefault(terminal, set()).add(task)
    return frozenset(task for tasks in owners.values() if len(tasks) > 1 for task in tasks)


def _stored(row: Row, told: Row | None, shared: Container[object]) -> Row | Left:
    origin = taking.name(row["id"]) or "?"
    if told is None:
        return Left(origin, "its text is no task")
    if told["id"] != row["id"]:
        return Left(origin, "its row and its text name different tasks")
    if told["status"] != row["status"]:
        return Left(origin, f"its row says {str(row['status'])[:60]}, and its text {str(told['status'])[:60]}")
    if row["status"] in OPEN and row["is_terminal"] != 0:
        return Left(origin, f"its row says {row['status']}, and that it is over")
    if row["status"] in OVER and row["is_terminal"] != 1:
        return Left(origin, f"its row says {row['status']}, and that it is not over")
    if told.get("agentType") not in (None, row["agent_type"]):
        return Left(origin, "its row and its text name different agents")
    made, kept = told["createdAt"], row["created_at"]
    if (taking.moment(made) or made) != (taking.moment(kept) or kept):
        return Left(origin, "its row and its text say that it was made at different moments")
    return Left(origin, SHARED) if row["status"] in OPEN and row["id"] in shared else told


def read(rows: Sequence[Row]) -> tuple[tuple[Item, ...], tuple[Left, ...]]:
    """What could be imported, and what not."""
    items: list[Item] = []
    left: list[Left] = []
    names = [taking.name(row["id"]) for row in rows]
    times = Counter(names)
    shared = _shared((terminal, name) for row, name in zip(rows, names, strict=True) for terminal in _terminals(row))
    for row, name in zip(rows, names, strict=True):
        found = _task(row, name) if times[name] == 1 else Left(name or "?", "another task has the same name")
        if isinstance(found, Item) and name in shared:
            found = Left(found.origin, SHARED)
        (items if isinstance(found, Item) else left).append(found)  # type: ignore[arg-type]
    return tuple(items), tuple(left)


def _task(row: Row, origin: str | None) -> Item | Left:
    if origin is None:
        return Left("?", "a task has no proper name")
    state = str(row["status"])[:60]
    if state in OVER:
        return Left(origin, f"it is {state}", over=True)
    if state not in OPEN:
        return Left(origin, f"its state is {state}, which may mean that it is over or that it is to be tried again")
    objective = taking.text(row["prompt"], taking.OBJECTIVE_LIMIT)
    if objective is None:
        return Left(origin, "it has no objective of at most 256 KiB")
    cwd, why = taking.directory(row["cwd"])
    if cwd is None:
        return Left(origin, why or "it names no directory")
    sessions = [taking.mapping(session) for session in row["sessions"]]
    place = taking.text(sessions[-1].get("tmuxSession"), taking.PLACE_LIMIT) if sessions else None
    facts = (("state", state), ("workers", str(len(sessions))))
    title = taking.name(row.get("name")) or origin
    return Item(origin, objective, cwd, state, title[:200], place, None, facts, taking.moment(row.get("updatedAt")))


def of_file(rows: Sequence[Row]) -> str:
    """What tells this file from another of its kind, also after it was moved and has grown: its oldest tasks."""
    return _fingerprint((row["createdAt"], row["id"]) for row in rows)


def of_store(connection: sqlite3.Connection) -> str:
    """The same of its newer store, whatever the texts of its rows say, and however many there are."""
    return _fingerprint(tuple(row) for row in connection.execute("SELECT created_at, id FROM tasks"))


def _fingerprint(told: Iterable[tuple[object, ...]]) -> str:
    oldest = repr(sorted((str(made), str(name)) for made, name in told)[:3])
    return hashlib.sha256(oldest.encode("utf-8", "replace")).hexdigest()[:16]
