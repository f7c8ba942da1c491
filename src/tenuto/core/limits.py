"""Who waits for which usage limit, and until when.

A limit holds every task of its account and model. Where the program said when it resets, turns are tried again a little
later, each task at a moment of its own; where it did not say, the ladder of the policy is climbed, and the task that
met the limit goes first: its own next turn shows whether the limit stands. No turn is made for the sake of finding out.
Nothing here reads a clock or a zone: both are arguments.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tenuto.core import wake
from tenuto.core.draft import Draft
from tenuto.model.evidence import Hindered
from tenuto.model.fact import FactKind
from tenuto.model.ids import LimitId
from tenuto.model.limit import UsageLimit
from tenuto.model.policy import Policy
from tenuto.model.reconciliation import CameTrue, Finding, LimitMoved
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Standing, Task, Wait, WaitKind

#: What a limit is called that the service gave no name.
UNNAMED = "usage"


def applies(limit: UsageLimit, account: str | None, model: str | None) -> bool:
    """Whether a task of this account and model waits for it; a model that is not known yet may be the limited one."""
    if account is None or limit.account != account or limit.closed_at is not None:
        return False
    return limit.model is None or model is None or limit.model in model.lower()


def own_moment(limit: UsageLimit, task: Task, policy: Policy) -> datetime:
    """When this task goes on after the limit: the same whenever it is asked, and another for every task."""
    spread = wake.jitter(task.id, limit.met, policy.limit_jitter)
    if limit.resets_at is None and limit.met_by != task.id:
        return limit.until + policy.limit_lead + spread
    return limit.until + spread


def holding(snapshot: Snapshot, account: str | None, now: datetime) -> UsageLimit | None:
    """The limit that holds this task now: of several the one it waits for longest."""
    task, policy = snapshot.task, snapshot.run.policy
    held = [
        limit
        for limit in snapshot.limits
        if applies(limit, account or task.account, task.model) and own_moment(limit, task, policy) > now
    ]
    return max(held, key=lambda limit: own_moment(limit, task, policy), default=None)


def sentence(limit: UsageLimit) -> str:
    """A limit for a person: whose, which, and what the program said."""
    of = f" of {limit.model} models" if limit.model is not None else ""
    again = f", met {limit.met} times in a row" if limit.met > 1 else ""
    when = (
        f"it resets at {limit.resets_at.isoformat(timespec='minutes')}"
        if limit.resets_at is not None
        else "it does not say when it resets"
    )
    return f"the {limit.name} limit{of} of {limit.account}{again}; {when} ({limit.text})"


def of_wait(snapshot: Snapshot, wait: Wait, now: datetime) -> tuple[Finding, ...]:
    """Whether a wait for a limit is over, or the limit has moved meanwhile; it is read anew at every look."""
    limit = next((row for row in snapshot.limits if row.id == wait.subject), None)
    if limit is None:
        if wait.subject is None and (wait.until is None or wait.until > now):
            return ()
        return (CameTrue(wait, "the limit is over"),)
    moment = own_moment(limit, snapshot.task, snapshot.run.policy)
    if moment <= now:
        return (CameTrue(wait, "the limit has reset" if limit.resets_at is not None else "it is time to try again"),)
    return (LimitMoved(wait, moment, sentence(limit)),) if moment != wait.until else ()


def met(draft: Draft, account: str, hindered: Hindered, since: datetime | None) -> UsageLimit:
    """A turn that began at `since` met a limit: the account's row is made, or moved, and this task waits for it.

    A reset is believed that lies after that beginning, though it may have passed by now; an older one says nothing.
    """
    policy, now, name = draft.before.run.policy, draft.now, hindered.name or UNNAMED
    known = next((row for row in draft.snapshot.limits if (row.account, row.name) == (account, name)), None)
    times = known.met + 1 if known is not None else 1
    resets = hindered.resets_at
    if resets is not None and resets <= (since or now):
        resets = None
    if resets is not None:
        until = resets + policy.limit_buffer
    else:
        until = now + policy.limit_unknown[min(times, len(policy.limit_unknown)) - 1]
    if known is None:
        row = UsageLimit(
            id=LimitId(draft.new("limit")),
            revision=1,
            account=account,
            name=name,
            text=hindered.text[:500],
            first_met_at=now,
            met_at=now,
            met_by=draft.task.id,
            met=1,
            until=until,
            model=hindered.model,
            resets_at=resets,
        )
    else:
        row = replace(
            known,
            revision=known.revision + 1,
            text=hindered.text[:500],
            met_at=now,
            met_by=draft.task.id,
            met=times,
            until=until,
            model=hindered.model,
            resets_at=resets,
        )
    _put(draft, row)
    draft.note(FactKind.LIMIT_MET, limit=row.id, account=account, name=name, until=row.until.isoformat(), met=times)
    moment = own_moment(row, draft.task, policy)
    for wait in draft.snapshot.waits:
        if wait.kind is WaitKind.LIMIT:
            draft.close_wait(wait, "another limit was met")
    draft.wait(WaitKind.LIMIT, sentence(row)[:2000], subject=row.id, until=moment)
    return row


def went_through(draft: Draft, account: str | None, since: datetime | None) -> None:
    """A turn that began after the limits of its account and model were met has gone through: they stand no more."""
    task = draft.task
    for limit in draft.snapshot.limits:
        if since is not None and applies(limit, account or task.account, task.model) and limit.met_at < since:
            _put(draft, lifted(limit, "a turn has gone through", draft.now))
            draft.note(FactKind.LIMIT_OVER, limit=limit.id, account=limit.account, by="a turn has gone through")


def lifted(limit: UsageLimit, by: str, now: datetime) -> UsageLimit:
    """The row of a limit that stands no more."""
    return replace(limit, revision=limit.revision + 1, closed_at=now, closed_by=by)


def _put(draft: Draft, row: UsageLimit) -> None:
    draft.puts.append(row)
    others = tuple(limit for limit in draft.snapshot.limits if limit.id != row.id)
    draft.snapshot = replace(draft.snapshot, limits=others if row.closed_at is not None else (*others, row))


def quiet_until(snapshot: Snapshot, ends: datetime | None, now: datetime) -> datetime | None:
    """Until when a task that a limit stopped is left alone, of quiet hours that end then; None where it need not be."""
    held = snapshot.task.standing is Standing.HINDERED
    return ends if ends is not None and held and now < ends else None
