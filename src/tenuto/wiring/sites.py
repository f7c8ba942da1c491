"""Profiles of chat sites, ours and the user's, read when they are first needed and again when a file has changed.

A profile that does not fit is the mistake of whoever asks for its site; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tenuto.config import Settings
from tenuto.transports.bridge import Bridge
from tenuto.transports.canary import Canary
from tenuto.transports.pages import PageExecutor


def pages_of(settings: Settings, bridge: Bridge, canary: Canary) -> Callable[[str], PageExecutor]:
    """Makes the executor of a browser's pages by its name; what they say of their profiles is heard by `canary`."""
    known = KnownSites(settings.sites)
    return lambda name: PageExecutor(bridge, name, known, canary, sites=known.names)


class KnownSites:
    """Finds a site's compiled profile by its name. Raises Mistake for profiles that do not fit."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: Mapping[str, Mapping[str, Any]] = {}
        self._stamp: tuple[object, ...] = ()

    def __call__(self, name: str) -> Mapping[str, Any] | None:
        """The profile of this name, None for a site that nobody knows."""
        return self._now().get(name)

    def names(self) -> tuple[str, ...]:
        """Every site that is known."""
        return tuple(sorted(self._now()))

    def _now(self) -> Mapping[str, Mapping[str, Any]]:
        from tenuto import sites  # brings pydantic, which a supervisor without chats can do without

        stamp = _stamp(self._directory)
        if stamp != self._stamp:
            loaded = sites.load(self._directory)
            self._held = {site: sites.compiled(profile) for site, profile in loaded.items()}
            self._stamp = stamp
        return self._held


def _stamp(directory: Path) -> tuple[object, ...]:
    """What changes whenever a file of the directory does; never empty."""
    try:
        found = sorted(directory.glob("*.toml"))
        return ("there", *((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in found))
    except OSError:
        return ("none",)
