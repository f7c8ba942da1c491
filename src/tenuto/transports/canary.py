"""What the pages of chat sites say of their profiles: one sentence a site for as long as it has drifted.

Fed with the facts of pages as they come by; it looks at nothing itself. A page that is loading, or that waits for a
person to sign in, says nothing about its profile. Holds no text of a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tenuto import sites

SILENT: Final = ("login", "challenge", "loading")
"""States in which nothing of a conversation is to be expected on the page."""


class Canary:
    """Sentences about drift, by site."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def seen(self, profile: Mapping[str, Any], facts: Mapping[str, object]) -> None:
        """Take the facts of one page of that profile's site; what is of another sort says nothing."""
        if facts.get("shown") is not True or facts.get("state") in SILENT or facts.get("url_kind") != "conversation":
            return
        found, missing = facts.get("drift"), facts.get("missing")
        said = sites.sentence(profile, sites.drifted(profile, _counted(found), _named(missing)))
        if said is not None:
            self._said[profile["id"]] = said
        elif facts.get("state") in ("ready", "generating"):
            self._said.pop(profile["id"], None)

    def troubles(self) -> tuple[str, ...]:
        """What a person is to be told now: at most one sentence a site."""
        return tuple(said for _, said in sorted(self._said.items()))


def _counted(found: object) -> dict[str, int]:
    if not isinstance(found, Mapping):
        return {}
    return {str(role): at for role, at in list(found.items())[:64] if isinstance(at, int)}


def _named(missing: object) -> list[str]:
    return [str(role)[:64] for role in missing[:32]] if isinstance(missing, list) else []
