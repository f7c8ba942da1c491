"""Time that passes only when nobody has anything to do.

An event loop whose clock jumps to the next thing that is waited for, and a wall clock that is that time and whatever
it was set wrong by. Nothing here looks at the time of the machine it runs on, so the same seed takes the same steps.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

BEGINNING = datetime(2026, 3, 1, tzinfo=UTC)


class Standstill(Exception):
    """Nobody waits for anything any more, and the world has not come to its end."""


class _Nothing(selectors.SelectSelector):
    """Selects nothing: the time that was to be waited for is over at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Standstill("nothing is waited for")
        self.now += max(timeout, 0.0)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return super().get_map()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits."""

    def __init__(self) -> None:
        self._virtual = _Nothing()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Seconds since the world began."""
        return self._virtual.now


class VirtualClock:
    """Implements `ports.Clock`: the loop's time, shown by a wall clock that can be set wrong."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.wrong_by = timedelta(0)
        self._shown: tuple[float, timedelta, datetime] = (0.0, timedelta(0), BEGINNING)

    def now(self) -> datetime:
        """What the wall clock shows; asked many times in one moment, and made once."""
        time, wrong_by = self._loop.time(), self.wrong_by
        if self._shown[0] != time or self._shown[1] is not wrong_by:
            self._shown = (time, wrong_by, BEGINNING + timedelta(seconds=time) + wrong_by)
        return self._shown[2]

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._loop.time()
