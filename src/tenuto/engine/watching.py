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
        self._away: dict[TaskId, datetime] = {}

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
        if classify.away(seen) is None or now < self._away.get(task.id, now):
            self._away.pop(task.id, None)
        if classify.away(seen) is not None:
            self._away.setdefault(task.id, now)
        case = classify.of(seen, since, now, self._away.get(task.id))
        if task.terminal:
            self._looked.pop(task.id, None)
            self._away.pop(task.id, None)
        return classify.episode(task.health, classify.classify(case))

    def away_since(self, task_id: TaskId) -> datetime | None:
        """Since when whoever carries a task's turn could not be asked, in every look."""
        return self._away.get(task_id)

    def since(self, task_id: TaskId) -> datetime | None:
        """Since when a task was looked at without a break."""
        known = self._looked.get(task_id)
        return known[0] if known is not None else None
