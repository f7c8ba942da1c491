"""Writes an intent ahead: what the rows are before the act is made.

One commit arms the command, makes the turn live, spends the budget, takes the holds, consumes the wakes that led to
it and marks the messages that ride along. If that commit does not happen, neither does the act.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tenuto.core import neighbours, outside, pages, progress, settle, tenancy, trust
from tenuto.core.draft import Draft, New, text_of
from tenuto.model.change import Commit, Guard
from tenuto.model.command import Attempt, Command, CommandKind
from tenuto.model.decision import AnswerAsk, Because, Continue, OpenLimitWait, Rung, SteerTurn
from tenuto.model.evidence import Sample, WorkspaceFacts
from tenuto.model.fact import FactKind
from tenuto.model.health import LOUD, Assessment
from tenuto.model.ids import AttemptId, CommandId, MessageId, ReconciliationId, TokenId
from tenuto.model.lifecycle import WAITING_DELIVERY, AttemptState, CommandState, DeliveryEvent, DeliveryState, TaskEvent
from tenuto.model.message import MessageKind, MessagePolicy, Party
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Role, Token
from tenuto.model.work import TextKind, WaitKind, WakeKind

HOST = "host"
"""What carries out programs."""


@dataclass(frozen=True)
class Written:
    """A commit that would arm a command, and that command."""

    commit: Commit
    command: Command
    attempt: Attempt | None


def turn(
    seen: Seen,
    intent: Continue,
    command_id: CommandId,
    prompt: str,
    carried: tuple[MessageId, ...],
    token_digest: str,
    baseline: WorkspaceFacts | None,
    now: datetime,
    new: New,
) -> Written | None:
    """Arm one turn. `prompt` carries the marker of `command_id`; None when the conversation is not there any more."""
    snapshot = seen.snapshot
    talk = snapshot.conversation
    if talk is None or talk.lease_number is None or seen.epoch is None:
        return None
    task, policy = snapshot.task, snapshot.run.policy
    draft = Draft(snapshot, now, new)
    text = text_of(TextKind.PROMPT, prompt, snapshot, now, new)
    number = (snapshot.last.number if snapshot.last else 0) + 1
    attempt = Attempt(
        id=AttemptId(new("attempt")),
        revision=1,
        task_id=task.id,
        number=number,
        reason=intent.reason,
        anyway=intent.anyway,
        idempotency_key=f"{task.id}/{number}",
        cursor_before=task.progress.cursor,
        conversation_id=talk.id,
        lease_number=talk.lease_number,
        state=AttemptState.LIVE,
        scheduled_at=now,
        live_at=now,
    )
    command = Command(
        id=command_id,
        revision=1,
        kind=CommandKind.SEND,
        task_id=task.id,
        attempt_id=attempt.id,
        conversation_id=talk.id,
        executor=talk.executor,
        state=CommandState.ARMED,
        epoch=seen.epoch,
        fence=seen.found.fence,
        scopes=(f"task:{task.id}", f"conversation:{talk.identity}"),
        created_at=now,
        payload=text.id,
        digest=text.digest,
        deadline=now + policy.turn_limit,
        armed_at=now,
        place=seen.place,
    )
    token = Token(
        id=TokenId(new("token")),
        revision=1,
        digest=token_digest,
        role=Role.COORDINATOR if neighbours.coordinates(snapshot) else Role.AGENT,
        task_id=task.id,
        lease_number=talk.lease_number,
        created_at=now,
    )
    draft.puts += [text, attempt, command, token]
    draft.holds += [(scope, command.id) for scope in command.scopes]
    _sample(draft, seen)
    draft.consume_wakes(attempt.id, only_due=True)
    asks_report = False
    for message in snapshot.messages:
        if message.id in carried:
            draft.deliver(message, DeliveryEvent.CARRIED, command.id)
            asks_report = asks_report or message.kind is MessageKind.CHECKPOINT
    left = [m for m in draft.snapshot.messages if m.policy is MessagePolicy.STEER_NOW and m.state in WAITING_DELIVERY]
    if left:  # there was no room for all; the rest is wanted as soon as this turn is over
        by = next((m.sender for m in left if m.party is Party.OPERATOR), None)
        draft.wake(WakeKind.MESSAGE, "words for which the last prompt had no room", now, asked_by=by)
    renewed = tenancy.heartbeat(talk, talk.lease_number, policy, now)
    if isinstance(renewed, Because):
        return None
    draft.puts.append(renewed)
    draft.change(
        attempts=task.attempts + 1,
        progress=progress.baseline(task.progress, baseline),
        active_since_report=timedelta(0) if asks_report else task.active_since_report,
        last_served_at=now,
        waiting_since=None,
        ready_at=None,
        ready_note=None,
        look_at=now + policy.turn_limit + policy.interrupt_grace,
    )
    draft.note(FactKind.ATTEMPT_ARMED, attempt=attempt.id, number=number, reason=intent.reason, anyway=intent.anyway)
    _armed(draft, command)
    return _written(draft, command, attempt, seen)


def steer(
    seen: Seen,
    intent: SteerTurn,
    command_id: CommandId,
    words: str,
    carried: tuple[MessageId, ...],
    now: datetime,
    new: New,
) -> Written | None:
    """Arm the putting of words into the turn under way; None when the turn or its conversation is not there any more.

    The messages are taken by the same commit, so nothing else can carry them until it is known what became of them.
    """
    snapshot = seen.snapshot
    live, talk, sent = snapshot.live, snapshot.conversation, snapshot.live_command
    if live is None or talk is None or sent is None or seen.epoch is None or not carried:
        return None
    draft = Draft(snapshot, now, new)
    text = text_of(TextKind.PROMPT, words, snapshot, now, new)
    side = _side(seen, CommandKind.STEER, command_id, f"steer:{talk.identity}", live.id, now)
    command = replace(side, payload=text.id, digest=text.digest, target=intent.turn, deadline=sent.deadline)
    draft.puts += [text, command]
    draft.holds.append((command.scopes[0], command.id))
    for message in snapshot.messages:
        if message.id in carried:
            draft.deliver(message, DeliveryEvent.CARRIED, command.id)
    draft.change(steered_at=now)
    _armed(draft, command)
    return _written(draft, command, None, seen)


def answer(seen: Seen, intent: AnswerAsk, command_id: CommandId, now: datetime, new: New) -> Written | None:
    """Arm the telling of an answer to the program of the turn under way; None when that turn is not there any more."""
    snapshot = seen.snapshot
    live, sent = snapshot.live, snapshot.live_command
    if live is None or sent is None or seen.epoch is None:
        return None
    draft = Draft(snapshot, now, new)
    side = _side(seen, CommandKind.ANSWER, command_id, f"ask:{intent.permission}", live.id, now)
    command = replace(side, target=intent.request, payload=intent.text)
    draft.puts.append(command)
    draft.holds.append((command.scopes[0], command.id))
    _armed(draft, command)
    return _written(draft, command, None, seen)


def unfit(seen: Seen, message_id: MessageId, why: str, now: datetime, new: New) -> Commit | None:
    """A message that no prompt of this task can hold is given up, and a person is told: it is never cut."""
    draft = Draft(seen.snapshot, now, new)
    for message in seen.snapshot.messages:
        if message.id == message_id:
            draft.deliver(message, DeliveryEvent.DROPPED)
            draft.wait(WaitKind.HUMAN, f"message {message.id} of {message.sender} cannot be delivered: {why}"[:2000])
    return draft.commit()


def check(seen: Seen, now: datetime, new: New, place: str | None = None) -> Written | None:
    """Arm the acceptance program of a standing claim. Where a page carries the turns, the host at `place` runs it."""
    snapshot = seen.snapshot
    if snapshot.task.claim is None or seen.epoch is None:
        return None
    draft = Draft(snapshot, now, new)
    command = _side(
        seen, CommandKind.CHECK, CommandId(new("command")), f"check:{snapshot.task.id}",
        snapshot.last.id if snapshot.last else None, now,
    )  # fmt: skip
    if snapshot.task.agent.in_page:
        command = replace(command, executor=HOST, place=place)  # a page runs no programs
    draft.puts.append(command)
    draft.holds.append((command.scopes[0], command.id))
    policy = snapshot.run.policy
    draft.change(look_at=now + policy.check_limit + policy.interrupt_grace)
    _armed(draft, command)
    return _written(draft, command, None, seen)


def interrupt(seen: Seen, attempt_id: AttemptId, now: datetime, new: New) -> Written | None:
    """Arm the end of a live turn."""
    if seen.epoch is None:
        return None
    draft = Draft(seen.snapshot, now, new)
    command = _side(seen, CommandKind.INTERRUPT, CommandId(new("command")), f"interrupt:{attempt_id}", attempt_id, now)
    draft.puts.append(command)
    draft.holds.append((command.scopes[0], command.id))
    _armed(draft, command)
    return _written(draft, command, None, seen)


def _side(
    seen: Seen, kind: CommandKind, identifier: CommandId, scope: str, attempt: AttemptId | None, now: datetime
) -> Command:
    snapshot = seen.snapshot
    talk = snapshot.conversation
    sent = snapshot.live_command
    if sent is not None and sent.attempt_id == attempt:
        executor, place = sent.executor, sent.place
    else:
        executor, place = talk.executor if talk is not None else HOST, seen.place
    return Command(
        id=identifier,
        revision=1,
        kind=kind,
        task_id=snapshot.task.id,
        attempt_id=attempt,
        conversation_id=talk.id if talk else None,
        executor=executor,
        state=CommandState.ARMED,
        epoch=seen.epoch or 0,
        fence=seen.found.fence,
        scopes=(scope,),
        created_at=now,
        deadline=now + snapshot.run.policy.check_limit,
        armed_at=now,
        place=place,
    )


def policy_until(seen: Seen, now: datetime) -> datetime:
    """How long what was seen may be acted on."""
    return now + seen.snapshot.run.policy.arm_within


def sendable_until(seen: Seen, now: datetime) -> datetime:
    """How long a send, or passing the lease, may be written down on what was seen: pages age sooner than the rest."""
    passed = ((flaw.subject, flaw.flaw) for flaw in trust.deciding(seen.found.findings))
    pages_end = outside.good_until(seen.found.observations, passed, seen.snapshot.run.policy)
    until = policy_until(seen, now)
    return until if pages_end is None else min(until, pages_end)


def _armed(draft: Draft, command: Command) -> None:
    draft.note(FactKind.COMMAND_ARMED, command=command.id, kind=command.kind, epoch=command.epoch)


def written(draft: Draft, command: Command, seen: Seen) -> Written | Because:
    """The commit of a command that is armed elsewhere than here, with its fact and its guards."""
    _armed(draft, command)
    made = _written(draft, command, None, seen)
    return made if made is not None else Because(Rung.EVIDENCE, "there is nothing to be written", "look again")


def _written(draft: Draft, command: Command, attempt: Attempt | None, seen: Seen) -> Written | None:
    """The commit; a hold on everything that was set since the look makes it stale, as a change of the rows does."""
    until = sendable_until if command.kind in (CommandKind.SEND, CommandKind.TAKEOVER) else policy_until
    commit = draft.commit(valid_until=until(seen, draft.now))
    if commit is None:
        return None
    registry = seen.snapshot.registry
    guards = (*commit.guards, Guard("registry", registry.id, registry.revision))
    return Written(replace(commit, guards=guards), command, attempt)


def _sample(draft: Draft, seen: Seen) -> None:
    draft.puts.append(
        Sample(
            id=ReconciliationId(draft.new("reconciliation")),
            task_id=draft.task.id,
            fence=seen.found.fence,
            members=seen.found.members,
            made_at=draft.now,
        )
    )


# -- preparations: changes of our own rows only, no act


def start(seen: Seen, now: datetime, new: New) -> Commit | None:
    """Give the task a slot."""
    draft = Draft(seen.snapshot, now, new)
    draft.move(TaskEvent.STARTED)
    draft.change(started_at=seen.snapshot.task.started_at or now, waiting_since=now, look_at=now, queued_at=None)
    return draft.commit(valid_until=policy_until(seen, now))


def give_slot_back(seen: Seen, now: datetime, new: New, look_at: datetime | None) -> Commit | None:
    """Take the slot from a task that rests; it keeps everything else."""
    draft = Draft(seen.snapshot, now, new)
    draft.move(TaskEvent.SLOT_GIVEN_BACK)
    draft.change(waiting_since=None, look_at=look_at)
    return draft.commit()


def sampled(seen: Seen, now: datetime, new: New) -> Commit | None:
    """Record a reconciliation."""
    draft = Draft(seen.snapshot, now, new)
    _sample(draft, seen)
    draft.note(FactKind.SAMPLE_TAKEN, fence=seen.found.fence)
    draft.look_now()
    return draft.commit()


def cap_wait(seen: Seen, question: str, cap: str, now: datetime, new: New) -> Commit | None:
    """Turn a reached cap into a wait."""
    draft = Draft(seen.snapshot, now, new)
    draft.wait(WaitKind.CAP, question, subject=cap)
    return draft.commit()


def limit_wait(seen: Seen, intent: OpenLimitWait, now: datetime, new: New) -> Commit | None:
    """Turn a limit of the account into a wait of this task."""
    draft = Draft(seen.snapshot, now, new)
    draft.wait(WaitKind.LIMIT, intent.question[:2000], subject=intent.limit, until=intent.until)
    return draft.commit()


def ask(seen: Seen, question: str, now: datetime, new: New) -> Commit | None:
    """Turn what only a person can mend into a wait on a person."""
    draft = Draft(seen.snapshot, now, new)
    draft.wait(WaitKind.HUMAN, question)
    return draft.commit()


def close_ready(seen: Seen, now: datetime, new: New) -> Commit | None:
    """The agent said that its work is ready, and nobody said more: the same claim as any other."""
    draft = Draft(seen.snapshot, now, new)
    note = seen.snapshot.task.ready_note or "completion-ready"
    settle.claim(draft, note, f"ready to be closed since the grace began: {note}", seen.snapshot.live)
    return draft.commit()


#: Reasons whose moment is only another look: it is kept in memory, and written down now and then.
POLLED = frozenset({Rung.SLOT, Rung.DEPENDENCY, Rung.EXECUTOR, Rung.EVIDENCE, Rung.TOOL, Rung.PAGE, Rung.PERMISSION})
#: A look that comes sooner than this is not written for itself.
SOON = timedelta(minutes=2)
#: The moment that is written instead: by then whoever leads looks, should nobody remember.
NET = timedelta(minutes=5)


def netted(
    written: datetime | None, look_at: datetime | None, because: Because | None, now: datetime
) -> datetime | None:
    """The moment to write down for a task that is looked at again and again while nothing happens."""
    if look_at is None or because is None or because.rung not in POLLED or look_at - now > SOON:
        return look_at
    return written if written is not None and look_at <= written <= now + NET else now + NET


def rest(
    seen: Seen,
    look_at: datetime | None,
    because: Because | None,
    now: datetime,
    new: New,
    *,
    in_line: bool = False,
    health: Assessment | None = None,
) -> Commit | None:
    """Write down when to look again, whether it stands in line for a slot, its health, and `because` if it is news."""
    task = seen.snapshot.task
    same = health is None or health == task.health
    if task.look_at == look_at and because is None and (task.queued_at is not None) == in_line and same:
        return None
    draft = Draft(seen.snapshot, now, new)
    if health is not None and not same:
        _judged(draft, task.health, health)
    draft.change(look_at=look_at, queued_at=(task.queued_at or now) if in_line else None)
    if because is not None:
        draft.note(FactKind.RESTED, rung=because.rung, sentence=because.sentence[:500], change=because.change[:500])
    return draft.commit()


def _judged(draft: Draft, before: Assessment | None, after: Assessment) -> None:
    """Keep the health; it is worth telling when something becomes loud, or is not any more."""
    draft.change(health=after)
    loud = (before is not None and before.value in LOUD, after.value in LOUD)
    if any(loud) and (before is None or before.value is not after.value):
        draft.note(FactKind.TASK_HEALTH, health=after.value, confidence=after.confidence, row=after.row, why=after.why)


def open_conversation(seen: Seen, executor: str, now: datetime, new: New) -> Commit | Because | None:
    """Open a fresh conversation that claims the lease, or let the same one claim it again after expiry."""
    snapshot = seen.snapshot
    draft = Draft(snapshot, now, new)
    policy = snapshot.run.policy
    holder = snapshot.conversation
    cut = holder is not None and snapshot.last is not None and snapshot.last.conversation_id == holder.id
    cut = cut and _cut_short(seen) and not snapshot.task.agent.keeps_session
    cut = cut or (holder is not None and snapshot.task.session_over == holder.id)
    if holder is not None and tenancy.expired(holder, now) and not cut and pages.lost(seen) is None:
        tenure = tenancy.claim(snapshot.task, holder, holder, policy, now)
    else:
        place = f"{snapshot.task.agent.adapter}:{snapshot.task.id}/{snapshot.task.lease_number + 1}"
        candidate = tenancy.register(snapshot.task, place, executor, now, new, holder)
        where = holder.place if holder is not None and seen.apart is not None else seen.place
        candidate = replace(candidate, place=where)
        draft.puts.append(candidate)
        draft.note(FactKind.CONVERSATION_OPENED, conversation=candidate.id)
        if holder is None:
            tenure = tenancy.claim(snapshot.task, candidate, None, policy, now)
        else:
            tenure = tenancy.take_over(snapshot.task, candidate, holder, policy, now, proven_over=True)
    if isinstance(tenure, Because):
        return tenure
    draft.puts += tenure.conversations
    draft.change(lease_number=tenure.task.lease_number, look_at=now)
    if len(tenure.conversations) > 1:
        draft.note(FactKind.CONVERSATION_SUPERSEDED, conversation=tenure.conversations[0].id)
    draft.note(FactKind.CONVERSATION_CLAIMED, conversation=tenure.holder.id, lease_number=tenure.holder.lease_number)
    draft.snapshot = replace(draft.snapshot, conversation=tenure.holder)
    return draft.commit(valid_until=policy_until(seen, now))


def _cut_short(seen: Seen) -> bool:
    last = seen.snapshot.last
    return last is not None and last.outcome is not None and last.outcome not in ("turn_end", "unsent", "hindered")


def carries_now(seen: Seen, now: datetime) -> tuple[MessageId, ...]:
    """The waiting messages that may ride in a turn that is armed now, oldest first.

    Only a failed delivery waits for its moment: the spacing of words holds for a turn under way, not for a new one.
    """
    return tuple(
        message.id
        for message in seen.snapshot.messages
        if message.state in WAITING_DELIVERY
        and (message.state is DeliveryState.DEFERRED or message.not_before <= now or message.created_at > now)
    )
