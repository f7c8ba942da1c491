"""Who uses a verb, and what a verb came to: what the desk and its parts have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tenuto.model.decision import Because
from tenuto.model.fact import Scalar
from tenuto.model.faults import NotAllowed
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role


@dataclass(frozen=True)
class Caller:
    """Who speaks: the operator, or an agent in a turn of one task under one lease."""

    role: Role
    name: str
    task_id: TaskId | None = None
    lease_number: int | None = None

    def may(self, task_id: TaskId) -> None:
        """Raises NotAllowed unless the caller may use verbs of this task."""
        if self.role in (Role.AGENT, Role.COORDINATOR) and self.task_id != task_id:
            raise NotAllowed("this token opens one task only", field="task")
        if self.role is Role.EXECUTOR:
            raise NotAllowed("an executor's token opens no verbs")

    def must_operate(self) -> None:
        if self.role is not Role.OPERATOR:
            raise NotAllowed("only the operator may do this")


@dataclass(frozen=True)
class Effect:
    """What a verb did to one task: `because` is a refusal's reason, None when it was done or not needed."""

    task_id: TaskId
    changed: bool
    because: Because | None = None


@dataclass(frozen=True)
class Done:
    """What a verb did: named results, whether it was a replay of an earlier call, and the effect on each task."""

    result: Mapping[str, Scalar]
    replayed: bool = False
    effects: tuple[Effect, ...] = ()
