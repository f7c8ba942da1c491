"""What can be told of a command now, from its journal and the process table.

A process is gone only when that was seen. While a host lives its journal is the truth and nothing else is
looked at; once it is gone the journal is read again, because it may have written until its last moment.
Whoever carries the command although its journal says it never began makes the journal damaged.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from tenuto.model.command import Command
from tenuto.model.evidence import CommandFacts, Ending, Mark, Presence
from tenuto.model.ids import CommandId
from tenuto.transports import processes
from tenuto.transports.host import journal, lineage
from tenuto.transports.host.journal import Journal
from tenuto.transports.host.launch import BADGE

ATTEMPT = "TENUTO_ATTEMPT"
COMMAND = "TENUTO_COMMAND"

UNDER_WAY = frozenset({Mark.CLAIMED, Mark.BEGUN, Mark.ACCEPTED})


def at_a_glance(folder: Path, command: Command) -> CommandFacts | None:
    """The facts while the host lives or has said that nobody is left; None when everybody has to be looked at."""
    seen = journal.read(folder, command.id)
    if seen.mark is Mark.FAILED or (seen.mark is Mark.ENDED and nobody_left(seen)):
        return facts(command, seen, presence(seen.host) if seen.host is not None else Presence.GONE, Presence.GONE)
    if seen.mark not in UNDER_WAY or seen.host is None or presence(seen.host) is not Presence.ALIVE:
        return None
    leader = presence(seen.agent) if seen.agent is not None else Presence.UNKNOWN
    # Its leader may have ended and others not: only a look at everybody could tell, and the host will.
    return facts(command, seen, Presence.ALIVE, leader if leader is Presence.ALIVE else Presence.UNKNOWN)


ELSEWHERE = "its journal was in another directory, or has been removed"


def of_turn(folder: Path, command: Command, registry: str, *, launched_here: bool) -> CommandFacts:
    """The facts of a turn or a check. Looks at every process of the machine; belongs in a thread."""
    performer, seen = _looked_at(folder, command.id, launched_here=launched_here)
    match seen.mark:
        case Mark.NONE | Mark.REVOKED:
            agent = _of(processes.carriers(COMMAND, command.id))
            if agent is Presence.ALIVE:
                lost = replace(seen, mark=Mark.DAMAGED, reason="its journal is gone although its program runs")
                return facts(command, lost, performer, agent)
            if not lineage.covers(folder, registry, command.epoch):
                lost = replace(seen, mark=Mark.DAMAGED, reason=ELSEWHERE)
                return facts(command, lost, unclaimed(command.id), agent)
            return facts(command, seen, performer, agent)
        case _:
            return facts(command, seen, performer, agent_of(seen, performer))


def _looked_at(folder: Path, command_id: CommandId, *, launched_here: bool) -> tuple[Presence, Journal]:
    """Whether the host is there, and its journal as it stands after that look: what a dead host wrote is all there.

    Who claims between the look and the reading is a host that has not been looked at: it is, and the journal is read
    again. Otherwise a turn that a supervisor of before hands over in that moment, and that ends before anybody looks
    again, would pass for one that never began (proofs/protocol.pml, -DTRUSTING).
    """
    first = journal.read(folder, command_id)
    performer = _performer(first, launched_here=launched_here)
    seen = journal.read(folder, command_id)
    if first.mark is Mark.NONE and seen.mark is not Mark.NONE:
        performer = _performer(seen, launched_here=launched_here)
        seen = journal.read(folder, command_id)
    return performer, seen


def of_halt(folder: Path, command: Command, *, working: bool) -> CommandFacts:
    """The facts of an interruption. One that nobody works at any more has ended if its target has, and else failed."""
    performer = Presence.ALIVE if working else _supervisor(journal.read(folder, command.id))
    seen = journal.read(folder, command.id)
    if performer is not Presence.GONE or seen.target is None or seen.mark not in (Mark.BEGUN, Mark.ACCEPTED):
        return facts(command, seen, performer, Presence.GONE)
    host, target = _looked_at(folder, seen.target, launched_here=False)
    agent = agent_of(target, host)
    if agent is Presence.GONE and host is Presence.GONE:
        seen = replace(seen, mark=Mark.ENDED, ending=Ending(exit_code=0, signal=None, cut=None))
    elif agent is not Presence.UNKNOWN and host is not Presence.UNKNOWN:
        seen = replace(seen, mark=Mark.FAILED, reason="what it was to end still runs, and nobody is ending it now")
    return facts(command, seen, performer, agent)


def agent_of(seen: Journal, performer: Presence) -> Presence:
    """Whether anything of the program is left: its leader, its group and session, and whoever carries it."""
    if seen.mark is Mark.FAILED or nobody_left(seen):
        return Presence.GONE
    if seen.host is not None and seen.host.boot and seen.host.boot != processes.boot_id():
        return Presence.GONE
    name, value = badge(seen)
    if seen.agent is not None:
        found = processes.belongings(seen.agent, name, value)
        if found is None:
            return Presence.UNKNOWN
        if found.certain:
            return Presence.ALIVE
        return Presence.UNKNOWN if found.doubtful else Presence.GONE
    since = seen.host.start if seen.host is not None else None
    if performer is Presence.GONE:
        # A child that its host has forked and that is not the program yet still carries what the host did. It can
        # only turn from that into the program, so this is asked first.
        forked = _of(processes.carriers(BADGE, seen.command_id, since=since))
        if forked is not Presence.GONE:
            return forked
    return _of(processes.carriers(name, value, since=since))


def nobody_left(seen: Journal) -> bool:
    """Whether the host ended by looking at everybody and saw no survivor; it can do so where it knows the leader."""
    return seen.agent is not None and seen.ending is not None and seen.ending.survivors == 0


def badge(seen: Journal) -> tuple[str, str]:
    """What everyone of this program carries in the environment: its attempt, or a check its command."""
    if seen.kind == "turn" and seen.attempt_id is not None:
        return ATTEMPT, seen.attempt_id
    return COMMAND, seen.command_id


def presence(who: processes.Identity) -> Presence:
    return processes.presence(who)


def facts(command: Command, seen: Journal, performer: Presence, agent: Presence) -> CommandFacts:
    return CommandFacts(
        command_id=command.id,
        attempt_id=seen.attempt_id if seen.attempt_id is not None else command.attempt_id,
        mark=seen.mark,
        performer=performer,
        agent=agent,
        reason=seen.reason,
        mendable=seen.mendable,
        ending=seen.ending,
        marked_at=seen.marked_at,
        heard_at=seen.heard_at,
    )


def unclaimed(command_id: CommandId) -> Presence:
    """Whether a host of this command is there that may not have claimed anything yet."""
    return _of(processes.carriers(BADGE, command_id))


def _performer(seen: Journal, *, launched_here: bool) -> Presence:
    if seen.host is not None:
        return presence(seen.host)
    match seen.mark:
        case Mark.REVOKED | Mark.FAILED:
            return Presence.GONE
        case Mark.NONE if launched_here:
            return Presence.ALIVE
        case _:
            return unclaimed(seen.command_id)


def _supervisor(seen: Journal) -> Presence:
    """The one that was ending somebody is a supervisor; this very one is not doing so (any more)."""
    if seen.host is None or seen.host == processes.identity_of(os.getpid()):
        return Presence.GONE
    return presence(seen.host)


def _of(found: tuple[processes.Identity, ...] | None) -> Presence:
    if found is None:
        return Presence.UNKNOWN
    return Presence.ALIVE if found else Presence.GONE
