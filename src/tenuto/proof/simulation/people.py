"""Agents and operators: what they do, and when, drawn from the chance of their task.

An agent works for minutes to hours, and then says that it goes on, that it is done, that it waits for somebody, says
nothing, says two things, repeats the template, or is killed. An operator comes by a few times a day, settles what only
a person can, and now and then pauses, cancels, asks or says something.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Protocol

from tenuto.core.signal import TEMPLATE
from tenuto.engine.desk import Caller, Desk
from tenuto.model.command import Command, CommandKind
from tenuto.model.evidence import Cut, Ending
from tenuto.model.faults import Corrupt, Mistake, NoSupervisor, OutOfReach, StorageFull
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.message import MessagePolicy
from tenuto.model.snapshot import Role
from tenuto.model.work import AutoResume, Task, WaitKind
from tenuto.ports import Reader
from tenuto.proof.simulation.accounts import Accounts, account_of
from tenuto.proof.simulation.laws import Laws
from tenuto.proof.simulation.machine import Died, takes_words
from tenuto.proof.simulation.plan import Plan
from tenuto.proof.simulation.virtual import VirtualClock

OPERATOR = Caller(Role.OPERATOR, "operator")
HOUR = 3600.0
#: What an agent's turn comes to, and how often of a hundred times.
SAYS = {
    "working": 46,
    "idle": 10,
    "complete": 12,
    "blocked": 6,
    "silent": 4,
    "two": 2,
    "template": 2,
    "killed": 4,
    "waits": 10,
    "limit": 3,
    "fails": 1,
}
#: What an operator does that nobody needed, and how often of a hundred visits.
ACTS = {
    "nothing": 40,
    "pause": 12,
    "cancel": 4,
    "continue": 12,
    "say": 12,
    "checkpoint": 6,
    "hold": 4,
    "manual": 4,
    "policy": 4,
    "lift": 2,
}
#: What is told by a verb of the desk.
VERBS = frozenset({"waits", "limit", "fails"})


class Universe(Protocol):
    """What people need of the world they live in."""

    plan: Plan
    laws: Laws
    clock: VirtualClock
    draining: bool

    @property
    def ground(self) -> Changing: ...

    @property
    def accounts(self) -> Accounts: ...

    @property
    def site(self) -> Pressing: ...

    @property
    def ledger(self) -> Reader: ...

    @property
    def desk(self) -> Desk | None: ...

    def say(self, text: str) -> None: ...

    def chance(self, command: Command) -> Random: ...

    def tasks(self) -> tuple[Task, ...]: ...

    async def asks(self, act: Callable[[Desk], Awaitable[object]], tries: int) -> bool: ...


class Changing(Protocol):
    """Where the world's files are."""

    def changed(self, cwd: str) -> None: ...


class Pressing(Protocol):
    """Where the world's pages are."""

    def pressed(self, subject: str) -> bool: ...


NOT_DONE = (Mistake, NoSupervisor, StorageFull, Corrupt, OutOfReach, Died)


