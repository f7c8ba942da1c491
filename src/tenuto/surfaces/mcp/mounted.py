"""MCP in the supervisor's application: a place that is furnished when somebody first comes to it.

The protocol's library takes most of a second and many megabytes, so it is imported at the first request, in a thread,
while everything else goes on. Where it was not installed the answer says so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

from tenuto.engine.calling import Caller
from tenuto.engine.desk import Desk
from tenuto.surfaces.http.guard import CALLER
from tenuto.surfaces.mcp.ways import AtDesk, Way
from tenuto.surfaces.present import explanation

PATH = "/mcp"
Serve = Callable[[Way, Scope, Receive, Send], Awaitable[None]]


def load() -> Serve:
    """What serves one request; imports the library. Raises ModuleNotFoundError where it was not installed."""
    from tenuto.surfaces.mcp.exchange import exchange
    from tenuto.surfaces.mcp.server import make_server

    async def serve(way: Way, scope: Scope, receive: Receive, send: Send) -> None:
        await exchange(make_server(way), scope, receive, send)

    return serve


class Mounted:
    """ASGI: MCP for whoever the guard let in, at a way that `ways` makes for each caller."""

    def __init__(self, ways: Callable[[Caller], Way], load: Callable[[], Serve] = load) -> None:
        self._ways = ways
        self._load = load
        self._loading = asyncio.Lock()
        self._serve: Serve | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; only POST carries one, since nothing is ever said unasked."""
        if scope["method"] != "POST":
            await _refuse(send, 405, "no_such_method", "this address takes POST only", allow="POST")
            return
        try:
            serve = await self._furnished()
        except ModuleNotFoundError:
            await _refuse(
                send, 501, "not_installed", "MCP is not installed here; add it with: pip install 'tenuto[mcp]'"
            )
            return
        caller: Caller = scope[CALLER]
        await serve(self._ways(caller), scope, receive, send)

    async def _furnished(self) -> Serve:
        async with self._loading:
            if self._serve is None:
                self._serve = await asyncio.to_thread(self._load)
            return self._serve


def at_desk(desk: Desk, notify: Callable[[], None]) -> Mounted:
    """MCP at this desk. `notify` is called when a tool may have changed something."""
    return Mounted(lambda caller: AtDesk(desk, caller, notify))


async def _refuse(send: Send, status: int, code: str, message: str, **more: str) -> None:
    body = json.dumps(explanation(code, message)).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **more,
    }
    told = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
