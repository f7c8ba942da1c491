"""What one look at a task's working directory found.

Values only: this module decides how facts become a cursor, and refuses to guess. A fact that
could not be read is None, with the reason beside it, and unknown never equals unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

PATH_LIMIT: Final = 10_000
"""More differing (or, outside git, existing) files than this are not digested: unknown."""


class Kind(StrEnum):
    """What stands at the path a task works in."""

    GIT = "git"
    PLAIN = "plain"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Facts about one working directory, as of one look.

    ``head`` is a full commit id, None before the first commit or when it could not be read.
    ``branch`` is a short name, None when detached. ``dirty`` is a sha256 over the content of
    everything that differs from HEAD. ``cursor`` is a sha256 that changes exactly when durable
    work changed; None means unknown, which neither counts as progress nor as its absence.
    ``lock_since`` is when somebody's ``index.lock`` was last written (aware, UTC).
    ``reason`` is a sentence, empty when nothing is in doubt. ``ahead`` and ``behind`` count commits that only the
    branch, and only what it follows, has (at most 1,000 in all; None: it follows nothing). ``worktrees`` is how many
    others share the repository.
    """

    kind: Kind
    head: str | None = None
    branch: str | None = None
    dirty: str | None = None
    cursor: str | None = None
    lock_since: datetime | None = None
    reason: str = ""
    ahead: int | None = None
    behind: int | None = None
    worktrees: int = 0

    def lock_age(self, now: datetime) -> timedelta | None:
        """How long the index has been locked by somebody; never negative; None when it is free."""
        if self.lock_since is None:
            return None
        return max(now - self.lock_since, timedelta(0))


def digest(parts: Iterable[bytes]) -> str:
    """Sha256 hex of a sequence of byte strings, each framed by its length so that none can imitate two."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big"))
        total.update(part)
    return total.hexdigest()


def git_cursor(head: str | None, dirty: str | None) -> str | None:
    """The cursor of a repository: HEAD and what differs from it; None when the latter is unknown."""
    if dirty is None:
        return None
    return digest((b"git", (head or "").encode(), dirty.encode()))
