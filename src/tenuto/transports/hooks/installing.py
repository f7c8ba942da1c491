"""Putting hooks into a file and taking them out again: planned, shown, then done whole or not at all.

What stood in the file before is kept beside our state, so that a file nobody has touched since is given back byte for
byte. One that was changed meanwhile loses our lines and nothing else. A file is never written through that is not the
user's own, and its mode stays.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tenuto.model.faults import Mistake
from tenuto.transports.hooks import settings

RECORDS: Final = "installed"


@dataclass(frozen=True)
class Change:
    """What a file holds and is to hold; None: no file. `exact`: it becomes what it was before we ever touched it."""

    file: Path
    before: bytes | None
    after: bytes | None
    mark: str
    exact: bool = False


def read(file: Path) -> bytes | None:
    """What a file holds; None where there is none. Raises Mistake for what is not the user's own plain file."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Mistake(f"{file} cannot be read ({error.strerror})", field="settings") from None
    with os.fdopen(handle, "rb") as opened:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise Mistake(f"{file} is not a plain file of yours; nothing was changed", field="settings")
        return opened.read(settings.LIMIT + 1)


def install(kind: settings.Kind, file: Path, line: str, mark: str) -> Change:
    """Our lines put into a file. Nothing is changed yet."""
    before = read(file)
    return Change(file, before, settings.put(before, kind.events, line), mark)


def remove(file: Path, records: Path) -> Change | None:
    """Our lines taken out of a file; None where it has none. Nothing is changed yet."""
    now = read(file)
    known = _record(file, records)
    mark = next(iter(settings.marks(now)), "")
    if known is not None and known[0] == _digest(now):
        return Change(file, now, known[1], mark, exact=True)
    if not mark:
        return None
    return Change(file, now, settings.taken(now), mark)


def carry_out(change: Change, records: Path) -> None:
    """Make a file what it is to be; Mistake when it is not any more what was shown."""
    if read(change.file) != change.before:
        raise Mistake(f"{change.file} was changed meanwhile; look again", field="settings")
    keeps = settings.marks(change.after)
    if keeps:
        _keep(change.file, records, change.after, _original(change, records))
    _become(change.file, change.after)
    if not keeps:
        _path(change.file, records).unlink(missing_ok=True)


def _original(change: Change, records: Path) -> bytes | None:
    """What the file held before it had any line of ours."""
    if not settings.marks(change.before):
        return change.before
    known = _record(change.file, records)
    return known[1] if known is not None and known[0] == _digest(change.before) else settings.taken(change.before)


def _become(file: Path, content: bytes | None) -> None:
    real = Path(os.path.realpath(file))
    if content is None:
        real.unlink(missing_ok=True)
        return
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o600
    made = real.with_name(f".{real.name}.tenuto-{os.getpid()}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as out:
            os.fchmod(handle, mode)
            out.write(content)
            out.flush()
            os.fsync(handle)
        made.replace(real)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _path(file: Path, records: Path) -> Path:
    return records / f"{hashlib.sha256(os.fsencode(Path.cwd() / file)).hexdigest()[:24]}.json"


def _keep(file: Path, records: Path, after: bytes | None, original: bytes | None) -> None:
    records.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = base64.b64encode(original).decode("ascii") if original is not None else None
    told = {"file": str(Path.cwd() / file), "after": _digest(after), "before": before}
    _become(_path(file, records), json.dumps(told).encode("utf-8"))


def _record(file: Path, records: Path) -> tuple[str, bytes | None] | None:
    """The digest a file was left with and what it held before; None where that is not known."""
    try:
        told = json.loads(_path(file, records).read_bytes())
        before = base64.b64decode(told["before"]) if told["before"] is not None else None
        return str(told["after"]), before
    except (OSError, ValueError, KeyError, TypeError):
        return None
