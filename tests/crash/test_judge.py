"""The judge can say no: each promise taken out of a supervisor is missed. And the paths pass what they are made for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from tenuto.proof.case import read
from tenuto.proof.catalogue import FAR, HOST_POINTS, REVOCATIONS, TALK
from tenuto.proof.matrix import undisturbed
from tenuto.proof.scenarios import BY_NAME

ROOT = Path(tenuto.__file__).parent


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("spoil", "case", "said"),
    [
        ("does_it_again", "slow:arm.handed_over:1", "took effect 2 times"),
        ("does_it_again", "slow:handover.ordered:1", "took effect 2 times"),
        ("takes_it_for_undone", "pause:handover.ordered:1", "is said not to have happened"),
        ("drops_turns", "plain", "is said not to have happened"),
        ("forgets", "plain:settle.committed:3", "a row is gone: wake"),
    ],
)
def test_a_broken_promise_is_noticed(spoil: str, case: str, said: str) -> None:
    argv = [sys.executable, "-m", "tests.crash.spoiled", spoil, case]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, check=True, timeout=250)
    verdict = json.loads(done.stdout)["verdict"]
    assert any(said in broken for broken in verdict["broken"]), verdict


#: Points of paths that other suites kill at: revoking elsewhere in tests/wire, the steps of a chain in tests/chains.
ELSEWHERE = {
    *("peer.before_revoke", "peer.revoked"),
    *("record.armed", "record.written", "advance.before_commit", "advance.committed"),
    *("gate.before_commit", "gate.armed", "gate.handed_over", "review.before_commit", "review.asked"),
    *("verdict.before_commit", "verdict.committed"),
    *(f"takeover.{step}" for step in ("claimed", "begun", "answered", "journaled")),
    *("merge.before_commit", "merge.armed", "merge.asked", "merge.settled"),
}


@pytest.mark.timeout(300)
def test_the_paths_do_what_they_are_made_for_and_pass_every_point() -> None:
    plays = undisturbed(jobs=2)
    assert {name: play.broken for name, play in plays.items() if play.broken} == {}
    missing = {name: BY_NAME[name].expects - set(play.facts) for name, play in plays.items()}
    assert {name: facts for name, facts in missing.items() if facts} == {}
    passed = {point.removeprefix(FAR).removeprefix(TALK) for play in plays.values() for point in play.passings}
    passed |= {*HOST_POINTS} | {point for pair in REVOCATIONS for point in pair}
    assert literal_points() - passed - ELSEWHERE == set()


def literal_points() -> set[str]:
    """Every point that the source names outright."""
    sources = [path for path in ROOT.rglob("*.py") if "proof" not in path.parts]
    return {point for path in sources for point in re.findall(r'burn\((?:order, )?"([a-z_.]+)"\)', path.read_text())}


@pytest.mark.parametrize(
    "name", ["plain", "plain:arm.committed:2", "slow:all.handover.ordered:1+host.begun:1+agent.effect:2"]
)
def test_the_name_of_a_case_is_enough_to_play_it_again(name: str) -> None:
    assert str(read(name)) == name
