"""What the measurements share: rows that hang together, a supervisor in this process, programs that stamp the time.

Decides nothing about the program that is measured and reaches into none of its rooms to make them faster.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from tenuto.config import Settings, load
from tenuto.engine import desk
from tenuto.model.change import Commit
from tenuto.model.command import Attempt, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.fact import Fact, FactKind
from tenuto.model.ids import AttemptId, CommandId, ConversationId, RunId, TaskId, TextId, spelled
from tenuto.model.lifecycle import AttemptState, CommandState, LeaseState, RunState, TaskState
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Leadership, Role
from tenuto.model.work import Acceptance, Agent, AutoResume, Run, Task, Text, TextKind, WakeKind
from tenuto.wiring.daemon import Supervisor, assembled

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
OPERATOR = desk.Caller(Role.OPERATOR, "bench")
#: Turns of the bench make no durable progress, and nobody is to be asked about it.
UNSTALLED = {"stall_warn": 1_000_000, "stall_pause": 1_000_000, "slot_rest": 86_400}


class NotMeasured(Exception):
    """A measurement could not be made; the message says how far it came."""


def median(values: Sequence[float]) -> float:
    if not values:
        raise NotMeasured("nothing was measured")
    return statistics.median(values)


def centile(values: Sequence[float], part: float) -> float:
    """The value that `part` of all do not exceed (0.99: all but one of a hundred)."""
    if not values:
        raise NotMeasured("nothing was measured")
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def times(effort: float, whole: int, least: int) -> int:
    """How often to repeat something."""
    return max(least, round(whole * min(effort, 4.0)))


# -- rows


class SetClock:
    """Stands still."""

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return NOW.timestamp()


class Counting:
    """Identifiers in the order they were asked for."""

    def __init__(self, start: int = 1) -> None:
        self._numbers = count(start)

    def new(self, kind: str) -> str:
        return spelled(kind, next(self._numbers))

    def secret(self) -> str:
        return f"secret-{next(self._numbers)}"


def candidate() -> Leadership:
    return Leadership(0, "bench", "host", 4711, "started", "boot", "", NOW, NOW, NOW + timedelta(hours=1))


def digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


@dataclass(frozen=True)
class Place:
    """One task that is being worked, with everything it needs to be continued."""

    run: Run
    text: Text
    task: Task
    conversation: Conversation

    def commit(self) -> Commit:
        return Commit(puts=(self.task, self.conversation, self.text, self.run))


def place(ids: Counting) -> Place:
    run = Run(RunId(ids.new("run")), 1, "Port it", RunState.OPEN, AutoResume.ON, POLICY, None, NOW)
    task_id = TaskId(ids.new("task"))
    body = "Port the parser; keep every test green: äöü"
    text = Text(TextId(ids.new("text")), TextKind.OBJECTIVE, task_id, body, digest(body), NOW)
    task = Task(
        id=task_id,
        revision=1,
        run_id=run.id,
        title="parser",
        objective=text.id,
        cwd="/srv/parser",
        agent=Agent("command", ("agent", "--go"), resumable=True, env=("API_KEY",)),
        acceptance=Acceptance(),
        state=TaskState.ACTIVE,
        created_at=NOW,
        started_at=NOW,
        lease_number=1,
    )
    conversation = Conversation(
        id=ConversationId(ids.new("conversation")),
        revision=1,
        task_id=task_id,
        identity=f"program:{task_id}",
        executor="host",
        state=LeaseState.ACTIVE,
        lease_number=1,
        expires_at=NOW + timedelta(hours=2),
        opened_at=NOW,
    )
    return Place(run, text, task, conversation)


@dataclass(frozen=True)
class Turn:
    """One armed turn, as the rows that arm it."""

    attempt: Attempt
    command: Command
    task: Task

    def commit(self) -> Commit:
        facts = tuple(
            Fact(kind, self.task.run_id, self.task.id, {"number": 1, "command": self.command.id})
            for kind in (FactKind.ATTEMPT_ARMED, FactKind.COMMAND_ARMED)
        )
        holds = tuple((scope, self.command.id) for scope in self.command.scopes)
        return Commit(puts=(self.command, self.attempt, self.task), holds=holds, facts=facts)


def turn(ids: Counting, here: Place) -> Turn:
    talk = here.conversation
    attempt = Attempt(
        id=AttemptId(ids.new("attempt")),
        revision=1,
        task_id=here.task.id,
        number=1,
        reason=WakeKind.IDLE,
        anyway=False,
        idempotency_key=f"{here.task.id}/1",
        cursor_before=None,
        conversation_id=talk.id,
        lease_number=1,
        state=AttemptState.LIVE,
        scheduled_at=NOW,
        live_at=NOW,
    )
    command = Command(
        id=CommandId(ids.new("command")),
        revision=1,
        kind=CommandKind.SEND,
        task_id=here.task.id,
        attempt_id=attempt.id,
        conversation_id=talk.id,
        executor="host",
        state=CommandState.ARMED,
        epoch=1,
        fence="f" * 64,
        scopes=(f"task:{here.task.id}", f"conversation:{talk.identity}"),
        created_at=NOW,
        armed_at=NOW,
    )
    return Turn(attempt, command, replace(here.task, revision=2, attempts=1, last_served_at=NOW))


# -- a registry of its own


def home(folder: Path) -> Settings:
    """Settings that keep everything in `folder`, which is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return load({"TENUTO_HOME": str(folder)})


