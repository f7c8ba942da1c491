"""Claude Code over its stream of JSON lines, both ways.

A turn begins when the program replays our own words to us, ends with its `result`, and is steered by a user message
that it replays while the turn is under way. What it says of retries, limits, permissions and compaction is read; its
sub-agents, its thinking and what its tools print are not.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tenuto.core import hindrances
from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.agents.events import Event, short
from tenuto.transports.agents.failing import failure, whole
from tenuto.transports.agents.program import NotStarted, Program

OPEN_WITHIN: Final = 60.0
"""Seconds for the program to come up and answer its greeting."""

FOLLOWS_WITHIN: Final = 10.0
"""Seconds after a result in which words that came too late for it must be taken up; then the turn is over."""

FLAGS: Final = (
    "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--replay-user-messages",
)  # fmt: skip
ASKING: Final = "--permission-prompt-tool"
"""What makes it ask us for leave, in its own stream, where its settings neither allow nor forbid."""

Json = Mapping[str, Any]


class Reading:
    """What lines of one program come to, one after the other. Knows which markers were given to it and not replayed."""

    def __init__(self) -> None:
        self.turn: str | None = None
        self.session: str | None = None
        self.given: dict[str, None] = {}
        self._took_in = 0
        self._took_out = 0

    def give(self, marker: str) -> None:
        """Words with this marker were written to the program."""
        self.given[marker] = None

    def of(self, line: Json) -> list[Event]:
        """The events of one line; none for what says nothing of the turn."""
        match line.get("type"):
            case "system":
                return self._system(line)
            case "user":
                return self._user(line)
            case "assistant" if line.get("parent_tool_use_id") is None:
                return self._assistant(line)
            case "rate_limit_event":
                return _limit(line.get("rate_limit_info"), None)
            case "result":
                return self._result(line)
            case _:
                return []

    def _system(self, line: Json) -> list[Event]:
        match line.get("subtype"):
            case "init":
                session = line.get("session_id")
                if not isinstance(session, str) or session == self.session:
                    return []
                self.session = session
                return [said.Opened(session, _text(line.get("model")), _text(line.get("claude_code_version")))]
            case "api_retry":
                delay, most = line.get("retry_delay_ms"), line.get("max_retries")
                return [
                    said.Retrying(
                        whole(line.get("attempt")) or 1,
                        whole(most),
                        delay / 1000 if isinstance(delay, int | float) else None,
                        short(line.get("error") or line.get("error_status") or "unknown"),
                    )
                ]
            case "compact_boundary":
                about = line.get("compact_metadata")
                trigger = about.get("trigger") if isinstance(about, dict) else None
                return [said.Compacted(trigger == "auto" if isinstance(trigger, str) else None)]
            case _:
                return []

    def _user(self, line: Json) -> list[Event]:
        content = _content(line)
        if line.get("isReplay") is True:
            text = "\n".join(_text(part.get("text")) or "" for part in content if part.get("type") == "text")
            found = [marker for marker in self.given if marker in text]
            for marker in found:
                del self.given[marker]
            if not found:
                return []
            if self.turn is None:
                self.turn = _text(line.get("uuid")) or found[0]
                first, *rest = found
                return [said.TurnBegan(self.turn, first), *(said.Steered(self.turn, marker) for marker in rest)]
            return [said.Steered(self.turn, marker) for marker in found]
        if line.get("parent_tool_use_id") is not None:
            return []
        return [
            said.ToolEnded(str(part.get("tool_use_id")), part.get("is_error") is True)
            for part in content
            if part.get("type") == "tool_result"
        ]

    def _assistant(self, line: Json) -> list[Event]:
        found: list[Event] = []
        failed = line.get("error")
        codes = [str(code) for code in (line.get("api_error"), failed, line.get("api_error_type")) if code]
        for part in _content(line):
            match part.get("type"):
                case "text" if isinstance(part.get("text"), str):
                    if isinstance(failed, str):
                        found += _failure(codes, part["text"], line.get("api_error_params"))
                    else:
                        found.append(said.Said(part["text"]))
                case "tool_use":
                    found.append(said.ToolBegan(str(part.get("id")), short(part.get("name"))))
                case _:
                    pass
        return found

    def _result(self, line: Json) -> list[Event]:
        found: list[Event] = []
        denials = line.get("permission_denials")
        found += [
            said.PermissionSettled(str(denial.get("tool_use_id")), allowed=False)
            for denial in (denials if isinstance(denials, list) else ())
            if isinstance(denial, dict)
        ]
        reason, subtype = _text(line.get("terminal_reason")), _text(line.get("subtype")) or "unknown"
        stop = reason if reason and (subtype != "success" or reason != "completed") else subtype
        found.append(
            said.TurnEnded(
                self.turn or "",
                short(stop),
                interrupted=(reason or "").startswith("aborted"),
                failed=line.get("is_error") is True,
                usage=self._usage(line),
                session_cost=_spent(line),
            )
        )
        return found

    def _usage(self, line: Json) -> said.Usage:
        """What the turn took over all its results: words that came late make one more."""
        usage = line.get("usage")
        if isinstance(usage, dict):
            names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            self._took_in += sum(whole(usage.get(name)) or 0 for name in names)
            self._took_out += whole(usage.get("output_tokens")) or 0
        return said.Usage(self._took_in, self._took_out, None, "USD")


class Claude:
    """Implements `Channel`."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._asks: dict[str, object] = {}
        self._reading = Reading()
        self._queue: deque[Event] = deque()
        self._over = False
        self.program: Program | None = None

    async def open(self, session: str | None) -> str | None:
        name = session or str(uuid.uuid4())
        argv = self._start.argv
        chosen = ("--resume", name) if session is not None else ("--session-id", name)
        asking = () if ASKING in argv else (ASKING, "stdio")
        program = Program((argv[0], *FLAGS, *asking, *chosen, *argv[1:]), self._start.cwd, self._start.env)
        try:
            await program.start()
        except NotStarted as error:
            raise NotOpened(str(error)) from None
        self.program = program
        try:
            await program.say(_control("open", {"subtype": "initialize"}))
            async with asyncio.timeout(OPEN_WITHIN):
                await self._greeted(program)
        except (ConnectionError, TimeoutError):
            mendable = await program.gave_up()
            await self.close(1.0)
            words = program.last_words() or "it said nothing"
            unknown = "No conversation found" in words
            raise NotOpened(f"its session could not be opened: {words}", mendable=mendable, unknown=unknown) from None
        return name

    async def _greeted(self, program: Program) -> None:
        while (line := await program.hear()) is not None:
            answer = line.get("response")
            if line.get("type") == "control_response" and isinstance(answer, dict):
                if answer.get("request_id") == "open":
                    return
            elif line.get("type") == "result":
                raise ConnectionError("it ended before it was greeted")
            self._queue.extend(self._reading.of(line))
        raise ConnectionError("it ended before it was greeted")

    async def prompt(self, text: str, marker: str) -> None:
        await self._say(text, marker)

    async def steer(self, text: str, marker: str, turn: str) -> None:
        if self._over or self._reading.turn != turn:
            self._queue.append(said.Refused(marker, "that turn is over"))
            return
        await self._say(text, marker)

    async def _say(self, text: str, marker: str) -> None:
        if self.program is None:
            raise ConnectionError("the program is not there")
        self._reading.give(marker)
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        await self.program.say({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""})

    async def interrupt(self) -> None:
        if self.program is not None:
            await self.program.say(_control("cut", {"subtype": "interrupt"}))

    async def hear(self) -> Event:
        late: said.TurnEnded | None = None
        while True:
            if self._queue and late is None:
                event = self._queue.popleft()
                if isinstance(event, said.TurnEnded):
                    if self._reading.given and not event.interrupted:
                        late = event  # words are on their way that it has not replayed: it goes on with them
                        continue
                    self._over = True
                return event
            if late is not None and any(isinstance(one, said.Steered) for one in self._queue):
                late = None
                continue
            line = await self._line(FOLLOWS_WITHIN if late is not None else None)
            if line is None:
                self._over = True
                if late is not None:
                    return late
                code = await self._code()
                return said.Closed(self._why(code), code)
            self._queue.extend(await self._events(line))

    async def _line(self, within: float | None) -> Json | None:
        if self.program is None:
            return None
        try:
            async with asyncio.timeout(within):
                return await self.program.hear()
        except TimeoutError:
            return None

    async def _events(self, line: Json) -> list[Event]:
        request = line.get("request")
        if line.get("type") == "control_request" and isinstance(request, dict):
            return await self._asked(str(line.get("request_id")), request)
        if line.get("type") == "control_cancel_request":
            withdrawn = str(line.get("request_id"))
            return [] if self._asks.pop(withdrawn, None) is None else [said.PermissionSettled(withdrawn, None)]
        return self._reading.of(line)

    async def _asked(self, request_id: str, request: Json) -> list[Event]:
        """What the program asks of us is answered; anything but a permission is refused by name."""
        if self.program is None:
            return []
        if request.get("subtype") != "can_use_tool":
            answer: dict[str, Any] = {"subtype": "error", "request_id": request_id, "error": "not offered"}
            await self.program.say({"type": "control_response", "response": answer})
            return []
        tool, wish = short(request.get("tool_name")), request.get("input") or {}
        self._asks[request_id] = wish
        return [said.PermissionAsked(request_id, tool, _wish(wish), said.print_of(tool, wish))]

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        if self.program is None:
            raise ConnectionError("the program is not there")
        if request not in self._asks:
            return False
        wish = self._asks.pop(request)
        given = (
            {"behavior": "allow", "updatedInput": wish}
            if allow
            else {"behavior": "deny", "message": words or "This was not allowed."}
        )
        answer = {"subtype": "success", "request_id": request, "response": given}
        await self.program.say({"type": "control_response", "response": answer})
        return True

    async def _code(self) -> int | None:
        return await self.program.code() if self.program is not None else None

    def _why(self, code: int | None) -> str:
        words = self.program.last_words() if self.program is not None else ""
        ended = "it closed its output" if code is None else f"it ended with {code}"
        return f"{ended}: {words}" if words else ended

    async def close(self, grace: float) -> bool:
        return await self.program.close(grace) if self.program is not None else True


