"""Having an executor made ready for a turn that is expected, so that the turn need not wait for a process to start.

Decides nothing about the turn: whether it comes, the cycle finds out when its moment is there, and what was made ready
for one that does not come is given up. What is made ready does nothing by itself and knows no order. A guess that is
wrong costs the start of a process.

While turns are under way a spare or two wait for whichever is to follow first. Within a task the identifiers of turns
keep their order: spares are taken in the order they were named, and nothing is named anew while one waits.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, NamedTuple

from tenuto.engine import abilities
from tenuto.model.evidence import CommandFacts, How, Mark
from tenuto.model.ids import CommandId, TaskId
from tenuto.ports import Foreseeing, Minter

AHEAD: Final = timedelta(milliseconds=250)
"""How long before its moment a turn is made ready for; the start of a host takes a tenth of it on a quiet machine."""

AT_MOST: Final = 8
"""For how many tasks at once."""

SPARES: Final = 2
"""How many wait besides for whoever comes first; one where a single task works."""

IDLE: Final = 600.0
"""Seconds after which who was made ready in vain is given up, and after which a turn is not expected to be followed."""


class Spare(NamedTuple):
    """What waits for a turn: the name of its command, who was made ready, and since when for this turn (seconds)."""

    command_id: CommandId
    executor: Foreseeing
    since: float


class Foresight:
    """The executors that wait for a turn: one for a task at most, and a few for any. Moments are monotonic seconds."""

    def __init__(self, mint: Minter) -> None:
        self._mint = mint
        self._ready: dict[TaskId, Spare] = {}
        self._spares: list[Spare] = []
        #: Whose turns were handed over a moment ago, and to whom.
        self._begun: dict[TaskId, Foreseeing] = {}
        #: Whose turns were handed over lately, and when: as many are likely to want another.
        self._lately: dict[TaskId, float] = {}

    def make_ready(self, task_id: TaskId, executor: object, moment: float) -> None:
        """Have the executor made ready for a command that is named here and now, if it can be; a spare is as good."""
        if task_id in self._ready or not abilities.foresees(executor):
            return
        spare = self._spare(executor)
        if spare is not None:
            self._ready[task_id] = Spare(spare, executor, moment)
        elif len(self._ready) < AT_MOST:
            command_id = CommandId(self._mint.new("command"))
            executor.foresee(command_id)
            self._ready[task_id] = Spare(command_id, executor, moment)

    def take(self, task_id: TaskId, executor: object) -> CommandId:
        """The name of a command that this executor was made ready for, or a new one."""
        ready = self._ready.get(task_id)
        if ready is not None and ready.executor is executor:
            del self._ready[task_id]
            return ready.command_id
        return self._spare(executor) or CommandId(self._mint.new("command"))

    def let_go(self, task_id: TaskId) -> None:
        """Its turn does not come, for now."""
        ready = self._ready.pop(task_id, None)
        if ready is not None:
            ready.executor.forgo(ready.command_id)

    def begun(self, task_id: TaskId, executor: object) -> None:
        """A turn of the task was handed over, so that another is likely to follow."""
        if abilities.foresees(executor):
            self._begun[task_id] = executor

    def provide(self, moment: float) -> None:
        """Have a spare wait for what follows the turns that have begun, unless as many wait as may be."""
        self.tend(moment)
        while self._begun:
            task_id, executor = self._begun.popitem()
            self._lately[task_id] = moment
            if len(self._spares) < min(SPARES, len(self._lately)):
                command_id = CommandId(self._mint.new("command"))
                executor.foresee(command_id)
                self._spares.append(Spare(command_id, executor, moment))

    def tend(self, moment: float) -> None:
        """Give up what nobody has needed for long: spares, and who waits for the turn of a task that does not come."""
        self._lately = {task: at for task, at in self._lately.items() if moment - at < IDLE}
        for spare in [spare for spare in self._spares if moment - spare.since >= IDLE]:
            self._spares.remove(spare)
            spare.executor.forgo(spare.command_id)
        for task_id in [task for task, ready in self._ready.items() if moment - ready.since >= IDLE]:
            self.let_go(task_id)

    def _spare(self, executor: object) -> CommandId | None:
        """The spare of this executor that was named first, which is the caller's from here on."""
        spare = next((spare for spare in self._spares if spare.executor is executor), None)
        if spare is None:
            return None
        self._spares.remove(spare)
        return spare.command_id


def goes_on(facts: CommandFacts) -> bool:
    """Whether a turn that has ended looks as if another were to follow: it ended by itself and said that it works."""
    ending = facts.ending
    return (
        facts.mark is Mark.ENDED
        and ending is not None
        and ending.how is How.EXIT
        and ending.exit_code == 0
        and ending.cut is None
        and any("status: working" in said for said in ending.signals[-1:])
    )
