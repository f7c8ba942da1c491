"""What a hook was called with, as a few small words; and what is left behind of a call.

Of what a program hands to its hook only names are read: the event, the session, whether a sub-agent spoke. An answer's
own words are read for a fenced block by whoever waits for this turn, and are never kept. Every call leaves a stamp, so
that it can be seen whether a program calls its hooks at all, and a word for the supervisor where none listens.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

BODY: Final = 4 << 20
WORDS: Final = 512 * 1024
WAITING: Final = 200
"""Most words that are left for a supervisor; later ones are dropped, since the newest look says the same."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}")


@dataclass(frozen=True)
class Call:
    """One call of a hook. `again`: the turn goes on because a hook had it go on; `sub`: a sub-agent's."""

    adapter: str
    event: str
    session: str
    cwd: str = ""
    again: bool = False
    sub: bool = False
    version: str = ""


def read(adapter: str, raw: bytes) -> tuple[Call, str] | None:
    """The call, and the agent's last words where it has stopped; None for what is no call."""
    if len(raw) > BODY:
        return None
    try:
        told: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    event, session = told.get("hook_event_name"), told.get("session_id")
    if (
        not isinstance(event, str)
        or not isinstance(session, str)
        or not (NAME.fullmatch(event) and NAME.fullmatch(session))
    ):
        return None
    last, cwd = told.get("last_assistant_message"), told.get("cwd")
    sub = bool(told.get("agent_id")) or event.startswith("Subagent")
    call = Call(
        adapter, event, session, cwd[:4096] if isinstance(cwd, str) else "", told.get("stop_hook_active") is True, sub
    )
    return call, last[:WORDS] if isinstance(last, str) else ""


def stamp(place: Path, mark: str, call: Call, at: datetime) -> None:
    """Write down that this very hook was called."""
    told = {"at": at.isoformat(), "event": call.event, "session": call.session, "adapter": call.adapter}
    _put(place / "called" / f"{mark}.json", json.dumps(told).encode())


def called(place: Path, mark: str) -> Mapping[str, str] | None:
    """When a hook was called last; None where it never was."""
    try:
        told = json.loads((place / "called" / f"{mark}.json").read_bytes()[:4096])
    except (OSError, ValueError):
        return None
    return {str(name): str(value) for name, value in told.items()} if isinstance(told, dict) else None


def leave(place: Path, call: Call, at: datetime) -> bool:
    """Leave a word for the next supervisor; whether there was room."""
    folder = place / "waiting"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sum(1 for _ in folder.iterdir()) >= WAITING:
        return False
    name = f"{at.strftime('%Y%m%dT%H%M%S.%f')}-{os.getpid()}.json"
    _put(folder / name, json.dumps({**asdict(call), "at": at.isoformat()}).encode())
    return True


def waiting(place: Path) -> list[tuple[Path, Call | None]]:
    """The words that were left, oldest first; None for one that cannot be read."""
    folder = place / "waiting"
    try:
        files = sorted(one for one in folder.iterdir() if one.suffix == ".json")
    except OSError:
        return []
    return [(one, _call(one)) for one in files]


def socket_name(session: str) -> str:
    """Beside the supervisor's socket: where the host that works in a session hears its hooks.

    Three letters longer than `api.sock` and no more, so that a path which holds that one (100 bytes at most,
    `config.SOCKET_BYTES`) holds this one too on every system: macOS takes 103.
    """
    return f"h{hashlib.sha256(session.encode()).hexdigest()[:10]}"


def _call(file: Path) -> Call | None:
    try:
        told = json.loads(file.read_bytes()[:8192])
        call = Call(str(told["adapter"]), str(told["event"]), str(told["session"]), sub=told["sub"] is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return call if NAME.fullmatch(call.event) and NAME.fullmatch(call.session) else None


def _put(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        made.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            made.unlink()
        raise
