"""Spawning: one more task, asked for by a person, a program or an agent, at most once.

It decides whether the task may be made: the same key is answered as before, the same work that is under way is named
and not begun again, one source cannot flood the others, and a full line takes nobody in. What is refused has made
nothing. How the work is done comes from a playbook that is read here; a caller gives its name and nothing of its rules.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from tenuto.core import playbook as playbooks
from tenuto.core import slots
from tenuto.core.playbook import Playbook
from tenuto.model.change import Commit, Guard, Row
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Duplicate, Hurried, Mistake, NotAllowed, NotFound, Pressed, Refused
from tenuto.model.ids import ChainId, RunId, TaskId, TextId, WakeId
from tenuto.model.lifecycle import RunState, TaskState
from tenuto.model.policy import Policy
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent, AutoResume, Run, Task, Text, TextKind, Wake, WakeKind
from tenuto.ports import Executor, Ledger, Minter, Playbooks

#: Seconds after which a full line may be asked again.
LATER = 30


@dataclass(frozen=True)
class Spawn:
    """What is asked for. None: the playbook says it, else the parent, else the default.

    `run` and `parent` are whole identifiers, an operator's to name; an agent's own task is its parent. `agent` is an
    operator's to give. `hand_over` passes the parent's slot to the task. `force` is the reason for beginning work that
    is under way already. `worktree` is where it will work when that is made: before its first turn, and of `cwd`.
    """

    prompt: str
    title: str = ""
    playbook: str | None = None
    run: RunId | None = None
    parent: TaskId | None = None
    cwd: str | None = None
    agent: Agent | None = None
    auto_close: bool | None = None
    unattended: bool | None = None
    hand_over: bool = False
    force: str | None = None
    worktree: str | None = None


@dataclass(frozen=True)
class Source:
    """Who asks: its role, and for anybody but an operator the task it speaks for.

    `chain`: the supervisor asks, for a chain, which has caps of its own.
    """

    role: Role
    task_id: TaskId | None
    chain: ChainId | None = None

    @property
    def name(self) -> str:
        """What its rate is counted for."""
        if self.chain is not None:
            return f"chain:{self.chain}"
        return str(self.role) if self.task_id is None else f"{self.role}:{self.task_id}"


@dataclass(frozen=True)
class Made:
    """A task that is about to be: the commit, and what is told of it."""

    commit: Commit
    task_id: TaskId
    result: Mapping[str, Scalar]


class Spawning:
    """Makes tasks from spawns. Hold `lock` from asking until the commit, so that no two pass one check."""

    def __init__(
        self,
        ledger: Ledger,
        minter: Minter,
        executors: Mapping[str, Executor],
        found: Playbooks | None,
        defaults: Policy,
        executor_of: Callable[[str], str],
        policy_with: Callable[[Policy, Mapping[str, int | float | None]], Policy],
    ) -> None:
        self._ledger = ledger
        self._mint = minter
        self._executors = executors
        self._playbooks = found
        self._defaults = defaults
        self._executor_of = executor_of
        self._policy_with = policy_with
        self.lock = asyncio.Lock()

    def made(self, source: Source, asked: Spawn, now: datetime) -> Made:
        """The task as it will be. Raises Mistake, Duplicate, Hurried, Pressed, Refused or NotAllowed."""
        parent = self._parent(source, asked)
        run = self._run(asked, parent)
        book = self._book(asked, parent)
        agent = self._agent(source, asked, book, parent)
        cwd = self._cwd(asked, book, parent)
        objective = self._objective(asked, book)
        self._startable(agent, cwd)
        digest = hashlib.sha256(objective.encode()).hexdigest()
        if source.chain is None:
            self._no_twin(asked, digest, cwd, agent, run)
            self._not_too_often(source, now)
        if not asked.hand_over and (source.chain is None or parent is None):
            self._room()
        new = self._mint.new
        puts: list[Row] = []
        facts: list[Fact] = []
        title = asked.title.strip() or next((line.strip() for line in asked.prompt.splitlines() if line.strip()), "")
        title = title[:200]
        task_id, text_id = TaskId(new("task")), TextId(new("text"))
        numbers = dict(book.policy)
        if run is None:
            auto = book.auto_resume or AutoResume.ON
            policy = self._policy_with(self._defaults, numbers)
            run = Run(RunId(new("run")), 1, title, RunState.OPEN, auto, policy, None, now)
            puts.append(run)
            facts.append(Fact(FactKind.RUN_CREATED, run.id, None, {"title": title}))
            own_auto = None
            guards: tuple[Guard, ...] = ()
        else:
            if numbers:
                raise Mistake(
                    f"the playbook {book.name} sets numbers of a run ({sorted(numbers)[0]}), and this run has its own; "
                    "a playbook for its tasks sets auto-resume and max-attempts only",
                    field="playbook",
                )
            own_auto = book.auto_resume
            guards = (Guard("run", run.id, run.revision),)
        task = Task(
            id=task_id,
            revision=1,
            run_id=run.id,
            title=title,
            objective=text_id,
            cwd=asked.worktree or cwd,
            agent=agent,
            acceptance=book.acceptance,
            state=TaskState.PENDING,
            created_at=now,
            auto_resume=own_auto,
            max_attempts=book.max_attempts,
            parent=parent.id if parent is not None else None,
            look_at=now,
            spawned_by=source.name,
            playbook=book.name or None,
            delivery=str(book.delivery) if book.delivery is not None else None,
            auto_close=slots.inherited(
                asked.auto_close if asked.auto_close is not None else book.auto_close,
                parent.auto_close if parent is not None else None,
            ),
            unattended=slots.inherited(
                asked.unattended if asked.unattended is not None else book.unattended,
                parent.unattended if parent is not None else None,
            ),
            queued_at=now,
        )
        if asked.hand_over:
            task = self._handed(parent, task)
        elif source.chain is not None and parent is not None:
            task = slots.hand_over(parent, task)
        puts += [
            Text(text_id, TextKind.OBJECTIVE, task_id, objective, digest, now),
            task,
            Wake(WakeId(new("wake")), 1, task_id, WakeKind.EVENT, "the task was spawned", now, now),
        ]
        facts += [
            Fact(FactKind.TASK_CREATED, run.id, task_id, {"title": title}),
            Fact(
                FactKind.TASK_SPAWNED,
                run.id,
                task_id,
                {"by": source.name, "parent": task.parent, "playbook": task.playbook, "forced": asked.force},
            ),
        ]
        result: dict[str, Scalar] = {
            "run": run.id,
            "task": task_id,
            "parent": task.parent,
            "playbook": task.playbook,
            "delivery": task.delivery,
            "auto_close": task.auto_close,
            "unattended": task.unattended,
        }
        return Made(Commit(puts=tuple(puts), facts=tuple(facts), guards=guards), task_id, result)

    # -- where it belongs

    def _parent(self, source: Source, asked: Spawn) -> Task | None:
        own = source.task_id
        if source.role is not Role.OPERATOR:
            if own is None:
                raise NotAllowed("this token speaks for no task, and spawns none")
            if asked.parent not in (None, own) or asked.run is not None:
                raise NotAllowed("an agent spawns children of its own task, in its own run", field="parent")
        given = asked.parent if source.role is Role.OPERATOR else own
        if given is None:
            return None
        task = self._ledger.task(given)
        if task is None:
            raise NotFound(f"there is no task {given}", field="parent")
        if task.terminal and source.role is not Role.OPERATOR:
            raise Refused(f"the task is {task.state}; it spawns nothing any more", field="parent")
        return task

    def _run(self, asked: Spawn, parent: Task | None) -> Run | None:
        if asked.run is not None and parent is not None and parent.run_id != asked.run:
            raise Mistake("the parent is of another run", field="run")
        given = asked.run or (parent.run_id if parent is not None else None)
        if given is None:
            return None
        run = self._ledger.run(given)
        if run is None:
            raise NotFound(f"there is no run {given}", field="run")
        if run.state is not RunState.OPEN:
            raise Refused("its run is stopped", field="run", see="a stopped run stays stopped; begin another")
        return run

    def _handed(self, parent: Task | None, task: Task) -> Task:
        if parent is None:
            raise Mistake("there is no parent whose slot could be handed over", field="hand_over")
        if not slots.holds(parent):
            raise Refused("the parent holds no slot that could be handed over", field="hand_over")
        if any(one.giver == parent.id for one in self._ledger.line()):
            raise Refused("the parent's slot is handed over to another task already", field="hand_over")
        return slots.hand_over(parent, task)

    # -- how it is done

    def _book(self, asked: Spawn, parent: Task | None) -> Playbook:
        if asked.playbook is None:
            return Playbook("")
        if self._playbooks is None:
            raise Mistake("no playbooks are read here", field="playbook")
        scope, name = playbooks.named(asked.playbook)
        near = asked.cwd or (parent.cwd if parent is not None else None)
        found = self._playbooks.find(name, scope, near)
        book = playbooks.read(found.scope, found.name, found.text)
        if book.directory is not None and found.root is not None:
            book = replace(book, directory=str(PurePosixPath(found.root) / book.directory))
        return book

    @staticmethod
    def _agent(source: Source, asked: Spawn, book: Playbook, parent: Task | None) -> Agent:
        if asked.agent is not None:
            if source.role is not Role.OPERATOR:
                raise NotAllowed("only the operator names a program; an agent names a playbook", field="agent")
            if book.agent is not None:
                raise Mistake("the playbook names a program already", field="agent")
            return asked.agent
        agent = book.agent or (parent.agent if parent is not None else None)
        if agent is None:
            raise Mistake("name a program, a playbook that names one, or a parent", field="agent")
        return agent

    @staticmethod
    def _cwd(asked: Spawn, book: Playbook, parent: Task | None) -> str:
        cwd = book.directory or asked.cwd or (parent.cwd if parent is not None else None)
        if cwd is None:
            raise Mistake("name the directory it is to work in", field="cwd")
        return cwd

    def _objective(self, asked: Spawn, book: Playbook) -> str:
        if not asked.prompt.strip():
            raise Mistake("the prompt is empty; say what is to be done", field="prompt")
        whole = f"{book.instructions}\n\n{asked.prompt}" if book.instructions else asked.prompt
        try:
            size = len(whole.encode())
        except UnicodeEncodeError:
            raise Mistake("the prompt is not valid UTF-8 text", field="prompt") from None
        if size > self._defaults.objective_bytes:
            raise Mistake(
                f"the prompt has {size} bytes with its playbook; at most {self._defaults.objective_bytes} are taken",
                field="prompt",
            )
        return whole

    def _startable(self, agent: Agent, cwd: str) -> None:
        executor = self._executors.get(self._executor_of(agent.carrier))
        if executor is None:
            raise Mistake(f"no executor here runs '{agent.carrier}'", field="agent")
        if objection := executor.objection(agent, cwd):
            raise Mistake(objection[1], field=objection[0])

    # -- whether it may be

    def _no_twin(self, asked: Spawn, digest: str, cwd: str, agent: Agent, run: Run | None) -> None:
        if asked.force is not None:
            return
        for task in self._ledger.twins(digest, cwd):
            if task.agent == agent and (run is None or task.run_id == run.id):
                raise Duplicate(
                    f"task {task.id} does this very work already; force another with a reason",
                    field="prompt",
                    see=f"tenuto show {task.id}",
                )

    def _not_too_often(self, source: Source, now: datetime) -> None:
        window = self._defaults.spawn_window
        count, oldest = self._ledger.spawned(source.name, now - window)
        if count < self._defaults.spawn_rate or oldest is None:
            return
        wait = max(1, math.ceil((oldest + window - now).total_seconds()))
        minutes = int(window.total_seconds() // 60)
        raise Hurried(
            f"{count} tasks were spawned from here within {minutes} minutes; nothing was made", retry_after=wait
        )

    def _room(self) -> None:
        waiting = self._ledger.spawned_pending()
        if waiting >= self._defaults.pending_tasks:
            raise Pressed(f"{waiting} spawned tasks stand in line for a slot; nothing was made", retry_after=LATER)
