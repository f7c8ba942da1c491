"""Gemini CLI over its stream of JSON lines, one process for a turn: words in, events out, the session by its id.

A turn begins when the program repeats our own words, and ends with its `result`. It takes no words into a turn and asks
no leave: what it may not do unasked it does not offer to its model. It is not driven over the Agent Client Protocol,
because loading a session there empties and then deletes it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.agents.events import Event, short
from tenuto.transports.agents.failing import failure, whole
from tenuto.transports.agents.program import NotStarted, Program

FLAGS: Final = ("-o", "stream-json")

Json = Mapping[str, Any]


class Reading:
    """What lines of one turn come to. What the agent says in pieces is said in one."""

    def __init__(self) -> None:
        self.marker: str | None = None
        self.turn: str | None = None
        self.greeted = False
        self._text: list[str] = []

    def give(self, marker: str) -> None:
        """Words with this marker were given to the program."""
        self.marker = marker

    def of(self, line: Json) -> list[Event]:
        """The events of one line."""
        match line.get("type"):
            case "init":
                self.greeted = True
                session, model = line.get("session_id"), line.get("model")
                return [said.Opened(str(session), model if isinstance(model, str) else None)]
            case "message":
                return self._message(line)
            case "tool_use":
                return [*self._words(), said.ToolBegan(str(line.get("tool_id")), short(line.get("tool_name")))]
            case "tool_result":
                return [said.ToolEnded(str(line.get("tool_id")), line.get("status") == "error")]
            case "error":
                return [*self._words(), failure("gemini", ["error"], short(line.get("message")))]
            case "result":
                return self._result(line)
            case _:
                return []

    def _message(self, line: Json) -> list[Event]:
        content = line.get("content")
        if not isinstance(content, str):
            return []
        if line.get("role") == "assistant":
            self._text.append(content)
            return []
        if line.get("role") != "user" or self.turn is not None or self.marker is None or self.marker not in content:
            return []
        self.turn = f"prompt-{self.marker.strip('[]').rpartition(':')[2]}"
        return [said.TurnBegan(self.turn, self.marker)]

    def _words(self) -> list[Event]:
        text, self._text = "".join(self._text), []
        return [said.Said(text)] if text else []

    def _result(self, line: Json) -> list[Event]:
        failed, stats = line.get("status") != "success", line.get("stats")
        error = line.get("error")
        told = (
            [failure("gemini", [str(error.get("type"))], short(error.get("message")))]
            if isinstance(error, dict)
            else []
        )
        usage = said.Usage()
        if isinstance(stats, dict):
            usage = said.Usage(whole(stats.get("input_tokens")), whole(stats.get("output_tokens")))
        ended = said.TurnEnded(self.turn or "", short(line.get("status")), failed=failed, usage=usage)
        return [*self._words(), *told, ended]


class Gemini:
    """Implements `Channel`."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._reading = Reading()
        self._queue: deque[Event] = deque()
        self.program: Program | None = None

    async def open(self, session: str | None) -> str | None:
        name = session or str(uuid.uuid4())
        chosen = ("--resume", name) if session is not None else ("--session-id", name)
        argv = self._start.argv
        program = Program((argv[0], *argv[1:], *FLAGS, *chosen), self._start.cwd, self._start.env)
        try:
            await program.start()
        except NotStarted as error:
            raise NotOpened(str(error)) from None
        self.program = program
        return name

    async def prompt(self, text: str, marker: str) -> None:
        if self.program is None:
            raise ConnectionError("the program is not there")
        self._reading.give(marker)
        await self.program.give(text)

    async def steer(self, text: str, marker: str, turn: str) -> None:
        self._queue.append(said.Refused(marker, "the program takes no words into a turn"))

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        """It asks for nothing, so that nothing waits."""
        return False

    async def interrupt(self) -> None:
        leader = self.program.leader if self.program is not None else None
        if leader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(leader.pid, signal.SIGINT)

    async def hear(self) -> Event:
        while not self._queue:
            line = await self.program.hear() if self.program is not None else None
            if line is None:
                return await self._over()
            self._queue.extend(self._reading.of(line))
        return self._queue.popleft()

    async def _over(self) -> Event:
        """Its output is closed. One that ended by itself without a greeting has told nobody our words."""
        code = await self.program.code() if self.program is not None else None
        words = self.program.last_words() if self.program is not None else ""
        marker = self._reading.marker
        if marker is not None and not self._reading.greeted and code is not None and code > 0:
            self._reading.marker = None
            return said.Refused(marker, words or f"it ended with {code}")
        return said.Closed(words or "it closed its output", code)

    async def close(self, grace: float) -> bool:
        return await self.program.close(grace) if self.program is not None else True
