"""Phases against random histories that real git has made, and what messages say is undone."""

from __future__ import annotations

import asyncio
import random
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.gits import Remote, git, remote

from tenuto.core import phases as rules
from tenuto.core.phases import Names, undoes, undone
from tenuto.engine.chaining.watching import Watch
from tenuto.model.forge import NoPull, PullFacts, PullState, Unreachable
from tenuto.model.ids import ChainId, PhaseId, TaskId
from tenuto.model.lifecycle import PHASE, PhaseState
from tenuto.model.phase import Landed, Landing, Looked, Phase
from tenuto.model.worktree import Base
from tenuto.transports.workspace.hand import Hand
from tenuto.transports.workspace.history import GitHistory

NOW = datetime(2026, 3, 1, tzinfo=UTC)
BASE = Base("origin", "main")
WAYS = ("merge", "squash", "rebase", "forward", "number")


def phase(number: int, branch: str | None = None) -> Phase:
    return Phase(
        PhaseId(f"f-{number}"), 1, ChainId("h-1"), f"u{number}", TaskId("t-1"), number, PhaseState.OPEN, NOW,
        branch=branch or f"work-{number}",
    )  # fmt: skip


@dataclass
class Story:
    """A random history, and what it has come to: the oracle is what the files of main say."""

    at: Remote
    chance: random.Random
    phases: list[Phase] = field(default_factory=list)
    begun: dict[str, str] = field(default_factory=dict)
    seen: str | None = None
    told: list[str] = field(default_factory=list)
    merged: dict[int, list[str]] = field(default_factory=dict)
    off: dict[int, list[str]] = field(default_factory=dict)

    def say(self, *words: str) -> str:
        return git(self.at.desk, *words)

    def content(self, number: int) -> dict[str, str]:
        return {f"f{number}-{part}.txt": f"{number} {part}\n" for part in range(1, 2 + number % 3)}

    def noise(self) -> None:
        name = f"noise-{self.chance.randrange(10**9)}.txt"
        self.at.commit(name, "noise\n", f"noise {name}")
        self.at.push("HEAD:main")

    def open(self) -> None:
        number = len(self.phases) + 1
        self.begun[f"u{number}"] = self.say("rev-parse", "main")
        self.say("checkout", "-q", "-b", f"work-{number}", "main")
        for name, text in self.content(number).items():
            self.at.commit(name, text, f"part {name}")
        self.at.push(f"work-{number}", f"work-{number}:refs/pull/{number}/head")
        self.say("checkout", "-q", "main")
        self.phases.append(phase(number))

    def merge(self, number: int, way: str) -> None:
        branch, before = f"work-{number}", self.say("rev-parse", "main")
        if way == "forward" and self.say("merge-base", branch, "main") != before:
            way = "merge"
        match way:
            case "merge":
                self.say("merge", "-q", "--no-ff", "-m", f"Merge pull request #{number} from x/{branch}", branch)
            case "forward":
                self.say("merge", "-q", "--ff-only", branch)
            case "squash" | "number":
                self.say("merge", "-q", "--squash", branch)
                if way == "number":  # what was merged is not quite what was on the branch
                    (self.at.desk / f"more-{number}.txt").write_text("from the host\n")
                    self.say("add", "-A")
                self.say("commit", "-q", "-m", f"Work of {number} (#{number})")
            case _:
                self.say("cherry-pick", "--keep-redundant-commits", f"main..{branch}")
        self.at.push("HEAD:main")
        self.merged[number] = self.say("rev-list", "--first-parent", f"{before}..main").split()
        self.off[number] = []

    def revert(self, number: int) -> None:
        commits = self.merged[number]
        parents = len(self.say("rev-list", "--parents", "-n1", commits[0]).split()) - 1
        for commit in commits:
            self.say("revert", "--no-edit", *(("-m", "1") if parents == 2 else ()), commit)
            self.off[number].insert(0, self.say("rev-parse", "HEAD"))
        if len(commits) == 1 and self.chance.random() < 0.4:  # as a host's own revert is spelled
            self.say("commit", "-q", "--amend", "-m", f'Revert "Work of {number} (#{number})" (#{900 + number})')
            self.off[number] = [self.say("rev-parse", "HEAD")]
        self.at.push("HEAD:main")

    def reapply(self, number: int) -> None:
        for commit in self.off[number]:
            self.say("revert", "--no-edit", commit)
        self.off[number] = []
        self.at.push("HEAD:main")

    def counts(self, number: int) -> bool:
        there = self.say("ls-tree", "--name-only", "origin/main").splitlines()
        return number in self.merged and all(name in there for name in self.content(number))

    def step(self) -> None:
        landed = [number for number in self.merged if not self.off[number]]
        undone_ = [number for number in self.merged if self.off[number]]
        waiting = [one.number for one in self.phases if one.number not in self.merged]
        choices: list[tuple[str, int]] = [("noise", 0)]
        choices += [("open", 0)] * (len(self.phases) < 4)
        choices += [("merge", number) for number in waiting for _ in range(2)]
        choices += [("revert", number) for number in landed]
        choices += [("reapply", number) for number in undone_]
        what, number = self.chance.choice(choices)
        way = self.chance.choice(WAYS)
        self.told.append(f"{what} {number} {way if what == 'merge' else ''}")
        match what:
            case "noise":
                self.noise()
            case "open":
                self.open()
            case "merge":
                self.merge(number, way)
            case "revert":
                self.revert(number)
            case _:
                self.reapply(number)
        self.say("fetch", "-q", "origin")

    async def look(self) -> None:
        watch = Watch(GitHistory(Hand()), str(self.at.clone), BASE)
        found = await watch.look(self.phases, self.begun, self.seen, NOW)
        assert not isinstance(found, str), (found, self.told)
        for was, now in zip(self.phases, found.phases, strict=True):
            assert was.state is now.state or (was.state, now.state) in PHASE.pairs, (was, now)
        self.phases, self.seen = list(found.phases), found.base
        for one in self.phases:
            counts = one.state is PhaseState.MERGED
            assert counts == self.counts(one.number), (one, self.told)


