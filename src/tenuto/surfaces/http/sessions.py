"""A browser's way in: a code that opens once, and a session that a cookie stands for.

Whoever holds the operator's token asks for a code and hands it to a browser in the part of a link that is never sent;
the page there exchanges it for a session. A session lives in the memory of this supervisor, is known by digest alone,
and ends with it. What a session changes must carry its second secret, which no other site can read.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from tenuto.engine.desk import Caller
from tenuto.surfaces.http.auth import digest_of

COOKIE = "tenuto"
CSRF = b"x-tenuto-csrf"
CODE_LIFE = 60.0
SESSION_LIFE = 12 * 3600.0
CODES = 16
SESSIONS = 64
COOKIE_BYTES = 4096


@dataclass(frozen=True)
class Session:
    """Who a cookie stands for, the secret that changes must carry, and until when (by the sessions' clock)."""

    caller: Caller
    csrf: str
    until: float


class Sessions:
    """Codes and sessions. `clock` is seconds that never go back, `secret` makes a fresh secret."""

    def __init__(self, clock: Callable[[], float], secret: Callable[[], str]) -> None:
        self._clock = clock
        self._secret = secret
        self._codes: OrderedDict[str, tuple[Caller, float]] = OrderedDict()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def code(self, caller: Caller) -> str:
        """A code that opens one session for this caller, once, within a minute."""
        made = self._secret()
        self._codes[digest_of(made)] = (caller, self._clock() + CODE_LIFE)
        while len(self._codes) > CODES:
            self._codes.popitem(last=False)
        return made

    def redeem(self, code: str) -> tuple[str, Session] | None:
        """The cookie's value and its session; None for a code that is unknown, old or was used."""
        caller, until = self._codes.pop(digest_of(code), (None, 0.0))
        if caller is None or until < self._clock():
            return None
        value = self._secret()
        session = Session(caller, self._secret(), self._clock() + SESSION_LIFE)
        self._sessions[digest_of(value)] = session
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return value, session

    def of(self, header: bytes | None) -> Session | None:
        """The session that a Cookie header stands for; None for anything that opens nothing."""
        value = value_of(header)
        if value is None:
            return None
        session = self._sessions.get(digest_of(value))
        return session if session is not None and session.until >= self._clock() else None

    def end(self, header: bytes | None) -> None:
        """Forget the session of a Cookie header."""
        value = value_of(header)
        if value is not None:
            self._sessions.pop(digest_of(value), None)


def value_of(header: bytes | None) -> str | None:
    """Our cookie's value in a Cookie header."""
    if header is None or len(header) > COOKIE_BYTES:
        return None
    try:
        found = SimpleCookie(header.decode("ascii")).get(COOKIE)
    except (CookieError, UnicodeDecodeError):
        return None
    return found.value if found is not None and found.value else None


def carries(session: Session, header: bytes | None) -> bool:
    """Whether a request carries the secret that changes under this session need."""
    return header is not None and hmac.compare_digest(header, session.csrf.encode())
