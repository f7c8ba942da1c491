"""When pages were seen to change, and to grow while they generated: what can be told of their traffic from outside.

Fed with digests as they come by, asked for or not; it looks at nothing itself and holds no word of a page. That a page
says it generates is no traffic; that it grew is. The first look at a page shows no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

KEPT: Final = 4096
"""Of how many pages it is remembered."""


@dataclass(frozen=True)
class Stirred:
    """When a page was first seen to differ from before, and when it was last seen to have grown; None: never."""

    changed_at: datetime | None = None
    grew_at: datetime | None = None


@dataclass(frozen=True)
class _Last:
    digest: str
    generating: bool
    seen_at: datetime
    stirred: Stirred


class Stirring:
    """The pages of one executor, by the addresses that it names them by."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}

    def seen(self, subject: str, digest: object, generating: object, at: datetime) -> None:
        """Take what was seen of a page; what came late, and what has no digest, says nothing."""
        if not isinstance(digest, str) or not digest:
            return
        before, now = self._last.pop(subject, None), generating == "yes"
        stirred = Stirred()
        if before is not None:
            if at < before.seen_at:
                self._last[subject] = before
                return
            stirred = before.stirred
            if digest != before.digest:
                grew = now or before.generating
                stirred = Stirred(at, at if grew else stirred.grew_at)
        self._last[subject] = _Last(digest[:200], now, at, stirred)
        while len(self._last) > KEPT:
            del self._last[next(iter(self._last))]

    def of(self, subject: str) -> Stirred:
        """What is remembered of a page; nothing of one that nobody saw."""
        found = self._last.get(subject)
        return found.stirred if found is not None else Stirred()
