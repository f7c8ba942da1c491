"""One idle world of values, varied by `replace`; nothing here touches a disk or a clock.

The idle world is an active task with a live lease, a last turn that ended by itself, nothing under way and nothing
asked. Every test says in what it differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tenuto.core import reconcile, signs
from tenuto.core.decide import decide
from tenuto.core.settle import settle
from tenuto.model.change import Commit, Row
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Decision
from tenuto.model.evidence import (
    AcceptanceFacts,
    CommandFacts,
    Ending,
    Mark,
    Observation,
    Presence,
    Rank,
    Sample,
    Sighting,
    WorkspaceFacts,
    WorkspaceKind,
)
from tenuto.model.fact import FactKind
from tenuto.model.ids import (
    AttemptId,
    CommandId,
    ConversationId,
    MessageId,
    ObservationId,
    ReconciliationId,
    RunId,
    TaskId,
    TextId,
    WaitId,
    WakeId,
    spelled,
)
from tenuto.model.lifecycle import AttemptState, CommandState, DeliveryState, LeaseState, RunState, TaskState
from tenuto.model.message import Message, MessageKind, MessagePolicy
from tenuto.model.policy import POLICY
from tenuto.model.reconciliation import Reconciliation, Seen
from tenuto.model.snapshot import Registry, Snapshot
from tenuto.model.tools import (
    CallFacts,
    CallState,
    JobFacts,
    JobState,
    PlanFacts,
    PlanState,
    SessionState,
    ToolBinding,
    ToolFacts,
)
from tenuto.model.work import (
    Acceptance,
    AcceptanceKind,
    Agent,
    AutoResume,
    Claim,
    Run,
    Standing,
    Task,
    Wait,
    WaitKind,
    WakeKind,
)
from tenuto.model.work import Wake as WakeRow

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
S = timedelta(seconds=1)
MIN = timedelta(minutes=1)
H = timedelta(hours=1)
DAY = timedelta(days=1)

R = TypeVar("R")

_numbers = itertools.count(1000)


def new(kind: str) -> str:
    """A fresh identifier."""
    return spelled(kind, next(_numbers))


RUN = Run(RunId(spelled("run", 1)), 1, "Port it", RunState.OPEN, AutoResume.ON, POLICY, None, NOW - H)
RESUMABLE = Agent("program", ("agent",), resumable=True)
PLAIN = Agent("program", ("make",), resumable=False)
TASK = Task(
    id=TaskId(spelled("task", 2)),
    revision=7,
    run_id=RUN.id,
    title="parser",
    objective=TextId(spelled("text", 3)),
    cwd="/srv/parser",
    agent=RESUMABLE,
    acceptance=Acceptance(),
    state=TaskState.ACTIVE,
    created_at=NOW - H,
    started_at=NOW - H,
    standing=Standing.WORKING,
    attempts=1,
    lease_number=1,
    waiting_since=NOW - MIN,
)
TALK = Conversation(
    id=ConversationId(spelled("conversation", 4)),
    revision=3,
    task_id=TASK.id,
    identity=f"program:{TASK.id}/1",
    executor="host",
    state=LeaseState.ACTIVE,
    lease_number=1,
    expires_at=NOW - 2 * MIN + POLICY.lease_life,
    opened_at=NOW - H,
    root=ConversationId(spelled("conversation", 4)),
    turns=1,
)
LAST = Attempt(
    id=AttemptId(spelled("attempt", 5)),
    revision=2,
    task_id=TASK.id,
    number=1,
    reason=WakeKind.EVENT,
    anyway=False,
    idempotency_key=f"{TASK.id}/1",
    cursor_before=None,
    conversation_id=TALK.id,
    lease_number=1,
    state=AttemptState.ENDED,
    scheduled_at=NOW - 2 * MIN,
    live_at=NOW - 2 * MIN,
    ended_at=NOW - MIN,
    outcome=AttemptOutcome.TURN_END,
    signal="working",
    exit_code=0,
)
LIVE = replace(
    LAST,
    id=AttemptId(spelled("attempt", 6)),
    revision=1,
    number=2,
    idempotency_key=f"{TASK.id}/2",
    state=AttemptState.LIVE,
    scheduled_at=NOW - MIN,
    live_at=NOW - MIN,
    ended_at=None,
    outcome=None,
    signal=None,
    exit_code=None,
)
SEND = Command(
    id=CommandId(spelled("command", 7)),
    revision=1,
    kind=CommandKind.SEND,
    task_id=TASK.id,
    attempt_id=LIVE.id,
    conversation_id=TALK.id,
    executor="host",
    state=CommandState.ARMED,
    epoch=1,
    fence="f" * 64,
    scopes=(f"task:{TASK.id}", f"conversation:{TALK.identity}"),
    created_at=NOW - MIN,
    payload=TextId(spelled("text", 8)),
    armed_at=NOW - MIN,
)
SUBMITTED = replace(SEND, revision=2, state=CommandState.SUBMITTED, submitted_at=NOW - MIN)
ACKNOWLEDGED = replace(SUBMITTED, revision=3, state=CommandState.ACKNOWLEDGED, settled_at=NOW - MIN)
DOUBTFUL = replace(SEND, revision=2, state=CommandState.AMBIGUOUS)
RELEASED = replace(
    DOUBTFUL,
    revision=3,
    state=CommandState.RELEASED,
    attempt_id=LAST.id,
    settled_at=NOW - MIN,
    released_by="policy",
    verdict="gone",
)
CHECK = replace(
    SEND,
    id=CommandId(spelled("command", 9)),
    kind=CommandKind.CHECK,
    attempt_id=LAST.id,
    scopes=(f"check:{TASK.id}",),
    payload=None,
)
HALT = replace(
    SEND,
    id=CommandId(spelled("command", 10)),
    kind=CommandKind.INTERRUPT,
    scopes=(f"interrupt:{LIVE.id}",),
    payload=None,
)

IDLE = Snapshot(
    registry=Registry("g-1", 1, NOW - DAY),
    run=RUN,
    task=TASK,
    conversation=TALK,
    live=None,
    last=LAST,
    live_command=None,
    commands=(),
    waits=(),
    wakes=(),
    messages=(),
    samples=(),
    checks=(),
    slots_used=1,
    slots=20,
)


def with_task(snapshot: Snapshot = IDLE, **fields: Any) -> Snapshot:
    """The snapshot with fields of its task changed."""
    return replace(snapshot, task=replace(snapshot.task, **fields))


def with_policy(snapshot: Snapshot = IDLE, **fields: Any) -> Snapshot:
    """The snapshot with numbers of its run's policy changed."""
    return replace(snapshot, run=replace(snapshot.run, policy=replace(snapshot.run.policy, **fields)))


