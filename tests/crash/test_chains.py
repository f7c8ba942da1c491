"""Whoever is killed at a point of a chain's own, each unit is recorded once and given once.

What these paths share with every other is killed on the others; here they die where a unit is claimed, recorded and
given, where a worktree is made and removed, where a base is looked at, and wherever a merge is gated, reviewed, written
down, asked for, and revoked by the switch: the remote itself counts what was merged.
"""

from __future__ import annotations

import pytest
from tests.crash.paths import worker

from tenuto.proof.case import Case, Kill, Who
from tenuto.proof.matrix import Worker

__all__ = ["worker"]
POINTS = {
    "chain": ("claim.written", "record.armed", "record.written", "advance.before_commit", "advance.committed"),
    "chain-phases": ("worktree.made", "phase.looked", "phase.committed", "worktree.armed", "worktree.removed"),
    "chain-merges": (
        "gate.before_commit", "gate.armed", "gate.handed_over", "review.before_commit", "review.asked",
        "verdict.before_commit", "verdict.committed", "merge.before_commit", "merge.armed", "merge.asked",
        "merge.settled",
    ),
    "merge-revoked": ("merge.armed", "merge.asked"),
}  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("scenario", "point"), [(name, point) for name, points in POINTS.items() for point in points])
def test_a_chains_own_points_can_be_survived(worker: Worker, scenario: str, point: str) -> None:
    result = worker.play(str(Case(scenario, (Kill(Who.SUPERVISOR, point, 1),))))
    assert result.broken == ()
    assert result.reached, "the point was never passed"
    assert (result.most_effects, result.turns_lost, result.rows_lost) == (1, 0, 0)
