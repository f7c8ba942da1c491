"""Worktrees are made once, found again after a death, and kept while they hold work that is nowhere else."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gits import Remote, git, remote

from tenuto.model.worktree import Base, InTheWay, Kept, Made, NotNow, Removed, Tree
from tenuto.transports.workspace.hand import Hand
from tenuto.transports.workspace.history import GitHistory
from tenuto.transports.workspace.trees import GitWorktrees

pytestmark = [pytest.mark.anyio, pytest.mark.only_on("linux", "darwin")]
BASE = Base("origin", "main")
BRANCH = "tenuto/aaaa/a-1"


@pytest.fixture
def at(tmp_path: Path) -> Remote:
    return remote(tmp_path)


@pytest.fixture
def trees(tmp_path: Path) -> GitWorktrees:
    hand = Hand()
    return GitWorktrees(tmp_path / "trees", hand, GitHistory(hand))


def tree(at: Remote, trees: GitWorktrees, name: str = "aaaa/a-1") -> Tree:
    return Tree(str(at.clone), trees.path(name), f"tenuto/{name}", BASE)


def mode(place: Path) -> int:
    return place.stat().st_mode & 0o777


def there(place: Path) -> bool:
    return place.exists()


def written(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("mine")
    return place


def gone(place: Path) -> Path:
    place.unlink()
    return place


def ended(*words: str) -> int:
    return subprocess.run([sys.executable, *words], check=False, capture_output=True, timeout=60).returncode


def work(tree: Tree, name: str = "a.txt") -> str:
    place = Path(tree.path)
    (place / name).write_text("work\n")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", f"work on {name}")
    return git(place, "rev-parse", "HEAD")


async def test_it_begins_at_the_base_as_it_is_now_and_is_found_again(at: Remote, trees: GitWorktrees) -> None:
    newest = at.commit("other.txt", "news\n", "news")
    at.push("HEAD:main")
    wanted = tree(at, trees)
    assert await trees.found(wanted) is None
    assert await trees.make(wanted) == Made(newest)
    assert git(Path(wanted.path), "symbolic-ref", "--short", "HEAD") == BRANCH
    assert await trees.make(wanted) == await trees.found(wanted) == Made(newest)
    assert git(at.clone, "worktree", "list", "--porcelain").count("worktree ") == 2
    assert git(at.clone, "rev-parse", "main") != newest, "nothing else of the checkout moves"
    assert mode(trees.root) == 0o700


async def test_br_131_a_branch_that_is_taken_is_seen_before_anything_begins(at: Remote, trees: GitWorktrees) -> None:
    at.push(f"HEAD:refs/heads/{BRANCH}")
    wanted = tree(at, trees)
    answer = await trees.make(wanted)
    assert isinstance(answer, InTheWay)
    assert "origin has a branch" in answer.why
    git(at.desk, "push", "-q", "origin", f":refs/heads/{BRANCH}")
    git(at.clone, "branch", BRANCH)
    assert isinstance(await trees.make(wanted), Made), "a branch with nothing of its own is used"
    other = tree(at, trees, "aaaa/b-2")
    git(at.clone, "checkout", "-q", "-b", other.branch)
    git(at.clone, "commit", "-q", "--allow-empty", "-m", "mine")
    git(at.clone, "checkout", "-q", "main")
    assert isinstance(await trees.make(other), InTheWay)


async def test_br_134_the_branch_of_another_unit_cannot_be_taken(at: Remote, trees: GitWorktrees) -> None:
    one, other = tree(at, trees), tree(at, trees, "aaaa/b-2")
    for each in (one, other):
        assert isinstance(await trees.make(each), Made)
    with pytest.raises(subprocess.CalledProcessError):
        git(Path(one.path), "switch", "-q", other.branch)
    work(one)
    assert git(at.clone, "rev-list", "--count", f"main..{other.branch}") == "0"
    git(Path(one.path), "switch", "-q", "-c", "elsewhere")
    assert isinstance(await trees.found(one), InTheWay), "a worktree that was moved to another branch is not ours"


async def test_something_else_at_its_place_is_left_alone(at: Remote, trees: GitWorktrees) -> None:
    wanted = tree(at, trees)
    precious = written(Path(wanted.path) / "precious")
    assert isinstance(await trees.make(wanted), InTheWay)
    assert isinstance(await trees.remove(wanted), Kept)
    assert there(precious)


async def test_br_130_never_inside_another_checkout(at: Remote) -> None:
    hand = Hand()
    inside = GitWorktrees(at.desk / "deep" / "trees", hand, GitHistory(hand))
    assert "inside the checkout" in (inside.objection(str(at.clone)) or "")
    assert isinstance(await inside.make(tree(at, inside)), InTheWay)
    assert not (at.desk / "deep" / "trees" / "aaaa").joinpath("a-1").exists()
    assert "no git checkout" in (inside.objection(str(at.bare.parent)) or "")


DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from tenuto.model.worktree import Base, Tree
from tenuto.transports.workspace import git
from tenuto.transports.workspace.hand import Hand
from tenuto.transports.workspace.history import GitHistory
from tenuto.transports.workspace.trees import GitWorktrees
root, clone, path, branch = sys.argv[1:]
hand = Hand()
act = Hand.act
async def dying(self, repository, *words, **more):
    if words[:2] == ("worktree", "add"):
        env = await self._environment(repository)
        import subprocess
        subprocess.Popen(["git", *words], cwd=repository.top, env=env, pass_fds=more["keeps"], start_new_session=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return await act(self, repository, *words, **more)
Hand.act = dying
asyncio.run(GitWorktrees(Path(root), hand, GitHistory(hand)).make(Tree(clone, path, branch, Base("origin", "main"))))
"""


