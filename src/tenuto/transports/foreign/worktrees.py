"""The worktrees of a repository that somebody made: each could be the place of a task, and none says what is to be
done.

Looked at without a lock, a hook or a program of the repository. What a worktree lacks, a branch of its own or a
directory that is there, is named; its objective has to come from whoever imports it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenuto.model.foreign import Item, Left
from tenuto.transports.foreign import taking
from tenuto.transports.foreign.database import NotReadable
from tenuto.transports.workspace import git, place
from tenuto.transports.workspace.git import NoGitError, Repository

LIMIT = 30.0
MOST = 500


def of(top: Path, objective: str | None) -> tuple[tuple[Item, ...], tuple[Left, ...]]:
    """The worktrees of the repository at `top`. Without an `objective` none of them can become a task."""
    repository = place.find(top)
    if not isinstance(repository, Repository):
        raise NotReadable(f"{top.name} is no repository")
    try:
        told = asyncio.run(_ask(repository))
    except (NoGitError, OSError, TimeoutError) as error:
        raise NotReadable(f"git could not be asked ({type(error).__name__})") from None
    items: list[Item] = []
    left: list[Left] = []
    for number, tree in enumerate(_trees(told)):
        found = _tree(tree, objective, main=number == 0)
        if isinstance(found, Item):
            items.append(found)
        else:
            left.append(found)
    return tuple(items[:MOST]), tuple(left)


async def _ask(repository: Repository) -> bytes:
    async with asyncio.timeout(LIMIT):
        answer = await git.ask(repository, "worktree", "list", "--porcelain")
    if answer.code or answer.cut:
        raise NotReadable(f"git says: {answer.complaint[:200]}")
    return answer.output


def _trees(told: bytes) -> Iterator[Mapping[str, str]]:
    """Each worktree as words and values; a word without a value has an empty one. The first is the repository's own."""
    for paragraph in told.split(b"\n\n"):
        words: dict[str, str] = {}
        for line in paragraph.splitlines():
            key, _, value = line.partition(b" ")
            words[os.fsdecode(key)] = os.fsdecode(value)
        if "worktree" in words:
            yield words


def _tree(tree: Mapping[str, str], objective: str | None, *, main: bool) -> Item | Left:
    path = tree["worktree"]
    origin = path[: taking.NAME_LIMIT]
    if "bare" in tree:
        return Left(origin, "it is bare: there is nothing to work in")
    if main:
        return Left(origin, "it is the repository's own working tree; start a task there with tenuto run")
    if "prunable" in tree:
        return Left(origin, f"git would prune it: {tree['prunable'][:200] or 'its directory is gone'}")
    cwd, why = taking.directory(path)
    if cwd is None:
        return Left(origin, why or "it is not there")
    branch = tree.get("branch", "").removeprefix("refs/heads/")
    if not branch:
        return Left(origin, "it is on no branch, so nothing says what is being worked on there")
    if objective is None:
        return Left(origin, "it does not say what is to be done: give that with --objective-file")
    state = "locked" if "locked" in tree else "open"
    return Item(origin, objective, cwd, state, f"worktree {branch}"[:200], facts=(("state", state),))
