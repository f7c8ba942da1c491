"""Adopting: an agent's session that somebody began becomes the place of a task, without being touched.

The session is taken as its program's own records tell it: it works in one directory, it is bound to no other task, and
no later session has taken its place. The task is manual until somebody says otherwise, so that nothing is said to the
session by its being adopted. One that is open in a program stays there: words reach it at its own stops alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from tenuto.core import tenancy
from tenuto.engine.calling import Caller, Done
from tenuto.model.change import Commit, Key, Row
from tenuto.model.decision import Because
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Mistake, NotFound, Refused
from tenuto.model.ids import RunId, TaskId, TextId, WakeId
from tenuto.model.lifecycle import RunState, TaskState
from tenuto.model.policy import Policy
from tenuto.model.session import SessionFacts
from tenuto.model.work import Acceptance, Agent, AutoResume, Run, Task, Text, TextKind, Wake, WakeKind
from tenuto.ports import Clock, Executor, Ledger, Minter, Paging, PerTask, Sessions

OBJECTIVE = "Go on with the work that this session is about, until it is done.\n"


@dataclass(frozen=True)
class Adoption:
    """What is asked for: a session by its whole name, how its program is started, and what is to come of it."""

    agent: Agent
    session: str
    title: str = ""
    objective: str = ""
    auto_resume: AutoResume = AutoResume.MANUAL
    acceptance: Acceptance = field(default_factory=Acceptance)


@dataclass(frozen=True)
class Lent:
    """What the desk lends: whether work may be, who has asked before, how it is committed, and whom to ring."""

    must_lead: Callable[[], None]
    policy: Callable[[str, str, str, Agent], Policy]
    replay: Callable[[Caller, str | None, str, object], Done | None]
    key: Callable[[Caller, str, str | None, object, Mapping[str, Scalar]], Key | None]
    committed: Callable[[Commit, Mapping[str, Scalar]], Awaitable[Done]]
    ring: Callable[[TaskId], None]


class Adopting:
    """Binds sessions to tasks. `sessions` None: no records are read here."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        minter: Minter,
        executors: Mapping[str, Executor],
        sessions: Sessions | None,
        lent: Lent,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._mint = minter
        self._executors = executors
        self._sessions = sessions
        self._lent = lent

    def listed(self, adapter: str, cwd: str | None) -> tuple[tuple[SessionFacts, TaskId | None], ...]:
        """The sessions that a program's records tell of, with the task that each is bound to."""
        return tuple((one, self._ledger.bound_to(one.session)) for one in self._records().listed(adapter, cwd))

    async def adopt(self, caller: Caller, asked: Adoption, key: str | None) -> Done:
        """Make a task of a session. Raises NotFound, Mistake or Refused; what is refused has made nothing."""
        caller.must_operate()
        self._lent.must_lead()
        if (replay := self._lent.replay(caller, key, "adopt", asked)) is not None:
            return replay
        facts = self._verified(asked)
        door: object = self._executors.get(asked.agent.carrier)
        if not isinstance(door, PerTask):
            raise Mistake(f"sessions of {asked.agent.adapter} cannot be worked here", field="agent")
        return await self._bound(caller, asked, key, facts.cwd, door.executor_for, facts.running)

    async def adopt_chat(self, caller: Caller, asked: Adoption, cwd: str, key: str | None) -> Done:
        """Make a task of a chat by its address, which is its session's name. Nothing is sent by it, nor looked at.

        Raises Mistake for an address that is no conversation's, and Refused for one that a task works in already.
        """
        caller.must_operate()
        self._lent.must_lead()
        if (replay := self._lent.replay(caller, key, "adopt", asked)) is not None:
            return replay
        executor: object = self._executors.get(asked.agent.carrier)
        if not isinstance(executor, Paging):
            raise Mistake(f"{asked.agent.carrier} has no pages; a browser is named ext:NAME", field="on")
        found = executor.addressed(asked.session)
        if found is None:
            raise Mistake("this is the address of no conversation of a site that is known here", field="url")
        site, identity = found
        if (bound := self._ledger.bound_to(identity)) is not None:
            raise Refused(f"task {bound} works in that chat already", field="url", see=f"tenuto show {bound}")
        agent = replace(asked.agent, adapter=site, argv=(site,))
        taken = replace(asked, agent=agent, session=identity)
        return await self._bound(caller, taken, key, cwd, lambda _: asked.agent.carrier, None, asked)

    async def _bound(
        self,
        caller: Caller,
        asked: Adoption,
        key: str | None,
        cwd: str,
        executor_for: Callable[[TaskId], str],
        running: int | None,
        body: Adoption | None = None,
    ) -> Done:
        """A run, a task and its conversation, bound to what the outside calls it."""
        objective = asked.objective if asked.objective.strip() else OBJECTIVE
        title = asked.title.strip() or f"{asked.agent.adapter} session {asked.session[:13]}"
        policy = self._lent.policy(title, objective, cwd, asked.agent)
        now, new = self._clock.now(), self._mint.new
        run_id, task_id, text_id = RunId(new("run")), TaskId(new("task")), TextId(new("text"))
        run = Run(run_id, 1, title, RunState.OPEN, asked.auto_resume, policy, None, now)
        digest = hashlib.sha256(objective.encode()).hexdigest()
        text = Text(text_id, TextKind.OBJECTIVE, task_id, objective, digest, now)
        task = Task(
            id=task_id,
            revision=1,
            run_id=run_id,
            title=title,
            objective=text_id,
            cwd=cwd,
            agent=asked.agent,
            acceptance=asked.acceptance,
            state=TaskState.PENDING,
            created_at=now,
            look_at=now,
        )
        talk = tenancy.register(task, asked.session, executor_for(task_id), now, new)
        tenure = tenancy.claim(task, talk, None, policy, now)
        if isinstance(tenure, Because):
            raise Refused(tenure.sentence, see=tenure.change)
        task = replace(task, lease_number=tenure.task.lease_number)
        told = (
            Fact(FactKind.RUN_CREATED, run_id, None, {"title": title}),
            Fact(FactKind.TASK_CREATED, run_id, task_id, {"title": title}),
            Fact(FactKind.CONVERSATION_OPENED, run_id, task_id, {"conversation": talk.id}),
            Fact(
                FactKind.CONVERSATION_CLAIMED,
                run_id,
                task_id,
                {"conversation": talk.id, "lease_number": tenure.task.lease_number},
            ),
        )
        result: dict[str, Scalar] = {
            "run": run_id, "task": task_id, "session": asked.session, "cwd": cwd, "open_in": running,
        }  # fmt: skip
        done_by = self._lent.key(caller, "adopt", key, body or asked, result)
        wake = Wake(WakeId(new("wake")), 1, task_id, WakeKind.EVENT, "the session was adopted", now, now)
        rows: tuple[Row, ...] = (run, text, task, wake, talk, *tenure.conversations)
        done = await self._lent.committed(Commit(puts=rows, facts=told, key=done_by), result)
        self._lent.ring(task_id)
        return done

    def _verified(self, asked: Adoption) -> SessionFacts:
        facts = self._records().found(asked.agent.adapter, asked.session)
        see = f"tenuto adopt {asked.agent.adapter} --list"
        if facts is None:
            told = f"{asked.agent.adapter} has no record of a session {asked.session[:60]}"
            raise NotFound(told, field="session", see=see)
        if (bound := self._ledger.bound_to(asked.session)) is not None:
            raise Refused(f"task {bound} works in that session already", field="session", see=f"tenuto show {bound}")
        if facts.newer is not None:
            raise Refused(
                f"a newer session stands in its place: {facts.newer} was worked in later, in {facts.cwd} too",
                field="session",
                see=see,
            )
        return facts

    def _records(self) -> Sessions:
        if self._sessions is None:
            raise Mistake("no records of agents are read here", field="agent")
        return self._sessions
