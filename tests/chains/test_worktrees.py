"""Chains whose units have worktrees of their own, over real git and a real registry: made once, cleared, or kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.chains.test_engine import Chained, Fuse, Killed, started
from tests.support.gits import Remote, git, remote
from tests.support.world import OPERATOR, World, world

from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chains import HandOff, Opening
from tenuto.model.chain import Blocker, Outcome, SourcePlace
from tenuto.model.command import CommandKind
from tenuto.model.fact import FactKind
from tenuto.model.faults import Mistake, Refused
from tenuto.model.lifecycle import ChainState, CommandState, PhaseState, TaskState, WorktreeState
from tenuto.model.worktree import Worktree
from tenuto.transports.workspace.hand import Hand
from tenuto.transports.workspace.history import GitHistory
from tenuto.transports.workspace.trees import GitWorktrees

pytestmark = [pytest.mark.anyio, pytest.mark.only_on("linux", "darwin")]
SOON = timedelta(seconds=70)


@pytest.fixture
def fuse() -> Fuse:
    return Fuse()


@pytest.fixture
def at(tmp_path: Path) -> Remote:
    return remote(tmp_path)


@pytest.fixture
async def it(tmp_path: Path, fuse: Fuse) -> AsyncIterator[World]:
    hand = Hand()
    history = GitHistory(hand)
    hosts = Hosts(trees=GitWorktrees(tmp_path / "trees", hand, history), history=history)
    async with world(tmp_path, fuse=fuse, hosts=lambda _clock: hosts) as made:
        yield made


async def begun(it: World, at: Remote, count: int = 3, **more: Any) -> Chained:
    """A chain whose first worktree stands."""
    chain = await started(it, count, cwd=str(at.clone), worktrees=True, **more)
    await chain.chains.tend()
    return chain


def trees(chain: Chained) -> tuple[Worktree, ...]:
    return tuple(reversed(chain.chains.worktrees(chain.id)))


def commit(tree: Worktree, *, push: str | None = None) -> str:
    """Work of a unit in its worktree."""
    place = Path(tree.path)
    (place / f"{place.name}.txt").write_text("work\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", f"work of {place.name}")
    if push is not None:
        git(place, "push", "-q", "origin", f"HEAD:{push}")
    return git(place, "rev-parse", "HEAD")


def there(path: str) -> bool:
    return Path(path).exists()


async def over(it: World, chain: Chained) -> None:
    """The last task's turn has ended and its claim was taken; the supervisor looks after the chain."""
    for link in chain.links[-2:]:
        await it.settle(link.task_id)
    it.clock.move(SOON)
    await chain.chains.tend()


async def test_every_unit_has_a_worktree_of_its_own_from_the_newest_base(it: World, at: Remote) -> None:
    chain = await begun(it, at)
    (first,) = trees(chain)
    assert (first.state, first.branch) == (WorktreeState.READY, f"tenuto/{chain.id}/u1-1")
    assert it.desk.task(chain.links[0].task_id).cwd == first.path
    assert there(first.path)
    head = commit(first, push="main")
    await chain.hand_off(chain.links[0].task_id, HandOff(Outcome.DONE, head))
    await it.settle(chain.links[1].task_id)
    told = await it.desk.explain(chain.links[1].task_id)
    assert "worktree_make" in told.rungs[0].sentence, "its first turn waits for it"
    await chain.chains.tend()
    second = trees(chain)[1]
    assert second.begun_at_commit == head, "fresh from what the first has merged"
    assert second.path != first.path
    facts = [event.fact.kind for event in it.ledger.events(0, 1000)]
    assert facts.count(FactKind.WORKTREE_MADE) == 2


async def test_a_cleared_worktree_is_gone_and_its_branch_stays(it: World, at: Remote) -> None:
    chain = await begun(it, at, 2)
    for _ in range(2):
        commit(trees(chain)[-1], push="main")
        await chain.hand_off(chain.links[-1].task_id)
        await over(it, chain)
    assert chain.state is ChainState.COMPLETE
    it.clock.move(SOON)
    await chain.chains.tend()
    assert [tree.state for tree in trees(chain)] == [WorktreeState.GONE] * 2
    assert not [tree for tree in trees(chain) if there(tree.path)]
    assert git(at.clone, "rev-parse", "--verify", trees(chain)[0].branch)
    assert it.ledger.chain(chain.id).look_at is None  # type: ignore[union-attr]
    assert not it.ledger.commands(10, only_open=True)
    assert git(at.clone, "worktree", "list").count("\n") == 0


