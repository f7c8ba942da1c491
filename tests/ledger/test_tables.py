"""The tables refuse nonsense: every constraint, every move and every unique truth is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from sqlalchemy import CheckConstraint
from tests.ledger.world import NOW, Counting, Place, Turn, digest, place, turn, wake, written

from tenuto.model.chain import Caps, Chain, Link, SourcePlace
from tenuto.model.change import Busy, Commit, Committed, Row
from tenuto.model.command import AttemptOutcome, Command
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sighting
from tenuto.model.faults import IllegalMove
from tenuto.model.forge import ForgePlace, MergeMethod
from tenuto.model.ids import (
    ChainId,
    CommandId,
    ConversationId,
    LimitId,
    LinkId,
    MandateId,
    MessageId,
    ObservationId,
    PermissionId,
    PhaseId,
    ProposalId,
    ReviewId,
    TaskId,
    TextId,
    TokenId,
    WaitId,
    WorktreeId,
)
from tenuto.model.lifecycle import (
    OPEN_COMMAND,
    AttemptState,
    ChainState,
    CommandState,
    DeliveryState,
    LeaseState,
    PhaseState,
    ProposalState,
    RunState,
    TaskState,
    WorktreeState,
)
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, MergeMode, Proposal, Review, Verdict
from tenuto.model.message import Message, MessageKind, MessagePolicy
from tenuto.model.permission import Permission
from tenuto.model.phase import Landing, Phase
from tenuto.model.snapshot import Role, Token
from tenuto.model.work import Disposition, DispositionSource, Wait, WaitKind, WakeKind
from tenuto.model.worktree import Base, Worktree
from tenuto.store import tables
from tenuto.store.ledger import TableLedger

pytestmark = pytest.mark.anyio
DONE = Disposition("it is done", DispositionSource.OPERATOR, TaskState.ACTIVE, None, verified=False)


class World:
    """Rows that are right, to be spoilt one field at a time."""

    def __init__(self, ids: Counting) -> None:
        self.ids = ids
        self.place: Place = place(ids)
        self.turn: Turn = turn(ids, self.place)
        self.run, self.task, self.conversation = self.place.run, self.place.task, self.place.conversation
        self.attempt, self.command = self.turn.attempt, self.turn.command
        self.text = self.place.text
        self.wait = Wait(WaitId(ids.new("wait")), 1, self.task.id, WaitKind.HUMAN, "Which one?", NOW)
        self.wake = wake(ids, self.task)
        self.token = Token(TokenId(ids.new("token")), 1, digest(ids.secret()), Role.AGENT, None, None, NOW)
        self.message = Message(
            id=MessageId(ids.new("message")),
            revision=1,
            task_id=self.task.id,
            sender="operator",
            kind=MessageKind.WORDS,
            policy=MessagePolicy.NEXT_TURN,
            text=self.text.id,
            size=3,
            state=DeliveryState.DEFERRED,
            created_at=NOW,
            not_before=NOW,
        )

        self.chain = Chain(
            ChainId(ids.new("chain")), 1, self.run.id, ChainState.OPEN, "goal", "a.b/c/d", "all",
            SourcePlace("queue", "/queue"), (), Caps(units=3), 10, "/", NOW,
        )  # fmt: skip
        self.link = Link(
            LinkId(ids.new("link")), 1, self.chain.id, 1, None, self.task.id, "a", "queue:/queue", digest("a"), 1, NOW
        )
        self.beside = place(ids)
        path, branch = f"/trees/{self.task.id}", f"tenuto/{self.task.id}"
        self.worktree = Worktree(
            WorktreeId(ids.new("worktree")), 1, self.task.id, self.chain.id, "/repo", path, branch,
            Base("origin", "main"), WorktreeState.PLANNED, NOW,
        )  # fmt: skip
        self.permission = Permission(
            PermissionId(ids.new("permission")), 1, self.task.id, self.attempt.id, self.command.id, "7", "Bash", "make",
            digest("make"), NOW,
        )  # fmt: skip
        self.limit = UsageLimit(
            LimitId(ids.new("limit")), 1, "claude/1", "five_hour", "hit", NOW, NOW, self.task.id, 1, NOW
        )
        self.mandate = Mandate(
            MandateId(ids.new("mandate")), 1, self.chain.id, ForgePlace("git", "/remote"), MergeMode.SELF,
            MergeMethod.MERGE, "tenuto/", "main", ("check",), 10, NOW,
        )  # fmt: skip
        self.proposal = Proposal(
            ProposalId(ids.new("proposal")), 1, self.chain.id, self.task.id, "a", ProposalState.OPEN, 7, "tenuto/a",
            "main", "a" * 40, "/remote#a", NOW,
        )  # fmt: skip
        self.review = Review(ReviewId(ids.new("review")), 1, self.proposal.id, self.beside.task.id, 1, "a" * 40, NOW)
        self.phase = Phase(PhaseId(ids.new("phase")), 1, self.chain.id, "a", self.task.id, 7, PhaseState.OPEN, NOW)

    def without(self, row: Row) -> tuple[Row, ...]:
        """Everything that `row` needs beside it."""
        parents: tuple[Row, ...] = (*self.place.rows, self.attempt, self.chain)
        return tuple(parent for parent in parents if parent.id != row.id)


def spoilt(world: World) -> dict[str, Row]:
    """For every CHECK, a row that breaks it and nothing else."""
    w = world
    settled = replace(w.command, state=CommandState.RELEASED, settled_at=NOW, released_by="me", verdict="not done")
    return {
        "text_removed_has_no_body": replace(w.text, removed_at=NOW),
        "run_state_known": _forced(w.run, state="paused"),
        "run_revision_counts": replace(w.run, revision=0),
        "run_stopped_at": replace(w.run, state=RunState.STOPPED),
        "task_state_known": _forced(w.task, state="sleeping"),
        "task_revision_counts": replace(w.task, revision=-1),
        "task_ended_at": replace(w.task, state=TaskState.COMPLETED, disposition=DONE),
        "task_disposition": replace(w.task, state=TaskState.COMPLETED, ended_at=NOW),
        "task_disposition_whole": replace(
            w.task, state=TaskState.FAILED, ended_at=NOW, disposition=_forced(DONE, source=None)
        ),
        "task_started_at": replace(w.task, started_at=None),
        "task_paused_by_somebody": replace(w.task, paused_at=NOW),
        "task_ready_whole": replace(w.task, ready_at=NOW),
        "task_in_line_is_pending": replace(w.task, state=TaskState.ACTIVE, queued_at=NOW),
        "conversation_state_known": _forced(w.conversation, state="lost"),
        "conversation_revision_counts": replace(w.conversation, revision=0),
        "conversation_leased": replace(w.conversation, expires_at=None),
        "conversation_ended_at": replace(w.conversation, state=LeaseState.SUPERSEDED),
        "attempt_state_known": _forced(w.attempt, state="running"),
        "attempt_revision_counts": replace(w.attempt, revision=0),
        "attempt_live_at": replace(w.attempt, live_at=None),
        "attempt_ended_at": replace(w.attempt, state=AttemptState.ENDED, ended_at=NOW),
        "attempt_not_ended": replace(w.attempt, outcome=AttemptOutcome.LOST),
        "command_state_known": _forced(w.command, state="sent", settled_at=None),
        "command_revision_counts": replace(w.command, revision=0),
        "command_armed_at": replace(w.command, armed_at=None),
        "command_queued": replace(w.command, state=CommandState.QUEUED),
        "command_submitted_at": replace(w.command, state=CommandState.SUBMITTED),
        "command_settled_at": replace(w.command, settled_at=NOW),
        "command_was_armed": replace(settled, state=CommandState.FAILED, armed_at=None),
        "command_released_by_somebody": replace(settled, verdict=None),
        "wait_revision_counts": replace(w.wait, revision=0),
        "wait_closed_by_something": replace(w.wait, closed_at=NOW),
        "wake_revision_counts": replace(w.wake, revision=0),
        "wake_consumed": replace(w.wake, consumed_by=w.attempt.id),
        "message_state_known": _forced(w.message, state="read"),
        "message_revision_counts": replace(w.message, revision=0),
        "message_carried_by": replace(w.message, state=DeliveryState.CARRIED),
        "message_settled_at": replace(w.message, state=DeliveryState.DROPPED),
        "text_digest_is_sha256": replace(w.text, digest="short"),
        "token_digest_is_sha256": replace(w.token, digest="short"),
        "token_revision_counts": replace(w.token, revision=0),
        "sighting_ranked": Sighting(
            ObservationId(w.ids.new("observation")), w.task.id, "page", "me", 6, NOW, NOW, digest("x"), ()
        ),
        "chain_state_known": _forced(w.chain, state="tired"),
        "chain_revision_counts": replace(w.chain, revision=0),
        "chain_ended_at": replace(w.chain, state=ChainState.COMPLETE),
        "chain_counts": replace(w.chain, processed=1),
        "chain_attempt_cap": replace(w.chain, attempt_cap=21),
        "link_revision_counts": replace(w.link, revision=0),
        "link_counts": replace(w.link, attempt=0),
        "link_first_has_no_predecessor": replace(w.link, position=2),
        "link_recorded_outcome": replace(w.link, recorded_at=NOW),
        "link_key_is_sha256": replace(w.link, key="short"),
        "worktree_state_known": _forced(w.worktree, state="lost"),
        "worktree_revision_counts": replace(w.worktree, revision=0),
        "worktree_ended_at": replace(w.worktree, state=WorktreeState.GONE),
        "worktree_begun": replace(w.worktree, state=WorktreeState.READY),
        "permission_revision_counts": replace(w.permission, revision=0),
        "permission_answered_by_somebody": replace(w.permission, answered_by="sam"),
        "permission_answered_at": replace(w.permission, answered_at=NOW),
        "permission_closed_somehow": replace(w.permission, outcome="told"),
        "permission_fingerprint_is_sha256": replace(w.permission, fingerprint="short"),
        "permission_told_something": replace(w.permission, told_at=NOW),
        "usagelimit_revision_counts": replace(w.limit, revision=0),
        "usagelimit_closed_by_something": replace(w.limit, closed_at=NOW),
        "usagelimit_counts": replace(w.limit, met=0),
        "mandate_revision_counts": replace(w.mandate, revision=0),
        "mandate_reviews_count": replace(w.mandate, reviews=0),
        "proposal_state_known": _forced(w.proposal, state="lost"),
        "proposal_revision_counts": replace(w.proposal, revision=0),
        "proposal_counts": replace(w.proposal, number=0),
        "proposal_settled_at": replace(w.proposal, settled_at=NOW),
        "proposal_merged_as": replace(w.proposal, merged_as="b" * 40),
        "proposal_gated_at_a_commit": replace(w.proposal, gate_head="a" * 40),
        "review_revision_counts": replace(w.review, revision=0),
        "review_counts": replace(w.review, number=0),
        "review_said_at": replace(w.review, said_at=NOW),
        "phase_state_known": _forced(replace(w.phase, settled_at=NOW), state="lost"),
        "phase_revision_counts": replace(w.phase, revision=0),
        "phase_number_counts": replace(w.phase, number=0),
        "phase_merged": replace(w.phase, state=PhaseState.MERGED, settled_at=NOW),
        "phase_settled_at": replace(w.phase, settled_at=NOW),
    }


class _Word(str):
    """A word that is no member of its enum, in an enum's clothes."""

    __slots__ = ()

    @property
    def _value_(self) -> str:
        return str(self)


