"""How often somebody may ask: a leaky bucket for each, and a bound on how many are kept.

A bucket that is full says how long to wait. Whoever was not heard of for long is forgotten, which lets in nobody who
would have been kept out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

KEPT = 4096


@dataclass(frozen=True)
class Rate:
    """How many a second leak out, and how many may come at once."""

    a_second: float
    at_once: float


#: What each kind of caller may do; a failed authentication is counted for the peer it came from.
OPERATORS = Rate(2000, 4000)
OTHERS = Rate(100, 400)
FAILURES = Rate(1, 20)


class Buckets:
    """Leaky buckets of one rate. `clock` is seconds that never go back."""

    def __init__(self, rate: Rate, clock: Callable[[], float], *, kept: int = KEPT) -> None:
        self._rate = rate
        self._clock = clock
        self._kept = kept
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def pour(self, key: Hashable) -> float:
        """Count one; 0.0 when it fits, else the seconds until it would: then it is not counted."""
        now = self._clock()
        level, at = self._levels.get(key, (0.0, now))
        level = max(level - (now - at) * self._rate.a_second, 0.0)
        if level + 1 > self._rate.at_once:
            self._put(key, level, now)
            return (level + 1 - self._rate.at_once) / self._rate.a_second
        self._put(key, level + 1, now)
        return 0.0

    def _put(self, key: Hashable, level: float, now: float) -> None:
        self._levels[key] = (level, now)
        self._levels.move_to_end(key)
        while len(self._levels) > self._kept:
            self._levels.popitem(last=False)
