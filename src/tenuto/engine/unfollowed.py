"""Whether anybody can be asked what became of a command: its executor is there, can be looked at, and is believed.

Asked before a person's verdict on a turn that nothing has put in doubt. A turn that can be followed is not given up by
a word: it ends by itself, or it is interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenuto.core.reconcile import of_command
from tenuto.engine import abilities
from tenuto.model.command import Command
from tenuto.model.evidence import CommandFacts
from tenuto.model.reconciliation import Doubtful, Living
from tenuto.ports import Executor


async def unfollowed(executors: Mapping[str, Executor], command: Command) -> bool:
    """Whether its executor is unknown, out of reach or away, or what is said there of the command is not believed."""
    executor: object = executors.get(command.executor)
    if executor is None:
        return True
    if command.place is not None and abilities.has_place(executor) and not executor.reaches(command.place):
        return True
    seen = await executors[command.executor].look(command)
    if not isinstance(seen.facts, CommandFacts):
        return False
    found = of_command(command, seen.facts, seen)
    return any(isinstance(f, Doubtful) or (isinstance(f, Living) and f.away is not None) for f in found)
