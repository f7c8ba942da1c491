"""Whether the page of a conversation is closed now that its task is over.

Closed is only a page that the executor opened itself, for a conversation that it began itself, that shows what a
finished turn leaves behind, and in which no person has done anything. A page that is a person's, or whose chat was
adopted, stays; so does one that is not understood. Closing is a command as any other: written first, made once, seen.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenuto.core import arm
from tenuto.core.arm import Written
from tenuto.core.draft import Draft, New
from tenuto.model.command import Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import PageFacts
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import CommandState
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Snapshot

TRIES: Final = 3
AGAIN: Final = timedelta(seconds=30)
"""How soon a page is looked at again that could not be closed yet."""

PATIENCE: Final = timedelta(hours=1)
"""How long after its task's end a page is looked at; one that is still in use then stays."""

IDLE: Final = frozenset({"ready", "full", "dead"})


def wanted(snapshot: Snapshot, now: datetime) -> bool:
    """Whether a task is over in whose chat nothing goes on any more, and its page may still be closed."""
    task, last = snapshot.task, snapshot.last
    if not task.terminal or task.ended_at is None or last is None or not task.agent.in_page:
        return False
    if snapshot.live is not None or snapshot.commands or snapshot.released is not None:
        return False
    tries = [one for one in snapshot.checks if one.kind is CommandKind.PAGE_CLOSE and one.attempt_id == last.id]
    done = any(one.state is CommandState.ACKNOWLEDGED for one in tries)
    held = snapshot.registry.held_at is not None
    return not done and not held and len(tries) < TRIES and timedelta(0) <= now - task.ended_at < PATIENCE


def closable(facts: PageFacts) -> bool | None:
    """Whether a page may be closed now; None for never, as far as this look goes."""
    if facts.shown is None:
        return False  # nobody could be asked
    if not facts.shown or facts.several or not facts.ours or facts.foreign_turns:
        return None
    quiet = facts.generating != "yes" and not facts.typing and facts.approval is None
    return quiet and facts.state in IDLE and facts.composer in ("empty", "missing")


def armed(
    seen: Seen, talk: Conversation, place: str | None, command_id: CommandId, now: datetime, new: New
) -> Written | None:
    """The closing of a conversation's page, written ahead; None where nobody leads or nothing can be written."""
    snapshot = seen.snapshot
    if seen.epoch is None or snapshot.last is None:
        return None
    scopes = (f"page:{talk.executor}/{talk.id}", f"conversation:{talk.identity}")
    command = Command(
        id=command_id,
        revision=1,
        kind=CommandKind.PAGE_CLOSE,
        task_id=snapshot.task.id,
        attempt_id=snapshot.last.id,
        conversation_id=talk.id,
        executor=talk.executor,
        state=CommandState.ARMED,
        epoch=seen.epoch,
        fence=seen.found.fence,
        scopes=scopes,
        created_at=now,
        deadline=now + snapshot.run.policy.check_limit,
        armed_at=now,
        place=place,
    )
    draft = Draft(snapshot, now, new)
    draft.puts.append(command)
    draft.holds += [(scope, command.id) for scope in scopes]
    draft.look_now()
    written = arm.written(draft, command, seen)
    return written if isinstance(written, Written) else None
