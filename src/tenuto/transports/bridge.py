"""The supervisor's side of the executor wire: who may connect, who is connected, and what they said last.

One connection per executor counts: a newer instance takes the place of an older one. A command that an executor's
journal holds and the registry does not know holds the conversation it was for, or all of that executor where it names
none, until its task waits for a person or a person has looked. One that has served a later epoch is not commanded at
all. What follows from anything that is said here is for the core.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, assert_never

from tenuto.model.evidence import Mark
from tenuto.model.ids import CommandId
from tenuto.ports import Clock, Fuse
from tenuto.transports import wire
from tenuto.transports.line import Line, Socket, moment_of, rank_of, seen
from tenuto.transports.stirring import Stirring

_LOG = logging.getLogger("tenuto.bridge")

HEARTBEAT: Final = 20.0
HELLO_WITHIN: Final = 10.0
KEPT: Final = 4096
"""Of how many commands the last word is remembered."""

HARMLESS: Final = frozenset({Mark.NONE, Mark.REVOKED, Mark.FAILED})
OVER: Final = 1000
"""Of how many commands at once an executor may ask whether it may forget them."""

KNOCKS: Final = 64
"""Connections that may be greeting at once."""


@dataclass(frozen=True)
class Standing:
    """What is known of one executor, for people. `stranger` are commands of its journal that nobody here knows."""

    name: str
    connected: bool
    instance: str | None = None
    capabilities: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    since: datetime | None = None
    heard_at: datetime | None = None
    strangers: tuple[CommandId, ...] = ()
    trouble: str | None = None


@dataclass
class Known:
    """Everything remembered of one executor while this supervisor lives."""

    line: Line | None = None
    began_at: datetime | None = None
    instance: str | None = None
    strangers: dict[CommandId, wire.Entry] = field(default_factory=dict)
    trouble: str | None = None
    #: The last word about each command.
    last: dict[CommandId, wire.CommandSeen] = field(default_factory=dict)
    #: When its pages stirred.
    stirring: Stirring = field(default_factory=Stirring)
    #: Commands whose order nobody can send, and why.
    unsendable: dict[CommandId, str] = field(default_factory=dict)

    def held(self, conversation: str | None) -> bool:
        """Whether something that nobody here knows may have been done in this conversation, or who knows where."""
        return any(entry.conversation in (None, conversation) for entry in self.strangers.values())

    def remember(self, command: CommandId, told: wire.CommandSeen) -> None:
        self.last.pop(command, None)
        self.last[command] = told
        while len(self.last) > KEPT:
            del self.last[next(iter(self.last))]


@dataclass(frozen=True)
class Hooks:
    """What the bridge tells the rest of the supervisor. All of them are hints; the truth is asked for at a look."""

    ring: Callable[[CommandId], None] = lambda command: None
    changed: Callable[[str], None] = lambda executor: None
    observed: Callable[[str, wire.Observation, datetime], None] = lambda executor, observation, at: None
    asked: Callable[[str, wire.Ask], None] = lambda executor, question: None
    stranger: Callable[[str, wire.Entry], None] = lambda executor, entry: None


class Bridge:
    """All remote executors of one supervisor. `known` says whether the registry has a command; `profiles` is a digest.

    `settled` says whether a person has looked at one that it has not, `forgettable` whether one was settled so long ago
    that nobody will ask for it.

    Serve sockets only while leading: `lead` says with which epoch.
    """

    def __init__(
        self,
        registry: str,
        clock: Clock,
        fuse: Fuse,
        *,
        known: Callable[[CommandId], bool],
        hooks: Hooks | None = None,
        settled: Callable[[CommandId], bool] = lambda command: False,
        forgettable: Callable[[CommandId], bool] = lambda command: False,
        profiles: Callable[[], str | None] = lambda: None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self.registry = registry
        self.clock = clock
        self.fuse = fuse
        self.hooks = hooks or Hooks()
        self._command_known = known
        self._settled = settled
        self._forgettable = forgettable
        self._profiles = profiles
        self._heartbeat = heartbeat
        self._epoch = 0
        self._knocking = 0
        self._executors: dict[str, Known] = {}

    # -- connections

    def lead(self, epoch: int) -> None:
        """Executors may come from here on; `epoch` leads."""
        self._epoch = epoch

    async def close(self) -> None:
        """Take nobody any more, and let those go that are here. Nothing that they carry out is ended."""
        self._epoch = 0
        lines = [one.line for one in self._executors.values() if one.line is not None]
        await asyncio.gather(*(line.bye(wire.Farewell.STOPPING, "the supervisor stops") for line in lines))

    async def serve(self, socket: Socket, may: Callable[[str], bool]) -> None:
        """Serve one accepted socket to its end. `may` says whether its token is for an executor of that name."""
        if self._knocking >= KNOCKS:
            await socket.close(1013, "too many executors are greeting")
            return
        self._knocking += 1
        try:
            hello = await self._greeting(socket, may)
        finally:
            self._knocking -= 1
        if hello is None:
            return
        name = wire.full_name(hello.kind, hello.name)
        line = Line(socket, hello, self.clock, self.hooks.ring)
        known = self._executors.setdefault(name, Known())
        before, known.line = known.line, line
        known.began_at, known.instance, known.trouble = hello.began_at, hello.instance, None
        try:
            if before is not None:
                await before.bye(wire.Farewell.REPLACED, f"a newer instance of {name} is connected")
            await self._welcome(line, name)
            async with asyncio.TaskGroup() as group:
                group.create_task(line.pulse(self._heartbeat), name=f"pulse {name}")
                try:
                    await self._listen(line, known, name)
                finally:
                    line.cut()
        finally:
            line.cut()
            if known.line is line:
                known.line = None
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(1):
                    await socket.close(1000, "")
            self.hooks.changed(name)

    async def _greeting(self, socket: Socket, may: Callable[[str], bool]) -> wire.Hello | None:
        """The hello of somebody who may come in; whoever may not is told why and sent away."""
        try:
            async with asyncio.timeout(HELLO_WITHIN):
                text = await socket.receive()
            if text is None:
                return None
            hello = wire.parse(text)
            if not isinstance(hello, wire.Hello):
                raise wire.WireError(wire.Refused.MALFORMED, "the first frame is a hello")
            wire.negotiated(hello.protocol)
        except TimeoutError:
            await _turn_away(socket, wire.Farewell.SILENT, "no hello came")
            return None
        except wire.WireError as error:
            code = wire.Farewell.VERSION if error.code is wire.Refused.VERSION else wire.Farewell.PROTOCOL
            await _turn_away(socket, code, str(error))
            return None
        refusal = self._refusal(hello, may)
        if refusal is not None:
            await _turn_away(socket, *refusal)
            return None
        return hello

    def _refusal(self, hello: wire.Hello, may: Callable[[str], bool]) -> tuple[wire.Farewell, str] | None:
        if not wire.NAME.fullmatch(hello.name):
            return wire.Farewell.NAME, "a name is up to 64 of a-z, 0-9, dot, dash and underscore"
        if not wire.LIFE.fullmatch(hello.incarnation):
            return wire.Farewell.PROTOCOL, "an incarnation is 8 to 64 letters, digits, dashes and underscores"
        name = wire.full_name(hello.kind, hello.name)
        if not may(name):
            return wire.Farewell.NAME, f"this token is not for {name}"
        if self._epoch == 0:
            return wire.Farewell.STOPPING, "no supervisor leads here now"
        if hello.registry is not None and hello.registry != self.registry:
            return wire.Farewell.REGISTRY, f"{name} belongs to another registry; give it a journal of its own"
        known = self._executors.setdefault(name, Known())
        if hello.registry is not None and hello.epoch > self._epoch:
            known.trouble = (
                f"{name} has served epoch {hello.epoch} of this registry and this is epoch {self._epoch}: "
                "the registry was restored from an older copy. Raise its epoch: tenuto db restore does"
            )
            return wire.Farewell.EPOCH, "a later supervisor of this registry was served before"
        newer = known.began_at is not None and hello.instance != known.instance and hello.began_at < known.began_at
        if newer and known.line is not None:
            return wire.Farewell.REPLACED, f"a newer instance of {name} is connected"
        return None

    async def _welcome(self, line: Line, name: str) -> None:
        spoken = wire.negotiated(line.hello.protocol)
        await line.send(
            wire.Welcome(
                protocol=wire.protocol(spoken),
                registry=self.registry,
                epoch=self._epoch,
                heartbeat=self._heartbeat,
                executor=name,
                sent_at=self.clock.now(),
                profiles=self._profiles(),
            )
        )

    async def _listen(self, line: Line, known: Known, name: str) -> None:
        """Take frames until the line ends; one that is none ends it."""
        try:
            while (text := await line.receive()) is not None:
                line.hears()
                await self._take(wire.parse(text), line, known, name)
        except wire.WireError as error:
            _LOG.warning("%s said what nobody understands: %s", name, error.code)
            await line.bye(wire.Farewell.PROTOCOL, str(error))
        except ConnectionError:
            return

    async def _take(self, frame: wire.Frame, line: Line, known: Known, name: str) -> None:
        match frame:
            case wire.Ready(epoch):
                if epoch == self._epoch:
                    self._ready(line, known, name)
            case wire.Ping(n):
                await line.send(wire.Pong(n))
            case wire.Pong():
                pass
            case wire.Bye(code, message):
                _LOG.info("%s leaves: %s", name, code)
                if code is wire.Farewell.EPOCH:
                    known.trouble = f"{name} refuses this supervisor: {message[:200]}"
                line.cut()
            case wire.Serving(serves):
                line.serves = frozenset(serves)
                self.hooks.changed(name)
            case wire.Ask():
                self.hooks.asked(name, frame)
            case wire.Over(commands):
                gone = tuple(command for command in commands[:OVER] if self._forgettable(command))
                if gone:
                    await line.send(wire.Forget(gone))
            case wire.Observation():
                self._observed(frame, line, known, name)
            case (
                wire.Received() | wire.Begun() | wire.Accepted() | wire.Ended() | wire.Failed()
                | wire.Unknown() | wire.Revoked() | wire.TooLate()
            ):  # fmt: skip
                told = seen(known.last.get(frame.command), frame)
                if told is not None:
                    known.remember(frame.command, told)
                line.says(frame)
            case wire.Hello() | wire.Welcome() | wire.Command() | wire.Revoke() | wire.Inquire() | wire.Forget():
                raise wire.WireError(wire.Refused.MALFORMED, f"{frame.frame} is not said here")
            case _ as never:
                assert_never(never)

    def _ready(self, line: Line, known: Known, name: str) -> None:
        """The epoch is written down on the other side: commands may go there."""
        known.strangers = {
            entry.command: entry
            for entry in line.hello.journal
            if entry.mark not in HARMLESS
            and not self._command_known(entry.command)
            and not self._settled(entry.command)
        }
        line.ready = True
        _LOG.info("%s is connected", name)
        for entry in known.strangers.values():
            self.hooks.stranger(name, entry)
        for entry in line.hello.journal:
            if entry.command not in known.strangers:
                self.hooks.ring(entry.command)
        self.hooks.changed(name)

    def _observed(self, frame: wire.Observation, line: Line, known: Known, name: str) -> None:
        if frame.command is not None:
            if frame.command.mark is not Mark.NONE:
                known.remember(CommandId(frame.subject), frame.command)
            if frame.query is None:
                self.hooks.ring(CommandId(frame.subject))
        line.answers(frame)
        if frame.command is None:
            at = moment_of(frame, self.clock.now())
            known.stirring.seen(frame.subject, frame.digest, frame.facts.get("generating"), at)
            ranked = replace(frame, rank=rank_of(frame.rank, line.hello.kind))
            self.hooks.observed(name, ranked, at)

    # -- what the rest sees

    def known(self, name: str) -> Known:
        """What is remembered of an executor; a blank page for one that never came."""
        return self._executors.setdefault(name, Known())

    def accept_stranger(self, name: str, command: CommandId) -> bool:
        """A command that only the executor knows is seen to: by a person, or by its task that waits for one."""
        return self.known(name).strangers.pop(command, None) is not None

    def standings(self) -> Sequence[Standing]:
        """Every executor that was ever here, by name."""
        return tuple(_standing(name, known) for name, known in sorted(self._executors.items()))

    def troubles(self) -> Sequence[str]:
        """What only a person can settle, in sentences."""
        told: list[str] = []
        for name, known in sorted(self._executors.items()):
            if known.trouble is not None:
                told.append(known.trouble)
            told += [
                f"{name} has carried out {command} ({entry.mark}), which this registry does not know: it is older than "
                f"what was done. Nothing is sent to {entry.conversation or name} until: "
                f"tenuto executor settle {name} {command}"
                for command, entry in sorted(known.strangers.items())
            ]
        return told


def _standing(name: str, known: Known) -> Standing:
    line, strangers = known.line, tuple(sorted(known.strangers))
    if line is None or not line.open:
        return Standing(name, connected=False, strangers=strangers, trouble=known.trouble)
    hello = line.hello
    return Standing(
        name,
        connected=True,
        instance=hello.instance,
        capabilities=hello.capabilities,
        serves=tuple(sorted(line.serves)),
        since=line.since,
        heard_at=line.heard_at,
        strangers=strangers,
        trouble=known.trouble,
    )


async def _turn_away(socket: Socket, code: wire.Farewell, message: str) -> None:
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(5):
            await socket.send(wire.dump(wire.Bye(code, message)))
            await socket.close(1008, message[:100])