def _control(request_id: str, request: dict[str, Any]) -> dict[str, Any]:
    return {"type": "control_request", "request_id": request_id, "request": request}


def _content(line: Json) -> list[Json]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _limit(about: object, text: str | None) -> list[Event]:
    """A usage limit that is reached; one that only comes near, or that is paid for beyond, is no event."""
    if not isinstance(about, dict) or about.get("status") != "rejected" or about.get("isUsingOverage") is True:
        return []
    resets, kind = about.get("resetsAt"), _text(about.get("rateLimitType"))
    moment = datetime.fromtimestamp(resets, UTC) if isinstance(resets, int | float) and 0 < resets < 1e11 else None
    return [said.Limited(text or f"usage limit {kind or ''}".strip(), moment, kind, hindrances.model_of(kind))]


def _failure(codes: list[str], text: str, params: object) -> list[Event]:
    """What the program says in the agent's place when its model does not answer."""
    told = failure("claude", codes, text)
    if isinstance(told, said.Limited):
        about = params.get("rate_limit_info") if isinstance(params, dict) else None
        return _limit(about, told.text) or [told]
    return [told]


def _wish(given: object) -> str:
    """What a tool is to be used for, as a person reads it: the command, the file, or all that is given."""
    if isinstance(given, dict):
        for name in ("command", "file_path", "notebook_path", "url", "query", "path"):
            if isinstance(held := given.get(name), str) and held:
                return short(held)
    return short(json.dumps(given, ensure_ascii=False, sort_keys=True))


def _spent(line: Json) -> int | None:
    """What the session has cost so far, over resumptions too, in millionths of a dollar."""
    cost = line.get("total_cost_usd")
    return round(cost * 1_000_000) if isinstance(cost, int | float) and not isinstance(cost, bool) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
