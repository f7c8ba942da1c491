"""Lays the registry and the evidence side by side and says what follows.

Looks only; it authorises nothing. An acknowledgement is made here and nowhere else, and only from evidence that is
later than the arming and bound to the very command. Gone is concluded only from proven absence: a presence that is
unknown keeps a turn alive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import assert_never

from tenuto.core import wake
from tenuto.model.command import AttemptOutcome, Command, CommandKind
from tenuto.model.evidence import (
    AcceptanceFacts,
    CommandFacts,
    Mark,
    Observation,
    Presence,
    Rank,
    WorkspaceFacts,
)
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.reconciliation import (
    Acknowledgement,
    Begun,
    CameTrue,
    CheckpointDue,
    CutShort,
    Doubtful,
    Finding,
    Living,
    Lost,
    MayYetBegin,
    Reconciliation,
    TurnEnded,
    Undone,
)
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import WaitKind


def reconcile(
    snapshot: Snapshot,
    observations: Iterable[Observation],
    resolved: Mapping[str, bool | None],
    now: datetime,
) -> Reconciliation:
    """The findings and the fence of one look at one task.

    `resolved` says of each open PATH or COMMIT wait (by id) whether what it hangs on has come true.
    """
    workspace: WorkspaceFacts | None = None
    acceptance: AcceptanceFacts | None = None
    findings: list[Finding] = []
    commands = {command.id: command for command in subjects(snapshot)}
    for observation in observations:
        match observation.facts:
            case CommandFacts() as facts:
                if command := commands.get(facts.command_id):
                    findings.extend(of_command(command, facts, observation))
            case WorkspaceFacts() as facts:
                workspace = facts
            case AcceptanceFacts() as facts:
                acceptance = facts
            case _ as never:
                assert_never(never)
    findings.extend(came_true(snapshot, resolved, now))
    if not snapshot.task.terminal and wake.checkpoint_due(snapshot, now):
        findings.append(CheckpointDue())
    members = fence_members(snapshot, workspace)
    return Reconciliation(tuple(findings), digest_of(members), members, workspace, acceptance)


def subjects(snapshot: Snapshot) -> tuple[Command, ...]:
    """The commands that evidence is wanted of: the open ones, and the one that carries the live turn."""
    live = snapshot.live_command
    if live is None or any(command.id == live.id for command in snapshot.commands):
        return snapshot.commands
    return (*snapshot.commands, live)


def of_command(command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    """What one command's journal and processes say of it now."""
    state = command.state
    if seen.rank is not Rank.JOURNAL and command.armed_at is not None and seen.seen_at < command.armed_at:
        return ()  # seen before the arming; a journal entry is later by birth, since it bears the command's own name
    match facts.mark:
        case Mark.NONE:
            # Launched by this very executor: its host may be about to claim. By anyone else: see to it that nobody can.
            if state is CommandState.ACKNOWLEDGED:
                return (Doubtful(command, "its journal is gone although it was seen to begin"),)
            return (Living(command, orphaned=False),) if facts.launched_here else (MayYetBegin(command),)
        case Mark.REVOKED:
            if state in (CommandState.SUBMITTED, CommandState.ACKNOWLEDGED):
                return (Doubtful(command, "its journal says revoked although it was seen to begin"),)
            return (Undone(command, facts.reason or "it was revoked before it began", False, True),)
        case Mark.FAILED:
            return (Undone(command, facts.reason or "the program could not be started", facts.mendable, False),)
        case Mark.CLAIMED:
            return _waiting_on_host(
                command, facts, Undone(command, "its host ended before anything began", False, True)
            )
        case Mark.BEGUN:
            return _begun(command, facts)
        case Mark.ACCEPTED:
            return (*_acknowledged(command, seen), *_running(command, facts))
        case Mark.ENDED:
            return (*_acknowledged(command, seen), *_ended(command, facts))
        case Mark.DAMAGED:
            return (Doubtful(command, facts.reason or "its journal cannot be read"),)
        case _ as never:
            assert_never(never)


def _waiting_on_host(command: Command, facts: CommandFacts, when_gone: Finding) -> tuple[Finding, ...]:
    match facts.performer:
        case Presence.ALIVE:
            return (Living(command, orphaned=False),)
        case Presence.GONE:
            return (when_gone,)
        case Presence.UNKNOWN:
            return (Living(command, orphaned=False, unsure=True),)
        case _ as never:
            assert_never(never)


