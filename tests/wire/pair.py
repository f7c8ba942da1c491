"""A supervisor's bridge and an executor's peer, joined by a socket in memory that a test may cut anywhere.

async with paired(tmp_path) as it:
    ...                       # it.world is a whole supervisor whose one executor is at the other end of a wire
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.support.world import OPERATOR, Counting, SetClock, Still

from tenuto.engine.cycle import Cycle, Surroundings
from tenuto.engine.desk import Desk, Order
from tenuto.model.evidence import Cut, Ending, How
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.snapshot import Leadership
from tenuto.model.work import Agent
from tenuto.ports import NoFuse
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.transports import wire
from tenuto.transports.bridge import Bridge, Hooks
from tenuto.transports.executor_side.carrying import Carrying
from tenuto.transports.executor_side.keeping import Keeping, Marks
from tenuto.transports.executor_side.peer import Me, Peer
from tenuto.transports.remote import Executors

NAME = "agent:test"


class SteadyClock(SetClock):
    """The world's time stands still; what is awake goes on."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class End:
    """One end of a socket in memory."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self.other: End | None = None
        self.closed = False
        self.before: Callable[[str], None] = lambda frame: None
        self.after: Callable[[str], None] = lambda frame: None

    async def send(self, text: str) -> None:
        name = str(json.loads(text or "{}").get("frame"))
        self.before(name)
        if self.closed or self.other is None:
            raise ConnectionError("closed")
        self.other.inbox.put_nowait(text)
        self.after(name)
        await asyncio.sleep(0)

    async def receive(self) -> str | None:
        if self.closed and self.inbox.empty():
            return None
        return await self.inbox.get()

    async def close(self, code: int, reason: str) -> None:
        self.cut()

    def cut(self) -> None:
        """Both ends are closed; what is on its way arrives or does not, as it stands in the queues."""
        for end in (self, self.other):
            if end is not None and not end.closed:
                end.closed = True
                end.inbox.put_nowait(None)


@dataclass
class Scripted:
    """An agent's turns: what happens outside is written down, and each turn ends when a test says how."""

    effects: list[CommandId] = field(default_factory=list)
    going: dict[CommandId, asyncio.Future[Ending]] = field(default_factory=dict)
    by_itself: Ending | None = None

    async def send(self, command: wire.Command, marks: Marks) -> None:
        """One turn."""
        await marks.begun()
        self.effects.append(command.command)
        await marks.accepted(session="s-1", turn=f"u-{len(self.effects)}")
        future: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.going[command.command] = future
        ending = self.by_itself if self.by_itself is not None else await future
        await marks.ended(ending)

    async def interrupt(self, command: wire.Command, marks: Marks) -> None:
        """End the turn that an interruption is for."""
        target = CommandId(str(command.payload["target"]))
        await marks.begun()
        self.going[target].set_result(Ending(None, None, Cut.INTERRUPT, how=How.PROTOCOL, stop="cancelled"))
        await marks.accepted()
        await marks.ended(Ending(None, None, None, how=How.PROTOCOL))


def said(status: str = "complete", **lines: str) -> Ending:
    """A turn that ended by its protocol's own word, with a signal block."""
    block = "\n".join(f"{name}: {value}" for name, value in ({"status": status, "summary": "done"} | lines).items())
    return Ending(None, None, None, (block,), 1, how=How.PROTOCOL, stop="end_turn")


class Executor:
    """An executor in this process, which can be ended and begun again with the same journal or another."""

    def __init__(self, folder: Path, clock: SetClock, turns: Scripted) -> None:
        self.folder = folder
        self.clock = clock
        self.turns = turns
        self.lives = 0
        self.peer: Peer | None = None
        self.carrying: Carrying | None = None
        self.task: asyncio.Task[wire.Bye | None] | None = None

    def begin(self, group: asyncio.TaskGroup, connect: Callable[[], object], *, version: int = wire.VERSION) -> Peer:
        """Begin a life."""
        self.lives += 1
        keeping = Keeping(self.folder, self.clock, NoFuse())
        kinds = {"send": self.turns.send, "interrupt": self.turns.interrupt}
        self.carrying = Carrying(keeping, kinds)
        me = Me(wire.ExecutorKind.AGENT, "test", f"life-{self.lives}", "boot", ("interrupt",))

        async def opened() -> End:
            made = connect()
            if made is None:
                raise ConnectionError("nobody is there")
            assert isinstance(made, End)
            return made

        self.peer = Peer(me, self.carrying, [opened], self.clock, NoFuse(), shake=lambda: -0.45, version=version)
        self.task = group.create_task(self.peer.run())
        return self.peer

    async def end(self) -> None:
        """End this life, as a process that is killed would: at once, wherever it stands."""
        assert self.peer is not None
        assert self.task is not None
        self.peer.stop()
        with suppress(asyncio.CancelledError):
            await self.task