async def live(seed: int, steps: int) -> Story:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        story = Story(remote(Path(folder)), chance)
        story.open()
        for _ in range(steps):
            story.step()
            if chance.random() < 0.6:
                await story.look()
        await story.look()
        return story


@pytest.mark.parametrize("seed", range(6))
def test_phases_count_exactly_while_their_work_is_in_the_base(seed: int) -> None:
    asyncio.run(live(seed, 9))


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(100, 160))
def test_phases_over_many_random_histories(seed: int) -> None:
    asyncio.run(live(seed, 25))


async def looked(at: Remote, phases: list[Phase], begun: dict[str, str], seen: str | None) -> tuple[list[Phase], str]:
    found = await Watch(GitHistory(Hand()), str(at.clone), BASE).look(phases, begun, seen, NOW)
    assert not isinstance(found, str), found
    return list(found.phases), found.base


def test_a_branch_on_which_nothing_was_done_has_not_landed(tmp_path: Path) -> None:
    at = remote(tmp_path)
    begun = git(at.desk, "rev-parse", "main")
    at.push("HEAD:refs/heads/work-1")
    at.commit("other.txt", "x\n", "other")
    at.push("HEAD:main")
    (one,), _ = asyncio.run(looked(at, [phase(1)], {"u1": begun}, None))
    assert one.state is PhaseState.OPEN


def test_a_base_that_was_rewritten_has_it_no_more_and_it_may_land_again(tmp_path: Path) -> None:
    story = Story(remote(tmp_path), random.Random(1))
    begin = story.say("rev-parse", "main")
    story.open()
    story.noise()
    story.merge(1, "merge")
    one, seen = asyncio.run(looked(story.at, story.phases, story.begun, None))
    assert one[0].state is PhaseState.MERGED
    story.say("reset", "-q", "--hard", begin)
    story.at.commit("instead.txt", "x\n", "instead")
    story.at.push("+HEAD:main")
    two, seen = asyncio.run(looked(story.at, one, story.begun, seen))
    assert (two[0].state, two[0].landing) == (PhaseState.OPEN, None)
    story.merge(1, "squash")
    three, _ = asyncio.run(looked(story.at, two, story.begun, seen))
    assert three[0].state is PhaseState.MERGED


def test_a_branch_that_is_gone_without_its_work_is_closed_and_opens_again_with_it(tmp_path: Path) -> None:
    story = Story(remote(tmp_path), random.Random(1))
    story.open()
    story.say("push", "-q", "origin", ":refs/heads/work-1", ":refs/pull/1/head")
    one, seen = asyncio.run(looked(story.at, story.phases, story.begun, None))
    assert one[0].state is PhaseState.CLOSED
    story.at.push("work-1")
    two, seen = asyncio.run(looked(story.at, one, story.begun, seen))
    assert two[0].state is PhaseState.OPEN


