"""The tasks of Kookr, a dashboard of terminal agents: its file of tasks, versions 1 (a list) and 2 (in an envelope).

Its tasks carry a prompt, a directory and the terminal sessions that worked on them. What waits or is under way there
can be taken; what was terminated there cannot: it may be meant to be tried again, or to be over. Its newer store in
SQLite is not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenuto.model.foreign import Item, Left
from tenuto.transports.foreign import database, taking

KNOWN: Final = (1, 2)
#: What every task of its file says, whatever else it says.
MARKS: Final = frozenset({"id", "prompt", "cwd", "status", "sessions", "createdAt"})
OPEN: Final = frozenset({"open", "pending", "inProgress"})
OVER: Final = frozenset({"completed", "cancelled"})

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


def read(rows: Sequence[Row]) -> tuple[tuple[Item, ...], tuple[Left, ...]]:
    """What could be imported, and what not."""
    items: list[Item] = []
    left: list[Left] = []
    names = [taking.name(row["id"]) for row in rows]
    for row, name in zip(rows, names, strict=True):
        found = _task(row, name) if names.count(name) == 1 else Left(name or "?", "another task has the same name")
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


def fingerprint(rows: Sequence[Row]) -> str:
    """What tells this file from another of its kind, also after it was moved and has grown: its oldest tasks."""
    told = repr(sorted((str(row["createdAt"]), str(row["id"])) for row in rows)[:3])
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:16]
