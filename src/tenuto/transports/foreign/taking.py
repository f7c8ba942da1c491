"""Values out of a foreign row: of the right sort and size, or not at all.

States are words of a list; one that is not in it is not interpreted. A directory is an absolute path that is there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

OBJECTIVE_LIMIT: Final = 256 * 1024
NAME_LIMIT: Final = 200
PLACE_LIMIT: Final = 500
SESSION: Final = re.compile(r"s_[0-9a-f]{24}")

#: Words for work that has not ended and of which nothing is under way that may have been sent.
OPEN: Final = frozenset(
    {
        "new", "created", "queued", "pending", "todo", "open", "ready", "idle", "waiting", "blocked",
        "needs_human", "paused", "parked", "running", "active", "working", "in_progress", "started", "starting",
        "suspect", "reconciling", "recovering",
    }
)  # fmt: skip
#: Words for work that has ended.
OVER: Final = frozenset(
    {
        "complete", "completed", "done", "finished", "closed", "merged", "succeeded", "success", "failed",
        "cancelled", "canceled", "archived", "deleted",
    }
)  # fmt: skip
#: Words that say that something may have been done and nobody knows.
DOUBTFUL: Final = frozenset(
    {
        "armed", "submitted", "sending", "dispatching", "dispatched", "ambiguous", "unknown",
        "reconcile_required", "in_doubt", "abandoned", "lost",
    }
)  # fmt: skip


def text(value: object, limit: int) -> str | None:
    """A text that is not empty, not longer than `limit` bytes, and holds no NUL."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return None
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return None
    return value if size <= limit else None


def name(value: object) -> str | None:
    """What a source calls something: a short text on one line, or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    told = text(value, NAME_LIMIT)
    return None if told is None or any(ord(one) < 32 for one in told) else told.strip()


def word(value: object) -> str | None:
    """A state, as one lower-case word."""
    told = text(value, 60)
    return None if told is None else re.sub(r"[\s-]+", "_", told.strip().lower())


def directory(value: object) -> tuple[str | None, str | None]:
    """An absolute directory that is there, or why it is none."""
    told = text(value, 4096)
    if told is None:
        return None, "it names no directory"
    path = Path(told)
    if not path.is_absolute():
        return None, f"its directory is not an absolute path: {told[:100]}"
    try:
        there = path.is_dir()
    except OSError:
        there = False
    return (str(path), None) if there else (None, f"its directory is not there: {told[:200]}")


def moment(value: object) -> datetime | None:
    """A moment, as seconds since 1970, milliseconds where it is too large for these, or ISO 8601 with an offset."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float) and math.isfinite(value):
        seconds = value / 1000 if value > 32_503_680_000 else value
        return datetime.fromtimestamp(seconds, UTC) if 946_684_800 <= seconds <= 32_503_680_000 else None
    if isinstance(value, str):
        try:
            told = datetime.fromisoformat(value)
        except ValueError:
            return None
        return told.astimezone(UTC) if told.tzinfo is not None else None
    return None


def mapping(value: object) -> Mapping[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}
