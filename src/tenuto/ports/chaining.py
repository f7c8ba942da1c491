"""What chains reach: their playbooks and units, worktrees, the history of a remote, hosts of repositories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tenuto.model.chain import Answer, Board, Hold, Record, SourcePlace
from tenuto.model.forge import BaseFacts, ForgePlace, Look, Merge, MergeAnswer, PullFacts, Unreachable
from tenuto.model.phase import Landed, Looked, Sought
from tenuto.model.worktree import Base, Tree, TreeMade, TreeRemoved


@dataclass(frozen=True)
class Found:
    """A playbook as it lies somewhere: where it was found, its text, and the directory its paths are relative to."""

    scope: str
    name: str
    text: str
    root: str | None = None


class Playbooks(Protocol):
    """Where playbooks are kept. Callers give a name and never a path."""

    def find(self, name: str, scope: str | None, cwd: str | None) -> Found:
        """The playbook of that name in a scope, or in the first scope that has it (project, user, built-in).

        `cwd` says which project is meant. Raises NotFound, or Mistake for one that cannot be read.
        """
        ...


class UnitSource(Protocol):
    """Where the units of a chain live. Every method may block, and is called off the wheel's thread."""

    def read(self) -> Board:
        """All units with the source's revision. Raises Mistake for what is no source, OSError for one out of reach."""
        ...

    def claim(self, hold: Hold) -> Answer | None:
        """Write that a unit is worked on, as a compare-and-set; None: this source keeps no claims of its own."""
        ...

    def record(self, what: Record) -> Answer:
        """Write what became of one unit, as a compare-and-set that one marker passes once however often it is tried.

        Nobody's claim is written over, and the revision does not move with a claim alone.
        """
        ...


class UnitSources(Protocol):
    """Finds sources by their place."""

    def open(self, place: SourcePlace) -> UnitSource:
        """Raises Mistake for a place that cannot be."""
        ...

    def name(self, place: SourcePlace) -> str:
        """What the source itself is called, however its place is spelled: the same for the same source."""
        ...


class Worktrees(Protocol):
    """Makes and removes worktrees of a repository on this machine, each step of which can be found again."""

    def path(self, name: str) -> str:
        """Where a worktree of this name (`chain/unit`) stands or will stand."""
        ...

    def objection(self, repository: str) -> str | None:
        """Why no worktrees of this repository can be made here; None where they can."""
        ...

    async def make(self, tree: Tree) -> TreeMade:
        """A worktree on a new branch that begins at the base as it is fetched now; one that stands is found."""
        ...

    async def found(self, tree: Tree) -> TreeMade | None:
        """What stands of it, without making anything; None: nothing does."""
        ...

    async def remove(self, tree: Tree) -> TreeRemoved:
        """Take it away if all of its work is elsewhere: committed, and on the remote. The branch stays."""
        ...


class History(Protocol):
    """Looks into the history of a remote's branch, as it is fetched now."""

    async def default(self, repository: str, remote: str) -> str | None:
        """The branch that a remote calls its default now; None where that cannot be told."""
        ...

    async def look(self, repository: str, base: Base, sought: Sought, seen: str | None) -> Looked | str:
        """Fetch, and say how a pull request stands in the base; a sentence where that cannot be told now.

        `seen` is the commit of the base after which commits are wanted.
        """
        ...

    async def after(self, repository: str, base: str, commit: str) -> tuple[Landed, ...] | str | None:
        """What came to a base (a commit) after one of its commits; None: it is not part of it."""
        ...

    async def merged(self, repository: str, base: Base, begun: Mapping[str, str]) -> tuple[str, ...]:
        """Which of these branches have work in the base as last seen; of each the commit it was begun at is given."""
        ...


class Forge(Protocol):
    """A host of one repository. Every method may block, and is called off the wheel's thread; none of them raises."""

    @property
    def over(self) -> float:
        """Seconds in which a merge that was asked for may still come true; one that was not made by then never is."""
        ...

    def base(self, branch: str | None) -> BaseFacts | Unreachable:
        """The branch that changes are merged to (None: the default one, as it is called now), and its commit."""
        ...

    def pull(self, number: int) -> Look:
        """One pull request by its number, with the checks of its head."""
        ...

    def pulls(self, branch: str) -> tuple[PullFacts, ...] | Unreachable:
        """Pull requests whose head is this branch of this repository, newest first; their checks are not asked for."""
        ...

    def merge(self, order: Merge) -> MergeAnswer:
        """Merge exactly the expected head, once: a merge that stands under this marker is found and not repeated."""
        ...


class Forges(Protocol):
    """Finds hosts by their place."""

    def open(self, place: ForgePlace) -> Forge:
        """Raises Mistake for a place that cannot be."""
        ...


@dataclass(frozen=True)
class Checkout:
    """One commit that is wanted as files: under a name of ours, from a repository on this disk.

    What that repository has not is fetched from `remote` (None: from where it came from itself), by branch or number.
    """

    name: str
    repository: str
    commit: str
    branch: str
    number: int
    remote: str | None


class Checkouts(Protocol):
    """Checkouts of our own, to look at and to throw away. Both methods may block."""

    def make(self, wanted: Checkout) -> str:
        """Where the commit stands, clean; made once and found again. Raises OSError with the reason."""
        ...

    def clear(self, beginning: str) -> None:
        """Throw away every one whose name begins so."""
        ...
