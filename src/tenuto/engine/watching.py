"""Since when each task's evidence was looked at without a break, and the judgement that follows.

Silence counts only while somebody looked: a supervisor that slept, or has just begun, has not seen anybody be silent.
This is kept in memory on purpose, for it speaks of this very process.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tenuto.core import classify
from tenuto.model.health import Assessment
from tenuto.model.ids import TaskId
from tenuto.model.reconciliation import Seen

#: Two looks further apart than this are no uninterrupted observation.
BREAK = timedelta(seconds=120)


class Watch:
    """The looks of one process at its tasks."""

    def __init__(self) -> None:
        self._looked: dict[TaskId, tuple[datetime, datetime]] = {}

    def looked(self, task_id: TaskId, now: datetime) -> datetime:
        """Note a look; since when there was no break. A clock that went back begins anew."""
        since, last = self._looked.get(task_id, (now, now))
        if not timedelta(0) <= now - last <= BREAK:
            since = now
        self._looked[task_id] = (since, now)
        return since

    def judged(self, seen: Seen, now: datetime) -> Assessment:
        """The health of a task at this look; one that goes on keeps its episode."""
        task = seen.snapshot.task
        since = self.looked(task.id, now)
        if task.terminal:
            self._looked.pop(task.id, None)
        return classify.episode(task.health, classify.classify(classify.of(seen, since, now)))

    def since(self, task_id: TaskId) -> datetime | None:
        """Since when a task was looked at without a break."""
        known = self._looked.get(task_id)
        return known[0] if known is not None else None
