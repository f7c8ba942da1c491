"""The clock of an agent's host, which is a program of its own."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class HostClock:
    """Implements `ports.Clock`."""

    def now(self) -> datetime:
        """This instant, aware, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the host is a program of its own, and this is its clock

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
