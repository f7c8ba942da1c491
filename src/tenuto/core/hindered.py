"""A turn whose program could not go on: what follows, and what it does not cost.

A limit, a service that does not answer, a full session and an account that is not let in are no fault of the task: the
turn is counted neither against its budget nor as one without progress, and it is never sent again. The next turn goes
on in the same session, or in a fresh one where nothing more fits. What comes again too often is a person's to judge.
"""

from __future__ import annotations

from typing import Any, assert_never

from tenuto.core import limits, wake
from tenuto.core.draft import Draft
from tenuto.model.command import Attempt, AttemptOutcome
from tenuto.model.evidence import Hindered, Hindrance
from tenuto.model.fact import FactKind
from tenuto.model.reconciliation import Undone
from tenuto.model.work import Standing, WaitKind, WakeKind

#: What a wait for a service to answer again is called by.
OVERLOAD = "overload"


def follow(draft: Draft, held: Hindered, account: str | None, **facts: Any) -> Attempt | None:
    """End the live turn as hindered, and say what the task waits for."""
    ended = draft.end_attempt(AttemptOutcome.HINDERED, detail=f"{held.by}: {held.text}"[:500], **facts)
    if ended is None:
        return None
    draft.note(FactKind.TASK_HINDERED, by=held.by, text=held.text[:500], attempt=ended.id)
    draft.look_now()
    if draft.task.terminal:
        return ended
    draft.change(attempts=max(draft.task.attempts - 1, 0))
    match held.by:
        case Hindrance.LIMIT:
            _limited(draft, held, account or draft.task.account, ended)
        case Hindrance.OVERLOAD:
            _overloaded(draft, held, ended)
        case Hindrance.CONTEXT:
            fresh(draft, f"its session is full: {held.text}", ended)
        case Hindrance.LOGIN:
            draft.change(standing=Standing.HINDERED, standing_reason=held.text[:500])
            question = f"its program is not let in: {held.text}. Log it in, then answer"
            draft.wait(WaitKind.HUMAN, question[:2000], attempt=ended.id)
        case _ as never:
            assert_never(never)
    return ended


def _limited(draft: Draft, held: Hindered, account: str | None, ended: Attempt) -> None:
    policy = draft.before.run.policy
    draft.change(standing=Standing.HINDERED, standing_reason=held.text[:500])
    row = limits.met(draft, account or f"{draft.task.agent.adapter}", held, ended.live_at)
    if row.met >= policy.limit_tries and row.met % policy.limit_tries == 0:
        question = f"{limits.sentence(row)}. It is waited for again and again; shall it go on waiting?"
        draft.wait(WaitKind.HUMAN, question[:2000], attempt=ended.id)


def _overloaded(draft: Draft, held: Hindered, ended: Attempt) -> None:
    policy, times = draft.before.run.policy, draft.task.overloads + 1
    draft.change(standing=Standing.HINDERED, standing_reason=held.text[:500], overloads=times)
    if times % policy.overload_tries == 0:
        question = f"its service has not answered for {times} turns in a row ({held.text}). Shall it go on?"
        draft.wait(WaitKind.HUMAN, question[:2000], attempt=ended.id)
        return
    step = policy.overload_retry[min(times, len(policy.overload_retry)) - 1]
    until = draft.now + step + wake.jitter(draft.task.id, times, step / 4)
    question = f"its service did not answer ({held.text}); it is tried again by itself"
    draft.wait(WaitKind.TIME, question[:2000], subject=OVERLOAD, until=until, attempt=ended.id)


def fresh(draft: Draft, why: str, attempt: Attempt | None) -> None:
    """Nothing more fits into its session, or it is gone: a fresh one takes the task over, where the policy lets it."""
    policy, times = draft.before.run.policy, draft.task.fresh_sessions + 1
    talk = draft.snapshot.conversation
    draft.change(fresh_sessions=times, session_over=talk.id if talk is not None else None)
    if draft.task.standing is not Standing.CUT_SHORT:
        draft.change(standing=Standing.HINDERED, standing_reason=why[:500])
    if times > policy.fresh_sessions:
        question = f"{why}. Shall a fresh session take it over? ({times - 1} have done so without a turn in between)"
        draft.wait(WaitKind.HUMAN, question[:2000], attempt=attempt.id if attempt is not None else None)
        return
    draft.wake(WakeKind.EVENT, "a fresh session takes it over", draft.now)


def session_gone(finding: Undone) -> bool:
    """Whether a turn did not begin because the program does not know the session of before any more."""
    return finding.reason.startswith(GONE)


GONE = "session gone: "
"""How an executor begins the reason of a turn that did not begin because its session is not there any more."""


def went_well(draft: Draft, account: str | None, since: Attempt) -> None:
    """A turn came to its own end: what hindered the ones before it is over."""
    if draft.task.overloads or draft.task.fresh_sessions:
        draft.change(overloads=0, fresh_sessions=0)
    limits.went_through(draft, account, since.live_at)
