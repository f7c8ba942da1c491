"""Pairing a browser extension, once: a short-lived code becomes an executor's token, bound to the extension's origin.

Whoever holds the operator's token asks for a code, and a person carries it over. It opens once, within five minutes; a
few wrong guesses void every code. What a pairing leaves is the name and the origin: the token is known by digest alone,
and an extension of that name comes in from that origin only. An origin by itself opens nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from fastapi import Request, Response
from starlette.applications import Starlette

from tenuto.config import EXTENSION
from tenuto.engine.desk import Caller
from tenuto.model.faults import Mistake, NotAllowed
from tenuto.model.snapshot import Role
from tenuto.surfaces.http.auth import digest_of
from tenuto.surfaces.http.guard import CALLER, PAIR, SESSION

LIFE: Final = 300.0
CODES: Final = 8
GUESSES: Final = 8
"""Wrong codes after which every code is void."""

SIZE: Final = 64 * 1024
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LETTERS: Final = "abcdefghjkmnpqrstvwxyz0123456789"

Make = Callable[[Caller, str], Awaitable[str]]
"""Makes an executor's token of a name for an operator, taking an earlier one of that name back; tells the secret."""


class Paired:
    """The names of extensions and the origins they were paired from, in a small file of its owner's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._origins = _read(path)

    def known(self, origin: str) -> bool:
        """Whether some extension was paired from this origin."""
        return origin in self._origins.values()

    def origin_of(self, name: str) -> str | None:
        """Where the extension of this name comes from; None for a name that was not paired."""
        return self._origins.get(name)

    def remember(self, name: str, origin: str) -> None:
        """Write a pairing down; OSError when the disk refuses."""
        told = {**self._origins, name: origin}
        made = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        made.unlink(missing_ok=True)
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(told, file)
            file.flush()
            os.fsync(file.fileno())
        made.replace(self._path)
        self._origins = told


class Codes:
    """Codes that wait to be redeemed. `clock` is seconds that never go back, `secret` makes a fresh secret."""

    def __init__(self, clock: Callable[[], float], secret: Callable[[], str]) -> None:
        self._clock = clock
        self._secret = secret
        self._codes: OrderedDict[str, tuple[Caller, str, float]] = OrderedDict()
        self._wrong = 0

    def code(self, caller: Caller, name: str) -> str:
        """A code of eight letters and digits, which opens once."""
        digest = bytes.fromhex(digest_of(self._secret()))
        letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:8])
        made = f"{letters[:4]}-{letters[4:]}"
        self._codes[digest_of(made)] = (caller, name, self._clock() + LIFE)
        while len(self._codes) > CODES:
            self._codes.popitem(last=False)
        return made

    def redeem(self, code: str) -> tuple[Caller, str] | None:
        """Who asked for the code, and for which name; None for one that is unknown, old or was used."""
        caller, name, until = self._codes.pop(digest_of(code), (None, "", 0.0))
        if caller is None or until < self._clock():
            self._wrong += 1
            if self._wrong >= GUESSES:
                self._codes.clear()
                self._wrong = 0
            return None
        self._wrong = 0
        return caller, name


class Pairing:
    """Puts the addresses of pairing on an application. `port` is where a browser finds them; `told` tells faults."""

    def __init__(
        self, codes: Codes, paired: Paired, make: Make, told: Callable[[BaseException], Response], port: int | None
    ) -> None:
        self._codes = codes
        self._paired = paired
        self._make = make
        self._told = told
        self._port = port

    def on(self, app: Starlette) -> None:
        """Add the routes."""
        app.router.add_route("/extension/code", self._code, methods=["POST"], include_in_schema=False)
        app.router.add_route(PAIR, self._pair, methods=["POST"], include_in_schema=False)

    async def _code(self, request: Request) -> Response:
        caller: Caller = request.scope[CALLER]
        if caller.role is not Role.OPERATOR or request.scope.get(SESSION) is not None:
            return self._told(NotAllowed("only the operator's token asks for a code"))
        name = (await _body(request)).get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return self._told(Mistake("a name is up to 64 of a-z, 0-9, dot, dash and underscore", field="name"))
        if self._port is None:
            return _json({"code": None})
        return _json({"code": f"{self._port}-{self._codes.code(caller, name)}", "seconds": int(LIFE), "name": name})

    async def _pair(self, request: Request) -> Response:
        origin = request.headers.get("origin", "")
        code = (await _body(request)).get("code")
        if not EXTENSION.fullmatch(origin):
            return self._told(NotAllowed("only a browser's extension is paired"))
        found = self._codes.redeem(code) if isinstance(code, str) and len(code) <= 32 else None
        if found is None:
            return self._told(NotAllowed("this code opens nothing (any more)"))
        caller, name = found
        try:
            secret = await self._make(caller, name)
            self._paired.remember(name, origin)
        except Exception as fault:  # noqa: BLE001 - told to the extension in the one shape
            return self._told(fault)
        return _json({"token": secret, "name": name})


async def _body(request: Request) -> Mapping[str, object]:
    try:
        given = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _read(path: Path) -> Mapping[str, str]:
    """What stands in the file; nothing where it is missing or damaged: the extension is paired again then."""
    try:
        told = json.loads(path.read_bytes()[:SIZE])
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    return {
        name: origin
        for name, origin in told.items()
        if NAME.fullmatch(name) and isinstance(origin, str) and EXTENSION.fullmatch(origin)
    }


def _json(value: dict[str, object]) -> Response:
    return Response(json.dumps(value), 200, {"Cache-Control": "no-store"}, "application/json")
