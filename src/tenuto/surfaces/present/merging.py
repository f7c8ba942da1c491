"""What a chain hands in to be merged, its reviews and its gates, as JSON-ready answers."""

from __future__ import annotations

from typing import Any

from tenuto.core.authority import Held
from tenuto.engine.chaining.merging import Standing
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.surfaces.present import rows


def mandate(row: Mandate) -> dict[str, Any]:
    """What the operator allowed when the chain began."""
    return {
        "forge": row.forge.kind,
        "location": row.forge.location,
        "mode": row.mode.value,
        "method": row.method.value,
        "branches": row.branches,
        "base": row.base,
        "gate": list(row.gate),
        "reviews": row.reviews,
        "playbook": row.playbook,
        "reviewer": None if row.reviewer is None else list(row.reviewer.argv),
    }


def proposal(row: Proposal) -> dict[str, Any]:
    """One pull request, and how far it has come."""
    return {
        "unit": row.unit,
        "task": row.task_id,
        "state": row.state.value,
        "pull": row.number,
        "branch": row.branch,
        "base": row.base,
        "head": row.head,
        "url": row.url,
        "gate": None if row.gate is None else row.gate.value,
        "reviews": row.reviews,
        "merged_as": row.merged_as,
        "because": row.reason,
        "opened_at": rows.instant(row.opened_at),
        "settled_at": rows.instant(row.settled_at),
    }


def review(row: Review) -> dict[str, Any]:
    """One review; its verdict is none where the reviewer came to no verdict, and null while it is being done."""
    return {
        "number": row.number,
        "task": row.task_id,
        "head": row.head,
        "verdict": None if row.verdict is None else row.verdict.value,
        "findings": row.findings,
        "asked_at": rows.instant(row.asked_at),
        "said_at": rows.instant(row.said_at),
    }


def held(one: Held) -> dict[str, Any]:
    """A gate that does not hold."""
    return {"gate": one.gate, "because": one.why, "change": one.change}


def standing(what: Standing) -> dict[str, Any]:
    """Everything about the merging of one chain; the first of `held` is the one that decides."""
    return {
        "stopped": what.switch,
        "mandate": mandate(what.mandate),
        "proposal": None if what.proposal is None else proposal(what.proposal),
        "reviews": [review(row) for row in what.reviews],
        "held": [held(one) for one in what.held],
    }
