"""Phases and worktrees, as JSON-ready answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tenuto.core.phases import sentence
from tenuto.model.chain import Chain
from tenuto.model.phase import Phase
from tenuto.model.worktree import Worktree
from tenuto.surfaces.present import rows


def phase(row: Phase) -> dict[str, Any]:
    """One pull request, and how it stands in the base."""
    landing = row.landing
    return {
        "unit": row.unit,
        "pull": row.number,
        "state": row.state.value,
        "branch": row.branch,
        "url": row.url,
        "head": row.head,
        "landed_as": None if landing is None else landing.commit,
        "how": None if landing is None else landing.how,
        "undone_by": [one.partition("#")[0] for one in row.undone_by],
        "task": row.task_id,
        "opened_at": rows.instant(row.opened_at),
        "settled_at": rows.instant(row.settled_at),
        "because": sentence(row),
    }


def standing(chain: Chain, found: Iterable[Phase]) -> dict[str, Any]:
    """Every phase of a chain in order, the base they are held against, and what a person is asked."""
    return {
        "chain": chain.id,
        "base": None if chain.base is None else str(chain.base),
        "seen": chain.seen,
        "asks": chain.asks,
        "phases": [phase(row) for row in found],
    }


def worktree(row: Worktree) -> dict[str, Any]:
    """One worktree, and why it is kept or was not made."""
    return {
        "id": row.id,
        "state": row.state.value,
        "path": row.path,
        "branch": row.branch,
        "base": str(row.base),
        "begun_at": row.begun_at_commit,
        "repository": row.repository,
        "task": row.task_id,
        "chain": row.chain_id,
        "made_at": rows.instant(row.created_at),
        "ended_at": rows.instant(row.ended_at),
        "because": row.reason,
    }


def worktrees(found: Iterable[Worktree]) -> dict[str, Any]:
    """Worktrees, newest first."""
    return {"worktrees": [worktree(row) for row in found]}
