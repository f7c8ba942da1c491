"""What every verb of the table is made of: bounded types of parameters, the row of the table, and who is meant.

The verbs themselves stand in `verbs` and in the modules it gathers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from tenuto.engine.desk import Caller, Desk
from tenuto.model.faults import Mistake, NotAllowed
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role
from tenuto.surfaces.routes import ROUTES, Route

KIB = 1024
PAGE = 1000
DIGITS = 18


def no_nul(text: str) -> str:
    """A validator: the text, if no NUL stands in it."""
    if "\x00" in text:
        raise ValueError("must not hold a NUL character")
    return text


def _after(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Name = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z-]{4,40}$")]
Line = Annotated[str, StringConstraints(max_length=8 * KIB), AfterValidator(no_nul)]
Said = Annotated[str, StringConstraints(min_length=1, max_length=64 * KIB), AfterValidator(no_nul)]
Objective = Annotated[str, StringConstraints(min_length=1, max_length=256 * KIB), AfterValidator(no_nul)]
Title = Annotated[str, StringConstraints(max_length=200), AfterValidator(no_nul)]
Argument = Annotated[str, StringConstraints(max_length=32 * KIB), AfterValidator(no_nul)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4 * KIB), AfterValidator(no_nul)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(no_nul)]
Instant = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Number = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Known = StringConstraints(pattern=rf"^([0-9]{{1,{DIGITS}}}-)?[0-9]{{1,{DIGITS}}}$")
After = Annotated[str, BeforeValidator(_after), Known]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Params(BaseModel):
    """Parameters of a verb: nothing unknown, everything bounded."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Nothing(Params):
    """A verb that takes nothing."""


class OneRun(Params):
    """A run, by its identifier or a part of it."""

    run: Name


class OneTask(Params):
    """A task, by its identifier or a part of it; a run where the verb takes runs."""

    task: Name


class OneCommand(Params):
    """A command, by its identifier or a part of it."""

    command: Name


Answer = dict[str, Any]
P = TypeVar("P", bound=Params)
Handler = Callable[[Desk, Caller, P, str | None], Awaitable[Answer]]


def own(desk: Desk, caller: Caller, given: str) -> TaskId:
    """The task that is meant, if the caller may use verbs of it."""
    if caller.role is not Role.OPERATOR:
        mine = str(caller.task_id or "")
        bare = given.strip().lower().removeprefix("t-")
        if len(bare) < 4 or not (mine.removeprefix("t-").startswith(bare) or mine.endswith(bare)):
            raise NotAllowed("this token opens one task only", field="task")
        given = mine
    task_id = desk.task_id(given)
    caller.may(task_id)
    return task_id


def after_of(given: str) -> int:
    """The number in `n` or `epoch-n`."""
    return int(given.rpartition("-")[2])


def moment(given: str | None, field: str) -> datetime | None:
    """An instant with its offset; raises Mistake for anything else."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
        if at.tzinfo is None:
            raise Mistake(f"{field} needs an offset, as in 2026-03-01T12:00:00Z", field=field)
        at.astimezone()
    except (ValueError, OverflowError):
        raise Mistake(f"{field} is no instant; write it as 2026-03-01T12:00:00Z", field=field) from None
    return at


@dataclass(frozen=True)
class Verb:
    """One verb: its name, what it takes, who may use it, and what carries it out.

    `spooled` verbs may be left in the spool by an agent while no supervisor listens.
    """

    name: str
    summary: str
    params: type[Params]
    act: Callable[[Desk, Caller, Any, str | None], Awaitable[Answer]]
    roles: frozenset[Role] = frozenset({Role.OPERATOR})
    spooled: bool = False

    @property
    def route(self) -> Route:
        """Where it is found over HTTP."""
        return ROUTES[self.name]

    @property
    def mutates(self) -> bool:
        """Whether it may change something."""
        return not self.route.reads
