"""What only a person can settle, as one short list in a stable order.

Open questions, commands that looking could not settle, tasks that stopped making progress, and loud health where
nothing else says it. Healthy work, and what ends by itself, never stands here. Each thing has an episode, and is told
once in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tenuto.core import pages
from tenuto.model.chain import Chain
from tenuto.model.command import Command
from tenuto.model.health import LOUD, Assessment, Health
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState
from tenuto.model.work import HUMAN_WAITS, Task, Wait, WaitKind


@dataclass(frozen=True)
class Item:
    """One thing only a person can settle: what it is about, the question, what to do, since when."""

    task_id: TaskId | None
    kind: str
    question: str
    mend: str
    since: datetime

    @property
    def episode(self) -> str:
        """What it is told once under, for as long as it stands: another episode has another name."""
        if self.task_id is None:
            return f"{self.kind}: {self.question}"
        return f"{self.task_id} {self.kind} {int(self.since.timestamp() * 1000)}"


@dataclass(frozen=True)
class Hushed:
    """A task whose health would stand here, left out because `by` says it already."""

    task_id: TaskId
    health: Health
    by: str


def queue(
    waits: Iterable[Wait],
    commands: Iterable[Command],
    tasks: Sequence[Task],
    troubles: Sequence[str],
    now: datetime,
    chains: Iterable[Chain] = (),
) -> tuple[Item, ...]:
    """The attention queue, oldest first; `troubles` are sentences about the supervisor itself."""
    items = [_question(wait) for wait in waits if wait.kind in HUMAN_WAITS]
    items += [_doubt(command) for command in commands if command.state is CommandState.AMBIGUOUS]
    items += [_stall(task, task.stalled_at) for task in tasks if task.stalled_at is not None and not task.terminal]
    items += [_ready(task, task.ready_at) for task in tasks if task.ready_at is not None and _unclosed(task)]
    told = {item.task_id: item.kind for item in items}
    items += [
        _health(task, task.health) for task in tasks if task.health is not None and _loud(task) and task.id not in told
    ]
    items += [_chain(chain, chain.asks) for chain in chains if chain.asks is not None]
    items += [Item(None, "supervisor", text, "tenuto doctor", now) for text in troubles]
    return tuple(sorted(items, key=lambda item: (item.since, item.task_id or "", item.kind)))


def hushed(items: Iterable[Item], tasks: Iterable[Task]) -> tuple[Hushed, ...]:
    """The tasks whose health is loud and is said by another item already."""
    told = {item.task_id: item.kind for item in items if item.kind not in set(LOUD)}
    return tuple(
        Hushed(task.id, task.health.value, told[task.id])
        for task in tasks
        if task.health is not None and _loud(task) and task.id in told
    )


def _loud(task: Task) -> bool:
    return task.health is not None and task.health.value in LOUD and not task.terminal


def _health(task: Task, said: Assessment) -> Item:
    return Item(task.id, said.value.value, f"{said.why} ({said.confidence} confidence)", said.mend, said.since)


def _question(wait: Wait) -> Item:
    mend = f"tenuto answer {wait.task_id} --file ANSWER"
    if wait.kind is WaitKind.PERMISSION:
        mend = f"tenuto answer {wait.task_id} --wait {wait.id} --allow, --allow-for-task or --deny"
    if (wait.subject or "").startswith(pages.SUBJECT):
        mend = "do it in the browser; the task goes on once its page shows it no more"
    if wait.kind is WaitKind.CAP:
        mend = f"tenuto policy set {wait.subject or f'{wait.task_id} max-attempts'}=N"
    return Item(wait.task_id, f"{wait.kind} wait", wait.question, mend, wait.opened_at)


def _chain(chain: Chain, asks: str) -> Item:
    return Item(None, "chain", asks, f"tenuto chain status {chain.id}", chain.created_at)


def _doubt(command: Command) -> Item:
    detail = f": {command.detail}" if command.detail else ""
    return Item(
        command.task_id,
        "ambiguous command",
        f"it is not known whether {command.kind} {command.id} took effect{detail}",
        f"look, then: tenuto command release {command.id} --verdict happened|not-happened",
        command.armed_at or command.created_at,
    )


def _stall(task: Task, since: datetime) -> Item:
    return Item(
        task.id,
        "stalled",
        f"{task.progress.without} turns without durable progress",
        f"tenuto resume --stalled {task.id}, or tenuto cancel {task.id}",
        since,
    )


def _unclosed(task: Task) -> bool:
    """Whether a signal of readiness closes nothing by itself."""
    return not task.terminal and not task.auto_close and task.claim is None


def _ready(task: Task, since: datetime) -> Item:
    return Item(
        task.id,
        "completion-ready",
        f"it says that its work is ready to be closed: {task.ready_note}",
        f"tenuto complete {task.id} --evidence REF, or tenuto continue {task.id}",
        since,
    )
