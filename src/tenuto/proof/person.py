"""The operator of a proof: gives a scenario's verbs, and does whatever stands in attention.

It acts on nothing but what the desk shows as attention, so a question that never got there is never answered and the
case does not come to its end. Every verb carries a key of its own name: after a crash the whole scenario is driven
again from its beginning, and what was done already is only replayed.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable

from tenuto.core.attention import Item
from tenuto.engine.desk import Caller, Desk, Done, Order
from tenuto.model.command import Attempt, Command
from tenuto.model.fact import Event, FactKind
from tenuto.model.faults import Conflict, Refused
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.lifecycle import AttemptState, CommandState
from tenuto.model.permission import Verdict
from tenuto.model.snapshot import Role
from tenuto.model.work import HUMAN_WAITS, Task, Wait, WaitKind
from tenuto.ports import Ledger
from tenuto.proof.stage import Stage
from tenuto.wiring.daemon import Supervisor

BREATH = 0.01
"""Seconds between two looks."""

ANSWER = "go on, and look first"

OPERATOR = Caller(Role.OPERATOR, "the operator")


class Person:
    """Drives one life of one scenario. `life` counts from 1; `leaves` are kinds of attention it does not act on."""

    def __init__(
        self,
        supervisor: Supervisor,
        stage: Stage,
        life: int,
        leaves: frozenset[str],
        mend: Callable[[Stage], None],
    ) -> None:
        self._supervisor = supervisor
        self._leaves = leaves
        self._mend = mend
        self.stage = stage
        self.life = life
        self.task_id = TaskId("")

    @property
    def desk(self) -> Desk:
        return self._supervisor.desk

    @property
    def ledger(self) -> Ledger:
        """The registry, for what the desk does not show."""
        return self._supervisor.ledger

    async def create(self, order: Order) -> None:
        """Make the scenario's one run and task."""
        done = await self.desk.create(OPERATOR, order, key="create")
        self.task_id = TaskId(str(done.result["task"]))

    def ring(self) -> None:
        """Have the task looked at now."""
        self._supervisor.wheel.ring(self.task_id)

    def stop(self) -> None:
        """Ask the supervisor to stop."""
        self._supervisor.residency.stop()

    # -- verbs, each at most once

    async def once(self, key: str, verb: Callable[[str], Awaitable[Done]]) -> None:
        """Give a verb under its key, again where rows moved too fast; a refusal is an answer too."""
        while True:
            try:
                await verb(key)
            except Conflict:
                await asyncio.sleep(BREATH)
            except Refused:
                return
            else:
                return

    # -- waiting

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until it is true, doing meanwhile whatever only a person can; the life's own limit bounds it.

        Looks again only when something was recorded or the agent has been at work, so that waiting costs little.
        """
        before = (-1, -1)
        while True:
            now = (self._supervisor.ledger.last_event(), self.stage.effects_size)
            if now != before:
                if true():
                    return
                for item in self.desk.attention():
                    await self._attend(item)
                before = now
            await asyncio.sleep(BREATH)

    async def until_connected(self) -> None:
        """Look until its supervisor leads and can hand over commands."""
        for _ in iter(self._supervisor.executor.connected, True):
            await asyncio.sleep(BREATH)

    async def effects(self, count: int) -> None:
        """Until the agent has been seen at work `count` times."""
        await self.until(lambda: len(self.stage.effects) >= count or self.task.terminal)

    async def ended(self, count: int) -> None:
        """Until `count` turns have ended that were not unsent."""
        await self.until(lambda: self.task.terminal or self._ended() >= count)

    async def happened(self, kind: FactKind) -> None:
        """Until a fact of this kind was recorded about the task."""
        await self.until(lambda: self.task.terminal or any(e.fact.kind is kind for e in self._events()))

    async def over(self) -> None:
        """Until the task has ended and nothing of it is under way any more."""
        await self.until(lambda: self.task.terminal and not self._busy())

    @property
    def task(self) -> Task:
        return self.desk.task(self.task_id)

    def waits(self, kind: WaitKind) -> tuple[Wait, ...]:
        """The open waits of a kind."""
        return tuple(wait for wait in self.desk.waits(self.task_id) if wait.kind is kind)

    def _events(self) -> tuple[Event, ...]:
        return self.desk.events(0, 1000, task_id=self.task_id)

    def _attempts(self) -> tuple[Attempt, ...]:
        return self._supervisor.ledger.attempts(self.task_id, 200)

    def _ended(self) -> int:
        return sum(one.state is AttemptState.ENDED and one.outcome != "unsent" for one in self._attempts())

    def _busy(self) -> bool:
        live = any(one.state is AttemptState.LIVE for one in self._attempts())
        return live or bool(self._open())

    def _open(self) -> tuple[Command, ...]:
        return self.desk.commands(task_id=self.task_id, only_open=True)

    # -- attention

    async def _attend(self, item: Item) -> None:
        """Do what the item asks for."""
        if item.task_id != self.task_id or item.kind in self._leaves:
            return
        self._mend(self.stage)
        if item.kind == "stalled":
            since = self.task.stalled_at
            key = f"stall {since.isoformat() if since else ''}"
            await self.once(key, lambda key: self.desk.resume(OPERATOR, self.task_id, stalled=True, key=key))
        elif item.kind == "completion-ready":
            await self.once("close", lambda key: self.desk.complete(OPERATOR, self.task_id, "it said so", key=key))
        elif item.kind == "ambiguous command":
            if not self.waits(WaitKind.HUMAN):  # an answer to its question is the better way
                await self._release()
        else:
            for wait in self.desk.waits(self.task_id):
                if wait.kind in HUMAN_WAITS:
                    await self._answer(wait)

    async def _answer(self, wait: Wait) -> None:
        key = f"answer {wait.id}"
        if wait.kind is WaitKind.CAP:
            more = {"max-attempts": str(self.task.attempts + 2)}
            await self.once(key, lambda key: self.desk.set_policy(OPERATOR, self.task_id, more, key=key))
        elif wait.kind is WaitKind.PERMISSION:
            allow, task = Verdict.ALLOW, self.task_id
            await self.once(key, lambda key: self.desk.answer(OPERATOR, task, "", verdict=allow, wait=wait.id, key=key))
        else:
            await self.once(key, lambda key: self.desk.answer(OPERATOR, self.task_id, ANSWER, wait=wait.id, key=key))

    async def _release(self) -> None:
        for command in self._open():
            if command.state is CommandState.AMBIGUOUS:
                verb = functools.partial(self._verdict, command.id)
                await self.once(f"release {command.id}", verb)

    async def _verdict(self, command_id: CommandId, key: str) -> Done:
        return await self.desk.release(OPERATOR, command_id, happened=True, key=key)
