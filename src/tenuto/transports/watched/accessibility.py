"""The witness of accessibility trees: what the one window that shows an address says of it.

Several windows that show the address are refused unless one is named, and a window that is named and shows something
else now is not looked at further. That nothing shows it is a state; that nobody could be asked is a flaw.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from tenuto.model.evidence import Observation, Rank
from tenuto.model.faults import Mistake
from tenuto.model.tools import Defect, Flaw, PageName, ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.ports import Clock
from tenuto.transports.stirring import Stirring
from tenuto.transports.watched.trees import NODES, NotLooked, Trees, Window, judged

SOURCE: Final = "accessibility"

ProfileOf = Callable[[str], Mapping[str, Any] | None]
"""The compiled profile of the site that an address is of; None for an address of no known site."""


def bare(url: str) -> str:
    """An address as addresses are compared: without its fragment, and without a slash at its end."""
    return url.partition("#")[0].rstrip("/")


def chosen(binding: ToolBinding, page: PageName, among: Sequence[tuple[str, str]]) -> str | WatchedFacts:
    """The one window (its id) of these (ids and addresses) that is meant, or what is to be said where none is."""
    fitting = [name for name, url in among if bare(url) == bare(page.url)]
    if page.window is not None:
        fitting = [name for name in fitting if name == page.window]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        return WatchedFacts(binding, shown=False)
    why = f"{len(fitting)} windows show it: name one of {', '.join(fitting[:8])} with --window"
    return WatchedFacts(binding, shown=True, defects=(Defect(Flaw.DUPLICATED, why),))


class AccessibilityWitness:
    """Implements `ports.PageWitness`. `timeout` bounds each look."""

    def __init__(
        self, name: str, trees: Trees, clock: Clock, profile_of: ProfileOf, timeout: timedelta = timedelta(seconds=15)
    ) -> None:
        self._name = name
        self._trees = trees
        self._clock = clock
        self._profile_of = profile_of
        self._timeout = timeout
        self._stirring = Stirring()
        self._one = threading.Lock()

    async def look(self, binding: ToolBinding) -> Observation:
        """WatchedFacts of one page."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                facts = await asyncio.to_thread(self._looked, binding)
        except TimeoutError:
            facts = _unseen(binding, "looking took too long")
        return Observation(SOURCE, Rank.OUTSIDE, binding.subject, self._clock.now(), facts)

    async def shown(self) -> tuple[ShownPage, ...]:
        """Every page that a window shows now."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                windows = await asyncio.to_thread(self._windows)
        except NotLooked as why:
            raise Mistake(f"{why}{f'; {why.mend}' if why.mend else ''}", field="page_witnesses") from None
        except TimeoutError:
            raise Mistake("looking took too long", field="page_witnesses") from None
        return tuple(ShownPage(self._name, each.id, each.url[:500], each.program, each.pid) for each in windows)

    def _windows(self) -> Sequence[Window]:
        with self._one:
            return self._trees.windows()

    def _looked(self, binding: ToolBinding) -> WatchedFacts:
        page = binding.page
        if page is None:
            return _unseen(binding, "that names no page")
        with self._one:
            try:
                windows = {window.id: window for window in self._trees.windows()}
                found = chosen(binding, page, [(each.id, each.url) for each in windows.values()])
                if isinstance(found, WatchedFacts):
                    return found
                nodes, whole = self._trees.nodes(windows[found], NODES)
            except NotLooked as why:
                return _unseen(binding, f"{why}{f'; {why.mend}' if why.mend else ''}")
        told = judged(nodes, whole, self._profile_of(page.url))
        self._stirring.seen(binding.subject, told.digest, "yes" if told.generating else "no", self._clock.now())
        changed = self._stirring.of(binding.subject).changed_at
        return WatchedFacts(binding, True, found, told.generating, told.send_ready, changed_at=changed)


def _unseen(binding: ToolBinding, why: str) -> WatchedFacts:
    return WatchedFacts(binding, shown=None, defects=(Defect(Flaw.UNREADABLE, why[:300]),))
