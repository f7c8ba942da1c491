"""Time, identity and processes as they really are.

The only place where a clock is read or chance is asked for; everything else is given them.
"""

from __future__ import annotations

import secrets
import socket
import time
from datetime import UTC, datetime

from tenuto.model.evidence import Presence
from tenuto.model.ids import spelled
from tenuto.model.leadership import Leadership
from tenuto.transports import processes


class SystemClock:
    """Implements `ports.Clock`."""

    def now(self) -> datetime:
        """This instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back, those of sleep among them where the platform counts them."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class RandomMinter:
    """Implements `ports.Minter`: time-ordered identifiers, and secrets of 256 bits."""

    def new(self, kind: str) -> str:
        """A fresh identifier of a kind."""
        import uuid_utils  # a compiled library that quick commands can do without

        return spelled(kind, uuid_utils.uuid7().int)

    def secret(self) -> str:
        """A fresh bearer token."""
        return secrets.token_urlsafe(32)


def host_name() -> str:
    """What this machine calls itself."""
    return socket.gethostname()


def holder_presence(lease: Leadership, machine: str | None = None) -> Presence:
    """Whether the process that holds a lease is there; only on this machine (as it is called) can that be judged."""
    if lease.host != (machine or host_name()):
        return Presence.UNKNOWN
    if not lease.started.isdecimal():
        return Presence.UNKNOWN
    return processes.presence(processes.Identity(lease.pid, int(lease.started), lease.boot_id))
