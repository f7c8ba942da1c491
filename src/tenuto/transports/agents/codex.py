"""Codex over its app-server: a thread is the session, and every turn has the program's own id.

A turn begins when our words stand in it, is steered only with its id expected, and ends by `turn/completed`, which
says whether it was interrupted. What it asks leave for is answered; what it only warns of is passed over.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tenuto import __version__
from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened, Start
from tenuto.transports.agents.events import Event, short
from tenuto.transports.agents.failing import failure
from tenuto.transports.agents.program import NotStarted, Program
from tenuto.transports.agents.rpc import Calls, RpcError, refusal

OPEN_WITHIN: Final = 90.0
START, STEER, CUT = "start ", "steer ", "cut "
TOOLS: Final = frozenset({"commandExecution", "mcpToolCall", "fileChange", "webSearch", "dynamicToolCall"})
APPROVALS: Final[Mapping[str, tuple[str, str, str]]] = {
    "item/commandExecution/requestApproval": ("run a command", "accept", "decline"),
    "item/fileChange/requestApproval": ("change files", "accept", "decline"),
    "execCommandApproval": ("run a command", "approved", "denied"),
    "applyPatchApproval": ("change files", "approved", "denied"),
}
"""What it may ask leave for: in words, and how yes and no are spelled."""

Json = Mapping[str, Any]


class Reading:
    """What the app-server's notifications come to, for one thread."""

    def __init__(self, thread: str = "") -> None:
        self.thread = thread
        self.turn: str | None = None
        self.given: dict[str, None] = {}
        self._before: tuple[int, int] | None = None
        self._took: tuple[int, int] | None = None
        self._limits: Json = {}
        self.changes: dict[str, object] = {}

    def give(self, marker: str) -> None:
        """Words with this marker were given to the program."""
        self.given[marker] = None

    def of(self, line: Json) -> list[Event]:
        """The events of one notification; none for another thread's, and for what says nothing of the turn."""
        params = line.get("params")
        if not isinstance(params, dict) or params.get("threadId", self.thread) != self.thread:
            return []
        match line.get("method"):
            case "item/started":
                return self._item(params, begun=True)
            case "item/completed":
                return self._item(params, begun=False)
            case "thread/tokenUsage/updated":
                self._usage(params.get("tokenUsage"))
                return []
            case "account/rateLimits/updated":
                told = params.get("rateLimits")
                self._limits = told if isinstance(told, dict) else {}
                return _limits(self._limits)
            case "thread/compacted":
                return [said.Compacted()]
            case "error":
                return self._error(params.get("error"), retries=params.get("willRetry") is True)
            case "turn/completed":
                return self._completed(params.get("turn"))
            case _:
                return []

    def _item(self, params: Json, *, begun: bool) -> list[Event]:
        item, turn = params.get("item"), params.get("turnId")
        if not isinstance(item, dict) or not isinstance(turn, str):
            return []
        kind, name = item.get("type"), str(item.get("id"))
        if kind == "userMessage":
            return self._words(item, turn)
        if kind == "agentMessage" and not begun and isinstance(item.get("text"), str):
            return [said.Said(item["text"])]
        if kind == "contextCompaction" and not begun:
            return [said.Compacted()]
        if kind in TOOLS:
            if begun:
                self.changes[name] = item.get("changes")
                return [said.ToolBegan(name, str(kind))]
            return [said.ToolEnded(name, item.get("status") in ("failed", "declined"))]
        return []

    def _words(self, item: Json, turn: str) -> list[Event]:
        content = item.get("content")
        parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        text = "\n".join(part for part in parts if isinstance(part, str))
        found = [marker for marker in self.given if marker == item.get("clientId") or marker in text]
        told: list[Event] = []
        for marker in found:
            del self.given[marker]
            if self.turn is None:
                self.turn = turn
                told.append(said.TurnBegan(turn, marker))
            else:
                told.append(said.Steered(turn, marker))
        return told

    def _usage(self, usage: object) -> None:
        total = usage.get("total") if isinstance(usage, dict) else None
        last = usage.get("last") if isinstance(usage, dict) else None
        if not isinstance(total, dict) or not isinstance(last, dict):
            return
        now, step = _pair(total), _pair(last)
        if self.turn is None:
            self._before = now  # what the thread took before our turn
            return
        if self._before is None:
            self._before = (now[0] - step[0], now[1] - step[1])
        self._took = (now[0] - self._before[0], now[1] - self._before[1])

    def _error(self, error: object, *, retries: bool) -> list[Event]:
        if not isinstance(error, dict):
            return []
        info, text = error.get("codexErrorInfo"), short(error.get("message"))
        code = info if isinstance(info, str) else next(iter(info), "other") if isinstance(info, dict) else "other"
        if retries:
            return [said.Retrying(1, None, None, text)]
        told = failure("codex", [code], text)
        if isinstance(told, said.Limited):
            kind, moment = _spent(self._limits)
            return [said.Limited(text, moment, kind)]
        return [told]

    def _completed(self, turn: object) -> list[Event]:
        if not isinstance(turn, dict) or turn.get("id") != self.turn or self.turn is None:
            return []
        status = str(turn.get("status"))
        told = self._error(turn.get("error"), retries=False)
        took = self._took or (None, None)
        ended = said.TurnEnded(
            self.turn,
            short(status),
            interrupted=status == "interrupted",
            failed=status == "failed",
            usage=said.Usage(took[0], took[1]),
        )
        return [*told, ended]


