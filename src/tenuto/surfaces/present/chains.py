"""Chains, their links, what comes next and what a sweep found, as JSON-ready answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenuto.core.chain import Finding, blocker_text
from tenuto.engine.chains import Foreseen
from tenuto.model.chain import Chain, Link, document_of
from tenuto.surfaces.present import rows

TOLD, UNITS = 50, 200
"""How many links are told, the newest, and how many units."""


def chain(row: Chain) -> dict[str, Any]:
    """A chain; a source is told by its kind and place, never by a URL."""
    return {
        "id": row.id,
        "run": row.run_id,
        "state": row.state.value,
        "goal": row.goal,
        "repo": row.repo,
        "selector": row.selector,
        "source": {"kind": row.source.kind, "location": row.source.location},
        "authorization": dict(row.authorization),
        "attempt_cap": row.attempt_cap,
        "caps": {
            "units": row.caps.units,
            "tasks": row.caps.tasks,
            "life": None if row.caps.life is None else rows.seconds(row.caps.life),
            "cost": row.caps.cost,
        },
        "position": row.position,
        "processed": row.processed,
        "created_at": rows.instant(row.created_at),
        "look_at": rows.instant(row.look_at),
        "ended_at": rows.instant(row.ended_at),
        "because": row.reason,
        "asks": row.asks,
        "base": None if row.base is None else str(row.base),
        "phases": row.phases,
    }


def link(row: Link) -> dict[str, Any]:
    """One unit that was given to one task."""
    return {
        "position": row.position,
        "unit": row.unit,
        "attempt": row.attempt,
        "task": row.task_id,
        "predecessor": row.predecessor,
        "outcome": None if row.outcome is None else row.outcome.value,
        "evidence": row.evidence,
        "blocker": None if row.blocker is None else blocker_text(row.blocker),
        "made_at": rows.instant(row.made_at),
        "recorded_at": rows.instant(row.recorded_at),
    }


def chains(found: Iterable[Chain]) -> dict[str, Any]:
    """Chains, newest first."""
    return {"chains": [chain(row) for row in found]}


def foreseen(what: Foreseen) -> dict[str, Any]:
    """What the next step would be."""
    found = what.found
    return {
        "chain": what.chain.id,
        "state": what.chain.state.value,
        "standing": found.standing.value,
        "unit": found.unit,
        "mine": None if what.link is None or what.link.recorded_at is not None else what.link.unit,
        "left": len(found.remaining),
        "because": found.because,
        "notes": list(found.notes),
        "envelope": None if what.envelope is None else document_of(what.envelope),
        "prompt": what.prompt,
    }


def standing(
    what: Foreseen, links: Iterable[Link], found: Iterable[Finding], last: str | None = None
) -> dict[str, Any]:
    """A chain as it stands: links, units with their evidence, why it waits, the next step, and the last sweep.

    Of the units those that are not done are told first, at most 200 in all.
    """
    told = [link(row) for row in links]
    next_, units = foreseen(what), swept(found)
    return {
        "chain": chain(what.chain),
        "links": told[:TOLD],
        "older": max(len(told) - TOLD, 0),
        "next": {name: next_[name] for name in ("standing", "unit", "mine", "left", "because", "notes")},
        "units": sorted(units["units"], key=lambda one: one["what"] == "done")[:UNITS],
        "counts": units["counts"],
        "sweep": last,
    }


def swept(found: Iterable[Finding]) -> dict[str, Any]:
    """Every unit with the evidence that decided, and how many of each there are."""
    told = [{"unit": one.unit, "what": one.what.value, "evidence": one.evidence} for one in found]
    counts: dict[str, int] = {}
    for one in told:
        counts[one["what"]] = counts.get(one["what"], 0) + 1
    return {"units": told, "counts": counts}
