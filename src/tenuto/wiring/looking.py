"""A chat page looked at for `tenuto site`: which profile it belongs to, what the sensor sees, and what has drifted."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tenuto import sites
from tenuto.config import Settings
from tenuto.model.faults import Mistake
from tenuto.surfaces.cli.entrances import Proof

SAMPLE: Final = "00000000-0000-4000-8000-000000000000"
WAITS: Final = ("login", "challenge")
UNKNOWN: Final = ("unknown", "loading", "settling")


def listed(settings: Settings) -> Proof:
    """The sites that are known, with their profile's version and when it was last seen to be true."""
    known = sites.load(settings.sites)
    rows = [
        {
            "site": name,
            "name": profile.site.name,
            "version": profile.site.version,
            "verified_on": profile.site.verified_on.isoformat(),
            "hosts": profile.site.hosts,
        }
        for name, profile in sorted(known.items())
    ]
    lines = [f"{row['site']}  {row['version']}  seen {row['verified_on']}" for row in rows]
    return Proof(True, f"{len(rows)} known; more may lie in {settings.sites}", lines, {"sites": rows})


def looked(settings: Settings, target: str, site: str | None, at: str | None, devtools: str | None) -> Proof:
    """One page against its profile; `target` is a file, or an address. Raises Mistake or Refused."""
    from tenuto.transports import glimpse
    from tenuto.wiring.extension import source

    known = sites.load(settings.sites)
    modules = source() / "page"
    if re.match(r"https?://", target):
        profile = _profile(known, site, target)
        compiled = sites.compiled(profile)
        if devtools is not None:
            facts = glimpse.shown(target, compiled, modules, devtools)
        else:
            facts = glimpse.visited(target, compiled, modules, time.sleep)
    else:
        if devtools is not None:
            raise Mistake("--devtools goes with an address, not with a file", field="devtools")
        compiled = sites.compiled(_profile(known, site or ("chatgpt" if at is None else None), at))
        facts = glimpse.saved(Path(target), compiled, at or _sample(compiled), modules, time.sleep)
    return _told(compiled, facts)


def _profile(known: Mapping[str, Any], site: str | None, url: str | None) -> Any:
    if site is not None:
        if site not in known:
            raise Mistake(f"no profile is called {site!r}; there are {', '.join(sorted(known))}", field="site")
        return known[site]
    found = sites.for_url(known, url or "")
    if found is None:
        raise Mistake(f"no profile knows {url}; name one with --site", field="site")
    return found


def _sample(compiled: Mapping[str, Any]) -> str:
    """An address of a conversation, for a saved page that does not say where it was."""
    canonical = next((url["canonical"] for url in compiled["urls"] if url["canonical"]), None)
    if canonical is None:
        raise Mistake("this profile has no address to look at a saved page under; give one with --at", field="at")
    return str(canonical).replace("{}", SAMPLE)


def _told(compiled: Mapping[str, Any], facts: Mapping[str, Any]) -> Proof:
    state = str(facts["state"])
    drifts = sites.drifted(compiled, facts["drift"], facts["missing"])
    verdict = "waits" if state in WAITS else "unknown" if state in UNKNOWN else "drifted" if drifts else "known"
    turns = facts["turns"]
    lines = [
        f"state        {state}",
        f"turns        {turns['users']} of a person, {turns['assistants']} of the assistant"
        + (", more that are not mounted" if turns["virtual"] else ""),
        f"composer     {facts['composer']}",
        *([f"error        {facts['error']['class']}"] if facts["error"] else []),
        *(f"drift        {drift}" for drift in drifts),
    ]
    summary = {
        "known": f"the page looks as profile {compiled['id']} {compiled['version']} says",
        "drifted": f"the page does not look as profile {compiled['id']} {compiled['version']} says",
        "unknown": f"profile {compiled['id']} does not know this page: nothing would be sent to it",
        "waits": "the page waits for a person",
    }[verdict]
    result = {
        "verdict": verdict,
        "site": compiled["id"],
        "version": compiled["version"],
        "profile": compiled["digest"],
        "drift": [{"role": each.role, "candidate": each.candidate, "rank": each.rank} for each in drifts],
        "facts": dict(facts),
    }
    return Proof(verdict == "known", summary, lines, result)