class Agents:
    """Implements `machine.Mind`."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe

    def lasts(self, command: Command) -> float:
        """Checks take minutes, turns from two minutes to three hours."""
        chance = self._universe.chance(command)
        if command.kind is CommandKind.CHECK:
            return chance.uniform(5, 500)
        if self._universe.accounts.reset(self._account(command)) is not None:
            return chance.uniform(3, 60)
        return min(chance.lognormvariate(7.6, 0.9), 3 * HOUR)

    def _account(self, command: Command) -> str | None:
        return account_of(self._universe.laws.tasks[command.task_id].agent)

    async def ends(self, command: Command) -> Ending | None:
        """Say what it has to say, and end."""
        chance, universe = self._universe.chance(command), self._universe
        if command.kind is CommandKind.CHECK:
            return Ending(0 if universe.draining or chance.random() < 0.7 else 1, None, None)
        account = self._account(command)
        if account is not None and universe.accounts.reset(account) is not None:
            universe.say(f"agent of {command.id} ({command.task_id}) meets the limit of {account}")
            return universe.accounts.hindered(account, chance)
        said = chance.choices(list(SAYS), list(SAYS.values()))[0]
        if said in VERBS and universe.laws.tasks[command.task_id].agent.in_page:
            said = "working"  # a chat in a page has no verbs
        if universe.draining:
            said = "complete"
        elif not universe.plan.mishaps and said in ("silent", "two", "template", "killed"):
            said = "working"
        universe.say(f"agent of {command.id} ({command.task_id}) ends: {said}")
        if said != "idle":
            universe.ground.changed(universe.laws.tasks[command.task_id].cwd)
        match said:
            case "working" | "idle":
                return _signal("status: working", "summary: a step", *(["progress: more"] if said == "working" else []))
            case "complete":
                return _signal("status: complete", "summary: all of it", "evidence: commit abc")
            case "blocked":
                return _signal("status: blocked", "summary: stuck", "needs: a decision of the operator")
            case "silent":
                return Ending(chance.choice((0, 0, 1)), None, None)
            case "two":
                return Ending(0, None, None, ("status: working\nsummary: a",) * 2, 2)
            case "template":
                return Ending(0, None, None, (TEMPLATE,), 1)
            case "killed":
                return Ending(None, 9, Cut.KILLED)
            case _:
                await self._tell(command, said, chance)
                return _signal("status: working", "summary: told")

    async def _tell(self, command: Command, said: str, chance: Random) -> None:
        """Use a verb from within the turn."""
        universe, task = self._universe, command.task_id
        row = universe.ledger.task(task)
        caller = Caller(Role.AGENT, "agent", task, row.lease_number if row is not None else 0)
        until = universe.clock.now() + timedelta(seconds=chance.uniform(0.5 * HOUR, 18 * HOUR))
        key = f"word of {command.id}"

        async def act(desk: Desk) -> None:
            if said == "fails":
                await desk.fail(caller, task, "it cannot be done", key=key)
            else:
                kind = WaitKind.LIMIT if said == "limit" else WaitKind.TIME
                await desk.wait(caller, task, kind, "until then", until=until, key=key)

        await universe.asks(act, tries=3)


def _signal(*lines: str) -> Ending:
    return Ending(0, None, None, ("\n".join(lines),), 1)


class Operator:
    """One person for the whole world."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._chance = Random(f"operator of {universe.plan.seed}")  # noqa: S311 - played chance, not a secret
        self._visit = 0

    async def live(self) -> None:
        """Come by every few hours, for as long as the world lasts."""
        while True:
            draining = self._universe.draining
            await asyncio.sleep(
                self._chance.uniform(0.5 * HOUR, HOUR) if draining else self._chance.uniform(HOUR, 8 * HOUR)
            )
            self._visit += 1
            await self._settle()
            if not draining:
                await self._meddle()

    async def watch(self) -> None:
        """Read along now and then, and put words into a turn that is under way."""
        chance, now = Random(f"watch of {self._universe.plan.seed}"), MessagePolicy.STEER_NOW  # noqa: S311 - played
        for number in itertools.count():
            await asyncio.sleep(chance.uniform(0.3 * HOUR, 2 * HOUR))
            laws = self._universe.laws
            tasks = [task for task in laws.under_way() if takes_words(laws.tasks[task].agent)]
            if tasks and not self._universe.draining:
                task, key = chance.choice(tasks), f"words {number}"
                why = "it goes the wrong way" if chance.random() < 0.4 else None
                await self._do(Desk.say, task, f"mind step {number}", policy=now, corrective=why, key=key)

    async def _settle(self) -> None:
        """Whatever only a person can settle."""
        universe = self._universe
        desk = universe.desk
        if desk is None:
            return
        for number, item in enumerate(desk.attention()):
            if item.task_id is None or (not universe.draining and self._chance.random() < 0.15):
                continue
            task, key = item.task_id, f"visit {self._visit} item {number}"
            match item.kind:
                case "ambiguous command":
                    await self._release(task, key)
                case "stalled" if self._chance.random() < 0.3:
                    await self._do(Desk.continue_, task, anyway=True, key=key)
                case "stalled":
                    await self._do(Desk.resume, task, stalled=True, key=key)
                case "cap wait":
                    more = {"max-attempts": str(desk.task(task).attempts + 10)}
                    await self._do(Desk.set_policy, task, more, key=key)
                case _:
                    asked = universe.laws.asked(task)
                    wait = asked[number % len(asked)] if asked else None
                    if wait is not None and universe.site.pressed(wait.subject or ""):
                        universe.say(f"operator: does in the browser what was asked: {wait.question}")
                        continue
                    named = wait.id if wait is not None and len(asked) > 1 else None
                    await self._do(Desk.answer, task, "go on", wait=named, key=key)
        for row in universe.tasks():
            if row.paused_at is not None and (universe.draining or self._chance.random() < 0.5):
                await self._do(Desk.resume, row.id)
            if row.auto_resume is AutoResume.MANUAL and (universe.draining or self._chance.random() < 0.5):
                await self._do(Desk.set_policy, row.id, {"auto-resume": "on"}, key=f"visit {self._visit} {row.id}")
        if desk.registry().held_at is not None:
            await self._do(Desk.hold, lift=True)

    async def _release(self, task: TaskId, key: str) -> None:
        """Look, and give the verdict that is true; leave alone what still acts."""
        universe = self._universe
        if universe.laws.alive[task]:
            return
        for command in universe.ledger.commands(20, task_id=task, only_open=True):
            happened = bool(universe.laws.effects[CommandId(command.id)])
            await self._do(Desk.release, command.id, happened=happened, key=f"{key} {command.id}")

    async def _meddle(self) -> None:
        """Something nobody needed."""
        tasks = self._universe.tasks()
        if not tasks:
            return
        task, chance, key = self._chance.choice(tasks).id, self._chance, f"visit {self._visit} more"
        match chance.choices(list(ACTS), list(ACTS.values()))[0]:
            case "pause":
                await self._do(Desk.pause, task, key=key)
            case "cancel":
                await self._do(Desk.cancel, task, reason="enough", key=key)
            case "continue":
                await self._do(Desk.continue_, task, anyway=chance.random() < 0.5, key=key)
            case "say":
                await self._do(Desk.say, task, "mind the gap", key=key)
            case "manual":
                await self._do(Desk.set_policy, task, {"auto-resume": "manual"}, key=key)
            case "policy":
                run, delay = self._universe.laws.tasks[task].run_id, chance.uniform(600, 20_000)
                await self._do(Desk.set_policy, run, {"live-spacing": f"{delay:.0f}"}, key=key)
            case "lift":
                for limit in self._universe.ledger.limits(3, only_open=True):
                    await self._do(Desk.lift_limit, limit.id, key)
            case "checkpoint":
                await self._do(Desk.request_checkpoint, task, key=key)
            case "hold":
                await self._do(Desk.hold)
            case _:
                pass

    async def _do(self, verb: Callable[..., Awaitable[object]], *given: object, **named: object) -> None:
        """Use a verb of the desk as the operator."""
        self._universe.say(f"operator: {verb.__name__} {' '.join(map(str, given))}")

        async def act(desk: Desk) -> None:
            await verb(desk, OPERATOR, *given, **named)

        await self._universe.asks(act, tries=2)
