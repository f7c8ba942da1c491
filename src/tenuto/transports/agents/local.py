"""Agents on this machine: an executor for each task that has one, whose host is started when it is needed.

Handing over goes through the host, by the wire. Looking and revoking need no host: where none is connected the journal
and the process table of this machine are asked directly, so that a host that died is found gone and not only silent.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenuto.model.command import Armed, Command, Outcome, Unknown, Unsent
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence, Rank
from tenuto.model.ids import TaskId
from tenuto.model.work import Agent
from tenuto.ports import Clock, Order
from tenuto.transports import processes, wire
from tenuto.transports.agents.adapters import ADAPTERS, Adapter
from tenuto.transports.agents.conversing import left_of
from tenuto.transports.agents.folder import IDLE, JOURNAL, TOKEN_FILE
from tenuto.transports.bridge import Bridge
from tenuto.transports.executor_side.carrying import performer_of
from tenuto.transports.host import environment, journal, objection, whereabouts
from tenuto.transports.remote import RemoteExecutor

COMES_WITHIN: Final = timedelta(seconds=20)
"""How long a host may take to come up and greet."""

HOST: Final = "TENUTO_AGENT_HOST"
"""What a host carries in its environment, with its name, and hands to no program."""

TELLS: Final = re.compile(r"KEY|TOKEN|SECRET|AUTH|BASE_URL|CONFIG_DIR|_HOME|PROJECT|ORGANIZATION|BEDROCK|VERTEX")
"""Which variables of a program say whose account it works with."""

Token = Callable[[str, Path], Awaitable[None]]
"""Sees to it that a file holds a token of this executor's name, mode 0600."""


class LocalAgents:
    """Makes the executors of agents on this machine. `folder` holds a directory for each."""

    def __init__(
        self,
        bridge: Bridge,
        folder: Path,
        socket: Path,
        env_file: Path,
        clock: Clock,
        token: Token,
        *,
        adapters: Mapping[str, Adapter] = ADAPTERS,
        idle: float = IDLE,
    ) -> None:
        self.bridge = bridge
        self.folder = folder
        self.socket = socket
        self.env_file = env_file
        self.clock = clock
        self.adapters = adapters
        self._token = token
        self._idle = idle
        self._starting: dict[str, asyncio.Lock] = {}
        self.closed = False
        #: How a host is started; a proof has one that can be killed at a point of it.
        self.program: tuple[str, ...] = (sys.executable, "-m", "tenuto.transports.agents.host")

    def doors(self) -> Mapping[str, AgentDoor]:
        """One for each adapter, by its name: where a task of that sort gets its executor's name from."""
        return {name: AgentDoor(self, adapter) for name, adapter in self.adapters.items()}

    def __call__(self, name: str) -> AgentExecutor:
        """The executor of this name, whether its host is there or not."""
        return AgentExecutor(self, name)

    def account(self, agent: Agent) -> str | None:
        """Whose usage the turns of an agent take: a short name for the values that tell, keyed by this registry.

        What it is logged in with lies in its home where no variable says; that counts too. No value can be read back.
        """
        adapter = self.adapters.get(agent.adapter)
        if adapter is None:
            return None
        try:
            kept = environment.of_file(self.env_file)
        except environment.MissingError:
            kept = {}
        names = {"HOME", *(name for name in (*adapter.env, *agent.env) if TELLS.search(name))}
        told = [f"{name}={os.environ.get(name, kept.get(name, ''))}" for name in sorted(names)]
        key = self.bridge.registry.encode("utf-8")[:64]
        return f"{adapter.name}/{hashlib.blake2b(chr(0).join(told).encode(), key=key, digest_size=4).hexdigest()}"

    def place_of(self, name: str) -> Path:
        """Where the host of an executor keeps what it has; made where it is not there."""
        made = self.folder / name.partition(":")[2]
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        return made

    async def there(self, name: str, adapter: str, names: tuple[str, ...]) -> bool:
        """Whether the executor's host is connected, having started it where it was not."""
        executor = RemoteExecutor(self.bridge, name)
        async with self._starting.setdefault(name, asyncio.Lock()):
            if executor.connected():
                return True
            place = self.place_of(name)
            await self._token(name.partition(":")[2], place / TOKEN_FILE)
            await asyncio.to_thread(self._start, name, adapter, names, place)
            loop = asyncio.get_running_loop()
            end = loop.time() + COMES_WITHIN.total_seconds()
            while loop.time() < end and not self.closed:
                if executor.connected():
                    return True
                await asyncio.sleep(0.05)
        return False

    def _start(self, name: str, adapter: str, names: tuple[str, ...], place: Path) -> None:
        """Start a host. Where one is at the journal already, this one leaves at once."""
        known = {*names, *self.adapters[adapter].env}
        surroundings = {
            key: value
            for key, value in os.environ.items()
            if key in environment.BASE or key.startswith(environment.BASE_FAMILIES) or key in known
        }
        surroundings |= {key: os.environ[key] for key in ("PYTHONPATH", "VIRTUAL_ENV") if key in os.environ}
        argv = [
            *self.program, "--folder", str(place), "--name", name.partition(":")[2], "--adapter", adapter,
            "--connect", str(self.socket), "--env-file", str(self.env_file), "--idle", str(self._idle),
        ]  # fmt: skip
        log = os.open(place / "host.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            started = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
                env={**surroundings, HOST: name},
            )  # fmt: skip
        finally:
            os.close(log)
        threading.Thread(target=started.wait, name=f"reaper of {name}", daemon=True).start()


