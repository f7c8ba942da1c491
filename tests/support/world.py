"""A whole small world: a real ledger in a temporary directory, a cycle that decides, a desk, and an executor that is
played.

The played executor is honest: it keeps a journal of its own, carries out what is armed and nothing else, and tells
what its journal says. A test ends a turn by saying how. Time stands still until it is moved.

    async with world(tmp_path) as it:
        task = await it.create()
        await it.settle(task)                      # a turn is armed and under way
        it.executor.finish(status="complete", summary="done", evidence="commit abc")
        await it.settle(task)
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import tenuto.prompts
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.cycle import Cycle, Rest, Surroundings
from tenuto.engine.desk import Caller, Desk, Order
from tenuto.model.command import Accepted, Armed, Command, CommandKind, Outcome, Unknown, Unsent
from tenuto.model.evidence import (
    AcceptanceFacts,
    CommandFacts,
    Ending,
    Mark,
    Observation,
    Presence,
    Rank,
    WorkspaceFacts,
    WorkspaceKind,
)
from tenuto.model.ids import CommandId, TaskId, spelled
from tenuto.model.lifecycle import CommandState
from tenuto.model.policy import POLICY, Policy
from tenuto.model.snapshot import Leadership, Role
from tenuto.model.work import Acceptance, Agent, Wait
from tenuto.ports import Fuse, NoFuse, Turn, UnitSources
from tenuto.ports import Order as Ordered
from tenuto.sources.finding import SourceFinder
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.transports.playbooks import PlaybookFolders

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OPERATOR = Caller(Role.OPERATOR, "operator")
NAME = "played"
BUILT_IN = Path(tenuto.prompts.__file__).parent / "playbooks"


class SetClock:
    """Stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def move(self, time: timedelta) -> datetime:
        self.time += time
        return self.time


class Counting:
    """Identifiers in order, told apart at both ends; secrets that can be told apart."""

    def __init__(self, start: int = 1) -> None:
        self._numbers = itertools.count(start)

    def new(self, kind: str) -> str:
        number = next(self._numbers)
        return spelled(kind, (number << 100) | (number * 7919 + 31 * 32**5))

    def secret(self) -> str:
        return f"secret-of-an-agent-that-is-long-enough-{next(self._numbers)}"


@dataclass
class Played:
    """An executor in memory. `outcome` is what the next hand-over comes to; `objecting` what `objection` says."""

    clock: SetClock
    name: str = NAME
    reachable: bool = True
    objecting: tuple[str, str] | None = None
    outcome: Callable[[], Outcome] = Accepted
    orders: dict[CommandId, Ordered] = field(default_factory=dict)
    journal: dict[CommandId, CommandFacts] = field(default_factory=dict)

    def connected(self, conversation: str | None = None) -> bool:
        return self.reachable

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        return self.objecting

    async def perform(self, armed: Armed, order: Ordered) -> Outcome:
        command, outcome = armed.command, self.outcome()
        mark = self.journal.get(command.id)
        if mark is not None:
            raise AssertionError(f"{command.id} was handed over twice, or after it was revoked: {mark.mark}")
        self.orders[command.id] = order
        match outcome:
            case Accepted():
                self._write(command, Mark.ACCEPTED, Presence.ALIVE)
            case Unsent(reason):
                self._write(command, Mark.FAILED, Presence.GONE, reason=reason)
            case Unknown():
                self._write(command, Mark.BEGUN, Presence.UNKNOWN)
        return outcome

    async def look(self, command: Command) -> Observation:
        facts = self.journal.get(command.id)
        if facts is None:
            facts = CommandFacts(command.id, command.attempt_id, Mark.NONE, Presence.GONE, Presence.GONE)
        return Observation(self.name, Rank.JOURNAL, command.id, self.clock.now(), facts)

    async def revoke(self, command: Command, epoch: int) -> None:
        if command.id not in self.journal:
            self._write(command, Mark.REVOKED, Presence.GONE)

    # -- what a test does

    def found(self, command: Command) -> None:
        """Let a turn be under way that another world handed over."""
        self._write(command, Mark.ACCEPTED, Presence.ALIVE)

    @property
    def under_way(self) -> tuple[CommandId, ...]:
        """Commands that were accepted and have not ended."""
        return tuple(key for key, facts in self.journal.items() if facts.mark is Mark.ACCEPTED)

    def given(self, command: CommandId | None = None) -> dict[str, str]:
        """What the program of a turn was given: the latest, unless one is named."""
        order = self.orders[command if command is not None else self.turns[-1]]
        assert isinstance(order, Turn)
        return dict(order.given)

    @property
    def turns(self) -> tuple[CommandId, ...]:
        """Every turn that was handed over, in order."""
        return tuple(key for key, order in self.orders.items() if isinstance(order, Turn))

    def finish(self, command: CommandId | None = None, *, exit_code: int = 0, block: bool = True, **said: str) -> None:
        """End a turn (the only one under way, unless it is named) with a signal block of these lines."""
        if command is None:
            (command,) = self.under_way
        lines = "\n".join(
            f"{name}: {value}" for name, value in ({"status": "working", "summary": "on it"} | said).items()
        )
        signals = (lines,) if block else ()
        ending = Ending(exit_code, None, None, signals, len(signals))
        old = self.journal[command]
        self.journal[command] = CommandFacts(
            command, old.attempt_id, Mark.ENDED, Presence.GONE, Presence.GONE, ending=ending, marked_at=self.clock.now()
        )

    def doubt(self, command: CommandId | None = None) -> None:
        """Let it become unknowable what a turn came to: its journal is damaged, its host is not to be found."""
        command = command if command is not None else self.turns[-1]
        old = self.journal[command]
        self.journal[command] = CommandFacts(command, old.attempt_id, Mark.DAMAGED, Presence.UNKNOWN, Presence.UNKNOWN)

    def _write(self, command: Command, mark: Mark, there: Presence, reason: str | None = None) -> None:
        self.journal[command.id] = CommandFacts(
            command.id,
            command.attempt_id,
            mark,
            there,
            there if command.kind is CommandKind.SEND else Presence.GONE,
            reason=reason,
            marked_at=self.clock.now(),
        )


