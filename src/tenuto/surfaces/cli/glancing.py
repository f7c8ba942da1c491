"""How the supervisor stands, told from a glance: the one answer that must come at once.

Imports neither the command parser nor anything else that takes its time; `tenuto status` is answered from here.
"""

from __future__ import annotations

from datetime import UTC, datetime

from tenuto.surfaces.cli.entrances import Entrances, Glance
from tenuto.surfaces.cli.output import Out, since

SAYS = {
    "missing": "no supervisor runs",
    "live": "a supervisor runs",
    "fresh-dead": "the supervisor is gone; its lease has not run out yet",
    "stop-fenced": "the supervisor was asked to stop and is still there",
    "stale-alive": "the supervisor is there but has not renewed its lease",
    "stale-dead": "the supervisor is gone, and so is its lease",
}
"""The sentences of `present.STANDINGS`, here because that module brings too much for a quick look; a test compares."""
PRESENT = ("live", "stop-fenced", "stale-alive")
"""The standings in which a process is there."""


def status(entrances: Entrances, out: Out) -> None:
    """Print how the supervisor and its registry stand."""
    glance = entrances.glance()
    if out.as_json:
        out.document(told(entrances, glance))
        return
    places, now = entrances.places, entrances.now()
    out.heading(f"{glance.standing}: {SAYS[glance.standing]}")
    counted = ", ".join(f"{count} {state}" for state, count in sorted(glance.tasks.items()) if count)
    out.pairs(
        [
            ("process", f"{glance.pid} on {glance.host}" if glance.pid is not None else None),
            ("answers at", glance.address if _elsewhere(entrances, glance) else None),
            ("epoch", glance.epoch),
            ("since", since(glance.since, now)),
            ("lease until", since(glance.until, now) if glance.released is None else None),
            ("stop asked", since(glance.stop_asked, now)),
            ("released", since(glance.released, now)),
            ("registry", places.registry if glance.registry_id else f"{places.registry} (not made yet)"),
            ("place", f"{places.home} (from {places.home_from})"),
            ("tasks", counted or "none"),
            ("unsettled", f"{glance.open_commands} commands" if glance.open_commands else None),
            *(("trouble", trouble) for trouble in glance.troubles),
            ("held", f"everything, by {glance.held_by}, {since(glance.held_at, now)}" if glance.held_at else None),
        ]
    )
    if glance.standing not in PRESENT:
        out.note("start one with: tenuto start")


def _elsewhere(entrances: Entrances, glance: Glance) -> bool:
    """Whether whoever leads answers at another socket than this home's."""
    return glance.standing in PRESENT and glance.address not in (None, str(entrances.places.socket))


def told(entrances: Entrances, glance: Glance) -> dict[str, object]:
    """A glance as `--json` prints it."""
    places = entrances.places
    return {
        "standing": glance.standing,
        "text": SAYS[glance.standing],
        "pid": glance.pid,
        "host": glance.host,
        "epoch": glance.epoch,
        "owner": glance.owner,
        "since": _instant(glance.since),
        "renewed_at": _instant(glance.renewed),
        "expires_at": _instant(glance.until),
        "stop_asked_at": _instant(glance.stop_asked),
        "released_at": _instant(glance.released),
        "registry": places.registry,
        "registry_id": glance.registry_id,
        "home": str(places.home),
        "home_from": places.home_from,
        "socket": str(places.socket),
        "address": glance.address,
        "on_this_host": glance.near,
        "troubles": list(glance.troubles),
        "held": None if glance.held_at is None else {"at": _instant(glance.held_at), "by": glance.held_by},
        "tasks": dict(glance.tasks),
        "open_commands": glance.open_commands,
    }


def _instant(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