def with_live(command: Command = ACKNOWLEDGED, snapshot: Snapshot = IDLE, attempt: Attempt = LIVE) -> Snapshot:
    """The snapshot with a turn under way, carried by `command`."""
    commands = (command,) if command.open else ()
    return replace(snapshot, live=attempt, live_command=command, commands=commands)


def with_wake(
    kind: WakeKind = WakeKind.IDLE,
    snapshot: Snapshot = IDLE,
    *,
    in_: timedelta = timedelta(0),
    anyway: bool = False,
    asked_by: str | None = None,
) -> Snapshot:
    """The snapshot with one more wake, due after `in_`."""
    wake = WakeRow(WakeId(new("wake")), 1, TASK.id, kind, "asked", NOW + in_, NOW, anyway, asked_by=asked_by)
    return replace(snapshot, wakes=(*snapshot.wakes, wake))


def a_wait(kind: WaitKind = WaitKind.HUMAN, question: str = "which colour?", **fields: Any) -> Wait:
    """An open wait."""
    return replace(Wait(WaitId(new("wait")), 1, TASK.id, kind, question, NOW - MIN), **fields)


def with_wait(kind: WaitKind = WaitKind.HUMAN, snapshot: Snapshot = IDLE, **fields: Any) -> Snapshot:
    """The snapshot with one more open wait."""
    return replace(snapshot, waits=(*snapshot.waits, a_wait(kind, **fields)))