@dataclass
class Paired:
    """A supervisor and one executor."""

    folder: Path
    clock: SteadyClock
    minter: Counting
    ledger: TableLedger
    executor: Executor
    turns: Scripted
    group: asyncio.TaskGroup
    heartbeat: float
    bridge: Bridge = field(init=False)
    cycle: Cycle = field(init=False)
    desk: Desk = field(init=False)
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    ends: list[End] = field(default_factory=list)
    reachable: bool = True
    watch: Callable[[End], None] = lambda end: None
    may: Callable[[str], bool] = lambda name: True

    def connect(self) -> End | None:
        """A new connection to the bridge; the executor's end."""
        if not self.reachable:
            return None
        theirs, ours = End(), End()
        theirs.other, ours.other = ours, theirs
        self.watch(theirs)
        self.ends.append(theirs)
        self.group.create_task(self.bridge.serve(ours, self.may))
        return theirs

    async def joined(self) -> None:
        """Wait until commands may be sent."""
        remote = Executors({}, self.bridge)[NAME]
        await until(remote.connected)

    async def create(self) -> TaskId:
        """A task for the agent at the other end."""
        order = Order("t", "Tidy the attic", str(self.folder), Agent(NAME, ("agent",), resumable=True))
        return TaskId(str((await self.desk.create(OPERATOR, order)).result["task"]))

    async def over(self, task_id: TaskId, *, moving: float = 4.0) -> None:
        """Serve a task until it has ended; time goes on as it waits."""
        for _ in range(200):
            await self.cycle.serve(task_id)
            if self.desk.task(task_id).terminal:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.rung.wait(), 0.02)
            self.rung.clear()
            self.clock.move(timedelta(seconds=moving))
        raise AssertionError([str(b) for b in (await self.desk.explain(task_id)).rungs])


async def until(true: Callable[[], bool], within: float = 120.0) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(within):
        while not true():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


class Died(BaseException):
    """What a supervisor dies of at a point: nothing of ours catches it."""


@dataclass
class Burning:
    """A fuse that remembers what it passed, and dies at the n-th passing of one point."""

    point: str | None = None
    left: int = 0
    passed: list[str] = field(default_factory=list)

    def burn(self, point: str) -> None:
        self.passed.append(point)
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                raise Died(point)


def supervised(it: Paired, fuse: Burning) -> None:
    """Everything of one supervisor's life over the registry."""
    registry = it.ledger.registry().id
    hooks = Hooks(ring=lambda command: it.rung.set(), changed=lambda name: it.rung.set())
    it.bridge = Bridge(
        registry,
        it.clock,
        fuse,
        known=lambda command: it.ledger.command(command) is not None,
        hooks=hooks,
        heartbeat=it.heartbeat,
    )
    executors = Executors({}, it.bridge)
    around = Surroundings(str(it.folder / "api.sock"), str(it.folder / "spool"), str(it.folder))
    it.cycle = Cycle(it.ledger, executors, Still(it.clock), it.clock, it.minter, fuse, around, 20)
    it.desk = Desk(
        it.ledger, it.cycle, it.clock, it.minter, slots=20, executors=executors, ring=lambda t: it.rung.set()
    )


async def led(it: Paired) -> None:
    """Lead with the next epoch."""
    now = it.clock.now()
    me = Leadership(0, f"me-{now}", "host", 4711, "started", "boot", "api", now, now, now + timedelta(days=900))
    taken = await it.ledger.lead(me, lambda _holder: True)
    assert taken is not None
    it.cycle.epoch = taken.epoch
    it.bridge.lead(taken.epoch)


async def reborn(it: Paired, fuse: Burning | None = None) -> None:
    """The supervisor is gone, wherever it stood; another leads over the same registry, and the executor comes to it."""
    reachable, it.reachable = it.reachable, False
    for end in it.ends:
        end.cut()
    await it.ledger.close()
    it.ledger = open_registry(it.folder / "state" / "registry.sqlite3", it.clock, minter=it.minter)
    supervised(it, fuse or Burning())
    await led(it)
    it.reachable = reachable


@asynccontextmanager
async def paired(folder: Path, *, heartbeat: float = 20.0, fuse: Burning | None = None) -> AsyncIterator[Paired]:
    """A supervisor, and an executor that is joined to it by a wire in memory."""
    clock, minter = SteadyClock(), Counting()
    ledger = open_registry(folder / "state" / "registry.sqlite3", clock, minter=minter)
    turns = Scripted()
    try:
        async with asyncio.timeout(180), asyncio.TaskGroup() as group:
            it = Paired(
                folder, clock, minter, ledger, Executor(folder / "journal", clock, turns), turns, group, heartbeat
            )
            supervised(it, fuse or Burning())
            await led(it)
            try:
                yield it
            finally:
                if it.executor.peer is not None:
                    it.executor.peer.stop()
                it.reachable = False
                await it.bridge.close()
                for end in it.ends:
                    end.cut()
                ledger = it.ledger
    finally:
        await ledger.close()
