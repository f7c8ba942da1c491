"""A room with a real host executor, real programs, and a sweep that ends what a test started and nothing else.

Nothing here waits by sleeping blindly: a test waits for a ring, for a file of a program, or for the
journal, and every wait has an end.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenuto.model.command import Armed, Command, CommandKind, Outcome
from tenuto.model.evidence import CommandFacts, Mark, Presence
from tenuto.model.ids import AttemptId, CommandId, TaskId, spelled
from tenuto.model.lifecycle import CommandState
from tenuto.ports import Check, Halt, NoFuse, Order, Turn
from tenuto.transports import processes
from tenuto.transports.host import journal
from tenuto.transports.host.executor import HostExecutor

NUMBERS = itertools.count(int.from_bytes(os.urandom(12)) << 24)
PATIENCE = 90.0


class RealClock:
    """The time of the machine."""

    def now(self) -> datetime:
        """Tell the moment."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Tell seconds that never go back."""
        return time.monotonic()


def command(kind: CommandKind = CommandKind.SEND, *, epoch: int = 1) -> Command:
    """Make an armed command with an attempt of its own."""
    return Command(
        id=CommandId(spelled("command", next(NUMBERS))),
        revision=1,
        kind=kind,
        task_id=TaskId(spelled("task", next(NUMBERS))),
        attempt_id=AttemptId(spelled("attempt", next(NUMBERS))),
        conversation_id=None,
        executor="host",
        state=CommandState.ARMED,
        epoch=epoch,
        fence="",
        scopes=(),
        created_at=datetime.now(UTC),
        armed_at=datetime.now(UTC),
    )


def python(script: str) -> tuple[str, ...]:
    """Name a program that runs these lines."""
    return (sys.executable, "-I", "-S", "-c", script)


@dataclass
class Room:
    """One executor in one directory, and what was asked of it."""

    folder: Path
    host_fuse: str | None = None
    surroundings: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    rung: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the executor as wiring does."""
        self.executor = HostExecutor(
            self.journals,
            self.folder / "bell.sock",
            self.folder / "env",
            "registry",
            RealClock(),
            NoFuse(),
            self.host_fuse,
            self._ring,
            self.surroundings,
        )

    @property
    def journals(self) -> Path:
        """Tell where journals lie."""
        return self.folder / "journal"

    def _ring(self, command_id: CommandId) -> None:
        self.rung.set()

    def turn(
        self, *argv: str, prompt: str = "go on", limit: float = 60, grace: float = 1, env: tuple[str, ...] = ()
    ) -> Turn:
        """Make an order for a turn in this room."""
        return Turn(prompt, argv, str(self.folder), env, {}, timedelta(seconds=limit), timedelta(seconds=grace))

    def check(self, *argv: str) -> Check:
        """Make an order for a check in this room."""
        return Check(argv, str(self.folder), (), {}, timedelta(seconds=60), timedelta(seconds=1))

    async def perform(self, order: Order, what: Command | None = None) -> tuple[Command, Outcome]:
        """Hand over an order under a new command."""
        kind = CommandKind.INTERRUPT if isinstance(order, Halt) else CommandKind.SEND
        mine = what or command(CommandKind.CHECK if isinstance(order, Check) else kind)
        self.asked.append(mine)
        return mine, await self.executor.perform(Armed(mine), order)

    async def look(self, mine: Command) -> CommandFacts:
        """Tell the facts of a command."""
        facts = (await self.executor.look(mine)).facts
        assert isinstance(facts, CommandFacts)
        return facts

    async def until(self, mine: Command, holds: Callable[[CommandFacts], bool]) -> CommandFacts:
        """Look at every ring until something holds."""
        facts, end = None, asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < end:
            self.rung.clear()
            facts = await self.look(mine)
            if holds(facts):
                return facts
            try:
                async with asyncio.timeout(0.2):
                    await self.rung.wait()
            except TimeoutError:
                continue
        raise TimeoutError(f"after {PATIENCE} s: {facts}")

    async def ended(self, mine: Command) -> CommandFacts:
        """Wait for the end of a turn and of its host."""
        return await self.until(mine, lambda facts: facts.mark in journal.SETTLED and facts.performer is Presence.GONE)

    async def file(self, name: str) -> str:
        """Wait for a file that a program writes, whole at once, and read it."""
        path = self.folder / name
        async with asyncio.timeout(PATIENCE):
            while not (path.exists() and path.stat().st_size):  # noqa: ASYNC110 - another program makes it
                await asyncio.sleep(0.01)
        return path.read_text()

    def sweep(self) -> None:
        """End whatever carries a command of this room; every process is compared before it is signalled."""
        for mine in self.asked:
            for name, value in (("TENUTO_COMMAND", mine.id), ("TENUTO_HOST", mine.id)):
                for one in processes.carriers(name, value) or ():
                    processes.send(one, signal.SIGKILL)

    def left(self) -> list[processes.Identity]:
        """Tell who still carries a command of this room."""
        return [
            one
            for mine in self.asked
            for name in ("TENUTO_COMMAND", "TENUTO_HOST")
            for one in processes.carriers(name, mine.id) or ()
        ]


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    """Give an open room, and leave nothing of it behind."""
    made = Room(tmp_path)
    await made.executor.open(1)
    try:
        yield made
    finally:
        await made.executor.close()
        made.sweep()


@pytest.fixture
def swept() -> Iterator[list[Room]]:
    """Collect rooms that a test opens itself; what they started is ended."""
    rooms: list[Room] = []
    yield rooms
    for one in rooms:
        one.sweep()


def accepted(facts: CommandFacts) -> bool:
    """Tell whether a program has begun."""
    return facts.mark is Mark.ACCEPTED
