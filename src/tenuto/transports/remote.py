"""A remote executor as one of ours: hands armed commands to whatever connection it has now, and looks through it.

A command is sent once, by whoever has its committed row, and never again. What its executor's journal says is asked for
at every look. Who is not connected, or has another journal than the command was armed for, says nothing by its silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tenuto.model.command import Accepted, Armed, Command, Outcome, Unknown, Unsent
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence, Rank
from tenuto.model.work import Agent
from tenuto.ports import Executor, Order
from tenuto.transports import ordered, wire
from tenuto.transports.bridge import Bridge, Known
from tenuto.transports.line import Line, moment_of, rank_of

HAND_OVER: Final = 10.0
"""Seconds for an executor to say what became of a command before that is unknown."""

LOOK: Final = 5.0
REVOKE: Final = 10.0

DAY: Final = 86_400.0
"""Seconds of silence beyond which nothing is said of a program."""


class RemoteExecutor:
    """Implements `ports.Executor` over whatever connection its executor has now."""

    def __init__(self, bridge: Bridge, name: str) -> None:
        self.name = name
        self._bridge = bridge

    @property
    def _known(self) -> Known:
        return self._bridge.known(self.name)

    def _line(self) -> Line | None:
        line = self._known.line
        return line if line is not None and line.open else None

    def connected(self, conversation: str | None = None) -> bool:
        """Whether it is connected, has the epoch written down, and nothing of it, or of this conversation, is held."""
        return self._line() is not None and not self._known.held(conversation)

    def capable(self, capability: str) -> bool:
        """Whether it says that it can do this (steer, open, close, probe)."""
        line = self._line()
        return line is not None and capability in line.hello.capabilities

    def can_steer(self, turn: Command) -> bool:
        """Whether it says that it can, and has said what it calls the turn that this command began."""
        told = self._known.last.get(turn.id)
        return self.capable("steer") and told is not None and told.mark is Mark.ACCEPTED and "turn" in told.proof

    def serves(self, identity: str) -> bool:
        """Whether it says that it reaches this conversation now."""
        line = self._line()
        return line is not None and identity in line.serves

    @property
    def place(self) -> str:
        """Which life of which journal commands are armed for: `NAME:INCARNATION:KIND`."""
        kind, _, name = self.name.partition(":")
        line = self._line()
        return f"{name}:{line.hello.incarnation if line is not None else ''}:{kind}"

    def reaches(self, place: str) -> bool:
        """Always: a look that cannot reach says so itself."""
        return True

    def carries(self, place: str) -> bool:
        """Whether a conversation that was opened there can be carried on: by whoever has its name."""
        return place.partition(":")[0] == self.name.partition(":")[2]

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """Never: what is there is on the other side, and said by it when a turn is tried."""
        return None

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Send the command, once, and wait a little for what it comes to."""
        command, line = armed.command, self._line()
        if line is None:
            return Unknown(f"{self.name} is not connected")
        fuse = self._bridge.fuse
        try:
            frame = self._frame(command, order)
            wire.dump(frame)
        except (wire.WireError, ordered.NotAnOrder) as error:
            self._known.unsendable[command.id] = str(error)
            return Unsent(str(error))
        fuse.burn("wire.before_command")
        said = await line.awaited(
            command.id, frame, HAND_OVER, wire.Accepted, wire.Ended, wire.Failed, wire.Unknown, wire.TooLate
        )
        fuse.burn("wire.commanded")
        match said:
            case wire.Accepted() | wire.Ended():
                return Accepted()
            case wire.Failed(reason=reason):
                return Unsent(reason)
            case wire.Unknown(reason=reason):
                return Unknown(reason)
            case _:
                return Unknown(f"{self.name} has not said yet what became of it")

    def _frame(self, command: Command, order: Order) -> wire.Command:
        now = self._bridge.clock.now()
        return wire.Command(
            command=command.id,
            kind=command.kind,
            task=command.task_id,
            epoch=command.epoch,
            scopes=command.scopes,
            marker=command.marker,
            payload=ordered.payload_of(order),
            attempt=command.attempt_id,
            conversation=target_of(command),
            deadline=command.deadline,
            within=max((command.deadline - now).total_seconds(), 0.0) if command.deadline is not None else None,
        )

    async def look(self, command: Command) -> Observation:
        """What its journal says of a command now; what it said last, and that it cannot be asked, when it is away."""
        now = self._bridge.clock.now
        if reason := self._known.unsendable.get(command.id):
            facts = _facts(command, wire.CommandSeen(Mark.FAILED, Presence.GONE, Presence.GONE, reason, mendable=True))
            return Observation(self.name, Rank.JOURNAL, command.id, now(), facts)
        before, line = self._known.last.get(command.id), self._line()
        subject = wire.Subject(command.id, command.kind, command.epoch, command.task_id, command.attempt_id)
        answer = await line.inquire(subject, LOOK) if line is not None else None
        if line is None or answer is None or answer.command is None or answer.subject != command.id:
            away = f"{self.name} is not connected" if line is None else f"{self.name} does not answer"
            return Observation(self.name, Rank.JOURNAL, command.id, now(), _away(command, before, away))
        told = _believed(command, answer.command, before, line.hello.incarnation)
        rank = rank_of(answer.rank, line.hello.kind)
        at = moment_of(answer, now())
        return Observation(self.name, rank, command.id, at, heard(_facts(command, told), told.quiet, at))

    async def revoke(self, command: Command, epoch: int) -> None:
        """Have the journal's place taken; who is away, or does not answer, leaves everything open."""
        line = self._line()
        if line is None:
            return
        fuse = self._bridge.fuse
        fuse.burn("revoke.before")
        frame = wire.Revoke(command.id, epoch, "it was revoked before it began")
        await line.awaited(command.id, frame, REVOKE, wire.Revoked, wire.TooLate, wire.Unknown)
        fuse.burn("revoke.done")


