"""What hooks of agent programs tell: which session did what, brought to the task that is bound to that session.

It is evidence of the weakest rank: it is shown, it makes the task be looked at now, and it decides no send. A session
that no task is bound to is nobody's business here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenuto.core import supervision
from tenuto.engine.calling import Caller
from tenuto.engine.supervising import Supervision
from tenuto.model.faults import Refused
from tenuto.model.ids import TaskId
from tenuto.ports import Clock, Ledger

#: What an event says of its session. Every event is a reason to look.
SAYS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "UserPromptSubmit": (("generating", "true"),),
    "Stop": (("generating", "false"),),
}


class Hooking:
    """Brings events to tasks. `ring` has a task looked at now."""

    def __init__(self, ledger: Ledger, supervised: Supervision, clock: Clock, ring: Callable[[TaskId], None]) -> None:
        self._ledger = ledger
        self._supervised = supervised
        self._clock = clock
        self._ring = ring

    async def told(self, caller: Caller, adapter: str, event: str, session: str) -> TaskId | None:
        """Look at the task that is bound to the session; which it is, None where there is none."""
        caller.must_operate()
        task_id = self._ledger.bound_to(session)
        task = self._ledger.task(task_id) if task_id is not None else None
        if task is None or task.agent.adapter != adapter or task.terminal:
            return None
        facts = SAYS.get(event)
        if facts is not None:
            seen = supervision.Told(f"hook of {adapter}", session, self._clock.now(), facts)
            try:
                await self._supervised.observe(caller, task.id, [seen], None)
            except Refused:
                return None
        self._ring(task.id)
        return task.id
