"""The witness of a browser's DevTools: the one tab that shows an address, and what is under way on its lines.

A tab is listened to from the first look on: requests, streams of events and sockets by their beginnings and ends, and
that something came in. What came, of which type it was sent and under which headers, is dropped as it arrives. Where a
profile of the site is known, the sensor that the extension uses is asked in a world of its own. Nothing is clicked,
typed, stopped or fetched; the browser is one of this machine that listens already.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tenuto.model.evidence import Observation, Rank
from tenuto.model.faults import Mistake
from tenuto.model.tools import Defect, Flaw, ToolBinding
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.ports import Clock
from tenuto.transports import glimpse
from tenuto.transports.watched.accessibility import ProfileOf, chosen, unseen

SOURCE: Final = "devtools"
ANSWER: Final = 10.0
"""Seconds in which a tab answers."""

TABS: Final = 16
"""How many tabs are listened to at once; the one that was looked at longest ago is let go."""

LINES: Final = 2000
"""The most requests of a tab that are remembered as under way."""

SIZE: Final = 64 * 1024 * 1024
STREAMS: Final = frozenset({"EventSource", "WebSocket"})
FOUND: Final = frozenset({"ready", "draft", "generating", "approval", "dialog", "error", "limit"})
"""States of a page in which the sensor knows whether it generates."""


class Tab:
    """One tab that is listened to."""

    def __init__(self, line: ClientConnection, clock: Clock) -> None:
        self._line = line
        self._clock = clock
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._open: dict[str, str] = {}
        self.heard_at: datetime | None = None
        self.crashed = False
        self._digest: str | None = None
        self.changed_at: datetime | None = None
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @property
    def gone(self) -> bool:
        """Whether nothing is heard of it any more."""
        return self._listening.done()

    @property
    def requests(self) -> int:
        return len(self._open)

    @property
    def streams(self) -> int:
        return sum(sort in STREAMS for sort in self._open.values())

    async def begin(self) -> None:
        """Have the tab tell of its lines from now on; it is to keep no body for us."""
        kept = {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}
        await self.call("Network.enable", **kept)
        await self.call("Inspector.enable")

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command. Raises TimeoutError, OSError or WebSocketException; KeyError where the tab refuses."""
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

    async def look(self, profile: Mapping[str, Any], modules: Path) -> dict[str, Any]:
        """What the sensor sees, in a world of its own; as `call`, and ValueError for what is no answer of it."""
        frame = (await self.call("Page.getFrameTree"))["frameTree"]["frame"]["id"]
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
        with contextlib.suppress(asyncio.CancelledError, OSError, WebSocketException):
            await self._listening
        with contextlib.suppress(OSError, WebSocketException, TimeoutError):
            await self._line.close()

    async def _listen(self) -> None:
        with contextlib.suppress(OSError, WebSocketException):
            async for message in self._line:
                told = json.loads(message)
                if "id" in told:
                    if (waiting := self._asked.get(told["id"])) is not None and not waiting.done():
                        waiting.set_result(told)
                    continue
                self._take(str(told.get("method")), told.get("params") or {})
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("the tab is gone"))

    def _take(self, event: str, told: Mapping[str, Any]) -> None:
        """One event: that a line began, ended or brought something. Nothing else of it is looked at."""
        line = str(told.get("requestId", ""))[:100]
        match event:
            case "Network.requestWillBeSent" if len(self._open) < LINES:
                self._open[line] = str(told.get("type", ""))[:20]
            case "Network.webSocketCreated" if len(self._open) < LINES:
                self._open[line] = "WebSocket"
            case "Network.responseReceived" if line in self._open:
                self._open[line] = str(told.get("type", ""))[:20]
                self.heard_at = self._clock.now()
            case "Network.dataReceived" | "Network.eventSourceMessageReceived" | "Network.webSocketFrameReceived":
                self.heard_at = self._clock.now()
            case "Network.loadingFinished" | "Network.loadingFailed" | "Network.webSocketClosed":
                self._open.pop(line, None)
            case "Inspector.targetCrashed":
                self.crashed = True
                self._open.clear()
            case "Inspector.targetReloadedAfterCrash":
                self.crashed = False
            case _:
                pass


