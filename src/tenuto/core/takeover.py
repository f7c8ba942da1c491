"""Having a tool server give a task's session to a new run, before our own lease passes to another place.

Where the server fences its runs, that comes first, as a command of its own: only when the new run was seen, and the
workspace stands as it stood when the command was armed, does the lease pass, in the same commit that acknowledges.
Nothing is concluded from silence, and no takeover is ever repeated by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from tenuto.core import tenancy
from tenuto.core.draft import Draft
from tenuto.model.command import Command, CommandKind
from tenuto.model.decision import Because
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence
from tenuto.model.fact import FactKind
from tenuto.model.lifecycle import CommandState, LeaseState
from tenuto.model.message import MessageKind
from tenuto.model.reconciliation import Acknowledgement, Begun, Doubtful, Finding, Living, MayYetBegin, Seen, Undone
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import ToolFacts
from tenuto.model.work import WaitKind

NOBODY = "none"


def fenced(sessions: Iterable[ToolFacts]) -> tuple[ToolFacts, ...]:
    """The sessions whose server lets one run at a time go on, so that another run shuts the old place out."""
    return tuple(session for session in sessions if session.run is not None)


def underway(snapshot: Snapshot) -> Command | None:
    """The takeover that is not settled yet."""
    return next((command for command in snapshot.commands if command.kind is CommandKind.TAKEOVER), None)


def ground(members: Iterable[str]) -> str:
    """The digest of the workspace, out of the members of a fence."""
    return hashlib.sha256("\n".join(each for each in members if each.startswith("workspace ")).encode()).hexdigest()


# -- what became of it


def findings(
    command: Command, facts: CommandFacts, seen: Observation, sessions: Iterable[ToolFacts]
) -> tuple[Finding, ...]:
    """What the executor's journal and the server's own records say of a takeover, laid side by side.

    The executor's word that it was answered acknowledges nothing: the session must be seen to belong to that run.
    """
    if command.state in (CommandState.ACKNOWLEDGED, CommandState.RELEASED) or command.late:
        return ()
    began = command.submitted_at is not None
    match facts.mark:
        case Mark.ACCEPTED | Mark.ENDED:
            return _confirmed(command, facts, seen, sessions)
        case Mark.FAILED:
            return (Undone(command, facts.reason or "it was refused", facts.mendable, revoked=False),)
        case Mark.REVOKED if not began:
            return (Undone(command, facts.reason or "it was revoked before it began", False, revoked=True),)
        case Mark.NONE if not began and command.state is CommandState.ARMED:
            return (Living(command, orphaned=False),) if facts.launched_here else (MayYetBegin(command),)
        case Mark.CLAIMED if not began and command.state is CommandState.ARMED:
            if facts.performer is Presence.GONE:
                return (Undone(command, "its supervisor ended before anything began", False, revoked=True),)
            return (Living(command, orphaned=False, unsure=facts.performer is Presence.UNKNOWN),)
        case Mark.BEGUN if facts.performer is not Presence.GONE:
            started = (Begun(command),) if command.state is CommandState.ARMED else ()
            return (*started, Living(command, orphaned=False, unsure=facts.performer is Presence.UNKNOWN))
        case _:
            return _doubtful(command, facts.reason or "the tool server was asked, and nobody saw its answer")


def _doubtful(command: Command, why: str) -> tuple[Finding, ...]:
    return (Doubtful(command, why),)


def _confirmed(
    command: Command, facts: CommandFacts, seen: Observation, sessions: Iterable[ToolFacts]
) -> tuple[Finding, ...]:
    subject, _, before = (command.target or "").partition(" ")
    run = facts.proof.get("run")
    started = (Begun(command),) if command.state is CommandState.ARMED else ()
    session = next((session for session in sessions if session.subject == subject), None)
    if run is None or run == before or facts.proof.get("session") != subject:
        return _doubtful(command, "it was answered, but not for this session and a new run")
    if session is None or not session.readable:
        return (*started, Living(command, orphaned=False, unsure=True))
    if session.run == run:
        return (Acknowledgement(command, seen),)
    if session.run == before:
        return (*started, Living(command, orphaned=False, unsure=True))
    return _doubtful(command, f"its session belongs to another run by now: {session.run or NOBODY}")


def take_effect(draft: Draft, command: Command, seen: Seen, run: str | None) -> None:
    """The outside has a new run: pass the lease, where everything else stands as it did, or ask a person."""
    snapshot, task = draft.snapshot, draft.task
    heir, holder = draft.before.heir, snapshot.conversation
    if task.terminal:
        return
    subject = (command.target or "").partition(" ")[0]
    objection: str | None = None
    if heir is None or heir.state is not LeaseState.CANDIDATE:
        objection = "the place it was meant for is no candidate any more"
    elif ground(seen.found.members) != command.digest:
        objection = "its workspace is not what it was when that was begun"
    else:
        policy = draft.before.run.policy
        tenure = (
            tenancy.claim(task, heir, None, policy, draft.now)
            if holder is None
            else tenancy.take_over(task, heir, holder, policy, draft.now)
        )
        if isinstance(tenure, Because):
            objection = tenure.sentence
        else:
            draft.puts += tenure.conversations
            draft.change(lease_number=tenure.task.lease_number)
            if holder is not None:
                draft.note(FactKind.CONVERSATION_SUPERSEDED, conversation=holder.id)
            held = tenure.holder
            draft.note(FactKind.CONVERSATION_CLAIMED, conversation=held.id, lease_number=held.lease_number)
            draft.snapshot = replace(draft.snapshot, conversation=held)
    if run is not None:
        draft.message(
            "tenuto",
            MessageKind.NEWS,
            f"The tool session {subject} is yours now, and its earlier run can call nothing any more. Call its tools "
            f"with session_run_id {run}, and look at what was done before you act.",
        )
    if objection is not None:
        question = (
            f"the tool session {subject} was given to a new run, and the lease was not passed on: {objection}. "
            "Look at the workspace, then take the lease over, or answer to leave it where it is"
        )
        draft.wait(WaitKind.HUMAN, question[:2000])
    draft.look_now()