def _forced(row: Any, **words: str | None) -> Any:
    return replace(row, **{name: _Word(word) if word is not None else None for name, word in words.items()})


#: Constraints of the two rows that no commit inserts; they are tried in their own tests.
SINGLE = {
    "registry_is_one",
    "registry_held_by_somebody",
    "registry_merging_off_by_somebody",
    "registry_revision_counts",
    "leadership_is_one",
    "leadership_epoch_counts",
}


def constraints() -> set[str]:
    return {
        str(constraint.name)
        for table in tables.TABLES.values()
        for made in (table, *table.columns)
        for constraint in made.constraints
        if isinstance(constraint, CheckConstraint)
    }


def test_every_check_is_tried() -> None:
    assert set(spoilt(World(Counting()))) | SINGLE == constraints()


@pytest.mark.parametrize("name", sorted(spoilt(World(Counting()))))
async def test_a_check_refuses(ledger: TableLedger, ids: Counting, name: str) -> None:
    world = World(ids)
    row = spoilt(world)[name]
    needed = world.without(row)
    if row.id in {parent.id for parent in world.place.rows}:
        needed = tuple(parent for parent in needed if parent.id != world.attempt.id)
    # A revision that does not count cannot replace a row either, so those are written past the commit's own rule.
    commit = Commit(puts=(*needed, row))
    if name.endswith("_revision_counts"):
        await _insert_directly(ledger, needed, row, name)
        return
    with pytest.raises(IllegalMove, match=name):
        await ledger.commit(commit)
    assert ledger.tasks(5) == ()


