"""Reconciling: every mark of a journal, with every presence of host and agent, for every state of a command.

The tables below are the whole rule. Rows are the host (alive, gone, unknown), columns the agent (alive, gone,
unknown). Small letters say: not sure. A turn is never concluded to be over while anything of it may live, and never
to be undone where anything that carries it is seen.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.support import builders as b

from tenuto.core import reconcile
from tenuto.model.command import AttemptOutcome, Command, CommandKind
from tenuto.model.evidence import Cut, Ending, Mark, Presence, Rank
from tenuto.model.ids import TaskId, WaitId
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.model.reconciliation import (
    Acknowledgement,
    Begun,
    CameTrue,
    CannotComeTrue,
    CheckpointDue,
    CutShort,
    Doubtful,
    Finding,
    Living,
    Lost,
    MayYetBegin,
    TurnEnded,
    Undone,
)
from tenuto.model.work import Standing, WaitKind

DONE = Ending(0, None, None, ("status: working",), 1)
KILLED = Ending(None, 9, Cut.KILLED)

HERE = (Presence.ALIVE, Presence.GONE, Presence.UNKNOWN)
FRESH = (b.SEND, b.DOUBTFUL)
BEGUN = (b.SUBMITTED, replace(b.SUBMITTED, state=CommandState.AMBIGUOUS))
STAGES = {"fresh": FRESH, "begun": BEGUN, "acknowledged": (b.ACKNOWLEDGED,)}

#: U undone, M may yet begin, L living under its host, O orphaned, X lost, C cut short, E ended, D doubtful
CONTRADICTED = ("DDD", "DXD", "DDD")
TABLE: dict[tuple[str, str], tuple[str, str, str]] = {
    ("none", "fresh"): ("MMM", "MMM", "MMM"),
    ("none", "begun"): CONTRADICTED,
    ("none", "acknowledged"): CONTRADICTED,
    ("revoked", "fresh"): ("DUU", "DUU", "DUU"),
    ("revoked", "begun"): CONTRADICTED,
    ("revoked", "acknowledged"): CONTRADICTED,
    ("failed", "fresh"): ("DUU", "DUU", "DUU"),
    ("failed", "begun"): ("DUU", "DUU", "DUU"),
    ("failed", "acknowledged"): CONTRADICTED,
    ("claimed", "fresh"): ("LLL", "DUU", "lll"),
    ("claimed", "begun"): CONTRADICTED,
    ("claimed", "acknowledged"): CONTRADICTED,
    ("begun", "fresh"): ("LLL", "OXo", "Ooo"),
    ("begun", "begun"): ("LLL", "OXo", "Ooo"),
    ("begun", "acknowledged"): ("LLL", "OXo", "Ooo"),
    ("accepted", "fresh"): ("LLL", "OCo", "Ooo"),
    ("accepted", "begun"): ("LLL", "OCo", "Ooo"),
    ("accepted", "acknowledged"): ("LLL", "OCo", "Ooo"),
    ("ended", "fresh"): ("EEE", "EEE", "EEE"),
    ("ended", "begun"): ("EEE", "EEE", "EEE"),
    ("ended", "acknowledged"): ("EEE", "EEE", "EEE"),
    ("killed", "fresh"): ("OEo", "OEo", "OEo"),
    ("killed", "begun"): ("OEo", "OEo", "OEo"),
    ("killed", "acknowledged"): ("OEo", "OEo", "OEo"),
    ("untold", "fresh"): CONTRADICTED,
    ("untold", "begun"): CONTRADICTED,
    ("untold", "acknowledged"): CONTRADICTED,
    ("damaged", "fresh"): CONTRADICTED,
    ("damaged", "begun"): CONTRADICTED,
    ("damaged", "acknowledged"): CONTRADICTED,
}
MARKS = {
    "none": (Mark.NONE, None),
    "revoked": (Mark.REVOKED, None),
    "failed": (Mark.FAILED, None),
    "claimed": (Mark.CLAIMED, None),
    "begun": (Mark.BEGUN, None),
    "accepted": (Mark.ACCEPTED, None),
    "ended": (Mark.ENDED, DONE),
    "killed": (Mark.ENDED, KILLED),
    "untold": (Mark.ENDED, None),
    "damaged": (Mark.DAMAGED, None),
}
CASES = [
    pytest.param(name, command, performer, agent, TABLE[name, stage][HERE.index(performer)][HERE.index(agent)],
                 id=f"{name}-{stage}-{command.state}-{performer}-{agent}")
    for (name, stage) in TABLE
    for command in STAGES[stage]
    for performer, agent in itertools.product(HERE, HERE)
]  # fmt: skip


def letter(finding: Finding) -> str:
    """A finding as the table writes it."""
    match finding:
        case Undone():
            return "U"
        case MayYetBegin():
            return "M"
        case Living(orphaned=orphaned, unsure=unsure):
            kind = "O" if orphaned else "L"
            return kind.lower() if unsure else kind
        case Lost():
            return "X"
        case CutShort():
            return "C"
        case TurnEnded():
            return "E"
        case Doubtful():
            return "D"
        case _:
            return ""


def look(name: str, command: Command, performer: Presence, agent: Presence, *, here: bool = False) -> list[Finding]:
    mark, ending = MARKS[name]
    seen = b.seen_of(command, mark, performer, agent, ending=ending, launched_here=here)
    return list(
        reconcile.of_command(command, b.facts(command, mark, performer, agent, ending=ending, launched_here=here), seen)
    )


def test_the_table_is_whole() -> None:
    assert {name for name, _ in TABLE} == set(MARKS)
    assert set(TABLE) == set(itertools.product(MARKS, STAGES))
    assert {mark for mark, _ in MARKS.values()} == set(Mark)


@pytest.mark.parametrize("name, command, performer, agent, expected", CASES)
def test_every_combination(name: str, command: Command, performer: Presence, agent: Presence, expected: str) -> None:
    findings = look(name, command, performer, agent)
    assert "".join(map(letter, findings)) == expected
    if name in ("accepted", "ended", "killed", "untold"):
        acknowledged = any(isinstance(f, Acknowledgement) for f in findings)
        assert acknowledged == (command.state is not CommandState.ACKNOWLEDGED)
    else:
        assert not any(isinstance(f, Acknowledgement) for f in findings)
    begins = name == "begun" and command.state is CommandState.ARMED
    assert any(isinstance(f, Begun) for f in findings) == begins


def test_nothing_is_concluded_while_anything_may_live() -> None:
    commands = [command for stage in STAGES.values() for command in stage]
    for name, command, performer, agent in itertools.product(MARKS, commands, HERE, HERE):
        findings = [*look(name, command, performer, agent), *look(name, command, performer, agent, here=True)]
        case = (name, command.state, performer, agent)
        if any(isinstance(f, Lost | CutShort) for f in findings):
            assert (performer, agent) == (Presence.GONE, Presence.GONE), case
        if any(isinstance(f, Undone) for f in findings):
            assert agent is not Presence.ALIVE, case
            assert name in ("revoked", "failed") or performer is Presence.GONE, case
            assert command.state is not CommandState.ACKNOWLEDGED, case
        if any(isinstance(f, TurnEnded) for f in findings) and name == "killed":
            assert agent is Presence.GONE, case


@pytest.mark.parametrize("command", [*FRESH, *BEGUN, b.ACKNOWLEDGED])
def test_what_this_executor_launches_may_be_about_to_claim(command: Command) -> None:
    findings = look("none", command, Presence.GONE, Presence.GONE, here=True)
    assert "".join(map(letter, findings)) == ("L" if command.submitted_at is None else "D")


@pytest.mark.parametrize("kind", [CommandKind.CHECK, CommandKind.INTERRUPT])
@pytest.mark.parametrize("state", [CommandState.ARMED, CommandState.SUBMITTED])
def test_a_check_is_settled_by_its_own_end_only(kind: CommandKind, state: CommandState) -> None:
    submitted = b.NOW if state is CommandState.SUBMITTED else None
    command = replace(b.CHECK, kind=kind, state=state, submitted_at=submitted)
    running = look("accepted", command, Presence.ALIVE, Presence.ALIVE)
    assert not any(isinstance(f, Acknowledgement) for f in running)
    assert any(isinstance(f, Begun) for f in running) == (state is CommandState.ARMED)
    assert "".join(map(letter, running)) == "L"
    over = look("ended", command, Presence.GONE, Presence.GONE)
    assert [type(f) for f in over] == [Acknowledgement, TurnEnded]
    assert "".join(map(letter, look("killed", command, Presence.GONE, Presence.ALIVE))) == "O"


@pytest.mark.parametrize("command", [b.RELEASED, replace(b.ACKNOWLEDGED, late=True, attempt_id=b.LAST.id)])
@pytest.mark.parametrize("name", MARKS)
def test_after_a_verdict_evidence_may_only_acknowledge_or_show_life(command: Command, name: str) -> None:
    for performer, agent in itertools.product(HERE, HERE):
        findings = look(name, command, performer, agent)
        assert all(isinstance(f, Acknowledgement | Living) for f in findings)
        proves = name in ("accepted", "ended", "killed", "untold") and command.state is CommandState.RELEASED
        assert any(isinstance(f, Acknowledgement) for f in findings) == proves
        assert any(isinstance(f, Living) for f in findings) == (Presence.ALIVE in (performer, agent))


def test_what_was_seen_before_the_arming_says_nothing() -> None:
    early = b.seen_of(b.SEND, Mark.ENDED, rank=Rank.PAGE, at=b.NOW - b.H, ending=DONE)
    assert b.found(b.with_live(b.SEND), early).findings == ()
    later = b.seen_of(b.SEND, Mark.ENDED, rank=Rank.PAGE, ending=DONE, proof={"turn": b.SEND.marker})
    assert b.found(b.with_live(b.SEND), later).findings
    journal = b.seen_of(b.SEND, Mark.ENDED, at=b.NOW - b.H, ending=DONE)
    assert b.found(b.with_live(b.SEND), journal).findings, "a journal's entry bears the command's own name"


@pytest.mark.parametrize("mark", [Mark.ACCEPTED, Mark.ENDED])
@pytest.mark.parametrize("proof", [{}, {"turn": ""}, {"turn": b.CHECK.marker}, {"turn": "u-17"}])
def test_a_page_proves_a_turn_only_by_the_commands_own_marker(mark: Mark, proof: dict[str, str]) -> None:
    """What took effect there without it is another turn, or nobody's: a person is asked and nothing is acknowledged."""
    ending = DONE if mark is Mark.ENDED else None
    for command in (b.SEND, b.SUBMITTED, b.DOUBTFUL, b.RELEASED):
        other = b.seen_of(command, mark, rank=Rank.PAGE, ending=ending, proof=proof)
        found = b.found(b.with_live(command), other).findings
        assert not any(isinstance(each, Acknowledgement | TurnEnded) for each in found), command.state
        if command.state is not CommandState.RELEASED:
            assert any(isinstance(each, Doubtful) for each in found), command.state
        own = b.seen_of(command, mark, rank=Rank.PAGE, ending=ending, proof={"turn": command.marker})
        proven = b.found(b.with_live(command), own).findings
        assert any(isinstance(each, Acknowledgement) for each in proven), command.state
    proven_before = b.seen_of(b.ACKNOWLEDGED, mark, rank=Rank.PAGE, ending=ending, proof=proof)
    assert not any(isinstance(each, Doubtful) for each in b.found(b.with_live(b.ACKNOWLEDGED), proven_before).findings)


