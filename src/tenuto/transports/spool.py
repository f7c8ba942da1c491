"""The spool: where an agent's words wait while no supervisor listens.

A word is one small file, whole or not there, readable by its owner only. It is sealed with a key that is derived from
the agent's token, of which neither the text nor the whole digest is on the disk; the registry knows the digest, finds
it by its beginning and proves the seal. Nothing that is read here is believed before that.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from tenuto.model.faults import Mistake, StorageFull
from tenuto.model.ids import SHAPE, TaskId
from tenuto.ports import Unreadable, Word

FORM = "tenuto-spool/1"
BYTES = 128 * 1024
FILES = 1000
REFUSED = "refused"
REFUSED_KEPT = 200
HINT = 16
SUFFIX = ".json"


def put(place: Path, *, verb: str, params: Mapping[str, object], key: str, token: str, task: str, at: datetime) -> Path:
    """Leave a word, durably, and say where. `task` is whose token it is.

    Raises Mistake for what is too large and StorageFull when it cannot be written.
    """
    body = json.dumps(
        {"verb": verb, "params": dict(params), "key": key, "task": task, "at": at.astimezone(UTC).isoformat()},
        ensure_ascii=True,
        separators=(",", ":"),
    )
    digest = hashlib.sha256(token.encode()).hexdigest()
    sealed = {"form": FORM, "hint": digest[:HINT], "seal": _seal(digest, body), "body": body}
    content = json.dumps(sealed, ensure_ascii=True).encode()
    if len(content) > BYTES:
        raise Mistake(f"this is too large to be left behind: at most {BYTES} bytes", field="params")
    stamp = at.astimezone(UTC).strftime("%Y%m%dT%H%M%S.%f")
    name = f"{stamp}-{hashlib.sha256(f'{task} {key}'.encode()).hexdigest()[:16]}{SUFFIX}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sum(1 for _ in _entries(place)) >= FILES:
            raise StorageFull(f"{place} holds {FILES} words already; start the supervisor, which reads them")
        return _write(place, name, content)
    except OSError as error:
        raise StorageFull(f"{place} cannot be written to: {error.strerror}") from error


def _write(place: Path, name: str, content: bytes) -> Path:
    part = place / f".{name}.{os.getpid()}"
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place / name)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync(place)
    return place / name


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _seal(digest: str, body: str) -> str:
    return hmac.new(bytes.fromhex(digest), body.encode(), hashlib.sha256).hexdigest()


def _entries(place: Path) -> list[str]:
    """Names of words, in order of the time they say they were said at."""
    with os.scandir(place) as found:
        return sorted(one.name for one in found if one.name.endswith(SUFFIX) and not one.name.startswith("."))


class SpoolFolder:
    """Implements `ports.Spool` over one directory."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def open(self) -> None:
        """Make the directory, for its owner only."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._place.chmod(0o700)

    def stamp(self) -> int:
        """A number that changes when something was put here or taken away; 0 when there is no directory."""
        try:
            return self._place.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def waiting(self, limit: int) -> tuple[Word | Unreadable, ...]:
        """What lies here, oldest first; nothing of it is proven."""
        try:
            names = _entries(self._place)
        except FileNotFoundError:
            return ()
        return tuple(self._read(name) for name in names[:limit])

    def genuine(self, word: Word, digest: str) -> bool:
        """Whether a word was sealed by who has the token of this digest (sha256, hex)."""
        return hmac.compare_digest(word.hint, digest[:HINT]) and hmac.compare_digest(
            word.seal, _seal(digest, word.body)
        )

    def remove(self, name: str) -> None:
        """Take a word away that has been dealt with."""
        (self._place / name).unlink(missing_ok=True)
        _sync(self._place)

    def refuse(self, name: str, reason: str) -> None:
        """Put a word aside, with the reason beside it; only the newest are kept."""
        aside = self._place / REFUSED
        aside.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self._place / name).rename(aside / name)
            why = aside / f"{name}.reason"
            why.unlink(missing_ok=True)
            handle = os.open(why, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{reason[:1000]}\n")
        _sync(self._place)
        for old in _entries(aside)[:-REFUSED_KEPT]:
            (aside / old).unlink(missing_ok=True)
            (aside / f"{old}.reason").unlink(missing_ok=True)

    def _read(self, name: str) -> Word | Unreadable:
        try:
            content = self._content(name)
            if isinstance(content, Unreadable):
                return content
            sealed = json.loads(content)
            if not isinstance(sealed, dict) or sealed.get("form") != FORM:
                return Unreadable(name, "it has not the form of a word")
            return _word(name, sealed)
        except OSError as error:
            return Unreadable(name, f"it cannot be read: {error.strerror}")
        except (ValueError, KeyError, TypeError, RecursionError):
            return Unreadable(name, "it has not the form of a word")

    def _content(self, name: str) -> bytes | Unreadable:
        try:
            handle = os.open(self._place / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                return Unreadable(name, "it is not a plain file")
            raise
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                return Unreadable(name, "it is not a plain file")
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                return Unreadable(name, "others can reach it")
            if about.st_size > BYTES:
                return Unreadable(name, f"it has more than {BYTES} bytes")
            return os.read(handle, BYTES)
        finally:
            os.close(handle)


def _word(name: str, sealed: Mapping[str, object]) -> Word | Unreadable:
    body, hint, seal = sealed["body"], sealed["hint"], sealed["seal"]
    if not (isinstance(body, str) and isinstance(hint, str) and isinstance(seal, str)):
        return Unreadable(name, "it has not the form of a word")
    if not re.fullmatch(r"[0-9a-f]{16}", hint) or not re.fullmatch(r"[0-9a-f]{64}", seal):
        return Unreadable(name, "it has not the form of a word")
    said = json.loads(body)
    verb, params, key, task, at = (said[part] for part in ("verb", "params", "key", "task", "at"))
    if not (isinstance(verb, str) and isinstance(params, dict) and isinstance(key, str) and isinstance(task, str)):
        return Unreadable(name, "it has not the form of a word")
    if not SHAPE.fullmatch(task) or not 1 <= len(key) <= 200:
        return Unreadable(name, "it names no task, or has no idempotency key")
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None:
        return Unreadable(name, "its time has no offset")
    return Word(name, verb, params, key, TaskId(task), moment, hint, seal, body)
