"""Whoever is killed while a task is worked on by an executor in another process: the same holds over the wire.

Each point that the others do not pass is visited once: the executor's own, the supervisor's while it speaks to one, and
both while an order that was lost is revoked. The paths are walked whole where long proofs are.
"""

from __future__ import annotations

import pytest
from tests.crash.paths import worker

from tenuto.proof.matrix import Worker

__all__ = ["worker"]
KILLS = (
    *(f"elsewhere:far.peer.{point}:1" for point in ("said_ready", "heard", "said_accepted", "said_observation")),
    *(f"elsewhere:far.handover.{point}:1" for point in ("before_spawn", "spawned", "ordered")),
    "elsewhere:far.peer.said_ended:1",
    *(f"elsewhere-cancel:far.halt.{point}:1" for point in ("before", "signalled")),
    "elsewhere:wire.before_command:1",
    "elsewhere:wire.commanded:1",
    "elsewhere:all.wire.commanded:1",
    "elsewhere:host.begun:1",
    *(f"elsewhere:far.peer.heard:1+far.peer.{point}:1" for point in ("before_revoke", "revoked", "said_revoked")),
    *(f"elsewhere:far.peer.heard:1+revoke.{point}:1" for point in ("before", "done")),
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", KILLS)
def test_an_executor_elsewhere_can_be_lost_and_comes_back(worker: Worker, case: str) -> None:
    result = worker.play(case)
    assert result.broken == ()
    assert result.reached, "the point was never passed"
    assert (result.most_effects, result.turns_lost, result.rows_lost) == (1, 0, 0)
