"""One look at a page from outside: by the accessibility tree of its window, and by its browser's DevTools.

    python -m bench.looks [--looks 40] [--turns 2 60]

A real Chromium on a desktop of its own shows a conversation of so many turns of our own chat site, and both witnesses
look at it as a supervisor would, taking turns. Beside each stands the least it could ask: the programs of the
accessibility bus, and the browser's list of tabs. The processor's time is that of the looking process; what the browser
spends on being looked at is in the clock alone. A first look by DevTools opens the line to the tab, the others use it
again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.chromium import Chromium
from tests.support.desktop import desktop
from tests.support.lab import Lab, Past

from tenuto import sites
from tenuto.model.tools import ToolBinding
from tenuto.model.watched import WatchedFacts
from tenuto.ports import PageWitness
from tenuto.transports import glimpse
from tenuto.transports.watched.accessibility import AccessibilityWitness
from tenuto.transports.watched.atspi import REGISTRY, ROOT, AtSpi, _Asking
from tenuto.transports.watched.devtools import DevToolsWitness
from tenuto.wiring.extension import source
from tenuto.wiring.world import SystemClock

PATIENCE = 120.0
MORE = ("--force-renderer-accessibility", "--remote-debugging-port=0", "--remote-allow-origins=http://nobody.invalid")


def programs(bus: str) -> None:
    """The least that can be asked of the accessibility bus: which programs there are."""
    with _Asking(bus) as asking:
        asking.children([(REGISTRY, ROOT)])


async def once(witness: PageWitness, name: str, url: str) -> None:
    """One look; RuntimeError where it saw nothing whole."""
    facts = (await witness.look(ToolBinding(name, url))).facts
    if not isinstance(facts, WatchedFacts) or facts.shown is not True or facts.defects:
        raise RuntimeError(f"it was not seen: {facts}")


async def seen(witness: PageWitness, name: str, url: str) -> None:
    """Look until it is seen; a browser builds its tree when it is first asked."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return await once(witness, name, url)
        except RuntimeError:
            if time.monotonic() > until:
                raise TimeoutError("the page is not seen") from None
            await asyncio.sleep(0.1)


async def laps(ways: Mapping[str, Callable[[], Awaitable[object]]], looks: int) -> dict[str, list[tuple[float, float]]]:
    """Clock and processor of each way, in seconds, the ways taking turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(looks):
        for name, way in ways.items():
            began, spent = time.perf_counter(), time.process_time()
            await way()
            found[name].append((time.perf_counter() - began, time.process_time() - spent))
    return found


def told(found: Mapping[str, Sequence[tuple[float, float]]]) -> dict[str, Any]:
    """Medians in milliseconds, the slowest, and the median of the laps' ratios."""

    def ratio(one: str, other: str) -> float:
        pairs = zip(found[one], found[other], strict=True)
        return round(statistics.median(a[0] / b[0] for a, b in pairs), 2)

    figures: dict[str, Any] = {
        name: {
            "median_ms": round(1000 * statistics.median(clock for clock, _ in lap), 1),
            "slowest_ms": round(1000 * max(clock for clock, _ in lap), 1),
            "processor_ms": round(1000 * statistics.median(spent for _, spent in lap), 1),
        }
        for name, lap in found.items()
    }
    return figures | {
        "tree / its least": ratio("tree", "programs of the bus"),
        "DevTools / their least": ratio("DevTools", "list of tabs"),
        "DevTools, first look / another": ratio("DevTools, first look", "DevTools"),
        "tree / DevTools": ratio("tree", "DevTools"),
    }


async def measure(bus: str, where: str, url: str, looks: int) -> dict[str, Any]:
    """Every way of looking at one page."""
    site = sites.compiled(sites.load(Path("/nowhere"))["chatgpt"])
    clock = SystemClock()

    def tabs() -> DevToolsWitness:
        return DevToolsWitness("web", where, clock, lambda _url: site, source() / "page")

    async def first_look() -> None:
        fresh = tabs()
        try:
            await once(fresh, "web", url)
        finally:
            await fresh.close()

    tree, kept = AccessibilityWitness("desk", AtSpi(bus), clock, lambda _url: site), tabs()
    try:
        await seen(tree, "desk", url)
        await seen(kept, "web", url)
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "tree": lambda: once(tree, "desk", url),
            "programs of the bus": lambda: asyncio.to_thread(programs, bus),
            "DevTools": lambda: once(kept, "web", url),
            "DevTools, first look": first_look,
            "list of tabs": lambda: asyncio.to_thread(glimpse.listed, where),
        }
        return told(await laps(ways, looks))
    finally:
        await kept.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What one look at a page from outside costs.")
    parser.add_argument("--looks", type=int, default=40)
    parser.add_argument("--turns", type=int, nargs="+", default=[2, 60])
    given = parser.parse_args()
    figures: dict[str, Any] = {"looks": given.looks, "load before": round(os.getloadavg()[0], 1)}
    with desktop() as environ, Lab.start() as lab, ThreadPoolExecutor(1) as apart:
        with Chromium(lab, headless=False, more=list(MORE), environ=environ) as browser:
            port = Path(browser.profile, "DevToolsActivePort").read_text().split()[0]
            page = browser.open()
            for turns in given.turns:
                past = [Past("assistant" if n % 2 else "user", f"turn {n}: " + "word " * 60) for n in range(turns)]
                url = lab.conversation_url(lab.seed(past))
                page.goto(url)
                page.wait_for_selector("#prompt-textarea[data-ready]")
                looked = measure(environ["DBUS_SESSION_BUS_ADDRESS"], f"127.0.0.1:{port}", url, given.looks)
                figures[f"{turns} turns"] = apart.submit(asyncio.run, looked).result()
    figures["load after"] = round(os.getloadavg()[0], 1)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
