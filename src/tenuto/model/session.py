"""A session of an agent program as its own records on the disk tell of it. Names and moments, never words of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class SessionFacts:
    """One session: whose it is, what it is called, where it works, and when something was last written of it.

    `running` is the process it is open in now, None where that is none that is known. `newer` is a session that was
    begun or gone on with later in the same directory.
    """

    adapter: str
    session: str
    cwd: str
    changed_at: datetime
    running: int | None = None
    newer: str | None = None
