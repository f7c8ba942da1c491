"""Opening a connection to a supervisor: its Unix socket, a loopback port, or another machine over TLS.

The token is read from its file at every try and goes into a header, never into an address; it is not sent in the clear
to anything but this very machine. No proxy is asked.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

from tenuto.model.faults import Mistake
from tenuto.transports import wire
from tenuto.transports.executor_side.peer import Connect, Denied
from tenuto.transports.line import Socket

PATH: Final = "/executor"
OPEN_WITHIN: Final = 10.0
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def connector(address: str, token: Callable[[], str]) -> Connect:
    """How to reach an address: a socket's path, `ws://` on loopback, or `wss://`. Raises Mistake for anything else."""
    if address.startswith(("/", "unix:")):
        path = address.removeprefix("unix:")
        return lambda: _opened(lambda headers: unix_connect(path, f"ws://tenuto{PATH}", **_options(headers)), token)
    told = urllib.parse.urlsplit(address)
    if told.scheme not in ("ws", "wss") or not told.hostname or told.username or told.query or told.fragment:
        raise Mistake(f"'{address[:200]}' is no address of a supervisor: ws://127.0.0.1:PORT, wss://HOST, or a socket")
    if told.scheme == "ws" and told.hostname not in LOOPBACK:
        raise Mistake(f"{told.hostname} is another machine: a token goes there over wss:// only")
    if told.path not in ("", "/", PATH):
        raise Mistake("an address has no path of its own", field="connect")
    uri = f"{told.scheme}://{told.netloc}{PATH}"
    return lambda: _opened(lambda headers: connect(uri, proxy=None, **_options(headers)), token)


def _options(headers: dict[str, str]) -> dict[str, Any]:
    return {
        "additional_headers": headers,
        "subprotocols": [Subprotocol(wire.SUBPROTOCOL)],
        "max_size": wire.LIMIT,
        "compression": None,
        "ping_interval": None,
        "open_timeout": OPEN_WITHIN,
        "close_timeout": 2,
        "user_agent_header": None,
    }


async def _opened(opening: Callable[[dict[str, str]], Awaitable[ClientConnection]], token: Callable[[], str]) -> Socket:
    try:
        connection = await opening({"Authorization": f"Bearer {token()}"})
    except InvalidStatus as refused:
        status = refused.response.status_code
        if status in (401, 403):
            raise Denied(f"the supervisor does not let this token in ({status})") from None
        raise ConnectionError(f"the supervisor answers with {status}") from None
    except InvalidHandshake as error:
        raise ConnectionError(f"no supervisor answers there ({type(error).__name__})") from None
    return Websocket(connection)


class Websocket:
    """Implements `Socket` over a client's websocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, text: str) -> None:
        try:
            await self._connection.send(text)
        except ConnectionClosed as closed:
            raise ConnectionError(str(closed)) from None

    async def receive(self) -> str | None:
        try:
            message = await self._connection.recv()
        except ConnectionClosed:
            return None
        if not isinstance(message, str):
            raise wire.WireError(wire.Refused.MALFORMED, "a frame is text")
        return message

    async def close(self, code: int, reason: str) -> None:
        await self._connection.close(code, reason)