def a_message(
    kind: MessageKind = MessageKind.WORDS, state: DeliveryState = DeliveryState.DEFERRED, **fields: Any
) -> Message:
    """A message to the task."""
    text = TextId(new("text")) if kind is not MessageKind.CHECKPOINT else None
    row = Message(
        MessageId(new("message")), 1, TASK.id, "operator", kind, MessagePolicy.NEXT_TURN, text, 5, state, NOW, NOW
    )
    return replace(row, **fields)


def with_message(message: Message, snapshot: Snapshot = IDLE) -> Snapshot:
    """The snapshot with one more message."""
    return replace(snapshot, messages=(*snapshot.messages, message))


def cancelled(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its task stopped for good."""
    return with_task(replace(snapshot, conversation=None), state=TaskState.CANCELLED, ended_at=NOW)


def claimed(kind: AcceptanceKind = AcceptanceKind.CHECK, snapshot: Snapshot = IDLE, **fields: Any) -> Snapshot:
    """The snapshot with a claim of completion that its acceptance must judge."""
    acceptance = Acceptance(kind, ("make", "test") if kind is AcceptanceKind.CHECK else (), "out.txt")
    made = replace(Claim("commit abc", "all done", LAST.id, NOW), **fields)
    return with_task(snapshot, acceptance=acceptance, claim=made)


# -- evidence


def facts(
    command: Command,
    mark: Mark,
    performer: Presence = Presence.GONE,
    agent: Presence = Presence.GONE,
    **fields: Any,
) -> CommandFacts:
    """What a journal and the process table say of a command."""
    return replace(CommandFacts(command.id, command.attempt_id, mark, performer, agent), **fields)


def seen_of(
    command: Command,
    mark: Mark,
    performer: Presence = Presence.GONE,
    agent: Presence = Presence.GONE,
    *,
    rank: Rank = Rank.JOURNAL,
    at: datetime = NOW,
    **fields: Any,
) -> Observation:
    """An observation of a command."""
    return Observation("host", rank, command.id, at, facts(command, mark, performer, agent, **fields))


def ending(*signals: str, **fields: Any) -> Ending:
    """A program's own end, with the bodies of its signal blocks."""
    return replace(Ending(0, None, None, signals, len(signals)), **fields)


def ended(command: Command, *signals: str, survivors: Presence = Presence.GONE, **fields: Any) -> Observation:
    """An observation that a command's program ended."""
    return seen_of(command, Mark.ENDED, Presence.GONE, survivors, ending=ending(*signals, **fields))


def workspace(
    cursor: str | None = "w1", kind: WorkspaceKind = WorkspaceKind.GIT, *, head: str | None = "h1", at: datetime = NOW
) -> Observation:
    """An observation of the working directory."""
    return Observation("workspace", Rank.JOURNAL, TASK.cwd, at, WorkspaceFacts(kind, head=head, cursor=cursor))


def acceptance(holds: bool | None) -> Observation:
    """An observation of what a claim hangs on."""
    return Observation("workspace", Rank.JOURNAL, TASK.cwd, NOW, AcceptanceFacts(holds, "it was looked at"))


SESSION = ToolBinding("local", "s_" + "0" * 24)
CALL = CallFacts("c" * 32, CallState.LIVE, NOW - MIN, NOW - MIN)
JOB = JobFacts("job_" + "0" * 12, JobState.RUNNING, 1, NOW - MIN, NOW - MIN)
PLAN = PlanFacts("p1", PlanState.ACTIVE, 3, 1, NOW - MIN)


def with_tools(snapshot: Snapshot = IDLE, *bindings: ToolBinding) -> Snapshot:
    """The snapshot with a session of a tool server that works for the task."""
    return with_task(snapshot, tools=bindings or (SESSION,))


def tools(*, at: datetime = NOW, rank: Rank = Rank.JOURNAL, **fields: Any) -> Observation:
    """An observation of a quiet session of a tool server, in which something is different."""
    facts = ToolFacts(SESSION, "4.0", SessionState.ACTIVE, sequence=7, active_at=NOW - MIN)
    return Observation("local-shell", rank, SESSION.subject, at, replace(facts, **fields))


def sighting(*, source: str = "someone", rank: int = 5, at: datetime = NOW, **said: str) -> Sighting:
    """A recorded observation of these words."""
    told = tuple(said.items())
    identifier = ObservationId(new("observation"))
    return Sighting(identifier, TASK.id, "page", source, rank, at, at, signs.digest_of(signs.edges(told)), told)


# -- verbs


def found(
    snapshot: Snapshot, *observations: Observation, now: datetime = NOW, resolved: dict[str, bool | None] | None = None
) -> Reconciliation:
    """What reconciliation finds."""
    return reconcile.reconcile(snapshot, observations, resolved or {}, now)


def see(
    snapshot: Snapshot,
    *observations: Observation,
    now: datetime = NOW,
    epoch: int | None = 1,
    connected: bool = True,
    resolved: dict[str, bool | None] | None = None,
) -> Seen:
    """The snapshot with what reconciliation finds, as a leading supervisor sees it."""
    return Seen(snapshot, found(snapshot, *observations, now=now, resolved=resolved), epoch, connected)


def settled(snapshot: Snapshot, *observations: Observation, now: datetime = NOW, **more: Any) -> After:
    """What settling makes of it."""
    return After(settle(see(snapshot, *observations, now=now, **more), now, new))


def decided(snapshot: Snapshot, *observations: Observation, now: datetime = NOW, **more: Any) -> Decision:
    """What is decided."""
    return decide(see(snapshot, *observations, now=now, **more), now)


def because(snapshot: Snapshot, *observations: Observation, now: datetime = NOW, **more: Any) -> Because:
    """Why it is not continued; fails where something is intended instead."""
    decision = decided(snapshot, *observations, now=now, **more)
    assert decision.because is not None, decision
    return decision.because


def sampled(seen: Seen, ago: timedelta, fence: str | None = None) -> Sample:
    """A recorded look of some time ago, which found the same unless another fence is given."""
    found_ = seen.found
    identifier = ReconciliationId(new("reconciliation"))
    return Sample(identifier, TASK.id, fence or found_.fence, found_.members, NOW - ago)


class After:
    """A commit, read by a test: the last value of every row it writes."""

    def __init__(self, commit: object) -> None:
        assert commit is None or isinstance(commit, Commit), commit
        self.commit = commit
        rows = commit.puts if commit is not None else ()
        self.rows: tuple[Row, ...] = rows
        self.revisions_hang_together(rows)

    @staticmethod
    def revisions_hang_together(rows: Iterable[Row]) -> None:
        """No row may be written twice from the same revision: the ledger would refuse it for ever."""
        seen: dict[str, int] = {}
        for row in rows:
            revision = getattr(row, "revision", None)
            if revision is not None:
                assert row.id not in seen or revision == seen[row.id] + 1, f"{row} written after {seen[row.id]}"
                seen[row.id] = revision

    @property
    def nothing(self) -> bool:
        return self.commit is None

    @property
    def task(self) -> Task:
        return self.one(Task)

    def all(self, kind: type[R]) -> list[R]:
        """The last value of every row of a kind, in the order of their first writing."""
        last: dict[str, Any] = {}
        for row in self.rows:
            if isinstance(row, kind):
                last[row.id] = row
        return list(last.values())

    def one(self, kind: type[R], where: Callable[[R], bool] = lambda _row: True) -> R:
        """The only row of a kind."""
        rows = [row for row in self.all(kind) if where(row)]
        assert len(rows) == 1, rows
        return rows[0]

    @property
    def told(self) -> list[FactKind]:
        """The facts that are noted."""
        return [fact.kind for fact in self.commit.facts] if self.commit is not None else []

    def command(self, identifier: CommandId = SEND.id) -> CommandState:
        """The state a command comes to."""
        return self.one(Command, lambda row: row.id == identifier).state

    @property
    def asked(self) -> list[str]:
        """The questions to a person that are opened."""
        return [w.question for w in self.all(Wait) if w.kind is WaitKind.HUMAN and w.closed_at is None]

    @property
    def wakes(self) -> dict[WakeKind, WakeRow]:
        """The wakes that are pending after it."""
        return {wake.kind: wake for wake in self.all(WakeRow) if wake.consumed_at is None}
