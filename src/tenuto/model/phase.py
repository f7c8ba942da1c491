"""Phases: a unit whose work counts only when the merge of its pull request is part of the base.

What counts is the history of the base, as it was just fetched. A number says which pull request is meant; that one was
said to be merged is a hint where to look, and proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenuto.model.ids import ChainId, PhaseId, TaskId
from tenuto.model.lifecycle import PhaseState


@dataclass(frozen=True)
class Landing:
    """How a pull request came to be part of a base.

    `commits` are those of the base that it consists of, newest first (at most 100); `patch` and `undo` are patch ids
    of the whole and of its reverse, where there are any.
    """

    commit: str
    how: str
    commits: tuple[str, ...]
    patch: str | None = None
    undo: str | None = None


@dataclass(frozen=True)
class Phase:
    """The pull request of one unit of a chain. Its number is recorded when its branch is opened.

    `head` is the last commit of it that was seen, `landing` how it came into the base, `undone_by` the commits that
    reverted it (each with `#` and a number where it came by a pull request).
    """

    id: PhaseId
    revision: int
    chain_id: ChainId
    unit: str
    task_id: TaskId
    number: int
    state: PhaseState
    opened_at: datetime
    branch: str | None = None
    url: str | None = None
    head: str | None = None
    landing: Landing | None = None
    undone_by: tuple[str, ...] = ()
    settled_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Sought:
    """What is known of a pull request that is looked for in a base.

    `merged_as` is the commit that its host says came into the base, `begun_at` the commit of the base it began from.
    """

    number: int
    branch: str | None = None
    head: str | None = None
    merged_as: str | None = None
    begun_at: str | None = None


@dataclass(frozen=True)
class Landed:
    """One commit of a base: its message, and its patch id where it has one."""

    commit: str
    message: str
    patch: str | None = None


@dataclass(frozen=True)
class Looked:
    """A base as it was just fetched, laid beside what a pull request is known to be.

    `base` is its commit, `head` the pull request's, `gone`: neither its branch nor its number is on the remote any
    more. `landing` is how it stands in the base (None: it does not), and `after` what came to the base after it.
    `since` are the commits of the base after the one that was asked for; None: that one is not part of the base any
    more. Both are told the oldest first.
    """

    base: str
    head: str | None = None
    gone: bool = False
    landing: Landing | None = None
    after: tuple[Landed, ...] = ()
    since: tuple[Landed, ...] | None = ()
