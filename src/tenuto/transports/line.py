"""One connection of one executor, from its greeting to its end: frames go out, marks and answers come in.

A line is ready only once the executor has written down the epoch that leads. It keeps what the executor's journal said
last, and says of everything that is still awaited when it breaks that nothing came. It concludes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol, assert_never

from tenuto.model.evidence import Mark, Presence, Rank
from tenuto.model.ids import CommandId
from tenuto.ports import Clock
from tenuto.transports import wire

SILENCE: Final = 2.5
"""After so many heartbeats without a frame a line is given up."""

SEND_WITHIN: Final = 10.0
"""Seconds that one frame may take to leave; a peer that takes nothing is gone."""

POLICY: Final = 1008
GOING: Final = 1001
NORMAL: Final = 1000


class Socket(Protocol):
    """Texts in order, both ways. Whoever accepted it checked who is on the other side."""

    async def send(self, text: str) -> None:
        """Send one message; ConnectionError when it is closed."""
        ...

    async def receive(self) -> str | None:
        """The next message, None once it is closed. WireError for one that is too large or no text."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close it; nothing when it is closed."""
        ...


Told = Callable[[CommandId], None]
Fact = (
    wire.Received | wire.Begun | wire.Accepted | wire.Ended | wire.Failed | wire.Unknown | wire.Revoked | wire.TooLate
)  # fmt: skip


class Line:
    """The supervisor's end of one connection. `told` hears of every command whose mark came in."""

    def __init__(self, socket: Socket, hello: wire.Hello, clock: Clock, told: Told) -> None:
        self._socket = socket
        self.hello = hello
        self._clock = clock
        self._told = told
        self._sending = asyncio.Lock()
        self._query = 0
        self._queries: dict[int, asyncio.Future[wire.Observation | None]] = {}
        self._awaited: dict[CommandId, list[asyncio.Queue[Fact | None]]] = {}
        self.serves = frozenset(hello.serves)
        self.since = clock.now()
        self.heard_at: datetime = self.since
        self._heard = clock.monotonic()
        self.ready = False
        self.over = asyncio.Event()

    @property
    def open(self) -> bool:
        """Whether commands can be handed over it."""
        return self.ready and not self.over.is_set()

    async def send(self, frame: wire.FromSupervisor) -> bool:
        """Send a frame; False when the line is broken. WireError when the frame is too large for anybody."""
        text = wire.dump(frame)
        if self.over.is_set():
            return False
        try:
            async with asyncio.timeout(SEND_WITHIN), self._sending:
                await self._socket.send(text)
        except (ConnectionError, TimeoutError):
            self.cut()
            return False
        return True

    async def inquire(self, subject: wire.Subject, within: float) -> wire.Observation | None:
        """What the executor sees of one command now; None when nothing came in time."""
        return await self._asked(lambda query: wire.Inquire(query, (subject,)), within)

    async def inquire_page(self, target: wire.Target, within: float) -> wire.Observation | None:
        """What the page of one conversation shows now; None when nothing came in time."""
        return await self._asked(lambda query: wire.Inquire(query, (), (target,)), within)

    async def _asked(self, ask: Callable[[int], wire.Inquire], within: float) -> wire.Observation | None:
        self._query += 1
        query = self._query
        answer: asyncio.Future[wire.Observation | None] = asyncio.get_running_loop().create_future()
        self._queries[query] = answer
        try:
            if not await self.send(ask(query)):
                return None
            async with asyncio.timeout(within):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._queries.pop(query, None)

    async def awaited(
        self, command: CommandId, sent: wire.FromSupervisor, within: float, *kinds: type[Fact]
    ) -> Fact | None:
        """Send a frame and wait for the first word of one of these kinds about the command; None when none came."""
        words: asyncio.Queue[Fact | None] = asyncio.Queue()
        waiting = self._awaited.setdefault(command, [])
        waiting.append(words)
        try:
            if not await self.send(sent):
                return None
            async with asyncio.timeout(within):
                while (said := await words.get()) is not None:
                    if isinstance(said, kinds):
                        return said
                return None
        except TimeoutError:
            return None
        finally:
            waiting.remove(words)
            if not waiting:
                self._awaited.pop(command, None)

    async def receive(self) -> str | None:
        """The next message; None when the line is over, whoever ended it."""
        return None if self.over.is_set() else await self._socket.receive()

    async def pulse(self, heartbeat: float) -> None:
        """Ping, and give the line up when nothing has been heard for too long. Ends with the line."""
        n = 0
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(heartbeat):
                    await self.over.wait()
            if self.over.is_set():
                return
            if self._clock.monotonic() - self._heard > SILENCE * heartbeat:
                await self.bye(wire.Farewell.SILENT, "nothing was heard for too long")
                return
            n += 1
            await self.send(wire.Ping(n))

    def hears(self) -> None:
        """Something came in."""
        self.heard_at, self._heard = self._clock.now(), self._clock.monotonic()

    def answers(self, frame: wire.Observation) -> None:
        """Hand an answer to whoever asked."""
        future = self._queries.get(frame.query) if frame.query is not None else None
        if future is not None and not future.done():
            future.set_result(frame)

    def says(self, fact: Fact) -> None:
        """Hand a word about a command to whoever waits for it, and ring."""
        for words in self._awaited.get(fact.command, ()):
            words.put_nowait(fact)
        self._told(fact.command)

    async def bye(self, code: wire.Farewell, message: str) -> None:
        """Say why, and close."""
        if not self.over.is_set():
            await self.send(wire.Bye(code, message))
        self.cut()
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(SEND_WITHIN):
                await self._socket.close(GOING if code is wire.Farewell.STOPPING else POLICY, message[:100])

    def cut(self) -> None:
        """It is over: whoever waits for something over it gets nothing."""
        self.over.set()
        for future in self._queries.values():
            if not future.done():
                future.set_result(None)
        for waiting in self._awaited.values():
            for words in waiting:
                words.put_nowait(None)


