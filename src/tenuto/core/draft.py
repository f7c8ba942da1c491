"""A commit in the making: the changes of one task's world, gathered and then written at once.

Pure bookkeeping. Every rule about *what* should change lives with the verb that uses the draft; this module only sees
to it that rows get their next revision, moves go through the lifecycle tables, and facts are noted beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tenuto.core import tenancy
from tenuto.core import wake as wakes
from tenuto.model.change import Commit, Guard, Key, Row
from tenuto.model.command import Attempt, AttemptOutcome, Command
from tenuto.model.conversation import Conversation
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.ids import AttemptId, CommandId, MessageId, TextId, WaitId
from tenuto.model.lifecycle import (
    ATTEMPT,
    COMMAND,
    DELIVERY,
    TASK,
    AttemptEvent,
    CommandEvent,
    DeliveryEvent,
    DeliveryState,
    TaskEvent,
)
from tenuto.model.message import Message, MessageKind, MessagePolicy, Party
from tenuto.model.snapshot import Snapshot
from tenuto.model.varied import varied
from tenuto.model.work import (
    Disposition,
    DispositionSource,
    Task,
    Text,
    TextKind,
    Wait,
    WaitKind,
    WakeKind,
)

New = Callable[[str], str]

COMMAND_FACTS = {
    CommandEvent.ARMED: FactKind.COMMAND_ARMED,
    CommandEvent.BEGUN: FactKind.COMMAND_SUBMITTED,
    CommandEvent.DOUBTED: FactKind.COMMAND_AMBIGUOUS,
    CommandEvent.ACKNOWLEDGED: FactKind.COMMAND_ACKNOWLEDGED,
    CommandEvent.PROVEN_UNDONE: FactKind.COMMAND_FAILED,
    CommandEvent.RELEASED: FactKind.COMMAND_RELEASED,
    CommandEvent.CANCELLED: FactKind.COMMAND_CANCELLED,
    CommandEvent.EXPIRED: FactKind.COMMAND_CANCELLED,
}
TASK_FACTS = {
    TaskEvent.STARTED: FactKind.TASK_STARTED,
    TaskEvent.SLOT_GIVEN_BACK: FactKind.TASK_SLOT_BACK,
    TaskEvent.COMPLETED: FactKind.TASK_COMPLETED,
    TaskEvent.FAILED: FactKind.TASK_FAILED,
    TaskEvent.CANCELLED: FactKind.TASK_CANCELLED,
}
SETTLED = {
    CommandEvent.ACKNOWLEDGED,
    CommandEvent.PROVEN_UNDONE,
    CommandEvent.RELEASED,
    CommandEvent.CANCELLED,
    CommandEvent.EXPIRED,
}


def text_of(kind: TextKind, body: str, snapshot: Snapshot, now: datetime, new: New) -> Text:
    """One of our own texts, with its digest."""
    return Text(
        id=TextId(new("text")),
        kind=kind,
        task_id=snapshot.task.id,
        body=body,
        digest=hashlib.sha256(body.encode()).hexdigest(),
        created_at=now,
    )


class Draft:
    """Gathers what one verb does to one task. `now` and `new` (a maker of identifiers) are arguments of the verb."""

    def __init__(self, snapshot: Snapshot, now: datetime, new: New) -> None:
        self.before = snapshot
        self.snapshot = snapshot
        self.now = now
        self.new = new
        self.puts: list[Row] = []
        self.facts: list[Fact] = []
        self.holds: list[tuple[str, CommandId]] = []
        self.frees: list[CommandId] = []
        self.commands: dict[CommandId, Command] = {}

    @property
    def task(self) -> Task:
        return self.snapshot.task

    def change(self, **fields: Any) -> None:
        """Change fields of the task."""
        self.snapshot = varied(self.snapshot, task=varied(self.snapshot.task, **fields))

    def note(self, kind: FactKind, /, **data: Scalar) -> None:
        """Note a fact about the task."""
        task = self.snapshot.task
        self.facts.append(Fact(kind, run_id=task.run_id, task_id=task.id, data=data))

    def look_now(self) -> None:
        """The task is to be looked at at once, whatever happens to us after the commit."""
        self.change(look_at=self.now)

    # -- the task itself

    def move(self, event: TaskEvent, **data: Scalar) -> None:
        self.change(state=TASK.after(self.snapshot.task.state, event))
        self.note(TASK_FACTS[event], **data)

    def end_task(
        self, event: TaskEvent, reason: str, source: DispositionSource, reference: str | None, *, verified: bool
    ) -> None:
        """The one place where a task becomes terminal: waits close, wakes end, messages drop, the lease ends."""
        task = self.snapshot.task
        ending = Disposition(reason, source, task.state, reference, verified)
        self.move(event, reason=reason, reference=reference, verified=verified, source=source)
        self.change(disposition=ending, ended_at=self.now, claim=None, stalled_at=None, look_at=None, queued_at=None)
        for wait in self.snapshot.waits:
            self.close_wait(wait, "the task ended")
        self.consume_wakes(None)
        for message in self.snapshot.messages:
            if message.state in (DeliveryState.DEFERRED, DeliveryState.RETRY_WAIT):
                self.deliver(message, DeliveryEvent.DROPPED)
        if self.snapshot.conversation is not None:
            self.end_conversation()
        if self.snapshot.live is not None or self.snapshot.commands:
            self.look_now()

    def end_conversation(self) -> None:
        talk = self.snapshot.conversation
        if talk is None:
            return
        self.puts.append(tenancy.end(talk, self.now))
        self.snapshot = varied(self.snapshot, conversation=None)
        self.note(FactKind.CONVERSATION_ENDED, conversation=talk.id, lease_number=talk.lease_number)

    def talk(self, changed: Conversation) -> None:
        """Write the holder's new value."""
        row = varied(changed, revision=changed.revision + 1)
        self.puts.append(row)
        self.snapshot = varied(self.snapshot, conversation=row)

    # -- commands and attempts

    def command(self, command: Command, *events: CommandEvent, **fields: Any) -> Command:
        """Move a command through its lifecycle; holds end with it, facts say so."""
        for event in events:
            stamps: dict[str, Any] = {}
            if event is CommandEvent.BEGUN:
                stamps["submitted_at"] = self.now
            if event in SETTLED:
                stamps["settled_at"] = self.now
                self.frees.append(command.id)
            command = varied(
                command, revision=command.revision + 1, state=COMMAND.after(command.state, event), **stamps
            )
            if event is events[-1]:
                command = varied(command, **fields)
            self.puts.append(command)
            self.note(
                COMMAND_FACTS[event], command=command.id, kind=command.kind, detail=command.detail, late=command.late
            )
        self.commands[command.id] = command
        self._replace_command(command)
        return command

    def _replace_command(self, command: Command) -> None:
        still_open = tuple(c for c in self.snapshot.commands if c.id != command.id)
        if command.open:
            still_open = (*still_open, command)
        live = self.snapshot.live_command
        if live is not None and live.id == command.id:
            live = command
        self.snapshot = varied(self.snapshot, commands=still_open, live_command=live)

    def end_attempt(self, outcome: AttemptOutcome, **fields: Any) -> Attempt | None:
        """The live turn is over."""
        live = self.snapshot.live
        if live is None:
            return None
        ended = varied(
            live,
            revision=live.revision + 1,
            state=ATTEMPT.after(live.state, AttemptEvent.ENDED),
            ended_at=self.now,
            outcome=outcome,
            **fields,
        )
        self.puts.append(ended)
        self._spend(ended)
        self.note(
            FactKind.ATTEMPT_ENDED,
            attempt=ended.id,
            number=ended.number,
            outcome=outcome,
            signal=ended.signal,
            detail=ended.detail,
        )
        self.snapshot = varied(self.snapshot, live=None, live_command=None, last=ended)
        self.change(waiting_since=self.now)
        if self.task.terminal:
            for wait in self.snapshot.waits:
                self.close_wait(wait, "its turn is over")
        return ended

    def _spend(self, ended: Attempt) -> None:
        """Count what a turn took against the caps; one that was never sent took nothing."""
        if ended.outcome is AttemptOutcome.UNSENT:
            return
        task = self.snapshot.task
        took = self.now - ended.live_at if ended.live_at is not None else timedelta(0)
        tokens = (ended.tokens_in or 0) + (ended.tokens_out or 0)
        self.change(live_time=task.live_time + max(took, timedelta(0)), tokens=task.tokens + tokens)
        if not ended.cost:
            return
        if task.currency not in (None, ended.currency):
            what = f"a cost in {ended.currency} is not counted, for its costs are counted in {task.currency}"
            self.note(FactKind.FINDING, attempt=ended.id, what=what)
            return
        self.change(cost=task.cost + ended.cost, currency=ended.currency)

    # -- waits, wakes, messages

    def wake(
        self,
        kind: WakeKind,
        reason: str,
        not_before: datetime,
        *,
        anyway: bool = False,
        asked_by: str | None = None,
    ) -> None:
        row = wakes.added(self.snapshot, kind, reason, not_before, self.now, self.new, anyway=anyway, asked_by=asked_by)
        self.puts.append(row)
        others = tuple(w for w in self.snapshot.wakes if w.id != row.id)
        self.snapshot = varied(self.snapshot, wakes=(*others, row))
        self.note(FactKind.WAKE_ADDED, kind=kind, reason=reason, anyway=row.anyway)
        self.look_now()

    def consume_wakes(self, attempt: AttemptId | None, *, only_due: bool = False) -> None:
        """Wakes end with the attempt they led to, or with the task."""
        left = []
        for row in self.snapshot.wakes:
            if only_due and row.not_before > self.now and row.created_at <= self.now:
                left.append(row)
                continue
            self.puts.append(varied(row, revision=row.revision + 1, consumed_at=self.now, consumed_by=attempt))
        self.snapshot = varied(self.snapshot, wakes=tuple(left))

    def wait(
        self,
        kind: WaitKind,
        question: str,
        *,
        subject: str | None = None,
        until: datetime | None = None,
        attempt: AttemptId | None = None,
    ) -> Wait:
        row = Wait(
            id=WaitId(self.new("wait")),
            revision=1,
            task_id=self.snapshot.task.id,
            kind=kind,
            question=question,
            opened_at=self.now,
            subject=subject,
            until=until,
            attempt_id=attempt,
        )
        self.puts.append(row)
        self.snapshot = varied(self.snapshot, waits=(*self.snapshot.waits, row))
        self.note(FactKind.WAIT_OPENED, wait=row.id, kind=kind, question=question[:500])
        self.look_now()
        return row

    def rewait(self, wait: Wait, until: datetime, question: str) -> None:
        """What a wait hangs on has moved: it goes on until then."""
        moved = replace(wait, revision=wait.revision + 1, until=until, question=question)
        self.puts.append(moved)
        others = tuple(w for w in self.snapshot.waits if w.id != wait.id)
        self.snapshot = varied(self.snapshot, waits=(*others, moved))

    def close_wait(self, wait: Wait, by: str, answer: TextId | None = None) -> None:
        closed = replace(wait, revision=wait.revision + 1, closed_at=self.now, closed_by=by, answer=answer)
        self.puts.append(closed)
        self.snapshot = varied(self.snapshot, waits=tuple(w for w in self.snapshot.waits if w.id != wait.id))
        self.note(FactKind.WAIT_CLOSED, wait=wait.id, by=by)

    def message(
        self,
        sender: str,
        kind: MessageKind,
        body: str | None,
        policy: MessagePolicy = MessagePolicy.NEXT_TURN,
        text_kind: TextKind = TextKind.MESSAGE,
        *,
        party: Party = Party.TENUTO,
        corrective: str | None = None,
        not_before: datetime | None = None,
    ) -> Message:
        """Store a message for the task; what is only to be recorded never waits for a delivery."""
        text = None
        if body is not None:
            text = text_of(text_kind, body, self.snapshot, self.now, self.new)
            self.puts.append(text)
        row = Message(
            id=MessageId(self.new("message")),
            revision=1,
            task_id=self.snapshot.task.id,
            sender=sender,
            kind=kind,
            policy=policy,
            text=text.id if text else None,
            size=len(body.encode()) if body is not None else 0,
            state=DELIVERY.start
            if policy is MessagePolicy.RECORD_ONLY
            else DELIVERY.after(DELIVERY.start, DeliveryEvent.DEFERRED),
            created_at=self.now,
            not_before=not_before or self.now,
            corrective=corrective,
            party=party,
        )
        self.puts.append(row)
        if policy is not MessagePolicy.RECORD_ONLY:
            self.snapshot = varied(self.snapshot, messages=(*self.snapshot.messages, row))
        self.note(FactKind.MESSAGE_STORED, message=row.id, kind=kind, sender=sender)
        return row

    def deliver(
        self, message: Message, event: DeliveryEvent, carried_by: CommandId | None = None, **fields: Any
    ) -> Message:
        """Move a message's delivery; the row as it is then."""
        moved = replace(
            message,
            revision=message.revision + 1,
            state=DELIVERY.after(message.state, event),
            carried_by=carried_by if carried_by is not None else message.carried_by,
            tries=message.tries + (1 if event is DeliveryEvent.CARRIED else 0),
            settled_at=self.now if event in (DeliveryEvent.DELIVERED, DeliveryEvent.DROPPED) else None,
            **fields,
        )
        self.puts.append(moved)
        rest = tuple(m for m in self.snapshot.messages if m.id != message.id)
        if moved.settled_at is None:
            rest = (*rest, moved)
        self.snapshot = varied(self.snapshot, messages=tuple(sorted(rest, key=lambda m: (m.created_at, m.id))))
        kinds = {
            DeliveryEvent.CARRIED: FactKind.MESSAGE_CARRIED,
            DeliveryEvent.DELIVERED: FactKind.MESSAGE_DELIVERED,
        }
        if kind := kinds.get(event):
            self.note(kind, message=message.id)
        else:
            self.note(FactKind.MESSAGE_RETRIED, message=message.id, event=event)
        return moved

    def carried_on(self, command: Command, event: DeliveryEvent, **fields: Any) -> tuple[Message, ...]:
        """Move every message that rides in a command, as far as its lifecycle lets it; the ones that were moved.

        Where the task is over no later turn can carry what was not delivered: it ends with the task.
        """
        done: list[Message] = []
        for message in self.snapshot.messages:
            if message.carried_by != command.id or event not in DELIVERY.moves[message.state]:
                continue
            moved = self.deliver(message, event, **fields)
            done.append(moved)
            if self.task.terminal and DeliveryEvent.DROPPED in DELIVERY.moves[moved.state]:
                self.deliver(moved, DeliveryEvent.DROPPED)
        return tuple(done)

    # -- the whole

    def commit(self, *, valid_until: datetime | None = None, key: Key | None = None) -> Commit | None:
        """Everything as one commit; None when nothing changed. The task's row carries the compare-and-set."""
        task = self.snapshot.task
        if task == self.before.task and not self.puts and not self.facts and key is None:
            return None
        row = varied(task, revision=self.before.task.revision + 1)
        return Commit(
            puts=(row, *self.puts),
            facts=tuple(self.facts),
            guards=(Guard("run", self.before.run.id, self.before.run.revision),),
            holds=tuple(self.holds),
            frees=tuple(self.frees),
            key=key,
            valid_until=valid_until,
        )
