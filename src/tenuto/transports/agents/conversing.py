"""Carries out the commands of one conversation: send, steer, interrupt; each under its journal, one turn at a time.

A turn is accepted when the program's own channel says that it began with our words, and has ended when the channel says
so and everything of the program is proven gone. What the channel does not say is not made up: the journal then stays
where it is, and the supervisor concludes. Nothing of what an agent writes is kept but its fenced blocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tenuto.core.hindered import GONE
from tenuto.model.evidence import Asking, Cut, Ending, How, Mark, Presence
from tenuto.model.ids import CommandId
from tenuto.ports import Clock, Halt, Reply, Steer, Turn
from tenuto.transports import ordered, processes, wire
from tenuto.transports.agents import events as said
from tenuto.transports.agents import sessions
from tenuto.transports.agents.adapters import ADAPTERS, Adapter
from tenuto.transports.agents.channel import Channel, NotOpened, Start
from tenuto.transports.agents.hindering import Hindering
from tenuto.transports.agents.program import ATTEMPT, end_carriers
from tenuto.transports.agents.records import Records
from tenuto.transports.agents.standing import Standing
from tenuto.transports.agents.stops import Stops
from tenuto.transports.agents.verifying import verified
from tenuto.transports.executor_side.carrying import CarryOut, Doing
from tenuto.transports.executor_side.keeping import Keeping, Marks
from tenuto.transports.host import environment
from tenuto.transports.host.fences import FenceScanner
from tenuto.transports.host.journal import Journal

_LOG = logging.getLogger("tenuto.agent")

CUT_WITHIN: Final = 10.0
"""Seconds that a program may take to cut its turn before it is ended."""

CLOSE_WITHIN: Final = 5.0
"""Seconds that a program gets to end by itself once its turn is over."""


Tell = Callable[[str, said.Event], None]
"""Says an event of a conversation to whoever listens."""


@dataclass
class Going:
    """The turn under way. `asks` are the questions that its program waits with, by the program's names of them.

    `heard_at` is when its channel said anything last, on a clock of this process.
    """

    command: CommandId
    channel: Channel
    hindering: Hindering
    turn: str | None = None
    cut: Cut | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    steers: dict[str, asyncio.Future[str | None]] = field(default_factory=dict)
    asks: dict[str, Asking] = field(default_factory=dict)
    heard_at: float | None = None

    def cut_by(self, why: Cut) -> None:
        """Somebody ends it; the first reason stays."""
        self.cut = self.cut or why


@dataclass
class Seen:
    """What a turn's events came to. `compacted` is how often the program made room in its session by itself."""

    ended: said.TurnEnded | None = None
    closed: said.Closed | None = None
    model: str | None = None
    size: int = 0
    compacted: int = 0


