"""The witness of a browser's DevTools: the one tab that shows an address, and what is under way on its lines.

A tab is listened to from the first look on: requests, streams of events and sockets by their beginnings and ends, and
that something came in. What came, of which type it was sent and under which headers, is dropped as it arrives; what is
under way is unknown until the document that is shown was seen to be asked for. Where a profile of the site is known,
the sensor that the extension uses is asked in a world of its own. Nothing is clicked, typed, stopped or fetched; the
browser is one of this machine that listens already.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import CloseCode

from tenuto.model.evidence import Observation, Rank
from tenuto.model.faults import Mistake
from tenuto.model.tools import Defect, Flaw, ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.ports import Clock
from tenuto.transports import glimpse
from tenuto.transports.watched.accessibility import ProfileOf, chosen, unseen
from tenuto.transports.watched.lines import Lines

SOURCE: Final = "devtools"
ANSWER: Final = 10.0
"""Seconds in which a tab answers."""

TABS: Final = 16
"""How many tabs are listened to at once; the one that was looked at longest ago is let go."""

SIZE: Final = 8 * 1024 * 1024
"""The most bytes of one event; a tab that tells of more at once cannot be read."""

WAITING: Final = 8
"""The most events of a tab that wait to be taken."""

FOUND: Final = frozenset({"ready", "draft", "generating", "approval", "dialog", "error", "limit"})
"""States of a page in which the sensor knows whether it generates."""


class Tab:
    """One tab that is listened to."""

    def __init__(self, line: ClientConnection, clock: Clock) -> None:
        self._line = line
        self._clock = clock
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.lines = Lines()
        self.heard_at: datetime | None = None
        self.crashed = False
        self.flooded = False
        self._digest: str | None = None
        self.changed_at: datetime | None = None
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @property
    def gone(self) -> bool:
        """Whether nothing is heard of it any more."""
        return self._listening.done()

    async def begin(self) -> None:
        """Have the tab tell of its lines from now on; it is to keep no body for us."""
        kept = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}
        await self.call("Network.enable", **kept)
        await self.call("Inspector.enable")

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command. Raises TimeoutError, OSError or WebSocketException; KeyError where the tab refuses."""
        if self.gone:
            raise ConnectionResetError("the tab is gone")
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._line.send(json.dumps({"id": number, "method": method, "params": parameters}))
            async with asyncio.timeout(ANSWER):
                told = await answer
        finally:
            self._asked.pop(number, None)
        result: dict[str, Any] = told["result"]
        return result

    async def document(self) -> str:
        """The frame of the document that is shown now, whose lines are told from those of others by it; as `call`."""
        shown = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]
        frame = str(shown["id"])
        self.lines.shows(str(shown.get("loaderId", "")), frame)
        return frame

    def forget(self, now: datetime) -> None:
        """Forget what happened at a moment that has not come yet: the clock went back."""
        self.heard_at = None if self.heard_at is not None and self.heard_at > now else self.heard_at
        self.changed_at = None if self.changed_at is not None and self.changed_at > now else self.changed_at

    async def look(self, frame: str, profile: Mapping[str, Any], modules: Path) -> dict[str, Any]:
        """What the sensor sees, in a world of its own; as `call`, and ValueError for what is no answer of it."""
        world = await self.call("Page.createIsolatedWorld", frameId=frame, worldName="tenuto")
        asked = f"({glimpse.script(modules)})({json.dumps(profile)}, null, null)"
        context = world["executionContextId"]
        result = await self.call("Runtime.evaluate", expression=asked, contextId=context, returnByValue=True)
        facts: dict[str, Any] = json.loads(result["result"]["value"])
        digest = facts.get("digest")
        if isinstance(digest, str) and digest != self._digest:
            self.changed_at = self._clock.now() if self._digest is not None else None
            self._digest = digest
        return facts

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        with contextlib.suppress(OSError, WebSocketException, TimeoutError):
            await self._line.close()

    async def _listen(self) -> None:
        """Take whatever comes. However that ends, whoever waits for an answer hears of it."""
        try:
            async for message in self._line:
                told = json.loads(message)
                if not isinstance(told, dict):
                    continue
                if "id" in told:
                    number = told["id"]
                    waiting = self._asked.get(number) if isinstance(number, int) else None
                    if waiting is not None and not waiting.done():
                        waiting.set_result(told)
                    continue
                given = told.get("params")
                self._take(str(told.get("method")), given if isinstance(given, dict) else {})
        except ConnectionClosed as end:
            self.flooded = end.sent is not None and end.sent.code == CloseCode.MESSAGE_TOO_BIG
        except (OSError, WebSocketException, ValueError, RecursionError):
            pass  # it is gone, and the next look begins anew
        finally:
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionResetError("the tab is gone"))

    def _take(self, event: str, told: Mapping[str, Any]) -> None:
        """One event: that a line began, ended or brought something, or that the tab crashed."""
        if self.lines.take(event, told):
            self.heard_at = self._clock.now()
        if event in ("Inspector.targetCrashed", "Inspector.targetReloadedAfterCrash"):
            self.crashed = event == "Inspector.targetCrashed"


