"""Usage limits as an operator sees them: which stand, who waits, and lifting one that is known to be over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tenuto.core import limits
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import NotFound
from tenuto.model.ids import TaskId
from tenuto.model.limit import UsageLimit
from tenuto.model.work import WaitKind
from tenuto.ports import Clock, Ledger

LISTED = 500


@dataclass(frozen=True)
class Standing:
    """One limit, the sentence about it, and the tasks that wait for it with their moments."""

    limit: UsageLimit
    sentence: str
    waiting: tuple[tuple[TaskId, str | None], ...]


class Limiting:
    """Reads limits, and makes the commit that lifts one."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def listed(self, *, every: bool = False) -> Sequence[Standing]:
        """The limits that stand, oldest first; with `every` those that are over too, newest first."""
        waits = [wait for wait in self._ledger.waits(LISTED) if wait.kind is WaitKind.LIMIT]
        found = []
        for row in self._ledger.limits(LISTED, only_open=not every):
            waiting = tuple(
                (wait.task_id, wait.until.isoformat() if wait.until is not None else None)
                for wait in waits
                if wait.subject == row.id
            )
            found.append(Standing(row, limits.sentence(row), waiting))
        return found

    def lift(self, given: str, by: str) -> tuple[Commit | None, Mapping[str, Scalar], tuple[TaskId, ...]]:
        """The commit that lifts a limit, its answer, whom to ring; no commit where it is lifted. Raises NotFound."""
        row = next((one for one in self._ledger.limits(LISTED, only_open=False) if one.id == given), None)
        if row is None:
            raise NotFound(f"there is no limit {given[:80]}", field="limit")
        told: dict[str, Scalar] = {"limit": row.id, "account": row.account, "name": row.name}
        if row.closed_at is not None:
            return None, told, ()
        over = limits.lifted(row, by, self._clock.now())
        waiting = tuple(
            wait.task_id
            for wait in self._ledger.waits(LISTED)
            if wait.kind is WaitKind.LIMIT and wait.subject == row.id
        )
        fact = Fact(FactKind.LIMIT_OVER, None, None, {"limit": row.id, "account": row.account, "by": by})
        return Commit(puts=(replace(over),), facts=(fact,)), told, waiting
