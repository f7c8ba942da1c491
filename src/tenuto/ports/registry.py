"""The registry: what can be read of it by anyone, and written by whoever leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from tenuto.model.chain import Chain, Link
from tenuto.model.change import Commit, Result
from tenuto.model.command import Attempt, Command
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sample, Sighting
from tenuto.model.fact import Event, Scalar
from tenuto.model.ids import ChainId, CommandId, LinkId, MessageId, ProposalId, RunId, TaskId, TextId, WorktreeId
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.phase import Phase
from tenuto.model.snapshot import InLine, Leadership, Registry, Snapshot, Token
from tenuto.model.work import Report, Run, Task, Text, Wait, Wake
from tenuto.model.worktree import Worktree


class Reader(Protocol):
    """Reads the registry. Every method is one consistent look; none of them writes."""

    def registry(self) -> Registry: ...

    def leadership(self) -> Leadership | None: ...

    def snapshot(self, task_id: TaskId, slots: int) -> Snapshot | None: ...

    def due(self, now: datetime, limit: int) -> tuple[TaskId, ...]:
        """Tasks whose `look_at` has come, earliest first."""
        ...

    def next_due(self) -> datetime | None: ...

    def under_way(self) -> tuple[TaskId, ...]:
        """Tasks with an open command or a live attempt: what boot and the watch start from."""
        ...

    def find(self, kind: str, part: str) -> tuple[str, ...]:
        """Identifiers of a kind that end or begin with `part` (at most 10)."""
        ...

    def run(self, run_id: RunId) -> Run | None: ...

    def runs(self, limit: int, *, unfinished: bool = False) -> tuple[Run, ...]: ...

    def task(self, task_id: TaskId) -> Task | None: ...

    def tasks(self, limit: int, *, run_id: RunId | None = None, unfinished: bool = False) -> tuple[Task, ...]: ...

    def conversations(self, task_id: TaskId) -> tuple[Conversation, ...]: ...

    def bound_to(self, identity: str) -> TaskId | None:
        """The task whose active conversation the outside calls by this name."""
        ...

    def attempts(self, task_id: TaskId, limit: int) -> tuple[Attempt, ...]:
        """Newest first."""
        ...

    def command(self, command_id: CommandId) -> Command | None: ...

    def commands(
        self, limit: int, *, task_id: TaskId | None = None, only_open: bool = False
    ) -> tuple[Command, ...]: ...

    def waits(self, limit: int, *, task_id: TaskId | None = None, only_open: bool = True) -> tuple[Wait, ...]: ...

    def wakes(self, task_id: TaskId) -> tuple[Wake, ...]: ...

    def reports(self, task_id: TaskId, limit: int) -> tuple[Report, ...]:
        """Newest first."""
        ...

    def sightings(self, task_id: TaskId, limit: int) -> tuple[Sighting, ...]:
        """Recorded observations, newest first."""
        ...

    def samples(self, task_id: TaskId, limit: int) -> tuple[Sample, ...]:
        """Recorded reconciliations, newest first."""
        ...

    def children(self, task_id: TaskId, limit: int) -> tuple[Task, ...]:
        """The tasks whose parent it is, oldest first."""
        ...

    def message(self, message_id: MessageId) -> Message | None: ...

    def messages(self, task_id: TaskId, limit: int) -> tuple[Message, ...]: ...

    def text(self, text_id: TextId) -> Text | None: ...

    def token(self, digest: str) -> Token | None: ...

    def tokens(self, beginning: str) -> tuple[Token, ...]:
        """Tokens whose digest begins with these hex digits, revoked ones too (at most 10)."""
        ...

    def events(
        self, after: int, limit: int, *, task_id: TaskId | None = None, run_id: RunId | None = None
    ) -> tuple[Event, ...]: ...

    def last_event(self) -> int: ...

    def line(self) -> tuple[InLine, ...]:
        """Who stands in line for a slot, oldest first."""
        ...

    def active(self, limit: int) -> tuple[Task, ...]:
        """Active tasks, oldest first."""
        ...

    def twins(self, digest: str, cwd: str) -> tuple[Task, ...]:
        """Unfinished tasks in a directory whose objective has this sha256 (hex), oldest first."""
        ...

    def spawned(self, source: str, since: datetime) -> tuple[int, datetime | None]:
        """How many tasks a source has spawned after an instant, and when the first of them was."""
        ...

    def spawned_pending(self) -> int:
        """How many spawned tasks stand in line and never started."""
        ...

    def named_tokens(self) -> tuple[Token, ...]:
        """Tokens that were made by hand, revoked ones too, oldest first."""
        ...

    def replayed(self, scope: str, key: str, since: datetime | None = None) -> tuple[str, Mapping[str, Scalar]] | None:
        """The digest and result a key was used with, if it was, at `since` or later."""
        ...

    def permissions(self, task_id: TaskId, limit: int) -> tuple[Permission, ...]:
        """What a task's programs asked leave for, newest first."""
        ...

    def limits(self, limit: int, *, only_open: bool = True) -> tuple[UsageLimit, ...]:
        """Usage limits that stand, oldest first; or all of them, newest first."""
        ...

    def tokens_of(self, task_id: TaskId) -> tuple[Token, ...]:
        """The tokens of a task that are not revoked."""
        ...

    def chain(self, chain_id: ChainId) -> Chain | None: ...

    def chains(self, limit: int, *, unfinished: bool = False) -> tuple[Chain, ...]:
        """Newest first."""
        ...

    def tended(self) -> tuple[Chain, ...]:
        """Chains that have a moment to be looked at again, earliest first."""
        ...

    def links(self, chain_id: ChainId, limit: int) -> tuple[Link, ...]:
        """What a chain gave to tasks, newest first."""
        ...

    def link_of(self, task_id: TaskId) -> Link | None: ...

    def link_keyed(self, chain_id: ChainId, key: str) -> Link | None:
        """The link of a chain that was made for this place of its cursor."""
        ...

    def claimed(self, place: str) -> Mapping[str, TaskId]:
        """The units of a source that tasks have now, and which task."""
        ...

    def tried(self, chain_id: ChainId) -> Mapping[str, int]:
        """How often each unit that is not done was given to a task by a chain."""
        ...

    def link(self, link_id: LinkId) -> Link | None: ...

    def worktrees(self, limit: int, *, chain_id: ChainId | None = None) -> tuple[Worktree, ...]:
        """Those of a chain, whatever became of them; without one, those that stand somewhere. Newest first."""
        ...

    def worktree(self, worktree_id: WorktreeId) -> Worktree | None: ...

    def worktree_of(self, task_id: TaskId) -> Worktree | None: ...

    def phases(self, chain_id: ChainId) -> tuple[Phase, ...]:
        """The pull requests of a chain's units, in the order in which they were recorded."""
        ...

    def mandate(self, chain_id: ChainId) -> Mandate | None:
        """What a chain may merge; None: nothing."""
        ...

    def proposals(self, chain_id: ChainId, limit: int) -> tuple[Proposal, ...]:
        """The pull requests that a chain's tasks handed in to be merged, newest first."""
        ...

    def proposal(self, proposal_id: ProposalId) -> Proposal | None: ...

    def proposal_of(self, task_id: TaskId) -> Proposal | None: ...

    def reviews(self, proposal_id: ProposalId, limit: int) -> tuple[Review, ...]:
        """Newest first."""
        ...

    def review_of(self, task_id: TaskId) -> Review | None:
        """The review that a task was made for."""
        ...

    def reviewed(self, chain_id: ChainId, unit: str) -> int:
        """How many reviews were asked for of all pull requests for a unit."""
        ...

    def merges(self, chain_id: ChainId, since: datetime) -> int:
        """How many merges of a chain were settled as done after an instant."""
        ...

    def chain_cost(self, chain_id: ChainId) -> int:
        """What the ended turns of a chain's tasks cost, in millionths."""
        ...

    def counts(self) -> Mapping[str, int]:
        """How many tasks are in each state, and how many commands are open."""
        ...


class Ledger(Reader, Protocol):
    """Reads and writes the registry. One writer, first come first served; a commit is durable when it returns."""

    async def commit(self, commit: Commit) -> Result:
        """Write all of it or nothing. Raises StorageFull or Corrupt when the medium fails."""
        ...

    async def lead(self, candidate: Leadership, gone: Callable[[Leadership], bool]) -> Leadership | None:
        """Take the supervisor lease if nobody holds it, it has run out, was released, or its holder is proven gone.

        Returns the lease with its new epoch, or None when another supervisor leads. The new epoch is above the last
        one, and above `candidate.epoch`: the highest that any host has been ordered under.
        """
        ...

    async def renew(self, mine: Leadership, now: datetime, expires_at: datetime) -> Leadership | None:
        """Prolong the lease; None when it is no longer ours. The answer carries a stop that was asked for."""
        ...

    async def resign(self, mine: Leadership, now: datetime) -> None: ...

    async def ask_stop(self, now: datetime) -> bool:
        """Ask whoever leads to stop; False when nobody does. Needs no leadership."""
        ...

    async def close(self) -> None: ...
