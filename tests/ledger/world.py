"""A small world for the ledger's tests: a clock one can set, identifiers in order, and rows that hang together."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from tenuto.model.change import Commit, Committed, Result
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.fact import Fact, FactKind
from tenuto.model.ids import AttemptId, CommandId, ConversationId, RunId, TaskId, TextId, WakeId, spelled
from tenuto.model.lifecycle import AttemptState, CommandState, LeaseState, RunState, TaskState
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Leadership
from tenuto.model.work import Acceptance, Agent, AutoResume, Run, Task, Text, TextKind, Wake, WakeKind
from tenuto.store.ledger import TableLedger

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class SetClock:
    """Stands still until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def pass_(self, time: timedelta) -> datetime:
        self.time += time
        return self.time


class Counting:
    """Identifiers in the order they were asked for; two of them with different starts never meet."""

    def __init__(self, start: int = 1) -> None:
        self._numbers = count(start)

    def new(self, kind: str) -> str:
        return spelled(kind, next(self._numbers))

    def secret(self) -> str:
        return f"secret-{next(self._numbers)}"


def candidate(owner: str, now: datetime = NOW, life: timedelta = 15 * SECOND) -> Leadership:
    return Leadership(0, owner, "host", 4711, "started", "boot", "127.0.0.1:6174", now, now, now + life)


def never(_holder: Leadership) -> bool:
    return False


@dataclass(frozen=True)
class Place:
    """One task that is being worked, with everything it needs to be continued."""

    run: Run
    text: Text
    task: Task
    conversation: Conversation

    @property
    def rows(self) -> tuple[Run | Text | Task | Conversation, ...]:
        return (self.task, self.conversation, self.text, self.run)


def place(ids: Counting, now: datetime = NOW, *, look_at: datetime | None = None) -> Place:
    run = Run(RunId(ids.new("run")), 1, "Port it", RunState.OPEN, AutoResume.ON, POLICY, None, now)
    task_id = TaskId(ids.new("task"))
    body = "Port the parser; keep every test green: äöü"
    text = Text(TextId(ids.new("text")), TextKind.OBJECTIVE, task_id, body, digest(body), now)
    task = Task(
        id=task_id,
        revision=1,
        run_id=run.id,
        title="parser",
        objective=text.id,
        cwd="/srv/parser",
        agent=Agent("command", ("agent", "--go"), resumable=True, env=("API_KEY",)),
        acceptance=Acceptance(),
        state=TaskState.ACTIVE,
        created_at=now,
        started_at=now,
        lease_number=1,
        look_at=look_at,
    )
    conversation = Conversation(
        id=ConversationId(ids.new("conversation")),
        revision=1,
        task_id=task_id,
        identity=f"program:{task_id}",
        executor="host",
        state=LeaseState.ACTIVE,
        lease_number=1,
        expires_at=now + timedelta(hours=2),
        opened_at=now,
    )
    return Place(run, text, task, conversation)


@dataclass(frozen=True)
class Turn:
    """One armed turn, as the rows that arm it."""

    attempt: Attempt
    command: Command
    task: Task

    def commit(self) -> Commit:
        return Commit(
            puts=(self.task, self.attempt, self.command),
            holds=tuple((scope, self.command.id) for scope in self.command.scopes),
            facts=(
                Fact(FactKind.ATTEMPT_ARMED, self.task.run_id, self.task.id, {"attempt": self.attempt.id}),
                Fact(FactKind.COMMAND_ARMED, self.task.run_id, self.task.id, {"command": self.command.id}),
            ),
        )

    def settled(self, now: datetime) -> Commit:
        """The turn begun, acknowledged and ended, in one commit."""
        begun = replace(self.command, revision=2, state=CommandState.SUBMITTED, submitted_at=now)
        return Commit(
            puts=(
                begun,
                replace(begun, revision=3, state=CommandState.ACKNOWLEDGED, settled_at=now, evidence="journal: begun"),
                replace(
                    self.attempt,
                    revision=2,
                    state=AttemptState.ENDED,
                    ended_at=now,
                    outcome=AttemptOutcome.TURN_END,
                    exit_code=0,
                ),
            ),
            frees=(self.command.id,),
            facts=(Fact(FactKind.ATTEMPT_ENDED, self.task.run_id, self.task.id),),
        )


def turn(
    ids: Counting, where: Place, *, epoch: int = 1, number: int = 1, revision: int = 2, now: datetime = NOW
) -> Turn:
    task = replace(where.task, revision=revision, attempts=number, last_served_at=now)
    attempt = Attempt(
        id=AttemptId(ids.new("attempt")),
        revision=1,
        task_id=task.id,
        number=number,
        reason=WakeKind.EVENT,
        anyway=False,
        idempotency_key=f"{task.id}/{number}",
        cursor_before=None,
        conversation_id=where.conversation.id,
        lease_number=1,
        state=AttemptState.LIVE,
        scheduled_at=now,
        live_at=now,
    )
    command = Command(
        id=CommandId(ids.new("command")),
        revision=1,
        kind=CommandKind.SEND,
        task_id=task.id,
        attempt_id=attempt.id,
        conversation_id=where.conversation.id,
        executor="host",
        state=CommandState.ARMED,
        epoch=epoch,
        fence="f" * 64,
        scopes=(f"task:{task.id}", f"conversation:{where.conversation.identity}"),
        created_at=now,
        armed_at=now,
    )
    return Turn(attempt, command, task)


def wake(ids: Counting, task: Task, kind: WakeKind = WakeKind.IDLE, now: datetime = NOW) -> Wake:
    return Wake(WakeId(ids.new("wake")), 1, task.id, kind, "the turn ended", now, now)


def digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


async def settled_in(ledger: TableLedger, where: Place) -> None:
    """Write a place into a ledger that leads."""
    await written(ledger, Commit(puts=where.rows))


async def written(ledger: TableLedger, commit: Commit) -> Committed:
    result: Result = await ledger.commit(commit)
    assert isinstance(result, Committed), result
    return result