def target_of(command: Command) -> wire.Target | None:
    """The conversation that a command is for, by the scope that it holds."""
    if command.conversation_id is None:
        return None
    named = (scope.removeprefix("conversation:") for scope in command.scopes if scope.startswith("conversation:"))
    return wire.Target(command.conversation_id, next(named, ""))


def _believed(
    command: Command, told: wire.CommandSeen, before: wire.CommandSeen | None, incarnation: str
) -> wire.CommandSeen:
    """What an executor says now, beside what it was armed for and what was said before.

    Of a command that its journal should know and does not, nobody can say that nothing of it is left: what carries that
    name now may be another machine.
    """
    if told.mark is not Mark.NONE:
        return told
    armed_for = command.place.split(":")[1] if command.place is not None and command.place.count(":") >= 2 else None
    if before is not None and before.mark is not Mark.NONE:
        reason = f"its executor's journal has forgotten that it was {before.mark}"
    elif armed_for is not None and armed_for != incarnation:
        reason = "its executor has another journal now, which knows nothing of it"
    else:
        return told
    return replace(told, mark=Mark.DAMAGED, reason=reason, performer=Presence.UNKNOWN, agent=Presence.UNKNOWN)


def _away(command: Command, before: wire.CommandSeen | None, why: str) -> CommandFacts:
    """What was said last; an end that was seen stays seen, and everything else may have changed since."""
    nothing = wire.CommandSeen(Mark.NONE, Presence.UNKNOWN, Presence.UNKNOWN)
    known = before if before is not None else nothing
    if known.mark not in (Mark.FAILED, Mark.REVOKED, Mark.ENDED):
        known = replace(known, performer=Presence.UNKNOWN, agent=Presence.UNKNOWN, at_work=False)
    known = replace(known, asks=None, retrying=None)
    return replace(_facts(command, known), unreachable=why)


def _facts(command: Command, told: wire.CommandSeen) -> CommandFacts:
    return CommandFacts(
        command_id=command.id,
        attempt_id=command.attempt_id,
        mark=told.mark,
        performer=told.performer,
        agent=told.agent,
        launched_here=told.at_work,
        reason=told.reason,
        mendable=told.mendable,
        ending=told.ending,
        marked_at=told.marked_at,
        proof=told.proof,
        asks=told.asks,
        retrying=told.retrying,
    )


def heard(facts: CommandFacts, quiet: float | None, at: datetime) -> CommandFacts:
    """The facts with when anything came from the program last, where it was said how long before `at` that was."""
    if quiet is None or not 0 <= quiet < DAY:
        return facts
    return replace(facts, heard_at=at - timedelta(seconds=quiet))


class Executors(Mapping[str, Executor]):
    """Those of this process by name, and every remote one by its prefix, whether it has ever come or not."""

    def __init__(
        self,
        here: Mapping[str, Executor],
        bridge: Bridge,
        agents: Callable[[str], Executor] | None = None,
        pages: Callable[[str], Executor] | None = None,
    ) -> None:
        self._here = here
        self._bridge = bridge
        self._agents = agents
        self._pages = pages

    def __getitem__(self, name: str) -> Executor:
        if name in self._here:
            return self._here[name]
        prefix, colon, bare = name.partition(":")
        if f"{prefix}{colon}" in wire.PREFIX.values() and wire.NAME.fullmatch(bare):
            if prefix == wire.ExecutorKind.AGENT and self._agents is not None:
                return self._agents(name)
            if f"{prefix}{colon}" == wire.PREFIX[wire.ExecutorKind.EXTENSION] and self._pages is not None:
                return self._pages(name)
            return RemoteExecutor(self._bridge, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._here
        yield from (standing.name for standing in self._bridge.standings())

    def __bool__(self) -> bool:
        return True  # those that never came are there, too

    def __len__(self) -> int:
        return sum(1 for _ in self)
