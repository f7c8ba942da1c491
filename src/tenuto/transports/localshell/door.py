"""Asking a Local Shell MCP server through its own MCP tools: as little of that protocol as one tool call needs.

Only a server on loopback is asked, or one behind TLS; every wait and every answer is bounded. Whatever fails before a
call is sent is `NotAsked`, and proves that nothing happened; what fails after it is `Unanswered`, and proves nothing.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tenuto import __version__

PROTOCOL: Final = "2025-06-18"
ANSWER_LIMIT: Final = 8 * 1024 * 1024
#: Seconds for a server to take a connection, and to answer a call.
CONNECT, ANSWER = 5.0, 30.0


class NotAsked(Exception):
    """Nothing was sent that could have an effect; the message says why."""


class Refused(Exception):
    """The server answered the call with an error: it did nothing. The message is its own words, shortened."""


class Unanswered(Exception):
    """The call went out, and no answer that can be read came back."""


@dataclass
class Door:
    """The MCP endpoint of one server. `token` is a bearer token where the server wants one."""

    url: str
    token: str | None = None
    _session: str | None = field(default=None, init=False)
    _number: int = field(default=0, init=False)

    def enter(self) -> Mapping[str, Mapping[str, Any]]:
        """Greet the server; its tools by name, each with its input's properties. Raises NotAsked."""
        about = {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "tenuto", "version": __version__},
        }
        try:
            self._ask("initialize", about, CONNECT)
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, CONNECT)
            listed = self._ask("tools/list", {}, ANSWER).get("tools")
        except (Refused, Unanswered) as error:
            raise NotAsked(str(error)) from None
        found: dict[str, Mapping[str, Any]] = {}
        for tool in listed if isinstance(listed, list) else []:
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            names = schema.get("properties") if isinstance(schema, dict) else None
            if isinstance(names, dict):
                found[str(tool.get("name"))] = names
        return found

    def call(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, Any]:
        """Call a tool once; its data. Raises NotAsked, Refused or Unanswered."""
        result = self._ask("tools/call", {"name": tool, "arguments": dict(arguments)}, ANSWER)
        told = result.get("structuredContent")
        whole = told if isinstance(told, dict) else {}
        if result.get("isError") is True or whole.get("ok") is False:
            raise Refused(_words(whole, result))
        data = whole.get("data")
        if not isinstance(data, dict):
            raise Unanswered("its answer to a tool call holds no data")
        return data

    def leave(self) -> None:
        """Tell the server that this client is gone; whether it hears that does not matter."""
        if self._session is None:
            return
        try:
            connection, path = self._connect(CONNECT)
            try:
                connection.request("DELETE", path, headers=self._headers())
                connection.getresponse().read(ANSWER_LIMIT)
            finally:
                connection.close()
        except (NotAsked, OSError, http.client.HTTPException):
            pass
        self._session = None

    # -- one message

    def _ask(self, method: str, params: Mapping[str, object], limit: float) -> Mapping[str, Any]:
        self._number += 1
        mine = self._number
        body = self._post({"jsonrpc": "2.0", "id": mine, "method": method, "params": dict(params)}, limit)
        for line in [line[5:] for line in body.splitlines() if line.startswith("data:")] or [body]:
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(answer, dict) or answer.get("id") != mine:
                continue
            if isinstance(answer.get("result"), dict):
                return dict(answer["result"])
            if "error" in answer:
                raise Refused(str(answer["error"])[:300])
        raise Unanswered("it did not answer in a way that can be read")

    def _post(self, message: Mapping[str, object], limit: float) -> str:
        connection, path = self._connect(limit)
        try:
            try:
                connection.request("POST", path, json.dumps(message).encode(), self._headers())
                answer = connection.getresponse()
                held = answer.read(ANSWER_LIMIT + 1)
            except (OSError, http.client.HTTPException) as error:
                raise Unanswered(f"the connection was lost ({type(error).__name__})") from None
            if len(held) > ANSWER_LIMIT:
                raise Unanswered(f"its answer is longer than {ANSWER_LIMIT} bytes")
            if answer.status in (401, 403, 404, 405, 406, 413, 415):
                raise NotAsked(f"it answers HTTP {answer.status}")  # turned away at the door, before any tool
            if answer.status >= 300:
                raise Unanswered(f"it answers HTTP {answer.status}")
            self._session = answer.headers.get("Mcp-Session-Id") or self._session
            return held.decode("utf-8", "replace")
        finally:
            connection.close()

    def _connect(self, limit: float) -> tuple[http.client.HTTPConnection, str]:
        """A connection that stands, so that whatever fails later may have been heard. Raises NotAsked."""
        parts = urlsplit(self.url)
        host, path = parts.hostname or "", parts.path or "/mcp"
        if objection := objection_to(self.url):
            raise NotAsked(objection)
        if parts.scheme == "https":
            context = ssl.create_default_context()
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, parts.port or 443, timeout=CONNECT, context=context
            )
        else:
            made = http.client.HTTPConnection(host, parts.port or 80, timeout=CONNECT)
        try:
            made.connect()
        except OSError as error:
            made.close()
            raise NotAsked(f"{parts.netloc} cannot be reached ({error.strerror or error})") from None
        if made.sock is not None:
            made.sock.settimeout(limit)
        return made, path

    def _headers(self) -> dict[str, str]:
        told = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._session is not None:
            told |= {"Mcp-Session-Id": self._session, "MCP-Protocol-Version": PROTOCOL}
        if self.token is not None:
            told["Authorization"] = f"Bearer {self.token}"
        return told


def objection_to(url: str) -> str | None:
    """Why nothing would be asked at this address; None when it may be."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "its address is none"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "its address begins with http:// or https:// and names a host"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return "its address holds no name, password, query or fragment"
    if parts.scheme == "http" and not _loopback(parts.hostname):
        return "without TLS a tool server is asked on loopback only"
    return None


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _words(whole: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """What the server says against it, shortened."""
    told = whole.get("message")
    if not isinstance(told, str) or not told:
        content = result.get("content")
        first = content[0] if isinstance(content, list) and content and isinstance(content[0], dict) else {}
        told = str(first.get("text") or "it says no more than that it is an error")
    return " ".join(told.split())[:300]
