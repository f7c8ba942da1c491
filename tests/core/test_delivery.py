"""The ladder of steer, rung by rung, and what is said of a delivery before it is made."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.support import builders as b

from tenuto.core import delivery, reconcile
from tenuto.core.delivery import Way
from tenuto.model.command import Command, CommandKind
from tenuto.model.decision import Rung
from tenuto.model.evidence import Mark, Presence
from tenuto.model.ids import CommandId, spelled
from tenuto.model.lifecycle import CommandState, DeliveryState, RunState, TaskState
from tenuto.model.message import MessagePolicy, Party
from tenuto.model.reconciliation import Acknowledgement, Doubtful, Living, MayYetBegin, Seen, Undone
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import WaitKind

STEER = replace(
    b.SEND,
    id=CommandId(spelled("command", 77)),
    kind=CommandKind.STEER,
    scopes=("steer:x",),
    target="turn 1",
)
WORDS = b.a_message(policy=MessagePolicy.STEER_NOW)
ALIVE = Presence.ALIVE


def live(snapshot: Snapshot | None = None) -> Seen:
    """A turn under way that was seen just now, at an executor that can steer, and words that wait."""
    world = b.with_message(WORDS, snapshot or b.with_live())
    seen = b.see(world, b.seen_of(b.ACKNOWLEDGED, Mark.ACCEPTED, ALIVE, ALIVE, proof={"turn": "turn 1"}))
    return replace(seen, steerable=True)


def of(snapshot: Snapshot) -> Seen:
    return live(snapshot)


HELD = replace(b.with_live(), registry=replace(b.IDLE.registry, held_at=b.NOW, held_by="sam"))
STOPPED = replace(b.with_live(), run=replace(b.RUN, state=RunState.STOPPED, stopped_at=b.NOW))
HOLDS: dict[str, tuple[Rung, Seen]] = {
    "over": (Rung.TERMINAL, of(b.with_task(b.with_live(), state=TaskState.FAILED, ended_at=b.NOW))),
    "held": (Rung.HELD, of(HELD)),
    "run stopped": (Rung.RUN_STOPPED, of(STOPPED)),
    "not leading": (Rung.NOT_LEADER, replace(live(), epoch=None)),
    "a question": (Rung.HUMAN, of(b.with_wait(WaitKind.HUMAN, b.with_live()))),
    "a permission": (Rung.PERMISSION, of(b.with_wait(WaitKind.PERMISSION, b.with_live()))),
    "a limit": (Rung.LIMIT, of(b.with_wait(WaitKind.LIMIT, b.with_live()))),
    "idle": (Rung.STEER, of(b.IDLE)),
    "not proven to have begun": (Rung.STEER, of(b.with_live(b.SUBMITTED))),
    "it cannot": (Rung.STEER, replace(live(), steerable=False)),
    "not seen": (Rung.STEER, replace(live(), found=b.found(b.with_live()))),
    "another steer": (Rung.STEER, of(replace(b.with_live(), commands=(STEER,)))),
    "another conversation": (Rung.STEER, of(replace(b.with_live(), conversation=None))),
    "spacing": (Rung.SPACING, of(b.with_task(b.with_live(), steered_at=b.NOW - 14 * b.MIN))),
}


@pytest.mark.parametrize("name", HOLDS)
def test_every_rung_of_steer_holds_alone(name: str) -> None:
    rung, seen = HOLDS[name]
    because = delivery.first(delivery.STEER, seen, b.NOW)
    assert because is not None
    assert because.rung is rung
    assert delivery.steer(seen, b.NOW) is None


PASSED = {
    "nothing": live(),
    "paused": of(b.with_task(b.with_live(), paused_at=b.NOW, paused_by="sam")),
    "stalled": of(b.with_task(b.with_live(), stalled_at=b.NOW)),
    "a dependency": of(b.with_wait(WaitKind.PATH, b.with_live())),
    "spaced long ago": of(b.with_task(b.with_live(), steered_at=b.NOW - 15 * b.MIN)),
    "a clock that went back": of(b.with_task(b.with_live(), steered_at=b.NOW + b.H)),
}


@pytest.mark.parametrize("name", PASSED)
def test_what_steer_passes(name: str) -> None:
    intent = delivery.steer(PASSED[name], b.NOW)
    assert intent is not None
    assert (intent.messages, intent.turn) == ((WORDS.id,), "turn 1")


def test_a_reason_moves_the_spacing_and_nothing_else() -> None:
    corrective = b.a_message(policy=MessagePolicy.STEER_NOW, corrective="wrong branch")
    spaced = b.with_message(corrective, b.with_task(b.with_live(), steered_at=b.NOW - b.MIN))
    intent = delivery.steer(of(spaced), b.NOW)
    assert intent is not None
    assert intent.messages == (corrective.id,), "what is not corrective stays behind"
    for name, (_, seen) in HOLDS.items():
        if name != "spacing":
            world = replace(seen, snapshot=b.with_message(corrective, seen.snapshot))
            assert delivery.steer(world, b.NOW) is None, name


FACTS: list[tuple[str, Command, Mark, Presence, dict[str, str], bool, type | None]] = [
    ("acknowledged by its turn", STEER, Mark.ACCEPTED, ALIVE, {"turn": "turn 1"}, False, Acknowledgement),
    ("acknowledged by another", STEER, Mark.ACCEPTED, ALIVE, {"turn": "turn 2"}, False, Doubtful),
    ("acknowledged by nobody", STEER, Mark.ACCEPTED, ALIVE, {}, False, Doubtful),
    ("refused", STEER, Mark.FAILED, ALIVE, {}, False, Undone),
    ("revoked", STEER, Mark.REVOKED, Presence.GONE, {}, False, Undone),
    ("nobody knows it", STEER, Mark.NONE, Presence.GONE, {}, False, MayYetBegin),
    ("claimed", STEER, Mark.CLAIMED, ALIVE, {}, False, Living),
    ("claimed and died", STEER, Mark.CLAIMED, Presence.GONE, {}, False, Undone),
    ("begun", STEER, Mark.BEGUN, ALIVE, {}, False, Living),
    ("begun and died", STEER, Mark.BEGUN, Presence.GONE, {}, False, Doubtful),
    ("begun, and its turn is over", STEER, Mark.BEGUN, ALIVE, {}, True, Doubtful),
    ("damaged", STEER, Mark.DAMAGED, Presence.UNKNOWN, {}, False, Doubtful),
]


@pytest.mark.parametrize("row", FACTS, ids=lambda row: row[0] if isinstance(row, tuple) else None)
def test_only_its_own_turn_proves_a_steer(
    row: tuple[str, Command, Mark, Presence, dict[str, str], bool, type | None],
) -> None:
    _, command, mark, performer, proof, over, expected = row
    seen = b.seen_of(command, mark, performer, ALIVE, proof=proof)
    facts = b.facts(command, mark, performer, ALIVE, proof=proof)
    (*_, finding) = reconcile.of_command(command, facts, seen, over=over)
    assert type(finding) is expected


def test_what_was_seen_to_begin_is_never_undone_by_a_journal_that_forgot() -> None:
    begun = replace(STEER, state=CommandState.SUBMITTED, submitted_at=b.NOW)
    for mark in (Mark.NONE, Mark.CLAIMED, Mark.REVOKED):
        facts = b.facts(begun, mark, Presence.GONE, ALIVE)
        (finding,) = reconcile.of_command(begun, facts, b.seen_of(begun, mark))
        assert isinstance(finding, Doubtful), mark


def stored(seen: Seen, policy: MessagePolicy, party: Party = Party.OPERATOR, now: datetime = b.NOW) -> delivery.Stored:
    outcome = delivery.store(seen, party, "sam", "mind the roof: ä", policy, None, now, b.new)
    assert isinstance(outcome, delivery.Stored)
    return outcome


PAUSED = b.with_task(b.IDLE, paused_at=b.NOW, paused_by="sam")
PROSPECTS: dict[str, tuple[Seen, MessagePolicy, Party, Way, timedelta | None]] = {
    "record": (live(), MessagePolicy.RECORD_ONLY, Party.OPERATOR, Way.RECORDED, None),
    "live": (live(), MessagePolicy.STEER_NOW, Party.OPERATOR, Way.STEER, timedelta(0)),
    "spaced": (HOLDS["spacing"][1], MessagePolicy.STEER_NOW, Party.OPERATOR, Way.STEER, b.MIN),
    "it cannot": (HOLDS["it cannot"][1], MessagePolicy.STEER_NOW, Party.OPERATOR, Way.NEXT_TURN, None),
    "idle": (b.see(b.IDLE), MessagePolicy.STEER_NOW, Party.OPERATOR, Way.SEND, timedelta(0)),
    "a neighbour, idle": (b.see(b.IDLE), MessagePolicy.STEER_NOW, Party.AGENT, Way.SEND, timedelta(0)),
    "paused": (b.see(PAUSED), MessagePolicy.STEER_NOW, Party.OPERATOR, Way.SEND, timedelta(0)),
    "a neighbour, paused": (b.see(PAUSED), MessagePolicy.STEER_NOW, Party.AGENT, Way.NEXT_TURN, None),
    "next turn": (b.see(b.IDLE), MessagePolicy.NEXT_TURN, Party.OPERATOR, Way.NEXT_TURN, None),
}


@pytest.mark.parametrize("name", PROSPECTS)
def test_nothing_more_is_promised_than_holds_now(name: str) -> None:
    seen, policy, party, way, after = PROSPECTS[name]
    prospect = stored(seen, policy, party).prospect
    assert prospect.way is way
    assert prospect.by == (None if after is None else b.NOW + after)


def test_words_are_stored_before_anything() -> None:
    message = stored(b.see(b.IDLE), MessagePolicy.NEXT_TURN).message
    assert (message.sender, message.size, message.state) == ("sam", 17, DeliveryState.DEFERRED)
    over = b.see(b.with_task(b.IDLE, state=TaskState.COMPLETED, ended_at=b.NOW))
    refused = delivery.store(over, Party.OPERATOR, "sam", "x", MessagePolicy.NEXT_TURN, None, b.NOW, b.new)
    assert not isinstance(refused, delivery.Stored)
    assert refused.rung is Rung.TERMINAL
