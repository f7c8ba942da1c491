"""Which writes may still be on their way: what was sent and never answered is not sent again for a while.

GitHub gives a request up after ten seconds. A marker that this process does not remember may have been sent by the one
before it, so the first while after a start counts as doubtful too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

#: Seconds after which nothing that was sent can still come true.
SETTLED = 15.0
MOST = 1000


class Doubts:
    """Remembers, for one process, since when a marker is in doubt. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float], settled: float = SETTLED) -> None:
        self._clock = clock
        self._settled = settled
        self._born = clock()
        self._since: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, marker: str) -> None:
        """Something with this marker was sent now, and nothing was heard."""
        with self._lock:
            self._since[marker] = self._clock()
            while len(self._since) > MOST:
                del self._since[next(iter(self._since))]

    def wait(self, marker: str) -> float:
        """Seconds until it may be written again; 0 where nothing of it can be on its way."""
        with self._lock:
            since = max(self._since.get(marker, self._born), self._born)
        return max(0.0, since + self._settled - self._clock())