def test_hearsay_settles_nothing() -> None:
    assert b.found(b.with_live(b.SEND), b.seen_of(b.SEND, Mark.ENDED, rank=Rank.REPORTED, ending=DONE)).findings == ()


def test_evidence_of_commands_nobody_asked_about_is_left_alone() -> None:
    assert b.found(b.IDLE, b.ended(b.SEND, "status: working")).findings == ()


def test_subjects_are_the_open_ones_the_live_one_and_the_released_one() -> None:
    snapshot = replace(b.with_live(b.ACKNOWLEDGED), commands=(b.HALT,), released=b.RELEASED)
    wanted = reconcile.subjects(replace(snapshot, released=replace(b.RELEASED, id=b.CHECK.id)))
    assert [command.id for command in wanted] == [b.HALT.id, b.SEND.id, b.CHECK.id]
    assert reconcile.subjects(b.with_live(b.SEND)) == (b.SEND,)


# -- waits

OTHER = TaskId("t-other")


@pytest.mark.parametrize(
    "state, expected",
    [
        (TaskState.PENDING, None),
        (TaskState.ACTIVE, None),
        (TaskState.COMPLETED, CameTrue),
        (TaskState.FAILED, CannotComeTrue),
        (TaskState.CANCELLED, CannotComeTrue),
        (None, CannotComeTrue),
    ],
)
def test_a_wait_for_a_task(state: TaskState | None, expected: type[Finding] | None) -> None:
    others = {OTHER: state} if state is not None else {}
    snapshot = replace(b.with_wait(WaitKind.TASK, subject=OTHER), others=others)
    assert [type(f) for f in b.found(snapshot).findings] == ([expected] if expected else [])


