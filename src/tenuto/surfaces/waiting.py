"""The verbs of what agents' programs wait for, as rows of the table: usage limits, and leave that was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenuto.engine.calling import Caller
from tenuto.engine.desk import Desk
from tenuto.engine.limiting import Standing
from tenuto.model.permission import Permission
from tenuto.surfaces import present
from tenuto.surfaces.parameters import Answer, Name, OneTask, Params, Verb


class Limits(Params):
    """Which limits: those that stand, or `all` of them."""

    all: bool = False


class OneLimit(Params):
    """A usage limit, by its identifier or a part of it."""

    limit: Name


def _limit(one: Standing) -> dict[str, Any]:
    row = one.limit
    return {
        "id": row.id,
        "account": row.account,
        "model": row.model,
        "name": row.name,
        "said": row.text,
        "text": one.sentence,
        "met": row.met,
        "met_at": present.instant(row.met_at),
        "first_met_at": present.instant(row.first_met_at),
        "resets_at": present.instant(row.resets_at),
        "until": present.instant(row.until),
        "closed_at": present.instant(row.closed_at),
        "closed_by": row.closed_by,
        "waiting": [{"task": task, "until": until} for task, until in one.waiting],
    }


def _permission(row: Permission) -> dict[str, Any]:
    return {
        "id": row.id,
        "task": row.task_id,
        "attempt": row.attempt_id,
        "wait": row.wait_id,
        "tool": row.tool,
        "what": row.what,
        "fingerprint": row.fingerprint,
        "asked_at": present.instant(row.asked_at),
        "verdict": row.verdict.value if row.verdict is not None else None,
        "answered_by": row.answered_by,
        "answered_at": present.instant(row.answered_at),
        "parked_at": present.instant(row.parked_at),
        "told_at": present.instant(row.told_at),
        "closed_at": present.instant(row.closed_at),
        "outcome": row.outcome,
    }


async def _limits(desk: Desk, caller: Caller, params: Limits, key: str | None) -> Answer:
    return {"limits": [_limit(one) for one in desk.limiting.listed(every=params.all)]}


async def _lift(desk: Desk, caller: Caller, params: OneLimit, key: str | None) -> Answer:
    return present.done("limit.lift", await desk.lift_limit(caller, params.limit, key))


async def _asked(desk: Desk, caller: Caller, params: OneTask, key: str | None) -> Answer:
    return {"permissions": [_permission(row) for row in desk.permitting.asked(desk.task_id(params.task))]}


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("limit.list", "List the usage limits that stand, and who waits for them", Limits, _limits),
        Verb("limit.lift", "Say that a usage limit is over; its tasks go on", OneLimit, _lift),
        Verb("permission.list", "List what a task's programs asked leave for, newest first", OneTask, _asked),
    )
}
