"""What stands in front of everything, before any routing: host, origin, size, kind of body, token.

Checked in this order, the first that fails answers. A page of another site can neither read nor change anything:
its Host or Origin is not on the list, nothing here allows another origin, and it has no token. Bodies are read here,
up to their limit and within a time, so that nothing behind it meets an endless one.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenuto.engine.desk import Caller
from tenuto.model.snapshot import Role
from tenuto.surfaces.http.auth import Authenticator
from tenuto.surfaces.http.pace import FAILURES, OPERATORS, OTHERS, Buckets
from tenuto.surfaces.http.sessions import CSRF, Sessions, carries
from tenuto.surfaces.present import explanation

BODY_BYTES = 2 * 1024 * 1024  # an objective, each of its characters escaped, fits
BODY_WITHIN = 30.0
SOCKET_HOST = "tenuto"
PAIR = "/extension/pair"
OPEN = frozenset({"/healthz", "/login", "/login.js", PAIR})
SAFE = frozenset({"GET", "HEAD"})
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
EXTENSION = ("chrome-extension://", "moz-extension://")
VERBS = "/api/v1/"
CALLER = "tenuto.caller"
SESSION = "tenuto.session"
PANEL = "tenuto.panel"
"""True for a request of the panel of a paired extension, made with its own token."""
EXECUTORS = "/executor"
SUBPROTOCOL = "tenuto-executor.1"
BEARER = "bearer."


class Extensions(Protocol):
    """The extensions that were paired."""

    def known(self, origin: str) -> bool:
        """Whether one was paired from this origin."""
        ...

    def origin_of(self, name: str) -> str | None:
        """Where the one of this name comes from."""
        ...


class Unpaired:
    """No extension was paired."""

    def known(self, origin: str) -> bool:
        return False

    def origin_of(self, name: str) -> str | None:
        return None


class Refusal(Exception):
    """The request does not come in."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps(explanation(code, message)).encode()
        self.headers = headers


