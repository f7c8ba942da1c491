"""Importing: unfinished work of another program becomes tasks here, each once, and none of them begins by itself.

An imported task is manual and paused; what its source said of it is kept as evidence of rank 5, which decides no send.
The conversation that worked on it is made known as a place that holds nothing. Nothing of the source is asked, told or
repeated: the first turn is one that the operator asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tenuto.core import signs, tenancy
from tenuto.engine.calling import Caller, Done
from tenuto.engine.cycle import Cycle
from tenuto.model.change import Commit, Key, Row
from tenuto.model.evidence import Rank, Sighting
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Mistake
from tenuto.model.foreign import Item
from tenuto.model.ids import ObservationId, RunId, TaskId, TextId
from tenuto.model.lifecycle import RunState, TaskState
from tenuto.model.policy import Policy
from tenuto.model.tools import ToolBinding
from tenuto.model.work import Acceptance, Agent, AutoResume, Run, Task, Text, TextKind
from tenuto.ports import Clock, Ledger, Minter

#: How many pieces of work one call imports, and how many tasks are looked through for those that are here already.
MOST = 200
KNOWN = 100_000


@dataclass(frozen=True)
class Loan:
    """What the desk lends: whether it leads, whether work may be, how to commit, and whom to ring."""

    must_lead: Callable[[], None]
    policy: Callable[[str, str, str, Agent], Policy]
    key: Callable[[Caller, str, str | None, object, Mapping[str, Scalar]], Key | None]
    committed: Callable[[Commit, Mapping[str, Scalar]], Awaitable[Done]]
    ring: Callable[[TaskId], None]


@dataclass(frozen=True)
class Import:
    """What is asked for: a source by its own name, what it holds, how the tasks are to be worked, and by which name
    the tool server that has their sessions is known here."""

    source: str
    items: tuple[Item, ...]
    agent: Agent
    server: str = "local"
    title: str = ""


@dataclass(frozen=True)
class Became:
    """What became of one piece: a task of ours, or the reason against one."""

    origin: str
    task_id: TaskId | None
    why: str | None = None


@dataclass(frozen=True)
class Imported:
    """What became of each, and the run that they are in; None: nothing new was made."""

    run_id: RunId | None
    became: tuple[Became, ...]


class Importing:
    """Makes tasks of foreign work, all of a call in one commit."""

    def __init__(self, ledger: Ledger, clock: Clock, minter: Minter, loan: Loan) -> None:
        self._ledger = ledger
        self._clock = clock
        self._mint = minter
        self._loan = loan

    async def take(self, caller: Caller, asked: Import, key: str | None) -> Imported:
        """Import. What is here already is named and not made again; raises Mistake for what cannot be at all."""
        caller.must_operate()
        self._loan.must_lead()
        if len(asked.items) > MOST:
            raise Mistake(f"at most {MOST} pieces of work are imported at once", field="items")
        origins = [item.origin for item in asked.items]
        if twice := next((one for one in origins if origins.count(one) > 1), None):
            raise Mistake(f"{twice} is named twice", field="items")
        known = self._known(asked.source)
        became: list[Became] = []
        fresh: list[Item] = []
        policy: Policy | None = None
        for item in asked.items:
            if (task_id := known.get(item.origin)) is not None:
                became.append(Became(item.origin, task_id, "it was imported before"))
                continue
            if objection := next((why for fact in item.facts if (why := signs.objection(*fact)) is not None), None):
                became.append(Became(item.origin, None, objection))
                continue
            if twins := self._ledger.twins(hashlib.sha256(item.objective.encode()).hexdigest(), item.cwd):
                became.append(Became(item.origin, None, f"task {twins[0].id} has this objective in this directory"))
                continue
            try:
                policy = self._loan.policy(item.title or item.origin, item.objective, item.cwd, asked.agent)
            except Mistake as against:
                became.append(Became(item.origin, None, against.message))
                continue
            fresh.append(item)
        if not fresh or policy is None:
            return Imported(None, tuple(became))
        now = self._clock.now()
        run, rows, facts, made = self._rows(asked, fresh, policy, caller.name, now)
        result: dict[str, Scalar] = {"run": run.id, "tasks": len(made)}
        done_by = self._loan.key(caller, "import", key, asked, result)
        await self._loan.committed(Commit(puts=rows, facts=facts, key=done_by), result)
        for one in made:
            if one.task_id is not None:
                self._loan.ring(one.task_id)
        return Imported(run.id, (*became, *made))

    def _known(self, source: str) -> Mapping[str, TaskId]:
        """What was imported from this source before, whatever became of it since."""
        prefix = f"{_source(source)}/"
        found: dict[str, TaskId] = {}
        for task in self._ledger.tasks(KNOWN):
            if task.spawned_by is not None and task.spawned_by.startswith(prefix):
                found[task.spawned_by.removeprefix(prefix)] = task.id
        return found

    def _rows(
        self, asked: Import, fresh: Sequence[Item], policy: Policy, by: str, now: datetime
    ) -> tuple[Run, tuple[Row, ...], tuple[Fact, ...], tuple[Became, ...]]:
        new = self._mint.new
        title = asked.title or f"imported: {asked.source}"[:200]
        run = Run(RunId(new("run")), 1, title, RunState.OPEN, AutoResume.MANUAL, policy, None, now)
        rows: list[Row] = [run]
        facts = [Fact(FactKind.RUN_CREATED, run.id, None, {"title": title})]
        made: list[Became] = []
        executor = Cycle.executor_of(asked.agent.carrier)
        for item in fresh:
            task_id, text_id = TaskId(new("task")), TextId(new("text"))
            digest = hashlib.sha256(item.objective.encode()).hexdigest()
            tools = (ToolBinding(asked.server, item.session),) if item.session is not None else ()
            task = Task(
                id=task_id,
                revision=1,
                run_id=run.id,
                title=(item.title or item.origin)[:200],
                objective=text_id,
                cwd=item.cwd,
                agent=asked.agent,
                acceptance=Acceptance(),
                state=TaskState.PENDING,
                created_at=now,
                auto_resume=AutoResume.MANUAL,
                paused_at=now,
                paused_by=f"its import by {by}"[:200],
                look_at=now,
                tools=tools,
                spawned_by=f"{_source(asked.source)}/{item.origin}",
            )
            rows += [Text(text_id, TextKind.OBJECTIVE, task_id, item.objective, digest, now), task]
            rows.append(self._evidence(task, asked.source, item, by, now))
            facts.append(Fact(FactKind.TASK_CREATED, run.id, task_id, {"title": task.title}))
            if item.place is not None:
                talk = tenancy.register(task, item.place, executor, now, new)
                rows.append(talk)
                facts.append(Fact(FactKind.CONVERSATION_OPENED, run.id, task_id, {"conversation": talk.id}))
            made.append(Became(item.origin, task_id))
        return run, tuple(rows), tuple(facts), tuple(made)

    def _evidence(self, task: Task, source: str, item: Item, by: str, now: datetime) -> Sighting:
        """What its source said of it: hearsay, from when it was written there."""
        seen_at = min(item.seen_at, now) if item.seen_at is not None else now
        facts = tuple(sorted(item.facts)) or (("state", item.state),)
        return Sighting(
            ObservationId(self._mint.new("observation")),
            task.id,
            f"imported {item.origin}"[:200],
            f"{source} (by {by})"[: signs.SOURCE],
            int(Rank.REPORTED),
            seen_at,
            now,
            signs.digest_of(signs.edges(facts)),
            facts,
        )


def _source(name: str) -> str:
    """How tasks remember where they came from."""
    return f"import {name}"
