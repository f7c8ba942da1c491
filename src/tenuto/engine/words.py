"""Who may say what to whom, and by which policy; and who may know of whose task.

The operator reaches every task. Whoever speaks from within a turn reaches the tasks of its own run and nobody else's,
and does not learn what else there is: a task of another run and no task at all are refused in the same words. A
coordinator may know how the tasks of its run stand, for as long as it is its run's coordinator.
"""

from __future__ import annotations

from collections.abc import Callable

from tenuto.model.faults import Mistake, NotAllowed, NotFound
from tenuto.model.ids import TaskId
from tenuto.model.message import MessagePolicy, Party
from tenuto.model.snapshot import Role
from tenuto.model.work import Run, Task
from tenuto.ports import Reader

#: How an agent names its run's coordinator without knowing its task.
COORDINATOR = "coordinator"

_PARTIES = {Role.OPERATOR: Party.OPERATOR, Role.COORDINATOR: Party.COORDINATOR, Role.AGENT: Party.AGENT}


def party_of(role: Role) -> Party:
    """Who speaks; raises NotAllowed for a role that has nothing to say."""
    if role not in _PARTIES:
        raise NotAllowed("an executor's token opens no verbs")
    return _PARTIES[role]


def checked(party: Party, policy: MessagePolicy, corrective: str | None, key: str | None) -> None:
    """Raises Mistake or NotAllowed unless words may be said that way."""
    if policy is MessagePolicy.STEER_NOW and key is None:
        raise Mistake("words that are to be delivered now need an idempotency key", field="Idempotency-Key")
    if corrective is None:
        return
    if not corrective.strip():
        raise Mistake("say why waiting would let wrong or conflicting work go on", field="corrective")
    if policy is not MessagePolicy.STEER_NOW:
        raise Mistake("only words that are to be delivered now can be corrective", field="corrective")
    if party not in (Party.OPERATOR, Party.COORDINATOR):
        raise NotAllowed("only the operator and a run's coordinator may call words corrective", field="corrective")


def reached(reader: Reader, role: Role, mine: TaskId | None, given: str, resolve: Callable[[str], TaskId]) -> TaskId:
    """The task that words are meant for; raises NotAllowed where it is out of the speaker's reach."""
    if role is Role.OPERATOR:
        return resolve(given)
    run = _run_of(reader, mine)
    if run is None:
        raise NotAllowed("this token speaks for no task", field="task")
    if given.strip().lower() == COORDINATOR:
        if run.coordinator is None:
            raise NotFound("this run has no coordinator", field="task")
        return run.coordinator
    found = _found(reader, given, resolve)
    if found is None or found.run_id != run.id:
        raise NotAllowed("this token reaches the tasks of its own run only", field="task")
    return found.id


def known(reader: Reader, role: Role, mine: TaskId | None, given: str, resolve: Callable[[str], TaskId]) -> TaskId:
    """The task that may be read about; raises NotAllowed for any but one's own, or of the run one coordinates."""
    if role is Role.OPERATOR:
        return resolve(given)
    if mine is not None and _names(mine, given):
        return mine
    run = _run_of(reader, mine)
    if role is Role.COORDINATOR and run is not None and run.coordinator == mine:
        found = _found(reader, given, resolve)
        if found is not None and found.run_id == run.id:
            return found.id
        raise NotAllowed("this token opens the tasks of its own run only", field="task")
    raise NotAllowed("this token opens one task only", field="task")


def coordinated(reader: Reader, role: Role, mine: TaskId | None) -> Run | None:
    """The run that the speaker coordinates now, if any."""
    run = _run_of(reader, mine)
    return run if role is Role.COORDINATOR and run is not None and run.coordinator == mine else None


def _names(mine: TaskId, given: str) -> bool:
    bare = given.strip().lower().removeprefix("t-")
    return len(bare) >= 4 and (mine.removeprefix("t-").startswith(bare) or mine.endswith(bare))


def _run_of(reader: Reader, mine: TaskId | None) -> Run | None:
    task = reader.task(mine) if mine is not None else None
    return reader.run(task.run_id) if task is not None else None


def _found(reader: Reader, given: str, resolve: Callable[[str], TaskId]) -> Task | None:
    try:
        return reader.task(resolve(given))
    except (Mistake, NotFound):
        return None