async def test_br_132_work_that_is_nowhere_else_is_kept_where_it_is(it: World, at: Remote) -> None:
    chain = await begun(it, at, 1)
    (tree,) = trees(chain)
    commit(tree)
    await chain.hand_off(chain.links[0].task_id)
    await over(it, chain)
    (kept,) = trees(chain)
    assert kept.state is WorktreeState.KEPT
    assert "not on origin" in (kept.reason or "")
    assert there(kept.path)
    again = await chain.chains.remove(OPERATOR, kept.id)
    assert again.result["state"] is WorktreeState.KEPT
    git(Path(kept.path), "push", "-q", "origin", kept.branch)
    gone = await chain.chains.remove(OPERATOR, kept.id)
    assert (gone.result["state"], there(kept.path)) == (WorktreeState.GONE, False)


@pytest.mark.parametrize(
    "point", ["claim.written", "worktree.made", "worktree.armed", "worktree.removed", "advance.committed"]
)
async def test_whoever_dies_anywhere_makes_and_removes_once(it: World, at: Remote, fuse: Fuse, point: str) -> None:
    fuse.at, fuse.left = point, 1
    died = 0
    chain: Chained | None = None
    for _ in range(60):
        try:
            if chain is None:
                chain = await started(it, 2, cwd=str(at.clone), worktrees=True)
            link = chain.links[-1]
            tree = trees(chain)[-1] if trees(chain) else None
            if tree is not None and tree.state is WorktreeState.READY and link.outcome is None:
                commit(tree, push="main")
                await chain.hand_off(link.task_id)
            await over(it, chain)
        except Killed:
            died += 1
            (one,) = it.ledger.chains(5)
            chain = Chained(it, it.folder / "queue.json", one.id)
        if chain.state is ChainState.COMPLETE and not any(there(tree.path) for tree in trees(chain)):
            break
    assert chain is not None
    assert (died, chain.state) == (1, ChainState.COMPLETE)
    assert [link.unit for link in chain.links] == ["u1", "u2"]
    assert git(at.clone, "worktree", "list").count("\n") == 0
    open_ = [one for one in it.ledger.commands(50, only_open=True) if one.kind is not CommandKind.SEND]
    assert not open_
    made = [one for one in it.ledger.commands(50) if one.kind is CommandKind.WORKTREE_MAKE]
    assert [one.state for one in made] == [CommandState.ACKNOWLEDGED] * 2
    log = git(at.bare, "log", "--format=%s", "main").splitlines()
    assert sorted(log) == ["begin", "work of u1-1", "work of u2-2"], "each unit's work is in the base once"


async def test_what_is_in_the_way_ends_the_attempt_and_the_next_has_another_place(it: World, at: Remote) -> None:
    chain = await started(it, 1, cwd=str(at.clone), worktrees=True)
    at.push(f"HEAD:refs/heads/tenuto/{chain.id}/u1-1")
    await chain.chains.tend()
    assert trees(chain)[0].state is WorktreeState.FAILED
    assert it.desk.task(chain.links[0].task_id).state is TaskState.FAILED
    it.clock.move(SOON)
    await chain.chains.tend()
    await chain.chains.tend()
    assert [(link.unit, link.attempt) for link in chain.links] == [("u1", 1), ("u1", 2)]
    assert trees(chain)[1].state is WorktreeState.READY


async def test_a_remote_out_of_reach_keeps_the_task_waiting_and_says_why(it: World, at: Remote) -> None:
    at.bare.rename(at.bare.with_name("away.git"))
    chain = await started(it, 1, cwd=str(at.clone), worktrees=True, base="main")
    await chain.chains.tend()
    assert "the worktree of unit u1" in chain.reason
    await it.settle(chain.links[0].task_id)
    assert it.executor.turns == ()
    at.bare.with_name("away.git").rename(at.bare)
    it.clock.move(timedelta(seconds=6))
    await chain.chains.tend()
    await it.settle(chain.links[0].task_id)
    assert len(it.executor.turns) == 1


