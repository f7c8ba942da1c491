"""The machine on which hosts and agents run, and a supervisor's hand on it.

Keeps the journal's semantics: a command's place is claimed by one, marks are written before the step they speak of,
a revocation takes the same place, and a host refuses an epoch lower than the highest it has seen. Hosts die at every
step, agents go on without them, and news gets lost, comes late or comes twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import assert_never

from tenuto.model.command import Accepted, Armed, Command, CommandKind, Outcome, Unknown, Unsent
from tenuto.model.evidence import CommandFacts, Cut, Ending, Mark, Observation, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.model.work import Agent
from tenuto.ports import Check, ClosePage, Halt, Order, Reply, Steer, TakeOver, Turn
from tenuto.proof.simulation.accounts import Accounts, account_of
from tenuto.proof.simulation.laws import Laws
from tenuto.proof.simulation.mind import Mind
from tenuto.proof.simulation.virtual import VirtualClock, VirtualLoop

NAME = "host"
HAND_OVER = 5.0
TALKS = "--talks"
"""Among the arguments of a program that takes words in the middle of a turn."""


def takes_words(agent: Agent) -> bool:
    """Whether an agent's executor says that it puts words into a turn."""
    return agent.in_page or TALKS in agent.argv


#: What befalls words on their way into a turn, and how often of a hundred times.
STEERS = {"well": 75, "over": 5, "refused": 5, "claimed": 4, "unread": 4, "unheard": 4, "late": 3}
GONE, ALIVE, UNKNOWN = Presence.GONE, Presence.ALIVE, Presence.UNKNOWN
OVER = frozenset({Mark.ENDED, Mark.FAILED, Mark.REVOKED})


@dataclass
class Entry:
    """One command's journal, and who is there."""

    command: Command
    mark: Mark
    host: bool = False
    agent: bool = False
    ending: Ending | None = None
    reason: str | None = None
    mendable: bool = False
    words: str = ""
    talks: bool = False
    turn: str | None = None
    heard: list[asyncio.Event] = field(default_factory=list)


