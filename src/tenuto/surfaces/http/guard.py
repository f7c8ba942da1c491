"""What stands in front of everything, before any routing: host, origin, size, kind of body, token.

Checked in this order, the first that fails answers. A page of another site can neither read nor change anything:
its Host or Origin is not on the list, nothing here allows another origin, and it has no token. Bodies are read here,
up to their limit and within a time, so that nothing behind it meets an endless one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.present import explanation

BODY_BYTES = 512 * 1024
BODY_WITHIN = 30.0
SOCKET_HOST = "tenuto"
OPEN = frozenset({"/healthz"})
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
CALLER = "tenuto.caller"


class Refusal(Exception):
    """The request does not come in."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps(explanation(code, message)).encode()
        self.headers = headers


class Guard:
    """ASGI: lets in what may come in, with its caller at scope["tenuto.caller"].

    `port` is the loopback port that is served, if any; `origins` are allowed beside the port's own.
    """

    def __init__(self, app: ASGIApp, auth: Authenticator, port: int | None = None, origins: Iterable[str] = ()) -> None:
        self._app = app
        self._auth = auth
        self._hosts = frozenset() if port is None else frozenset(f"{name}:{port}" for name in LOOPBACK)
        own = () if port is None else (f"http://{name}:{port}" for name in LOOPBACK)
        self._origins = frozenset((*own, *origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what may not come in; pass on what may."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            self._look(scope)
            if scope["type"] == "http":
                receive = await _read_whole(receive)
        except Refusal as refusal:
            await _answer(scope, send, refusal)
            return
        except _Gone:
            return
        await self._app(scope, receive, send)

    def _look(self, scope: Scope) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        for name in (b"host", b"origin", b"authorization", b"content-length", b"content-type"):
            if len(headers.get(name, ())) > 1:
                raise Refusal(400, "bad_request", f"more than one {name.decode()} header")
        host = _one(headers, b"host")
        # The server's own address says where it came in; over a Unix socket there is no port.
        server = scope.get("server")
        over_socket = server is None or server[1] is None
        if host is None or host.lower() not in ({SOCKET_HOST} if over_socket else self._hosts):
            raise Refusal(403, "not_allowed", "this host is not served here")
        origin = _one(headers, b"origin")
        if origin is not None and origin not in self._origins:
            raise Refusal(403, "not_allowed", "this origin is not allowed")
        _may_have_body(headers)
        if scope["path"] in OPEN:
            return
        caller = self._auth.caller(headers.get(b"authorization", [None])[0])
        if caller is None:
            raise Refusal(401, "not_allowed", "a valid bearer token is needed", **{"www-authenticate": "Bearer"})
        scope[CALLER] = caller


def _one(headers: dict[bytes, list[bytes]], name: bytes) -> str | None:
    found = headers.get(name)
    return found[0].decode("latin-1") if found else None


def _may_have_body(headers: dict[bytes, list[bytes]]) -> None:
    length = _one(headers, b"content-length")
    if length is not None:
        if not length.isdigit() or len(length) > 12:
            raise Refusal(400, "bad_request", "the content-length is no number")
        if int(length) > BODY_BYTES:
            raise _too_large()
    if b"transfer-encoding" in headers or (length is not None and int(length) > 0):
        kind = (_one(headers, b"content-type") or "").lower().replace(" ", "")
        if kind not in ("application/json", "application/json;charset=utf-8", 'application/json;charset="utf-8"'):
            raise Refusal(415, "unsupported_media", "a body must be application/json in UTF-8")


def _too_large() -> Refusal:
    return Refusal(413, "too_large", f"a body has at most {BODY_BYTES} bytes")


class _Gone(Exception):
    """The other side left before it had said everything."""


async def _read_whole(receive: Receive) -> Receive:
    """Read the body, and give it to whoever asks next as one message."""
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(BODY_WITHIN):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Gone
                body += message.get("body", b"")
                if len(body) > BODY_BYTES:
                    raise _too_large()
                more = message.get("more_body", False)
    except TimeoutError:
        raise Refusal(408, "too_slow", "the body did not arrive in time") from None
    first: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


async def _answer(scope: Scope, send: Send, refusal: Refusal) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)[:120]})
        return
    given: dict[str, Any] = {
        "content-type": "application/json",
        "content-length": str(len(refusal.body)),
        "cache-control": "no-store",
        "connection": "close",
        **refusal.headers,
    }
    headers = [(name.encode(), value.encode()) for name, value in given.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})
