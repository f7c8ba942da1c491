"""Looks at the page of a task that is over, and says how it is closed, if it is ours to close.

Asks the page's executor once a pass, and nobody where there is no page of ours to be closed any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from tenuto.core import closing
from tenuto.core.arm import Written
from tenuto.engine import abilities
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import PageFacts
from tenuto.model.ids import CommandId
from tenuto.model.reconciliation import Seen
from tenuto.ports import Clock, ClosePage, Executor, Minter, Reader


async def due(
    reader: Reader, executors: Mapping[str, Executor], seen: Seen, clock: Clock, mint: Minter
) -> tuple[Written, ClosePage] | datetime | None:
    """The closing that is to be armed now with its order; when to look again; None where there is nothing to close."""
    now = clock.now()
    if seen.epoch is None or not closing.wanted(seen.snapshot, now):
        return None
    talk = _talk(reader, seen)
    executor: object = executors.get(talk.executor) if talk is not None else None
    if talk is None or not abilities.has_pages(executor) or not abilities.closes_pages(executor):
        return None
    if not executor.connected(talk.identity):
        return now + closing.AGAIN
    facts = (await executor.page(talk)).facts
    may = closing.closable(facts) if isinstance(facts, PageFacts) else None
    if may is None or (isinstance(facts, PageFacts) and facts.shown and not executor.capable("close")):
        return None
    place = executor.place if abilities.has_place(executor) else None
    written = closing.armed(seen, talk, place, CommandId(mint.new("command")), clock.now(), mint.new) if may else None
    return (written, ClosePage(talk.identity)) if written is not None else now + closing.AGAIN


def _talk(reader: Reader, seen: Seen) -> Conversation | None:
    """The conversation of the task's last turn, where it has an address."""
    last = seen.snapshot.last
    talks = reader.conversations(seen.snapshot.task.id)
    talk = next((one for one in talks if last is not None and one.id == last.conversation_id), None)
    return talk if talk is not None and talk.identity.startswith("http") else None
