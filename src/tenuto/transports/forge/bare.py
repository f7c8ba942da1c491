"""A remote without a host: its branches are the pull requests, and a push that replaces exactly one commit merges.

The number of a pull request is made of its branch's name, so nothing has to be registered anywhere. What was merged
here is known by lines in the merge's message, which say which branch, which head and whose command. The remote compares
and sets: when the base has moved meanwhile, nothing is pushed, and the next try begins from what stands there then.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tenuto.model.faults import Mistake
from tenuto.model.forge import (
    BaseFacts,
    Doubtful,
    Look,
    Merge,
    MergeAnswer,
    Merged,
    MergeMethod,
    NoPull,
    NotMerged,
    PullFacts,
    PullState,
    Unreachable,
)
from tenuto.transports.forge.git import COMMIT, Failed, Git, ref_of

#: Commits of the base that are searched for a merge of ours.
SEARCHED = 5000
#: Seconds after which a push that was given up cannot arrive any more.
SETTLED = 5.0
HEADS = "refs/remotes/there/"
_MARKER = re.compile(r"\[tenuto:c-[0-9a-hjkmnp-tv-z]{26}\]")
_WHO = {
    "GIT_AUTHOR_NAME": "Tenuto", "GIT_AUTHOR_EMAIL": "tenuto@localhost",
    "GIT_COMMITTER_NAME": "Tenuto", "GIT_COMMITTER_EMAIL": "tenuto@localhost",
}  # fmt: skip


def number_of(branch: str) -> int:
    """The number of a branch's pull request: the same for the same name, below 2**48."""
    return int(hashlib.sha256(branch.encode()).hexdigest()[:12], 16) or 1