def _begun(command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    """The host was about to start the program. If it died there, only the processes can tell what became of it."""
    started = (Begun(command),) if command.state is CommandState.ARMED else ()
    if facts.performer is Presence.ALIVE:
        return (*started, Living(command, orphaned=False))
    if facts.performer is Presence.GONE and facts.agent is Presence.GONE:
        return (*started, Lost(command, "its host died while starting the program, and nothing of it is left"))
    return (*started, Living(command, orphaned=True, unsure=facts.agent is Presence.UNKNOWN))


def _running(command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    if facts.performer is Presence.ALIVE:
        return (Living(command, orphaned=False),)
    if facts.performer is Presence.GONE and facts.agent is Presence.GONE:
        return (CutShort(command, "its host died and its program is gone"),)
    return (Living(command, orphaned=True, unsure=facts.agent is Presence.UNKNOWN),)


def _ended(command: Command, facts: CommandFacts) -> tuple[Finding, ...]:
    ending = facts.ending
    if ending is None:
        return (Doubtful(command, "its journal says ended without saying how"),)
    if ending.cut is not None and facts.agent is not Presence.GONE:
        # Cut short, and something of it still lives: the turn is not over until that is gone.
        return (Living(command, orphaned=True, unsure=facts.agent is Presence.UNKNOWN),)
    return (TurnEnded(command, ending),)


def _acknowledged(command: Command, seen: Observation) -> tuple[Finding, ...]:
    return () if command.state is CommandState.ACKNOWLEDGED else (Acknowledgement(command, seen),)


def came_true(snapshot: Snapshot, resolved: Mapping[str, bool | None], now: datetime) -> tuple[Finding, ...]:
    """The open waits whose reason has gone by itself."""
    found: list[Finding] = []
    for wait in snapshot.waits:
        match wait.kind:
            case WaitKind.TASK:
                state = snapshot.others.get(wait.subject) if wait.subject else None  # type: ignore[call-overload]
                if state is TaskState.COMPLETED:
                    found.append(CameTrue(wait, "the task it waited for is completed"))
            case WaitKind.PATH | WaitKind.COMMIT:
                if resolved.get(wait.id):
                    found.append(CameTrue(wait, f"{wait.subject} is there"))
            case WaitKind.TIME | WaitKind.LIMIT:
                if wait.until is not None and wait.until <= now:
                    found.append(CameTrue(wait, "the time has come"))
            case WaitKind.CAP:
                if not wake.cap_reached(snapshot):
                    found.append(CameTrue(wait, "the cap was raised"))
            case WaitKind.HUMAN | WaitKind.PERMISSION:
                pass
            case _ as never:
                assert_never(never)
    return tuple(found)


def fence_members(snapshot: Snapshot, workspace: WorkspaceFacts | None) -> tuple[str, ...]:
    """What the fence is the digest of: identities and states, never times or counters."""
    task, talk, last = snapshot.task, snapshot.conversation, snapshot.last
    members = [
        f"task {task.id} {task.state} {task.standing}",
        f"conversation {talk.identity} lease {talk.lease_number}" if talk else "conversation none",
        f"last {last.id} {last.outcome}" if last else "last none",
        *(f"open {command.id} {command.state}" for command in snapshot.commands),
        *(f"wait {wait.id}" for wait in snapshot.waits),
    ]
    if task.claim is not None:
        members.append(f"claim {task.claim.evidence}")
    if workspace is not None:
        members.append(f"workspace {workspace.kind} {workspace.cursor}")
    return tuple(sorted(members))


def digest_of(members: Iterable[str]) -> str:
    """The fence: a sha256 over the members, each on its own line."""
    return hashlib.sha256("\n".join(members).encode()).hexdigest()


def proof_needed(snapshot: Snapshot, *, anyway: bool) -> bool:
    """Whether the next turn needs two reconciliations: after an end that was not seen, and for *continue anyway*."""
    last = snapshot.last
    unseen = last is not None and last.outcome in (
        AttemptOutcome.INTERRUPTED,
        AttemptOutcome.LOST,
        AttemptOutcome.RELEASED,
    )
    return anyway or unseen


def is_send(command: Command) -> bool:
    return command.kind is CommandKind.SEND
