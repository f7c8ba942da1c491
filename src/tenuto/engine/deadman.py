"""Listens for runs that have the dead-man switch on, and weighs what their extensions ask.

Nothing is done here while no such run is at work. While one is, its rows and its turns are listened to every twenty
seconds, or more often where its policy has less patience, and time that was awake and connected is counted until
something shows a sign. A question is kept until that count is long enough or a sign comes; what is granted goes through
the ledger under a key of its half hour, so that questions asked twice, or by two browsers, come to one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from tenuto.core import deadman
from tenuto.core.deadman import Silence
from tenuto.model.change import Commit, Committed, Key
from tenuto.model.command import Command
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import OutOfReach, StorageFull
from tenuto.model.ids import RunId, TaskId
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Run
from tenuto.ports import Clock, Ledger, Minter

_LOG = logging.getLogger("tenuto.deadman")

EVERY: Final = timedelta(seconds=20)
"""How far two listenings are apart at most."""

SOONEST: Final = timedelta(seconds=1)
SHARE: Final = 30
"""How often a run is listened to, at least, in the time after which something may be granted to it."""

SCOPE: Final = "dead-man"
RUNS: Final = 500
TASKS: Final = 1000


class Signs(Protocol):
    """What is known of executors elsewhere without asking them anything."""

    def connected(self, executor: str) -> bool:
        """Whether it is connected now."""
        ...

    def alive(self, command: Command) -> bool:
        """Whether the last word about a command was that its agent is at work."""
        ...


class DeadMan:
    """The listening of one supervisor. `ring` hears of the tasks that were woken."""

    def __init__(
        self, ledger: Ledger, clock: Clock, mint: Minter, slots: int, signs: Signs, ring: Callable[[TaskId], None]
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._mint = mint
        self._slots = slots
        self._signs = signs
        self._ring = ring
        self._silences: dict[RunId, Silence | None] = {}
        self._asked: dict[RunId, str] = {}
        self._heard: set[RunId] = set()
        self._after: dict[RunId, timedelta] = {}
        self._last = clock.monotonic()
        self._bell = asyncio.Event()
        self._stopping = False

    @property
    def listening(self) -> bool:
        """Whether any run has its switch on, as far as is known."""
        return bool(self._silences)

    # -- what is told

    def watch(self, run_id: RunId) -> None:
        """A turn is ordered in a run that has its switch on: it is listened to from here on."""
        self._heard.add(run_id)
        if run_id not in self._silences:
            self._silences[run_id] = None
            self._bell.set()

    def asked(self, executor: str, run_id: RunId) -> None:
        """An extension says that every chat of a run which it can see is dead. Nothing is decided by that."""
        run = self._ledger.run(run_id)
        if run is None or run_id in self._asked:
            return
        self._asked[run_id] = executor
        self._silences.setdefault(run_id, None)
        self._bell.set()

    def heard(self, task_id: TaskId | None) -> None:
        """Something of a task showed a sign."""
        if not self._silences or task_id is None:
            return
        task = self._ledger.task(task_id)
        if task is not None and task.run_id in self._silences:
            self._heard.add(task.run_id)

    # -- the rounds

    def stop(self) -> None:
        """Listen no more; whoever leads next begins to count anew."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """Listen until stopped; asleep while no run has its switch on."""
        for run in self._ledger.runs(RUNS, unfinished=True):
            if run.policy.dead_man:
                self._silences.setdefault(run.id, None)
        while not self._stopping:
            self._bell.clear()
            try:
                await self.round()
            except (OutOfReach, StorageFull) as trouble:
                _LOG.warning("runs cannot be listened to now: %s", trouble)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause().total_seconds() if self._silences else None):
                    await self._bell.wait()

    def _pause(self) -> timedelta:
        """Until the next listening."""
        return min(EVERY, max(SOONEST, min(self._after.values(), default=SHARE * EVERY) / SHARE))

    async def round(self) -> None:
        """Listen to every run once, and answer what is asked."""
        now = self._clock.monotonic()
        passed, self._last = timedelta(seconds=max(now - self._last, 0.0)), now
        for run_id in tuple(self._silences):
            await self._listen(run_id, passed)

    async def _listen(self, run_id: RunId, passed: timedelta) -> None:
        run = self._ledger.run(run_id)
        tasks = self._unfinished(run) if run is not None else ()
        if run is not None:
            self._after[run_id] = run.policy.dead_man_after
        before = self._silences[run_id]
        alive = run_id in self._heard or any(self._alive(one) for one in tasks)
        self._heard.discard(run_id)
        silence = deadman.listened(
            before, deadman.sign(tasks), passed, alive=alive, connected=any(self._connected(one) for one in tasks)
        )
        self._silences[run_id] = silence
        if before is not None and silence.quiet < before.quiet:
            self._asked.pop(run_id, None)  # it showed a sign after it was asked about
        if run_id in self._asked and run is not None:
            await self._weigh(run, tasks, silence)
        if run is None or not run.policy.dead_man or not tasks:
            for known in (self._silences, self._asked, self._after):
                known.pop(run_id, None)

    def _unfinished(self, run: Run) -> tuple[Snapshot, ...]:
        found = (
            self._ledger.snapshot(task.id, self._slots)
            for task in self._ledger.tasks(TASKS, run_id=run.id, unfinished=True)
        )
        return tuple(one for one in found if one is not None)

    def _alive(self, snapshot: Snapshot) -> bool:
        """Whether a turn of a task is seen to go on; one that no page carries is followed by its own host."""
        if snapshot.live is None:
            return False
        sent = snapshot.live_command
        return not snapshot.task.agent.in_page or (sent is not None and self._signs.alive(sent))

    def _connected(self, snapshot: Snapshot) -> bool:
        return snapshot.task.agent.in_page and self._signs.connected(snapshot.task.agent.carrier)

    async def _weigh(self, run: Run, tasks: tuple[Snapshot, ...], silence: Silence) -> None:
        """Grant what is asked, say why not, or keep the question until the count is long enough."""
        by, now = self._asked[run.id], self._clock.now()
        apart = run.policy.dead_man_apart
        number = int(now.timestamp() // max(apart.total_seconds(), 1.0))
        lately = any(
            self._ledger.replayed(SCOPE, f"{run.id}/{one}", now - apart) is not None for one in (number, number - 1)
        )
        why = deadman.refusal(run, tasks, silence, lately=lately)
        waits = why is not None and run.policy.dead_man and tasks and not lately
        if waits and silence.quiet < run.policy.dead_man_after:
            return
        del self._asked[run.id]
        if why is not None:
            _LOG.info("%s asked for %s, and nothing is granted: %s", by, run.id, why)
            fact = Fact(FactKind.RUN_DEAD_MAN_REFUSED, run.id, None, {"by": by, "why": why})
            await self._ledger.commit(Commit(facts=(fact,)))
            return
        idle = [one.task.id for one in tasks if deadman.idle(one)]
        fact = Fact(FactKind.RUN_DEAD_MAN, run.id, None, {"by": by, "tasks": len(idle)})
        key = Key(SCOPE, f"{run.id}/{number}", "0" * 64, {"tasks": len(idle)})
        commit = deadman.granted(tasks, now, self._mint.new).then(Commit(facts=(fact,), key=key))
        if isinstance(await self._ledger.commit(commit), Committed):
            _LOG.warning("%s asked for %s, which is silent: %s of its tasks are looked after", by, run.id, len(idle))
            for task_id in idle:
                self._ring(task_id)