class Conversing:
    """The hands of one host. `surroundings` is where the values of variables come from, and then `env_file`."""

    def __init__(
        self,
        keeping: Keeping,
        clock: Clock,
        surroundings: Mapping[str, str],
        env_file: Path | None,
        *,
        adapters: Mapping[str, Adapter] = ADAPTERS,
        tell: Tell = lambda conversation, event: None,
        stops: Stops | None = None,
    ) -> None:
        self._keeping = keeping
        self._clock = clock
        self._surroundings = surroundings
        self._env_file = env_file
        self._adapters = adapters
        self._tell = tell
        self._stops = stops
        self._going: Going | None = None
        self.busy_until = clock.monotonic()

    @property
    def kinds(self) -> Mapping[str, CarryOut]:
        """What carries out which kind of command."""
        return {"send": self.send, "steer": self.steer, "interrupt": self.interrupt, "answer": self.answer}

    def _burn(self, point: str) -> None:
        """Pass a point at which a proof may kill this host."""
        self._keeping.fuse.burn(point)

    def doing(self, command: CommandId) -> Doing | None:
        """What the program of this turn waits for; None for a turn that is not under way here."""
        going = self._going
        if going is None or going.command != command:
            return None
        heard = going.heard_at
        quiet = self._clock.monotonic() - heard if heard is not None else None
        return Doing(tuple(going.asks.values()), going.hindering.retrying, quiet)

    # -- a turn

    async def send(self, command: wire.Command, marks: Marks) -> None:
        """One turn, from opening the session to the proof that everything of the program is gone."""
        order = ordered.order_of(command.payload)
        if not isinstance(order, Turn) or order.adapter not in self._adapters:
            await marks.failed("this is no turn of an agent that is known here", mendable=True)
            return
        if self._going is not None:
            await marks.failed("another turn of this conversation is under way")
            return
        adapter = self._adapters[order.adapter]
        target = command.conversation or wire.Target("", "")
        try:
            start = Start(order.argv or adapter.argv, order.cwd, self._environment(adapter, order))
        except environment.MissingError as missing:
            await marks.failed(str(missing), mendable=True)
            return
        channel = await self._channel(adapter, start, target, marks)
        if channel is None:
            return
        going = self._going = Going(command.command, channel, Hindering(self._clock.now))
        try:
            await self._turn(command, marks, order, target, going)
        finally:
            await self._shut(channel)
            going.over.set()
            for waiting in going.steers.values():
                if not waiting.done():
                    waiting.set_result(None)
            self._going = None
            self.busy_until = self._clock.monotonic()

    async def _channel(self, adapter: Adapter, start: Start, target: wire.Target, marks: Marks) -> Channel | None:
        """The channel of a turn: the program's own, or the stops of one that has the session open; None and a mark."""
        known = sessions.held(self._keeping.folder)
        before = sessions.named(target.identity, target.id, known)
        if before is None or not adapter.keeps_records:
            return adapter.make(start)
        records = Records(start.env)
        adopted = known is None or known.session != before.session
        told = await asyncio.to_thread(verified, records, adapter.name, before, start.cwd, adopted=adopted)
        if isinstance(told, str):
            await marks.failed(told, mendable=True)
            return None
        if told is None or self._stops is None:
            return adapter.make(start)
        name = before.session
        return Standing(
            self._stops,
            lambda: records.running(adapter.name, name),
            lambda marker: records.holds(adapter.name, name, marker),
        )

    async def _turn(self, command: wire.Command, marks: Marks, order: Turn, target: wire.Target, going: Going) -> None:
        channel = going.channel
        self._burn("conversing.before_open")
        session = await self._opened(channel, target, marks)
        if session is None:
            return
        self._burn("conversing.opened")
        if going.cut is not None:
            await marks.failed("it was interrupted before it began")
            return
        await marks.begun()
        seen, scanner = Seen(), FenceScanner(order.prompt)
        try:
            await channel.prompt(order.prompt, command.marker)
        except ConnectionError:
            _LOG.warning("the program was gone when it was given its words")
        self._burn("conversing.prompted")
        limit = order.limit.total_seconds()
        try:
            async with asyncio.timeout(limit):
                await self._heard(command, marks, target, session, going, seen, scanner)
        except TimeoutError:
            going.cut_by(Cut.TIME_LIMIT)
            await self._cut_off(command, marks, target, session, going, seen, scanner)
        self._burn("conversing.heard_end")
        gone = await channel.close(CLOSE_WITHIN)
        self._burn("conversing.closed")
        if marks.last is not Mark.ACCEPTED:
            _LOG.warning("the program ended before it took the words: %s", seen.closed)
            return
        if not gone and not await end_carriers(command.attempt or "", order.grace.total_seconds()):
            _LOG.warning("not everything of the program is proven gone")
            return
        cost = await asyncio.to_thread(self._cost, seen, target, session)
        proof = {"turn": going.turn or "", "session": session}
        if seen.compacted:
            proof["compacted"] = str(seen.compacted)
        await marks.ended(_ending(seen, scanner, going, cost), **proof)

    def _cost(self, seen: Seen, target: wire.Target, session: str) -> int | None:
        """What the turn cost, where the program says only what its whole session did; that is written down."""
        total = seen.ended.session_cost if seen.ended is not None else None
        if total is None:
            return seen.ended.usage.cost if seen.ended is not None else None
        before = sessions.held(self._keeping.folder)
        known = before.cost if before is not None and before.session == session else 0
        with contextlib.suppress(OSError):
            sessions.keep(self._keeping.folder, sessions.Held(target.id, session, True, total))
        return total - known if total >= known else total

    async def _opened(self, channel: Channel, target: wire.Target, marks: Marks) -> str | None:
        """The session, open and written down; None when it is not, and that was said."""
        before = sessions.named(target.identity, target.id, sessions.held(self._keeping.folder))
        try:
            name = await channel.open(before.session if before is not None else None)
        except NotOpened as error:
            if before is None or before.confirmed or not error.unknown:
                gone = GONE if error.unknown and before is not None else ""
                await marks.failed(f"{gone}{error.reason}", mendable=error.mendable)
                return None
            before = None  # the program never took a word into it: there is nothing to be lost
            try:
                name = await channel.open(None)
            except NotOpened as again:
                await marks.failed(again.reason, mendable=again.mendable)
                return None
        if name is None:
            await marks.failed("the program did not name its session")
            return None
        if before is None or before.session != name:
            self._burn("conversing.named")
            await asyncio.to_thread(sessions.keep, self._keeping.folder, sessions.Held(target.id, name, False))
        return name

    async def _heard(
        self,
        command: wire.Command,
        marks: Marks,
        target: wire.Target,
        session: str,
        going: Going,
        seen: Seen,
        scanner: FenceScanner,
    ) -> None:
        """Hear events until the turn has ended, or the channel."""
        while True:
            event = await going.channel.hear()
            going.heard_at = self._clock.monotonic()
            going.hindering.hear(event)
            match event:
                case said.TurnBegan(turn, marker) if marker in (None, command.marker):
                    if marks.last is Mark.BEGUN:
                        going.turn = turn
                        named = {"model": seen.model} if seen.model else {}
                        await marks.accepted(turn=turn, session=session, **named)
                        await asyncio.to_thread(self._confirmed, target, session)
                        self._burn("conversing.confirmed")
                case said.Steered(turn, marker):
                    self._settled(going, marker, turn)
                case said.Refused(marker, reason) if marker == command.marker:
                    await marks.failed(f"the program refused its words: {reason}")
                    return
                case said.Refused(marker, _):
                    self._settled(going, marker, "")
                case said.Said(text):
                    told = text.encode("utf-8", "replace") + b"\n"
                    seen.size += len(told)
                    scanner.feed(told)
                case said.TurnEnded():
                    seen.ended = event
                    return
                case said.Closed():
                    seen.closed = event
                    return
                case said.Opened(_, model):
                    seen.model = model or seen.model
                case said.PermissionAsked(request, tool, what, fingerprint):
                    going.asks[request] = Asking(request, tool, what, fingerprint)
                    self._burn("conversing.asked")
                    self._tell(target.id, event)
                case said.Compacted():
                    seen.compacted += 1
                    self._tell(target.id, event)
                case said.PermissionSettled(request):
                    going.asks.pop(request, None)
                    self._tell(target.id, event)
                case (
                    said.Retrying() | said.Failure() | said.Limited() | said.Overloaded()
                    | said.ContextFull() | said.LoggedOut()
                ):  # fmt: skip
                    self._tell(target.id, event)
                case _:
                    pass

    def _confirmed(self, target: wire.Target, session: str) -> None:
        before = sessions.held(self._keeping.folder)
        cost = before.cost if before is not None and before.session == session else 0
        sessions.keep(self._keeping.folder, sessions.Held(target.id, session, True, cost))

    async def _cut_off(
        self,
        command: wire.Command,
        marks: Marks,
        target: wire.Target,
        session: str,
        going: Going,
        seen: Seen,
        scanner: FenceScanner,
    ) -> None:
        """The turn's time is over: have it cut by the program, for a little; closing ends the rest."""
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CUT_WITHIN):
                await going.channel.interrupt()
                await self._heard(command, marks, target, session, going, seen, scanner)

    @staticmethod
    def _settled(going: Going, marker: str, turn: str) -> None:
        waiting = going.steers.get(marker)
        if waiting is not None and not waiting.done():
            waiting.set_result(turn)

    @staticmethod
    async def _shut(channel: Channel) -> None:
        try:
            await channel.close(CLOSE_WITHIN)
        except OSError as error:
            _LOG.warning("closing the program: %s", error)

    def _environment(self, adapter: Adapter, order: Turn) -> dict[str, str]:
        """What the program gets: the turn's names, which must have values, and the adapter's, which may."""
        values = environment.resolve(order.env, order.given, self._surroundings, self._env_file)
        kept = environment.of_file(self._env_file) if self._env_file is not None else {}
        for name in adapter.env:
            value = self._surroundings.get(name, kept.get(name))
            if value is not None and name not in values:
                values[name] = value
        return {**adapter.own_values, **values}

    # -- words into it, and its end

    async def steer(self, command: wire.Command, marks: Marks) -> None:
        """Words into the turn they are meant for, acknowledged by that very turn, or refused by name."""
        order, going = ordered.order_of(command.payload), self._going
        if not isinstance(order, Steer):
            await marks.failed("this is no steering", mendable=True)
            return
        if going is None or going.command != order.target or going.turn != order.turn or going.cut is not None:
            await marks.failed("that turn is over")
            return
        waiting: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        going.steers[command.marker] = waiting
        await marks.begun()
        try:
            await going.channel.steer(order.text, command.marker, order.turn)
        except ConnectionError:
            _LOG.warning("the program was gone when words were to go into its turn")
        self._burn("conversing.steered")
        taken = await waiting
        self._burn("conversing.steer_heard")
        if taken:
            await marks.accepted(turn=taken)
            await marks.ended(Ending(0, None, None, how=How.PROTOCOL), turn=taken)
        elif taken == "":
            await marks.failed("the program did not take words into that turn")

    async def answer(self, command: wire.Command, marks: Marks) -> None:
        """Answer what the program of a turn waits for leave with, where it still waits with that very question."""
        order, going = ordered.order_of(command.payload), self._going
        if not isinstance(order, Reply):
            await marks.failed("this is no answer", mendable=True)
            return
        if going is None or going.command != order.target or going.cut is not None or order.request not in going.asks:
            await marks.failed("its turn does not wait with that question any more")
            return
        await marks.begun()
        try:
            taken = await going.channel.answer(order.request, order.allow, order.words)
        except ConnectionError:
            _LOG.warning("the program was gone when it was to be answered")
            return
        self._burn("conversing.answered")
        if not taken:
            await marks.failed("its program offers no such answer")
            return
        going.asks.pop(order.request, None)
        await marks.accepted(request=order.request)
        await marks.ended(Ending(0, None, None, how=How.PROTOCOL))

    async def interrupt(self, command: wire.Command, marks: Marks) -> None:
        """End a turn: through its channel where it is ours, else by ending everything that carries its attempt."""
        order = ordered.order_of(command.payload)
        if not isinstance(order, Halt):
            await marks.failed("this is no interruption", mendable=True)
            return
        await marks.begun()
        going = self._going
        if going is not None and going.command == order.target:
            going.cut_by(Cut.INTERRUPT)
            with contextlib.suppress(ConnectionError):
                await going.channel.interrupt()
            self._burn("conversing.interrupted")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CUT_WITHIN):
                    await going.over.wait()
            if not going.over.is_set():
                await going.channel.close(order.grace.total_seconds())
                await going.over.wait()
        elif not await self._ended_from_outside(command, order):
            return
        self._burn("conversing.cut")
        await marks.accepted(target=order.target)
        await marks.ended(Ending(0, None, None, how=How.PROTOCOL))

    async def _ended_from_outside(self, command: wire.Command, order: Halt) -> bool:
        """Whether a turn that an earlier host began has nothing left, or can never begin."""
        told = self._keeping.read(order.target)
        if told.mark is Mark.NONE:
            revoke = wire.Revoke(order.target, command.epoch, "it was stopped before it began")
            return await self._keeping.revoke(revoke) is Mark.REVOKED
        return await end_carriers(told.attempt_id or "", order.grace.total_seconds())


