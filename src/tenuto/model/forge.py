"""What a host of repositories says of a pull request, and what it answers when it is asked to merge one.

Facts are of one instant and name the exact commit. A host that cannot be asked has said nothing: neither that a pull
request is gone nor that a merge did not happen. Only a host's own refusal proves that nothing was merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PullState(StrEnum):
    """How a pull request stands. CLOSED: closed without having been merged."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class Runs(StrEnum):
    """What the host's own checks of a commit say. NONE: there are none."""

    GREEN = "green"
    RED = "red"
    PENDING = "pending"
    NONE = "none"


class MergeMethod(StrEnum):
    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True)
class ForgePlace:
    """Which host: its kind (`github`, or `git` for a bare remote), and where (`host/owner/name`, or a remote's URL).

    `base` is what a remote without a host merges to; None: what its HEAD names.
    """

    kind: str
    location: str
    base: str | None = None


@dataclass(frozen=True)
class PullFacts:
    """One pull request as its host tells it now.

    `head` and `merged_as` are whole commits. `branch` is the head's branch, in another repository where `fork` says so.
    `mergeable` is None while the host has not found out. `marker` is the last marker that the merge's message carries.
    """

    number: int
    state: PullState
    branch: str
    head: str
    base: str
    url: str
    title: str = ""
    body: str = ""
    fork: bool = False
    draft: bool = False
    mergeable: bool | None = None
    runs: Runs = Runs.NONE
    merged_as: str | None = None
    marker: str | None = None


@dataclass(frozen=True)
class NoPull:
    """The host says that there is no such pull request."""

    why: str


@dataclass(frozen=True)
class Unreachable:
    """The host could not be asked, or did not answer; nothing is known. `after`: seconds to wait at the least."""

    why: str
    after: float = 0.0


@dataclass(frozen=True)
class BaseFacts:
    """Where changes are merged to: the branch's name and the commit that stands there now."""

    branch: str
    head: str


@dataclass(frozen=True)
class Merge:
    """An order to merge exactly `head` of pull request `number` into `base`; `marker` goes into the merge's message."""

    number: int
    head: str
    base: str
    method: MergeMethod
    title: str
    marker: str


@dataclass(frozen=True)
class Merged:
    """The host says that it has merged it, as this commit."""

    commit: str


@dataclass(frozen=True)
class NotMerged:
    """The host refused, and nothing was merged.

    `moved`: the head or the base is another commit than was expected. `after`: seconds to wait where the host was busy.
    """

    why: str
    moved: bool = False
    after: float = 0.0


@dataclass(frozen=True)
class Doubtful:
    """It cannot be told whether it was merged; look before anything else, `after` seconds from now at the least."""

    why: str
    after: float = 0.0


Look = PullFacts | NoPull | Unreachable
MergeAnswer = Merged | NotMerged | Doubtful
