"""What a desk tells: every reading verb, and how a name that somebody gives finds its row.

Reading works on any registry that can be opened, with or without a supervisor, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tenuto.core import attention, classify, decide
from tenuto.core import wake as wakes
from tenuto.core.attention import Hushed, Item
from tenuto.engine.cycle import Cycle
from tenuto.engine.standing import Standing, standing
from tenuto.model.command import Attempt, Command
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because
from tenuto.model.evidence import Presence
from tenuto.model.fact import Event, FactKind
from tenuto.model.faults import Mistake, NotFound
from tenuto.model.health import Assessment, Clocks
from tenuto.model.ids import LETTERS, CommandId, RunId, TaskId, TextId
from tenuto.model.message import Message
from tenuto.model.policy import KEEPING, POLICY, Keeping, Policy
from tenuto.model.snapshot import Leadership, Registry, Snapshot
from tenuto.model.work import (
    AutoResume,
    Report,
    Run,
    Task,
    Text,
    Wait,
    Wake,
)
from tenuto.ports import Clock, Ledger

LISTED = 500
EVERY = 100_000


@dataclass(frozen=True)
class Explained:
    """Why a task is not being continued now, all rungs in order, and what would happen if none held."""

    task: Task
    rungs: tuple[Because, ...]
    intent: str | None
    at: datetime
    health: Assessment | None = None
    clocks: Clocks = field(default_factory=Clocks)


@dataclass(frozen=True)
class Shown:
    """One task with everything that hangs on it, for a person to read."""

    run: Run
    task: Task
    conversations: tuple[Conversation, ...]
    attempts: tuple[Attempt, ...]
    commands: tuple[Command, ...]
    waits: tuple[Wait, ...]
    wakes: tuple[Wake, ...]
    messages: tuple[Message, ...]
    reports: tuple[Report, ...]
    policy: AutoResume
    overridden: bool
    cap: int | None
    checkpoint_at: datetime | None
    because: Because | None
    clocks: Clocks = field(default_factory=Clocks)


#: The facts that tell why a task was, or was not, continued.
TELLING = frozenset(
    {
        FactKind.RESTED,
        FactKind.ATTEMPT_ARMED,
        FactKind.ATTEMPT_ENDED,
        FactKind.TASK_CREATED,
        FactKind.WAIT_OPENED,
        FactKind.TASK_PAUSED,
        FactKind.TASK_RESUMED,
        FactKind.TASK_STALLED,
        FactKind.TASK_COMPLETED,
        FactKind.TASK_FAILED,
        FactKind.TASK_CANCELLED,
        FactKind.COMMAND_AMBIGUOUS,
    }
)


class Reading:
    """Reading verbs over one registry."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        clock: Clock,
        *,
        slots: int,
        defaults: Policy,
        keep: Keeping,
        troubles: Callable[[], Sequence[str]],
        presence: Callable[[Leadership], Presence],
    ) -> None:
        self._ledger = ledger
        self._cycle = cycle
        self._clock = clock
        self._slots = slots
        self._defaults = defaults
        self._keep = keep
        self._troubles = troubles
        self._presence = presence

    # -- names

    def resolve(self, kind: str, given: str) -> str:
        """The one identifier of `kind` that `given` names: whole, or a beginning or ending of at least 4 characters."""
        letter = LETTERS[kind]
        part = given.strip().lower()
        bare = part.removeprefix(f"{letter}-")
        if len(bare) < 4 or len(part) > 40:
            raise Mistake(f"'{given[:60]}' is too short or too long to name a {kind}", field=kind)
        found = self._ledger.find(kind, bare)
        if not found:
            raise NotFound(f"there is no {kind} '{given}'", field=kind)
        if len(found) > 1:
            raise Mistake(f"'{given}' names several: {', '.join(found[:5])}", field=kind)
        return found[0]

    def task_id(self, given: str) -> TaskId:
        return TaskId(self.resolve("task", given))

    def run_id(self, given: str) -> RunId:
        return RunId(self.resolve("run", given))

    def tasks_of(self, given: str) -> tuple[RunId | None, tuple[TaskId, ...]]:
        """A run's unfinished tasks, or the one task that is named."""
        if given.strip().lower().startswith("r-"):
            run_id = self.run_id(given)
            return run_id, tuple(task.id for task in self._ledger.tasks(EVERY, run_id=run_id, unfinished=True))
        try:
            return None, (self.task_id(given),)
        except NotFound:
            if given.strip().lower().startswith("t-"):
                raise
            run_id = self.run_id(given)
            return run_id, tuple(task.id for task in self._ledger.tasks(EVERY, run_id=run_id, unfinished=True))

    # -- reading

    def registry(self) -> Registry:
        return self._ledger.registry()

    def leadership(self) -> Leadership | None:
        return self._ledger.leadership()

    def now(self) -> datetime:
        return self._clock.now()

    def standing(self) -> Standing:
        """What the lease row and the holder's process say of the supervisor now."""
        lease = self._ledger.leadership()
        return standing(lease, self._presence(lease) if lease is not None else Presence.UNKNOWN, self._clock.now())

    def last_event(self) -> int:
        return self._ledger.last_event()

    def counts(self) -> Mapping[str, int]:
        return self._ledger.counts()

    def troubles(self) -> Sequence[str]:
        return self._troubles()

    def runs(self, *, unfinished: bool = False) -> tuple[Run, ...]:
        return self._ledger.runs(LISTED, unfinished=unfinished)

    def tasks(self, *, run_id: RunId | None = None, unfinished: bool = False) -> tuple[Task, ...]:
        return self._ledger.tasks(LISTED, run_id=run_id, unfinished=unfinished)

    def run(self, run_id: RunId) -> Run:
        found = self._ledger.run(run_id)
        if found is None:
            raise NotFound(f"there is no run {run_id}", field="run")
        return found

    def task(self, task_id: TaskId) -> Task:
        found = self._ledger.task(task_id)
        if found is None:
            raise NotFound(f"there is no task {task_id}", field="task")
        return found

    def text(self, text_id: TextId) -> str | None:
        text = self._ledger.text(text_id)
        return text.body if text is not None else None

    def kept(self, text_id: TextId) -> Text | None:
        """A text of our own with what is known of it, its body or that it was removed."""
        return self._ledger.text(text_id)

    async def show(self, task_id: TaskId) -> Shown:
        """Everything about one task."""
        snapshot = self._snapshot(task_id)
        task, now = snapshot.task, self._clock.now()
        explained = await self.explain(task_id)
        return Shown(
            run=snapshot.run,
            task=task,
            conversations=self._ledger.conversations(task_id),
            attempts=self._ledger.attempts(task_id, LISTED),
            commands=self._ledger.commands(LISTED, task_id=task_id),
            waits=self._ledger.waits(LISTED, task_id=task_id, only_open=False),
            wakes=self._ledger.wakes(task_id),
            messages=self._ledger.messages(task_id, LISTED),
            reports=self._ledger.reports(task_id, LISTED),
            policy=task.auto_resume or snapshot.run.auto_resume,
            overridden=task.auto_resume is not None,
            cap=wakes.cap_of(snapshot),
            checkpoint_at=wakes.checkpoint_at(snapshot, now),
            because=explained.rungs[0] if explained.rungs else None,
            clocks=explained.clocks,
        )

    async def explain(self, task_id: TaskId) -> Explained:
        """The whole ladder for a task now; never empty for a task that is not being continued."""
        snapshot = self._snapshot(task_id)
        seen = await self._cycle.look(snapshot)
        now = self._clock.now()
        rungs = decide.explain(seen, now)
        decision = decide.decide(seen, now)
        intent = type(decision.intent).__name__ if decision.intent is not None else None
        if not rungs and decision.because is not None:
            rungs = (decision.because,)
        watch = self._cycle.watch
        case = classify.of(seen, watch.since(task_id), now, watch.away_since(task_id))
        health = classify.episode(snapshot.task.health, classify.classify(case))
        return Explained(snapshot.task, rungs, intent, now, health, classify.clocks(case))

    def explained_at(self, task_id: TaskId, at: datetime) -> tuple[Event, ...]:
        """The recorded decisions about a task up to a moment, newest last: what was armed, ended, and why it rested."""
        told: list[Event] = []
        after = 0
        while page := self._ledger.events(after, 1000, task_id=task_id):
            told += [event for event in page if event.fact.kind in TELLING and event.at <= at]
            after = page[-1].n
            if page[-1].at > at:
                break
        return tuple(told[-12:])

    def attention(self) -> tuple[Item, ...]:
        """What only a person can settle, oldest first."""
        return attention.queue(
            self._ledger.waits(LISTED),
            self._ledger.commands(LISTED, only_open=True),
            self._ledger.tasks(EVERY, unfinished=True),
            self._troubles(),
            self._clock.now(),
            self._ledger.chains(LISTED, unfinished=True),
        )

    def hushed(self) -> tuple[Hushed, ...]:
        """What is left out of the attention queue because something in it says it already."""
        return attention.hushed(self.attention(), self._ledger.tasks(EVERY, unfinished=True))

    def events(
        self, after: int, limit: int, *, task_id: TaskId | None = None, run_id: RunId | None = None
    ) -> tuple[Event, ...]:
        return self._ledger.events(after, limit, task_id=task_id, run_id=run_id)

    def commands(self, *, task_id: TaskId | None = None, only_open: bool = False) -> tuple[Command, ...]:
        return self._ledger.commands(LISTED, task_id=task_id, only_open=only_open)

    def command(self, command_id: CommandId) -> Command:
        found = self._ledger.command(command_id)
        if found is None:
            raise NotFound(f"there is no command {command_id}", field="command")
        return found

    def attempts(self, task_id: TaskId) -> tuple[Attempt, ...]:
        return self._ledger.attempts(task_id, EVERY)

    def waits(self, task_id: TaskId) -> tuple[Wait, ...]:
        return self._ledger.waits(LISTED, task_id=task_id)

    def reports(self, task_id: TaskId) -> tuple[Report, ...]:
        return self._ledger.reports(task_id, LISTED)

    def messages(self, task_id: TaskId) -> tuple[Message, ...]:
        return self._ledger.messages(task_id, LISTED)

    def policy(self, given: str) -> tuple[tuple[str, object, str], ...]:
        """Every number in force for a run or a task as (name, value, where it comes from)."""
        run_id, task_ids = self.tasks_of(given)
        task = self.task(task_ids[0]) if run_id is None else None
        run = self.run(run_id if run_id is not None else task.run_id)  # type: ignore[union-attr]
        rows: list[tuple[str, object, str]] = [
            ("auto_resume", run.auto_resume, "run")
            if task is None or task.auto_resume is None
            else ("auto_resume", f"{task.auto_resume} (the run says {run.auto_resume})", "task")
        ]
        for name in Policy.__dataclass_fields__:
            value = getattr(run.policy, name)
            source = "default" if value == getattr(POLICY, name) else "run"
            if source == "run" and value == getattr(self._defaults, name):
                source = "config"
            if name.startswith("max_") and task is not None and getattr(task, name) is not None:
                value, source = getattr(task, name), "task"
            rows.append((name, value, source))
        for name in Keeping.__dataclass_fields__:
            value = getattr(self._keep, name)
            rows.append((f"keep_{name}", value, "default" if value == getattr(KEEPING, name) else "config"))
        return tuple(rows)

    def _snapshot(self, task_id: TaskId) -> Snapshot:
        snapshot = self._ledger.snapshot(task_id, self._slots)
        if snapshot is None:
            raise NotFound(f"there is no task {task_id}", field="task")
        return snapshot
