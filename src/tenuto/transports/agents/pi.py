"""pi over its rpc mode: lines of JSON, commands in and events out.

A turn begins when the program shows our own words as a message of its session, and takes words while it is under way.
Its end is not told by one event: after `agent_end` it may try its service again, make room and go on, or take up words
that waited. So it is asked then, and the turn is over when it says that it is doing nothing any more. What its
extensions would ask of a person is answered as given up: nobody here is that person.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.agents.events import Event, short
from tenuto.transports.agents.failing import failure, whole
from tenuto.transports.agents.program import NotStarted, Program

OPEN_WITHIN: Final = 60.0
"""Seconds for the program to come up and name its session."""

AGAIN: Final = 0.05
"""Seconds between two questions whether it is still at work."""

UNKNOWN: Final = "No session found"
DIALOGS: Final = frozenset({"select", "confirm", "input", "editor"})
"""What an extension asks of a person; everything else it says to one needs no answer."""

Json = Mapping[str, Any]


@dataclass
class Reading:
    """What lines of one program come to. `asks` is set while it should be asked whether it is still at work."""

    given: dict[str, None] = field(default_factory=dict)
    turn: str | None = None
    asks: bool = False
    _end: said.TurnEnded | None = None
    _kicked: bool = False
    _stop: str = ""
    _why: str = ""
    _took_in: int = 0
    _took_out: int = 0
    _cost: float = 0.0

    def give(self, marker: str) -> None:
        """Words with this marker were given to the program."""
        self.given[marker] = None

    def of(self, line: Json) -> list[Event]:
        """The events of one line; none for what says nothing of the turn."""
        match line.get("type"):
            case "agent_start":
                self._end, self.asks, self._kicked = None, False, False
                return []
            case "message_start":
                return self._shown(line.get("message"))
            case "message_end":
                return self._told(line.get("message"))
            case "tool_execution_start":
                return [said.ToolBegan(str(line.get("toolCallId")), short(line.get("toolName")))]
            case "tool_execution_end":
                return [said.ToolEnded(str(line.get("toolCallId")), line.get("isError") is True)]
            case "auto_retry_start":
                self._end, self.asks = None, False
                delay = line.get("delayMs")
                seconds = delay / 1000 if isinstance(delay, int | float) else None
                most = whole(line.get("maxAttempts"))
                why = short(line.get("errorMessage") or "unknown")
                return [said.Retrying(whole(line.get("attempt")) or 1, most, seconds, why)]
            case "auto_retry_end" if line.get("success") is False:
                if line.get("finalError") == "Retry cancelled":
                    self._stop = "aborted"
                return self._over()
            case "compaction_start":
                self.asks = False
                return []
            case "compaction_end":
                return self._compacted(line)
            case "agent_end":
                return self._over()
            case "response" if line.get("command") == "get_state":
                return self._rests(line.get("data"))
            case _:
                return []

    def _shown(self, message: object) -> list[Event]:
        """Words that it took into its session; ours are known by their marker."""
        if not isinstance(message, dict) or message.get("role") != "user":
            return []
        text = "\n".join(_texts(message))
        found = [marker for marker in self.given if marker in text]
        told: list[Event] = []
        for marker in found:
            del self.given[marker]
            if self.turn is None:
                self.turn = f"prompt-{marker.strip('[]').rpartition(':')[2]}"
                told.append(said.TurnBegan(self.turn, marker))
            else:
                told.append(said.Steered(self.turn, marker))
        return told

    def _told(self, message: object) -> list[Event]:
        """A message of the agent, and what it took."""
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return []
        self._stop, self._why = str(message.get("stopReason") or ""), str(message.get("errorMessage") or "")
        usage = message.get("usage")
        if isinstance(usage, dict):
            self._took_in += sum(whole(usage.get(name)) or 0 for name in ("input", "cacheRead", "cacheWrite"))
            self._took_out += whole(usage.get("output")) or 0
            cost = usage.get("cost")
            total = cost.get("total") if isinstance(cost, dict) else None
            self._cost += total if isinstance(total, int | float) else 0.0
        found: list[Event] = [said.Said(text) for text in _texts(message)]
        if self._stop == "error":
            found.append(failure("pi", [self._stop], short(self._why or "it does not say why")))
        return found

    def _compacted(self, line: Json) -> list[Event]:
        told: list[Event] = []
        if isinstance(line.get("result"), dict):
            told.append(said.Compacted(line.get("reason") != "manual"))
        elif line.get("reason") == "overflow" and isinstance(why := line.get("errorMessage"), str):
            told.append(said.ContextFull(short(why)))
        if line.get("willRetry") is True:
            self._end = None
            return told
        self._kicked = isinstance(line.get("result"), dict)
        return [*told, *self._over()]

    def _over(self) -> list[Event]:
        """It came to an end, as far as it knows: what the turn has come to, to be said once it rests."""
        usage = said.Usage(self._took_in, self._took_out, round(self._cost * 1_000_000), "USD")
        interrupted, failed = self._stop == "aborted", self._stop == "error"
        self._end = said.TurnEnded(
            self.turn or "", short(self._stop or "unknown"), interrupted=interrupted, failed=failed, usage=usage
        )
        self.asks = True
        return []

    def _rests(self, state: object) -> list[Event]:
        """The end, where it says that it does nothing any more. Words that wait in its memory are refused then.

        After it has made room it takes up by itself what waits there, so that it is at work still.
        """
        ended = self._end
        if ended is None or not isinstance(state, dict) or state.get("isCompacting"):
            return []
        pending = whole(state.get("pendingMessageCount")) or 0
        if state.get("isStreaming") or (self._kicked and pending):
            self.asks = True
            return []
        self._end = None
        waiting = list(self.given) if pending == len(self.given) else []
        self.given.clear()
        return [*(said.Refused(marker, "its turn ended before it took them") for marker in waiting), ended]


class Pi:
    """Implements `Channel`."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._reading = Reading()
        self._queue: deque[Event] = deque()
        self._over = False
        self.program: Program | None = None

    async def open(self, session: str | None) -> str | None:
        argv = self._start.argv
        chosen = ("--session", session) if session is not None else ()
        program = Program((*argv, "--mode", "rpc", *chosen), self._start.cwd, self._start.env)
        try:
            await program.start()
        except NotStarted as error:
            raise NotOpened(str(error)) from None
        self.program = program
        try:
            await program.say({"id": "open", "type": "get_state"})
            async with asyncio.timeout(OPEN_WITHIN):
                name = await self._named(program)
        except (ConnectionError, TimeoutError):
            mendable = await program.gave_up()
            await self.close(1.0)
            words = program.last_words() or "it said nothing"
            why, unknown = f"its session could not be opened: {words}", UNKNOWN in words
            raise NotOpened(why, mendable=mendable, unknown=unknown) from None
        if session is not None and name != session:
            await self.close(1.0)
            raise NotOpened(f"it opened session {name} and not {session}")
        return name

    async def _named(self, program: Program) -> str:
        while (line := await program.hear()) is not None:
            if line.get("type") == "response" and line.get("id") == "open":
                state = line.get("data")
                name = state.get("sessionId") if isinstance(state, dict) else None
                if isinstance(name, str):
                    return name
                raise ConnectionError("it named no session")
            await self._person(line)
        raise ConnectionError("it ended before it had named its session")

    async def prompt(self, text: str, marker: str) -> None:
        await self._give({"id": marker, "type": "prompt", "message": text}, marker)

    async def steer(self, text: str, marker: str, turn: str) -> None:
        if self._over or self._reading.turn != turn:
            self._queue.append(said.Refused(marker, "that turn is over"))
            return
        await self._give({"id": marker, "type": "steer", "message": text}, marker)

    async def _give(self, told: dict[str, Any], marker: str) -> None:
        if self.program is None:
            raise ConnectionError("the program is not there")
        self._reading.give(marker)
        await self.program.say(told)

    async def interrupt(self) -> None:
        if self.program is not None:
            await self.program.say({"id": "cut", "type": "abort"})

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        """It asks for no leave, so that nothing waits."""
        return False

    async def hear(self) -> Event:
        while not self._queue:
            line = await self.program.hear() if self.program is not None and not self._over else None
            if line is None:
                self._over = True
                code = await self.program.code() if self.program is not None else None
                words = self.program.last_words() if self.program is not None else ""
                return said.Closed(words or "it closed its output", code)
            self._queue.extend(await self._events(line))
        event = self._queue.popleft()
        self._over = self._over or isinstance(event, said.TurnEnded)
        return event

    async def _events(self, line: Json) -> list[Event]:
        marker = line.get("id")
        if line.get("type") == "response" and line.get("success") is False and marker in self._reading.given:
            del self._reading.given[marker]
            return [said.Refused(marker, short(line.get("error") or "it does not say why"))]
        await self._person(line)
        found = self._reading.of(line)
        if self._reading.asks and self.program is not None:
            self._reading.asks = False
            if line.get("type") == "response":
                await asyncio.sleep(AGAIN)
            try:
                await self.program.say({"id": "rest", "type": "get_state"})
            except ConnectionError:
                return found
        return found

    async def _person(self, line: Json) -> None:
        """Give up what an extension would ask of a person."""
        if line.get("type") == "extension_ui_request" and line.get("method") in DIALOGS and self.program is not None:
            answer = {"type": "extension_ui_response", "id": line.get("id"), "cancelled": True}
            await self.program.say(answer)

    async def close(self, grace: float) -> bool:
        return await self.program.close(grace) if self.program is not None else True


def _texts(message: Json) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [
        part["text"]
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