class Machine:
    """Everything outside that turns run on. `rings` are told of news; `mishaps` says whether anything may go wrong."""

    def __init__(
        self,
        loop: VirtualLoop,
        clock: VirtualClock,
        laws: Laws,
        mind: Mind,
        accounts: Accounts,
        chance: Callable[[Command], Random],
        say: Callable[[str], None],
        *,
        mishaps: bool,
    ) -> None:
        self._loop = loop
        self.clock = clock
        self._laws = laws
        self._mind = mind
        self._accounts = accounts
        self._chance = chance
        self.say = say
        self.mishaps = mishaps
        self.group: asyncio.TaskGroup
        self.journal: dict[CommandId, Entry] = {}
        self._highest = 0
        self.reachable = True
        self.seen = True
        self.rings: list[Callable[[CommandId], None]] = []
        self.hands: list[Hand] = []

    # -- a host's life

    def launch(self, command: Command, order: Turn | Check) -> None:
        """Start a host; it claims a moment later, or dies before."""
        chance = self._chance(command)
        late = self.mishaps and chance.random() < 0.03
        delay = chance.uniform(20, 90) if late else chance.uniform(0.02, 0.4)
        fate = chance.choices(
            ["well", "unborn", "claimed", "begun", "started", "orphan", "unstartable"],
            [1.0, *((0.02, 0.02, 0.02, 0.02, 0.06, 0.01) if self.mishaps else (0.0,) * 6)],
        )[0]
        self._loop.call_later(delay, self._claim, command, order, fate, chance)

    def _claim(self, command: Command, order: Turn | Check, fate: str, chance: Random) -> None:
        if fate == "unborn" or command.id in self.journal:
            self.say(f"host of {command.id} {'dies unborn' if fate == 'unborn' else 'finds its place taken'}")
            self._died(command.id)
            return
        entry = self.journal[command.id] = Entry(command, Mark.CLAIMED, host=True)
        if isinstance(order, Turn):
            entry.words, entry.talks = order.prompt, TALKS in order.argv
        if command.epoch < self._highest:
            self._mark(entry, Mark.FAILED, reason="a lower epoch than was seen before")
            self._end_host(entry)
            return
        self._highest = command.epoch
        if fate == "claimed":
            self._end_host(entry)
        elif fate == "unstartable":
            self._mark(entry, Mark.FAILED, reason="the program could not be started", mendable=False)
            self._end_host(entry)
        else:
            self._loop.call_later(chance.uniform(0.01, 0.2), self._begin, entry, fate, chance)

    def _begin(self, entry: Entry, fate: str, chance: Random) -> None:
        self._mark(entry, Mark.BEGUN)
        if fate == "begun":
            self._end_host(entry)
            return
        command = entry.command
        entry.agent = True
        if command.kind is CommandKind.SEND:
            self._laws.asks_account(command, self._loop.time(), self.clock.wrong_by)
            self._laws.effect(command, entry.words)
            entry.turn = f"turn-of-{command.id}" if entry.talks else None
        else:
            self._laws.checked(command)
        self._loop.call_later(self._mind.lasts(command), self._finish, entry)
        if fate == "started":  # its host dies in the moment between: the journal says begun, and it runs
            self._end_host(entry)
            return
        self._mark(entry, Mark.ACCEPTED)
        self.news(entry)
        if fate == "orphan":
            self._loop.call_later(chance.uniform(1, 1_200), self._orphan, entry)

    def _orphan(self, entry: Entry) -> None:
        if entry.host:
            self.say(f"host of {entry.command.id} dies, its agent goes on")
            self._end_host(entry)

    def _finish(self, entry: Entry) -> None:
        if entry.agent:
            self.group.create_task(self._finished(entry))

    async def _finished(self, entry: Entry) -> None:
        ending = await self._mind.ends(entry.command)
        if not entry.agent:
            return  # ended by an interruption while it spoke
        entry.agent = False
        self._laws.gone(entry.command)
        self.say(f"agent of {entry.command.id} is gone{'' if entry.host else ', and nobody saw it'}")
        if entry.host:
            entry.ending = ending or Ending(None, 9, Cut.KILLED)
            self._met(entry)
            self._mark(entry, Mark.ENDED)
            self._end_host(entry)
        else:
            self.news(entry)

    def _met(self, entry: Entry) -> None:
        """A limit that a program told the reset of is known from here on."""
        ending, command = entry.ending, entry.command
        if command.kind is CommandKind.SEND and ending is not None and ending.hindered is not None:
            held = self._accounts.reset(account_of(self._laws.tasks[command.task_id].agent))
            if held is not None and ending.hindered.resets_at is not None:
                self._laws.met_limit(command, held[0], self.clock.wrong_by)

    def _end_host(self, entry: Entry) -> None:
        entry.host = False
        self._died(entry.command.id)
        self.news(entry)

    def _died(self, command_id: CommandId) -> None:
        for hand in self.hands:
            hand.launched.discard(command_id)

    def _mark(self, entry: Entry, mark: Mark, reason: str | None = None, *, mendable: bool = False) -> None:
        entry.mark, entry.reason, entry.mendable = mark, reason, mendable
        self.say(f"journal of {entry.command.id}: {mark}")
        for event in entry.heard:
            event.set()

    def news(self, entry: Entry) -> None:
        """Ring for a command: once, late, twice or not at all."""
        command_id, chance = entry.command.id, self._chance(entry.command)
        fate = chance.random() if self.mishaps else 1.0
        if fate < 0.04:
            return
        if fate < 0.08:
            self._loop.call_later(chance.uniform(1, 600), self._ring, command_id)
            return
        self._ring(command_id)
        if fate < 0.12:
            self._loop.call_later(chance.uniform(0, 60), self._ring, command_id)

    def _ring(self, command_id: CommandId) -> None:
        for ring in tuple(self.rings):
            ring(command_id)

    # -- what a supervisor may do

    def revoke(self, command: Command, reason: str) -> bool:
        """Take a command's place, if it is free."""
        if command.id in self.journal:
            return False
        self.journal[command.id] = Entry(command, Mark.REVOKED, reason=reason)
        self.say(f"{command.id} is revoked")
        return True

    async def steer(self, entry: Entry, order: Steer) -> None:
        """Put words into a turn under way: they are taken there, refused, or nobody knows."""
        command = entry.command
        chance = self._chance(command)
        fate = chance.choices(list(STEERS), list(STEERS.values()))[0] if self.mishaps else "well"
        self.say(f"words {command.id} for {order.target}: {fate}")
        await asyncio.sleep(chance.uniform(0.02, 0.5))
        if fate == "claimed":
            self._end_host(entry)
            return
        target = self.journal.get(order.target)
        if fate == "over" or target is None or target.turn != order.turn or not _open(target):
            self._mark(entry, Mark.FAILED, reason="that turn is over")
            self._end_host(entry)
            return
        self._mark(entry, Mark.BEGUN)
        await asyncio.sleep(chance.uniform(0.02, 2.0))
        if fate == "refused" or not _open(target):
            self._mark(entry, Mark.FAILED, reason="its turn did not take them")
            self._end_host(entry)
            return
        if fate != "unread":
            self._laws.told(command, order.text)
        if fate in ("unread", "unheard"):
            self._end_host(entry)
            return
        if fate == "late":
            await asyncio.sleep(chance.uniform(10, 300))
        entry.turn, entry.ending = order.turn, Ending(0, None, None)
        self._mark(entry, Mark.ENDED)
        self._end_host(entry)

    def halt(self, target: CommandId) -> bool:
        """End a turn; whether everything of it is gone."""
        entry = self.journal.get(target)
        if entry is None or (entry.mark in OVER and not entry.agent):
            return True
        chance = self._chance(entry.command)
        if self.mishaps and chance.random() < 0.1:
            return False
        if entry.agent:
            entry.agent = False
            self._laws.gone(entry.command)
        if entry.host:
            entry.ending = Ending(None, 15, Cut.INTERRUPT)
            self._mark(entry, Mark.ENDED)
            self._end_host(entry)
        return True

    def facts(self, command: Command, *, launched_here: bool) -> CommandFacts:
        """What the journal and the process table say of a command now."""
        entry = self.journal.get(command.id)
        if entry is None:
            return CommandFacts(command.id, command.attempt_id, Mark.NONE, GONE, GONE, launched_here=launched_here)
        host = ALIVE if entry.host else GONE
        agent = ALIVE if entry.agent else GONE
        if not self.seen and entry.mark not in (Mark.REVOKED, Mark.FAILED):
            host, agent = (UNKNOWN if entry.mark is not Mark.ENDED else host), UNKNOWN
            if entry.mark is Mark.ENDED and entry.ending is not None and entry.ending.cut is None:
                agent = GONE
        return CommandFacts(
            command.id,
            command.attempt_id,
            entry.mark,
            host,
            agent,
            launched_here=launched_here,
            reason=entry.reason,
            mendable=entry.mendable,
            ending=entry.ending,
            marked_at=self.clock.now(),
            proof={"turn": entry.turn} if entry.turn is not None else {},
        )


