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
from tenuto.transports.pages import PageExecutor, Profiles


def pages_of(settings: Settings, bridge: Bridge, canary: Canary) -> Callable[[str], PageExecutor]:
    """Makes the executor of a browser's pages by its name; what they say of their profiles is heard by `canary`."""
    profiles = known_sites(settings.sites)
    return lambda name: PageExecutor(bridge, name, profiles, canary)


def known_sites(directory: Path) -> Profiles:
    """Finds a site's compiled profile by its name."""
    held: dict[str, Mapping[str, Any]] = {}
    stamps: list[object] = [()]

    def find(name: str) -> Mapping[str, Any] | None:
        from tenuto import sites  # brings pydantic, which a supervisor without chats can do without

        stamp = _stamp(directory)
        if stamp != stamps[0]:
            loaded = sites.load(directory)
            held.clear()
            held.update({site: sites.compiled(profile) for site, profile in loaded.items()})
            stamps[0] = stamp
        return held.get(name)

    return find


def _stamp(directory: Path) -> tuple[object, ...]:
    """What changes whenever a file of the directory does; never empty."""
    try:
        found = sorted(directory.glob("*.toml"))
        return ("there", *((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in found))
    except OSError:
        return ("none",)