async def _insert_directly(ledger: TableLedger, needed: tuple[Row, ...], row: Row, name: str) -> None:
    shape = next(shape for shape in tables.ORDER if isinstance(row, shape.cls))
    places = [shape.cls for shape in tables.ORDER]
    known = [parent for parent in needed if places.index(type(parent)) < places.index(type(row))]
    await written(ledger, Commit(puts=tuple(known)))
    sql = ledger._transactions._inserts[shape.name]
    with pytest.raises(ledger._dialect.failure, match=name):
        await ledger._writer.do(lambda connection: connection.execute(sql, shape.dump(row)))


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO registry (id, revision, created_at, one) VALUES ('g-2', 1, 0, 1)",
        "INSERT INTO registry (id, revision, created_at, one) VALUES ('g-2', 1, 0, 2)",
        "UPDATE registry SET held_at = 1",
        "UPDATE registry SET merging_off_at = 1",
        "UPDATE registry SET revision = 0",
        "UPDATE leadership SET epoch = 0",
        "UPDATE leadership SET one = 2",
        "UPDATE event SET at = 0",
    ],
)
async def test_the_single_rows_and_the_events_stay_what_they_are(ledger: TableLedger, ids: Counting, sql: str) -> None:
    await written(ledger, turn_ready(ids))
    with pytest.raises(ledger._dialect.failure):
        await ledger._writer.do(lambda connection: connection.execute(sql, ()))


