"""Arming a takeover: the commit that is made before a tool server is asked to give a session to a new run."""

from __future__ import annotations

from datetime import datetime

from tenuto.core import arm, supervision, takeover, tenancy
from tenuto.core.draft import Draft, New
from tenuto.model.command import Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Rung
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import CommandState, LeaseState
from tenuto.model.reconciliation import Seen
from tenuto.model.tools import ToolFacts


def armed(
    seen: Seen,
    candidate: Conversation,
    session: ToolFacts,
    command_id: CommandId,
    executor: str,
    now: datetime,
    new: New,
) -> arm.Written | Because:
    """Write it ahead: the task's scope is held from here on, so that nothing else acts for it, whoever holds the lease.

    Refused where the lease could not pass once the outside has: that is asked before anything is done there.
    """
    if because := supervision.may_take_over(seen, now):
        return because
    snapshot, holder = seen.snapshot, seen.snapshot.conversation
    if seen.found.workspace is None or seen.epoch is None:
        return Because(Rung.EVIDENCE, "its workspace was not looked at", "look again")
    if candidate.state is not LeaseState.CANDIDATE or candidate.task_id != snapshot.task.id:
        return tenancy.refusal(f"{candidate.id} is {candidate.state}, not a candidate", "register it first")
    draft = Draft(snapshot, now, new)
    if holder is not None:
        tried = tenancy.take_over(snapshot.task, candidate, holder, snapshot.run.policy, now)
    else:
        tried = tenancy.claim(snapshot.task, candidate, None, snapshot.run.policy, now)
    if isinstance(tried, Because):
        return tried
    scopes = (f"task:{snapshot.task.id}", f"tool:{session.subject}")
    command = Command(
        id=command_id,
        revision=1,
        kind=CommandKind.TAKEOVER,
        task_id=snapshot.task.id,
        attempt_id=None,
        conversation_id=candidate.id,
        executor=executor,
        state=CommandState.ARMED,
        epoch=seen.epoch,
        fence=seen.found.fence,
        scopes=scopes,
        created_at=now,
        digest=takeover.ground(seen.found.members),
        armed_at=now,
        target=f"{session.subject} {session.run or takeover.NOBODY}",
        place=seen.place,
    )
    draft.puts.append(command)
    draft.holds += [(scope, command.id) for scope in scopes]
    draft.look_now()
    return arm.written(draft, command, seen)
