"""Worktrees: a fresh checkout of its own for one task, planned before it is made.

A branch and a path are reserved by the row, for good, before anything stands on the disk. A worktree that holds work
which is nowhere else is kept, and its row says where it is and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenuto.model.ids import ChainId, CommandId, TaskId, WorktreeId
from tenuto.model.lifecycle import WorktreeState


@dataclass(frozen=True)
class Base:
    """What work begins from, and what a merge has to be part of: a branch of a remote."""

    remote: str
    branch: str

    def __str__(self) -> str:
        return f"{self.remote}/{self.branch}"


@dataclass(frozen=True)
class Worktree:
    """One worktree of the repository at `repository` (a checkout's path), at `path`, on the new branch `branch`.

    `begun_at_commit` is the commit of the base it was made from, `command_id` the command that last touched it, and
    `reason` why it is kept or was not made.
    """

    id: WorktreeId
    revision: int
    task_id: TaskId
    chain_id: ChainId | None
    repository: str
    path: str
    branch: str
    base: Base
    state: WorktreeState
    created_at: datetime
    command_id: CommandId | None = None
    begun_at_commit: str | None = None
    reason: str | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class Tree:
    """An order to make or remove a worktree: all that is needed to find it again."""

    repository: str
    path: str
    branch: str
    base: Base


@dataclass(frozen=True)
class Made:
    """It stands there, on its branch; `commit` is what it was begun from."""

    commit: str


@dataclass(frozen=True)
class InTheWay:
    """Something stands where it should be, and only a person can say what about it; nothing was changed."""

    why: str


@dataclass(frozen=True)
class NotNow:
    """It could not be done now; what is there is as it was, and it may be tried again."""

    why: str


@dataclass(frozen=True)
class Removed:
    """Nothing stands there any more."""


@dataclass(frozen=True)
class Kept:
    """It holds work that is nowhere else; nothing was removed."""

    why: str


TreeMade = Made | InTheWay | NotNow
TreeRemoved = Removed | Kept | NotNow
