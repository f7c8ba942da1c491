"""Who is calling: a bearer token becomes a caller of the desk, or nobody.

The operator's token lies in a file that only its owner may read; agents' tokens are known to the registry by digest
alone. Tokens are compared by digest in constant time, and never logged, returned or put into a message.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tenuto.engine.desk import Caller
from tenuto.model.faults import Mistake
from tenuto.model.snapshot import Role, Token

TOKEN_BYTES = 512
SCHEME = b"bearer "


class Authenticator:
    """Resolves bearer tokens. `find` is the registry's look-up by sha256 hex digest.

    The operator's token may be given as what tells it now, so that it can be changed while it is in use. Without `now`
    no token that runs out opens anything.
    """

    def __init__(
        self,
        operator_token: str | Callable[[], str],
        find: Callable[[str], Token | None],
        *,
        operator: str = "operator",
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._operator_token = operator_token
        self._now = now
        self._find = find
        self._operator = operator

    def _operators(self) -> str:
        known = self._operator_token
        return known if isinstance(known, str) else known()

    def caller(self, authorization: bytes | None) -> Caller | None:
        """The caller an Authorization header stands for; None for anything that opens nothing."""
        if authorization is None or len(authorization) > TOKEN_BYTES or authorization[:7].lower() != SCHEME:
            return None
        try:
            digest = digest_of(authorization[7:].strip().decode("ascii"))
        except UnicodeDecodeError:
            return None
        if hmac.compare_digest(digest, digest_of(self._operators())):
            return Caller(Role.OPERATOR, self._operator)
        token = self._find(digest)
        if token is None or token.revoked_at is not None or (token.role is Role.OPERATOR and token.name is None):
            return None
        if token.expires_at is not None and (self._now is None or self._now() >= token.expires_at):
            return None
        name = token.name or f"{token.role} of {token.task_id}"
        return Caller(token.role, name, token.task_id, token.lease_number)


def digest_of(token: str) -> str:
    """The sha256 of a token in hex, which is all that is kept of it."""
    return hashlib.sha256(token.encode()).hexdigest()


def operator_token(path: Path, secret: Callable[[], str]) -> str:
    """The operator's token, made at the first start. Raises Mistake for a file that others could read or write."""
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.unlink(missing_ok=True)
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secret().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(made)  # unlike a rename, this leaves alone what another start made meanwhile
        except FileExistsError:
            pass
    finally:
        made.unlink()
    return _read(path)


def rotate(path: Path, secret: Callable[[], str]) -> str:
    """Put a fresh operator's token in the place of the old one, which opens nothing from then on."""
    operator_token(path, secret)  # refuses a place that others can reach
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)
    return _read(path)


class Kept:
    """The operator's token as its file tells it now; the last one that could be read, where the file cannot be."""

    def __init__(self, path: Path, token: str) -> None:
        self._path = path
        self._token = token
        self._seen = _mark(path)

    def __call__(self) -> str:
        """The token in force."""
        mark = _mark(self._path)
        if mark is not None and mark != self._seen:
            with contextlib.suppress(Mistake, OSError):
                self._token, self._seen = _read(self._path), mark
        return self._token


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


def _read(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}", field="operator_token") from None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise Mistake(f"{path} must be a file of yours with mode 0600; others can reach it", field="operator_token")
        text = os.read(handle, TOKEN_BYTES).decode("ascii", "replace").strip()
    finally:
        os.close(handle)
    if len(text) < 32:
        raise Mistake(f"{path} holds no token; remove it, and the next start makes a new one", field="operator_token")
    return text
