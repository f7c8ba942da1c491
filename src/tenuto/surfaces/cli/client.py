"""HTTP over the supervisor's Unix socket, with the standard library alone.

A request either was not sent, was answered, or was sent and its answer lost; these three are kept apart, because what
may have happened is not tried again except under the same idempotency key. The bearer token is read from a file or
the environment by whoever builds the client and never appears in an address or a message.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from tenuto.surfaces.cli.exits import Failure, of_answer

CONNECT = 3.0
"""How long a connection may take, in seconds."""
ANSWER = 30.0
"""How long an answer may take, in seconds."""
READ = 10.0
"""How long an answer to a reading request may take, in seconds: the registry can be read without the supervisor."""
TRIES = 3
"""How often a request whose answer was lost is sent, under one key; silence is not asked again."""
PAUSES = (0.2, 1.0)
"""How long to wait between these, in seconds."""
BODY = 32 * 1024 * 1024
"""Most bytes of an answer."""
LINE = 1024 * 1024
"""Most bytes of one line of a feed."""


class Unreachable(Exception):
    """Nobody listens at the socket; nothing was sent."""


class Lost(Exception):
    """The request was sent and no whole answer came; `silent` when the time for it passed."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.silent = isinstance(why, TimeoutError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the JSON value (None where there is no body), and whether it was a replay."""

    status: int
    value: object
    replayed: bool = False


class _Connection(http.client.HTTPConnection):
    """An HTTP connection through a Unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("tenuto", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(CONNECT)
        try:
            sock.connect(str(self._path))
        except OSError:
            sock.close()
            raise
        sock.settimeout(self.timeout)
        self.sock = sock


class Client:
    """One caller at one socket. `token` may be empty: then the supervisor refuses, and says so."""

    def __init__(self, path: Path, token: str, *, answer: float = ANSWER) -> None:
        self._path = path
        self._token = token
        self._answer = answer

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Send one request; again under the same key (or freely, when it only reads) while its answer gets lost.

        Raises Unreachable when it was never sent, Failure for an answer of 400 or more, and Failure with exit code 6
        when it may have been carried out and nobody can tell.
        """
        sent = False
        for number in range(TRIES):
            if number:
                time.sleep(PAUSES[number - 1])
            try:
                answer = self._once(method, path, query, body, key)
            except Unreachable:
                if not sent:
                    raise
                continue
            except Lost as lost:
                sent = True
                if lost.silent or (method != "GET" and key is None):
                    break
                continue
            if answer.status >= 400:
                raise of_answer(answer.status, answer.value)
            return answer
        if method == "GET":
            raise Unreachable("the supervisor does not answer")
        raise Failure(
            "unknown_outcome",
            "the request was sent and its answer was lost; it may have been carried out",
            mend="look before you repeat it: tenuto status, tenuto show ID",
        )

    @contextmanager
    def feed(self, path: str, query: Mapping[str, object], *, quiet: float) -> Iterator[Iterator[dict[str, object]]]:
        """The server-sent events of `path` as their JSON data; ends when the supervisor does.

        `quiet` is how many seconds may pass without a byte before the feed counts as ended; the server's comments
        count as bytes. Raises Unreachable when nobody listens, Failure when it is refused.
        """
        connection = _Connection(self._path, quiet)
        try:
            response = self._begin(connection, "GET", path, query, None, None, "text/event-stream")
            if response.status >= 400:
                raise of_answer(response.status, _json(response.read(BODY)))
            yield _events(response)
        finally:
            connection.close()

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        body: Mapping[str, object] | None,
        key: str | None,
    ) -> Answer:
        connection = _Connection(self._path, min(self._answer, READ) if method == "GET" else self._answer)
        try:
            response = self._begin(connection, method, path, query, body, key)
            try:
                raw = response.read(BODY + 1)
            except (OSError, http.client.HTTPException) as error:
                raise Lost(error) from None
            if len(raw) > BODY:
                raise Failure("http", f"the answer is larger than {BODY} bytes")
            replayed = response.headers.get("Idempotent-Replay", "").lower() == "true"
            return Answer(response.status, _json(raw), replayed)
        finally:
            connection.close()

    def _ours(self) -> None:
        """A token is shown only to a socket of our own user."""
        if self._path.stat().st_uid != os.geteuid():
            raise Failure("not_allowed", f"the socket {self._path} belongs to somebody else; no token is shown to it")

    def _begin(
        self,
        connection: _Connection,
        method: str,
        path: str,
        query: Mapping[str, object] | None,
        body: Mapping[str, object] | None,
        key: str | None,
        accept: str = "application/json",
    ) -> http.client.HTTPResponse:
        try:
            self._ours()
            connection.connect()
        except (OSError, ValueError) as error:
            raise Unreachable(_why(error)) from None
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{path}?{urlencode(given, doseq=True)}" if given else path
        headers = {"Accept": accept}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if key is not None:
            headers["Idempotency-Key"] = key
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8")
            headers["Content-Type"] = "application/json"
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it heard all
                connection.request(method, target, body=data, headers=headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Lost(error) from None


def _why(error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return "nobody listens"
        case ConnectionRefusedError():
            return "nobody listens any more"
        case PermissionError():
            return "its socket may not be used by this user"
        case TimeoutError():
            return "it does not answer"
        case _:
            return str(error)


def _json(raw: bytes) -> object:
    if not raw.strip():
        return None
    try:
        value: object = json.loads(raw)
    except ValueError:
        return None
    return value


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, object]]:
    """Every event's data that is a JSON object; anything else in the feed is passed over."""
    data: list[str] = []
    while True:
        try:
            raw = response.readline(LINE)
        except (OSError, http.client.HTTPException):
            return
        if not raw:
            return
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            value = _json("\n".join(data).encode("utf-8"))
            data.clear()
            if isinstance(value, dict):
                yield value
