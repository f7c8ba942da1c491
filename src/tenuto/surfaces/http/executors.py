"""The websocket of executors: lets in who has an executor's token and speaks their subprotocol, and hands it on.

The guard has looked at host, origin and token before. What is said over the socket is for whoever serves it; here only
a message's size and sort count, and that the token still opens the door while the connection lasts.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from tenuto.engine.desk import Caller
from tenuto.model.snapshot import Role
from tenuto.surfaces.http.guard import CALLER, EXECUTORS, SUBPROTOCOL

PATH: Final = EXECUTORS
AGAIN: Final = 10.0
"""Seconds after which a token is looked at again."""


class Socket(Protocol):
    """Texts in order, both ways."""

    async def send(self, text: str) -> None: ...

    async def receive(self) -> str | None: ...

    async def close(self, code: int, reason: str) -> None: ...


Serve = Callable[[Socket, Callable[[str], bool]], Awaitable[None]]
"""Serves a socket to its end, given whether its token is for an executor of a name."""


class ExecutorDoor:
    """ASGI: one websocket of an executor, for whoever the guard let in. `still` says that a caller may stay."""

    def __init__(self, serve: Serve, still: Callable[[Scope], bool] = lambda scope: True) -> None:
        self._serve = serve
        self._still = still

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept and serve, or refuse before anything is accepted."""
        socket = WebSocket(scope, receive, send)
        caller: Caller = scope[CALLER]
        if caller.role is not Role.EXECUTOR or SUBPROTOCOL not in scope.get("subprotocols", ()):
            await socket.close(1008, "an executor's token and subprotocol are needed")
            return
        await socket.accept(subprotocol=SUBPROTOCOL)

        def may(full: str) -> bool:
            return full.partition(":")[2] == caller.name

        accepted = _Accepted(socket, lambda: self._still(scope))
        try:
            await self._serve(accepted, may)
        finally:
            await accepted.close(1000, "")


class _Accepted:
    """Implements `Socket` over an accepted websocket."""

    def __init__(self, socket: WebSocket, still: Callable[[], bool]) -> None:
        self._socket = socket
        self._still = still
        self._looked = time.monotonic()

    async def send(self, text: str) -> None:
        try:
            await self._socket.send_text(text)
        except (RuntimeError, WebSocketDisconnect, OSError) as error:
            raise ConnectionError(str(error)) from None

    async def receive(self) -> str | None:
        """The next text; None when it is closed, when it was no text, or when its token opens nothing any more."""
        try:
            message = await self._socket.receive()
        except (RuntimeError, WebSocketDisconnect, OSError):
            return None
        if message["type"] != "websocket.receive":
            return None
        now = time.monotonic()
        if now - self._looked > AGAIN:
            self._looked = now
            if not self._still():
                await self.close(1008, "this token was revoked")
                return None
        text = message.get("text")
        if not isinstance(text, str):
            await self.close(1003, "a frame is text")
            return None
        return text

    async def close(self, code: int, reason: str) -> None:
        if self._socket.application_state is WebSocketState.DISCONNECTED:
            return
        if self._socket.client_state is WebSocketState.DISCONNECTED:
            return
        try:
            await self._socket.close(code, reason[:100])
        except (RuntimeError, OSError):
            return
