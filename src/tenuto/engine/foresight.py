"""Having an executor made ready for a turn that is expected, so that the turn need not wait for a process to start.

Decides nothing about the turn: whether it comes, the cycle finds out when its moment is there, and what was made ready
for one that does not come is given up. What is made ready does nothing by itself and knows no order. A guess that is
wrong costs the start of a process.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenuto.engine import abilities
from tenuto.model.evidence import CommandFacts, How, Mark
from tenuto.model.ids import CommandId, TaskId
from tenuto.ports import Foreseeing, Minter

AHEAD: Final = timedelta(milliseconds=250)
"""How long before its moment a turn is made ready for; the start of a host takes a tenth of it on a quiet machine."""

AT_MOST: Final = 8
"""For how many tasks at once."""


class Foresight:
    """The executors that wait for a turn, one for a task at most."""

    def __init__(self, mint: Minter) -> None:
        self._mint = mint
        self._ready: dict[TaskId, tuple[CommandId, Foreseeing]] = {}

    def make_ready(self, task_id: TaskId, executor: object) -> None:
        """Have the executor made ready for a command that is named here and now, if it can be."""
        if task_id not in self._ready and len(self._ready) < AT_MOST and abilities.foresees(executor):
            command_id = CommandId(self._mint.new("command"))
            executor.foresee(command_id)
            self._ready[task_id] = command_id, executor

    def take(self, task_id: TaskId, executor: object) -> CommandId:
        """The name of the command that this executor was made ready for, or a new one."""
        ready = self._ready.get(task_id)
        if ready is not None and ready[1] is executor:
            del self._ready[task_id]
            return ready[0]
        return CommandId(self._mint.new("command"))

    def let_go(self, task_id: TaskId) -> None:
        """Its turn does not come, for now."""
        ready = self._ready.pop(task_id, None)
        if ready is not None:
            ready[1].forgo(ready[0])


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
