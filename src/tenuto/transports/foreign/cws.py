"""The registry of CWS, a supervisor of chats with Local Shell MCP sessions: schemas 1 to 6.

Its tasks carry an objective, a directory and a tool session, its workers are conversations, its action attempts are
sends that were written ahead. A task with an unresolved attempt or probe is refused: whether its words arrived is not
known there either, and nothing here may send them again. So is one whose workers contradict its own rules.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from tenuto.model.foreign import Item, Left
from tenuto.transports.foreign import database, taking

KNOWN: Final = range(1, 7)
#: What makes a database one of these, whatever else is in it.
MARKS: Final[Mapping[str, frozenset[str]]] = {
    "tasks": frozenset({"task_id", "project", "objective", "cwd", "state", "lsm_session_id", "current_worker_id"}),
    "workers": frozenset({"worker_id", "task_id", "conversation_url", "status"}),
}
TAKEN: Final = frozenset(
    {"tasks", "workers", "task_jobs", "action_attempts", "probe_mutation_operations", "worker_protocol_tasks"}
)
UNRESOLVED: Final = frozenset({"ARMED", "SUBMITTED", "RECONCILE_REQUIRED"})
SETTLED_PROBE: Final = frozenset({"COMPLETED", "FAILED", "ABANDONED", "CANCELLED"})
OVER: Final = frozenset({"COMPLETED"})
#: States of a task that its program may leave behind unfinished. ABANDONED is not among them: it may mean either.
OPEN: Final = frozenset(
    {"QUEUED", "STARTING", "RUNNING", "SUSPECT", "RECONCILING", "RECOVERING", "BLOCKED", "NEEDS_HUMAN", "UNKNOWN"}
)

Row = Mapping[str, object]


def recognised(connection: sqlite3.Connection) -> bool:
    """Whether the tables are those of this program."""
    return all(marks <= set(database.columns(connection, table)) for table, marks in MARKS.items())


def read(connection: sqlite3.Connection) -> tuple[int, tuple[Item, ...], tuple[Left, ...], tuple[str, ...]]:
    """Its schema, what could be imported, what not, and the tables that are not taken along.

    Raises NotReadable for a schema that is not known.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in KNOWN:
        raise database.NotReadable(f"it has schema {version}; {KNOWN[0]} to {KNOWN[-1]} are known")
    there = database.tables(connection)
    held = {table: database.rows(connection, table) if table in there else [] for table in TAKEN}
    unread = tuple(
        f"table {table}: {count} rows"
        for table in there
        if table not in TAKEN and (count := database.count(connection, table))
    )
    unread = (*unread, *database.cut(connection, (table for table in TAKEN if table in there)))
    items: list[Item] = []
    left: list[Left] = []
    for task in held["tasks"]:
        found = _task(task, held)
        (items if isinstance(found, Item) else left).append(found)  # type: ignore[arg-type]
    return version, tuple(items), tuple(left), unread


def _of(rows: Sequence[Row], task: str, column: str = "task_id") -> list[Row]:
    return [row for row in rows if row.get(column) == task]


def _task(task: Row, held: Mapping[str, Sequence[Row]]) -> Item | Left:
    origin = taking.name(task.get("task_id"))
    if origin is None:
        return Left("?", "a task has no proper name")
    state = str(task.get("state"))[:60]
    if state in OVER:
        return Left(origin, f"it is {state}", over=True)
    if state not in OPEN:
        return Left(origin, f"its state is {state}, which may mean that it ended or that it did not")
    for attempt in _of(held["action_attempts"], origin):
        if attempt.get("state") in UNRESOLVED:
            return Left(origin, f"a send of it is {attempt['state']}: settle that where it was made")
    for probe in _of(held["probe_mutation_operations"], origin, "target_task_id"):
        if probe.get("state") not in SETTLED_PROBE:
            return Left(origin, f"a window of it is being opened or closed ({str(probe.get('state'))[:60]})")
    for protocol in _of(held["worker_protocol_tasks"], origin):
        status = str(protocol.get("task_status"))[:60]
        if status.lower() != "open":
            return Left(origin, f"its workers' protocol says {status}, and its state {state}")
        if protocol.get("current_worker_id") != task.get("current_worker_id"):
            return Left(origin, "its state and its workers' protocol name different workers")
        if protocol.get("handoff_target_worker_id") is not None:
            return Left(origin, "it is being handed from one worker to another")
    workers = _of(held["workers"], origin)
    current, why = _holder(task, workers)
    if why is not None:
        return Left(origin, why)
    objective = taking.text(task.get("objective"), taking.OBJECTIVE_LIMIT)
    if objective is None:
        return Left(origin, "it has no objective of at most 256 KiB")
    cwd, why = taking.directory(task.get("cwd"))
    if cwd is None:
        return Left(origin, why or "it names no directory")
    session = task.get("lsm_session_id")
    bound = session if isinstance(session, str) and taking.SESSION.fullmatch(session) else None
    project = taking.name(task.get("project"))
    facts = [("state", state.lower()), ("workers", str(len(workers)))]
    facts += [("tracked_jobs", str(len(_of(held["task_jobs"], origin))))]
    if isinstance(recoveries := task.get("recovery_attempts"), int) and 0 <= recoveries < 10**9:
        facts.append(("recoveries", str(recoveries)))
    place = taking.text(current.get("conversation_url"), taking.PLACE_LIMIT) if current is not None else None
    title = f"{project}: {origin}" if project else origin
    return Item(
        origin, objective, cwd, state, title[:200], place, bound, tuple(facts), taking.moment(task.get("updated_at"))
    )


def _holder(task: Row, workers: Sequence[Row]) -> tuple[Row | None, str | None]:
    """The worker that holds the task, or why that cannot be told."""
    active = [row for row in workers if str(row.get("status")).lower() == "active"]
    named = task.get("current_worker_id")
    if any(str(row.get("status")).lower() == "parked" for row in workers):
        return None, "a worker of it is parked, which may or may not act for it"
    if named is None:
        return (None, None) if not active else (None, "a worker is active, and the task names none")
    if len(active) != 1 or active[0].get("worker_id") != named:
        return None, "the worker that it names is not its only active one"
    return active[0], None


def fingerprint(connection: sqlite3.Connection) -> str:
    """What tells this registry from another of its kind, also after its file was moved: its oldest tasks."""
    found = connection.execute("SELECT task_id, created_at FROM tasks ORDER BY created_at, task_id LIMIT 3")
    told = repr([(row[0], row[1]) for row in found])
    return hashlib.sha256(told.encode()).hexdigest()[:16]