def turn_ready(ids: Counting) -> Commit:
    here = place(ids)
    first = turn(ids, here)
    return Commit(puts=here.rows).then(first.commit())


# -- moves


def task_in(world: World, state: TaskState) -> Row:
    over = state in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)
    return replace(
        world.task, state=state, ended_at=NOW if over else None, disposition=DONE if over else None, started_at=NOW
    )


def run_in(world: World, state: RunState) -> Row:
    return replace(world.run, state=state, stopped_at=NOW if state is RunState.STOPPED else None)


def attempt_in(world: World, state: AttemptState) -> Row:
    ended = state is AttemptState.ENDED
    return replace(
        world.attempt, state=state, ended_at=NOW if ended else None, outcome=AttemptOutcome.LOST if ended else None
    )


def command_in(world: World, state: CommandState) -> Command:
    settled = state not in OPEN_COMMAND and state is not CommandState.QUEUED
    released = state is CommandState.RELEASED
    return replace(
        world.command,
        state=state,
        armed_at=None if state is CommandState.QUEUED else NOW,
        submitted_at=None if state is CommandState.QUEUED else NOW,
        settled_at=NOW if settled else None,
        released_by="me" if released else None,
        verdict="not done" if released else None,
    )


def conversation_in(world: World, state: LeaseState) -> Row:
    over = state in (LeaseState.SUPERSEDED, LeaseState.ENDED, LeaseState.ABANDONED)
    return replace(world.conversation, state=state, ended_at=NOW if over else None)


def message_in(world: World, state: DeliveryState) -> Row:
    over = state in (DeliveryState.DELIVERED, DeliveryState.DROPPED)
    return replace(world.message, state=state, carried_by=world.command.id, settled_at=NOW if over else None)


def chain_in(world: World, state: ChainState) -> Row:
    return replace(world.chain, state=state, ended_at=None if state is ChainState.OPEN else NOW)


def worktree_in(world: World, state: WorktreeState) -> Row:
    over = state in (WorktreeState.GONE, WorktreeState.FAILED)
    begun = None if state in (WorktreeState.PLANNED, WorktreeState.FAILED) else "abc"
    return replace(world.worktree, state=state, begun_at_commit=begun, ended_at=NOW if over else None)


def proposal_in(world: World, state: ProposalState) -> Row:
    merged = "b" * 40 if state is ProposalState.MERGED else None
    settled = None if state is ProposalState.OPEN else NOW
    return replace(world.proposal, state=state, merged_as=merged, settled_at=settled)


