"""What a host needs of any agent program: open its session, give it words, hear its events, cut its turn, close.

One channel carries one turn: it starts the program, with the session of before where there is one, and is closed when
the turn is over, so that the program's environment is that turn's own. Each program's dialect is behind this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tenuto.transports.agents.events import Event
from tenuto.transports.agents.program import Program


class NotOpened(Exception):
    """The session could not be opened and nothing was said to it.

    `mendable` where a person has to put something right; `unknown` where the program knows no session of this id.
    """

    def __init__(self, reason: str, *, mendable: bool = True, unknown: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.mendable = mendable
        self.unknown = unknown


@dataclass(frozen=True)
class Start:
    """How a program is started: its words, its directory, its whole environment."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


class Channel(Protocol):
    """One program with one session, for one turn."""

    program: Program | None

    async def open(self, session: str | None) -> str | None:
        """Start it and open the session (a new one for None); its id, if known by now. Raises NotOpened."""
        ...

    async def prompt(self, text: str, marker: str) -> None:
        """Give it the words of the turn; ConnectionError when it is gone."""
        ...

    async def steer(self, text: str, marker: str, turn: str) -> None:
        """Put words into this turn. Steered or Refused follows as an event; ConnectionError when it is gone."""
        ...

    async def interrupt(self) -> None:
        """Ask it to cut its turn short; that it did is an event."""
        ...

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        """Answer what the program waits for leave with; False where it does not wait with that (any more).

        That it was answered is an event. Where the answer can carry no `words`, they are not said here.
        ConnectionError when the program is gone.
        """
        ...

    async def hear(self) -> Event:
        """The next event; after the last one Closed, for ever. What is asked is an event, and keeps nothing else."""
        ...

    async def close(self, grace: float) -> bool:
        """End the program and everything of it, within `grace` seconds and a kill; whether all of it is proven gone."""
        ...


Make = Callable[[Start], Channel]
"""Makes a program's channel; nothing is started yet."""
