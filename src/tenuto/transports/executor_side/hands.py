"""What an executor must be able to do so that a peer can speak for it.

The peer talks and the hands act: they keep the journal, refuse orders of a supervisor that a later one has replaced,
and never say that nothing happened unless nothing can happen any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tenuto.model.evidence import Mark, Rank
from tenuto.model.ids import CommandId
from tenuto.transports import wire

Tell = Callable[[wire.FromExecutor], None]
"""Says something over the connection there is; where there is none it is not said: the journal has it."""


class OldEpoch(Exception):
    """A later supervisor of this registry was served before."""


class OtherRegistry(Exception):
    """The journal belongs to another registry."""


@dataclass(frozen=True)
class Greeting:
    """What the journal says of itself when a connection begins."""

    incarnation: str
    registry: str | None
    epoch: int
    entries: Sequence[wire.Entry] = ()
    serves: Sequence[str] = ()


@dataclass(frozen=True)
class Sight:
    """What is seen of one command now, and how strong that is."""

    seen: wire.CommandSeen
    rank: Rank = Rank.JOURNAL


class Hands(Protocol):
    """One executor's doing. No method may raise for what a supervisor said; OSError is for a disk that refuses."""

    def greeting(self) -> Greeting:
        """Read anew each time: a journal that was replaced meanwhile is another one."""
        ...

    def incarnation(self) -> str:
        """Which life of the journal is there now; OSError when there is none."""
        ...

    def follow(self, registry: str, epoch: int) -> None:
        """Write down who leads; raises OldEpoch, OtherRegistry or OSError, and then nothing is carried out."""
        ...

    async def carry_out(self, command: wire.Command, tell: Tell) -> None:
        """Carry a command out, once: who finds its place in the journal taken only tells what is there."""
        ...

    async def look(self, subject: wire.Subject) -> Sight:
        """What is seen of a command now."""
        ...

    def over(self) -> Sequence[CommandId]:
        """Commands that ended long ago, oldest first; OSError for a disk that refuses."""
        ...

    def forget(self, commands: Collection[CommandId]) -> None:
        """Give up the places of these, where they ended long ago; OSError for a disk that refuses."""
        ...

    async def revoke(self, revoke: wire.Revoke) -> Mark:
        """Take the command's place if it is free; the mark that stands there now."""
        ...