def test_one_that_landed_and_was_reverted_between_two_looks_is_a_move_that_rows_may_make(tmp_path: Path) -> None:
    story = Story(remote(tmp_path), random.Random(1))
    story.open()
    story.merge(1, "squash")
    story.revert(1)
    (one,), seen = asyncio.run(looked(story.at, story.phases, story.begun, None))
    assert one.state is PhaseState.REVERTED
    assert (PhaseState.OPEN, one.state) in PHASE.pairs
    story.reapply(1)
    (two,), _ = asyncio.run(looked(story.at, [one], story.begun, seen))
    assert (two.state, two.undone_by) == (PhaseState.MERGED, ())


def test_a_revert_may_name_the_commits_as_they_first_came_although_they_came_twice(tmp_path: Path) -> None:
    story = Story(remote(tmp_path), random.Random(1))
    story.open()
    story.open()
    story.merge(1, "forward")
    story.merge(2, "rebase")
    story.revert(2)
    story.reapply(2)
    both, seen = asyncio.run(looked(story.at, story.phases, story.begun, None))
    assert both[1].state is PhaseState.MERGED
    story.revert(2)
    both, _ = asyncio.run(looked(story.at, both, story.begun, seen))
    assert both[1].state is PhaseState.REVERTED


def test_a_death_between_a_merge_and_its_record_is_made_good_by_number(tmp_path: Path) -> None:
    story = Story(remote(tmp_path), random.Random(1))
    story.open()
    story.merge(1, "number")
    story.say("push", "-q", "origin", ":refs/heads/work-1", ":refs/pull/1/head")
    (one,), _ = asyncio.run(looked(story.at, story.phases, story.begun, None))
    assert one.landing is not None
    assert (one.state, one.landing.how) == (PhaseState.MERGED, "number")


def test_a_host_only_hints_and_the_base_decides() -> None:
    facts = PullFacts(7, PullState.MERGED, "b", "c" * 40, "main", "https://x/pull/7", merged_as="d" * 40)
    nothing, there = Looked("e" * 40), Looked("e" * 40, landing=Landing("d" * 40, "host", ("d" * 40,)))
    assert rules.told(phase(7), facts, nothing, NOW).state is PhaseState.OPEN, "merged, says the host; not in the base"
    assert rules.told(phase(7), facts, there, NOW).state is PhaseState.MERGED
    shut = PullFacts(7, PullState.CLOSED, "b", "c" * 40, "main", "https://x/pull/7")
    assert rules.told(phase(7), shut, nothing, NOW).state is PhaseState.CLOSED
    assert rules.told(phase(7), shut, there, NOW).state is PhaseState.MERGED, "it is there, whoever closed it"
    assert rules.told(phase(7), NoPull("no such pull request"), nothing, NOW).state is PhaseState.CLOSED
    gone = Looked("e" * 40, gone=True)
    assert rules.told(phase(7), Unreachable("away"), gone, NOW).state is PhaseState.OPEN, "silence closes nothing"


def test_what_a_message_says_is_undone() -> None:
    assert undoes('Revert "x"\n\nThis reverts commit abcdef0123.').commits == ("abcdef0123",)
    assert undoes('Revert "Do it (#12)" (#15)') == Names((), (12,))
    assert undoes('Revert "Revert "Do it (#12)" (#15)" (#18)') == Names((), (15,))
    assert undoes("Revert it\n\nReverts some/where#12\n") == Names((), (12,))
    assert undoes("Do it (#12)") == Names((), ())
    assert undoes("Nothing reverts commit abcdef0123.").commits == ()


WORDS = st.lists(st.sampled_from(["other", "revert", "again", "back"]), max_size=12)


@given(WORDS, st.integers(0, 12))
def test_a_merge_stands_while_its_last_revert_is_undone(words: list[str], cut: int) -> None:
    mine = Landing("a" * 40, "squash", ("a" * 40,), "p", "u")
    came: list[Landed] = []
    standing: list[str] = []
    for place, word in enumerate(words):
        name = f"{place:040x}"
        match word:
            case "revert" if not standing:
                came.append(Landed(name, f"Revert\n\nThis reverts commit {'a' * 40}.", None))
                standing = [name]
            case "back" if not standing:
                came.append(Landed(name, "the reverse, by hand", "u"))
                standing = [name]
            case "again" if standing:
                came.append(Landed(name, f"Revert\n\nThis reverts commit {standing[0]}.", None))
                standing = []
            case _:
                came.append(Landed(name, "other", "x"))
    whole = undone(mine, 7, (), came)
    assert whole == tuple(standing)
    assert undone(mine, 7, undone(mine, 7, (), came[:cut]), came[cut:]) == whole
