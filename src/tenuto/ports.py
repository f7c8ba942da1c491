"""What the engine needs from the world.

Store, transports, sources and notifiers implement these protocols and never see each other; they meet here. Nothing
in this module does anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from tenuto.model.chain import Answer, Board, Chain, Hold, Link, Record, SourcePlace
from tenuto.model.change import Commit, Result
from tenuto.model.command import Armed, Attempt, Command, Outcome
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Observation, Sample, Sighting
from tenuto.model.fact import Event, Scalar
from tenuto.model.forge import BaseFacts, ForgePlace, Look, Merge, MergeAnswer, PullFacts, Unreachable
from tenuto.model.ids import ChainId, CommandId, LinkId, MessageId, ProposalId, RunId, TaskId, TextId, WorktreeId
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.phase import Landed, Looked, Phase, Sought
from tenuto.model.session import SessionFacts
from tenuto.model.snapshot import InLine, Leadership, Registry, Snapshot, Token
from tenuto.model.tools import ToolBinding, ToolFacts
from tenuto.model.watched import ShownPage
from tenuto.model.work import Acceptance, Agent, Report, Run, Task, Text, Wait, Wake
from tenuto.model.worktree import Base, Tree, TreeMade, TreeRemoved, Worktree


class Clock(Protocol):
    """The only source of time. `now` is aware UTC; `monotonic` is seconds that never go back."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class Minter(Protocol):
    """The only source of identity and of secrets."""

    def new(self, kind: str) -> str:
        """A fresh identifier of `kind` (see model.ids)."""
        ...

    def secret(self) -> str:
        """A fresh bearer token: 256 bits, URL-safe text."""
        ...


class Fuse(Protocol):
    """Named points at which a proof may kill the process; nothing happens there otherwise."""

    def burn(self, point: str) -> None: ...


