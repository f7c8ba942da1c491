"""What the pages of chat sites say of their profiles: one sentence a site for as long as it has drifted.

Fed with the facts of pages as they come by; it looks at nothing itself. A page that waits for a person to sign in says
nothing about its profile; one that has its composer and shows no turn for long is not loading: nobody knows its turns.
Holds no text of a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tenuto import sites

SILENT: Final = ("login", "challenge")
"""States in which nothing of a conversation is to be expected on the page."""

LOADS: Final = timedelta(seconds=30)
"""How long a page may have a composer and not a single turn before it counts as one whose turns nobody knows."""

PAGES: Final = 256
"""Of how many pages it is remembered since when they load."""


class Canary:
    """Sentences about drift, by site."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._loading: dict[str, datetime] = {}

    def seen(self, profile: Mapping[str, Any], facts: Mapping[str, object], at: datetime) -> None:
        """Take the facts of one page of that profile's site, seen at `at`; what is of another sort says nothing."""
        if facts.get("shown") is not True or facts.get("state") in SILENT or facts.get("url_kind") != "conversation":
            self._loading.pop(_page(facts), None)  # since when it loads is known no more
            return
        if self._loads(facts, at):
            return
        found, missing = facts.get("drift"), facts.get("missing")
        said = sites.sentence(profile, sites.drifted(profile, _counted(found), _named(missing)))
        if said is not None:
            self._said[profile["id"]] = said
        elif facts.get("state") in ("ready", "generating"):
            self._said.pop(profile["id"], None)

    def _loads(self, facts: Mapping[str, object], at: datetime) -> bool:
        """Whether a page is only on its way."""
        page = _page(facts)
        if facts.get("state") != "loading":
            self._loading.pop(page, None)
            return False
        if "composer" in _named(facts.get("missing")):
            return True
        if len(self._loading) >= PAGES and page not in self._loading:
            self._loading.pop(next(iter(self._loading)))
        return at - self._loading.setdefault(page, at) < LOADS

    def troubles(self) -> tuple[str, ...]:
        """What a person is to be told now: at most one sentence a site."""
        return tuple(said for _, said in sorted(self._said.items()))


def _page(facts: Mapping[str, object]) -> str:
    return str(facts.get("conversation"))[:500]


def _counted(found: object) -> dict[str, int]:
    if not isinstance(found, Mapping):
        return {}
    return {str(role): at for role, at in list(found.items())[:64] if isinstance(at, int)}


def _named(missing: object) -> list[str]:
    return [str(role)[:64] for role in missing[:32]] if isinstance(missing, list) else []
