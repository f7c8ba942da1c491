"""The witness of accessibility trees: what the one window that shows an address says of it.

Several windows that show the address are refused unless one is named, and a window that is named and shows something
else now is not looked at further. That nothing shows it is a state; that nobody could be asked is a flaw.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from tenuto.model.evidence import Observation, Rank
from tenuto.model.faults import Mistake
from tenuto.model.tools import Defect, Flaw, PageName, ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.ports import Clock
from tenuto.transports.addresses import bare
from tenuto.transports.stirring import Stirring
from tenuto.transports.watched.trees import NODES, NotLooked, Trees, judged

SOURCE: Final = "accessibility"

_T = TypeVar("_T")

ProfileOf = Callable[[str], Mapping[str, Any] | None]
"""The compiled profile of the site that an address is of; None for an address of no known site."""


def chosen(
    binding: ToolBinding, page: PageName, among: Sequence[tuple[str, str]], whole: bool = True
) -> int | WatchedFacts:
    """Which of these (ids and addresses) is the one that is meant, by its place, or what is to be said where none is.

    Where these are not all, that none of them shows it does not say that nothing does.
    """
    fitting = [place for place, (_, url) in enumerate(among) if bare(url) == bare(page.url)]
    if page.window is not None:
        fitting = [place for place in fitting if among[place][0] == page.window]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        return WatchedFacts(binding, shown=False) if whole else unseen(binding, "not every window tells what it shows")
    names = ", ".join(among[place][0] for place in fitting[:8])
    why = f"{len(fitting)} windows show it: name one of {names} with --window"
    return WatchedFacts(binding, shown=True, defects=(Defect(Flaw.DUPLICATED, why),))


def unseen(binding: ToolBinding, why: str) -> WatchedFacts:
    """What is said of a page that could not be looked at."""
    return WatchedFacts(binding, shown=None, defects=(Defect(Flaw.UNREADABLE, why[:300]),))


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
        self._last = datetime.min.replace(tzinfo=UTC)
        self._one = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "tenuto-trees")  # of its own: who waits here keeps nobody else waiting

    async def look(self, binding: ToolBinding) -> Observation:
        """WatchedFacts of one page, dated by when looking began: what is told may be as old as that."""
        began = self._clock.now()
        try:
            facts = await self._asked(lambda: self._looked(binding))
        except TimeoutError:
            facts = unseen(binding, "looking took too long")
        except NotLooked as why:
            facts = unseen(binding, _said(why))
        except Mistake as mistake:
            facts = unseen(binding, mistake.message)
        except Exception as fault:  # noqa: BLE001 - a program told what no tree holds: a flaw
            facts = unseen(binding, f"the window cannot be read: {type(fault).__name__}")
        return Observation(SOURCE, Rank.OUTSIDE, binding.subject, began, facts)

    async def shown(self) -> tuple[ShownPage, ...]:
        """Every page that a window shows now."""
        try:
            windows, _ = await self._asked(self._trees.windows)
        except NotLooked as why:
            raise Mistake(_said(why), field="page_witnesses") from None
        except TimeoutError:
            raise Mistake("looking took too long", field="page_witnesses") from None
        except Exception as fault:  # noqa: BLE001 - as above
            raise Mistake(f"the windows cannot be read: {type(fault).__name__}", field="page_witnesses") from None
        return tuple(ShownPage(self._name, each.id, each.url[:500], each.program, each.pid) for each in windows)

    async def _asked(self, what: Callable[[], _T]) -> _T:
        """One question to the trees, after those before it; the time counts from here."""
        async with asyncio.timeout(self._timeout.total_seconds()), self._one:
            return await asyncio.get_running_loop().run_in_executor(self._thread, what)

    def _looked(self, binding: ToolBinding) -> WatchedFacts:
        page = binding.page
        if page is None:
            return unseen(binding, "that names no page")
        windows, whole = self._trees.windows()
        found = chosen(binding, page, [(each.id, each.url) for each in windows], whole)
        if isinstance(found, WatchedFacts):
            return found
        nodes, seen_whole = self._trees.nodes(windows[found], NODES)
        told = judged(nodes, seen_whole, self._profile_of(page.url))
        now = self._clock.now()
        if now < self._last:  # the clock went back: what is remembered would be taken for something to come
            self._stirring = Stirring()
        self._last = now
        self._stirring.seen(binding.subject, told.digest, "yes" if told.generating else "no", now)
        changed = self._stirring.of(binding.subject).changed_at
        name = windows[found].id
        return WatchedFacts(binding, True, name, told.generating, told.send_ready, changed_at=changed)


def _said(why: NotLooked) -> str:
    return f"{why}{f'; {why.mend}' if why.mend else ''}"
