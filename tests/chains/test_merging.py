"""A chain that merges, over a played host: one wrapper, every gate in it, and one merge for each command at most."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.merging import MergingChain, Outside, commit, merging_chain
from tests.support.world import OPERATOR, World, world

from tenuto.engine.chains import HandOff
from tenuto.model.chain import Blocker, Outcome
from tenuto.model.command import CommandKind
from tenuto.model.faults import Conflict, Mistake, NotAllowed, Refused
from tenuto.model.forge import ForgePlace, MergeMethod, NotMerged, PullState, Runs
from tenuto.model.lifecycle import ChainState, CommandState, ProposalState, TaskState
from tenuto.model.merging import Gate, MergeMode, Verdict

pytestmark = pytest.mark.anyio


class Killed(BaseException):
    """The process is gone."""


class Fuse:
    """Kills at the n-th passing of a point."""

    at, left = "", 0

    def burn(self, point: str) -> None:
        if point == self.at:
            self.left -= 1
            if self.left == 0:
                raise Killed(point)


@pytest.fixture
def fuse() -> Fuse:
    return Fuse()


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


@pytest.fixture
async def it(tmp_path: Path, fuse: Fuse, outside: Outside) -> AsyncIterator[World]:
    async with world(tmp_path, fuse=fuse, hosts=outside.hosts) as made:
        yield made


def merges(it: World) -> list[CommandState]:
    return [one.state for one in it.ledger.commands(100) if one.kind is CommandKind.MERGE]


async def brought(chain: MergingChain, number: int = 1, head: int = 77) -> None:
    """A pull request is handed in, gated green, and passed."""
    await chain.hand_in(number, head)
    await chain.gated()
    await chain.said()


async def test_a_unit_is_gated_reviewed_merged_recorded_and_handed_over(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    task = await chain.hand_in()
    assert it.desk.task(task).state is TaskState.COMPLETED, "its slot is free while others look at its work"
    assert (chain.proposal.state, chain.proposal.number, len(chain.links)) == (ProposalState.OPEN, 1, 1)
    assert outside.checkouts.made[0].commit == commit(77), "the gate runs at exactly that commit"
    await chain.gated()
    assert chain.proposal.gate is Gate.GREEN
    reviewer = it.desk.task(chain.review.task_id)
    assert (reviewer.parent, reviewer.run_id != it.desk.task(task).run_id) == (None, True)
    assert commit(77) in (it.desk.text(reviewer.objective) or "")
    await chain.said()
    assert [(one.number, one.head, one.base) for one in outside.forge.done] == [(1, commit(77), "main")]
    assert merges(it) == [CommandState.ACKNOWLEDGED]
    assert chain.proposal.state is ProposalState.MERGED
    assert chain.units()["u1"]["state"] == "done"
    assert commit(1001) in chain.units()["u1"]["evidence"]
    assert [link.unit for link in chain.links] == ["u1", "u2"]
    assert not it.ledger.commands(10, only_open=True)
    assert outside.checkouts.made == [], "what its gate and its reviewer stood in is thrown away"
    assert it.desk.task(reviewer.id).state is TaskState.COMPLETED
    prompt = it.desk.text(it.desk.task(chain.links[-1].task_id).objective) or ""
    assert f"[tenuto-chain:{chain.id}]" in prompt
    assert "Authorised: merge=yes" in prompt, "what is authorised is carried on word for word"


async def test_the_same_hand_off_again_changes_nothing(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    task = await chain.hand_in()
    for _ in range(3):
        await chain.world.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, "pull 1", pull=1))
    assert len(it.ledger.proposals(chain.id, 10)) == 1
    await chain.gated()
    await chain.said()
    told = await chain.world.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, "pull 1", pull=1))
    assert (told.result["successor"], told.result["pull"]) == (chain.links[1].task_id, 1)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"fork": True}, "another repository"),
        ({"branch": "main2"}, "does not begin with"),
        ({"branch": "tenuto/h-00000000000000000000000000/u1"}, "does not begin with"),
        ({"body": "no marker"}, "which chain"),
        ({"base": "release"}, "it goes to release"),
        ({"draft": True}, "draft"),
        ({"state": PullState.CLOSED}, "closed"),
    ],
)
async def test_what_is_wrong_with_a_pull_request_is_said_at_the_hand_off(
    it: World, outside: Outside, wrong: dict[str, object], why: str
) -> None:
    chain = await merging_chain(it, outside)
    with pytest.raises(Refused, match=why):
        await chain.hand_in(1, 77, **wrong)
    assert it.ledger.proposals(chain.id, 10) == ()
    assert not it.desk.task(chain.links[0].task_id).terminal


async def test_a_red_gate_turns_it_down_and_the_unit_comes_back_with_the_reason(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated(3)
    assert [(link.unit, link.attempt, link.outcome) for link in chain.links] == [
        ("u1", 1, Outcome.FAILED),
        ("u1", 2, None),
    ]
    assert outside.forge.asked == []
    prompt = it.desk.text(it.desk.task(chain.links[-1].task_id).objective) or ""
    assert "was turned down: the gate is red" in prompt


async def test_a_review_that_says_block_turns_it_down_and_no_verdict_is_not_a_block(
    it: World, outside: Outside
) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    first = chain.review
    await it.desk.fail(OPERATOR, first.task_id, "it crashed")
    await chain.world.desk.chains.tend()
    assert [(one.number, one.verdict) for one in it.ledger.reviews(chain.proposal.id, 10)] == [
        (2, None),
        (1, Verdict.NONE),
    ]
    assert len(chain.links) == 1, "that nobody came to a verdict turns nothing down"
    with pytest.raises(Mistake):
        await chain.said(Verdict.BLOCK, "")
    await chain.said(Verdict.BLOCK, "the test tests nothing")
    assert chain.links[0].outcome is Outcome.FAILED
    assert "the test tests nothing" in (chain.links[0].evidence or "")
    assert outside.forge.asked == []


async def test_only_the_reviewer_says_so_and_only_of_its_commit(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    task = await chain.hand_in()
    await chain.gated()
    review, say = chain.review, chain.merging.reviewing.verdict
    with pytest.raises(NotAllowed):
        await say(OPERATOR, review.task_id, Verdict.PASS, review.head, "")
    worker = replace(await chain.reviewer(), task_id=task)
    with pytest.raises(NotAllowed):
        await say(worker, review.task_id, Verdict.PASS, review.head, "")
    with pytest.raises(Refused, match="reviews nothing"):
        await say(worker, task, Verdict.PASS, review.head, "")
    with pytest.raises(Refused, match="asked about commit"):
        await chain.said(head=commit(78))
    assert outside.forge.asked == []
    await chain.said()
    assert len(outside.forge.done) == 1
    again = await say(replace(worker, task_id=review.task_id), review.task_id, Verdict.PASS, review.head, "")
    assert again.replayed
    with pytest.raises(Refused, match="over"):
        await say(replace(worker, task_id=review.task_id), review.task_id, Verdict.BLOCK, review.head, "no")


async def test_another_commit_begins_anew(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    old = chain.review
    outside.forge.change(1, head=commit(88))
    with pytest.raises(Refused, match="asked about commit"):
        await chain.said(head=commit(88))
    await chain.later(301)
    assert (chain.proposal.head, chain.proposal.gate) == (commit(88), None)
    await chain.gated()
    assert it.ledger.review_of(old.task_id).verdict is Verdict.NONE  # type: ignore[union-attr]
    assert it.desk.task(old.task_id).state is TaskState.CANCELLED
    await chain.said()
    assert [one.head for one in outside.forge.done] == [commit(88)]


async def test_a_push_between_the_verdict_and_the_merge_is_not_merged(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    caller = await chain.reviewer()
    await chain.merging.reviewing.verdict(caller, chain.review.task_id, Verdict.PASS, commit(77), "")
    outside.forge.change(1, head=commit(99))
    await chain.world.desk.chains.tend()
    assert outside.forge.done == []
    assert chain.proposal.head == commit(99)


async def test_the_kill_switch_stops_merges_and_spawns_and_an_open_one_waits(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    await chain.merging.switch(OPERATOR, off=True)
    await chain.said()
    assert outside.forge.asked == []
    assert "has stopped the chains" in chain.reason
    await chain.merging.switch(OPERATOR, off=False)
    outside.off = "a file stops them"
    await chain.later(6)
    assert (outside.forge.asked, "a file stops them" in chain.reason) == ([], True)
    outside.off = None
    await chain.later(6)
    assert len(outside.forge.done) == 1
    await chain.merging.switch(OPERATOR, off=True)
    await brought_only(chain)
    assert len(chain.links) == 2, "nothing is spawned either"


async def brought_only(chain: MergingChain) -> None:
    await chain.world.desk.complete(OPERATOR, chain.links[-1].task_id, "https://host.example/pull/2")
    chain.outside.forge.propose(chain.id, 2)
    await chain.world.desk.chains.tend()


async def test_the_rate_of_merges_is_capped_per_chain(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside, 6)
    for number in range(1, 6):
        await brought(chain, number, 70 + number)
    assert len(outside.forge.done) == 4
    assert "4 merges within 60 minutes" in chain.reason
    await chain.later(3601)
    assert len(outside.forge.done) == 5


async def test_the_cap_of_reviews_leaves_a_blocker_and_stops_the_chain(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside, reviews=2)
    for number in (1, 2):
        await chain.hand_in(number)
        await chain.gated()
        await chain.said(Verdict.BLOCK, "not yet")
    assert chain.units()["u1"]["state"] == "blocked"
    assert "not yet" in chain.units()["u1"]["blocker"]["blocked_on"]
    assert (len(chain.links), chain.chain.state) == (2, ChainState.OPEN)
    assert "chain advance" in chain.reason
    assert any(item.kind == "chain" and "not yet" in item.question for item in it.desk.attention())
    await chain.later(3600)
    assert len(chain.links) == 2, "it is never forced"
    await it.desk.chains.advance(OPERATOR, chain.id)
    assert chain.links[-1].unit == "u2"


async def test_a_merge_that_was_done_and_not_answered_is_found_and_not_repeated(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    outside.forge.silent = True
    await brought(chain)
    assert len(outside.forge.asked) == 1
    await chain.later(3)
    assert (len(outside.forge.asked), len(outside.forge.done)) == (1, 1)
    assert merges(it) == [CommandState.ACKNOWLEDGED]
    assert [link.unit for link in chain.links] == ["u1", "u2"]


async def test_a_merge_that_was_never_heard_is_undone_after_long_and_asked_for_anew(
    it: World, outside: Outside
) -> None:
    chain = await merging_chain(it, outside)
    outside.forge.deaf = True
    await brought(chain)
    assert merges(it) == [CommandState.SUBMITTED]
    await chain.later(20)
    assert (len(outside.forge.asked), merges(it)) == (1, [CommandState.SUBMITTED]), "it is looked at, not repeated"
    outside.forge.deaf = False
    await chain.later(61)
    assert sorted(merges(it)) == [CommandState.ACKNOWLEDGED, CommandState.FAILED]
    assert len(outside.forge.done) == 1


async def test_a_host_that_is_out_of_reach_leaves_everything_as_it_is(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    outside.forge.silent = True
    await brought(chain)
    outside.forge.out = "it is down"
    await chain.later(3)
    assert merges(it) == [CommandState.SUBMITTED]
    await chain.later(901)
    assert merges(it) == [CommandState.AMBIGUOUS]
    assert any(item.kind == "ambiguous command" for item in it.desk.attention())
    outside.forge.out = None
    await chain.later(301)
    assert merges(it) == [CommandState.ACKNOWLEDGED]
    assert len(outside.forge.done) == 1


async def test_a_merge_past_the_wrapper_is_seen_and_reported(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    task = await chain.hand_in()
    outside.forge.change(1, state=PullState.MERGED, merged_as=commit(5))
    await chain.later(31)
    assert outside.forge.asked == []
    assert chain.units()["u1"]["state"] == "done"
    (item,) = [one for one in it.desk.attention() if one.task_id == task]
    assert "merged by somebody else" in item.question
    await it.desk.answer(OPERATOR, task, "I have seen it")
    assert not [one for one in it.desk.attention() if one.task_id == task]
    assert [link.unit for link in chain.links] == ["u1", "u2"]


async def test_a_host_that_refuses_says_why_and_another_look_decides(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    outside.forge.refuses = NotMerged("Base branch was modified", moved=True)
    await brought(chain)
    assert set(merges(it)) == {CommandState.FAILED}
    assert "Base branch was modified" in chain.reason or "changing" in chain.reason
    outside.forge.refuses = None
    await chain.later(31)
    assert len(outside.forge.done) == 1


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [({"runs": Runs.RED}, Outcome.FAILED), ({"mergeable": False}, Outcome.FAILED), ({"runs": Runs.PENDING}, None)],
)
async def test_what_the_host_says_counts(
    it: World, outside: Outside, seen: dict[str, object], outcome: Outcome | None
) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    outside.forge.change(1, **seen)
    await chain.said()
    assert outside.forge.asked == []
    assert chain.links[0].outcome is outcome


async def test_closed_without_a_merge_asks_a_person(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    outside.forge.change(1, state=PullState.CLOSED)
    await chain.later(31)
    assert "closed without being merged" in chain.reason
    assert any("reopen it" in item.question for item in it.desk.attention())
    assert len(chain.links) == 1
    await it.desk.chains.advance(OPERATOR, chain.id)
    assert chain.links[0].outcome is Outcome.FAILED


async def test_a_chain_that_is_stopped_merges_nothing_more_and_leaves_it_open(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    await chain.hand_in()
    await chain.gated()
    await it.desk.chains.stop(OPERATOR, chain.id, "enough")
    await chain.said()
    await chain.later(31)
    assert (outside.forge.asked, chain.proposal.state) == ([], ProposalState.TURNED_DOWN)
    assert (chain.links[0].outcome, len(chain.links)) == (Outcome.FAILED, 1)
    assert outside.forge.requests[1].state is PullState.OPEN


async def test_where_the_operator_merges_nothing_is_merged_before_that_is_asked(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside, mode=MergeMode.ASKED)
    await chain.hand_in()
    with pytest.raises(Refused, match="gate"):
        await it.desk.chains.merge(OPERATOR, chain.id)
    await chain.gated()
    await chain.said()
    assert (outside.forge.asked, "the operator merges" in chain.reason) == ([], True)
    await it.desk.chains.merge(OPERATOR, chain.id)
    assert len(outside.forge.done) == 1


async def test_an_agent_can_never_change_what_may_be_merged(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    before = it.ledger.mandate(chain.id)
    task = chain.links[0].task_id
    await it.settle(task)
    caller = replace(await _agent(it, task))
    for verb in (chain.merging.switch(caller, off=False), it.desk.chains.merge(caller, chain.id),
                 it.desk.chains.advance(caller, chain.id)):  # fmt: skip
        with pytest.raises(NotAllowed):
            await verb
    await chain.hand_in()
    assert it.ledger.mandate(chain.id) == before
    assert before is not None
    assert before.revision == 1


async def _agent(it: World, task: str):  # type: ignore[no-untyped-def]
    from tenuto.engine.calling import Caller
    from tenuto.model.ids import TaskId
    from tenuto.model.snapshot import Role

    return Caller(Role.AGENT, "agent", TaskId(task), it.desk.task(TaskId(task)).lease_number)


async def test_a_chain_that_merges_is_only_begun_whole(it: World, outside: Outside) -> None:
    for field, wrong in (
        ("authorization", {"authorization": (("merge", False),)}),
        ("gate", {"gate": ()}),
        ("reviewer", {"reviewer": None}),
        ("method", {"forge": ForgePlace("git", "/some/where"), "method": MergeMethod.REBASE}),
        ("reviews", {"reviews": 11}),
    ):
        with pytest.raises(Mistake) as mistake:
            await merging_chain(it, outside, **wrong)
        assert mistake.value.field == field


async def test_a_unit_that_is_blocked_instead_takes_back_what_it_handed_in(it: World, outside: Outside) -> None:
    chain = await merging_chain(it, outside)
    task = chain.links[0].task_id
    with pytest.raises(Refused, match="name the pull request"):
        await it.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, "all done"))
    word = HandOff(Outcome.BLOCKED, blocker=Blocker("me", "the key", "it is there"))
    await it.desk.chains.hand_off(OPERATOR, task, word)
    assert chain.units()["u1"]["state"] == "blocked"
    assert chain.links[-1].unit == "u2", "a blocked unit is gone past, as in every chain"
    with pytest.raises(Conflict):
        await it.desk.chains.hand_off(OPERATOR, task, HandOff(Outcome.DONE, "pull 1", pull=1))


POINTS = (
    "gate.before_commit", "gate.armed", "gate.handed_over", "review.before_commit", "review.asked",
    "verdict.before_commit", "verdict.committed", "merge.before_commit", "merge.armed", "merge.asked", "merge.settled",
    "record.armed", "record.written", "advance.before_commit", "advance.committed",
)  # fmt: skip


@pytest.mark.parametrize(
    ("point", "silent"),
    [*((point, False) for point in POINTS), *((point, True) for point in POINTS if point.startswith("merge."))],
)
async def test_whoever_dies_anywhere_merges_once(
    it: World, outside: Outside, fuse: Fuse, point: str, silent: bool
) -> None:
    chain = await merging_chain(it, outside, 2)
    outside.forge.silent = silent
    fuse.at, fuse.left = point, 1
    died = 0
    for step in ("hand in", "gate", "verdict", *["wait"] * 8):
        for _ in range(4):
            try:
                await _onward(chain, step)
                break
            except Killed:
                died += 1
                it.clock.move(timedelta(seconds=1))
    assert died == 1, f"{point} was never passed"
    assert len(outside.forge.done) == 1
    assert len(outside.forge.asked) == len({one.marker for one in outside.forge.asked}), "one try for each command"
    assert chain.units()["u1"]["state"] == "done"
    assert [link.unit for link in chain.links] == ["u1", "u2"]
    assert not [one for one in it.ledger.commands(100, only_open=True) if one.kind is not CommandKind.SEND]


async def _onward(chain: MergingChain, step: str) -> None:
    """One thing that happens in the world, whatever a death left behind."""
    proposals = chain.world.ledger.proposals(chain.id, 1)
    match step:
        case "hand in":
            await chain.hand_in()
        case "gate":
            for _ in range(3):
                await chain.later(31)
                command = chain.proposal.gate_command
                if command is not None and command in chain.outside.gate.under_way:
                    chain.outside.gate.finish(command, exit_code=0, block=False)
                await chain.world.settle(chain.links[0].task_id)
                await chain.world.desk.chains.tend()
        case "verdict":
            for _ in range(3):
                await chain.later(31)
                if chain.world.ledger.reviews(chain.proposal.id, 1) and chain.review.verdict is None:
                    await chain.said()
        case _:
            assert proposals
            await chain.later(62)