def phase_in(world: World, state: PhaseState) -> Row:
    landed = None if state in (PhaseState.OPEN, PhaseState.CLOSED) else Landing("abc", "merge", ("abc",))
    settled = None if state is PhaseState.OPEN else NOW
    return replace(world.phase, state=state, landing=landed, settled_at=settled)


MAKERS: dict[str, Callable[[World, Any], Any]] = {
    "task": task_in,
    "run": run_in,
    "attempt": attempt_in,
    "command": command_in,
    "conversation": conversation_in,
    "message": message_in,
    "chain": chain_in,
    "worktree": worktree_in,
    "phase": phase_in,
    "proposal": proposal_in,
}


def test_every_lifecycle_is_tried() -> None:
    assert set(MAKERS) == set(tables.LIFECYCLES)


@pytest.mark.parametrize("name", sorted(MAKERS))
async def test_only_moves_of_the_lifecycle_are_taken(ledger: TableLedger, ids: Counting, name: str) -> None:
    lifecycle, make = tables.LIFECYCLES[name], MAKERS[name]
    for old, new in product(lifecycle.states, lifecycle.states):
        world = World(ids)
        first = make(world, old)
        rows: tuple[Row, ...] = (*world.place.rows, world.attempt, world.command)
        beside: dict[str, Row] = {row.id: row for row in rows}
        if name == "command":
            beside.pop(world.command.id)
        if name in ("worktree", "phase", "proposal"):
            beside[world.chain.id] = world.chain
        if name in ("task", "run", "conversation"):
            beside.pop(world.attempt.id)
            beside.pop(world.command.id)
        beside[first.id] = first
        await written(ledger, Commit(puts=tuple(beside.values())))
        second = Commit(puts=(replace(make(world, new), revision=2),))
        if old is new or (old, new) in lifecycle.pairs:
            await written(ledger, second)
        else:
            with pytest.raises(IllegalMove, match="no such move"):
                await ledger.commit(second)


# -- unique truths


def rivals(world: World) -> Iterator[tuple[str, Row | tuple[Row, ...], Row]]:
    """For every unique truth, a row that has it and one that wants it too."""
    w, ids = world, world.ids
    second = turn(ids, w.place, number=2)
    yield "one_live_attempt_per_task", w.attempt, second.attempt
    ended = replace(w.attempt, state=AttemptState.ENDED, ended_at=NOW, outcome=AttemptOutcome.LOST)
    yield "one_attempt_per_number", ended, replace(second.attempt, number=1)
    elsewhere: Conversation = replace(w.conversation, id=ConversationId(ids.new("conversation")), identity="another")
    yield "one_active_conversation_per_task", w.conversation, elsewhere
    yield "one_pending_wake_per_kind", w.wake, wake(ids, w.task)
    yield "one_token_per_digest", w.token, replace(w.token, id=TokenId(ids.new("token")))
    again = replace(w.permission, id=PermissionId(ids.new("permission")))
    yield "one_question_per_request", (w.attempt, w.command, w.permission), again
    yield "one_limit_per_account", w.limit, replace(w.limit, id=LimitId(ids.new("limit")))
    tree, phase = (w.chain, w.worktree), (w.chain, w.phase)
    tree_id = WorktreeId(ids.new("worktree"))
    other: dict[str, Any] = {"id": tree_id, "task_id": w.task.id, "path": f"/{tree_id}", "branch": str(tree_id)}
    yield "one_worktree_per_task", tree, replace(w.worktree, **other)
    other["task_id"] = w.beside.task.id
    yield "one_worktree_per_path", tree, replace(w.worktree, **other | {"path": w.worktree.path})
    yield "one_worktree_per_branch", tree, replace(w.worktree, **other | {"branch": w.worktree.branch})
    one: dict[str, Any] = {"id": PhaseId(ids.new("phase"))}
    yield "one_phase_per_unit", phase, replace(w.phase, **one, number=8)
    yield "one_phase_per_number", phase, replace(w.phase, **one, unit="b")
    mandate = (w.chain, w.mandate)
    yield "one_mandate_per_chain", mandate, replace(w.mandate, id=MandateId(ids.new("mandate")))
    handed = (w.chain, w.proposal)
    down: dict[str, Any] = {"state": ProposalState.TURNED_DOWN, "settled_at": NOW}
    another: dict[str, Any] = {"id": ProposalId(ids.new("proposal"))}
    yield "one_proposal_per_task", handed, replace(w.proposal, **another | down)
    yield "one_open_proposal_per_chain", handed, replace(w.proposal, **another, task_id=w.beside.task.id)
    asked = (w.chain, w.proposal, w.review)
    renewed: dict[str, Any] = {"id": ReviewId(ids.new("review")), "number": 2}
    over: dict[str, Any] = {"verdict": Verdict.NONE, "said_at": NOW}
    yield "one_review_per_task", asked, replace(w.review, **renewed | over)
    yield "one_review_at_a_time", asked, replace(w.review, **renewed, task_id=w.task.id)
    yield "one_review_per_number", asked, replace(w.review, **renewed | over | {"number": 1}, task_id=w.task.id)


