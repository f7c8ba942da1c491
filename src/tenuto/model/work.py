"""Runs, tasks and what keeps a task waiting.

A task is the durable assignee of one piece of work. It lives until it is completed, failed or cancelled; waits,
pauses, the turn and health are separate axes and never states of the task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tenuto.model.health import Assessment
from tenuto.model.ids import AttemptId, ConversationId, ReportId, RunId, TaskId, TextId, WaitId, WakeId
from tenuto.model.lifecycle import RunState, TaskState
from tenuto.model.policy import Policy
from tenuto.model.tools import ToolBinding


class AutoResume(StrEnum):
    """Whether a task is continued unasked."""

    ON = "on"
    MANUAL = "manual"


@dataclass(frozen=True)
class Run:
    """An objective and its coordination scope."""

    id: RunId
    revision: int
    title: str
    state: RunState
    auto_resume: AutoResume
    policy: Policy
    coordinator: TaskId | None
    created_at: datetime
    stopped_at: datetime | None = None


class AcceptanceKind(StrEnum):
    NONE = "none"
    CHECK = "check"
    FILE = "file"
    COMMIT = "commit"


@dataclass(frozen=True)
class Acceptance:
    """What must hold before a claim of completion ends the task.

    CHECK: `argv` is run as a bounded command and must exit 0. FILE: `path` (relative to the task's directory) must
    exist and not be empty. COMMIT: the claim's evidence must name a commit reachable from HEAD.
    """

    kind: AcceptanceKind = AcceptanceKind.NONE
    argv: tuple[str, ...] = ()
    path: str | None = None


SESSIONS = frozenset({"claude", "codex", "gemini", "opencode", "pi", "acp"})
"""Adapters whose program keeps a session that outlives its processes."""


PAGES = "ext:"
"""How the names of executors begin that have pages."""


@dataclass(frozen=True)
class Agent:
    """What works on a task: an adapter's name and, for programs, how to start it.

    `env` holds names only; values are resolved when a turn is launched and never stored. `on` names the executor that
    is to carry it, where it is not the adapter's own (`host:NAME` for another machine).
    """

    adapter: str
    argv: tuple[str, ...]
    resumable: bool
    env: tuple[str, ...] = ()
    on: str | None = None

    @property
    def keeps_session(self) -> bool:
        """Whether its session is still there after a turn that was cut short, to be gone on in."""
        return self.adapter in SESSIONS or self.in_page

    @property
    def in_page(self) -> bool:
        """Whether it is a chat in a browser: its turns go through a page, and end when the page is seen to be done."""
        return self.on is not None and self.on.startswith(PAGES)

    @property
    def carrier(self) -> str:
        """The executor that is named, or the adapter whose own it is."""
        return self.on or self.adapter


class DispositionSource(StrEnum):
    AGENT = "agent"
    OPERATOR = "operator"
    COORDINATOR = "coordinator"
    SUPERVISOR = "supervisor"


@dataclass(frozen=True)
class Disposition:
    """How a task ended: written once, in one place, when it becomes terminal."""

    reason: str
    source: DispositionSource
    prior_state: TaskState
    reference: str | None
    verified: bool


@dataclass(frozen=True)
class Claim:
    """A statement by the agent that the work is complete; it ends nothing by itself."""

    evidence: str
    summary: str
    attempt: AttemptId | None
    made_at: datetime
    tries: int = 0


@dataclass(frozen=True)
class Progress:
    """The clock of durable progress, apart from any activity on a screen.

    `cursor` is the digest of the workspace at the last measurement (None: not measured or not measurable).
    `without` counts attempts since durable progress was last seen; `streak` counts consecutive self-reported
    progress lines that were believed.
    """

    cursor: str | None = None
    head: str | None = None
    at: datetime | None = None
    without: int = 0
    streak: int = 0
    line: str | None = None
    reason: str | None = None


class Standing(StrEnum):
    """How the last turn left the task; decides which prompt comes next.

    HINDERED: its program could not go on, by a limit, a service that did not answer, or a session that is full.
    """

    NEW = "new"
    WORKING = "working"
    COMPLETE = "complete"
    BLOCKED = "blocked"
    SILENT = "silent"
    CUT_SHORT = "cut_short"
    HINDERED = "hindered"


@dataclass(frozen=True)
class Task:
    """The durable assignee of one piece of work.

    `look_at` is when the task must be looked at again at the latest; None means: when evidence rings.
    `lease_number` counts leases that were ever given, `attempts` and `faults` what was spent.

    `steered_at` is when words last went into a turn of it under way. A coordinator has been told of its run up to
    event `informed`, last at `informed_at`; `told_at` is when the task's own end was told to its parent. `live_time`,
    `tokens` and `cost` (millionths of `currency`) are what its ended turns took, `max_*` its caps.

    What spawning adds: `spawned_by` is the source its rate is counted for (None: made by `tenuto run`), `playbook` what
    it was made from, `delivery` how its work is to be handed in, `auto_close` whether a signal of readiness closes it
    after a grace, `unattended` whether somebody can be asked. `slot_from` is the task whose slot passes to this one.
    `queued_at` is since when it stands in line for a slot; None: it does not. `ready_at` and `ready_note` are the
    agent's signal that its work can be closed.

    `account` is whose usage its turns take and `model` what its program says it works with, once it has said.
    `overloads` counts turns in a row that a service's overload ended, `fresh_sessions` those in a row that found their
    session full or gone; `session_over` is the conversation whose session that was.

    `tools` are the sessions of tool servers that work for it, `health` the judgement of the evidence when it last came
    to rest.
    """

    id: TaskId
    revision: int
    run_id: RunId
    title: str
    objective: TextId
    cwd: str
    agent: Agent
    acceptance: Acceptance
    state: TaskState
    created_at: datetime
    auto_resume: AutoResume | None = None
    max_attempts: int | None = None
    parent: TaskId | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    disposition: Disposition | None = None
    claim: Claim | None = None
    standing: Standing = Standing.NEW
    standing_reason: str | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    stalled_at: datetime | None = None
    progress: Progress = field(default_factory=Progress)
    attempts: int = 0
    unsent_in_row: int = 0
    faults: int = 0
    lease_number: int = 0
    active_since_report: timedelta = timedelta(0)
    checkpoints: int = 0
    last_served_at: datetime | None = None
    waiting_since: datetime | None = None
    look_at: datetime | None = None
    tools: tuple[ToolBinding, ...] = ()
    health: Assessment | None = None
    steered_at: datetime | None = None
    informed: int = 0
    informed_at: datetime | None = None
    told_at: datetime | None = None
    max_live: timedelta | None = None
    max_tokens: int | None = None
    max_cost: int | None = None
    live_time: timedelta = timedelta(0)
    tokens: int = 0
    cost: int = 0
    currency: str | None = None
    spawned_by: str | None = None
    playbook: str | None = None
    delivery: str | None = None
    auto_close: bool = False
    unattended: bool = False
    slot_from: TaskId | None = None
    queued_at: datetime | None = None
    ready_at: datetime | None = None
    ready_note: str | None = None
    account: str | None = None
    model: str | None = None
    overloads: int = 0
    fresh_sessions: int = 0
    session_over: ConversationId | None = None

    @property
    def terminal(self) -> bool:
        return self.state in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)


class WaitKind(StrEnum):
    HUMAN = "human"
    PERMISSION = "permission"
    LIMIT = "limit"
    TASK = "task"
    PATH = "path"
    COMMIT = "commit"
    TIME = "time"
    CAP = "cap"
    CHILDREN = "children"


#: Waits that only a person can end; all others end by themselves.
HUMAN_WAITS = frozenset({WaitKind.HUMAN, WaitKind.PERMISSION, WaitKind.CAP})


@dataclass(frozen=True)
class Wait:
    """A durable reason not to continue.

    `question` is shown to the operator. `subject` is what a dependency hangs on (a task, a path, `ref into branch`,
    `any` or `all` of the children with the names of those that are meant, if not all are) or the cap that is
    reached; `until` is the instant a time or limit wait ends at.
    """

    id: WaitId
    revision: int
    task_id: TaskId
    kind: WaitKind
    question: str
    opened_at: datetime
    subject: str | None = None
    until: datetime | None = None
    attempt_id: AttemptId | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    answer: TextId | None = None


class WakeKind(StrEnum):
    """MESSAGE: words are to be delivered; by the operator where somebody has asked, else by a neighbour."""

    EVENT = "event"
    MESSAGE = "message"
    IDLE = "idle"
    CHECKPOINT = "checkpoint"
    MANUAL = "manual"
    RECOVERY = "recovery"
    LIMIT = "limit"
    DEPENDENCY = "dependency"


@dataclass(frozen=True)
class Wake:
    """A durable reason to look at a task at or after `not_before`; one pending wake of a kind per task."""

    id: WakeId
    revision: int
    task_id: TaskId
    kind: WakeKind
    reason: str
    not_before: datetime
    created_at: datetime
    anyway: bool = False
    asked_by: str | None = None
    consumed_at: datetime | None = None
    consumed_by: AttemptId | None = None


class ReportKind(StrEnum):
    CHECKPOINT = "checkpoint"
    SIGNAL = "signal"
    PROGRESS = "progress"


@dataclass(frozen=True)
class Report:
    """What an agent said in a structured way: lines of a block, never a transcript.

    `lines` holds (name, value) pairs in the order they were given.
    """

    id: ReportId
    task_id: TaskId
    attempt_id: AttemptId | None
    kind: ReportKind
    lines: tuple[tuple[str, str], ...]
    at: datetime


class TextKind(StrEnum):
    OBJECTIVE = "objective"
    PROMPT = "prompt"
    MESSAGE = "message"
    ANSWER = "answer"
    SWEEP = "sweep"


@dataclass(frozen=True)
class Text:
    """A text of our own (an assignment, a prompt, a message, an answer, a sweep) with its sha256 digest in hex.

    `body` is None once its retention has passed; the digest stays. `removed_at` is when that was done; None too where
    it was done before moments of it were kept.
    """

    id: TextId
    kind: TextKind
    task_id: TaskId | None
    body: str | None
    digest: str
    created_at: datetime
    removed_at: datetime | None = None
