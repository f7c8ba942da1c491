"""An order for work: what is refused of it, with the field to mend, and the rows that it becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from tenuto.engine.cycle import Cycle
from tenuto.engine.numbers import policy_with
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Mistake
from tenuto.model.ids import RunId, TaskId, TextId, WakeId
from tenuto.model.lifecycle import RunState, TaskState
from tenuto.model.policy import Policy
from tenuto.model.work import Acceptance, Agent, AutoResume, Run, Task, Text, TextKind, Wake, WakeKind
from tenuto.ports import Executor


@dataclass(frozen=True)
class Order:
    """What `tenuto run` asks for: one run with one task."""

    title: str
    objective: str
    cwd: str
    agent: Agent
    acceptance: Acceptance = field(default_factory=Acceptance)
    auto_resume: AutoResume = AutoResume.ON
    max_attempts: int | None = None
    policy: Mapping[str, int | float | None] = field(default_factory=dict)
    coordinator: bool = False


def checked(order: Order, defaults: Policy, executors: Mapping[str, Executor]) -> Policy:
    """The policy of work that may be ordered; raises Mistake with the field to mend."""
    if not order.title.strip() or len(order.title) > 200:
        raise Mistake("a title has 1 to 200 characters", field="title")
    if not order.objective.strip():
        raise Mistake("the objective is empty; say what is to be done", field="objective")
    size = len(order.objective.encode("utf-8", "surrogatepass"))
    if size > defaults.objective_bytes:
        raise Mistake(
            f"the objective has {size} bytes; at most {defaults.objective_bytes} are taken", field="objective"
        )
    try:
        order.objective.encode()
    except UnicodeEncodeError:
        raise Mistake("the objective is not valid UTF-8 text", field="objective") from None
    if not order.agent.argv or not order.agent.argv[0]:
        raise Mistake("name a program to run", field="program")
    if order.max_attempts is not None and not 1 <= order.max_attempts <= 1_000_000:
        raise Mistake("max-attempts is a whole number from 1 to 1000000", field="max_attempts")
    executor = executors.get(Cycle.executor_of(order.agent.carrier))
    if executor is None:
        raise Mistake(f"no executor here runs '{order.agent.carrier}'", field="agent")
    if objection := executor.objection(order.agent, order.cwd):
        raise Mistake(objection[1], field=objection[0])
    return policy_with(defaults, order.policy)


def rows(order: Order, policy: Policy, now: datetime, new: Callable[[str], str]) -> tuple[Commit, dict[str, Scalar]]:
    """What makes the run and its task, with a wake for its first turn; and how the two are called."""
    run_id, task_id, text_id = RunId(new("run")), TaskId(new("task")), TextId(new("text"))
    run = Run(run_id, 1, order.title, RunState.OPEN, order.auto_resume, policy, None, now)
    if order.coordinator:
        run = replace(run, coordinator=task_id)
    body = order.objective
    text = Text(text_id, TextKind.OBJECTIVE, task_id, body, hashlib.sha256(body.encode()).hexdigest(), now)
    task = Task(
        id=task_id,
        revision=1,
        run_id=run_id,
        title=order.title,
        objective=text_id,
        cwd=order.cwd,
        agent=order.agent,
        acceptance=order.acceptance,
        state=TaskState.PENDING,
        created_at=now,
        max_attempts=order.max_attempts,
        waiting_since=None,
        look_at=now,
    )
    wake = Wake(WakeId(new("wake")), 1, task_id, WakeKind.EVENT, "the task was made", now, now)
    facts = (
        Fact(FactKind.RUN_CREATED, run_id, None, {"title": order.title[:200]}),
        Fact(FactKind.TASK_CREATED, run_id, task_id, {"title": order.title[:200]}),
    )
    result: dict[str, Scalar] = {"run": run_id, "task": task_id}
    return Commit(puts=(run, text, task, wake), facts=facts), result
