"""What an operator does to the evidence of a task and to who holds it: bind tool sessions, mark services, tell what was
seen elsewhere, and pass the lease on.

Changes of our own rows only. Passing the lease to another place is refused while anything of the old one may still
act, and before two looks apart in time have agreed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tenuto.core import arm, reconcile, rungs, signs, tenancy, trust
from tenuto.core.draft import Draft, New
from tenuto.model.change import Commit
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because, Rung
from tenuto.model.evidence import Rank, Sighting
from tenuto.model.fact import FactKind
from tenuto.model.ids import ObservationId, TaskId
from tenuto.model.lifecycle import LeaseState
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import ToolBinding

Outcome = Commit | Because | None

#: How many sessions of tool servers may work for one task, and how many of its jobs may be services.
BINDINGS = 8
SERVICES = 64


def _over(snapshot: Snapshot) -> Because | None:
    task = snapshot.task
    return Because(Rung.TERMINAL, f"the task is {task.state}", "nothing") if task.terminal else None


# -- tool servers


def bind(snapshot: Snapshot, server: str, session: str, by: str, now: datetime, new: New) -> Outcome:
    """Let a session of a tool server count for the task."""
    if because := _over(snapshot):
        return because
    bound = snapshot.task.tools
    made = ToolBinding(server, session)
    if any(binding.subject == made.subject for binding in bound):
        return None
    if len(bound) >= BINDINGS:
        there = {binding.page is not None for binding in bound}
        groups = [group for page, group in ((False, "tool unbind"), (True, "page unwatch")) if page in there]
        change = "; or: ".join(f"tenuto {group} {snapshot.task.id}" for group in groups)
        return Because(Rung.TOOL, f"{BINDINGS} sessions and pages count for it already", change)
    return _bound(snapshot, (*bound, made), f"bound to {made.subject}", by, now, new)


def unbind(
    snapshot: Snapshot, subject: str | None, by: str, now: datetime, new: New, *, pages: bool = False
) -> Outcome:
    """Let a session, or with `pages` a page (all of them, where none is named), not count any more."""
    kept = tuple(
        binding
        for binding in snapshot.task.tools
        if (binding.page is not None) != pages or (subject is not None and binding.subject != subject)
    )
    if kept == snapshot.task.tools:
        return None
    return _bound(
        snapshot, kept, f"not bound to {subject or ('any page' if pages else 'any session')} any more", by, now, new
    )


def mark_service(snapshot: Snapshot, job: str, by: str, now: datetime, new: New, *, unmark: bool = False) -> Outcome:
    """Say that a job is meant to run for ever, or take that back. Holds for every session that the task has."""
    if all(binding.page is not None for binding in snapshot.task.tools):
        return Because(Rung.TOOL, "no session of a tool server works for it", "tenuto tool bind")
    made = []
    for binding in snapshot.task.tools:
        if binding.page is not None:
            made.append(binding)
            continue
        services = [each for each in binding.services if each != job]
        services += [] if unmark else [job]
        if len(services) > SERVICES:
            return Because(Rung.TOOL, f"{SERVICES} jobs are services already", "take one back with --unmark")
        made.append(replace(binding, services=tuple(sorted(services))))
    if tuple(made) == snapshot.task.tools:
        return None
    what = f"job {job} is {'no service any more' if unmark else 'a service'}"
    return _bound(snapshot, tuple(made), what, by, now, new)


def _bound(
    snapshot: Snapshot, tools: tuple[ToolBinding, ...], what: str, by: str, now: datetime, new: New
) -> Commit | None:
    draft = Draft(snapshot, now, new)
    draft.change(tools=tools)
    draft.note(FactKind.TASK_TOOLS, what=what, by=by)
    if not snapshot.task.terminal:
        draft.look_now()
    return draft.commit()


# -- what was seen elsewhere


@dataclass(frozen=True)
class Told:
    """An observation as somebody tells it: whose eyes, of what, when, and names with words."""

    source: str
    subject: str
    seen_at: datetime
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Taken:
    """What became of foreign observations: the commit (None: nothing was new), and how many were known already."""

    commit: Commit | None
    taken: int
    known: int


def observed(snapshot: Snapshot, told: Sequence[Told], by: str, now: datetime, new: New) -> Taken:
    """Keep foreign observations at rank 5; the same one is kept once."""
    draft = Draft(snapshot, now, new)
    known = {(each.source, each.subject, each.seen_at, each.facts) for each in snapshot.sightings}
    count = 0
    for each in sorted(told, key=lambda one: one.seen_at):
        facts = tuple(sorted(each.facts))
        source = f"{each.source} (by {by})"[: signs.SOURCE]
        if (source, each.subject, each.seen_at, facts) in known:
            continue
        known.add((source, each.subject, each.seen_at, facts))
        identifier, digest = ObservationId(new("observation")), signs.digest_of(signs.edges(facts))
        draft.puts.append(
            Sighting(
                identifier, snapshot.task.id, each.subject, source, int(Rank.REPORTED), each.seen_at, now, digest, facts
            )
        )
        count += 1
    if not count:
        return Taken(None, 0, len(told))
    if not snapshot.task.terminal:
        draft.look_now()
    return Taken(draft.commit(), count, len(told) - count)


# -- the lease


def register(
    snapshot: Snapshot, others: Sequence[Conversation], identity: str, executor: str, by: str, now: datetime, new: New
) -> Outcome:
    """Make a place known as a candidate; it holds nothing yet."""
    if because := _over(snapshot):
        return because
    for other in others:
        if other.identity == identity and other.state in (LeaseState.CANDIDATE, LeaseState.ACTIVE):
            return tenancy.refusal(f"{other.id} is that place already, and is {other.state}", "use it")
    draft = Draft(snapshot, now, new)
    made = tenancy.register(snapshot.task, identity, executor, now, new, snapshot.conversation)
    draft.puts.append(made)
    draft.note(FactKind.CONVERSATION_OPENED, conversation=made.id, by=by)
    return draft.commit()


def claim(snapshot: Snapshot, candidate: Conversation, now: datetime, new: New) -> Outcome:
    """Take the lease that nobody holds, or that this very place held until it ran out."""
    tenure = tenancy.claim(snapshot.task, candidate, snapshot.conversation, snapshot.run.policy, now)
    return tenure if isinstance(tenure, Because) else _tenure(snapshot, tenure, now, new)


def _tenure(snapshot: Snapshot, tenure: tenancy.Tenure, now: datetime, new: New) -> Commit | None:
    draft = Draft(snapshot, now, new)
    draft.puts += tenure.conversations
    draft.change(lease_number=tenure.task.lease_number)
    if len(tenure.conversations) > 1:
        draft.note(FactKind.CONVERSATION_SUPERSEDED, conversation=tenure.conversations[0].id)
    draft.note(FactKind.CONVERSATION_CLAIMED, conversation=tenure.holder.id, lease_number=tenure.holder.lease_number)
    draft.look_now()
    return draft.commit()


def heartbeat(snapshot: Snapshot, lease_number: int, now: datetime, new: New) -> Outcome:
    """Prolong the lease of whoever holds it with this number."""
    holder = snapshot.conversation
    if holder is None:
        return tenancy.refusal("nobody holds the lease", "claim it")
    renewed = tenancy.heartbeat(holder, lease_number, snapshot.run.policy, now)
    if isinstance(renewed, Because):
        return renewed
    draft = Draft(snapshot, now, new)
    draft.puts.append(renewed)
    return draft.commit()


def hand_off(snapshot: Snapshot, to: Conversation, by: str, now: datetime, new: New) -> Outcome:
    """Name the candidate that may take the lease over before it runs out."""
    holder = snapshot.conversation
    if holder is None:
        return tenancy.refusal("nobody holds the lease", "claim it")
    offered = tenancy.offer(holder, to, now)
    if isinstance(offered, Because):
        return offered
    draft = Draft(snapshot, now, new)
    draft.puts.append(offered)
    draft.note(FactKind.CONVERSATION_OFFERED, conversation=holder.id, to=to.id, by=by)
    return draft.commit()


def may_take_over(seen: Seen, now: datetime) -> Because | None:
    """Why the lease may not pass to another place now: something acts, is in doubt, or was looked at once only."""
    flaws = trust.deciding(seen.found.findings)
    if flaws:
        return Because(Rung.EVIDENCE, f"evidence of it cannot be believed: {flaws[0].why}", "mend what is read")
    busy = (
        rungs.terminal(seen, now)
        or rungs.held(seen, now)
        or rungs.unresolved(seen, now)
        or rungs.live(seen, now)
        or rungs.busy(seen, now)
        or rungs.twice(seen, now)
    )
    if busy is not None and busy.rung is Rung.FENCE:
        return replace(busy, change=f"tenuto reconcile {seen.snapshot.task.id}, twice, a few seconds apart")
    return busy


def take_over(seen: Seen, candidate: Conversation, now: datetime, new: New) -> Outcome:
    """Supersede the holder by a candidate, as one revision."""
    if because := may_take_over(seen, now):
        return because
    snapshot = seen.snapshot
    holder = snapshot.conversation
    if holder is None:
        return claim(snapshot, candidate, now, new)
    if holder.id == candidate.id:
        return tenancy.refusal("it holds the lease already", "a heartbeat prolongs it")
    tenure = tenancy.take_over(snapshot.task, candidate, holder, snapshot.run.policy, now)
    if isinstance(tenure, Because):
        return tenure
    written = _tenure(snapshot, tenure, now, new)
    return replace(written, valid_until=arm.sendable_until(seen, now)) if written is not None else None


def abandon(snapshot: Snapshot, given: Conversation, by: str, now: datetime, new: New) -> Outcome:
    """Give up a place: a candidate, or the holder of the lease. The task goes on without it."""
    if given.state not in (LeaseState.CANDIDATE, LeaseState.ACTIVE):
        return None
    if snapshot.live is not None and snapshot.live.conversation_id == given.id:
        return Because(Rung.LIVE, f"its turn {snapshot.live.number} is under way there", "the end of the turn")
    draft = Draft(snapshot, now, new)
    draft.puts.append(tenancy.end(given, now, abandoned=True))
    draft.note(FactKind.CONVERSATION_ENDED, conversation=given.id, lease_number=given.lease_number, by=by)
    if not snapshot.task.terminal:
        draft.look_now()
    return draft.commit()


def outside_fence(seen: Seen) -> str:
    """What fences the old place where it works: a tool server's own run, or our lease alone."""
    runs = [session.run for session in seen.found.tools if session.run is not None]
    if runs:
        return f"the tool server's own run {runs[0]}: take it over there too"
    if seen.found.tools:
        return "our lease alone: this tool server lets any client go on with a session"
    return "our lease alone"


def fence_of(seen: Seen) -> tuple[str, tuple[str, ...]]:
    """The fence of a look, and its members."""
    return reconcile.digest_of(seen.found.members), seen.found.members


def duplicates(given: Sequence[TaskId]) -> tuple[TaskId, ...]:
    """The tasks that are named more than once."""
    return tuple(sorted({each for each in given if list(given).count(each) > 1}))
