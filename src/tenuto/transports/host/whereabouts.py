"""Where an executor's journals are: which machine, which directory, and which life of that directory.

A command remembers the place it was armed for. What became of it can be told on that machine alone, because only
there its processes can be seen, and from that very directory alone, because only there its host would have claimed
it. A directory that was emptied and made again is another life, and knows nothing of what was before it.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tenuto.transports.host import claim

RECORD: Final = "incarnation"
LIMIT: Final = 64
_SHAPE: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Place:
    """One life of one journal directory on one host. Said as `HOST:INCARNATION:DIRECTORY`."""

    host: str
    incarnation: str
    folder: str

    def __str__(self) -> str:
        return f"{self.host}:{self.incarnation}:{self.folder}"

    @property
    def there(self) -> bool:
        """Whether the directory is still the one that is meant; only on its own host this means anything."""
        return incarnation_of(Path(self.folder)) == self.incarnation


def place_of(text: str) -> Place | None:
    """The place that a command remembers; None for what names none."""
    host, _, rest = text.partition(":")
    incarnation, _, folder = rest.partition(":")
    return Place(host, incarnation, folder) if host and _SHAPE.fullmatch(incarnation) and folder else None


def incarnation_of(folder: Path) -> str | None:
    """Which life of this directory it is; None where that is not written, or cannot be read."""
    try:
        descriptor = os.open(folder / RECORD, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        held = os.read(descriptor, LIMIT).decode("ascii", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return held if _SHAPE.fullmatch(held) else None


def settle_in(folder: Path) -> str:
    """The life of this directory, which begins now where none is written; OSError when the disk refuses."""
    found = incarnation_of(folder)
    if found is not None:
        return found
    made = secrets.token_hex(8)
    claim.replace(str(folder), RECORD, made.encode("ascii") + b"\n")
    return made
