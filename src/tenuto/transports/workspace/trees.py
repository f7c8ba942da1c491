"""Worktrees of their own for tasks: made once, found again, and never taken away with work in them.

A worktree stands when git lists it on its branch and has finished making it. Half of one, left by a death, is taken
away and made anew, but only while nobody is at it: whoever makes one holds a lock that its git inherits, so that the
lock outlives a supervisor that dies. Anything else that stands in the way is a person's to judge.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tenuto.model.worktree import InTheWay, Kept, Made, NotNow, Removed, Tree, TreeMade, TreeRemoved
from tenuto.transports.workspace import place, status
from tenuto.transports.workspace.git import Repository
from tenuto.transports.workspace.hand import GitFailed, Hand, repository_at
from tenuto.transports.workspace.history import GitHistory

#: What git calls the lock of a worktree that it has not finished.
UNFINISHED: Final = "initializing"
#: Files of a worktree's git directory that tell of something begun and not ended.
BEGUN: Final = {
    "MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase", "rebase-apply": "a rebase", "BISECT_LOG": "a bisection",
}  # fmt: skip


class Busy(Exception):
    """Somebody is at this worktree now."""


@dataclass(frozen=True)
class Listed:
    """A worktree as git lists it. `branch` is short, None when detached; `locked` None: it is not."""

    path: str
    head: str | None
    branch: str | None
    locked: str | None


@dataclass(frozen=True)
class GitWorktrees:
    """Implements `ports.Worktrees`; all of them stand below `root`."""

    root: Path
    hand: Hand
    history: GitHistory

    def path(self, name: str) -> str:
        """`root/NAME`; the name has no other parts than its own."""
        parts = name.split("/")
        if not parts or any(not part or part.startswith(".") for part in parts):
            raise ValueError(f"no name of a worktree: {name!r}")
        return str(self.root.joinpath(*parts))

    def objection(self, repository: str) -> str | None:
        """Why no worktrees of this repository can be made here."""
        try:
            repository_at(repository)
        except GitFailed as why:
            return str(why)
        return self._inside(self.root)

    async def make(self, tree: Tree) -> TreeMade:
        """Make it, or find it made."""
        try:
            repository = repository_at(tree.repository)
            if (why := self._inside(Path(tree.path).parent)) is not None:
                return InTheWay(why)
            with self._alone(tree) as lock:
                return await self._made(repository, tree, lock)
        except Busy as why:
            return NotNow(str(why))
        except (GitFailed, OSError) as why:
            return NotNow(str(why))

    async def found(self, tree: Tree) -> TreeMade | None:
        """What stands of it; None: nothing, and nobody is at it."""
        try:
            repository = repository_at(tree.repository)
            with self._alone(tree):
                return await self._standing(repository, tree)
        except (Busy, GitFailed, OSError) as why:
            return NotNow(str(why))

    async def remove(self, tree: Tree) -> TreeRemoved:
        """Take it away if all of its work is elsewhere."""
        try:
            repository = repository_at(tree.repository)
            with self._alone(tree) as lock:
                listed = await self._listed(repository, tree.path)
                there = _there(tree.path)
                if listed is None:
                    if not there:
                        self._forget(tree)
                        return Removed()
                    return Kept("git does not know it as a worktree any more")
                if there and (why := await self._work(repository, tree, listed)) is not None:
                    return Kept(why)
                answer = await self.hand.act(repository, "worktree", "remove", "--", tree.path, keeps=(lock,))
                if answer.code != 0:
                    return Kept(answer.complaint or "git does not remove it")
                self._forget(tree)
                return Removed()
        except (Busy, GitFailed, OSError) as why:
            return NotNow(str(why))

    # -- making

    async def _made(self, repository: Repository, tree: Tree, lock: int) -> TreeMade:
        standing = await self._standing(repository, tree)
        if standing is not None:
            return standing
        listed = await self._listed(repository, tree.path)
        if listed is not None:
            # Half of it, and nobody is at it: no task has begun in it, because it was never said to stand.
            await self._must(repository, "worktree", "remove", "--force", "--force", "--", tree.path)
        commit = await self.hand.base(repository, tree.base)
        if await self.hand.heads(repository, tree.base.remote, f"refs/heads/{tree.branch}"):
            return InTheWay(f"{tree.base.remote} has a branch {tree.branch} already")
        ref = f"refs/heads/{tree.branch}^{{commit}}"
        own = await self.hand.look(repository, "rev-parse", "--verify", "--quiet", ref)
        if own.code == 0:
            begun = own.output.decode("ascii", "replace").strip()
            inside = await self.hand.look(repository, "merge-base", "--is-ancestor", begun, commit)
            if inside.code != 0:
                return InTheWay(f"there is a branch {tree.branch} already, with commits of its own")
        answer = await self.hand.act(
            repository, "worktree", "add", "--quiet", "--no-track", "--no-guess-remote", "-B", tree.branch, "--",
            tree.path, commit, keeps=(lock,),
        )  # fmt: skip
        if answer.code != 0:
            return NotNow(answer.complaint or "git did not make the worktree")
        return await self._standing(repository, tree) or NotNow("git made the worktree, and it is not there")

    async def _standing(self, repository: Repository, tree: Tree) -> TreeMade | None:
        """What stands at the path: the whole worktree, something else, or (None) nothing or half of one."""
        listed = await self._listed(repository, tree.path)
        if listed is None:
            return InTheWay(f"something else stands at {tree.path}") if _taken(tree.path) else None
        if listed.locked == UNFINISHED:
            return None
        if not _linked(tree.path):
            return InTheWay(f"git knows a worktree at {tree.path}, and it is not there")
        if listed.branch != tree.branch or listed.head is None:
            return InTheWay(f"the worktree at {tree.path} is on {listed.branch or 'no branch'}, not on {tree.branch}")
        return Made(listed.head)

    async def _listed(self, repository: Repository, path: str) -> Listed | None:
        told = await self.hand.said(repository, "worktree", "list", "--porcelain")
        wanted = {path, _real(path)}
        return next((one for one in map(_entry, told.split("\n\n")) if one is not None and one.path in wanted), None)

    async def _must(self, repository: Repository, *arguments: str) -> None:
        answer = await self.hand.act(repository, *arguments)
        if answer.code != 0:
            raise GitFailed(answer.complaint or f"git {arguments[0]} failed")

    # -- removing

    async def _work(self, repository: Repository, tree: Tree, listed: Listed) -> str | None:
        """What is in it that is nowhere else; None: nothing."""
        if listed.locked is not None:
            return f"somebody has locked it: {listed.locked or 'no reason is given'}"
        if not _linked(tree.path):
            return "it is no worktree any more"
        within = Repository(Path(tree.path), Path(tree.path, ".git"))
        git_dir = Path((await self.hand.said(within, "rev-parse", "--absolute-git-dir")).strip())
        if (what := _under_way(git_dir)) is not None:
            return f"{what} is under way in it"
        told = await self.hand.act(within, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all")
        if told.code != 0:
            raise GitFailed(told.complaint or "its state cannot be read")
        seen = status.parse(told.output, 1000)
        if seen.changes:
            more = "" if not seen.truncated else " or more"
            return f"{len(seen.changes)}{more} of its files are not committed"
        if seen.head is None:
            return None
        return await self._unpushed(repository, tree, seen.head)

    async def _unpushed(self, repository: Repository, tree: Tree, head: str) -> str | None:
        base = await self.hand.base(repository, tree.base)
        if await self._part_of(repository, head, base):
            return None
        remote = (await self.hand.heads(repository, tree.base.remote, f"refs/heads/{tree.branch}")).values()
        for commit in remote:
            if commit == head or await self._part_of(repository, head, commit):
                return None
        if await self.history.landed(repository, base, head) is not None:
            return None
        return f"commits of it are not on {tree.base.remote}: {head[:12]}"

    async def _part_of(self, repository: Repository, commit: str, whole: str) -> bool:
        answer = await self.hand.look(repository, "merge-base", "--is-ancestor", commit, whole)
        return answer.code == 0

    # -- places

    @staticmethod
    def _inside(directory: Path) -> str | None:
        """Why a worktree must not stand there: some checkout covers the place."""
        above = directory
        while not above.exists() and above != above.parent:
            above = above.parent
        found = place.find(above)
        if isinstance(found, Repository):
            return f"worktrees would stand inside the checkout at {found.top}; set worktrees to another directory"
        return None

    @contextlib.contextmanager
    def _alone(self, tree: Tree) -> Iterator[int]:
        """A descriptor that git inherits: as long as one of them is open, nobody else is at this worktree."""
        lock = self._lock(tree)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(f"somebody is at the worktree {tree.path} at this moment") from None
            yield handle
        finally:
            os.close(handle)

    def _lock(self, tree: Tree) -> Path:
        path = Path(tree.path)
        return path.with_name(f".{path.name}.lock")

    def _forget(self, tree: Tree) -> None:
        """Leave no empty directory of ours behind; its lock goes last, by whoever holds it."""
        with contextlib.suppress(OSError):
            self._lock(tree).unlink()
        with contextlib.suppress(OSError):
            Path(tree.path).parent.rmdir()


def _there(path: str) -> bool:
    return os.path.lexists(path)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _taken(path: str) -> bool:
    """Whether anything but an empty directory stands there."""
    place = Path(path)
    if not os.path.lexists(place):
        return False
    return place.is_symlink() or not place.is_dir() or any(place.iterdir())


def _under_way(git_dir: Path) -> str | None:
    return next((what for name, what in BEGUN.items() if (git_dir / name).exists()), None)


def _linked(path: str) -> bool:
    """Whether a worktree's pointer to its repository stands there."""
    return Path(path, ".git").is_file()


def _entry(text: str) -> Listed | None:
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        fields[name] = value
    if "worktree" not in fields:
        return None
    branch = fields.get("branch")
    return Listed(
        fields["worktree"],
        fields.get("HEAD"),
        None if branch is None else branch.removeprefix("refs/heads/"),
        fields.get("locked"),
    )
