"""Answering what an agent's program asks leave for.

The question that is answered is named or the only one; an answer to one that is over is refused with the reason, so
that a late word never lands on a newer question. Words alone are no answer to a question of leave: somebody has to say
yes or no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from tenuto.core import control, permission
from tenuto.engine.calling import Caller, Done
from tenuto.model.faults import Mistake, Refused
from tenuto.model.ids import TaskId, WaitId
from tenuto.model.permission import Permission, Verdict
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Wait
from tenuto.ports import Ledger, Minter

LISTED = 500
CHOICES = "--allow, --allow-for-task or --deny"

One = Callable[..., Awaitable[Done]]


class Replay(Protocol):
    """What an earlier call with this key came to."""

    def __call__(self, caller: Caller, key: str | None, verb: str, body: object) -> Done | None: ...


class Permitting:
    """Finds the question that is meant and has it answered; how a verb is carried out is the desk's."""

    def __init__(self, ledger: Ledger, minter: Minter, one: One, replay: Replay) -> None:
        self._ledger = ledger
        self._mint = minter
        self._one = one
        self._replay = replay

    def asked(self, task_id: TaskId) -> tuple[Permission, ...]:
        """What a task's programs asked leave for, newest first."""
        return self._ledger.permissions(task_id, LISTED)

    async def answer(
        self, caller: Caller, task_id: TaskId, words: str, verdict: Verdict | None, wait: str | None, key: str | None
    ) -> Done | None:
        """Answer a question of leave; None where another question is meant, which is no matter of this module."""
        rows = {row.wait_id: row for row in self.asked(task_id) if row.wait_id is not None}
        waits = [one for one in self._ledger.waits(LISTED, task_id=task_id) if wait is None or one.id == wait]
        mine = [one for one in waits if one.id in rows]
        if verdict is None:
            if mine and len(mine) == len(waits):
                raise Mistake(f"it asks for leave ({mine[0].question[:200]}): say {CHOICES}", field="verdict")
            return None
        verb = f"answer {verdict} {words}"
        if len(mine) == 1:
            act = self._act(mine[0], verdict, words, caller.name)
            return await self._one(caller, verb, task_id, key, act)
        if (replay := self._replay(caller, key, verb, task_id)) is not None:
            return replay
        if mine:
            names = ", ".join(f"{one.id} ({one.question[:60]})" for one in mine[:5])
            raise Mistake(f"it asks leave for several things; name one with --wait: {names}", field="wait")
        raise Refused(self._over(rows, wait), field="wait")

    def _act(self, wait: Wait, verdict: Verdict, words: str, by: str) -> Callable[..., control.Outcome]:
        def act(seen: Snapshot, now: object) -> control.Outcome:
            if all(one.id != wait.id for one in seen.waits):
                raise Refused("that question was settled meanwhile", field="wait")
            return permission.answer(seen, wait, verdict, words, by, now, self._mint.new)  # type: ignore[arg-type]

        return act

    def _over(self, rows: Mapping[WaitId, Permission], wait: str | None) -> str:
        """Why there is nothing to be answered."""
        row = rows.get(WaitId(wait)) if wait is not None else next(iter(rows.values()), None)
        if row is None:
            return "the task has asked leave for nothing that waits for an answer"
        if row.verdict is not None and row.answered_by is not None:
            return f"that question was answered already ({row.verdict.replace('_', ' ')}, by {row.answered_by})"
        return f"that question is over: {row.outcome}. What it asked for was not done by it: {row.what[:200]}"
