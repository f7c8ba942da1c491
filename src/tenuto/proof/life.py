"""One life of a supervisor in a process of its own: forked, driven through a scenario, and killed where its fuse says.

The child is a copy of a process that has imported everything and started no thread. It never returns into its
parent's code: it ends by its own exit code, or it is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NoReturn

from tenuto.engine.cycle import Deposed
from tenuto.engine.residency import LIFE, NotFree
from tenuto.model.evidence import Presence
from tenuto.model.faults import NoSupervisor
from tenuto.proof import talks
from tenuto.proof.agency import played
from tenuto.proof.elsewhere import admit
from tenuto.proof.fuse import Fuses, KillFuse, Recorder
from tenuto.proof.person import BREATH, Person
from tenuto.proof.scenarios import Scenario
from tenuto.proof.stage import Stage
from tenuto.wiring.daemon import Supervisor, assembled, myself, serve
from tenuto.wiring.world import holder_presence


class End(IntEnum):
    """How a life ended that was not killed."""

    OVER = 0
    FAULT = 1
    STOPPED = 3
    TOO_LONG = 4
    DEPOSED = 5


@dataclass(frozen=True)
class Plan:
    """What is killed in one life: the supervisor at the n-th passing of a point, the n-th host at a point of its own.

    `pause` stops the supervisor where it would be killed, `usurp` takes the lease from a living one, `standby` waits
    for the first one. `limit` is how many seconds the life may take.
    """

    number: int
    point: tuple[str, int] | None = None
    host: tuple[str, int] | None = None
    pause: bool = False
    usurp: bool = False
    standby: bool = False
    limit: float = 15.0


Alter = Callable[[Supervisor], None]


def begin(stage: Stage, scenario: Scenario, plan: Plan, alter: Alter = lambda supervisor: None) -> int:
    """Fork a life; the pid of its process, which the caller waits for. `alter` spoils it, to prove the judge."""
    child = os.fork()
    if child == 0:
        _live(stage, scenario, plan, alter)
    return child


def _live(stage: Stage, scenario: Scenario, plan: Plan, alter: Alter) -> NoReturn:
    code = End.FAULT
    try:
        log = os.open(stage.home / f"life.{plan.number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = asyncio.run(_lead(stage, scenario, plan, alter))
    except BaseException:  # noqa: BLE001 - this is a copy of the parent: whatever happens, it must not go on as one
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


async def _lead(stage: Stage, scenario: Scenario, plan: Plan, alter: Alter) -> End:
    parts: list[Supervisor] = []
    hosts = 0

    def passed(point: str, count: int) -> None:
        """Just before an order is made: arm the fuse of the host that gets it, or take it out."""
        nonlocal hosts
        if (happens := scenario.met.get(point)) is not None:
            happens(stage)
        if point in ("arm.committed", "check.committed") and parts:
            hosts += 1
            chosen = plan.host is not None and plan.host[1] == hosts
            parts[0].executor.host_fuse = plan.host[0] if plan.host is not None and chosen else None
            if chosen:
                stage.mark("host.armed")

    kill = KillFuse(*(plan.point or ("", 0)), signal.SIGSTOP if plan.pause else signal.SIGKILL)
    fuse = Fuses(Recorder(stage.passed(plan.number), passed), kill)
    async with assembled(stage.settings(scenario.policy), fuse=fuse) as supervisor:
        parts.append(supervisor)
        if plan.usurp:
            await _usurp(supervisor)
        if scenario.agency:
            played(supervisor, stage)
        if scenario.talks is not None:
            talks.stands(supervisor, stage)
        alter(supervisor)
        try:
            async with asyncio.timeout(plan.limit):
                return await _serve(supervisor, stage, scenario, plan)
        except TimeoutError:
            await _tell(supervisor, stage, plan.number)
            return End.TOO_LONG


async def _usurp(supervisor: Supervisor) -> None:
    """Take the lease from whoever has it, and give it back: as if its fifteen seconds had run out."""
    now = supervisor.clock.now()
    me = replace(myself(supervisor.settings, supervisor.minter, supervisor.clock), expires_at=now + LIFE)
    mine = await supervisor.ledger.lead(me, lambda holder: True)
    if mine is not None:
        await supervisor.ledger.resign(mine, now)


async def _serve(supervisor: Supervisor, stage: Stage, scenario: Scenario, plan: Plan) -> End:
    person = Person(supervisor, stage, plan.number, scenario.leaves, scenario.mend)
    ends: list[End] = []

    async def drive() -> None:
        await person.until_connected()
        if scenario.elsewhere:
            await admit(person)
        await person.create(scenario.order(stage))
        await scenario.script(person)
        if scenario.lives <= plan.number:
            await person.over()
            ends.append(End.OVER)
            supervisor.residency.stop()

    async def resident() -> None:
        await _free(supervisor, stage, plan)
        while isinstance(await serve(supervisor), NotFree):
            await _free(supervisor, stage, plan)
        if not ends:
            raise _Stopped

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(resident(), name="resident")
            group.create_task(drive(), name="person")
    except* (Deposed, NoSupervisor):
        ends.append(End.DEPOSED)
    except* _Stopped:
        ends.append(End.STOPPED)
    return ends[-1]


async def _free(supervisor: Supervisor, stage: Stage, plan: Plan) -> None:
    """Wait, only looking, while another leads; one that stands by also waits for the first to have led, or died."""
    while True:
        holder = supervisor.ledger.leadership()
        if holder is None and (not plan.standby or (stage.home / "died").exists()):
            return
        if holder is not None and (holder.released_at is not None or holder_presence(holder) is Presence.GONE):
            return
        await asyncio.sleep(BREATH)


class _Stopped(Exception):
    """The supervisor was asked to stop before the scenario was over."""


async def _tell(supervisor: Supervisor, stage: Stage, number: int) -> None:
    """Say why it was not over in time: the rungs of every unfinished task, and what stands in attention."""
    lines = []
    for task in supervisor.desk.tasks():
        lines.append(f"{task.id} {task.state} {task.standing}")
        explained = await supervisor.desk.explain(task.id)
        lines += [f"  because {rung.rung}: {rung.sentence}" for rung in explained.rungs]
        lines.append(f"  intent {explained.intent}")
    lines += [f"attention: {item.kind}: {item.question}" for item in supervisor.desk.attention()]
    lines += [f"trouble: {text}" for text in supervisor.desk.troubles()]
    stage.tell(f"why.{number}", lines)
