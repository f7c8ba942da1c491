"""Whom a commit concerns beside its own task: the run's coordinator, and the parent of a task that has ended.

A ring is a courtesy and carries nothing: what they are told is read from the registry when they are looked at, and
they are looked at in time, or at the next start, without it.
"""

from __future__ import annotations

from tenuto.core.neighbours import ENDS, TOLD
from tenuto.model.change import Commit
from tenuto.model.ids import TaskId
from tenuto.model.work import Task
from tenuto.ports import Reader


def concerned(reader: Reader, commit: Commit) -> tuple[TaskId, ...]:
    """The other tasks that should look at what was just committed."""
    found: dict[TaskId, None] = {}
    parents = {row.id: row.parent for row in commit.puts if isinstance(row, Task) and row.parent is not None}
    for fact in commit.facts:
        if fact.kind not in TOLD or fact.task_id is None or fact.run_id is None:
            continue
        parent = parents.get(fact.task_id)
        if fact.kind in ENDS and parent is not None:
            found[parent] = None
        run = reader.run(fact.run_id)
        if run is not None and run.coordinator is not None and run.coordinator != fact.task_id:
            found[run.coordinator] = None
    return tuple(found)
