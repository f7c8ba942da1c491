"""The promises, checked after every step of a simulated world.

It is told of every commit that was made and of everything that happened outside, keeps books of its own, and shares no
code with what it judges. The first broken promise ends the world.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta

from tenuto.model.change import Commit
from tenuto.model.command import Attempt, AttemptOutcome, Command, CommandKind
from tenuto.model.ids import CommandId, LimitId, TaskId
from tenuto.model.lifecycle import OPEN_COMMAND, AttemptState, CommandState, DeliveryState, TaskState
from tenuto.model.limit import UsageLimit
from tenuto.model.message import Message, MessageKind
from tenuto.model.snapshot import Registry
from tenuto.model.work import HUMAN_WAITS, Task, Wait, WaitKind, Wake

ACTS = frozenset({CommandKind.SEND, CommandKind.STEER})
"""Kinds of command whose effect is told here when it happens."""
MESSAGE = re.compile(r"message (m-[0-9a-z-]+) from")
ANSWERED = frozenset({WaitKind.HUMAN, WaitKind.PERMISSION})
"""Kinds of wait that a person's answer ends."""
SETTLED_WITHOUT_EFFECT = frozenset({CommandState.FAILED, CommandState.CANCELLED})


class Laws:
    """Books about one world. `tell` is called with the sentence of the first promise that was broken."""

    def __init__(
        self,
        tell: Callable[[str], None],
        slots: int | None = None,
        account: Callable[[Task], str | None] = lambda task: None,
    ) -> None:
        self._tell = tell
        self._account = account
        self._slots = slots
        self._holders: set[TaskId] = set()
        self.broken: str | None = None
        self.epoch = 0
        self.commands: dict[CommandId, Command] = {}
        self.attempts: dict[str, Attempt] = {}
        self.tasks: dict[TaskId, Task] = {}
        self.effects: Counter[CommandId] = Counter()
        self.checks: Counter[CommandId] = Counter()
        self.alive: defaultdict[TaskId, set[CommandId]] = defaultdict(set)
        self._holds: dict[str, CommandId] = {}
        self._live: dict[TaskId, str] = {}
        self._waits: dict[TaskId, dict[str, Wait]] = {}
        self._ends: dict[TaskId, asyncio.Event] = {}
        self._held = False
        self._limits: dict[LimitId, UsageLimit] = {}
        self._spent: dict[TaskId, tuple[float, timedelta]] = {}
        self._chats: dict[str, TaskId] = {}
        self.readers: defaultdict[str, list[CommandId]] = defaultdict(list)
        self.steps = 0
        self.turns = 0

    def breaks(self, sentence: str) -> None:
        """A promise is broken."""
        if self.broken is None:
            self.broken = sentence
            self._tell(sentence)

    # -- what the registry took

    def committed(self, commit: Commit, armed: int, epoch: int | None, now: datetime) -> None:
        """One commit that was made under `epoch` at `now`; `armed` is how many commands it armed."""
        self.steps += 1
        if armed and epoch != self.epoch:
            self.breaks(f"epoch {epoch} armed a command while epoch {self.epoch} leads")
        for row in commit.puts:
            late = isinstance(row, Command) and row.id not in self.commands and row.epoch != self.epoch
            if late and isinstance(row, Command):
                self.breaks(f"{row.id} was armed by epoch {row.epoch} while epoch {self.epoch} leads")
        for command_id in commit.frees:
            self._holds = {scope: holder for scope, holder in self._holds.items() if holder != command_id}
        rows = commit.puts
        for row in rows:
            if isinstance(row, Registry):
                self._held = row.held_at is not None
            elif isinstance(row, Wait):
                self._wait(row)
            elif isinstance(row, UsageLimit):
                self._limit(row)
        for row in rows:
            if isinstance(row, Attempt) and row.state is AttemptState.LIVE and row.id not in self.attempts:
                consumed = [wake for wake in rows if isinstance(wake, Wake) and wake.consumed_by == row.id]
                self._arming(row, consumed, now)
        for row in rows:
            if isinstance(row, Attempt):
                self._attempt(row)
            elif isinstance(row, Command):
                self._command(row)
        for row in rows:
            if isinstance(row, Task):
                self._task(row)
            elif isinstance(row, Message):
                self._message(row)
        for scope, command_id in commit.holds:
            holder = self._holds.setdefault(scope, command_id)
            if holder != command_id:
                self.breaks(f"{command_id} took {scope} while {holder} holds it")

    def _wait(self, wait: Wait) -> None:
        waits = self._waits.setdefault(wait.task_id, {})
        if wait.closed_at is None:
            waits[wait.id] = wait
        else:
            waits.pop(wait.id, None)

    def _arming(self, attempt: Attempt, consumed: list[Wake], now: datetime) -> None:
        """A turn is being armed: nothing that stops a task may stand, and something must have asked for it."""
        task = self.tasks.get(attempt.task_id)
        if task is None or task.terminal:
            self.breaks(f"{attempt.id} was armed for a task that is {task.state if task else 'unknown'}")
            return
        if self._held:
            self.breaks(f"{attempt.id} was armed while everything is held")
        asked = any(wake.asked_by is not None for wake in consumed)  # a person may want one turn all the same
        if task.paused_at is not None and not asked:
            self.breaks(f"{attempt.id} was armed while its task is paused")
        if other := self._live.get(task.id):
            self.breaks(f"{attempt.id} was armed while {other} is live")
        if others := self.alive[task.id]:
            self.breaks(f"{attempt.id} was armed while an agent of {sorted(others)} still acts")
        asking = [wait for wait in self._waits.get(task.id, {}).values() if wait.kind in HUMAN_WAITS]
        if asking and not attempt.anyway:
            self.breaks(f"{attempt.id} was armed while a person is asked: {asking[0].question}")
        waiting = [
            wait
            for wait in self._waits.get(task.id, {}).values()
            if wait.kind is WaitKind.TIME and wait.until is not None and wait.until > now
        ]
        if waiting and not attempt.anyway:
            self.breaks(f"{attempt.id} was armed at {now} while its task waits until {waiting[0].until}")
        account = self._account(task)
        for limit in self._limits.values():
            if limit.account == account and limit.met_at < now < limit.until:  # met in this moment: nobody could know
                self.breaks(
                    f"{attempt.id} was armed at {now} while {limit.name} of {account} holds until {limit.until}"
                )
        if not consumed:
            self.breaks(f"{attempt.id} was armed and nothing asked for it")
        elif not any(wake.not_before <= now or wake.created_at > now for wake in consumed):
            self.breaks(f"{attempt.id} was armed at {now} before any wake of it was due")

    def _attempt(self, attempt: Attempt) -> None:
        before = self.attempts.get(attempt.id)
        if before is not None and before.outcome is not None and before.outcome is not attempt.outcome:
            self.breaks(f"{attempt.id} had ended ({before.outcome}) and ended again ({attempt.outcome})")
        self.attempts[attempt.id] = attempt
        acting = any(self.commands[one].attempt_id == attempt.id for one in self.alive[attempt.task_id])
        if acting and attempt.outcome not in (None, AttemptOutcome.RELEASED):
            self.breaks(f"{attempt.id} is said to be over ({attempt.outcome}) while its agent still acts")
        if attempt.outcome is None:
            self._live[attempt.task_id] = attempt.id
        elif self._live.get(attempt.task_id) == attempt.id:
            del self._live[attempt.task_id]

    def _command(self, command: Command) -> None:
        before = self.commands.get(command.id)
        self.commands[command.id] = command
        if command.state is CommandState.ACKNOWLEDGED and (before is None or before.state is not command.state):
            if command.evidence is None:
                self.breaks(f"{command.id} is acknowledged without evidence")
            if command.kind in ACTS and not self.effects[command.id]:
                self.breaks(f"{command.id} is acknowledged and never took effect")
        if command.state in SETTLED_WITHOUT_EFFECT and command.kind in ACTS and self.effects[command.id]:
            self.breaks(f"{command.id} took effect and is said not to have happened")

    def _limit(self, limit: UsageLimit) -> None:
        if limit.closed_at is None:
            self._limits[limit.id] = limit
            return
        self._limits.pop(limit.id, None)
        for task in [each for each in self._spent if self._account(self.tasks[each]) == limit.account]:
            del self._spent[task]  # somebody has said that it is over

    def _message(self, message: Message) -> None:
        """What is said to be delivered has been read."""
        told = message.kind in (MessageKind.WORDS, MessageKind.NEWS) and message.state is DeliveryState.DELIVERED
        if told and not self.readers[message.id]:
            self.breaks(f"{message.id} is said to be delivered and nobody has read it")

    def _task(self, task: Task) -> None:
        before = self.tasks.get(task.id)
        if before is not None and before.terminal and (before.state is not task.state or not task.terminal):
            self.breaks(f"{task.id} had ended ({before.state}) and is {task.state}")
        self.tasks[task.id] = task
        self._slot(before, task)
        if task.terminal and (event := self._ends.pop(task.id, None)) is not None:
            event.set()

    def _slot(self, before: Task | None, task: Task) -> None:
        """Nobody is started while every slot is held; who has claimed to be done holds none."""
        if task.state is TaskState.ACTIVE and task.claim is None:
            self._holders.add(task.id)
        else:
            self._holders.discard(task.id)
        started = task.state is TaskState.ACTIVE and (before is None or before.state is TaskState.PENDING)
        if started and self._slots is not None and len(self._holders) > self._slots:
            many = f"one of {len(self._holders)} active tasks"
            self.breaks(f"{task.id} was started as {many}; there are {self._slots} slots")

    async def ended(self, task_id: TaskId) -> None:
        """Wait until a task has ended."""
        if not self.tasks[task_id].terminal:
            await self._ends.setdefault(task_id, asyncio.Event()).wait()

    # -- what happened outside

    def _took_effect(self, command: Command, words: str) -> None:
        self.steps += 1
        row = self.commands.get(command.id)
        if row is None:
            self.breaks(f"{command.id} took effect and was never armed")
        elif row.state in SETTLED_WITHOUT_EFFECT:
            self.breaks(f"{command.id} took effect after it was said not to have happened")
        self.effects[command.id] += 1
        if self.effects[command.id] > 1:
            self.breaks(f"{command.id} took effect {self.effects[command.id]} times")
        for message in MESSAGE.findall(words):
            for before in self.readers[message]:
                if not self._lost(before):
                    self.breaks(f"{message} was read in {command.id} after it had been read in {before}")
            self.readers[message].append(command.id)

    def _lost(self, command_id: CommandId) -> bool:
        """Whether a command is a turn of which nobody saw that it ran: what rode in it may be told again."""
        command = self.commands[command_id]
        attempt = self.attempts.get(command.attempt_id or "")
        unseen = attempt is not None and attempt.outcome in (AttemptOutcome.LOST, AttemptOutcome.RELEASED)
        return command.kind is CommandKind.SEND and unseen

    def told(self, command: Command, words: str) -> None:
        """A turn under way has taken words."""
        self._took_effect(command, words)

    def page_turn(self, command: Command, url: str) -> None:
        """A turn stands in this conversation."""
        owner = self._chats.setdefault(url, command.task_id)
        if owner != command.task_id:
            self.breaks(f"{command.id} of {command.task_id} stands in the conversation of {owner}")

    def page_closed(self, url: str) -> None:
        """The page of a conversation was closed by us."""
        owner = self._chats.get(url)
        if owner is None or not self.tasks[owner].terminal:
            self.breaks(f"the page of {url} was closed although {owner or 'nobody of ours'} is not over")

    def met_limit(self, command: Command, until: float, wrong_by: timedelta) -> None:
        """A turn was told that its account is spent until then (seconds of the world), by a clock that is so wrong."""
        self._spent[command.task_id] = (until, wrong_by)

    def asks_account(self, command: Command, now: float, wrong_by: timedelta) -> None:
        """A turn is begun at `now`; whoever was told when a limit ends does not ask before."""
        until, wrong_then = self._spent.get(command.task_id, (now, wrong_by))
        if now < until and wrong_by == wrong_then:
            self.breaks(f"{command.id} began {until - now:.0f} s before the reset that its task was told of")

    def effect(self, command: Command, words: str = "") -> None:
        """A turn's agent has begun to act."""
        self._took_effect(command, words)
        self.turns += 1
        if others := self.alive[command.task_id]:
            self.breaks(f"{command.id} began while an agent of {sorted(others)} still acts for the same task")
        self.alive[command.task_id].add(command.id)

    def gone(self, command: Command) -> None:
        """A turn's agent does not act any more."""
        self.alive[command.task_id].discard(command.id)

    def checked(self, command: Command) -> None:
        """An acceptance program has begun."""
        self.checks[command.id] += 1
        if self.checks[command.id] > 1:
            self.breaks(f"check {command.id} ran {self.checks[command.id]} times")

    # -- looked at now and then

    def still_there(self, commands: set[str], tasks: set[str], attempts: set[str]) -> None:
        """Nothing that was recorded may have disappeared."""
        for name, known, there in (
            ("command", set(map(str, self.commands)), commands),
            ("task", set(map(str, self.tasks)), tasks),
            ("attempt", set(self.attempts), attempts),
        ):
            if lost := sorted(known - there):
                self.breaks(f"a recorded {name} has disappeared: {lost[0]}")

    def under_way(self) -> tuple[TaskId, ...]:
        """The tasks that have a turn under way, in one order."""
        return tuple(sorted(self._live))

    def asked(self, task_id: TaskId) -> tuple[Wait, ...]:
        """What people are asked about a task, the oldest first."""
        return tuple(wait for wait in self._waits.get(task_id, {}).values() if wait.kind in ANSWERED)

    def open(self) -> tuple[CommandId, ...]:
        """The commands that are not settled."""
        return tuple(command.id for command in self.commands.values() if command.state in OPEN_COMMAND)