class _Straight(connect):
    """A line to this machine that goes nowhere else, whatever it is told there."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


@dataclass(eq=False)
class _Held:
    """A tab as it is held: one look at a time, and let go once nobody has looked for a while."""

    one: asyncio.Lock = field(default_factory=asyncio.Lock)
    looks: int = 0
    tab: Tab | None = None
    leaving: asyncio.TimerHandle | None = None


class DevToolsWitness:
    """Implements `ports.PageWitness` for the browser whose DevTools listen at `where` on this machine.

    `timeout` bounds each look; a tab that nobody looked at for as long as `kept` is let go.
    """

    def __init__(
        self,
        name: str,
        where: str,
        clock: Clock,
        profile_of: ProfileOf,
        modules: Path,
        timeout: timedelta = timedelta(seconds=20),
        kept: timedelta = timedelta(minutes=5),
    ) -> None:
        self._name = name
        self._where = where
        self._clock = clock
        self._profile_of = profile_of
        self._modules = modules
        self._timeout = timeout
        self._kept = kept
        self._tabs: dict[str, _Held] = {}  # the one looked at longest ago first; it is changed between two awaits only
        self._closing: set[asyncio.Task[None]] = set()
        self._thread = ThreadPoolExecutor(1, "tenuto-tabs")  # of its own: who waits here keeps nobody else waiting

    async def look(self, binding: ToolBinding) -> Observation:
        """WatchedFacts of one page, dated by when looking began: what is told may be as old as that."""
        began = self._clock.now()
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                facts = await self._looked(binding)
        except Mistake as mistake:
            facts = unseen(binding, mistake.message)
        except Exception as fault:  # noqa: BLE001 - whatever a browser answers that is none of one: a flaw
            facts = unseen(binding, f"the tab does not answer: {type(fault).__name__}")
        return Observation(SOURCE, Rank.OUTSIDE, binding.subject, began, facts)

    async def shown(self) -> tuple[ShownPage, ...]:
        """Every tab of the browser."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                tabs = await self._listed()
        except TimeoutError:
            raise Mistake("looking took too long", field="page_witnesses") from None
        return tuple(ShownPage(self._name, tab["id"], tab["url"][:500]) for tab in tabs)

    async def close(self) -> None:
        """Let every tab go."""
        for name in list(self._tabs):
            self._let_go(name, self._tabs[name])
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _listed(self) -> list[dict[str, str]]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, glimpse.listed, self._where)

    async def _looked(self, binding: ToolBinding) -> WatchedFacts:
        page = binding.page
        if page is None:
            return unseen(binding, "that names no page")
        tabs = await self._listed()
        place = chosen(binding, page, [(tab["id"], tab["url"]) for tab in tabs])
        if isinstance(place, WatchedFacts):
            return place
        name = tabs[place]["id"]
        held = self._tabs[name] = self._tabs.pop(name) if name in self._tabs else _Held()
        held.looks += 1
        try:
            self._make_room()
            async with held.one:
                return await self._seen(binding, held, name, self._profile_of(page.url))
        finally:
            held.looks -= 1
            if held.leaving is not None:
                held.leaving.cancel()
            after = self._kept.total_seconds()
            held.leaving = asyncio.get_running_loop().call_later(after, self._unless_looked_at, name, held)

    async def _seen(
        self, binding: ToolBinding, held: _Held, name: str, profile: Mapping[str, Any] | None
    ) -> WatchedFacts:
        tab = await self._tab(held, name)
        if tab is None:
            why = "its tab told of more at once than is taken"
            return WatchedFacts(binding, True, name, defects=(Defect(Flaw.UNREADABLE, why),))
        if tab.crashed:
            return WatchedFacts(binding, True, name, defects=(Defect(Flaw.UNREADABLE, "its tab has crashed"),))
        generating = ready = None
        tab.forget(self._clock.now())
        frame = await tab.document()
        if profile is not None:
            facts = await tab.look(frame, profile, self._modules)
            state, told = facts.get("state"), facts.get("generating")
            if told == "yes":  # believed wherever it is seen; that it does not, only where the sensor knows
                generating, ready = True, False
            elif told == "no" and state in FOUND:
                generating, ready = False, state == "ready"
        return WatchedFacts(
            binding=binding,
            shown=True,
            window=name,
            generating=generating,
            send_ready=ready,
            requests=tab.lines.requests,
            streams=tab.lines.streams,
            changed_at=tab.changed_at,
            heard_at=tab.heard_at,
        )

    async def _tab(self, held: _Held, name: str) -> Tab | None:
        """The tab, listened to; from now on where it was not before. None, once, for one that told too much."""
        known, held.tab = held.tab, None
        if known is not None and known.gone:
            await known.close()
            if known.flooded:
                return None
            known = None
        if known is None:
            line = await _Straight(
                glimpse.line_of(self._where, name),
                proxy=None,
                max_size=SIZE,
                max_queue=WAITING,
                open_timeout=ANSWER,
                close_timeout=1,
                origin=None,
            )
            known = Tab(line, self._clock)
            try:
                await known.begin()
            except BaseException:
                self._end(known)
                raise
        held.tab = known
        return known

    def _make_room(self) -> None:
        for name, held in list(self._tabs.items())[: max(len(self._tabs) - TABS, 0)]:
            self._unless_looked_at(name, held)

    def _unless_looked_at(self, name: str, held: _Held) -> None:
        if not held.looks:
            self._let_go(name, held)

    def _let_go(self, name: str, held: _Held) -> None:
        if self._tabs.get(name) is held:
            del self._tabs[name]
        if held.leaving is not None:
            held.leaving.cancel()
        tab, held.tab = held.tab, None
        if tab is not None:
            self._end(tab)

    def _end(self, tab: Tab) -> None:
        """Let a tab go while nobody waits for that."""
        task = asyncio.get_running_loop().create_task(tab.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