class DevToolsWitness:
    """Implements `ports.PageWitness` for the browser whose DevTools listen at `where` on this machine."""

    def __init__(
        self,
        name: str,
        where: str,
        clock: Clock,
        profile_of: ProfileOf,
        modules: Path,
        timeout: timedelta = timedelta(seconds=20),
    ) -> None:
        self._name = name
        self._where = where
        self._clock = clock
        self._profile_of = profile_of
        self._modules = modules
        self._timeout = timeout
        self._tabs: dict[str, Tab] = {}
        self._one = asyncio.Lock()

    async def look(self, binding: ToolBinding) -> Observation:
        """WatchedFacts of one page."""
        try:
            async with asyncio.timeout(self._timeout.total_seconds()), self._one:
                facts = await self._looked(binding)
        except Mistake as mistake:
            facts = unseen(binding, mistake.message)
        except (TimeoutError, OSError, WebSocketException, KeyError, TypeError, ValueError) as fault:
            facts = unseen(binding, f"the tab does not answer: {type(fault).__name__}")
        return Observation(SOURCE, Rank.OUTSIDE, binding.subject, self._clock.now(), facts)

    async def shown(self) -> tuple[ShownPage, ...]:
        """Every tab of the browser."""
        return tuple(ShownPage(self._name, str(tab["id"])[:64], str(tab["url"])[:500]) for tab in await self._listed())

    async def close(self) -> None:
        """Let every tab go."""
        for tab in self._tabs.values():
            await tab.close()
        self._tabs.clear()

    async def _listed(self) -> list[dict[str, Any]]:
        told = await asyncio.to_thread(glimpse.asked, self._where, "GET", "/json/list")
        if not isinstance(told, list):
            raise Mistake(f"no browser answers at {self._where}", field="page_witnesses")
        whole = (tab for tab in told if isinstance(tab, dict) and {"id", "url", "webSocketDebuggerUrl"} <= set(tab))
        return [tab for tab in whole if tab.get("type") == "page"]

    async def _looked(self, binding: ToolBinding) -> WatchedFacts:
        page = binding.page
        if page is None:
            return unseen(binding, "that names no page")
        listed = [(str(tab["id"])[:64], tab) for tab in await self._listed()]
        place = chosen(binding, page, [(name, str(tab["url"])) for name, tab in listed])
        if isinstance(place, WatchedFacts):
            return place
        found = listed[place][0]
        tab = await self._tab(found, str(listed[place][1]["webSocketDebuggerUrl"]))
        if tab.crashed:
            return WatchedFacts(binding, True, found, defects=(Defect(Flaw.UNREADABLE, "its tab has crashed"),))
        profile = self._profile_of(page.url)
        generating = ready = None
        if profile is not None:
            facts = await tab.look(profile, self._modules)
            state = facts.get("state")
            if state in FOUND and facts.get("generating") in ("yes", "no"):
                generating = facts["generating"] == "yes"
                ready = state == "ready"
        return WatchedFacts(
            binding=binding,
            shown=True,
            window=found,
            generating=generating,
            send_ready=ready,
            requests=tab.requests,
            streams=tab.streams,
            changed_at=tab.changed_at,
            heard_at=tab.heard_at,
        )

    async def _tab(self, name: str, address: str) -> Tab:
        """The tab, listened to; from now on where it was not before."""
        known = self._tabs.pop(name, None)
        if known is not None and known.gone:
            await known.close()
            known = None
        if known is None:
            line = await connect(address, max_size=SIZE, open_timeout=ANSWER, origin=None, max_queue=None)
            known = Tab(line, self._clock)
            try:
                await known.begin()
            except BaseException:
                await known.close()
                raise
        self._tabs[name] = known
        while len(self._tabs) > TABS:
            await self._tabs.pop(next(iter(self._tabs))).close()
        return known
