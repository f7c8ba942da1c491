"""A bare remote merges by a push that replaces exactly one commit: real git, real remotes, real races."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tenuto.model.faults import Mistake
from tenuto.model.forge import (
    BaseFacts,
    Merge,
    Merged,
    MergeMethod,
    NoPull,
    NotMerged,
    PullFacts,
    PullState,
    Unreachable,
)
from tenuto.ports import Checkout
from tenuto.transports.forge.bare import BareForge, number_of
from tenuto.transports.forge.checkouts import Checkouts
from tenuto.transports.forge.git import Failed, Git, ref_of, remote

MARK = "[tenuto:c-{:026d}]"
WHO = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}


@dataclass
class Place:
    """A bare remote, and a clone in which somebody works."""

    folder: Path

    @property
    def remote(self) -> Path:
        return self.folder / "remote.git"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def git(self, *arguments: str, at: Path | None = None) -> str:
        return Git(at or self.work).run(*arguments, given=WHO).strip()

    def begin(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.remote), at=self.folder)
        self.git("clone", "--quiet", str(self.remote), str(self.work), at=self.folder)
        self.git("checkout", "--quiet", "-B", "main")
        self.commit("first.txt", "one\n", "first")
        self.git("push", "--quiet", "origin", "main")

    def commit(self, name: str, content: str, message: str) -> str:
        (self.work / name).write_text(content)
        self.git("add", name)
        self.git("commit", "--quiet", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, file: str, content: str = "new\n") -> str:
        self.git("checkout", "--quiet", "-B", name, "origin/main")
        head = self.commit(file, content, f"Work on {name}\n\n[tenuto-chain:h-x]")
        self.git("push", "--quiet", "--force", "origin", name)
        return head

    def forge(self, name: str = "store") -> BareForge:
        return BareForge(str(self.remote), self.folder / f"{name}.git", lambda: datetime(2026, 3, 1, tzinfo=UTC))

    def main(self) -> str:
        return self.git("rev-parse", "main", at=self.remote)

    def history(self) -> list[str]:
        return self.git("log", "--first-parent", "--format=%s", "main", at=self.remote).splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "p")
    made.begin()
    return made


def order(branch: str, head: str, mark: int = 1, method: MergeMethod = MergeMethod.MERGE) -> Merge:
    return Merge(number_of(branch), head, "main", method, f"Merge {branch}", MARK.format(mark))


def pulled(forge: BareForge, branch: str) -> PullFacts:
    found = forge.pull(number_of(branch))
    assert isinstance(found, PullFacts), found
    return found


def test_a_branch_is_a_pull_request_and_is_merged_once(place: Place) -> None:
    head = place.branch("tenuto/x/u1", "u1.txt")
    forge = place.forge()
    seen = pulled(forge, "tenuto/x/u1")
    assert (seen.state, seen.head, seen.base, seen.mergeable) == (PullState.OPEN, head, "main", True)
    assert "[tenuto-chain:h-x]" in seen.body
    assert forge.pulls("tenuto/x/u1") == (seen,)
    first = forge.merge(order("tenuto/x/u1", head))
    again = forge.merge(order("tenuto/x/u1", head))
    other = forge.merge(order("tenuto/x/u1", head, 2))
    assert isinstance(first, Merged)
    assert again == first, "the same command finds what it did"
    assert isinstance(other, NotMerged)
    assert place.main() == first.commit
    assert place.history() == ["Merge tenuto/x/u1", "first"]
    seen = pulled(forge, "tenuto/x/u1")
    assert (seen.state, seen.merged_as, seen.marker) == (PullState.MERGED, first.commit, MARK.format(1))
    place.git("push", "--quiet", "origin", "--delete", "tenuto/x/u1")
    assert pulled(place.forge("fresh"), "tenuto/x/u1").merged_as == first.commit, "the branch may be gone by then"


def test_squashed_it_is_one_commit_and_known_all_the_same(place: Place) -> None:
    head = place.branch("tenuto/x/u2", "u2.txt")
    answer = place.forge().merge(order("tenuto/x/u2", head, method=MergeMethod.SQUASH))
    assert isinstance(answer, Merged)
    assert place.git("rev-list", "--parents", "-1", "main", at=place.remote).count(" ") == 1
    seen = pulled(place.forge(), "tenuto/x/u2")
    assert (seen.state, seen.head, seen.marker) == (PullState.MERGED, head, MARK.format(1))


def test_only_the_expected_head_is_merged_and_a_base_that_moved_is_merged_with(place: Place) -> None:
    old = place.branch("tenuto/x/u3", "u3.txt")
    new = place.branch("tenuto/x/u3", "u3.txt", "newer\n")
    forge = place.forge()
    assert forge.merge(order("tenuto/x/u3", old)) == NotMerged(
        f"its head is {new[:12]} now, and {old[:12]} was expected", moved=True
    )
    place.git("checkout", "--quiet", "main")
    place.commit("other.txt", "o\n", "somebody else")
    place.git("push", "--quiet", "origin", "main")
    assert isinstance(forge.merge(order("tenuto/x/u3", new)), Merged)
    assert place.history() == ["Merge tenuto/x/u3", "somebody else", "first"]


def test_what_conflicts_is_not_merged_and_says_so(place: Place) -> None:
    head = place.branch("tenuto/x/u4", "first.txt", "two\n")
    place.git("checkout", "--quiet", "main")
    place.commit("first.txt", "three\n", "somebody else")
    place.git("push", "--quiet", "origin", "main")
    forge = place.forge()
    assert pulled(forge, "tenuto/x/u4").mergeable is False
    answer = forge.merge(order("tenuto/x/u4", head))
    assert isinstance(answer, NotMerged)
    assert "conflicts" in answer.why
    assert place.history() == ["somebody else", "first"]


def test_several_at_once_never_lose_one_and_never_merge_one_twice(place: Place) -> None:
    heads = {f"tenuto/x/m{number}": place.branch(f"tenuto/x/m{number}", f"m{number}.txt") for number in range(4)}
    answers: dict[str, list[object]] = {name: [] for name in heads}

    def merge(name: str, which: int) -> None:
        forge = place.forge(f"store-{which}")
        for mark in range(1, 12):
            answer = forge.merge(order(name, heads[name], 100 * which + mark))
            answers[name].append(answer)
            if not (isinstance(answer, NotMerged) and "merged by somebody" not in answer.why):
                return

    threads = [
        threading.Thread(target=merge, args=(name, 2 * place_ + who))
        for place_, name in enumerate(heads)
        for who in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for name, told in answers.items():
        assert sum(isinstance(one, Merged) for one in told) == 1, (name, told)
    assert sorted(place.history()[:-1]) == sorted(f"Merge {name}" for name in heads)


def test_a_merge_past_the_wrapper_is_seen_and_a_branch_without_work_is_nothing(place: Place) -> None:
    place.branch("tenuto/x/u5", "u5.txt")
    place.git("checkout", "--quiet", "-B", "main", "origin/main")
    place.git("merge", "--quiet", "--no-ff", "-m", "by hand", "tenuto/x/u5")
    place.git("push", "--quiet", "origin", "main")
    seen = pulled(place.forge(), "tenuto/x/u5")
    assert (seen.state, seen.merged_as, seen.marker) == (PullState.MERGED, place.main(), None)
    place.git("push", "--quiet", "origin", "main:refs/heads/tenuto/x/empty")
    assert pulled(place.forge(), "tenuto/x/empty").state is PullState.CLOSED
    assert place.forge().pull(number_of("tenuto/x/never")) == NoPull(
        "there is no such branch on the remote, and no merge of one"
    )


def test_a_renamed_default_branch_is_followed_and_a_remote_that_is_gone_has_said_nothing(place: Place) -> None:
    forge = place.forge()
    assert forge.base(None) == BaseFacts("main", place.main())
    place.git("branch", "-m", "main", "trunk", at=place.remote)
    assert isinstance(forge.base(None), BaseFacts)
    assert forge.base(None) == BaseFacts("trunk", place.git("rev-parse", "trunk", at=place.remote))
    assert isinstance(forge.base("main"), Unreachable)
    place.remote.rename(place.folder / "away.git")
    assert isinstance(forge.base(None), Unreachable)
    assert isinstance(forge.pull(1), Unreachable)
    answer = forge.merge(order("tenuto/x/u1", "0" * 40))
    assert isinstance(answer, NotMerged)


def test_a_hook_of_the_remote_that_declines_is_a_refusal(place: Place) -> None:
    head = place.branch("tenuto/x/u6", "u6.txt")
    hook = place.remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    answer = place.forge().merge(order("tenuto/x/u6", head))
    assert isinstance(answer, NotMerged)
    assert place.history() == ["first"]


def test_a_push_that_took_effect_and_was_told_to_have_failed_is_found(place: Place) -> None:
    head = place.branch("tenuto/x/u7", "u7.txt")
    hook = place.remote / "hooks" / "post-receive"
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")
    hook.chmod(0o755)
    forge = place.forge()
    answer = forge.merge(order("tenuto/x/u7", head))
    assert isinstance(answer, Merged), answer
    hook.unlink()
    assert forge.merge(order("tenuto/x/u7", head)) == answer
    assert place.history() == ["Merge tenuto/x/u7", "first"]


@pytest.mark.parametrize(
    "bad",
    ["", "relative/path", "ext::sh -c id", "https://user:secret@host.example/x.git", "-oProxyCommand=id", "http://h/x"],
)
def test_a_remote_is_a_plain_place(bad: str) -> None:
    with pytest.raises(Mistake) as mistake:
        remote(bad)
    assert "secret" not in str(mistake.value)


@pytest.mark.parametrize("bad", ["", "-x", "a..b", "a b", "a~1", "a:b", "/a", "a/", "a.lock", "a\nb", "a@{1}"])
def test_a_branch_is_a_plain_name(bad: str) -> None:
    with pytest.raises(Mistake):
        ref_of(bad)


def test_a_checkout_stands_at_exactly_the_commit_and_is_clean_when_it_is_asked_for_again(place: Place) -> None:
    head = place.branch("tenuto/x/u8", "u8.txt")
    place.git("checkout", "--quiet", "main")
    subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=place.work, check=True)
    checkouts = Checkouts(place.folder / "checkouts")
    wanted = Checkout("q-1-abc", str(place.work), head, "tenuto/x/u8", 1, str(place.remote))
    path = Path(checkouts.make(wanted))
    assert (path / "u8.txt").read_text() == "new\n"
    (path / "u8.txt").write_text("changed\n")
    (path / "made.txt").write_text("by the gate\n")
    assert checkouts.make(wanted) == str(path)
    assert (path / "u8.txt").read_text() == "new\n"
    assert not (path / "made.txt").exists()
    assert place.git("status", "--porcelain") == "", "nobody's working tree is touched"
    elsewhere = Place(place.folder / "elsewhere")
    elsewhere.folder.mkdir()
    place.git("clone", "--quiet", "--single-branch", "--branch=main", str(place.remote), str(elsewhere.work))
    fetched = Checkout("q-2-abc", str(elsewhere.work), head, "tenuto/x/u8", 1, None)
    assert (Path(checkouts.make(fetched)) / "u8.txt").is_file(), "what the repository has not is fetched"
    checkouts.clear("q-2")
    assert sorted(one.name for one in (place.folder / "checkouts").iterdir()) == ["q-1-abc"]
    with pytest.raises(OSError, match="cannot be checked out"):
        checkouts.make(Checkout("q-3-abc", str(place.work), "f" * 40, "nowhere", 1, str(place.remote)))
    with pytest.raises(OSError, match="plain name"):
        checkouts.clear("../work")


def test_git_that_does_not_come_to_an_end_is_given_up(place: Place) -> None:
    from datetime import timedelta

    with pytest.raises(Failed) as failed:
        Git(place.work).run("cat-file", "--batch-check", "--batch-all-objects", "--buffer", limit=timedelta(0))
    assert failed.value.timed_out
