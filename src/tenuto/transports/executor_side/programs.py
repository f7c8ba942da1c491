"""Hands that run plain programs: the host executor of this machine, spoken for over the wire.

The journal, the hosts and the process table are this machine's. A place that the supervisor gave (its socket, its
spool) is kept only where there is one here. A host outlives this process too: whoever speaks for the journal next tells
how its program ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from tenuto.model.command import Command, CommandKind
from tenuto.model.evidence import CommandFacts, Mark
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.lifecycle import CommandState
from tenuto.ports import Check, Clock, Order, Turn
from tenuto.transports import ordered, wire
from tenuto.transports.executor_side.carrying import already
from tenuto.transports.executor_side.hands import Greeting, Sight, Tell
from tenuto.transports.executor_side.keeping import Keeping
from tenuto.transports.host import journal, lineage
from tenuto.transports.host.executor import HostExecutor

PLACES: Final = ("TENUTO_API", "TENUTO_SPOOL", "TENUTO_HOME")
"""What is given to a program and is a place on a machine."""

KEPT: Final = 4096
"""Of how many commands it is remembered what was told last."""

Make = Callable[[str, Callable[[CommandId], None]], HostExecutor]
"""Makes the host executor of a registry, given who hears of journals that changed."""


class Programs:
    """Implements `Hands` over a host executor, which is made when the first supervisor is followed."""

    def __init__(self, keeping: Keeping, make: Make, clock: Clock) -> None:
        self._keeping = keeping
        self._make = make
        self._clock = clock
        self._host: HostExecutor | None = None
        self._opening = asyncio.Lock()
        self._epoch = 0
        self._told: dict[CommandId, Mark] = {}
        self._tell: Tell = lambda frame: None

    def speaks(self, tell: Tell) -> None:
        """Who is told of marks that hosts write by themselves."""
        self._tell = tell

    async def close(self) -> None:
        """Stop listening to hosts; they and their programs go on."""
        if self._host is not None:
            await self._host.close()

    def greeting(self) -> Greeting:
        return self._keeping.greeting()

    def incarnation(self) -> str:
        return self._keeping.incarnation()

    def over(self) -> Sequence[CommandId]:
        return self._keeping.over()

    def forget(self, commands: Collection[CommandId]) -> None:
        self._keeping.forget(commands)

    def follow(self, registry: str, epoch: int) -> None:
        self._keeping.follow(registry, epoch)
        lineage.join(self._keeping.folder, registry, epoch)
        self._epoch = epoch

    async def carry_out(self, command: wire.Command, tell: Tell) -> None:
        """Hand the order to a host of its own; its marks are told as it writes them."""
        mine = _command(command, self._clock)
        if mine is None:
            await self._refuse(command, f"this executor carries out no {command.kind[:64]}", tell)
            return
        try:
            order = ordered.order_of(command.payload)
        except ordered.NotAnOrder as error:
            await self._refuse(command, str(error), tell)
            return
        if isinstance(order, Turn | Check):
            order = _placed(order)
        host = await self._opened()
        await host.carry_out(mine, order)
        self._rung(command.command)
        tell(already(self._keeping.read(command.command)))

    async def look(self, subject: wire.Subject) -> Sight:
        """What the journal and the process table say."""
        kind = subject.kind if subject.kind in set(CommandKind) else CommandKind.SEND
        about = _about(subject.command, CommandKind(kind), subject.task, subject.epoch, self._clock)
        host = await self._opened()
        facts = (await host.look(replace(about, attempt_id=subject.attempt))).facts
        assert isinstance(facts, CommandFacts)
        return Sight(
            wire.CommandSeen(
                mark=facts.mark,
                performer=facts.performer,
                agent=facts.agent,
                reason=facts.reason,
                mendable=facts.mendable,
                ending=facts.ending,
                marked_at=facts.marked_at,
                proof=facts.proof,
                at_work=facts.launched_here,
                quiet=_since(facts.heard_at, self._clock.now()),
            )
        )

    async def revoke(self, revoke: wire.Revoke) -> Mark:
        return await self._keeping.revoke(revoke)

    async def _opened(self) -> HostExecutor:
        async with self._opening:
            if self._host is None:
                made = self._make(self._keeping.registry or "", self._rung)
                await made.open(self._epoch)
                self._host = made
            self._host.led_by(self._epoch)
            return self._host

    async def _refuse(self, command: wire.Command, reason: str, tell: Tell) -> None:
        marks = await self._keeping.claim(command, tell)
        if marks is None:
            tell(already(self._keeping.read(command.command)))
            return
        await marks.failed(reason, mendable=True)
        marks.close()

    def _rung(self, command_id: CommandId) -> None:
        """Tell what a host has written since it was told last."""
        told = journal.read(self._keeping.folder, command_id)
        if told.mark is self._told.get(command_id) or told.marked_at is None:
            return
        self._told.pop(command_id, None)
        self._told[command_id] = told.mark
        while len(self._told) > KEPT:
            del self._told[next(iter(self._told))]
        match told.mark:
            case Mark.CLAIMED:
                self._tell(wire.Received(command_id))
            case Mark.BEGUN:
                self._tell(wire.Begun(command_id, told.marked_at))
            case Mark.ENDED if told.ending is not None:
                self._tell(wire.Ended(command_id, told.marked_at, told.ending, told.proof))
            case Mark.ACCEPTED | Mark.FAILED:
                self._tell(already(told))
            case _:
                pass


def _since(moment: datetime | None, now: datetime) -> float | None:
    return max((now - moment).total_seconds(), 0.0) if moment is not None else None


def _command(told: wire.Command, clock: Clock) -> Command | None:
    """The command as the host executor knows one; None for a kind that no program is run for."""
    if told.kind not in set(CommandKind):
        return None
    about = _about(told.command, CommandKind(told.kind), told.task, told.epoch, clock)
    return replace(about, attempt_id=told.attempt, scopes=told.scopes, deadline=told.deadline)


def _about(command: CommandId, kind: CommandKind, task: TaskId, epoch: int, clock: Clock) -> Command:
    now = clock.now()
    return Command(
        id=command,
        revision=1,
        kind=kind,
        task_id=task,
        attempt_id=None,
        conversation_id=None,
        executor=HostExecutor.name,
        state=CommandState.ARMED,
        epoch=epoch,
        fence="",
        scopes=(),
        created_at=now,
        armed_at=now,
    )


def _placed(order: Turn | Check) -> Order:
    """The order with the places that are here, too."""
    given = {
        name: value for name, value in order.given.items() if name not in PLACES or (value and Path(value).exists())
    }
    return replace(order, given=given)