async def test_what_cannot_have_worktrees_is_refused_by_its_field(it: World, at: Remote, tmp_path: Path) -> None:
    for more, field in (
        ({"cwd": str(tmp_path)}, "cwd"),
        ({"base": "--upload-pack=x"}, "base"),
        ({"remote": "-x"}, "remote"),
        ({"worktrees": False, "base": "main"}, "base"),
    ):
        with pytest.raises(Mistake) as mistake:
            await started(it, 1, **{"cwd": str(at.clone), "worktrees": True, "goal": f"{more}"} | more)
        assert mistake.value.field == field
    git(at.bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(at.bare, "branch", "-m", "main", "trunk")
    chain = await started(it, 1, cwd=str(at.clone), worktrees=True)
    told = it.ledger.chain(chain.id)
    assert told is not None
    assert str(told.base) == "origin/trunk", "the default branch is asked of the remote"


async def test_a_unit_that_somebody_else_claims_first_is_left_to_them(it: World, fuse: Fuse) -> None:
    fuse.at, fuse.left = "advance.committed", 1
    with pytest.raises(Killed):
        await started(it, 2)
    (one,) = it.ledger.chains(5)
    chain = Chained(it, it.folder / "queue.json", one.id)
    chain.edit("u1", state="in_flight", claimed_by="somebody")
    await chain.chains.tend()
    first, second = chain.links
    assert (first.outcome, second.unit) == (Outcome.TAKEN, "u2")
    assert it.desk.task(first.task_id).state is TaskState.FAILED
    assert it.executor.turns == ()
    assert chain.units()["u1"]["claimed_by"] == "somebody"
    assert chain.units()["u2"]["claimed_by"] == second.id


# -- phases


def pulled(at: Remote, tree: Worktree, number: int) -> str:
    """A unit's branch is pushed, and a pull request of that number is opened."""
    head = commit(tree, push=tree.branch)
    git(Path(tree.path), "push", "-q", "origin", f"HEAD:refs/pull/{number}/head")
    return head


def merged(at: Remote, tree: Worktree, way: str = "merge") -> None:
    git(at.desk, "fetch", "-q", "origin")
    git(at.desk, "checkout", "-q", "-B", "main", "origin/main")
    if way == "squash":
        git(at.desk, "merge", "-q", "--squash", f"origin/{tree.branch}")
        git(at.desk, "commit", "-q", "-m", "squashed")
    else:
        git(at.desk, "merge", "-q", "--no-ff", "-m", "merged", f"origin/{tree.branch}")
    at.push("HEAD:main")


async def phased(it: World, at: Remote, count: int = 3) -> Chained:
    return await begun(it, at, count, phases=True)


async def test_phases_go_one_by_one_and_the_chain_watches_by_itself(it: World, at: Remote) -> None:
    chain = await phased(it, at)
    for number, way in ((1, "merge"), (2, "squash"), (3, "merge")):
        link, tree = chain.links[-1], trees(chain)[-1]
        with pytest.raises(Refused, match="no"):
            await chain.hand_off(link.task_id)
        pulled(at, tree, number)
        await chain.chains.open_phase(OPERATOR, link.task_id, Opening(number))
        told = await chain.hand_off(link.task_id)
        assert told["successor"] is None
        await over(it, chain)
        assert len(chain.links) == number, "it is not merged yet"
        assert f"pull request {number}" in chain.reason
        merged(at, tree, way)
        await over(it, chain)
        await chain.chains.tend()
    assert chain.state is ChainState.COMPLETE
    assert [phase.state for phase in chain.chains.phases(chain.id)] == [PhaseState.MERGED] * 3
    assert all("landed as" in row["evidence"] for row in chain.units().values())
    assert [tree.state for tree in trees(chain)] == [WorktreeState.GONE] * 3


async def test_a_revert_blocks_again_until_it_is_back(it: World, at: Remote) -> None:
    chain = await phased(it, at, 2)
    link, tree = chain.links[-1], trees(chain)[-1]
    pulled(at, tree, 1)
    await chain.hand_off(link.task_id, HandOff(Outcome.DONE, "here", pull=1))
    merged(at, tree)
    await over(it, chain)
    await chain.chains.tend()
    assert chain.links[-1].unit == "u2"
    git(at.desk, "revert", "--no-edit", "-m", "1", "HEAD")
    at.push("HEAD:main")
    second, tree = chain.links[-1], trees(chain)[-1]
    pulled(at, tree, 2)
    await chain.hand_off(second.task_id, HandOff(Outcome.DONE, "here", pull=2))
    merged(at, tree)
    await over(it, chain)
    await over(it, chain)
    assert chain.units()["u2"]["state"] == "done"
    assert not chain.state.endswith("complete")
    assert "unit u1 is not part of the base any more" in chain.reason
    git(at.desk, "revert", "--no-edit", git(at.desk, "rev-list", "--grep=^Revert", "-1", "HEAD"))
    at.push("HEAD:main")
    await over(it, chain)
    assert chain.state is ChainState.COMPLETE


async def test_one_that_is_closed_unmerged_asks_a_person(it: World, at: Remote) -> None:
    chain = await phased(it, at, 1)
    link, tree = chain.links[-1], trees(chain)[-1]
    pulled(at, tree, 1)
    await chain.hand_off(link.task_id, HandOff(Outcome.DONE, "here", pull=1))
    git(at.desk, "push", "-q", "origin", f":refs/heads/{tree.branch}", ":refs/pull/1/head")
    await over(it, chain)
    (item,) = [item for item in it.desk.attention() if item.kind == "chain"]
    assert "pull request 1 of unit u1 was closed" in item.question
    assert "phase open" in item.question
    git(Path(tree.path), "push", "-q", "origin", f"HEAD:{tree.branch}", "HEAD:refs/pull/4/head")
    await chain.chains.open_phase(OPERATOR, link.task_id, Opening(4))
    merged(at, tree)
    await over(it, chain)
    assert chain.state is ChainState.COMPLETE
    assert not [item for item in it.desk.attention() if item.kind == "chain"]


async def test_a_task_that_ends_without_a_pull_request_asks_a_person(it: World, at: Remote) -> None:
    chain = await phased(it, at, 2)
    await it.desk.complete(OPERATOR, chain.links[0].task_id, "commit 1")
    await chain.chains.tend()
    assert "no pull request" in chain.reason
    assert [item.kind for item in it.desk.attention()] == ["chain"]
    await chain.chains.advance(OPERATOR, chain.id)
    assert [(link.unit, link.attempt) for link in chain.links] == [("u1", 1), ("u1", 2)], "in strict order"


async def test_phases_are_in_strict_order(it: World, at: Remote) -> None:
    chain = await phased(it, at, 2)
    blocker = HandOff(Outcome.BLOCKED, blocker=Blocker("me", "the key", "it is there"))
    await chain.hand_off(chain.links[0].task_id, blocker)
    await over(it, chain)
    assert len(chain.links) == 1
    assert "strict order" in chain.reason


@pytest.mark.parametrize("point", ["phase.looked", "phase.committed", "record.armed", "record.written"])
async def test_a_death_between_merge_and_record_is_made_good(it: World, at: Remote, fuse: Fuse, point: str) -> None:
    chain = await phased(it, at, 2)
    link, tree = chain.links[-1], trees(chain)[-1]
    pulled(at, tree, 1)
    await chain.hand_off(link.task_id, HandOff(Outcome.DONE, "here", pull=1))
    await over(it, chain)
    merged(at, tree)
    fuse.at, fuse.left = point, 1
    died = 0
    for _ in range(6):
        try:
            await over(it, chain)
        except Killed:
            died += 1
    assert died == 1
    assert [link.unit for link in chain.links] == ["u1", "u2"]
    assert chain.units()["u1"]["attempts"] == 1


async def test_a_sweep_is_written_down_at_the_end_and_at_a_blocker(it: World, at: Remote) -> None:
    chain = await begun(it, at, 2)
    blocker = HandOff(Outcome.BLOCKED, blocker=Blocker("me", "the key", "it is there"))
    commit(trees(chain)[-1], push="main")
    await chain.hand_off(chain.links[0].task_id)
    await over(it, chain)
    await chain.hand_off(chain.links[1].task_id, blocker)
    await over(it, chain)
    told = it.ledger.chain(chain.id)
    assert told is not None
    assert told.swept is not None
    text = chain.chains.text(told.swept) or ""
    assert text.splitlines()[0] == "blocked 1, done 1"
    assert "u2: blocked (blocked on the key)" in text
    chain.edit("u1", state="eligible")
    stale = {one.unit: one.evidence for one in await chain.chains.sweep(chain.id) if "stale" in one.what}
    assert set(stale) == {"u1"}
    before = chain.queue.read_bytes()
    await chain.chains.stop(OPERATOR, chain.id, "enough")
    last = it.ledger.chain(chain.id)
    assert last is not None
    assert last.swept not in (None, told.swept)
    assert chain.queue.read_bytes() == before, "nothing is put right"
    assert json.loads(before)["units"][0]["state"] == "eligible"


async def test_a_chain_on_one_source_waits_for_nobody_elses_claim(it: World, at: Remote) -> None:
    """Two chains with worktrees on one queue have different units and different branches."""
    one = await begun(it, at, 2)
    asked = {"selector": "again", "source": SourcePlace("queue", f"{one.queue.parent}/./queue.json")}
    whole = one.queue.read_text()
    other = await started(it, 2, cwd=str(at.clone), worktrees=True, goal="Again", **asked)
    one.queue.write_text(whole)
    assert {link.unit for link in (*one.links, *other.links)} == {"u1", "u2"}
