"""Which supervisors a journal's directory has served: only for their commands is an empty place a proof.

That nobody has taken a command's place says that nothing began only where the command's host would have taken it:
in the directory of the supervisor that armed it. A directory that was emptied, or is another home's, knows nothing
of it, and what it does not know is unknown. It never says that a place is free.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Final

from tenuto.transports.host import claim

RECORD: Final = "led"
LIMIT: Final = 1 << 20
"""Most bytes of the record."""

Spans = list[tuple[int, int]]


def join(folder: Path, registry: str, epoch: int) -> None:
    """Remember that the supervisor of this epoch keeps its journals here; OSError when the disk refuses.

    Where its predecessor kept them elsewhere, hosts that still come from there with an order are refused.
    """
    lock = os.open(folder / f".{claim.EPOCHS}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _record(folder)
        spans = known.get(registry, [])
        if _within(spans, epoch):
            return
        follows = bool(spans) and spans[-1][1] == epoch - 1
        known[registry] = [*spans[:-1], (spans[-1][0], epoch)] if follows else [*spans, (epoch, epoch)]
        claim.replace(str(folder), RECORD, json.dumps(known, separators=(",", ":")).encode("ascii") + b"\n")
    finally:
        os.close(lock)
    if not follows and epoch > 1:
        claim.admit(str(folder), registry, epoch)


def covers(folder: Path, registry: str, epoch: int) -> bool:
    """Whether the supervisor of this epoch kept its journals here, and they have not been taken away since."""
    try:
        return _within(_record(folder).get(registry, []), epoch)
    except (OSError, ValueError):
        return False


def _within(spans: Spans, epoch: int) -> bool:
    return any(first <= epoch <= last for first, last in spans)


def _record(folder: Path) -> dict[str, Spans]:
    """The record; empty where there is none, and where it cannot be read: what it held is then unknown for ever."""
    try:
        descriptor = os.open(folder / RECORD, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    try:
        held = os.read(descriptor, LIMIT)
    finally:
        os.close(descriptor)
    try:
        told = json.loads(held)
        return {str(name): [(int(first), int(last)) for first, last in spans] for name, spans in told.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