@dataclass(frozen=True)
class BareForge:
    """Implements `ports.Forge` for one remote.

    `store` is a bare repository of our own, in which objects are kept. `into` is the branch that is merged to; None:
    the one that the remote's HEAD names.
    """

    remote: str
    store: Path
    now: Callable[[], datetime]
    into: str | None = None
    over: float = SETTLED

    def base(self, branch: str | None) -> BaseFacts | Unreachable:
        """The branch and its commit; None: the one that the remote's HEAD names."""
        try:
            heads, default = self._fetched()
            name = branch if branch is not None else default
            if name is None or name not in heads:
                return Unreachable(f"the remote has no branch {name or 'that its HEAD names'}")
            return BaseFacts(name, heads[name])
        except (Failed, Mistake, OSError) as why:
            return Unreachable(str(why))

    def pull(self, number: int) -> Look:
        """The branch of that number, laid beside the base."""
        try:
            heads, default = self._fetched()
            return self._look(heads, default, number)
        except (Failed, Mistake, OSError) as why:
            return Unreachable(str(why))

    def pulls(self, branch: str) -> tuple[PullFacts, ...] | Unreachable:
        """The one pull request that a branch is."""
        found = self.pull(number_of(branch))
        match found:
            case PullFacts():
                return (found,)
            case NoPull():
                return ()
            case Unreachable():
                return found

    def merge(self, order: Merge) -> MergeAnswer:
        """Merge the head into the base as it stands now, and push that in the place of exactly this base."""
        try:
            heads, default = self._fetched()
            if (answer := _stands(self._look(heads, default, order.number, order.base), order)) is not None:
                return answer
            before = heads[order.base]
            commit = self._merged(order, before)
        except (Failed, Mistake, OSError) as why:
            return NotMerged(str(why))
        target = ref_of(order.base)
        lease = f"--force-with-lease={target}:{before}"
        try:
            self._git.run("push", "--porcelain", lease, "--", self.remote, f"{commit}:{target}")
            return Merged(commit)
        except (Failed, OSError) as why:
            return self._after_silence(order, commit, str(why))

    # -- within

    @property
    def _git(self) -> Git:
        return Git(self.store)

    def _fetched(self) -> tuple[Mapping[str, str], str | None]:
        """The remote's branches as they stand now, with all their objects here, and which one its HEAD names."""
        if not (self.store / "HEAD").is_file():
            self.store.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._git.run("init", "--quiet", "--bare", ".")
        self._git.run("fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--", self.remote,
                      f"+refs/heads/*:{HEADS}*")  # fmt: skip
        listed = self._git.run("for-each-ref", "--format=%(objectname) %(refname)", HEADS).splitlines()
        heads = {name.removeprefix(HEADS): commit for commit, _, name in (line.partition(" ") for line in listed)}
        told = self._git.run("ls-remote", "--symref", "--", self.remote, "HEAD")
        default = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", told, re.MULTILINE)
        return heads, self.into or (default[1] if default is not None else None)

    def _look(
        self, heads: Mapping[str, str], default: str | None, number: int, base: str | None = None
    ) -> PullFacts | NoPull:
        base = base if base is not None else default
        if base is None or base not in heads:
            raise Failed(f"the remote has no branch {base or 'that its HEAD names'}")
        if (merged := self._found(heads[base], base, number)) is not None:
            return merged
        branch = next((name for name in heads if number_of(name) == number), None)
        if branch is None or branch == base:
            return NoPull("there is no such branch on the remote, and no merge of one")
        head = heads[branch]
        facts = PullFacts(
            number=number,
            state=PullState.OPEN,
            branch=branch,
            head=head,
            base=base,
            url=f"{self.remote}#{branch}",
            title=self._git.run("log", "-1", "--format=%s", head).strip()[:500],
            body=self._git.run("log", "-1", "--format=%B", head)[:65536],
        )
        return self._beside(facts, heads[base])

    def _beside(self, facts: PullFacts, base: str) -> PullFacts:
        """Whether the base has it already, and whether it could be merged into it."""
        state, merged, mergeable = facts.state, None, None
        if self._git.run("merge-base", facts.head, base, also=1).strip() == facts.head:
            asked = ("rev-list", "--first-parent", "--reverse", "--ancestry-path", f"{facts.head}..{base}")
            line = self._git.run("rev-list", "--first-parent", f"--max-count={SEARCHED}", base).split()
            if facts.head in line or not (after := self._git.run(*asked).split()):
                state = PullState.CLOSED  # the base's own history has it: there is nothing to merge
            else:
                state, merged = PullState.MERGED, after[0]
        else:
            mergeable = self._tree(base, facts.head) is not None
        return PullFacts(
            facts.number, state, facts.branch, facts.head, facts.base, facts.url, facts.title, facts.body,
            mergeable=mergeable, merged_as=merged,
        )  # fmt: skip

    def _found(self, base: str, name: str, number: int) -> PullFacts | None:
        """The merge of this number that stands in the base, by the lines in its message."""
        told = self._git.run(
            "log", "--first-parent", f"--max-count={SEARCHED}", "--fixed-strings", f"--grep=tenuto-pull: {number} ",
            "--format=%H%x1f%B%x1e", base,
        )  # fmt: skip
        for entry in told.split("\x1e"):
            commit, _, message = entry.strip().partition("\x1f")
            pull = re.search(rf"^tenuto-pull: {number} (\S+)$", message, re.MULTILINE)
            head = re.search(r"^tenuto-head: ([0-9a-f]{40,64})$", message, re.MULTILINE)
            if pull is not None and head is not None:
                markers = _MARKER.findall(message)
                return PullFacts(
                    number, PullState.MERGED, pull[1], head[1], name, f"{self.remote}#{pull[1]}",
                    title=message.partition("\n")[0][:500], body=message[:65536], merged_as=commit,
                    marker=markers[-1] if markers else None,
                )  # fmt: skip
        return None

    def _tree(self, base: str, head: str) -> str | None:
        """The tree of both merged; None where they conflict."""
        told = self._git.run("merge-tree", "--write-tree", "--no-messages", base, head, also=1).split()
        clean = len(told) == 1 and COMMIT.fullmatch(told[0]) is not None
        return told[0] if clean else None

    def _merged(self, order: Merge, before: str) -> str:
        """A commit of ours that is not pushed yet."""
        if order.method is MergeMethod.REBASE:
            raise Failed("a remote without a host merges or squashes")
        tree = self._tree(before, order.head)
        if tree is None:
            raise Failed(f"it conflicts with {order.base}")
        branch = next(name for name, commit in self._heads() if number_of(name) == order.number)
        message = f"{order.title}\n\ntenuto-pull: {order.number} {branch}\ntenuto-head: {order.head}\n{order.marker}\n"
        parents = ["-p", before] + (["-p", order.head] if order.method is MergeMethod.MERGE else [])
        stamp = f"{int(self.now().timestamp())} +0000"
        given = _WHO | {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        return self._git.run("commit-tree", *parents, "-m", message, tree, given=given).strip()

    def _heads(self) -> list[tuple[str, str]]:
        listed = self._git.run("for-each-ref", "--format=%(objectname) %(refname)", HEADS).splitlines()
        return [(name.removeprefix(HEADS), commit) for commit, _, name in (line.partition(" ") for line in listed)]

    def _after_silence(self, order: Merge, commit: str, why: str) -> MergeAnswer:
        """What a look says after a push did not end well: it stands, it was refused, or it is in doubt."""
        try:
            heads, _ = self._fetched()
            found = self._found(heads[order.base], order.base, order.number) if order.base in heads else None
        except (Failed, Mistake, OSError):
            return Doubtful(why, SETTLED)
        if found is not None and found.marker == order.marker:
            return Merged(found.merged_as or commit)
        if "given up" in why:
            return Doubtful(why, SETTLED)
        return NotMerged(why, moved="stale info" in why or "fetch first" in why or "rejected" in why)


def _stands(found: PullFacts | NoPull, order: Merge) -> MergeAnswer | None:
    """Merged where this very merge stands, NotMerged where it cannot be any more; None: it may be tried."""
    if isinstance(found, NoPull):
        return NotMerged(found.why)
    if found.state is PullState.MERGED:
        if found.marker == order.marker and found.merged_as is not None:
            return Merged(found.merged_as)
        return NotMerged("it was merged by somebody else", moved=True)
    if found.state is PullState.CLOSED:
        return NotMerged("there is nothing in it that the base has not", moved=True)
    if found.head != order.head:
        return NotMerged(f"its head is {found.head[:12]} now, and {order.head[:12]} was expected", moved=True)
    return None
