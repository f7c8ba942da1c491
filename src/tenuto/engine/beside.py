"""What is looked at beside a task's own conversation: its tool sessions, and the pages that are watched for it.

Looking takes time, and what was seen of a page is believed for a short while: one that grew too old while the others
were looked at is looked at once more. What is too old even then is handed on as it is, and is a flaw.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenuto.core import outside
from tenuto.model.evidence import Observation
from tenuto.model.policy import Policy
from tenuto.model.watched import WatchedFacts
from tenuto.model.work import Task
from tenuto.ports import Clock, PageWitness, ToolWitness


async def looked(task: Task, tools: ToolWitness | None, witnesses: Mapping[str, PageWitness]) -> list[Observation]:
    """An observation of each session and page that somebody here can look at, in the order they are bound."""
    found = []
    for binding in task.tools:
        if binding.page is None and tools is not None:
            found.append(await tools.look(binding, task.cwd))
        elif binding.page is not None and binding.server in witnesses:
            found.append(await witnesses[binding.server].look(binding))
    return found


async def anew(
    found: list[Observation], witnesses: Mapping[str, PageWitness], policy: Policy, clock: Clock
) -> list[Observation]:
    """The same, with pages that were seen too long ago looked at once more."""
    again = []
    for each in found:
        facts = each.facts
        if isinstance(facts, WatchedFacts) and outside.stale(each, policy, clock.now()):
            witness = witnesses.get(facts.binding.server)
            again.append(await witness.look(facts.binding) if witness is not None else each)
        else:
            again.append(each)
    return again
