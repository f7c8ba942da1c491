"""Hands for executors that carry commands out in their own process: a callback per command, under one journal.

The callback is `carry_out(command, marks)`: check the preconditions, `begun`, make the step, `accepted`, watch,
`ended`. Should it stop half way (an exception, the end of the process), the journal stays at its last mark, and what
follows from that is concluded by the supervisor. It never carries a command out twice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tenuto.model.evidence import Asking, Mark, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.transports import processes, wire
from tenuto.transports.executor_side.hands import Greeting, Sight, Tell
from tenuto.transports.executor_side.keeping import Keeping, Marks, seen_of
from tenuto.transports.host.journal import Journal

_LOG = logging.getLogger("tenuto.executor")

CarryOut = Callable[[wire.Command, Marks], Awaitable[None]]


class Eyes(Protocol):
    """What can be told of the agent that works on a command which this process does not carry (any more)."""

    async def agent(self, told: Journal) -> Presence:
        """Whether what was begun is still at work. UNKNOWN where that cannot be told: it never counts as gone."""
        ...


class Blind:
    """Eyes of an executor whose agents live and die with this process."""

    async def agent(self, told: Journal) -> Presence:
        """Gone with the process that carried it, where that is proven gone."""
        return performer_of(told)


@dataclass(frozen=True)
class Doing:
    """What a command that is being carried out waits for: leave that was asked, a service that is tried again.

    `quiet` is seconds since anything came from its program.
    """

    asks: tuple[Asking, ...] = ()
    retrying: str | None = None
    quiet: float | None = None


class Carrying:
    """Implements `Hands`. Commands of kinds that are not in `kinds` fail by name; `doing` tells what one waits for."""

    def __init__(
        self,
        keeping: Keeping,
        kinds: Mapping[str, CarryOut],
        eyes: Eyes | None = None,
        *,
        rank: Rank = Rank.JOURNAL,
        doing: Callable[[CommandId], Doing | None] = lambda command: None,
    ) -> None:
        self._keeping = keeping
        self._kinds = kinds
        self._eyes = eyes or Blind()
        self._rank = rank
        self._doing = doing
        self._carried: dict[CommandId, Marks] = {}
        self.serves: tuple[str, ...] = ()

    def greeting(self) -> Greeting:
        return replace(self._keeping.greeting(), serves=self.serves)

    def incarnation(self) -> str:
        return self._keeping.incarnation()

    def over(self) -> Sequence[CommandId]:
        return self._keeping.over()

    def forget(self, commands: Collection[CommandId]) -> None:
        self._keeping.forget(commands)

    def follow(self, registry: str, epoch: int) -> None:
        self._keeping.follow(registry, epoch)

    @property
    def carried(self) -> frozenset[CommandId]:
        """What is being carried out now."""
        return frozenset(self._carried)

    async def carry_out(self, command: wire.Command, tell: Tell) -> None:
        """Claim, and carry out; say what the journal says where somebody has claimed before."""
        marks = await self._keeping.claim(command, tell)
        if marks is None:
            tell(already(self._keeping.read(command.command)))
            return
        self._carried[command.command] = marks
        try:
            work = self._kinds.get(command.kind)
            if work is None:
                await marks.failed(f"this executor carries out no {command.kind[:64]}", mendable=True)
                return
            await work(command, marks)
        except Exception:  # noqa: BLE001 - one command's fault must not end the others
            _LOG.exception("carrying out %s failed", command.command)
            if marks.last is Mark.CLAIMED:
                await marks.failed("the executor failed before it began")
        finally:
            self._carried.pop(command.command, None)
            marks.close()

    async def look(self, subject: wire.Subject) -> Sight:
        """The journal's last mark; alive while this process carries it, and else what eyes can tell."""
        told = self._keeping.read(subject.command)
        seen = seen_of(told)
        if subject.command in self._carried:
            doing = self._doing(subject.command)
            if doing is not None:
                seen = replace(seen, asks=doing.asks, retrying=doing.retrying, quiet=doing.quiet)
            return Sight(replace(seen, performer=Presence.ALIVE, agent=Presence.ALIVE), self._rank)
        if told.mark in (Mark.NONE, Mark.REVOKED, Mark.FAILED):
            return Sight(replace(seen, performer=Presence.GONE, agent=Presence.GONE), self._rank)
        agent = await self._eyes.agent(told)
        return Sight(replace(seen, performer=performer_of(told), agent=agent), self._rank)

    async def revoke(self, revoke: wire.Revoke) -> Mark:
        return await self._keeping.revoke(revoke)


def performer_of(told: Journal) -> Presence:
    """Whether the process that claimed a command is there; this very process does not carry it any more."""
    if told.host is None:
        return Presence.UNKNOWN
    if told.host.boot and told.host.boot != processes.boot_id():
        return Presence.GONE
    if told.host == processes.identity_of(os.getpid()):
        return Presence.GONE
    return processes.presence(told.host)


def already(told: Journal) -> wire.FromExecutor:
    """What is said of a command whose place is taken: how far it got, and never that it is begun anew."""
    match told.mark:
        case Mark.FAILED | Mark.REVOKED if told.marked_at is not None:
            reason = told.reason or "it was revoked"
            return wire.Failed(told.command_id, told.marked_at, reason, no_effect=True, mendable=told.mendable)
        case Mark.ACCEPTED if told.marked_at is not None:
            return wire.Accepted(told.command_id, told.marked_at, told.proof)
        case _:
            return wire.Unknown(told.command_id, f"it is {told.mark} already")
