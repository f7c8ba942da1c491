"""JSON-RPC with a program over its lines: asking and waiting while it comes up, asking and going on during a turn.

While a session is opened an answer is waited for and everything else is kept for later; during a turn one reader hears
everything, and an answer is told apart by the tag that its question was given. Lines that are no message are passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from tenuto.transports.agents.program import Program

VERSION: Final = "2.0"
NO_SUCH: Final = -32601

Json = Mapping[str, Any]


class RpcError(Exception):
    """The program answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Calls:
    """Questions to one program and their answers. With `version` every message says which JSON-RPC it is."""

    def __init__(self, program: Program, *, version: bool) -> None:
        self._program = program
        self._head: dict[str, Any] = {"jsonrpc": VERSION} if version else {}
        self._last = 0
        self._tags: dict[int, str] = {}
        self._kept: deque[Json] = deque()

    async def call(self, method: str, params: Json, within: float) -> Json:
        """Ask and wait. Raises RpcError, ConnectionError, or TimeoutError."""
        mine = await self._ask(method, params)
        async with asyncio.timeout(within):
            while (line := await self._program.hear()) is not None:
                if line.get("id") != mine or "method" in line:
                    self._kept.append(line)
                    continue
                if isinstance(error := line.get("error"), dict):
                    raise refusal(error)
                result = line.get("result")
                return result if isinstance(result, dict) else {}
        raise ConnectionError("the program closed its output")

    def forget(self) -> None:
        """Drop what was kept while it came up: a session that is loaded tells its past again."""
        self._kept.clear()

    async def quieted(self, quiet: float, within: float) -> None:
        """Drop what still comes, until nothing has come for `quiet` seconds; `within` seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while True:
                    async with asyncio.timeout(quiet):
                        if await self._program.hear() is None:
                            return

    async def post(self, method: str, params: Json, tag: str) -> None:
        """Ask and go on; `hear` gives the answer with this tag."""
        mine = await self._ask(method, params)
        self._tags[mine] = tag

    async def notify(self, method: str, params: Json) -> None:
        """Say something that has no answer."""
        await self._program.say({**self._head, "method": method, "params": dict(params)})

    async def answer(self, request: object, result: Json | None) -> None:
        """Answer what the program asked; None: such a thing is not offered here."""
        refused = {"error": {"code": NO_SUCH, "message": "not offered"}}
        told = {"result": dict(result)} if result is not None else refused
        await self._program.say({**self._head, "id": request, **told})

    async def hear(self) -> tuple[Json, str | None] | None:
        """The next line, and the tag of the question it answers; None once there will be none."""
        line = self._kept.popleft() if self._kept else await self._program.hear()
        if line is None:
            return None
        number = line.get("id")
        tag = self._tags.pop(number, None) if isinstance(number, int) and "method" not in line else None
        return line, tag

    async def _ask(self, method: str, params: Json) -> int:
        self._last += 1
        mine = self._last
        await self._program.say({**self._head, "id": mine, "method": method, "params": dict(params)})
        return mine


def refusal(error: Json) -> RpcError:
    """An error as it was answered."""
    code, data = error.get("code"), error.get("data")
    detail = data.get("details") if isinstance(data, dict) else None
    told = str(error.get("message")) + (f": {detail}" if isinstance(detail, str) else "")
    return RpcError(code if isinstance(code, int) else 0, told[:500])
