"""What watches pages from outside, as the settings name it. Nothing of it is brought in where none is named."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenuto.config import Settings
from tenuto.ports import Clock, PageWitness

if TYPE_CHECKING:
    from tenuto.transports.watched.trees import Trees


def page_witnesses(settings: Settings, clock: Clock) -> Mapping[str, PageWitness]:
    """The page witnesses of these settings, by their names."""
    if not settings.page_witnesses:
        return {}
    from tenuto.transports.watched.accessibility import AccessibilityWitness
    from tenuto.transports.watched.devtools import DevToolsWitness
    from tenuto.wiring.extension import source

    profile_of = _ProfileOf(settings)
    made: dict[str, PageWitness] = {}
    for name, at in settings.page_witnesses.items():
        if at.kind == "devtools" and at.where is not None:
            made[name] = DevToolsWitness(name, at.where, clock, profile_of, source() / "page")
        else:
            made[name] = AccessibilityWitness(name, trees_of(at.where), clock, profile_of)
    return made


def trees_of(where: str | None, platform: str = sys.platform) -> Trees:
    """The accessibility trees of this system; of the session whose bus is at `where`, where sessions have one."""
    from tenuto.transports.watched.trees import NoTrees

    if platform == "win32":
        from tenuto.transports.watched.uia import Uia

        if where is None:
            return Uia()
        return NoTrees("a desktop of Windows has no bus", 'write "accessibility" and nothing behind it')
    if platform.startswith("linux"):
        from tenuto.transports.watched.atspi import AtSpi

        return AtSpi(where)
    return NoTrees("accessibility trees are read on Linux and on Windows", 'use "devtools:127.0.0.1:9222"')


async def let_go(witnesses: Mapping[str, PageWitness]) -> None:
    """Have every witness let go of what it holds on to."""
    for witness in witnesses.values():
        if (close := getattr(witness, "close", None)) is not None:
            await close()


class _ProfileOf:
    """Finds the compiled profile of an address's site. Raises Mistake for profiles that do not fit."""

    def __init__(self, settings: Settings) -> None:
        from tenuto.wiring.sites import KnownSites

        self._known = KnownSites(settings.sites)

    def __call__(self, url: str) -> Mapping[str, Any] | None:
        found = re.match(r"https?://([^/?#:]+)", url)
        host = found[1].lower() if found is not None else None
        profiles = (self._known(name) for name in self._known.names())
        return next((profile for profile in profiles if profile is not None and host in profile["hosts"]), None)