class NoFuse:
    """The fuse of everyday life."""

    def burn(self, point: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Turn:
    """An order to run one turn of a program.

    `env` are the names to resolve at launch; `given` are values of our own (task, attempt, command, address, spool,
    token). `limit` is wall-clock time, `grace` what the program gets between SIGTERM and SIGKILL. `adapter` names what
    the program speaks, where it is not a plain one. `watched` is the run to ask about, and after which silence, where
    it has the dead-man switch on.
    """

    prompt: str
    argv: tuple[str, ...]
    cwd: str
    env: tuple[str, ...]
    given: Mapping[str, str]
    limit: timedelta
    grace: timedelta
    adapter: str = "program"
    watched: tuple[RunId, timedelta] | None = None


@dataclass(frozen=True)
class Check:
    """An order to run an acceptance program: no prompt, no token; its exit status is the answer."""

    argv: tuple[str, ...]
    cwd: str
    env: tuple[str, ...]
    given: Mapping[str, str]
    limit: timedelta
    grace: timedelta


@dataclass(frozen=True)
class Halt:
    """An order to end the turn that another command began; `place` is that command's."""

    target: CommandId
    grace: timedelta
    place: str | None = None


@dataclass(frozen=True)
class Steer:
    """An order to put words into the turn that another command began, and into no other.

    `target` is that command, `turn` what the executor calls its turn. It counts as done only when the turn itself has
    acknowledged the words: the journal then names the turn.
    """

    text: str
    target: CommandId
    turn: str


@dataclass(frozen=True)
class TakeOver:
    """An order to have a tool server give one of its sessions to a new run, in place of `run`.

    `label` goes along as the call's label, so that the server's own log tells which call was this command's. `cwd` is
    the task's directory: a server that is only known there is found by it.
    """

    server: str
    session: str
    run: str | None
    label: str
    cwd: str


@dataclass(frozen=True)
class Reply:
    """An order to answer what the program of a turn waits for leave with; `target` is the command that began the turn.

    `request` is the program's own name of the question: no other question of it is answered by this. `words` are told
    with a no where the program takes words.
    """

    target: CommandId
    request: str
    allow: bool
    words: str = ""


@dataclass(frozen=True)
class ClosePage:
    """An order to close the page of a conversation, where it is the executor's own and nothing of a person is in it."""

    identity: str


Order = Turn | Check | Halt | Steer | TakeOver | Reply | ClosePage


class Executor(Protocol):
    """Carries out armed commands at one transport. There is no second path to the outside."""

    name: str

    def connected(self, conversation: str | None = None) -> bool:
        """Whether commands can be handed over now: those for this conversation, or those that begin one."""
        ...

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """Why this agent could not be started there now, as (field, sentence); None when it could."""
        ...

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Hand the command over; unexpected failure is Unknown, never an exception."""
        ...

    async def look(self, command: Command) -> Observation:
        """CommandFacts of one command, from the journal and the process table."""
        ...

    async def revoke(self, command: Command, epoch: int) -> None:
        """Take the journal's place exclusively, so that the command can never begin; the next `look` shows who won."""
        ...


@runtime_checkable
class Troubled(Protocol):
    """An executor that can say why it takes nothing although it is open."""

    def trouble(self) -> str | None:
        """Why nothing can be handed over, and what mends it; None when it can, or when it is not open."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """An executor that can make ready, while a command is still being written down, what does nothing by itself."""

    def foresee(self, command_id: CommandId) -> None:
        """A command of this name may be armed in a moment. Nothing may happen that would need its row."""
        ...

    def forgo(self, command_id: CommandId) -> None:
        """It will not be performed (any more): give up what was made ready for it, if anything is left."""
        ...


@runtime_checkable
class Placed(Protocol):
    """An executor whose journals and processes are somewhere: what it can tell of a command depends on where."""

    @property
    def place(self) -> str:
        """Where it is, as commands and conversations remember it: `HOST:INCARNATION:DIRECTORY`."""
        ...

    def reaches(self, place: str) -> bool:
        """Whether commands of that place can be looked at from here."""
        ...

    def carries(self, place: str) -> bool:
        """Whether a conversation that was opened there can be carried on from here."""
        ...


@runtime_checkable
class Steering(Protocol):
    """An executor that can put words into a turn under way. One that does not say so is never asked to."""

    def can_steer(self, turn: Command) -> bool:
        """Whether the turn that this command began would take words now."""
        ...


@runtime_checkable
class Taking(Protocol):
    """An executor that can have a tool server give a session to a new run, through that server's own tools."""

    async def refusal(self, facts: ToolFacts, cwd: str) -> str | None:
        """Why that cannot be asked of this session's server now; None when it can. Nothing is changed by asking."""
        ...


@runtime_checkable
class Paging(Protocol):
    """An executor whose conversations are shown in pages, which can be looked at."""

    async def page(self, talk: Conversation) -> Observation:
        """PageFacts of a conversation's page now; `shown` is None where nobody could be asked."""
        ...

    def addressed(self, url: str) -> tuple[str, str] | None:
        """Whose conversation an address is: the site, and the address that it is bound under; None for any other."""
        ...


@runtime_checkable
class Closing(Protocol):
    """An executor that may be able to close its own pages."""

    def connected(self, conversation: str | None = None) -> bool: ...

    def capable(self, capability: str) -> bool:
        """Whether whoever is connected says that it can do this (`close`)."""
        ...

    async def page(self, talk: Conversation) -> Observation: ...


@runtime_checkable
class Accounted(Protocol):
    """An executor that can tell whose usage the turns of an agent take."""

    def account(self, agent: Agent) -> str | None:
        """What the account is called here: the same for the same account, and no part of any secret."""
        ...


@runtime_checkable
class PerTask(Protocol):
    """An executor that only stands for others: each task has one of its own."""

    def executor_for(self, task_id: TaskId) -> str:
        """What the executor of this task is called."""
        ...


class Sessions(Protocol):
    """The sessions that agent programs keep on the disk, by their own records. Only names are read."""

    def listed(self, adapter: str, cwd: str | None) -> tuple[SessionFacts, ...]:
        """Those of a program, the newest first; of one directory where it is named."""
        ...

    def found(self, adapter: str, session: str) -> SessionFacts | None:
        """One session by its whole name."""
        ...


class Workspace(Protocol):
    """Looks at a task's directory, read only."""

    async def look(self, cwd: str, since: str | None, *, plain: bool) -> Observation:
        """WorkspaceFacts; `since` is a commit to count new ones from.

        A directory outside git is read through only when `plain` says so; otherwise its cursor stays unmeasured.
        """
        ...

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        """AcceptanceFacts for a FILE or COMMIT acceptance."""
        ...

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        """Whether a PATH or COMMIT wait has come true; None when it cannot be told."""
        ...


class ToolWitness(Protocol):
    """Looks at sessions of tool servers, read only."""

    async def look(self, binding: ToolBinding, cwd: str) -> Observation:
        """ToolFacts of one session; whatever is wrong with it is a defect in them."""
        ...

    async def sessions(self, cwd: str | None = None) -> tuple[ToolFacts, ...]:
        """Every session of every server that is known (those of the workspace too, where one is given)."""
        ...


class PageWitness(Protocol):
    """Looks at pages from outside of them, read only."""

    async def look(self, binding: ToolBinding) -> Observation:
        """WatchedFacts of one page; whatever is wrong is a defect in them."""
        ...

    async def shown(self) -> tuple[ShownPage, ...]:
        """Every page that is seen now, for a person to choose from; raises Mistake where nobody can be asked."""
        ...


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


@dataclass(frozen=True)
class Word:
    """What an agent left behind while nobody listened, as it lies in the spool: nothing of it is proven.

    `params` are the verb's own. `hint` is the beginning of the sha256 of the token that sealed `body`, `seal` the
    HMAC of it; `name` is the word's place.
    """

    name: str
    verb: str
    params: Mapping[str, object]
    key: str
    task_id: TaskId
    at: datetime
    hint: str
    seal: str
    body: str


@dataclass(frozen=True)
class Unreadable:
    """Something in the spool that is no word, and why."""

    name: str
    reason: str


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


class Spool(Protocol):
    """Where agents leave words while no supervisor listens."""

    def stamp(self) -> int:
        """A number that changes whenever something is put there or taken away."""
        ...

    def waiting(self, limit: int) -> tuple[Word | Unreadable, ...]:
        """What lies there, oldest first."""
        ...

    def genuine(self, word: Word, digest: str) -> bool:
        """Whether who has the token of this digest (sha256, hex) sealed the word."""
        ...

    def remove(self, name: str) -> None: ...

    def refuse(self, name: str, reason: str) -> None:
        """Put it aside with the reason."""
        ...


Observations = Sequence[Observation]
