"""Everything that is read of one task to decide about it, and how much of it at most."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tenuto.model.command import Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.faults import Corrupt
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import TaskState
from tenuto.model.snapshot import InLine, Snapshot, Spent
from tenuto.model.work import Run, Task, Wait, WaitKind
from tenuto.store import questions, tables
from tenuto.store.look import Look
from tenuto.store.rows import at

#: The most settled checks and interrupts that a snapshot carries.
SIDE_COMMANDS = 8
#: The most undelivered messages that a snapshot carries; a prompt cannot hold more.
MESSAGES = 200
#: The most events of a run that its coordinator's snapshot carries.
PAGE = 500
#: The most children that a waiting parent's snapshot carries.
CHILDREN = 2000
#: How many reconciliations a snapshot carries.
SAMPLES = 3
#: The most questions for leave, and the most usage limits, that one look carries.
PERMISSIONS = 100
LIMITS = 100
#: How many recorded observations a snapshot carries.
SIGHTINGS = 64
#: The most tasks in line for a slot that are looked at; who stands behind them waits until they are fewer.
LINE = 500


def snapshot(look: Look, task_id: TaskId, slots: int) -> Snapshot | None:
    """One task with all that a decision about it needs; None where there is no such task."""
    task = look.one(tables.TASK, questions.ONE["task"], id=task_id)
    if task is None:
        return None
    run = look.one(tables.RUN, questions.ONE["run"], id=task.run_id)
    registry = look.one(tables.REGISTRY, questions.REGISTRY)
    if run is None or registry is None:
        raise Corrupt(f"task {task_id} has no run, or the registry no identity; restore a backup")
    live = look.one(tables.ATTEMPT, questions.LIVE, task_id=task_id)
    last = look.one(tables.ATTEMPT, questions.LAST, task_id=task_id, most=1)
    waits = look.all(tables.WAIT, questions.OPEN_WAITS, task_id=task_id)
    commands = look.all(tables.COMMAND, questions.OPEN_OF_TASK, task_id=task_id)
    return Snapshot(
        registry=registry,
        run=run,
        task=task,
        conversation=look.one(tables.CONVERSATION, questions.HOLDER, task_id=task_id),
        live=live,
        last=last,
        live_command=look.one(tables.COMMAND, questions.SENT, attempt_id=live.id, most=1) if live else None,
        commands=commands,
        waits=waits,
        wakes=look.all(tables.WAKE, questions.PENDING_WAKES, task_id=task_id),
        messages=look.all(tables.MESSAGE, questions.UNDELIVERED, task_id=task_id, most=MESSAGES),
        samples=look.all(tables.SAMPLE, questions.SAMPLES, task_id=task_id, most=SAMPLES),
        sightings=look.all(tables.SIGHTING, questions.SIGHTINGS, task_id=task_id, most=SIGHTINGS),
        checks=look.all(
            tables.COMMAND,
            questions.SIDE,
            live=live.id if live else None,
            last=last.id if last else None,
            most=SIDE_COMMANDS,
        ),
        slots_used=int(look.cells(questions.SLOTS, most=slots)[0][0]),
        slots=slots,
        others=_others(look, waits),
        line=in_line(look, LINE) if task.state is TaskState.PENDING else (),
        permissions=look.all(tables.PERMISSION, questions.OPEN_PERMISSIONS, task_id=task_id, most=PERMISSIONS),
        limits=look.all(tables.LIMIT, questions.OPEN_LIMITS, most=LIMITS),
        released=look.one(tables.COMMAND, questions.RELEASED, attempt_id=last.id, most=1) if last else None,
        children=_children(look, task, waits),
        news=look.all(tables.EVENT, questions.NEWS, run_id=run.id, after=task.informed, most=PAGE)
        if run.coordinator == task.id
        else (),
        spent=_spent(look, run),
        heir=_heir(look, commands),
    )


def in_line(look: Look, most: int) -> tuple[InLine, ...]:
    """Who stands in line for a slot, oldest first."""
    found = []
    for task_id, started, created, look_at, giver, state, claimed in look.cells(questions.LINE, most=most):
        holds = state == TaskState.ACTIVE and claimed is None
        found.append(
            InLine(
                TaskId(task_id),
                None if started is None else at(started),
                at(created),
                None if look_at is None else at(look_at),
                inherits=giver is not None,
                giver=TaskId(giver) if holds else None,
            )
        )
    return tuple(found)


def _children(look: Look, task: Task, waits: tuple[Wait, ...]) -> tuple[Task, ...]:
    """The task's children, where it waits for any."""
    if not any(wait.kind is WaitKind.CHILDREN for wait in waits):
        return ()
    return look.all(tables.TASK, questions.CHILDREN, parent=task.id, most=CHILDREN)


def _heir(look: Look, commands: tuple[Command, ...]) -> Conversation | None:
    """The candidate that an open takeover is meant for, where there is one."""
    for command in commands:
        if command.kind is CommandKind.TAKEOVER and command.conversation_id is not None:
            return look.one(tables.CONVERSATION, questions.ONE["conversation"], id=command.conversation_id)
    return None


def _spent(look: Look, run: Run) -> Spent:
    """What the run's tasks took, where a cap of the run makes it matter; costs are summed per currency."""
    policy = run.policy
    if (policy.run_attempts, policy.run_live, policy.run_tokens, policy.run_cost) == (None, None, None, None):
        return Spent()
    rows = [[int(cell or 0) for cell in cells] for cells in look.cells(questions.SPENT, run_id=run.id)]
    return Spent(
        attempts=sum(row[0] for row in rows),
        live_time=sum((timedelta(microseconds=row[1]) for row in rows), timedelta(0)),
        tokens=sum(row[2] for row in rows),
        cost=max((row[3] for row in rows), default=0),
    )


def _others(look: Look, waits: tuple[Wait, ...]) -> Mapping[TaskId, TaskState]:
    """The states of the tasks that open waits hang on; a task that is not there is left out."""
    found: dict[TaskId, TaskState] = {}
    for wait in waits:
        if wait.kind is WaitKind.TASK and wait.subject is not None:
            for cells in look.cells(questions.STATE, id=wait.subject):
                found[TaskId(wait.subject)] = TaskState(cells[0])
    return found
