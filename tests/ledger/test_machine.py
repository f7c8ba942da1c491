"""Whatever the order of commits, kills of the lease and settlements: what the ledger alone can promise holds.

Two supervisors and three tasks, driven at random over the real ledger. After every step: at most one open command per
scope, no command without an armed row behind it, no epoch that lost its lease wrote after it did, and every unique
truth is single.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.ledger.world import SECOND, Counting, Place, SetClock, Turn, candidate, place, turn, wake

from tenuto.model.change import Busy, Commit, Committed, NotLeader, Result, Stale
from tenuto.model.command import Armed, Command
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import AttemptState, CommandState, TaskState
from tenuto.model.snapshot import Leadership
from tenuto.model.work import Disposition, DispositionSource, WakeKind
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry

T = TypeVar("T")
TASKS = st.integers(0, 2)
SUPERVISORS = st.integers(0, 1)
DONE = Disposition("done", DispositionSource.OPERATOR, TaskState.ACTIVE, None, verified=False)


class LedgerMachine(RuleBasedStateMachine):
    """The model is what was acknowledged; the ledger must say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="tenuto-machine-"))
        self.clock, self.ids = SetClock(), Counting()
        self.loop = asyncio.new_event_loop()
        where = self.directory / "registry.sqlite3"
        self.ledgers: list[TableLedger] = [open_registry(where, self.clock, minter=self.ids) for _ in range(2)]
        self.leases: list[Leadership | None] = [None, None]
        self.leads: int | None = None
        self.armed: dict[CommandId, Command] = {}
        self.events = 0
        self.places: list[Place] = [place(self.ids) for _ in range(3)]
        self.take(0)
        for here in self.places:
            self.told(0, Commit(puts=here.rows))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def told(self, who: int, commit: Commit) -> Result:
        """Commit, and check the answer against who leads."""
        result = self.do(self.ledgers[who].commit(commit))
        assert isinstance(result, NotLeader) == (self.leads != who), (result, who, self.leads)
        if isinstance(result, Committed):
            self.events += len(commit.facts)
            assert result.n == self.events
            for made in result.armed:
                assert isinstance(made, Armed)
                assert made.command.id not in self.armed
                self.armed[made.command.id] = made.command
        return result

    @rule(who=SUPERVISORS)
    def take(self, who: int) -> None:
        lease = self.do(self.ledgers[who].lead(candidate(f"s{who}", self.clock.now()), lambda _holder: True))
        assert lease is not None
        assert all(other is None or lease.epoch > other.epoch for other in self.leases)
        self.leases[who], self.leads = lease, who

    @rule(who=SUPERVISORS)
    def resign(self, who: int) -> None:
        lease = self.leases[who]
        if lease is not None:
            self.do(self.ledgers[who].resign(lease, self.clock.now()))
            if self.leads == who:
                self.leads = None

    @rule(seconds=st.integers(1, 20))
    def time_passes(self, seconds: int) -> None:
        self.clock.pass_(seconds * SECOND)

    @rule(who=SUPERVISORS, which=TASKS, borrowed=st.one_of(st.none(), TASKS), stale=st.booleans())
    def arm(self, who: int, which: int, borrowed: int | None, stale: bool) -> None:
        """Arm a turn; sometimes over another task's scope, sometimes on an old view of the task."""
        here, ledger = self.places[which], self.ledgers[who]
        snapshot = ledger.snapshot(here.task.id, 5)
        assert snapshot is not None
        number = max((attempt.number for attempt in ledger.attempts(here.task.id, 1)), default=0) + 1
        lease = self.leases[who]
        armed = turn(
            self.ids,
            replace(here, task=snapshot.task),
            epoch=lease.epoch if lease else 0,
            number=number,
            revision=snapshot.task.revision + (0 if stale else 1),
            now=self.clock.now(),
        )
        scope = f"task:{self.places[borrowed if borrowed is not None else which].task.id}"
        command = replace(armed.command, scopes=(scope,))
        live = snapshot.live is not None
        held = any(scope in other.scopes for other in ledger.commands(50, only_open=True))
        if snapshot.task.terminal and not stale:
            return
        result = self.told(who, replace(armed, command=command).commit())
        if isinstance(result, Committed):
            assert (live, held, stale) == (False, False, False)
        elif isinstance(result, Busy):
            assert live or held
        else:
            assert isinstance(result, Stale | NotLeader)

    @rule(who=SUPERVISORS, which=TASKS)
    def settle(self, who: int, which: int) -> None:
        snapshot = self.ledgers[who].snapshot(self.places[which].task.id, 5)
        assert snapshot is not None
        if snapshot.live is not None and snapshot.live_command is not None:
            left = Turn(snapshot.live, snapshot.live_command, snapshot.task)
            result = self.told(who, left.settled(self.clock.now()))
            assert isinstance(result, Committed | NotLeader)

    @rule(who=SUPERVISORS, which=TASKS, kind=st.sampled_from([WakeKind.IDLE, WakeKind.EVENT]))
    def add_wake(self, who: int, which: int, kind: WakeKind) -> None:
        snapshot = self.ledgers[who].snapshot(self.places[which].task.id, 5)
        assert snapshot is not None
        if not snapshot.task.terminal:
            pending = any(wake.kind is kind for wake in snapshot.wakes)
            result = self.told(who, Commit(puts=(wake(self.ids, snapshot.task, kind, self.clock.now()),)))
            assert isinstance(result, (Busy if pending else Committed) | NotLeader)

    @rule(who=SUPERVISORS, which=TASKS)
    @precondition(lambda self: self.leads is not None)
    def finish(self, who: int, which: int) -> None:
        """End a task that has no turn under way: its wakes go with it."""
        snapshot = self.ledgers[who].snapshot(self.places[which].task.id, 5)
        assert snapshot is not None
        if snapshot.task.terminal or snapshot.live is not None:
            return
        now = self.clock.now()
        ended = replace(
            snapshot.task,
            revision=snapshot.task.revision + 1,
            state=TaskState.COMPLETED,
            ended_at=now,
            disposition=DONE,
        )
        wakes = tuple(replace(row, revision=row.revision + 1, consumed_at=now) for row in snapshot.wakes)
        self.told(who, Commit(puts=(ended, *wakes)))

    @rule(who=SUPERVISORS)
    def restart(self, who: int) -> None:
        """A supervisor's process ends and another is started in its place; its lease is not its own any more."""
        self.do(self.ledgers[who].close())
        self.ledgers[who] = open_registry(self.directory / "registry.sqlite3", self.clock, minter=self.ids)
        self.leases[who] = None
        if self.leads == who:
            self.leads = None

    @invariant()
    def one_open_command_per_scope(self) -> None:
        scopes = Counter(scope for command in self.ledgers[0].commands(100, only_open=True) for scope in command.scopes)
        assert all(count == 1 for count in scopes.values())

    @invariant()
    def every_command_was_armed_under_the_epoch_that_led(self) -> None:
        stored = {command.id: command for command in self.ledgers[1].commands(1000)}
        assert set(stored) == set(self.armed)
        assert all(stored[name].epoch == command.epoch for name, command in self.armed.items())
        assert all(command.state is not CommandState.QUEUED for command in stored.values())

    @invariant()
    def one_live_attempt_per_task(self) -> None:
        for here in self.places:
            attempts = self.ledgers[0].attempts(here.task.id, 100)
            assert sum(attempt.state is AttemptState.LIVE for attempt in attempts) <= 1
            assert len({attempt.number for attempt in attempts}) == len(attempts)

    @invariant()
    def events_are_numbered_without_a_gap_and_epochs_never_go_back(self) -> None:
        events = self.ledgers[1].events(0, 10_000)
        assert [event.n for event in events] == list(range(1, self.events + 1))
        assert [event.epoch for event in events] == sorted(event.epoch for event in events)

    @invariant()
    def the_registry_agrees_with_itself(self) -> None:
        assert self.ledgers[0].check() == ()

    def teardown(self) -> None:
        for ledger in self.ledgers:
            self.do(ledger.close())
        self.loop.close()
        shutil.rmtree(self.directory)


LedgerMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestLedger = LedgerMachine.TestCase