def test_a_wait_for_itself_is_a_persons() -> None:
    snapshot = replace(b.with_wait(WaitKind.TASK, subject=b.TASK.id), others={b.TASK.id: TaskState.ACTIVE})
    assert [type(f) for f in b.found(snapshot).findings] == [CannotComeTrue]
    assert [type(f) for f in b.found(b.with_wait(WaitKind.TASK, subject=None)).findings] == [CannotComeTrue]


@pytest.mark.parametrize("kind", [WaitKind.PATH, WaitKind.COMMIT])
@pytest.mark.parametrize("there, true", [(True, True), (False, False), (None, False)])
def test_a_wait_for_a_path_or_commit(kind: WaitKind, there: bool | None, true: bool) -> None:
    snapshot = b.with_wait(kind, id=WaitId("w-1"), subject="out.txt")
    assert bool(b.found(snapshot, resolved={"w-1": there}).findings) == true


@pytest.mark.parametrize("kind", [WaitKind.TIME, WaitKind.LIMIT])
def test_a_wait_for_a_time(kind: WaitKind) -> None:
    assert b.found(b.with_wait(kind, until=b.NOW)).findings
    assert not b.found(b.with_wait(kind, until=b.NOW + b.S)).findings
    assert not b.found(b.with_wait(kind, until=None)).findings


