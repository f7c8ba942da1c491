"""Who may act for a task now: the lease protocol.

A conversation registers as a candidate, claims the lease when nobody holds it, and from then on is known by its lease
number; a later number fences it. An expired lease is never revived by a heartbeat, only by a new claim with a new
number. Ending a lease is not ending a task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Rung
from tenuto.model.ids import ConversationId
from tenuto.model.lifecycle import LEASE, LeaseEvent, LeaseState
from tenuto.model.policy import Policy
from tenuto.model.work import Task

New = Callable[[str], str]

#: A clock may be set back by this much without being taken for one that went back.
SLIP = timedelta(seconds=5)


@dataclass(frozen=True)
class Tenure:
    """What a step of the protocol made of the rows: the task and every conversation that changed."""

    task: Task
    conversations: tuple[Conversation, ...]

    @property
    def holder(self) -> Conversation:
        """The conversation that holds the lease after the step."""
        return self.conversations[-1]


def refusal(sentence: str, change: str) -> Because:
    return Because(Rung.LEASE, sentence, change)


def register(
    task: Task, identity: str, executor: str, now: datetime, new: New, parent: Conversation | None = None
) -> Conversation:
    """A candidate: known, and holding nothing."""
    identifier = ConversationId(new("conversation"))
    return Conversation(
        id=identifier,
        revision=1,
        task_id=task.id,
        identity=identity,
        executor=executor,
        state=LEASE.start,
        lease_number=None,
        expires_at=None,
        opened_at=now,
        parent=parent.id if parent else None,
        root=(parent.root or parent.id) if parent else identifier,
    )


def expired(holder: Conversation, now: datetime) -> bool:
    """Whether a lease has run out."""
    return holder.expires_at is not None and holder.expires_at <= now


def rolled_back(holder: Conversation, policy: Policy, now: datetime) -> bool:
    """Whether the clock stands before the holder was opened or last renewed: its expiry says nothing then."""
    known = holder.opened_at
    if holder.expires_at is not None:
        known = max(known, holder.expires_at - policy.lease_life)
    return now < known - SLIP


def claim(
    task: Task, candidate: Conversation, holder: Conversation | None, policy: Policy, now: datetime
) -> Tenure | Because:
    """Take the lease when nobody holds it; the same conversation may claim again after expiry, with a new number."""
    if task.terminal:
        return refusal(f"the task is {task.state}", "nothing")
    if candidate.task_id != task.id:
        return refusal("that conversation was opened for another task", "open one for this task")
    if rolled_back(candidate, policy, now):
        return refusal("the clock stands before what is known of that conversation", "mend the clock, or open another")
    again = holder is not None and holder.id == candidate.id
    if holder is not None and not again:
        return refusal("another conversation holds the lease", "hand it over, or wait until it runs out")
    if again and holder is not None and not expired(holder, now):
        return refusal("it holds the lease already", "a heartbeat prolongs it")
    event = LeaseEvent.CLAIMED_AGAIN if again else LeaseEvent.CLAIMED
    number = task.lease_number + 1
    holding = replace(
        candidate,
        revision=candidate.revision + 1,
        state=LEASE.after(candidate.state, event),
        lease_number=number,
        expires_at=now + policy.lease_life,
    )
    return Tenure(replace(task, lease_number=number), (holding,))


def heartbeat(holder: Conversation, lease_number: int, policy: Policy, now: datetime) -> Conversation | Because:
    """Prolong a lease that has not run out; late and expired holders are refused."""
    if holder.state is not LeaseState.ACTIVE or holder.lease_number != lease_number:
        return refusal("a later lease has been given", "this conversation may not act for the task any more")
    if expired(holder, now):
        return refusal("the lease has run out", "claim it again")
    if rolled_back(holder, policy, now):
        return refusal("the clock stands before what is known of that conversation", "mend the clock, or open another")
    return replace(holder, revision=holder.revision + 1, expires_at=now + policy.lease_life)


def offer(holder: Conversation, to: Conversation, now: datetime) -> Conversation | Because:
    """Name the conversation that may take the lease over before it runs out."""
    if holder.state is not LeaseState.ACTIVE:
        return refusal("only the holder of the lease can hand it over", "nothing")
    if to.task_id != holder.task_id or to.state is not LeaseState.CANDIDATE:
        return refusal("a hand-over goes to a candidate of the same task", "register it first")
    return replace(holder, revision=holder.revision + 1, handoff_to=to.id)


def take_over(
    task: Task,
    candidate: Conversation,
    holder: Conversation,
    policy: Policy,
    now: datetime,
    *,
    proven_over: bool = False,
) -> Tenure | Because:
    """Supersede and claim in one step: for the hand-over's target, after expiry, or once the old place is over."""
    if task.terminal:
        return refusal(f"the task is {task.state}", "nothing")
    if holder.handoff_to != candidate.id and not expired(holder, now) and not proven_over:
        return refusal("the lease is held and was not handed to it", "wait until it runs out, or hand it over")
    old = replace(
        holder,
        revision=holder.revision + 1,
        state=LEASE.after(holder.state, LeaseEvent.SUPERSEDED),
        ended_at=now,
    )
    claimed = claim(task, candidate, None, policy, now)
    if isinstance(claimed, Because):
        return claimed
    return Tenure(claimed.task, (old, *claimed.conversations))


def end(holder: Conversation, now: datetime, *, abandoned: bool = False) -> Conversation:
    """Give the lease up; the task goes on without it."""
    event = LeaseEvent.ABANDONED if abandoned else LeaseEvent.ENDED
    return replace(holder, revision=holder.revision + 1, state=LEASE.after(holder.state, event), ended_at=now)


def late(task: Task, lease_number: int | None) -> bool:
    """Whether a word comes from a conversation that a later lease has fenced."""
    return task.terminal or lease_number != task.lease_number