class Eyes:
    """What is left of a turn that an earlier host began: whoever carries its attempt."""

    async def agent(self, told: Journal) -> Presence:
        """Gone only where it was looked up that nobody carries it."""
        return await asyncio.to_thread(left_of, told)


def left_of(told: Journal) -> Presence:
    """Whether anybody carries the attempt of this command; belongs in a thread."""
    if told.mark in (Mark.NONE, Mark.REVOKED, Mark.FAILED) or told.kind != "send":
        return Presence.GONE
    if told.host is not None and told.host.boot and told.host.boot != processes.boot_id():
        return Presence.GONE
    if told.attempt_id is None:
        return Presence.UNKNOWN
    since = told.host.start if told.host is not None else None
    found = processes.carriers(ATTEMPT, told.attempt_id, since=since)
    if found is None:
        return Presence.UNKNOWN
    return Presence.ALIVE if found else Presence.GONE


def _ending(seen: Seen, scanner: FenceScanner, going: Going, cost: int | None) -> Ending:
    """How the turn ended: by the program's own word, or cut short where that never came."""
    found, told = scanner.finish(), seen.ended
    cut = going.cut
    code: int | None = None
    number: int | None = None
    if told is None:
        code = seen.closed.exit_code if seen.closed is not None else None
        number = -code if code is not None and code < 0 else None
        code = code if number is None else None
        cut = cut or (Cut.KILLED if number is not None else Cut.VANISHED)
    elif told.interrupted:
        cut = cut or Cut.INTERRUPT
    usage = told.usage if told is not None else said.Usage()
    return Ending(
        exit_code=code if told is None else (1 if told.failed else 0),
        signal=number,
        cut=cut,
        signals=tuple(found["signals"]),
        signal_count=found["signal_count"],
        reports=tuple(found["reports"]),
        output_bytes=seen.size,
        how=How.PROTOCOL,
        stop=told.stop if told is not None else None,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cost=cost,
        currency=usage.currency,
        hindered=going.hindering.of(told) if cut is None else None,
    )
