"""Registries of programs that are not known: tables or JSON lists whose rows say what they are in common words.

A list is recognised when its rows have a name, an objective, a directory and a state, each under one of a few names
that can mean nothing else. A row whose state is no known word, or says that something may have been sent, is refused.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tenuto.model.foreign import Item, Left
from tenuto.transports.foreign import database, taking

JSON_LIMIT: Final = 32 * 1024 * 1024
DEPTH: Final = 4

#: The names under which a row may say something; the first that is there counts, and two that differ refuse the row.
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "origin": ("task_id", "id", "key", "uuid"),
    "objective": ("objective", "prompt", "instruction", "instructions", "goal"),
    "cwd": ("cwd", "working_dir", "working_directory", "workdir", "worktree_path", "worktree"),
    "state": ("state", "status"),
    "title": ("title",),
    "place": ("conversation_url", "conversation_id"),
    "session": ("lsm_session_id", "tool_session_id"),
    "seen_at": ("updated_at", "last_seen_at", "modified_at"),
}
NEEDED: Final = ("origin", "objective", "cwd", "state")
#: Names that say that something was begun whose end is not known; a row that has a value there is refused.
IN_FLIGHT: Final = ("pending_command", "in_flight", "inflight", "unacknowledged", "open_command")

Found = tuple[tuple[Item, ...], tuple[Left, ...]]


def is_list(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows say everything that is needed under names that are known."""
    if not rows:
        return False
    names = set(rows[0])
    return all(any(known in names for known in NAMES[need]) for need in NEEDED)


def of_rows(rows: Iterable[Mapping[str, Any]]) -> Found:
    """What of a list can be imported, and what not."""
    items: list[Item] = []
    left: list[Left] = []
    seen: set[str] = set()
    for row in rows:
        found = _row(row)
        if found.origin in seen:
            found = Left(found.origin, "another row has the same name")
            items = [item for item in items if item.origin != found.origin]
        seen.add(found.origin)
        if isinstance(found, Item):
            items.append(found)
        else:
            left.append(found)
    return tuple(items), tuple(left)


def _row(row: Mapping[str, Any]) -> Item | Left:
    origin = taking.name(_one(row, "origin"))
    if origin is None:
        return Left("?", "a row has no proper name")
    for need in NAMES:
        told = {repr(row[known]) for known in NAMES[need] if row.get(known) is not None}
        if need in NEEDED and need != "origin" and len(told) > 1:
            return Left(origin, f"it says {need} twice, and not the same")
    state = taking.word(_one(row, "state"))
    if state in taking.OVER:
        return Left(origin, f"it is {state}", over=True)
    if state in taking.DOUBTFUL:
        return Left(origin, f"it is {state}: whether something was sent is not known, and it is not sent again")
    if state not in taking.OPEN:
        return Left(origin, f"its state is no word that is known: {str(_one(row, 'state'))[:60]!r}")
    if busy := next((known for known in IN_FLIGHT if row.get(known)), None):
        return Left(origin, f"something of it is under way ({busy}), and whether it arrived is not known")
    objective = taking.text(_one(row, "objective"), taking.OBJECTIVE_LIMIT)
    if objective is None:
        return Left(origin, "it has no objective of at most 256 KiB")
    cwd, why = taking.directory(_one(row, "cwd"))
    if cwd is None:
        return Left(origin, why or "it names no directory")
    session = _one(row, "session")
    bound = session if isinstance(session, str) and taking.SESSION.fullmatch(session) else None
    title = taking.name(_one(row, "title")) or origin
    place = taking.text(_one(row, "place"), taking.PLACE_LIMIT)
    seen_at = taking.moment(_one(row, "seen_at"))
    return Item(origin, objective, cwd, state or "", title[:200], place, bound, (("state", state or ""),), seen_at)


def _one(row: Mapping[str, Any], need: str) -> object:
    return next((row[known] for known in NAMES[need] if row.get(known) is not None), None)


# -- where lists stand


def of_tables(connection: sqlite3.Connection) -> tuple[Found, tuple[str, ...]] | None:
    """What the tables of a database hold, and which were not understood; None where none was."""
    items: tuple[Item, ...] = ()
    left: tuple[Left, ...] = ()
    unread: list[str] = []
    known = False
    for table in database.tables(connection):
        rows = database.rows(connection, table)
        names = set(database.columns(connection, table))
        if all(any(one in names for one in NAMES[need]) for need in NEEDED):
            known = True
            more, others = of_rows(rows)
            items, left = (*items, *more), (*left, *others)
            unread += database.cut(connection, (table,))
        elif rows:
            unread.append(f"table {table}: {database.count(connection, table)} rows")
    return ((items, left), tuple(unread)) if known else None


def parsed(path: Path) -> object:
    """A JSON file as it stands. Raises NotReadable for what is no JSON or too large."""
    try:
        if path.stat().st_size > JSON_LIMIT:
            raise database.NotReadable(f"{path.name} is larger than {JSON_LIMIT} bytes")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise database.NotReadable(f"{path.name}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise database.NotReadable(f"{path.name} is no JSON") from None


def of_tree(tree: object) -> tuple[Found, tuple[str, ...]] | None:
    """What a JSON document holds, and which of its lists were not understood; None where none was."""
    items: tuple[Item, ...] = ()
    left: tuple[Left, ...] = ()
    unread: list[str] = []
    known = False
    for where, rows in _lists(tree, "top", DEPTH):
        if is_list(rows):
            known = True
            more, others = of_rows(rows)
            items, left = (*items, *more), (*left, *others)
        else:
            unread.append(f"list {where}: {len(rows)} entries")
    return ((items, left), tuple(unread)) if known else None


def _lists(tree: object, where: str, depth: int) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The lists of objects in a tree, and objects whose values are objects, with where they stand."""
    if isinstance(tree, list):
        if tree and all(isinstance(each, dict) for each in tree):
            yield where, list[Mapping[str, Any]](tree)
        return
    if not isinstance(tree, dict) or not depth:
        return
    if len(tree) > 0 and all(isinstance(each, dict) for each in tree.values()):
        named: list[Mapping[str, Any]] = [{"key": key, **each} for key, each in tree.items()]
        if is_list(named):
            yield where, named
            return
    for key, each in tree.items():
        yield from _lists(each, f"{where}.{str(key)[:60]}", depth - 1)
