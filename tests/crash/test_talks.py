"""Whoever is killed at a point of a conversation's own: each turn takes effect once at most, and so do words and leave.

The host of an agent with a session dies at each of its points once, on the path that has it, and its supervisor on both
sides of handing a command over; what else these paths share with every other is walked where long proofs are.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.paths import worker

from tenuto.proof import judge
from tenuto.proof.case import Case, Kill, Who
from tenuto.proof.matrix import Worker
from tenuto.proof.scenarios import BY_NAME
from tenuto.proof.stage import Stage

__all__ = ["worker"]
MARKS = tuple(f"peer.{mark}" for mark in ("heard", "claimed", "begun", "accepted", "ended"))
TURN = tuple(
    f"conversing.{step}" for step in ("before_open", "named", "opened", "prompted", "confirmed", "heard_end", "closed")
)
POINTS = {
    "talk": (*MARKS, *TURN),
    "talk-asks": ("conversing.asked", "conversing.answered"),
    "talk-steered": ("conversing.steered", "conversing.steer_heard"),
    "talk-cut": ("conversing.interrupted", "conversing.cut"),
}
CASES: list[Case] = [
    *(Case(name, (Kill(Who.CONVERSATION, point, 1),)) for name, points in POINTS.items() for point in points),
    *(Case("talk", (Kill(Who.SUPERVISOR, point, 1),)) for point in ("wire.before_command", "wire.commanded")),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_conversations_own_points_can_be_survived(worker: Worker, case: Case) -> None:
    result = worker.play(str(case))
    if any("did not end in time" in told or "too long" in told for told in result.broken):
        raise TimeoutError(result.broken)
    assert result.broken == ()
    assert result.reached, "the point was never passed"
    assert (result.most_effects, result.turns_lost, result.rows_lost) == (1, 0, 0)


def test_words_that_were_put_in_twice_are_noticed(tmp_path: Path) -> None:
    scenario, stage = BY_NAME["talk-steered"], Stage(tmp_path / "stage")
    scenario.set_up(stage)
    (stage.home / "steers").write_text("c-1\nc-2\nc-1\n", "ascii")
    assert "c-1 was put in 2 times" in judge.judge(stage, scenario.goal, {}).broken
    assert not [told for told in judge.judge(stage, scenario.goal, {}).broken if told.startswith("c-2")]