def _open(target: Entry) -> bool:
    """Whether a turn takes words."""
    return target.host and target.agent


class Died(BaseException):
    """The supervisor that does this is dead."""


class Hand:
    """Implements `ports.Executor` for one supervisor; `gate` is passed before anything is handed over."""

    name = NAME

    def __init__(self, machine: Machine, gate: Callable[[Command], asyncio.Future[None] | None]) -> None:
        self._machine = machine
        self._gate = gate
        self.launched: set[CommandId] = set()
        self._halting: list[Entry] = []
        self.dead = False
        machine.hands.append(self)

    def die(self) -> None:
        """Its supervisor is dead: it does nothing more, and what it was ending is ended by nobody."""
        if self.dead:
            return
        self.dead = True
        for entry in self._halting:
            entry.host = False
        self._machine.hands.remove(self)

    def connected(self, conversation: str | None = None) -> bool:
        return self._machine.reachable

    def account(self, agent: Agent) -> str | None:
        return account_of(agent)

    def can_steer(self, turn: Command) -> bool:
        entry = self._machine.journal.get(turn.id)
        return entry is not None and entry.turn is not None and entry.mark is Mark.ACCEPTED and entry.host

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        return None

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        command = armed.command
        if (waiting := self._gate(command)) is not None:
            await waiting
        if self.dead:
            raise Died
        match order:
            case Turn() | Check():
                return await self._start(command, order)
            case Halt(target, grace):
                return await self._halt(command, target, grace.total_seconds())
            case Steer():
                return await self._steer(command, order)
            case TakeOver():
                return Unsent("there are no tool servers here")
            case Reply():
                return Unsent("a program asks for no leave")
            case ClosePage():
                return Unsent("there are no pages here")
            case _ as never:
                assert_never(never)

    async def _start(self, command: Command, order: Turn | Check) -> Outcome:
        machine = self._machine
        entry = machine.journal.get(command.id)
        if entry is not None:
            return (
                Unknown("it is being carried out already") if entry.mark not in OVER else Unsent("its place is taken")
            )
        self.launched.add(command.id)
        machine.launch(command, order)
        try:
            async with asyncio.timeout(HAND_OVER):
                while (entry := machine.journal.get(command.id)) is None or entry.mark in (Mark.CLAIMED, Mark.BEGUN):
                    if command.id not in self.launched:
                        return await self._without_host(command)
                    if entry is None:
                        await asyncio.sleep(0.1)
                        continue
                    event = asyncio.Event()
                    entry.heard.append(event)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(1.0):
                            await event.wait()
        except TimeoutError:
            return Unknown("its host has not said yet whether the program started")
        return Accepted() if entry.mark in (Mark.ACCEPTED, Mark.ENDED) else Unsent(entry.reason or "it never began")

    async def _steer(self, command: Command, order: Steer) -> Outcome:
        machine = self._machine
        if command.id in machine.journal:
            return Unknown("it is being carried out already")
        entry = machine.journal[command.id] = Entry(command, Mark.CLAIMED, host=True)
        task = machine.group.create_task(machine.steer(entry, order))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HAND_OVER):
                await asyncio.shield(task)
        match entry.mark:
            case Mark.ENDED:
                return Accepted()
            case Mark.FAILED:
                return Unsent(entry.reason or "it was refused")
            case _:
                return Unknown("nobody saw whether its turn took the words")

    async def _without_host(self, command: Command) -> Outcome:
        if self._machine.revoke(command, "its host ended before it did anything"):
            return Unsent("its host ended before it did anything")
        return Unknown("its host died while starting the program")

    async def _halt(self, command: Command, target: CommandId, grace: float) -> Outcome:
        machine = self._machine
        if command.id in machine.journal:
            return Unknown("it is being carried out already")
        entry = machine.journal[command.id] = Entry(command, Mark.BEGUN, host=True)
        if target not in machine.journal:
            row = replace(command, id=target, kind=CommandKind.SEND)
            machine.revoke(row, "it was stopped before it began")
        self._halting.append(entry)
        await asyncio.sleep(min(grace, 1.0))
        self._halting.remove(entry)
        if not machine.halt(target):
            entry.host = False
            machine._mark(entry, Mark.FAILED, reason="what it was to end still runs")
            return Unknown("not everything of it is proven gone")
        entry.host, entry.ending = False, Ending(0, None, None)
        machine._mark(entry, Mark.ENDED)
        machine.news(entry)
        return Accepted()

    async def look(self, command: Command) -> Observation:
        facts = self._machine.facts(command, launched_here=command.id in self.launched)
        return Observation(NAME, Rank.JOURNAL, command.id, self._machine.clock.now(), facts)

    async def revoke(self, command: Command, epoch: int) -> None:
        if self.dead:
            raise Died
        self._machine.revoke(command, "it was revoked before it began")
