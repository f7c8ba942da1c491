"""Any agent that speaks the Agent Client Protocol, version 1, on its standard input and output.

The protocol names no turns and does not acknowledge words: that a turn began is seen by its first update or its answer,
and the answer is its end. A turn under way takes no words. A session of before is loaded; an agent that cannot load one
is not given a new one in its place.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from tenuto import __version__
from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.agents.events import Event, short
from tenuto.transports.agents.failing import failure
from tenuto.transports.agents.program import NotStarted, Program
from tenuto.transports.agents.rpc import Calls, RpcError, refusal

VERSION: Final = 1
OPEN_WITHIN: Final = 120.0
PROMPT: Final = "prompt "

Json = Mapping[str, Any]


class Reading:
    """What updates of one session come to. Chunks of one message are put together before they are said."""

    def __init__(self, session: str = "") -> None:
        self.session = session
        self.marker: str | None = None
        self.turn: str | None = None
        self._text: list[str] = []

    def give(self, marker: str) -> None:
        """Words with this marker were given to the program."""
        self.marker = marker

    def of(self, line: Json) -> list[Event]:
        """The events of one notification."""
        params = line.get("params")
        if line.get("method") != "session/update" or not isinstance(params, dict):
            return []
        update = params.get("update")
        if params.get("sessionId") != self.session or not isinstance(update, dict) or self.marker is None:
            return []
        kind = update.get("sessionUpdate")
        if kind in ("available_commands_update", "current_mode_update", "user_message_chunk", "config_option_update"):
            return []
        told = self.began()
        match kind:
            case "agent_message_chunk":
                content = update.get("content")
                if isinstance(content, dict) and isinstance(content.get("text"), str):
                    self._text.append(content["text"])
                return told
            case "tool_call":
                return [*told, *self.words(), said.ToolBegan(str(update.get("toolCallId")), short(update.get("title")))]
            case "tool_call_update" if update.get("status") in ("completed", "failed"):
                return [*told, said.ToolEnded(str(update.get("toolCallId")), update.get("status") == "failed")]
            case _:
                return told

    def began(self) -> list[Event]:
        """That the turn began, once."""
        if self.turn is not None or self.marker is None:
            return []
        self.turn = f"prompt-{self.marker.strip('[]').rpartition(':')[2]}"
        return [said.TurnBegan(self.turn, self.marker)]

    def words(self) -> list[Event]:
        """What was said since, in one piece."""
        text, self._text = "".join(self._text), []
        return [said.Said(text)] if text else []

    def ended(self, answer: Json) -> list[Event]:
        """The end of the turn, as the prompt was answered."""
        if isinstance(error := answer.get("error"), dict):
            code, data = str(error.get("code")), error.get("data")
            more = f" ({json.dumps(data, ensure_ascii=False)})" if data else ""
            end = said.TurnEnded(self.turn or "", "error", failed=True)
            return [*self.began(), *self.words(), failure("acp", [code], short(f"{error.get('message')}{more}")), end]
        result = answer.get("result")
        stop = str(result.get("stopReason")) if isinstance(result, dict) else "unknown"
        usage = result.get("usage") if isinstance(result, dict) else None
        began = self.began()
        ended = said.TurnEnded(self.turn or "", short(stop), interrupted=stop == "cancelled", usage=_usage(usage))
        full = [said.ContextFull(stop)] if stop == "max_tokens" else []
        return [*began, *self.words(), *full, ended]


class Acp:
    """Implements `Channel`. `quiet`: seconds without a word after which a loaded session has told all of its past.

    The protocol has an agent tell it before it answers; one that goes on afterwards would have its old words heard as
    those of the turn.
    """

    def __init__(self, start: Start, quiet: float = 0.0) -> None:
        self._start = start
        self._asks: dict[str, tuple[object, list[Json]]] = {}
        self._quiet = quiet
        self._reading = Reading()
        self._queue: deque[Event] = deque()
        self._calls: Calls | None = None
        self._over = False
        self.program: Program | None = None

    async def open(self, session: str | None) -> str | None:
        program = Program(self._start.argv, self._start.cwd, self._start.env)
        try:
            await program.start()
        except NotStarted as error:
            raise NotOpened(str(error)) from None
        self.program = program
        calls = self._calls = Calls(program, version=True)
        try:
            name = await self._session(calls, session)
        except RpcError as error:
            await self.close(1.0)
            unknown = session is not None and error.code in (-32602, -32002, -32603)
            raise NotOpened(f"its session could not be opened: {error}", unknown=unknown) from None
        except (ConnectionError, TimeoutError):
            mendable = await program.gave_up()
            await self.close(1.0)
            words = program.last_words() or "it said nothing"
            raise NotOpened(f"it does not answer: {words}", mendable=mendable) from None
        except NotOpened:
            await self.close(1.0)
            raise
        calls.forget()
        if session is not None and self._quiet:
            await calls.quieted(self._quiet, OPEN_WITHIN)
        self._reading.session = name
        return name

    async def _session(self, calls: Calls, session: str | None) -> str:
        offered = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        about = {"name": "tenuto", "version": __version__}
        greeting = {"protocolVersion": VERSION, "clientCapabilities": offered, "clientInfo": about}
        greeted = await calls.call("initialize", greeting, OPEN_WITHIN)
        if greeted.get("protocolVersion") != VERSION:
            raise NotOpened(f"it speaks version {greeted.get('protocolVersion')} of the protocol, and not {VERSION}")
        place = {"cwd": self._start.cwd, "mcpServers": []}
        if session is None:
            made = await calls.call("session/new", place, OPEN_WITHIN)
            name = made.get("sessionId")
            if not isinstance(name, str):
                raise NotOpened("it did not name its session")
            return name
        can = greeted.get("agentCapabilities")
        if not isinstance(can, dict) or can.get("loadSession") is not True:
            raise NotOpened("it cannot load a session of before, so that the task cannot be continued in it")
        await calls.call("session/load", {**place, "sessionId": session}, OPEN_WITHIN)
        return session

    async def prompt(self, text: str, marker: str) -> None:
        if self._calls is None:
            raise ConnectionError("the program is not there")
        self._reading.give(marker)
        told = {"sessionId": self._reading.session, "prompt": [{"type": "text", "text": text}]}
        await self._calls.post("session/prompt", told, PROMPT + marker)

    async def steer(self, text: str, marker: str, turn: str) -> None:
        self._queue.append(said.Refused(marker, "the protocol takes no words into a turn"))

    async def interrupt(self) -> None:
        if self._calls is not None and self._reading.session:
            await self._calls.notify("session/cancel", {"sessionId": self._reading.session})

    async def hear(self) -> Event:
        while not self._queue:
            heard = await self._calls.hear() if self._calls is not None and not self._over else None
            if heard is None:
                self._over = True
                code = await self.program.code() if self.program is not None else None
                return said.Closed("it closed its output", code)
            line, tag = heard
            if tag is not None:
                self._queue.extend(self._answered(line, tag))
            elif "method" in line and "id" in line:
                self._queue.extend(await self._asked(line))
            else:
                self._queue.extend(self._reading.of(line))
        return self._queue.popleft()

    def _answered(self, line: Json, tag: str) -> list[Event]:
        error = line.get("error")
        if isinstance(error, dict) and self._reading.turn is None and error.get("code") in (-32600, -32602):
            return [said.Refused(tag.removeprefix(PROMPT), short(str(refusal(error))))]
        return self._reading.ended(line)

    async def _asked(self, line: Json) -> list[Event]:
        if self._calls is None:
            return []
        params, request = line.get("params"), line.get("id")
        if line.get("method") != "session/request_permission" or not isinstance(params, dict):
            await self._calls.answer(request, None)
            return []
        rows = params.get("options")
        options: list[Json] = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        call = params.get("toolCall")
        about = call if isinstance(call, dict) else {}
        tool, title = short(about.get("kind") or "tool"), short(about.get("title") or "it does not say what exactly")
        self._asks[str(request)] = request, options
        wish = [title, about.get("rawInput"), about.get("locations")]
        asked = said.PermissionAsked(str(request), tool, title, said.print_of(tool, wish))
        return [*self._reading.began(), asked]

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        if self._calls is None:
            raise ConnectionError("the program is not there")
        if request not in self._asks:
            return False
        named, options = self._asks.pop(request)
        wanted = ("allow_once",) if allow else ("reject_once", "reject_always")
        chosen = next((row for kind in wanted for row in options if row.get("kind") == kind), None)
        if chosen is None and allow:
            self._asks[request] = named, options
            return False  # it offers nothing that would allow this once and no more
        picked = {"outcome": "selected", "optionId": chosen.get("optionId")} if chosen else {"outcome": "cancelled"}
        await self._calls.answer(named, {"outcome": picked})
        return True

    async def close(self, grace: float) -> bool:
        return await self.program.close(grace) if self.program is not None else True


def _usage(usage: object) -> said.Usage:
    """What the turn took, where the agent says so."""
    if not isinstance(usage, dict):
        return said.Usage()
    told, given = usage.get("inputTokens"), usage.get("outputTokens")
    return said.Usage(told if isinstance(told, int) else None, given if isinstance(given, int) else None)
