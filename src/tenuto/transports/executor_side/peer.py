"""The executor's end of a connection: greets, hears commands, says what the hands say, and comes back after a break.

It keeps nothing: whatever was not said because nobody listened is in the journal and asked for again. It follows no
supervisor whose epoch an earlier one has passed, and leaves for good where it was told that it is not wanted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from tenuto.model.evidence import Mark
from tenuto.model.ids import CommandId
from tenuto.ports import Clock, Fuse
from tenuto.transports import wire
from tenuto.transports.executor_side.hands import Greeting, Hands, OldEpoch, OtherRegistry
from tenuto.transports.line import NORMAL, POLICY, SILENCE, Socket

_LOG = logging.getLogger("tenuto.executor")

Connect = Callable[[], Awaitable[Socket]]
"""Opens a connection; ConnectionError when there is nobody, Denied when the door says no."""

FIRST_WAIT: Final = 0.2
LONGEST_WAIT: Final = 30.0
GREETING: Final = 10.0
TIDY: Final = 3600.0
"""Seconds between two questions what may be forgotten."""

OUTBOX: Final = 4096
"""Frames that may wait to be sent; more and the connection is given up, for the journal has them all."""


class Denied(Exception):
    """The door does not let this token in."""


@dataclass(frozen=True)
class Me:
    """Who an executor is. `instance` is this life of it; `boot` the life of its machine."""

    kind: wire.ExecutorKind
    name: str
    instance: str
    boot: str
    capabilities: tuple[str, ...] = ()
    software: str | None = None


class Peer:
    """Speaks for one executor until it is stopped. `connects` are tried in turn; `shake` gives chance from 0 to 1."""

    def __init__(
        self,
        me: Me,
        hands: Hands,
        connects: Sequence[Connect],
        clock: Clock,
        fuse: Fuse,
        *,
        shake: Callable[[], float] = lambda: 0.5,
        version: int = wire.VERSION,
    ) -> None:
        self._me = me
        self._hands = hands
        self._connects = connects
        self._clock = clock
        self._fuse = fuse
        self._shake = shake
        self._version = version
        self._began_at = clock.now()
        self._stopping = asyncio.Event()
        self._outbox: asyncio.Queue[wire.FromExecutor] | None = None
        self._in_hand: set[CommandId] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard = 0.0
        self._epoch = 0
        #: Set while commands may come.
        self.ready = asyncio.Event()

    def tell(self, frame: wire.FromExecutor) -> None:
        """Say something, if somebody listens; what a slow listener does not take is asked for again."""
        if self._outbox is None:
            return
        try:
            self._outbox.put_nowait(frame)
        except asyncio.QueueFull:
            _LOG.warning("the supervisor takes nothing; a %s is not said", frame.frame)

    def serving(self, identities: Sequence[str]) -> None:
        """The conversations that can be reached have changed."""
        self.tell(wire.Serving(tuple(identities)))

    def stop(self) -> None:
        """Leave, and do not come back. What this process itself carries out is given up where it stands."""
        self._stopping.set()

    async def run(self) -> wire.Bye | None:
        """Stay connected until stopped (None), or until it is not wanted: the farewell says why."""
        async with asyncio.TaskGroup() as group:
            staying = group.create_task(self._stay(group), name="connections")
            stopping = group.create_task(self._stopping.wait(), name="stop")
            try:
                await asyncio.wait((staying, stopping), return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopping.cancel()
                staying.cancel()
                for task in self._tasks:
                    task.cancel()
        return staying.result() if not staying.cancelled() else None

    async def _stay(self, group: asyncio.TaskGroup) -> wire.Bye | None:
        wait = FIRST_WAIT
        while True:
            for connect in self._connects:
                bye, greeted = await self._once(connect, group)
                if bye is not None and bye.code in wire.FINAL:
                    _LOG.error("not wanted: %s", bye.message)
                    return bye
                if greeted:
                    wait = FIRST_WAIT
            await asyncio.sleep(wait * (0.5 + self._shake()))
            wait = min(wait * 2, LONGEST_WAIT)

    async def _once(self, connect: Connect, group: asyncio.TaskGroup) -> tuple[wire.Bye | None, bool]:
        """One connection to its end: the farewell, if one was said, and whether it had been greeted."""
        try:
            socket = await connect()
        except (OSError, TimeoutError) as error:
            _LOG.debug("nobody to connect to: %s", error)
            return None, False
        except Denied as denied:
            _LOG.warning("%s", denied)
            return None, False
        try:
            return await self._connected(socket, group)
        except wire.WireError as error:
            _LOG.warning("the supervisor said what nobody understands: %s", error)
            code = wire.Farewell.VERSION if error.code is wire.Refused.VERSION else wire.Farewell.PROTOCOL
            bye = wire.Bye(code, str(error))
            await _leave(socket, bye)
            return bye, False
        except OldEpoch as old:
            await _leave(socket, wire.Bye(wire.Farewell.EPOCH, str(old)))
            return None, False
        except OtherRegistry as other:
            bye = wire.Bye(wire.Farewell.REGISTRY, str(other))
            await _leave(socket, bye)
            return bye, False
        except _Gone as gone:
            return gone.bye, self.ready.is_set()
        except (OSError, TimeoutError, ValueError) as error:
            _LOG.warning("the connection ends: %s", error)
            return None, self.ready.is_set()
        finally:
            self.ready.clear()
            self._outbox = None
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(2):
                    await socket.close(NORMAL, "")

    async def _connected(self, socket: Socket, group: asyncio.TaskGroup) -> tuple[wire.Bye | None, bool]:
        greeting = await asyncio.to_thread(self._hands.greeting)
        await socket.send(wire.dump(self._hello(greeting)))
        async with asyncio.timeout(GREETING):
            welcome = await _heard(socket)
        if not isinstance(welcome, wire.Welcome):
            raise wire.WireError(wire.Refused.MALFORMED, "the first frame is a welcome")
        wire.negotiated(welcome.protocol, self._version)
        await asyncio.to_thread(self._hands.follow, welcome.registry, welcome.epoch)
        self._epoch = welcome.epoch
        self._outbox = asyncio.Queue(OUTBOX)
        self.tell(wire.Ready(welcome.epoch))
        self._heard = self._clock.monotonic()
        self.ready.set()
        _LOG.info("connected as %s, epoch %s", welcome.executor, welcome.epoch)
        async with asyncio.TaskGroup() as both:
            writer = both.create_task(self._write(socket, self._outbox), name="writer")
            pulse = both.create_task(self._pulse(socket, welcome.heartbeat), name="pulse")
            tidying = both.create_task(self._tidy(), name="tidy")
            try:
                while True:
                    frame = await _heard(socket)
                    self._heard = self._clock.monotonic()
                    self._take(frame, greeting, group)
            except _Gone as gone:
                return gone.bye, True
            finally:
                writer.cancel()
                pulse.cancel()
                tidying.cancel()

    def _hello(self, greeting: Greeting) -> wire.Hello:
        return wire.Hello(
            protocol=wire.protocol(self._version),
            kind=self._me.kind,
            name=self._me.name,
            instance=self._me.instance,
            began_at=self._began_at,
            incarnation=greeting.incarnation,
            boot=self._me.boot,
            epoch=greeting.epoch,
            registry=greeting.registry,
            capabilities=self._me.capabilities,
            serves=tuple(greeting.serves),
            journal=tuple(greeting.entries),
            software=self._me.software,
        )

    def _take(self, frame: wire.Frame, greeting: Greeting, group: asyncio.TaskGroup) -> None:
        match frame:
            case wire.Ping(n):
                self.tell(wire.Pong(n))
            case wire.Pong():
                pass
            case wire.Bye():
                raise _Gone(frame)
            case wire.Command():
                self._fuse.burn("peer.heard")
                if frame.epoch != self._epoch:
                    self.tell(wire.Unknown(frame.command, f"it was armed by epoch {frame.epoch}, not {self._epoch}"))
                elif frame.command not in self._in_hand:
                    self._in_hand.add(frame.command)
                    self._spawn(group, self._carry(frame, greeting))
            case wire.Inquire(query, subjects):
                for subject in subjects:
                    self._spawn(group, self._look(query, subject, greeting))
            case wire.Revoke():
                self._spawn(group, self._revoke(frame, greeting))
            case wire.Forget(commands):
                self._spawn(group, self._forget(commands, greeting))
            case (
                wire.Hello() | wire.Welcome() | wire.Ready() | wire.Received() | wire.Begun() | wire.Accepted()
                | wire.Ended() | wire.Failed() | wire.Unknown() | wire.Revoked() | wire.TooLate() | wire.Observation()
                | wire.Serving() | wire.Ask() | wire.Over()
            ):  # fmt: skip
                raise wire.WireError(wire.Refused.MALFORMED, f"{frame.frame} is not said here")
            case _ as never:
                assert_never(never)

    def _spawn(self, group: asyncio.TaskGroup, work: Coroutine[None, None, None]) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, command: wire.Command, greeting: Greeting) -> None:
        try:
            if not await self._same(greeting):
                return
            await self._hands.carry_out(command, self.tell)
        except OSError as error:
            self.tell(wire.Unknown(command.command, f"the journal cannot be used ({error.strerror})"))
        finally:
            self._in_hand.discard(command.command)

    async def _same(self, greeting: Greeting) -> bool:
        """Whether the journal is still the one that was greeted with; else the connection ends, and begins anew."""
        try:
            if await asyncio.to_thread(self._hands.incarnation) == greeting.incarnation:
                return True
        except OSError as error:
            _LOG.warning("the journal is gone: %s", error)
        self.tell(wire.Bye(wire.Farewell.INCARNATION, "the journal was replaced"))
        return False

    async def _look(self, query: int, subject: wire.Subject, greeting: Greeting) -> None:
        began = self._clock.monotonic()
        try:
            sight = await self._hands.look(subject)
        except OSError as error:
            _LOG.warning("%s cannot be looked at: %s", subject.command, error)
            return
        if not await self._same(greeting):
            return  # what is missing may have been there
        seen = sight.seen
        if subject.command in self._in_hand:
            seen = replace(seen, at_work=True)
        age = max(self._clock.monotonic() - began, 0.0)
        self.tell(wire.Observation(subject.command, self._clock.now(), age, sight.rank, query, seen))

    async def _revoke(self, revoke: wire.Revoke, greeting: Greeting) -> None:
        try:
            if revoke.epoch != self._epoch:
                self.tell(wire.Unknown(revoke.command, f"epoch {self._epoch} leads, and not {revoke.epoch}"))
                return
            if not await self._same(greeting):
                return
            mark = await self._hands.revoke(revoke)
        except OSError as error:
            self.tell(wire.Unknown(revoke.command, f"the journal cannot be used ({error.strerror})"))
            return
        self.tell(wire.Revoked(revoke.command) if mark is Mark.REVOKED else wire.TooLate(revoke.command, mark))

    async def _tidy(self) -> None:
        """Ask, now and then, whether what is long over may be forgotten."""
        while True:
            try:
                over = await asyncio.to_thread(self._hands.over)
            except OSError as error:
                _LOG.warning("what is over cannot be seen: %s", error)
                over = ()
            if over:
                self.tell(wire.Over(tuple(over)))
            await asyncio.sleep(TIDY)

    async def _forget(self, commands: Sequence[CommandId], greeting: Greeting) -> None:
        if not await self._same(greeting):
            return
        try:
            await asyncio.to_thread(self._hands.forget, commands)
        except OSError as error:
            _LOG.warning("what is over stays: %s", error)

    async def _write(self, socket: Socket, outbox: asyncio.Queue[wire.FromExecutor]) -> None:
        while True:
            frame = await outbox.get()
            try:
                text = wire.dump(frame)
            except wire.WireError as error:
                _LOG.error("a %s cannot be said: %s", frame.frame, error)
                continue
            try:
                await socket.send(text)
            except OSError:
                await socket.close(NORMAL, "")
                return
            self._fuse.burn(f"peer.said_{frame.frame}")
            if isinstance(frame, wire.Bye):
                await socket.close(POLICY, frame.message[:100])
                return

    async def _pulse(self, socket: Socket, heartbeat: float) -> None:
        """Ping, and close when nothing comes: whoever is there answers."""
        n = 0
        while True:
            await asyncio.sleep(heartbeat)
            if self._clock.monotonic() - self._heard > SILENCE * heartbeat:
                await socket.close(POLICY, "nothing was heard for too long")
                return
            n += 1
            self.tell(wire.Ping(n))


class _Gone(Exception):
    """The connection is over; `bye` is what was said last."""

    def __init__(self, bye: wire.Bye | None) -> None:
        super().__init__()
        self.bye = bye


async def _heard(socket: Socket) -> wire.Frame:
    text = await socket.receive()
    if text is None:
        raise _Gone(None)
    frame = wire.parse(text)
    if isinstance(frame, wire.Bye):
        raise _Gone(frame)
    return frame


async def _leave(socket: Socket, bye: wire.Bye) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(2):
            await socket.send(wire.dump(bye))
