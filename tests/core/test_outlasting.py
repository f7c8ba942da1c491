"""A time limit holds although the host that would have enforced it is gone, and a person is asked when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support import builders as b

from tenuto.model.decision import Interrupt
from tenuto.model.evidence import Mark, Presence
from tenuto.model.lifecycle import CommandState
from tenuto.model.snapshot import Snapshot

ALIVE, GONE, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.UNKNOWN
LIMIT = b.RUN.policy.turn_limit
BEGUN = b.LIVE.live_at
assert BEGUN is not None
OVER = BEGUN + LIMIT
LATE = OVER + 6 * b.RUN.policy.interrupt_grace
ALONE = b.seen_of(b.SEND, Mark.ACCEPTED, GONE, ALIVE)


def test_a_turn_without_a_host_is_ended_when_its_time_is_over() -> None:
    assert b.decided(b.with_live(), ALONE, now=OVER - b.S).intent is None
    assert b.decided(b.with_live(), ALONE, now=OVER).intent == Interrupt(b.LIVE.id)
    assert b.decided(b.with_live(), ALONE, now=OVER, connected=False).intent is None
    assert b.decided(replace(b.with_live(), commands=(b.HALT,)), ALONE, now=OVER).intent is None


@pytest.mark.parametrize("agent", [ALIVE, UNKNOWN])
def test_a_host_that_lives_keeps_the_time_itself(agent: Presence) -> None:
    assert b.decided(b.with_live(), b.seen_of(b.SEND, Mark.ACCEPTED, ALIVE, agent), now=LATE).intent is None


def test_an_end_that_does_not_come_is_tried_again_and_then_a_persons() -> None:
    failed = replace(b.HALT, state=CommandState.FAILED, settled_at=OVER)
    tried = replace(b.with_live(), checks=(failed,))
    assert b.decided(tried, ALONE, now=OVER + b.S).intent is None
    assert b.decided(tried, ALONE, now=OVER + 7 * b.S).intent == Interrupt(b.LIVE.id)
    assert asked(tried, LATE - b.S) == []
    (question,) = asked(tried, LATE)
    assert "its host is gone and its time is over, but turn" in question
    assert asked(b.with_wait(snapshot=tried), LATE) == [], "one question at a time"


def asked(snapshot: Snapshot, now: object) -> list[str]:
    return list(b.settled(snapshot, ALONE, now=now).asked)  # type: ignore[arg-type]
