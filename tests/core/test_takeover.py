"""What follows from what is seen of a takeover: proof passes the lease, silence never does, nothing is done twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support import builders as b

from tenuto.core import decide, replacing, rungs, settle, takeover
from tenuto.model.change import Commit
from tenuto.model.command import Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Revoke, Rung
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence, Rank, WorkspaceFacts
from tenuto.model.ids import CommandId, ConversationId
from tenuto.model.lifecycle import CommandState, LeaseState, TaskState
from tenuto.model.message import Message
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import SessionState, ToolBinding, ToolFacts
from tenuto.model.work import Task, Wait

OLD, NEW, THIRD = ("r_" + each * 24 for each in "abc")
BOUND = ToolBinding("real", "s_" + "0" * 24)
HEIR = Conversation(
    ConversationId("v-heir"), 1, b.IDLE.task.id, "elsewhere", "host", LeaseState.CANDIDATE, None, None, b.NOW
)  # fmt: skip
S = timedelta(seconds=1)


def session(run: str | None) -> ToolFacts:
    return ToolFacts(BOUND, "4.0", SessionState.ACTIVE, run, sequence=7, active_at=b.NOW)


def open_one(state: CommandState = CommandState.SUBMITTED) -> Command:
    ground = takeover.ground(b.see(b.IDLE, b.workspace()).found.members)
    return Command(
        id=CommandId("c-takeover"), revision=1, kind=CommandKind.TAKEOVER, task_id=b.IDLE.task.id, attempt_id=None,
        conversation_id=HEIR.id, executor="local-shell", state=state, epoch=1, fence="f", scopes=("task:x",),
        created_at=b.NOW, digest=ground, armed_at=b.NOW, target=f"{BOUND.subject} {OLD}",
        submitted_at=b.NOW if state is not CommandState.ARMED else None,
    )  # fmt: skip


def world(command: Command, *, handed: bool = True) -> Snapshot:
    held = b.IDLE.conversation
    assert held is not None
    holder = replace(held, handoff_to=HEIR.id if handed else None)
    return replace(b.with_tools(b.IDLE, BOUND), commands=(command,), heir=HEIR, conversation=holder)


def see(
    command: Command,
    mark: Mark,
    run: str | None = OLD,
    proof: str | None = None,
    *,
    performer: Presence = Presence.GONE,
    ground: Observation | None = None,
    snapshot: Snapshot | None = None,
    rank: Rank = Rank.JOURNAL,
) -> Seen:
    told = {"session": BOUND.subject, "run": proof} if proof is not None else {}
    facts = CommandFacts(command.id, None, mark, performer, Presence.GONE, proof=told, reason="why" if proof else None)
    looked = Observation("local-shell", rank, command.id, b.NOW, facts)
    tool = Observation("local-shell", Rank.JOURNAL, BOUND.subject, b.NOW, session(run))
    return b.see(snapshot or world(command), looked, tool, ground or b.workspace())


def settled(seen: Seen) -> tuple[Commit, Command | None]:
    commit = settle.settle(seen, b.NOW, b.new)
    assert commit is not None
    rows = [row for row in commit.puts if isinstance(row, Command)]
    return commit, rows[-1] if rows else None


def rows(commit: Commit, kind: type) -> list[object]:
    return [row for row in commit.puts if isinstance(row, kind)]


def test_a_new_run_that_is_seen_passes_the_lease_in_the_same_commit() -> None:
    commit, command = settled(see(open_one(), Mark.ACCEPTED, NEW, NEW))
    assert command is not None
    assert command.state is CommandState.ACKNOWLEDGED
    talks = {row.id: row.state for row in commit.puts if isinstance(row, Conversation)}
    assert talks == {b.IDLE.conversation.id: LeaseState.SUPERSEDED, HEIR.id: LeaseState.ACTIVE}  # type: ignore[union-attr]
    (task,) = rows(commit, Task)
    assert isinstance(task, Task)
    assert task.lease_number == b.IDLE.task.lease_number + 1
    assert len(rows(commit, Message)) == 1
    assert commit.frees == (command.id,)


@pytest.mark.parametrize(
    ("mark", "run", "proof", "performer", "becomes"),
    [
        (Mark.ACCEPTED, OLD, NEW, Presence.GONE, None),  # the session is not seen to belong to it yet
        (Mark.ACCEPTED, THIRD, NEW, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.ACCEPTED, NEW, None, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.ACCEPTED, OLD, OLD, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.BEGUN, OLD, None, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.BEGUN, NEW, None, Presence.GONE, CommandState.AMBIGUOUS),  # somebody else's may be the new run
        (Mark.BEGUN, OLD, None, Presence.ALIVE, None),
        (Mark.BEGUN, OLD, None, Presence.UNKNOWN, None),
        (Mark.NONE, OLD, None, Presence.GONE, CommandState.AMBIGUOUS),  # its journal is gone although it began
        (Mark.DAMAGED, OLD, None, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.CLAIMED, OLD, None, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.REVOKED, OLD, None, Presence.GONE, CommandState.AMBIGUOUS),
        (Mark.FAILED, OLD, None, Presence.GONE, CommandState.FAILED),
    ],
)
def test_nothing_but_proof_passes_the_lease(
    mark: Mark, run: str, proof: str | None, performer: Presence, becomes: CommandState | None
) -> None:
    seen = see(open_one(), mark, run, proof, performer=performer)
    commit = settle.settle(seen, b.NOW, b.new)
    found = [row for row in commit.puts if isinstance(row, Command)] if commit is not None else []
    assert [row.state for row in found] == ([becomes] if becomes is not None else [])
    assert commit is None or not rows(commit, Conversation)


def test_a_takeover_that_never_began_is_revoked_and_one_that_its_maker_left_is_undone() -> None:
    armed = open_one(CommandState.ARMED)
    assert decide.decide(see(armed, Mark.NONE), b.NOW).intent == Revoke(armed.id)
    for mark in (Mark.CLAIMED, Mark.REVOKED, Mark.FAILED):
        _, command = settled(see(armed, mark))
        assert command is not None
        assert command.state is CommandState.FAILED


def test_hearsay_settles_nothing() -> None:
    seen = see(open_one(), Mark.ACCEPTED, NEW, NEW, rank=Rank.REPORTED)
    commit = settle.settle(seen, b.NOW, b.new)
    assert commit is None or not rows(commit, Command)


def test_while_it_is_open_nothing_else_is_done_for_the_task() -> None:
    seen = see(open_one(), Mark.BEGUN, performer=Presence.ALIVE)
    because = rungs.unresolved(seen, b.NOW)
    assert because is not None
    assert "takeover" in because.sentence


@pytest.mark.parametrize("case", ["workspace", "not handed", "abandoned", "over"])
def test_where_the_lease_cannot_pass_a_person_is_asked_and_told(case: str) -> None:
    command = open_one()
    snapshot = world(command, handed=case != "not handed")
    ground = None
    if case == "workspace":
        other = b.workspace()
        assert isinstance(other.facts, WorkspaceFacts)
        ground = replace(other, facts=replace(other.facts, cursor="something else"))
    if case == "abandoned":
        snapshot = replace(snapshot, heir=replace(HEIR, state=LeaseState.ABANDONED))
    if case == "over":
        snapshot = b.with_task(snapshot, state=TaskState.CANCELLED)
    commit, after = settled(see(command, Mark.ACCEPTED, NEW, NEW, ground=ground, snapshot=snapshot))
    assert after is not None
    assert after.state is CommandState.ACKNOWLEDGED, "that it took effect is true in any case"
    assert not rows(commit, Conversation)
    assert len(rows(commit, Wait)) == (0 if case == "over" else 1)


def test_it_is_armed_only_where_the_lease_could_pass() -> None:
    none = replace(world(open_one()), commands=())
    tool = Observation("local-shell", Rank.JOURNAL, BOUND.subject, b.NOW, session(OLD))
    looked = b.see(none, tool, b.workspace())
    samples = tuple(b.sampled(looked, age * S) for age in (2, 8))
    ready = b.see(replace(none, samples=samples), tool, b.workspace())

    def armed(seen: Seen, heir: Conversation = HEIR) -> object:
        return replacing.armed(seen, heir, session(OLD), CommandId("c-new"), "local-shell", b.NOW, b.new)

    made = armed(ready)
    assert not isinstance(made, Because), made
    assert made.command.scopes == (f"task:{none.task.id}", f"tool:{BOUND.subject}")  # type: ignore[attr-defined]
    assert made.commit.holds  # type: ignore[attr-defined]
    because = armed(looked)
    assert isinstance(because, Because)
    assert because.rung is Rung.FENCE
    held = ready.snapshot.conversation
    assert held is not None
    unhanded = replace(ready, snapshot=replace(ready.snapshot, conversation=replace(held, handoff_to=None)))
    for refused in (armed(unhanded), armed(ready, replace(HEIR, state=LeaseState.ABANDONED))):
        assert isinstance(refused, Because)
        assert refused.rung is Rung.LEASE
