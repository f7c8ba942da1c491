"""The executor of plain programs: hands armed commands to hosts of their own, and looks after them.

It starts a host at most once for a command and says `Unsent` only when the journal's place is taken so that
nothing can begin any more. It never runs an agent inside the supervisor, never ends a host when it closes,
and never believes that a silent host did nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final, assert_never

from tenuto.model.command import Accepted, Armed, Command, Outcome, Unknown, Unsent
from tenuto.model.command import CommandKind as Kind
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.model.work import Agent
from tenuto.ports import Check, Clock, ClosePage, Fuse, Halt, Order, Reply, Steer, TakeOver, Turn
from tenuto.transports import processes
from tenuto.transports.host import carry, claim, environment, journal, lineage, objection, sight, whereabouts
from tenuto.transports.host.bell import Bell, Deaths, reaped
from tenuto.transports.host.halting import Halting
from tenuto.transports.host.journal import Journal
from tenuto.transports.host.launch import TooLongError, Waiting, fits_a_pipe, launch, wait_for_order

HAND_OVER: Final = timedelta(seconds=5)
"""How long a host may take to say what became of its order before that is unknown."""

READ_AGAIN: Final = 0.5
"""Seconds after which a journal is read again although nobody rang: rings can be lost."""


class HostExecutor:
    """Implements `ports.Executor`. Open it inside the loop it serves; `ring` hears of every journal that changed."""

    name = "host"

    def __init__(
        self,
        journal_dir: Path,
        bell_path: Path,
        home_env_file: Path | None,
        registry_id: str,
        clock: Clock,
        fuse: Fuse,
        host_fuse: str | None = None,
        ring: Callable[[CommandId], None] = lambda command_id: None,
        surroundings: Mapping[str, str] = os.environ,
        host: str | None = None,
        shared: bool = False,
    ) -> None:
        """`host` is what this machine is called (its own name unless said); with `shared` directories are the same
        on every host, so that a conversation may be carried on by any of them."""
        self._folder = journal_dir
        self._env_file = home_env_file
        self._registry = registry_id
        self._clock = clock
        self._fuse = fuse
        #: The point at which the next host kills itself; for proofs alone.
        self.host_fuse = host_fuse
        self._ring = ring
        self._surroundings = surroundings
        self._bell = Bell(bell_path, self._rung)
        self._deaths = Deaths(self._died)
        #: Hosts that end without an order. Their end says nothing of the command, which another host may carry by now.
        self._given_up = Deaths(lambda _: None)
        self._launched: set[CommandId] = set()
        self._halting: set[CommandId] = set()
        self._waiting: dict[CommandId, asyncio.Event] = {}
        #: Hosts that are being started for commands that are still being written down.
        self._ready: dict[CommandId, asyncio.Future[Waiting]] = {}
        self._open = False
        self._epoch = 0
        self._host = (host or socket.gethostname()).replace(":", "-")
        self._shared = shared
        self._place: whereabouts.Place | None = None

    async def open(self, epoch: int) -> None:
        """Make this the journal's directory of a supervisor, listen at the bell; OSError when either cannot be."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lineage.join(self._folder, self._registry, epoch)
        self._place = whereabouts.Place(self._host, whereabouts.settle_in(self._folder), str(self._folder.absolute()))
        self._epoch = epoch
        self._deaths.reap()
        await self._bell.open()
        self._open = True

    def led_by(self, epoch: int) -> None:
        """A later supervisor is served; whoever says so has written it down."""
        self._epoch = epoch

    async def close(self) -> None:
        """Stop listening. Hosts and their programs go on."""
        self._open = False
        for command_id in tuple(self._ready):
            self.forgo(command_id)
        self._bell.close()
        self._deaths.close()
        self._given_up.close()

    @property
    def place(self) -> str:
        """Where its journals are; before it is open, where they were the last time."""
        if self._place is None:
            life = whereabouts.incarnation_of(self._folder) or ""
            return str(whereabouts.Place(self._host, life, str(self._folder.absolute())))
        return str(self._place)

    def reaches(self, place: str) -> bool:
        """Whether commands of a place can be looked at from here: their processes are this machine's."""
        there = whereabouts.place_of(place)
        return there is None or there.host == self._host

    def carries(self, place: str) -> bool:
        """Whether a conversation of a place can be carried on here: the same machine, or the same directories."""
        return self._shared or self.reaches(place)

    def _folder_of(self, place: str | None) -> Path:
        """The directory of a command's journal: another home's on this machine, if it is still what it was."""
        there = whereabouts.place_of(place) if place is not None else None
        if there is not None and there.host == self._host and there.there:
            return Path(there.folder)
        return self._folder

    def connected(self, conversation: str | None = None) -> bool:
        """Whether it is open, and the journal's directory can be written and is still the one it began with."""
        return (
            self._open
            and os.access(self._folder, os.W_OK | os.X_OK)
            and lineage.covers(self._folder, self._registry, self._epoch)
        )

    def trouble(self) -> str | None:
        """Why nothing can be handed over although it is open, and what mends it; None when it can."""
        if not self._open or self.connected():
            return None
        if lineage.covers(self._folder, self._registry, self._epoch):
            return f"{self._folder} cannot be written; no turn is started until it can"
        return f"{self._folder} was removed or replaced while it was in use; no turn is started until tenuto restart"

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Carry out an armed command: a program to run, or a turn to end."""
        return await self.carry_out(armed.command, order)

    async def carry_out(self, command: Command, order: Order) -> Outcome:
        """As `perform`, for a command that was armed elsewhere: its row is the registry's, and came over the wire."""
        try:
            match order:
                case Turn() | Check():
                    return await self._hand_over(command, order)
                case Halt():
                    return await self._halt(command, order)
                case Steer():
                    return Unsent("a plain program reads its prompt once; nothing can be put into its turn")
                case TakeOver():
                    return Unsent("a tool server is asked by an executor of its own")
                case Reply():
                    return Unsent("a plain program asks for no leave that it could be given")
                case ClosePage():
                    return Unsent("there are no pages here")
                case _ as never:
                    assert_never(never)
        except Exception as error:  # noqa: BLE001 - at the edge an unexpected failure is Unknown, never an exception
            return Unknown(f"the host executor failed ({type(error).__name__}: {error})")

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """Why this program could not be started there now, as (field, sentence); None when it could."""
        return objection.to(agent, cwd, self._surroundings, self._env_file)

    def foresee(self, command_id: CommandId) -> None:
        """Start a host while the command is being written down: it does nothing until it has its order."""
        if self._open and command_id not in self._ready:
            loop = asyncio.get_running_loop()
            self._ready[command_id] = loop.run_in_executor(None, wait_for_order, command_id)

    def forgo(self, command_id: CommandId) -> None:
        """Let a host that still waits for its order end without one; it is reaped when it has."""
        starting = self._ready.pop(command_id, None)
        if starting is not None:
            starting.add_done_callback(lambda future: self._let_go(command_id, future))

    def _let_go(self, command_id: CommandId, starting: asyncio.Future[Waiting]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            pid, pipe = starting.result()
            os.close(pipe)
            self._given_up.watch_child(command_id, pid)

    async def look(self, command: Command) -> Observation:
        """What the journal and the process table say of a command now."""
        folder = self._folder_of(command.place)
        facts = None if command.kind is Kind.INTERRUPT else sight.at_a_glance(folder, command)
        if facts is None:
            facts = await asyncio.to_thread(self._facts, command)
        here = command.id in self._launched or command.id in self._halting
        if facts.performer is Presence.ALIVE and command.kind is not Kind.INTERRUPT:
            self._adopt(command)
        return Observation(
            source=self.name,
            rank=Rank.JOURNAL,
            subject=command.id,
            seen_at=self._clock.now(),
            facts=replace(facts, launched_here=here),
        )

    async def revoke(self, command: Command, epoch: int) -> None:
        """Take the journal's place, if it is still free; `look` tells who has it. OSError when the disk refuses."""
        await self._revoke(command, epoch, "it was revoked before it began")

    def strangers(self, known: Collection[CommandId]) -> tuple[Journal, ...]:
        """Journals of this registry whose commands it does not know: a sign of a restored backup."""
        return journal.strangers(self._folder, self._registry, known)

    def held(self) -> tuple[CommandId, ...]:
        """The commands that have a journal here."""
        return journal.held(self._folder)

    def old(self, age: timedelta) -> tuple[CommandId, ...]:
        """Those whose journals say that all is over, and have said so for `age`."""
        return journal.old(self._folder, age=age, now=self._clock.now())

    def highest_epoch(self) -> int:
        """The highest epoch any host was ordered under for this registry, 0 for none; ValueError when unreadable."""
        return claim.epochs(str(self._folder)).get(self._registry, 0)

    def clean(self, keep: Collection[CommandId], age: timedelta) -> tuple[CommandId, ...]:
        """Remove old settled journals of commands that are not in `keep`; which ones were removed."""
        return journal.clean(self._folder, keep, age=age, now=self._clock.now())

    async def _hand_over(self, command: Command, order: Turn | Check) -> Outcome:
        if journal.read(self._folder, command.id).mark is not Mark.NONE:
            return _told(await asyncio.to_thread(self._facts, command))
        event = self._waiting.setdefault(command.id, asyncio.Event())
        try:
            try:
                self._launch_fits(order)
                ordered = self._ordered(command, order)
                await self._launch(command.id, ordered)
            except environment.MissingError as missing:
                return await self._unsent(command, str(missing), mendable=True)
            except (TooLongError, ValueError) as error:
                return await self._unsent(command, str(error), mendable=True)
            except OSError as error:
                return await self._unsent(command, f"no host could be started ({error.strerror})", mendable=False)
            return await self._settled(command, event)
        finally:
            self._waiting.pop(command.id, None)

    def _launch_fits(self, order: Turn | Check) -> None:
        if not order.argv or not order.argv[0]:
            raise ValueError("there is no program to run")
        if any("\0" in part for part in (*order.argv, order.cwd)):
            raise ValueError("a program's arguments and directory cannot hold a NUL")

    def _ordered(self, command: Command, order: Turn | Check) -> carry.Order:
        kind, prompt = ("turn", order.prompt) if isinstance(order, Turn) else ("check", "")
        given = {**order.given, "TENUTO_TASK": command.task_id, sight.COMMAND: command.id}
        env = environment.resolve(order.env, given, self._surroundings, self._env_file)
        env.pop(sight.ATTEMPT, None)
        if kind == "turn" and command.attempt_id is not None:
            env[sight.ATTEMPT] = command.attempt_id
        return {
            "folder": str(self._folder.absolute()),
            "command": command.id,
            "attempt": command.attempt_id,
            "task": command.task_id,
            "registry": self._registry,
            "epoch": command.epoch,
            "kind": kind,
            "host": None,
            "argv": list(order.argv),
            "cwd": order.cwd,
            "env": env,
            "prompt": prompt,
            "limit": order.limit.total_seconds(),
            "grace": order.grace.total_seconds(),
            "bell": str(self._bell.path.absolute()),
            "fuse": self.host_fuse,
        }

    async def _launch(self, command_id: CommandId, ordered: carry.Order) -> None:
        """Start the host in a thread; should nobody wait for it any more, its end is heard all the same.

        One that waits and whose order a pipe holds whole keeps nobody waiting, and is told here.
        """
        loop = asyncio.get_running_loop()
        waiting = await self._made_ready(command_id)
        if waiting is not None and fits_a_pipe(ordered):
            pid = launch(ordered, self._fuse, waiting)
            self._launched.add(command_id)
            self._deaths.watch_child(command_id, pid)
            return
        starting = loop.run_in_executor(None, launch, ordered, self._fuse, waiting)

        def started(future: asyncio.Future[int]) -> None:
            if not future.cancelled() and future.exception() is None:
                self._launched.add(command_id)
                self._deaths.watch_child(command_id, future.result())

        starting.add_done_callback(started)
        await asyncio.shield(starting)

    async def _made_ready(self, command_id: CommandId) -> Waiting | None:
        """The host that was started in foresight, which is ours from here on; None when there is none."""
        starting = self._ready.get(command_id)
        if starting is None:
            return None
        try:
            waiting = await asyncio.shield(starting)
        except OSError:
            waiting = None  # starting it again will say why it cannot be
        self._ready.pop(command_id, None)
        if waiting is not None and reaped(waiting.pid):
            os.close(waiting.pipe)  # it never had an order, so another may be started in its place
            return None
        return waiting

    async def _settled(self, command: Command, event: asyncio.Event) -> Outcome:
        """Wait until the journal says what became of the order, or the host is gone."""
        try:
            async with asyncio.timeout(HAND_OVER.total_seconds()):
                while True:
                    event.clear()
                    running = command.id in self._launched  # before the journal is read: a dead host writes no more
                    seen = journal.read(self._folder, command.id)
                    match seen.mark:
                        case Mark.ACCEPTED | Mark.ENDED:
                            return Accepted()
                        case Mark.FAILED | Mark.REVOKED:
                            return Unsent(seen.reason or "it never began")
                        case Mark.DAMAGED:
                            return Unknown(seen.reason or "its journal cannot be read")
                        case Mark.NONE if not running:
                            return await self._unsent(command, "its host ended before it did anything")
                        case Mark.CLAIMED if not running:
                            return Unsent("its host ended before anything began")
                        case Mark.BEGUN if not running:
                            return Unknown("its host died while starting the program")
                        case _:
                            await _heard(event)
        except TimeoutError:
            return Unknown("its host has not said yet whether the program started")

    async def _unsent(self, command: Command, reason: str, *, mendable: bool | None = None) -> Outcome:
        """Unsent, once nothing can begin any more; if somebody began after all, what became of it is unknown."""
        if await self._revoke(command, command.epoch, reason, mendable=mendable):
            return Unsent(reason)
        return _told(await asyncio.to_thread(self._facts, command))

    async def _revoke(self, command: Command, epoch: int, reason: str, *, mendable: bool | None = None) -> bool:
        if command.place is not None and not self.reaches(command.place):
            return False
        folder = self._folder_of(command.place)
        self._fuse.burn("revoke.before")
        now = self._clock.now()
        won = await asyncio.to_thread(
            lambda: journal.revoke(
                folder,
                command.id,
                registry=self._registry,
                epoch=epoch,
                reason=reason,
                mendable=mendable,
                now=now,
            )
        )
        self._fuse.burn("revoke.done")
        return won

    async def _halt(self, command: Command, order: Halt) -> Outcome:
        if order.place is not None and not self.reaches(order.place):
            return Unknown("the host that its turn is on is not reached from here")
        folder = self._folder_of(order.place)
        me = processes.identity_of(os.getpid())
        first = {
            **self._marked("claimed"),
            "command": command.id,
            "attempt": command.attempt_id,
            "task": command.task_id,
            "registry": self._registry,
            "epoch": command.epoch,
            "kind": "halt",
            "target": order.target,
            "host": {"pid": me.pid, "start": me.start, "boot": me.boot} if me is not None else None,
        }
        try:
            written = await asyncio.to_thread(claim.take, str(folder), command.id, first)
        except claim.TakenError:
            return _told(await asyncio.to_thread(self._facts, command))
        self._halting.add(command.id)
        try:
            return await self._at_work(command, order, written, folder)
        finally:
            self._halting.discard(command.id)
            written.close()

    async def _at_work(self, command: Command, order: Halt, written: claim.Journal, folder: Path) -> Outcome:
        accepted = False

        def accept() -> None:
            nonlocal accepted
            if not accepted:
                accepted = True
                written.mark({**self._marked("accepted"), "pid": os.getpid(), "start": None})

        def revoke() -> bool:
            return journal.revoke(
                folder,
                order.target,
                registry=self._registry,
                epoch=command.epoch,
                reason="it was stopped before it began",
                now=self._clock.now(),
            )

        await asyncio.to_thread(written.mark, self._marked("begun"))
        if not await Halting(folder, order, self._fuse, revoke, accept).over():
            return Unknown("not everything of it is proven gone")
        await asyncio.to_thread(accept)
        await asyncio.to_thread(
            written.mark,
            {
                **self._marked("ended"),
                "exit_code": 0,
                "signal": None,
                "cut": None,
                "output_bytes": 0,
                "survivors": 0,
                "signals": [],
                "signal_count": 0,
                "reports": [],
            },
        )
        self._rung(command.id)
        return Accepted()

    def _marked(self, mark: str) -> dict[str, object]:
        return {"mark": mark, "at": self._clock.now().isoformat(timespec="milliseconds")}

    def _facts(self, command: Command) -> CommandFacts:
        folder = self._folder_of(command.place)
        if command.kind is Kind.INTERRUPT:
            return sight.of_halt(folder, command, working=command.id in self._halting)
        return sight.of_turn(folder, command, self._registry, launched_here=command.id in self._launched)

    def _adopt(self, command: Command) -> None:
        """Hear the end of a host that another supervisor, or an earlier one, has started."""
        if self._open and not self._deaths.watching(command.id):
            host = journal.read(self._folder_of(command.place), command.id).host
            if host is not None:
                self._deaths.watch(command.id, host)

    def _died(self, command_id: CommandId) -> None:
        self._launched.discard(command_id)
        self._rung(command_id)

    def _rung(self, command_id: CommandId) -> None:
        if event := self._waiting.get(command_id):
            event.set()
        self._ring(command_id)


async def _heard(event: asyncio.Event) -> None:
    """Wait for a ring, or for the time to read again without one."""
    try:
        async with asyncio.timeout(READ_AGAIN):
            await event.wait()
    except TimeoutError:
        pass


def _told(facts: CommandFacts) -> Outcome:
    """What a journal that somebody else has taken says of the command."""
    match facts.mark:
        case Mark.ACCEPTED | Mark.ENDED:
            return Accepted()
        case Mark.FAILED | Mark.REVOKED:
            return Unsent(facts.reason or "it never began")
        case Mark.CLAIMED if facts.performer is Presence.GONE:
            return Unsent("its host ended before anything began")
        case Mark.NONE | Mark.CLAIMED | Mark.BEGUN | Mark.DAMAGED:
            return Unknown(facts.reason or "it is being carried out already")
        case _ as never:
            assert_never(never)