async def test_a_death_in_the_middle_leaves_it_to_its_git_and_nothing_is_made_twice(
    at: Remote, trees: GitWorktrees
) -> None:
    wanted = tree(at, trees)
    code = ended("-c", DIES, str(trees.root), wanted.repository, wanted.path, wanted.branch)
    assert code == -signal.SIGKILL
    answer = await trees.make(wanted)
    for _ in range(2000):
        if not isinstance(answer, NotNow):
            break
        answer = await trees.make(wanted)
    assert isinstance(answer, Made), answer
    assert git(at.clone, "worktree", "list", "--porcelain").count("worktree ") == 2
    assert git(Path(wanted.path), "status", "--porcelain") == ""


async def test_half_of_one_is_made_anew(at: Remote, trees: GitWorktrees) -> None:
    wanted = tree(at, trees)
    first = await trees.make(wanted)
    locked = Path(git(Path(wanted.path), "rev-parse", "--absolute-git-dir")) / "locked"
    locked.write_text("initializing")  # what git leaves when it is killed
    lost = gone(Path(wanted.path, "begin.txt"))
    assert await trees.found(wanted) is None
    assert await trees.make(wanted) == first
    assert there(lost)


async def test_what_is_nowhere_else_is_kept_and_said(at: Remote, trees: GitWorktrees) -> None:
    wanted = tree(at, trees)
    await trees.make(wanted)
    place = Path(wanted.path)
    (place / "new.txt").write_text("not yet\n")
    dirty = await trees.remove(wanted)
    assert dirty == Kept("1 of its files are not committed")
    work(wanted, "new.txt")
    unpushed = await trees.remove(wanted)
    assert isinstance(unpushed, Kept)
    assert "not on origin" in unpushed.why
    git(place, "checkout", "-q", "--detach")
    git(place, "commit", "-q", "--allow-empty", "-m", "on no branch")
    assert isinstance(await trees.remove(wanted), Kept)
    git(place, "checkout", "-q", BRANCH)
    (Path(git(place, "rev-parse", "--absolute-git-dir")) / "MERGE_HEAD").write_text("x")
    assert await trees.remove(wanted) == Kept("a merge is under way in it")
    (Path(git(place, "rev-parse", "--absolute-git-dir")) / "MERGE_HEAD").unlink()
    git(at.clone, "worktree", "lock", "--reason", "I look at it", wanted.path)
    assert await trees.remove(wanted) == Kept("somebody has locked it: I look at it")
    git(at.clone, "worktree", "unlock", wanted.path)
    assert (place / "new.txt").exists()
    git(place, "push", "-q", "origin", BRANCH)
    assert await trees.remove(wanted) == Removed()
    assert not there(place)
    assert await trees.remove(wanted) == Removed(), "once more is the same"
    assert git(at.clone, "rev-parse", "--verify", BRANCH), "br-132: the branch stays, and can be used elsewhere"
    git(at.clone, "checkout", "-q", BRANCH)


async def test_work_that_was_squashed_into_the_base_is_elsewhere(at: Remote, trees: GitWorktrees) -> None:
    wanted = tree(at, trees)
    await trees.make(wanted)
    work(wanted)
    work(wanted, "b.txt")
    git(Path(wanted.path), "push", "-q", "origin", BRANCH)
    git(at.desk, "fetch", "-q", "origin")
    git(at.desk, "merge", "-q", "--squash", f"origin/{BRANCH}")
    git(at.desk, "commit", "-q", "-m", "squashed")
    at.push("HEAD:main", f":refs/heads/{BRANCH}")
    assert await trees.remove(wanted) == Removed()


async def test_nothing_that_the_repository_configures_is_run(at: Remote, trees: GitWorktrees, tmp_path: Path) -> None:
    told = tmp_path / "ran"
    hook = at.clone / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {told}\n")
    hook.chmod(0o755)
    for key in ("core.sshCommand", "core.fsmonitor", "filter.x.smudge", "remote.origin.uploadpack"):
        git(at.clone, "config", key, f"touch {told}; false")
    git(at.clone, "config", "filter.x.required", "true")
    (at.clone / ".git" / "info" / "attributes").write_text("* filter=x\n")
    wanted = tree(at, trees)
    assert isinstance(await trees.make(wanted), Made)
    assert isinstance(await trees.remove(replace(wanted)), Removed)
    assert not told.exists()


async def test_a_remote_out_of_reach_is_no_failure(at: Remote, trees: GitWorktrees) -> None:
    git(at.clone, "remote", "set-url", "origin", str(at.bare.parent / "nowhere.git"))
    assert isinstance(await trees.make(tree(at, trees)), NotNow)
    git(at.clone, "remote", "set-url", "origin", "ext::sh -c touch%20ran")
    assert isinstance(await trees.make(tree(at, trees)), NotNow)
    assert not (at.clone / "ran").exists()