@pytest.mark.parametrize("kind", [WaitKind.HUMAN, WaitKind.PERMISSION])
def test_a_persons_wait_never_ends_by_itself(kind: WaitKind) -> None:
    assert not b.found(b.with_wait(kind, until=b.NOW - b.DAY), now=b.NOW + b.DAY).findings


def test_a_cap_wait_ends_when_the_cap_is_raised() -> None:
    waiting = b.with_wait(WaitKind.CAP)
    assert not b.found(b.with_task(waiting, max_attempts=1, attempts=1)).findings
    assert b.found(b.with_task(waiting, max_attempts=2, attempts=1)).findings


def test_the_waits_of_a_task_that_is_over_are_nobodys() -> None:
    over = b.cancelled(b.with_wait(WaitKind.TIME, until=b.NOW - b.H))
    assert b.found(over, now=b.NOW + b.DAY).findings == ()


def test_a_checkpoint_is_due_of_a_living_task_only() -> None:
    worked = b.with_task(active_since_report=22 * b.MIN)
    assert [type(f) for f in b.found(worked).findings] == [CheckpointDue]
    assert b.found(b.cancelled(worked)).findings == ()


# -- the fence


def test_the_fence_has_no_times_and_no_counters() -> None:
    base = b.found(b.IDLE).fence
    later = b.with_task(attempts=9, last_served_at=b.NOW + b.H, look_at=b.NOW + b.H, revision=99)
    assert b.found(later, now=b.NOW + b.H).fence == base


@pytest.mark.parametrize(
    "other",
    [
        b.with_task(standing=Standing.BLOCKED),
        b.with_task(state=TaskState.PENDING),
        replace(b.IDLE, conversation=None),
        replace(b.IDLE, conversation=replace(b.TALK, lease_number=2)),
        replace(b.IDLE, last=None),
        replace(b.IDLE, last=replace(b.LAST, outcome=AttemptOutcome.LOST)),
        replace(b.IDLE, commands=(b.SEND,)),
        b.with_wait(),
        b.claimed(),
    ],
)
def test_every_member_changes_the_fence(other: object) -> None:
    assert isinstance(other, type(b.IDLE))
    assert b.found(other).fence != b.found(b.IDLE).fence


def test_the_workspace_is_a_member_where_it_was_looked_at() -> None:
    fences = {b.found(b.IDLE, *seen).fence for seen in ((), (b.workspace("w1"),), (b.workspace("w2"),))}
    assert len(fences) == 3
    assert b.found(b.IDLE, b.acceptance(True)).acceptance is not None


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize("anyway", [False, True])
def test_two_looks_are_needed_after_an_end_that_was_not_seen(standing: Standing, anyway: bool) -> None:
    needed = reconcile.proof_needed(b.with_task(standing=standing), anyway=anyway)
    assert needed == (anyway or standing is Standing.CUT_SHORT)


def test_a_try_that_was_never_sent_does_not_make_an_unseen_end_seen() -> None:
    unsent = replace(b.LAST, outcome=AttemptOutcome.UNSENT)
    assert reconcile.proof_needed(b.with_task(replace(b.IDLE, last=unsent), standing=Standing.CUT_SHORT), anyway=False)
