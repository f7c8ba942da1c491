"""Which session of a program belongs to which conversation: one small file beside a host's journal.

A session is `confirmed` once the program itself has taken words into it: only then it must be there again. The words of
a conversation are never here, only names.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tenuto.transports.host import claim

RECORD: Final = "session"
LIMIT: Final = 4096


@dataclass(frozen=True)
class Held:
    """A conversation's session, as the program names it. `cost` is what it has cost so far, in millionths."""

    conversation: str
    session: str
    confirmed: bool
    cost: int = 0


def held(folder: Path) -> Held | None:
    """The session that is written down; None where there is none, or none that can be read."""
    try:
        descriptor = os.open(folder / RECORD, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        told = json.loads(os.read(descriptor, LIMIT))
        conversation, session = str(told["conversation"]), str(told["session"])
        return Held(conversation, session, told["confirmed"] is True, int(told.get("cost", 0)))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    finally:
        os.close(descriptor)


def keep(folder: Path, one: Held) -> None:
    """Write it down, whole or not at all; OSError when the disk refuses."""
    line = json.dumps(asdict(one))
    claim.replace(str(folder), RECORD, line.encode("utf-8") + b"\n")


def named(identity: str, conversation: str, known: Held | None) -> Held | None:
    """The session a conversation goes on in; None for one that is yet to begin.

    An identity with a colon is our own name for a conversation that has no session yet; anything else is the session's.
    """
    if known is not None and known.conversation == conversation:
        return known
    if identity and ":" not in identity:
        return Held(conversation, identity, confirmed=True)
    return None