@dataclass
class Still:
    """A directory that looks the same until `cursor` is changed."""

    clock: SetClock
    cursor: str = "0" * 64
    accepted: bool | None = True

    async def look(self, cwd: str, since: str | None, *, plain: bool) -> Observation:
        facts = WorkspaceFacts(WorkspaceKind.GIT, "a" * 40, "main", "d", self.cursor, 0)
        return Observation("still", Rank.OUTSIDE, cwd, self.clock.now(), facts)

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        facts = AcceptanceFacts(self.accepted, "looked at")
        return Observation("still", Rank.OUTSIDE, cwd, self.clock.now(), facts)

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        return False


@dataclass
class World:
    """Everything one supervisor has, with the world outside it played."""

    folder: Path
    clock: SetClock
    minter: Counting
    ledger: TableLedger
    executor: Played
    workspace: Still
    cycle: Cycle
    desk: Desk
    lease: Leadership
    rung: list[TaskId]
    stops: list[None]
    troubles: list[str]

    async def create(self, title: str = "Tidy up", objective: str = "Tidy the attic", **more: object) -> TaskId:
        """A run with one task, as the operator would make it."""
        order = Order(title, objective, str(self.folder), Agent(NAME, ("agent", "--go"), resumable=True), **more)  # type: ignore[arg-type]
        done = await self.desk.create(OPERATOR, order)
        return TaskId(str(done.result["task"]))

    async def settle(self, task_id: TaskId) -> Rest | None:
        """Serve a task until it rests."""
        return await self.cycle.serve(task_id)

    async def doubted(self) -> tuple[TaskId, CommandId]:
        """A task with a command of which it is not known whether it took effect."""
        self.executor.outcome = lambda: Unknown("it did not answer")
        task_id = await self.create()
        await self.settle(task_id)
        self.executor.outcome = Accepted
        self.executor.doubt()
        await self.settle(task_id)
        (command,) = self.desk.commands(task_id=task_id, only_open=True)
        assert command.state is CommandState.AMBIGUOUS, command
        return task_id, command.id

    def agent_token(self, command: CommandId | None = None) -> str:
        """The token that a turn's program was given: the latest turn's, unless one is named."""
        return self.executor.given(command)["TENUTO_TOKEN"]

    async def started(self, **more: object) -> TaskId:
        """A task with a turn under way."""
        task_id = await self.create(**more)  # type: ignore[arg-type]
        await self.settle(task_id)
        assert self.executor.under_way, await self.desk.explain(task_id)
        return task_id


@asynccontextmanager
async def world(
    folder: Path,
    *,
    slots: int = 20,
    led: bool = True,
    defaults: Policy = POLICY,
    played: Callable[[SetClock], Played] = Played,
    fuse: Fuse | None = None,
    hosts: Callable[[SetClock], Hosts] | None = None,
    sources: UnitSources | None = None,
    database: str | None = None,
    first: int = 1,
) -> AsyncIterator[World]:
    """A world in a directory. `led` False: nobody leads, and its desk changes nothing; `fuse` is the cycle's.

    `hosts` are what merging asks: hosts of repositories, checkouts, and what runs a gate; `sources` where units live.
    `database` is a registry that is somewhere else or was made before, and `first` the number its names go on with.
    """
    clock, minter = SetClock(), Counting(first)
    ledger = open_registry(database or folder / "state" / "registry.sqlite3", clock, minter=minter)
    executor, workspace = played(clock), Still(clock)
    around = Surroundings(str(folder / "api.sock"), str(folder / "spool"), str(folder))
    told = hosts(clock) if hosts is not None else Hosts()
    executors = {NAME: executor, **told.executors}
    cycle = Cycle(ledger, executors, workspace, clock, minter, fuse or NoFuse(), around, slots)
    rung: list[TaskId] = []
    stops: list[None] = []
    troubles: list[str] = []
    life = timedelta(days=365)
    lease = Leadership(0, "me", "host", 4711, "started", "boot", around.api, NOW, NOW, NOW + life)
    desk = Desk(
        ledger,
        cycle,
        clock,
        minter,
        slots=slots,
        executors={NAME: executor},
        ring=rung.append if led else None,
        stop=(lambda: stops.append(None)) if led else None,
        troubles=lambda: troubles,
        defaults=defaults,
        playbooks=PlaybookFolders(folder / "config" / "playbooks", BUILT_IN),
        sources=sources or SourceFinder({}),
        hosts=told,
        fuse=fuse,
    )
    try:
        if led:
            taken = await ledger.lead(lease, lambda _holder: False)
            assert taken is not None
            lease, cycle.epoch = taken, taken.epoch
        yield World(folder, clock, minter, ledger, executor, workspace, cycle, desk, lease, rung, stops, troubles)
    finally:
        await ledger.close()
