"""How the supervisor stands, in one word.

The lease row and the process table say it together; neither alone is believed. `tenuto status` asks nothing else of
the engine, so this imports nothing else of it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from tenuto.model.evidence import Presence

if TYPE_CHECKING:
    from tenuto.model.leadership import Leadership


class Standing(StrEnum):
    """What the lease row and the process table together say of the supervisor."""

    MISSING = "missing"
    LIVE = "live"
    FRESH_DEAD = "fresh-dead"
    STOP_FENCED = "stop-fenced"
    STALE_ALIVE = "stale-alive"
    STALE_DEAD = "stale-dead"


def standing(lease: Leadership | None, presence: Presence, now: datetime) -> Standing:
    """The status word. `presence` is that of the holder's process: pid, start time and boot id together."""
    if lease is None or lease.released_at is not None:
        return Standing.MISSING
    fresh = lease.expires_at > now
    if presence is Presence.GONE:
        return Standing.FRESH_DEAD if fresh else Standing.STALE_DEAD
    if lease.stop_asked_at is not None:
        return Standing.STOP_FENCED
    return Standing.LIVE if fresh else Standing.STALE_ALIVE