class Codex:
    """Implements `Channel`."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._asks: dict[str, tuple[object, str, str]] = {}
        self._reading = Reading()
        self._queue: deque[Event] = deque()
        self._calls: Calls | None = None
        self._over = False
        self.program: Program | None = None

    async def open(self, session: str | None) -> str | None:
        argv = self._start.argv
        program = Program((argv[0], "app-server", *argv[1:]), self._start.cwd, self._start.env)
        try:
            await program.start()
        except NotStarted as error:
            raise NotOpened(str(error)) from None
        self.program = program
        calls = self._calls = Calls(program, version=False)
        try:
            about = {"name": "tenuto", "title": "Tenuto", "version": __version__}
            greeting = {"clientInfo": about, "capabilities": {"experimentalApi": True}}
            await calls.call("initialize", greeting, OPEN_WITHIN)
            await calls.notify("initialized", {})
            if session is None:
                made = await calls.call("thread/start", {"cwd": self._start.cwd}, OPEN_WITHIN)
            else:
                made = await calls.call("thread/resume", {"threadId": session, "cwd": self._start.cwd}, OPEN_WITHIN)
        except RpcError as error:
            await self.close(1.0)
            raise NotOpened(f"its thread could not be opened: {error}", unknown=session is not None) from None
        except (ConnectionError, TimeoutError):
            mendable = await program.gave_up()
            await self.close(1.0)
            words = program.last_words() or "it said nothing"
            raise NotOpened(f"its app-server does not answer: {words}", mendable=mendable) from None
        thread = made.get("thread")
        name = thread.get("id") if isinstance(thread, dict) else None
        if not isinstance(name, str) or (session is not None and name != session):
            await self.close(1.0)
            raise NotOpened("it opened another thread than was asked for")
        self._reading.thread = name
        model = made.get("model")
        self._queue.append(said.Opened(name, model if isinstance(model, str) else None))
        return name

    async def prompt(self, text: str, marker: str) -> None:
        self._reading.give(marker)
        await self._post("turn/start", {"input": _input(text), "clientUserMessageId": marker}, START + marker)

    async def steer(self, text: str, marker: str, turn: str) -> None:
        self._reading.give(marker)
        told = {"input": _input(text), "clientUserMessageId": marker, "expectedTurnId": turn}
        await self._post("turn/steer", told, STEER + marker)

    async def interrupt(self) -> None:
        if self._reading.turn is not None:
            await self._post("turn/interrupt", {"turnId": self._reading.turn}, CUT)

    async def _post(self, method: str, params: Json, tag: str) -> None:
        if self._calls is None:
            raise ConnectionError("the program is not there")
        await self._calls.post(method, {"threadId": self._reading.thread, **params}, tag)

    async def hear(self) -> Event:
        while not self._queue:
            heard = await self._calls.hear() if self._calls is not None and not self._over else None
            if heard is None:
                self._over = True
                return said.Closed("it closed its output", await self._code())
            self._queue.extend(await self._events(*heard))
        return self._queue.popleft()

    async def _events(self, line: Json, tag: str | None) -> list[Event]:
        if tag is not None:
            error = line.get("error")
            if isinstance(error, dict) and not tag.startswith(CUT):
                marker = tag.partition(" ")[2]
                self._reading.given.pop(marker, None)
                return [said.Refused(marker, short(str(refusal(error))))]
            return []
        if "method" in line and "id" in line:
            return await self._asked(line)
        if line.get("method") == "serverRequest/resolved" and isinstance(params := line.get("params"), dict):
            request = str(params.get("requestId"))
            return [] if self._asks.pop(request, None) is None else [said.PermissionSettled(request, None)]
        return self._reading.of(line)

    async def _asked(self, line: Json) -> list[Event]:
        """What the program asks of us is answered; what is no permission is refused."""
        if self._calls is None:
            return []
        method, request = str(line.get("method")), line.get("id")
        if method == "mcpServer/elicitation/request":
            await self._calls.answer(request, {"action": "decline"})
            return []
        if method not in APPROVALS:
            await self._calls.answer(request, None)
            return []
        what, yes, no = APPROVALS[method]
        params = line.get("params")
        wish = self._wish(params if isinstance(params, dict) else {})
        self._asks[str(request)] = request, yes, no
        told = json.dumps(wish, ensure_ascii=False, sort_keys=True) if not isinstance(wish, str) else wish
        return [said.PermissionAsked(str(request), what, short(told), said.print_of(what, wish))]

    def _wish(self, params: Json) -> object:
        """What leave is asked for: the command, or the changes of files that the item named before."""
        command = params.get("command")
        if isinstance(command, list):
            return " ".join(str(word) for word in command)
        if command is not None:
            return command
        changes = self._reading.changes.get(str(params.get("itemId"))) or params.get("fileChanges")
        return changes or params.get("reason") or "it does not say what exactly"

    async def answer(self, request: str, allow: bool, words: str) -> bool:
        if self._calls is None:
            raise ConnectionError("the program is not there")
        if request not in self._asks:
            return False
        named, yes, no = self._asks.pop(request)
        await self._calls.answer(named, {"decision": yes if allow else no})
        return True

    async def _code(self) -> int | None:
        return await self.program.code() if self.program is not None else None

    async def close(self, grace: float) -> bool:
        return await self.program.close(grace) if self.program is not None else True


def _input(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _pair(usage: Json) -> tuple[int, int]:
    told, given = usage.get("inputTokens"), usage.get("outputTokens")
    return (told if isinstance(told, int) else 0, given if isinstance(given, int) else 0)


def _limits(limits: object) -> list[Event]:
    """A limit that is reached; how full one is, is no event."""
    if not isinstance(limits, dict) or not isinstance(kind := limits.get("rateLimitReachedType"), str):
        return []
    return [said.Limited(short(kind), _spent(limits)[1], short(kind))]


def _spent(limits: Json) -> tuple[str | None, datetime | None]:
    """Which window of usage is spent, and when it begins anew: the longest of those that are full."""
    windows = [(name, one) for name in ("primary", "secondary") if isinstance(one := limits.get(name), dict)]
    full = [(name, one.get("resetsAt")) for name, one in windows if one.get("usedPercent") == 100]
    moments = [(at, name) for name, at in full if isinstance(at, int | float) and 0 < at < 1e11]
    if not moments:
        return None, None
    at, name = max(moments)
    return name, datetime.fromtimestamp(at, UTC)