def seen(before: wire.CommandSeen | None, fact: Fact) -> wire.CommandSeen | None:
    """What is known of a command once its executor has said this; None where it said nothing that can be kept."""
    known = before or wire.CommandSeen(Mark.NONE, Presence.UNKNOWN, Presence.UNKNOWN)
    match fact:
        case wire.Received():
            return replace(known, mark=Mark.CLAIMED, performer=Presence.ALIVE)
        case wire.Begun(at=at):
            return replace(known, mark=Mark.BEGUN, marked_at=at, performer=Presence.ALIVE)
        case wire.Accepted(at=at, proof=proof):
            return replace(known, mark=Mark.ACCEPTED, marked_at=at, proof=proof)
        case wire.Ended(at=at, ending=ending, proof=proof):
            # Whether anything of it is left is only known once it has been asked for.
            return replace(known, mark=Mark.ENDED, marked_at=at, ending=ending, proof=proof or known.proof)
        case wire.Failed(at=at, reason=reason, mendable=mendable):
            gone = Presence.GONE
            return replace(
                known, mark=Mark.FAILED, marked_at=at, reason=reason, mendable=mendable, performer=gone, agent=gone
            )
        case wire.Revoked():
            return replace(known, mark=Mark.REVOKED, performer=Presence.GONE, agent=Presence.GONE)
        case wire.TooLate() | wire.Unknown():
            return None
        case _ as never:
            assert_never(never)


def rank_of(told: Rank, kind: wire.ExecutorKind) -> Rank:
    """How strong a look is: never stronger than this sort of executor can see."""
    best = Rank.PAGE if kind is wire.ExecutorKind.EXTENSION else Rank.JOURNAL
    return max(told, best)


def moment_of(frame: wire.Observation, now: datetime) -> datetime:
    """When something was seen, by our own clock."""
    return now - timedelta(seconds=min(max(frame.age, 0.0), 86_400.0))
