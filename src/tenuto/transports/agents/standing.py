"""A session that is open in a program somebody else started: given words when it stops by itself, and never otherwise.

It is not resumed beside that program. The turn begins when the program has written our words down as words for its
agent, and ends with its next stop; what its person says in between ends it too. Words are given once: a hook that may
have had them is never given them again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened
from tenuto.transports.agents.events import Event
from tenuto.transports.agents.program import Program
from tenuto.transports.agents.stops import Heard, Stops

LOOK: Final = 1.0
"""Seconds between two looks whether the program is there."""

WAITS: Final = 3600.0
"""Seconds to wait for a stop; then nothing was said, and it is tried again by its plan."""


class Standing:
    """Implements `Channel`. `open_in` looks up the process, `holds` whether a marker stands in the session's record."""

    def __init__(self, stops: Stops, open_in: Callable[[], int | None], holds: Callable[[str], bool]) -> None:
        self._stops = stops
        self._open_in = open_in
        self._holds = holds
        self._queue: deque[Event] = deque()
        self._stop: Heard | None = None
        self._marker = ""
        self._turn: str | None = None
        self._given = False
        self._cut = False
        self.program: Program | None = None

    async def open(self, session: str | None) -> str | None:
        if session is None:
            raise NotOpened("a session that is open elsewhere has a name")
        try:
            await self._stops.listen(session)
        except OSError as error:
            why = error.strerror or error  # a path that is too long has no errno
            raise NotOpened(
                f"its hooks cannot be heard ({why}); a long path is mended by a shorter TENUTO_HOME"
            ) from None
        self._stops.awaited = True
        end = time.monotonic() + WAITS
        while time.monotonic() < end and not self._cut:
            heard = await self._stops.next(LOOK)
            if heard is not None and heard.event == "Stop" and not heard.answered.is_set():
                self._stop = heard
                return session
            if heard is None and await asyncio.to_thread(self._open_in) is None:
                self._stops.awaited = False
                raise NotOpened("the program that it was open in has ended", mendable=False)
        self._stops.awaited = False
        raise NotOpened("it is open in a program that did not stop", mendable=False)

    async def prompt(self, text: str, marker: str) -> None:
        self._marker = marker
        given = await self._stop.give(text) if self._stop is not None else False
        if given is False:
            self._queue.append(said.Refused(marker, "its hook had gone"))
            return
        self._given = True

    async def steer(self, text: str, marker: str, turn: str) -> None:
        self._queue.append(said.Refused(marker, "a session that is open elsewhere takes words at its stops only"))

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        """Whoever sits before that program is asked there."""
        return False

    async def interrupt(self) -> None:
        """What somebody else's program does is not ours to cut; what has not begun does not begin."""
        self._cut = True

    async def hear(self) -> Event:
        while not self._queue:
            if not self._given:
                return said.Closed("its hook had gone")
            heard = await self._stops.next(LOOK)
            if self._turn is None and await asyncio.to_thread(self._holds, self._marker):
                self._turn = f"stop-{self._marker.strip('[]').rpartition(':')[2]}"
                self._queue.append(said.TurnBegan(self._turn, self._marker))
            if heard is not None:
                self._queue.extend(await self._of(heard))
            elif await asyncio.to_thread(self._open_in) is None:
                return said.Closed("the program that it was open in has ended")
        return self._queue.popleft()

    async def _of(self, heard: Heard) -> list[Event]:
        match heard.event:
            case "Stop" if self._turn is not None and heard.again:
                self._stops.again(heard)
                return [said.Said(heard.last), said.TurnEnded(self._turn, "stop")]
            case "Stop" | "UserPromptSubmit" | "SessionEnd" if self._turn is not None:
                await heard.let_go()
                return [said.TurnEnded(self._turn, "somebody else's words", interrupted=True)]
            case "Stop" | "UserPromptSubmit" | "SessionEnd":
                await heard.let_go()
                return [said.Closed("its words were not taken up")]
            case _:
                return []

    async def close(self, grace: float) -> bool:
        if self._turn is None:
            self._stops.awaited = False
        return True