class AgentExecutor(RemoteExecutor):
    """Implements `ports.Executor` for one conversation's host on this machine."""

    def account(self, agent: Agent) -> str | None:
        """Whose usage its turns take."""
        return self._agents.account(agent)

    def __init__(self, agents: LocalAgents, name: str) -> None:
        super().__init__(agents.bridge, name)
        self._agents = agents

    @property
    def _folder(self) -> Path:
        return self._agents.place_of(self.name) / JOURNAL

    def connected(self, conversation: str | None = None) -> bool:
        """Whether commands may be handed over: a host that is not there is started then."""
        return not self._known.strangers and self._known.trouble is None

    @property
    def place(self) -> str:
        """Which life of which journal commands are armed for, whether its host is there or not."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return f"{self.name.partition(':')[2]}:{whereabouts.settle_in(self._folder)}:agent"

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Have a host there, and hand the command over to it."""
        adapter = getattr(order, "adapter", None) or self._adapter()
        if adapter not in self._agents.adapters:
            return Unsent(f"no agent program called {adapter} is known here")
        try:
            there = await self._agents.there(self.name, adapter, getattr(order, "env", ()))
        except OSError as error:
            return Unknown(f"its host could not be started ({error.strerror})")
        if not there:
            return Unknown("its host did not come")
        self._remember(adapter)
        return await super().perform(armed, order)

    async def look(self, command: Command) -> Observation:
        """What its host says of a command; where none is connected, its journal and the process table."""
        if self._line() is not None:
            return await super().look(command)
        facts = await asyncio.to_thread(self._seen, command)
        return Observation(self.name, Rank.JOURNAL, command.id, self._agents.clock.now(), facts)

    async def revoke(self, command: Command, epoch: int) -> None:
        """Take the journal's place, through its host or, where there is none, right here."""
        if self._line() is not None:
            await super().revoke(command, epoch)
            return
        now, registry = self._agents.clock.now(), self._agents.bridge.registry
        await asyncio.to_thread(
            lambda: journal.revoke(
                self._folder, command.id, registry=registry, epoch=epoch, reason="it was revoked before it began",
                now=now,
            )
        )  # fmt: skip

    def _seen(self, command: Command) -> CommandFacts:
        """The journal and the process table; belongs in a thread."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        first = journal.read(self._folder, command.id)
        performer = self._performer(first)
        told = journal.read(self._folder, command.id)
        if first.mark is Mark.NONE and told.mark is not Mark.NONE:
            performer = self._performer(told)
            told = journal.read(self._folder, command.id)
        mark, reason = told.mark, told.reason
        armed_for = command.place.split(":")[1] if command.place is not None and command.place.count(":") > 1 else None
        if mark is Mark.NONE and armed_for not in (None, whereabouts.incarnation_of(self._folder)):
            mark, reason = Mark.DAMAGED, "its executor has another journal now, which knows nothing of it"
        return CommandFacts(
            command.id,
            command.attempt_id,
            mark,
            performer,
            left_of(told) if told.mark is not Mark.NONE else Presence.GONE,
            reason=reason,
            mendable=told.mendable,
            ending=told.ending,
            marked_at=told.marked_at,
            proof=told.proof,
        )

    def _performer(self, told: journal.Journal) -> Presence:
        """The host that claimed it; where nobody has, whether any host of this name is there that may yet."""
        if told.host is not None:
            return performer_of(told)
        found = processes.carriers(HOST, self.name)
        if found is None:
            return Presence.UNKNOWN
        return Presence.ALIVE if found else Presence.GONE

    def _adapter(self) -> str:
        try:
            return (self._agents.place_of(self.name) / "adapter").read_text("utf-8").strip()
        except OSError:
            return ""

    def _remember(self, adapter: str) -> None:
        record = self._agents.place_of(self.name) / "adapter"
        if not record.exists():
            record.write_text(adapter + "\n", "utf-8")


class AgentDoor:
    """Stands for every task of one adapter: objects to what could not be started, and names each task's executor."""

    def __init__(self, agents: LocalAgents, adapter: Adapter) -> None:
        self.name = adapter.name
        self._agents = agents
        self._adapter = adapter

    def executor_for(self, task_id: TaskId) -> str:
        """What the executor of this task is called."""
        return wire.full_name(wire.ExecutorKind.AGENT, task_id)

    def connected(self, conversation: str | None = None) -> bool:
        """A host is started when it is needed."""
        return True

    def account(self, agent: Agent) -> str | None:
        """Whose usage its turns take."""
        return self._agents.account(agent)

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """Why this program could not be started there now."""
        return objection.to(agent, cwd, os.environ, self._agents.env_file)

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Nothing is carried out here."""
        return Unsent("each task of an agent has an executor of its own")

    async def look(self, command: Command) -> Observation:
        """Nothing was carried out here."""
        facts = CommandFacts(command.id, command.attempt_id, Mark.NONE, Presence.GONE, Presence.GONE)
        return Observation(self.name, Rank.JOURNAL, command.id, self._agents.clock.now(), facts)

    async def revoke(self, command: Command, epoch: int) -> None:
        """Nothing can begin here."""