async def test_every_unique_truth_is_told_by_name(ledger: TableLedger, ids: Counting) -> None:
    tried = set()
    for index in range(len(list(rivals(World(Counting()))))):
        world = World(ids)
        name, first, second = list(rivals(world))[index]
        had = first if isinstance(first, tuple) else (first,)
        beside = {row.id: row for row in (*world.place.rows, *world.beside.rows, *had)}
        await written(ledger, Commit(puts=tuple(beside.values())))
        assert await ledger.commit(Commit(puts=(second,))) == Busy(name)
        tried.add(name)
    here, there = place(ids), place(ids)
    await written(ledger, Commit(puts=here.rows))
    same = replace(there.conversation, identity=here.conversation.identity)
    taken = await ledger.commit(Commit(puts=(there.run, there.text, there.task, same)))
    assert taken == Busy("one_active_conversation_per_identity")
    tried.add("one_active_conversation_per_identity")
    assert tried | set(LINKS) == {index.name for index in tables.UNIQUE}


async def test_a_pending_wake_of_another_kind_is_no_rival(ledger: TableLedger, ids: Counting) -> None:
    world = World(ids)
    await written(ledger, Commit(puts=(*world.place.rows, world.wake)))
    more = Commit(puts=(wake(ids, world.task, WakeKind.MANUAL),))
    assert isinstance(await ledger.commit(more), Committed)


async def test_a_row_needs_its_parents(ledger: TableLedger, ids: Counting) -> None:
    world = World(ids)
    with pytest.raises(IllegalMove):
        await ledger.commit(Commit(puts=(world.wake,)))
    with pytest.raises(IllegalMove):
        await ledger.commit(Commit(puts=world.place.rows, holds=(("probe:default", CommandId("c-nobody")),)))
    orphan = replace(world.task, objective=TextId("x-nobody"), parent=TaskId("t-nobody"))
    with pytest.raises(IllegalMove):
        await ledger.commit(Commit(puts=(world.run, orphan)))
    assert ledger.runs(5) == ()


LINKS = {
    "one_link_per_position": {},
    "one_successor_per_task": {"position": 3},
    "one_link_per_task": {"position": 3, "other": True},
    "one_link_per_cursor": {"position": 3, "other": True},
    "one_task_per_unit": {"position": 3, "other": True},
}


@pytest.mark.parametrize("name", sorted(LINKS))
async def test_a_chain_never_forks(ledger: TableLedger, ids: Counting, name: str) -> None:
    world = World(ids)
    places = [place(ids) for _ in range(3)]
    tasks = [one.task.id for one in places]
    rows = {row.id: row for one in places for row in one.rows}
    first = replace(world.link, position=2, predecessor=tasks[0], task_id=tasks[1])
    chain: Row = replace(world.chain, run_id=places[0].run.id)
    await written(ledger, Commit(puts=(*rows.values(), chain, first)))
    last = place(ids)
    await written(ledger, Commit(puts=last.rows))
    change = dict(LINKS[name])
    before = tasks[2] if change.pop("other", False) else tasks[0]
    second = replace(
        first, id=LinkId(ids.new("link")), task_id=last.task.id, key=digest("b"), unit="b",
        position=change.get("position", 2), predecessor=before,
    )  # fmt: skip
    if name == "one_link_per_position":
        second = replace(second, predecessor=tasks[2])
    elif name == "one_link_per_task":
        second = replace(second, task_id=first.task_id)
    elif name == "one_link_per_cursor":
        second = replace(second, key=first.key)
    elif name == "one_task_per_unit":
        second = replace(second, unit=first.unit)
    assert await ledger.commit(Commit(puts=(second,))) == Busy(name)