@asynccontextmanager
async def leading(settings: Settings) -> AsyncIterator[Supervisor]:
    """A real supervisor's parts, serving in this process; come to rest and resigned afterwards."""
    async with assembled(settings) as supervisor:
        gc.freeze()  # as a supervisor's own process does
        lease = await led(supervisor)
        await supervisor.executor.open(lease.epoch)
        async with asyncio.TaskGroup() as group:
            group.create_task(supervisor.residency.serve())
            try:
                yield supervisor
            finally:
                supervisor.residency.stop()


@asynccontextmanager
async def filling(settings: Settings) -> AsyncIterator[Supervisor]:
    """The same, leading but serving nothing: for filling a registry that somebody else is to serve."""
    async with assembled(settings) as supervisor:
        lease = await led(supervisor)
        await supervisor.executor.open(lease.epoch)
        yield supervisor
        await supervisor.ledger.resign(lease, supervisor.clock.now())


async def led(supervisor: Supervisor) -> Leadership:
    """The lease, taken; nobody else leads a registry of the bench."""
    lease = await supervisor.residency.lead()
    if not isinstance(lease, Leadership):
        raise NotMeasured("another supervisor leads the registry of the bench")
    return lease


async def given(supervisor: Supervisor, argv: tuple[str, ...], cwd: Path, **policy: float) -> TaskId:
    """One task whose turns run `argv` in `cwd`; `policy` are numbers that differ from the bench's."""
    order = desk.Order(
        title="bench",
        objective="stamp the time",
        cwd=str(cwd),
        agent=Agent("program", argv, resumable=True),
        policy={**UNSTALLED, **policy},
    )
    done = await supervisor.desk.create(OPERATOR, order)
    return TaskId(str(done.result["task"]))


# -- programs


SAYS = "printf '%s\\n' '```tenuto' 'status: working' '```'"
STAMP = 'printf "%s %s %s\\n" {word} "$EPOCHREALTIME" "$TENUTO_ATTEMPT" >> "$1"'


def stamping(file: Path, pause: float = 0.0) -> tuple[str, ...]:
    """A program whose first act is to write the time to `file`, and its last too; between them it waits `pause` s."""
    shell = shutil.which("bash")
    if shell is None:
        raise NotMeasured("this needs bash, whose built-in clock is the cheapest first act a program can have")
    wait = f"sleep {pause}\n" if pause else ""
    script = f"{STAMP.format(word='begin')}\n{wait}{SAYS}\n{STAMP.format(word='end')}\n"
    return (shell, "-c", script, "turn", str(file))


@dataclass(frozen=True)
class Stamp:
    """One act of a program: "begin" or "end", when (seconds since 1970), and of which attempt."""

    word: str
    at: float
    attempt: str


def stamps(file: Path) -> list[Stamp]:
    """What the programs have stamped so far, in order; a line that is half written is left out."""
    try:
        text = file.read_text("ascii")
    except FileNotFoundError:
        return []
    found = []
    for line in text.splitlines(keepends=True):
        parts = line.rstrip("\n").split(" ")
        if line.endswith("\n") and len(parts) == 3:
            found.append(Stamp(parts[0], float(parts[1].replace(",", ".")), parts[2]))
    return found


def until(what: str, come: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something of another process; NotMeasured when it does not come."""
    patience = time.monotonic() + seconds
    while not come():
        if time.monotonic() > patience:
            raise NotMeasured(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.003)


def clean_environment(folder: Path, bytecode: Path) -> dict[str, str]:
    """This process's environment for a registry in `folder`.

    Compiled modules go to `bytecode`, so that a program is started as it is from where it was installed, and the
    directory it lies in is left alone.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENUTO_", "PYTHONDONTWRITE"))}
    return {**kept, "TENUTO_HOME": str(folder), "PYTHONPYCACHEPREFIX": str(bytecode)}