class Guard:
    """ASGI: lets in what may come in, with its caller at scope["tenuto.caller"].

    `port` is the loopback port that is served, if any; `hosts` and `origins` are allowed beside the port's own.
    `extensions` are origins of browser extensions that may open the executors' socket; those that were `paired` may
    also be paired anew and, each with its own token, carry the requests of their panel.
    `clock` is seconds that never go back.
    """

    def __init__(
        self,
        app: ASGIApp,
        auth: Authenticator,
        port: int | None = None,
        origins: Iterable[str] = (),
        hosts: Iterable[str] = (),
        sessions: Sessions | None = None,
        clock: Callable[[], float] = time.monotonic,
        extensions: Iterable[str] = (),
        paired: Extensions | None = None,
    ) -> None:
        self._app = app
        self._paired: Extensions = paired or Unpaired()
        self._auth = auth
        named = [] if port is None else [f"{name}:{port}" for name in LOOPBACK]
        self._hosts = frozenset((*named, *hosts))
        self._origins = frozenset((*(f"http://{name}" for name in named), *origins))
        self._extensions = frozenset(extensions)
        self._sessions = sessions
        self._operators = Buckets(OPERATORS, clock)
        self._others = Buckets(OTHERS, clock)
        self._failures = Buckets(FAILURES, clock)

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
        for name in (b"host", b"origin", b"authorization", b"cookie", b"content-length", b"content-type"):
            if len(headers.get(name, ())) > 1:
                raise Refusal(400, "bad_request", f"more than one {name.decode()} header")
        host = _one(headers, b"host")
        # The server's own address says where it came in; over a Unix socket there is no port.
        server = scope.get("server")
        over_socket = server is None or server[1] is None
        if host is None or host.lower() not in ({SOCKET_HOST} if over_socket else self._hosts):
            raise Refusal(403, "not_allowed", "this host is not served here")
        origin = _one(headers, b"origin")
        executor = scope["type"] == "websocket" and scope["path"] == EXECUTORS
        foreign = origin is not None and origin not in self._origins
        if origin is not None and foreign and not self._extension(scope, origin, executor=executor):
            raise Refusal(403, "not_allowed", "this origin is not allowed")
        _may_have_body(headers)
        if scope["path"] in OPEN:
            return
        authorization = headers.get(b"authorization", [None])[0]
        if executor and authorization is None:
            authorization = _in_subprotocol(scope)
        if authorization is None and not over_socket and not foreign and self._by_cookie(scope, headers, origin):
            return
        caller = self._auth.caller(authorization)
        if caller is None:
            self._failed(scope)
            raise Refusal(401, "not_allowed", "a valid bearer token is needed", **{"www-authenticate": "Bearer"})
        if origin is not None and foreign:
            self._of_extension(scope, caller, origin)
        elif origin is None and scope["type"] == "http" and scope["method"] in SAFE and caller.role is Role.EXECUTOR:
            scope[PANEL] = self._paired.origin_of(caller.name) is not None  # browsers leave it out where one only reads
        scope[CALLER] = caller
        self._paced(caller, authorization)

    def _extension(self, scope: Scope, origin: str, *, executor: bool) -> bool:
        """Whether an extension of this origin may come to this address at all; what it may there hangs on its token."""
        if executor:
            return origin in self._extensions or self._paired.known(origin)
        if scope["type"] != "http" or not origin.startswith(EXTENSION):
            return False
        path: str = scope["path"]
        return path == PAIR or (path.startswith(VERBS) and self._paired.known(origin))

    def _of_extension(self, scope: Scope, caller: Caller, origin: str) -> None:
        """An extension comes with its own token, from the origin it was paired from, or from one that is configured."""
        home = self._paired.origin_of(caller.name)
        if caller.role is not Role.EXECUTOR or (home is not None and home != origin):
            raise Refusal(403, "not_allowed", "this token is not for an extension of this origin")
        if scope["type"] == "http":
            if home is None:
                raise Refusal(403, "not_allowed", "this token is not for a panel")
            scope[PANEL] = True

    def _by_cookie(self, scope: Scope, headers: dict[bytes, list[bytes]], origin: str | None) -> bool:
        """Whether a browser's session lets this in; a change must say where it comes from, and prove it."""
        cookie = headers.get(b"cookie", [None])[0]
        session = self._sessions.of(cookie) if self._sessions is not None else None
        if session is None:
            return False
        if scope["type"] == "websocket" or scope["method"] not in SAFE:
            if origin is None:
                raise Refusal(403, "not_allowed", "a change from a browser says its origin")
            if scope["type"] == "http" and not carries(session, headers.get(CSRF, [None])[0]):
                raise Refusal(403, "not_allowed", "a change from a browser carries its session's secret")
        scope[CALLER], scope[SESSION] = session.caller, session
        self._paced(session.caller, cookie)
        return True

    def _paced(self, caller: Caller, key: bytes | None) -> None:
        buckets = self._operators if caller.role is Role.OPERATOR else self._others
        if (wait := buckets.pour(key)) > 0:
            raise _too_fast(wait)

    def _failed(self, scope: Scope) -> None:
        peer = scope.get("client")
        if (wait := self._failures.pour(peer[0] if peer else "socket")) > 0:
            raise _too_fast(wait)


def _in_subprotocol(scope: Scope) -> bytes | None:
    """The authorization that a browser's socket names among its subprotocols, because it can set no header."""
    told = [one.removeprefix(BEARER) for one in scope.get("subprotocols", ()) if one.startswith(BEARER)]
    return b"Bearer " + told[0].encode("latin-1", "replace") if len(told) == 1 else None


def authorization_of(scope: Scope) -> bytes | None:
    """The Authorization header of a connection, or what stands for it on a socket."""
    given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    return given[0] if given else _in_subprotocol(scope)


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


def _too_fast(wait: float) -> Refusal:
    return Refusal(429, "rate_limited", "too often; nothing was done", **{"retry-after": str(math.ceil(wait))})


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
