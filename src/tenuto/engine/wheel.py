"""Turns when something is due, and sleeps otherwise.

Serves the tasks whose time has come, those that evidence rang for, and those with a turn under way; the cost of a
turn of the wheel grows with what is due, never with what exists. Boot is the first turn: whatever was left open is
under way. Sleeps are bounded, so that a clock that was moved or a laptop that slept is noticed within a minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tenuto.engine.cycle import Cycle, Deposed, Lapsed, Rest, Restless
from tenuto.engine.foresight import AHEAD
from tenuto.model.decision import Rung
from tenuto.model.faults import Corrupt, OutOfReach, StorageFull
from tenuto.model.ids import CommandId, TaskId
from tenuto.ports import Clock, Fuse, Ledger

AT_ONCE = 32
LONGEST_SLEEP = timedelta(seconds=60)
AFTER_TROUBLE = timedelta(seconds=5)
CLOCK_SLIP = timedelta(seconds=2)
BREATH = 0.05
FAR = timedelta(days=3650)
MANY = 100_000
KNOWN = 1024

_AWAY = "the registry's database cannot be reached; nothing is armed until it can: {}"

_LOG = logging.getLogger("tenuto.wheel")


@dataclass
class Trouble:
    """What keeps the wheel from working as it should, for status and doctor; None when nothing does."""

    text: str | None = None
    since: datetime | None = None
    restless: dict[TaskId, str] = field(default_factory=dict)


class Wheel:
    """Decides whom to serve when. One task is never served twice at once."""

    def __init__(self, cycle: Cycle, ledger: Ledger, clock: Clock, fuse: Fuse) -> None:
        self._cycle = cycle
        self._ledger = ledger
        self._clock = clock
        self._fuse = fuse
        self._bell = asyncio.Event()
        self._rung: set[TaskId] = set()
        self._watch: dict[TaskId, datetime] = {}
        self._serving: set[TaskId] = set()
        self._in_line: set[TaskId] = set()
        self._expected: set[TaskId] = set()
        #: Whose the commands are that were rung for: a command never changes its task.
        self._whose: dict[CommandId, TaskId] = {}
        self._stopping = False
        self._away = False
        self._deposed: Deposed | None = None
        self.trouble = Trouble()
        self.served: Callable[[TaskId, Rest | None], None] = lambda _task, _rest: None

    def ring(self, task_id: TaskId) -> None:
        """Evidence or a verb concerns this task: look at it now."""
        self._rung.add(task_id)
        self._bell.set()

    def ring_for(self, command_id: CommandId) -> None:
        """An executor has news of a command."""
        task_id = self._whose.get(command_id)
        if task_id is None:
            try:
                command = self._ledger.command(command_id)
            except OutOfReach:
                return  # what is under way is looked at again without a ring
            if command is None:
                return
            if len(self._whose) >= KNOWN:
                self._whose.clear()
            task_id = self._whose[command_id] = command.task_id
        self.ring(task_id)

    def stop(self) -> None:
        """Start nothing more, and come to rest; what is under way outside goes on."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """Turn until stopped; raises Deposed when another supervisor leads. Cancels no turn and no command."""
        self._rung.update(self._ledger.under_way())
        # A ring its supervisor did not live to hear (a hold lifted, a run's policy changed) left no moment to look.
        self._rung.update(task.id for task in self._ledger.tasks(MANY, unfinished=True))
        last = (self._clock.now(), self._clock.monotonic())
        async with asyncio.TaskGroup() as group:
            while not self._stopping and self._deposed is None:
                self._bell.clear()
                self._cycle.tend()  # also while the database is away
                try:
                    self._back_again()
                    last = self._mind_the_clock(last)
                    if self._start_due(group):
                        await asyncio.sleep(0)  # what is due comes before the question what is due next
                    self._expect(group)
                    delay = self._delay()
                except OutOfReach as gone:
                    self._gone_away(gone)
                    delay = AFTER_TROUBLE.total_seconds()
                await self._sleep(delay)
        if self._deposed is not None:
            raise self._deposed

    def _mind_the_clock(self, last: tuple[datetime, float]) -> tuple[datetime, float]:
        """A clock that went back hides what is due: every task that has a moment to be looked at is looked at now."""
        now, tick = self._clock.now(), self._clock.monotonic()
        expected = last[0] + timedelta(seconds=tick - last[1])
        if expected - now > CLOCK_SLIP:
            self._rung.update(self._ledger.due(expected + FAR, MANY))
            self._rung.update(self._watch)
        return now, tick

    def _start_due(self, group: asyncio.TaskGroup) -> bool:
        """Begin to serve whoever is to be served now; whether there was anybody."""
        now = self._clock.now()
        before = len(self._serving)
        wanted = set(self._rung)
        wanted.update(task for task, when in self._watch.items() if when <= now)
        room = AT_ONCE - len(self._serving)
        if room > 0 and self.trouble.text is None:
            wanted.update(task for task in self._ledger.due(now, AT_ONCE * 2) if not self._put_off(task, now))
        for task_id in sorted(wanted):  # in one order, so that a simulated night can be lived through again
            if room <= 0:
                break
            if task_id in self._serving:
                continue  # its ring stays, so it is served again when this pass is over
            self._rung.discard(task_id)
            self._watch.pop(task_id, None)
            self._expected.discard(task_id)
            self._serving.add(task_id)
            group.create_task(self._serve(task_id), name=f"serve {task_id}")
            room -= 1
        return len(self._serving) > before

    def _expect(self, group: asyncio.TaskGroup) -> None:
        """Have executors made ready for what is due in a moment."""
        if not self._cycle.foresees or self.trouble.text is not None:
            return
        soon = self._clock.now() + AHEAD
        for task_id in self._ledger.due(soon, AT_ONCE):
            if task_id not in self._serving and task_id not in self._expected:
                self._expected.add(task_id)
                group.create_task(self._foresee(task_id, soon), name=f"foresee {task_id}")

    async def _foresee(self, task_id: TaskId, at: datetime) -> None:
        try:
            await self._cycle.foresee(task_id, at)
        except Exception as fault:  # noqa: BLE001 - it was only a courtesy: serving the task will find the same
            _LOG.debug("no turn of %s was made ready for: %s", task_id, fault)

    def _put_off(self, task_id: TaskId, now: datetime) -> bool:
        """Whether a task whose serving failed is left alone for a moment, though its time has come."""
        return task_id in self.trouble.restless and self._watch.get(task_id, now) > now

    async def _serve(self, task_id: TaskId) -> None:
        try:
            rest = await self._cycle.serve(task_id)
            if not self._away:
                self.trouble.text = self.trouble.since = None
            self.trouble.restless.pop(task_id, None)
            self._mind_the_line(task_id, rest)
            if rest is not None and rest.look_again_at is not None:
                self._watch[task_id] = rest.look_again_at
            self.served(task_id, rest)
        except Deposed as deposed:
            self._deposed = deposed
        except StorageFull as full:
            self._in_trouble(f"the disk is full; nothing is armed until there is room: {full}")
            self.trouble.restless[task_id] = "the disk was full when it was served"
            self._watch[task_id] = self._clock.now() + AFTER_TROUBLE
        except (OutOfReach, Lapsed) as away:
            self._gone_away(away)
            self._watch[task_id] = self._clock.now() + AFTER_TROUBLE
        except Corrupt as broken:
            _LOG.error("serving %s failed: %s", task_id, broken)
            self.trouble.restless[task_id] = f"serving it failed: {broken}"
            self._watch[task_id] = self._clock.now() + AFTER_TROUBLE
        except Restless:
            self.trouble.restless[task_id] = "it did not come to rest; looked at again later"
            self._watch[task_id] = self._clock.now() + AFTER_TROUBLE
        except Exception as fault:  # noqa: BLE001 - one task's fault must not end the others' night
            _LOG.exception("serving %s failed", task_id)
            self.trouble.restless[task_id] = f"serving it failed: {type(fault).__name__}"
            self._watch[task_id] = self._clock.now() + AFTER_TROUBLE
        finally:
            self._serving.discard(task_id)
            self._bell.set()

    def _mind_the_line(self, task_id: TaskId, rest: Rest | None) -> None:
        """Whoever waits for a slot hears of one that is free now, without waiting for its next look."""
        if rest is not None and rest.because is not None and rest.because.rung is Rung.SLOT:
            self._in_line.add(task_id)
            return
        self._in_line.discard(task_id)
        if self._in_line:
            self._rung.update(self._cycle.next_up())

    def _gone_away(self, why: Exception) -> None:
        self._away = True
        self._in_trouble(_AWAY.format(why))

    def _back_again(self) -> None:
        """Go on once the database answers and the lease is held; raises OutOfReach while it does not."""
        if self._away:
            self._ledger.next_due()
            if self._cycle.holds():
                self._away = False
                self.trouble.text = self.trouble.since = None

    def _in_trouble(self, text: str) -> None:
        self.trouble.text = text
        self.trouble.since = self.trouble.since or self._clock.now()

    def _delay(self) -> float:
        """Seconds until something is due, as far as is known now."""
        now = self._clock.now()
        moments = [when for task, when in self._watch.items() if task not in self._serving]
        if self.trouble.text is not None:
            moments.append(now + AFTER_TROUBLE)
        elif len(self._serving) < AT_ONCE and (due := self._ledger.next_due()) is not None:
            ready = due > now or any(not self._put_off(task, now) for task in self._ledger.due(now, AT_ONCE * 2))
            early = due - AHEAD if self._cycle.foresees and due - AHEAD > now else due
            moments.append(early if ready else now + AFTER_TROUBLE)
        until = min([*moments, now + LONGEST_SLEEP])
        delay = max((until - now).total_seconds(), 0.0)
        if self._serving and delay == 0.0:
            delay = BREATH  # what is due is being served; the end of any pass rings
        return delay

    async def _sleep(self, delay: float) -> None:
        alarm = asyncio.get_running_loop().call_later(delay, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            alarm.cancel()
