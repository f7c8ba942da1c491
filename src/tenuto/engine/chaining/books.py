"""The rows of chains: read one, write one, and wait for one's turn.

Every change of a chain goes through here as one commit that is written or not; who was too late looks again. It decides
nothing about units.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never
from weakref import WeakValueDictionary

from tenuto.engine.chaining.asked import Helpers, Stepped
from tenuto.engine.concern import concerned
from tenuto.engine.cycle import Cycle
from tenuto.model.chain import Chain, Link
from tenuto.model.change import Busy, Commit, Committed, KeyConflict, NotLeader, Replayed, Stale
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import NoSupervisor, NotFound
from tenuto.model.ids import ChainId, CommandId, RunId, TaskId
from tenuto.model.lifecycle import CHAIN, ChainEvent, CommandState
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Task
from tenuto.ports import Clock, Fuse, Ledger, Minter


class Books:
    """What the parts of chains share: the ledger, the clock, and who is to be rung."""

    def __init__(
        self, ledger: Ledger, cycle: Cycle, clock: Clock, minter: Minter, slots: int, fuse: Fuse, helpers: Helpers
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.mint = minter
        self.fuse = fuse
        self.help = helpers
        self._cycle = cycle
        self._slots = slots
        self._turns: WeakValueDictionary[ChainId, asyncio.Lock] = WeakValueDictionary()

    @property
    def epoch(self) -> int:
        """The epoch that decides here; NoSupervisor where none does."""
        if self._cycle.epoch is None:
            raise NoSupervisor("no supervisor of this registry is deciding here")
        return self._cycle.epoch

    def command(
        self, kind: CommandKind, task_id: TaskId, scopes: tuple[str, ...], executor: str, now: datetime
    ) -> Command:
        """A command that is about to be written ahead: what it is, for whom, and what nobody else may touch."""
        command_id = CommandId(self.mint.new("command"))
        told = hashlib.sha256(repr((kind.value, scopes, command_id)).encode()).hexdigest()
        return Command(
            id=command_id,
            revision=1,
            kind=kind,
            task_id=task_id,
            attempt_id=None,
            conversation_id=None,
            executor=executor,
            state=CommandState.ARMED,
            epoch=self.epoch,
            fence=told,
            scopes=scopes,
            created_at=now,
            digest=told,
            armed_at=now,
        )

    def armed(self, command: Command, run_id: RunId) -> Fact:
        """The fact that a command is written ahead."""
        data: dict[str, Scalar] = {"command": command.id, "kind": command.kind}
        return Fact(FactKind.COMMAND_ARMED, run_id, command.task_id, data)

    def chain(self, given: ChainId) -> Chain:
        chain = self.ledger.chain(given)
        if chain is None:
            raise NotFound(f"there is no chain {given}", field="chain")
        return chain

    def last(self, chain: Chain) -> Link | None:
        return next(iter(self.ledger.links(chain.id, 1)), None)

    def snapshot(self, task_id: TaskId) -> Snapshot:
        snapshot = self.ledger.snapshot(task_id, self._slots)
        if snapshot is None:
            raise NotFound(f"there is no task {task_id}", field="task")
        return snapshot

    def turn(self, chain_id: ChainId) -> asyncio.Lock:
        lock = self._turns.get(chain_id)
        if lock is None:
            lock = self._turns[chain_id] = asyncio.Lock()
        return lock

    async def wait(self, chain: Chain, commit: Commit, why: str, wait: timedelta) -> Stepped | None:
        changed = replace(chain, reason=why[:2000], look_at=self.clock.now() + wait)
        facts = () if chain.reason == changed.reason else (self.fact(FactKind.CHAIN_WAITS, changed),)
        return await self.put(changed, commit.then(Commit(facts=facts)), why)

    async def rest(self, chain: Chain, why: str, wait: timedelta) -> Stepped | None:
        return await self.put(replace(chain, reason=why[:2000], look_at=self.clock.now() + wait), Commit(), why)

    async def end(self, chain: Chain, commit: Commit, event: ChainEvent, why: str) -> Stepped | None:
        ended = self.ended(chain, event, why)
        whole = commit.then(Commit(puts=(ended,), facts=(self.fact(FactKind.CHAIN_ENDED, ended),)))
        return Stepped(ended, None, why) if await self.commit(whole) else None

    def ended(self, chain: Chain, event: ChainEvent, why: str) -> Chain:
        state = CHAIN.after(chain.state, event)
        now = self.clock.now()
        look_at = now if chain.base is not None else None  # its worktrees are cleared afterwards
        return replace(
            chain, revision=chain.revision + 1, state=state, ended_at=now, reason=why[:2000], look_at=look_at, asks=None
        )

    async def put(self, chain: Chain, commit: Commit, why: str) -> Stepped | None:
        changed = replace(chain, revision=chain.revision + 1)
        return Stepped(changed, None, why) if await self.commit(commit.then(Commit(puts=(changed,)))) else None

    async def commit(self, commit: Commit) -> bool:
        """Whether it was written; False: something moved meanwhile, or somebody else was first."""
        match await self.ledger.commit(commit):
            case Committed():
                tasks = {row.id for row in commit.puts if isinstance(row, Task)}
                for task_id in (*tasks, *concerned(self.ledger, commit)):
                    self.help.ring(task_id)
                return True
            case NotLeader(epoch):
                raise NoSupervisor(f"another supervisor leads now (epoch {epoch})")
            case Stale() | Busy() | Replayed() | KeyConflict():
                return False
            case _ as never:
                assert_never(never)

    def fact(self, kind: FactKind, chain: Chain) -> Fact:
        data: dict[str, Scalar] = {"chain": chain.id, "state": chain.state, "because": (chain.reason or "")[:500]}
        return Fact(kind, chain.run_id, None, data)
