"""Chains: what became of a unit is recorded at its source, and the next unit is given to the next task, once.

There is one advance, and everybody calls it: the agent that hands off, the operator, and the supervisor itself when a
unit's task has ended. The record is a command, armed before the source is touched; once it is proven to stand there,
one transaction settles it, counts, moves the cursor and makes the successor. Whoever comes second finds it done. A
record may be tried again after any crash, because a source takes one marker once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from tenuto.core import chain as rules
from tenuto.core.chain import Finding
from tenuto.engine.calling import Caller, Done
from tenuto.engine.chaining.advance import Advance, Ahead
from tenuto.engine.chaining.asked import (
    AT_WORK,
    LISTED,
    OUT_OF_ORDER,
    PRESSED,
    TRIES,
    Foreseen,
    HandOff,
    Helpers,
    Start,
    Stepped,
)
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.clearing import Clearing
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chaining.merging import Merging
from tenuto.engine.chaining.phasing import Opening, Phasing
from tenuto.engine.chaining.preparing import Nowhere, Preparing
from tenuto.engine.chaining.recording import Recording, judged
from tenuto.engine.chaining.starting import Starting
from tenuto.engine.chaining.sweeping import Sweeping
from tenuto.engine.chaining.units import Units
from tenuto.engine.cycle import Cycle
from tenuto.engine.spawning import Spawning
from tenuto.model.chain import Chain, Link, Outcome
from tenuto.model.change import Commit
from tenuto.model.fact import FactKind, Scalar
from tenuto.model.faults import Conflict, NoSupervisor, NotFound, OutOfReach, Refused, StorageFull
from tenuto.model.ids import ChainId, TaskId, TextId, WorktreeId
from tenuto.model.lifecycle import ChainEvent, ChainState, WorktreeState
from tenuto.model.phase import Phase
from tenuto.model.policy import Policy
from tenuto.model.snapshot import Role
from tenuto.model.worktree import Worktree
from tenuto.ports import Clock, Fuse, Ledger, Minter, UnitSources

__all__ = ["Chains", "Foreseen", "HandOff", "Helpers", "Opening", "Start", "Stepped"]

_LOG = logging.getLogger("tenuto.chains")


class Chains:
    """The verbs of chains, and the one step they share."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        clock: Clock,
        minter: Minter,
        slots: int,
        defaults: Policy,
        spawning: Spawning,
        sources: UnitSources | None,
        fuse: Fuse,
        helpers: Helpers,
        hosts: Hosts | None = None,
    ) -> None:
        self._books = Books(ledger, cycle, clock, minter, slots, fuse, helpers)
        self._units = Units(self._books, sources)
        self._recording = Recording(self._books, self._units)
        hosts = hosts or Hosts()
        trees, history = hosts.trees or Nowhere(), hosts.history
        self.merging = Merging(self._books, cycle, spawning, hosts)
        self._preparing = Preparing(self._books, self._units, trees)
        self._clearing = Clearing(self._books, self._preparing)
        self.phasing = Phasing(self._books, history, hosts)
        sweeping = Sweeping(self._books, self._units, history)
        ahead = Ahead(self._preparing, self.phasing, sweeping, self._clearing)
        self._advance = Advance(self._books, self._units, self._recording, spawning, self.merging, ahead)
        self._starting = Starting(self._books, self._units, defaults, trees, history)
        self._sweeping = ahead.sweeping
        self._later: dict[ChainId, datetime] = {}
        self._heard: dict[ChainId, frozenset[str]] = {}

    # -- verbs that change something

    async def start(self, caller: Caller, asked: Start, key: str | None) -> Done:
        """Make a chain and its first task. Raises Mistake with the field to mend; what is refused has made nothing."""
        caller.must_operate()
        self._books.help.must_lead()
        if asked.merging is not None:
            self.merging.proposals.checked(asked.merging.forge)
        done = await self._starting.start(caller, asked, key)
        if done.replayed:
            return done
        stepped = await self.step(ChainId(str(done.result["chain"])), asked=True)
        return Done({**done.result, "task": stepped.task_id, "because": stepped.because})

    async def hand_off(self, caller: Caller, task_id: TaskId, word: HandOff) -> Done:
        """Record what became of a task's unit, and give the next one to its successor: once, however often it is said.

        A claim that its acceptance has to judge is only made; the supervisor hands over when it is proven.
        """
        caller.may(task_id)
        self._books.help.must_lead()
        link = self._books.ledger.link_of(task_id)
        if link is None:
            raise Refused("this task has no unit of a chain", field="task")
        if (why := rules.may_hand_off(word.outcome, word.evidence, word.blocker, word.checks)) is not None:
            raise Refused(why.why, see=why.change)
        if word.outcome is Outcome.DONE and self.merging.proposals.mandate(link.chain_id) is not None:
            return await self._hand_in(caller, link, word)
        async with self._books.turn(link.chain_id):
            for _ in range(TRIES):
                if await self.merging.dropped(link, "its task handed off something else"):
                    continue
                snapshot = self._books.snapshot(task_id)
                link = self._books.ledger.link_of(task_id) or link
                if link.outcome is not None:
                    said_before = link.outcome is word.outcome is Outcome.DONE and not word.only_record
                    if not said_before or snapshot.task.terminal or await self._recording.claimed(snapshot, word):
                        break
                    continue
                if not snapshot.task.terminal:
                    await self._books.help.in_time(caller, snapshot, "handoff")
                elif snapshot.task.disposition is not None and caller.role is not Role.OPERATOR:
                    raise Refused(f"the task is {snapshot.task.state}; the supervisor records that", field="task")
                chain = self._books.chain(link.chain_id)
                lands = chain.phases and word.outcome is Outcome.DONE
                if lands and word.pull is not None and self.phasing.of(chain, link.unit) is None:
                    await self.phasing.open(task_id, Opening(word.pull, word.branch))
                    continue
                if lands:
                    self.phasing.must_be_open(chain, link)
                if lands or judged(snapshot.task, word):
                    if await self._recording.claimed(snapshot, word):
                        return Done({"chain": link.chain_id, "task": task_id, "successor": None, "judged": True})
                    continue
                if await self._recording.arm(chain, link, snapshot, word):
                    break
            else:
                raise Conflict("the task is changing too fast; try again", field="task")
        link = self._books.ledger.link_of(task_id) or link
        if link.outcome is not word.outcome:
            raise Conflict(f"what became of this unit is recorded already: {link.outcome}", field="outcome")
        await self._advance.step(link.chain_id, asked=False, of=task_id, now_on=not word.only_record)
        return Done(self._told(task_id))

    async def _hand_in(self, caller: Caller, link: Link, word: HandOff) -> Done:
        """Hand in what is to be merged: the unit is recorded, and handed over, when that is done."""
        async with self._books.turn(link.chain_id):
            for _ in range(TRIES):
                if await self.merging.handed_in(caller, link, word):
                    break
            else:
                raise Conflict("the task is changing too fast; try again", field="task")
        await self._advance.step(link.chain_id, asked=False, of=link.task_id, now_on=False)
        return Done(self._told(link.task_id))

    async def merge(self, caller: Caller, given: ChainId) -> Done:
        """Merge what a chain has handed in, as far as its gates hold. Raises Refused with the gate that does not."""
        caller.must_operate()
        self._books.help.must_lead()
        if self.merging.proposals.mandate(given) is None:
            see = "tenuto chain start --merge-at WHERE --allow merge"
            raise Refused("this chain merges nothing", field="chain", see=see)
        stepped = await self.step(given, asked=True)
        standing = await self.merging.standing(given)
        if standing is not None and standing.held:
            held = standing.held[0]
            raise Refused(held.why, see=held.change)
        return Done({"chain": given, "task": stepped.task_id, "because": stepped.because})

    async def advance(self, caller: Caller, given: ChainId) -> Done:
        """Make one step now: what the supervisor would do by itself, and what only a person may ask for."""
        caller.must_operate()
        self._books.help.must_lead()
        stepped = await self.step(given, asked=True)
        return Done({"chain": given, "task": stepped.task_id, "state": stepped.chain.state, "because": stepped.because})

    async def stop(self, caller: Caller, given: ChainId, reason: str) -> Done:
        """End a chain: no further unit is begun. Its task goes on, and what it comes to is recorded."""
        caller.must_operate()
        self._books.help.must_lead()
        async with self._books.turn(given):
            for _ in range(TRIES):
                chain = self._books.chain(given)
                if chain.state is not ChainState.OPEN:
                    return Done({"chain": given, "state": chain.state, "changed": False})
                ended = self._books.ended(chain, ChainEvent.STOPPED, reason or f"stopped by {caller.name}")
                link = self._books.last(chain)
                if link is not None and link.recorded_at is None:
                    ended = replace(ended, look_at=self._books.clock.now() + AT_WORK)
                ended, note = await self._sweeping.noted(ended)
                told = Commit(puts=(ended,), facts=(self._books.fact(FactKind.CHAIN_ENDED, ended),))
                if await self._books.commit(note.then(told)):
                    return Done({"chain": given, "state": ended.state, "changed": True})
        raise Conflict("the chain is changing too fast; try again", field="chain")

    # -- verbs that look

    def chains(self, *, unfinished: bool = False) -> tuple[Chain, ...]:
        """Newest first."""
        return self._books.ledger.chains(LISTED, unfinished=unfinished)

    def chain(self, given: ChainId) -> Chain:
        """One chain; NotFound where there is none."""
        return self._books.chain(given)

    def links(self, given: ChainId) -> tuple[Link, ...]:
        """What the chain gave to tasks, newest first."""
        return self._books.ledger.links(given, LISTED)

    def link_of(self, task_id: TaskId) -> Link:
        """The link of a task; Refused where it has no unit."""
        link = self._books.ledger.link_of(task_id)
        if link is None:
            raise Refused("this task has no unit of a chain", field="task")
        return link

    async def foresee(self, given: ChainId) -> Foreseen:
        """What the next step would be, from what is durable now."""
        return await self._units.foresee(given)

    async def sweep(self, given: ChainId) -> tuple[Finding, ...]:
        """Every unit with the evidence that decides how it stands; nothing is put right."""
        return await self._sweeping.sweep(self._books.chain(given))

    # -- worktrees and phases

    def worktrees(self, given: ChainId | None) -> tuple[Worktree, ...]:
        """Those of a chain, whatever became of them; without one, those that stand somewhere. Newest first."""
        return self._clearing.of(given)

    async def remove(self, caller: Caller, given: WorktreeId) -> Done:
        """Take a worktree away now, if all of its work is elsewhere; nothing else is ever removed."""
        caller.must_operate()
        self._books.help.must_lead()
        row = self._books.ledger.worktree(given)
        if row is None:
            raise NotFound(f"there is no worktree {given}", field="worktree")
        if row.state not in (WorktreeState.READY, WorktreeState.KEPT):
            return Done({"worktree": given, "state": row.state, "because": row.reason})
        task = self._books.ledger.task(row.task_id)
        if (task is not None and not task.terminal) or self._books.snapshot(row.task_id).live is not None:
            raise Refused(f"task {row.task_id} works in it", field="worktree")
        why = await self._clearing.one(row)
        after = self._books.ledger.worktree(given) or row
        return Done({"worktree": given, "task": row.task_id, "state": after.state, "path": row.path, "because": why})

    def phases(self, given: ChainId) -> tuple[Phase, ...]:
        """The pull requests of a chain's units, in the order in which they were recorded."""
        return self._books.ledger.phases(self._books.chain(given).id)

    async def open_phase(self, caller: Caller, task_id: TaskId, said: Opening) -> Done:
        """Record the pull request that a task has opened for its unit."""
        caller.may(task_id)
        self._books.help.must_lead()
        snapshot = self._books.snapshot(task_id)
        if not snapshot.task.terminal:
            await self._books.help.in_time(caller, snapshot, "phase")
        return await self.phasing.open(task_id, said)

    def text(self, given: TextId) -> str | None:
        """One of our own texts."""
        found = self._books.ledger.text(given)
        return None if found is None else found.body

    # -- by itself

    async def tend(self) -> datetime | None:
        """Step every chain that is due; when the next moment is."""
        for chain_id in self.due():
            await self.tend_one(chain_id)
        return self.soonest()

    def due(self) -> tuple[ChainId, ...]:
        """Chains whose moment has come, that have news, or whose worktrees can be cleared."""
        tended = self._books.ledger.tended()
        known = {chain.id for chain in tended}
        for remembered in (self._later, self._heard):
            for gone in [one for one in remembered if one not in known]:
                del remembered[gone]
        return tuple(chain.id for chain in tended if self._due(chain))

    def soonest(self, but: Collection[ChainId] = ()) -> datetime | None:
        """The next moment of any chain but these; None: there is none."""
        rest = (chain for chain in self._books.ledger.tended() if chain.id not in but)
        moments = (self._later.get(chain.id, chain.look_at) for chain in rest)
        return min((moment for moment in moments if moment is not None), default=None)

    async def tend_one(self, chain_id: ChainId) -> None:
        """One step of one chain, and then its worktrees; a fault of its own only puts it off."""
        try:
            before = self._books.chain(chain_id)
            news = self._news(before)
            stepped = await self.step(chain_id, asked=False)
            await self._clearing.round(self._books.chain(chain_id), kept=stepped.chain.position != before.position)
            await self._rested(self._books.chain(chain_id))
            self._later.pop(chain_id, None)
            self._heard[chain_id] = news
        except (OutOfReach, StorageFull, NoSupervisor) as why:
            _LOG.info("tending %s is put off: %s", chain_id, why)
            self._later[chain_id] = self._books.clock.now() + OUT_OF_ORDER
        except Exception:  # noqa: BLE001 - one chain's fault must not end the others' night
            _LOG.exception("tending %s failed", chain_id)
            self._later[chain_id] = self._books.clock.now() + PRESSED

    async def _rested(self, chain: Chain) -> None:
        """A chain that has ended, recorded everything and cleared its worktrees is not looked at any more."""
        link = self._books.last(chain)
        over = chain.state is not ChainState.OPEN and chain.base is not None and chain.look_at is not None
        if over and link is not None and link.recorded_at is not None and not self._clearing.left(chain):
            await self._books.put(replace(chain, look_at=None), Commit(), chain.reason or "")

    def _due(self, chain: Chain) -> bool:
        now = self._books.clock.now()
        if (later := self._later.get(chain.id)) is not None and later > now:
            return False
        if chain.look_at is not None and chain.look_at <= now:
            return True
        if self._clearing.due(chain):
            return True
        return not self._news(chain) <= self._heard.get(chain.id, frozenset())

    def _news(self, chain: Chain) -> frozenset[str]:
        """What a chain is stepped for before its moment comes, by name: the end of its task, of a gate, of a review.

        Each is worth one step; whatever is still to be waited for after that has its moment. A step that failed does
        not count, and a supervisor that was started anew makes one step more.
        """
        link = self._books.last(chain)
        task = self._books.ledger.task(link.task_id) if link is not None else None
        if link is None or task is None:
            return frozenset()
        apart = link.handed_at is None and link.outcome is not Outcome.GIVEN_UP
        ended = {f"task {task.id}"} if task.terminal and (link.recorded_at is None or apart) else set()
        return frozenset(ended | self.merging.news(link))

    # -- the step

    async def step(self, chain_id: ChainId, *, asked: bool) -> Stepped:
        """The one advance: record what is not recorded, then give the next unit away, as far as that may be now."""
        return await self._advance.step(chain_id, asked=asked, of=None, now_on=asked)

    def _told(self, task_id: TaskId) -> dict[str, Scalar]:
        """How a hand-off stands, from what is durable: the same answer however late it is asked again."""
        link = self.link_of(task_id)
        chain = self._books.chain(link.chain_id)
        newest = chain.position - link.position
        later = self._books.ledger.links(chain.id, newest) if newest > 0 else ()
        following = next((one for one in later if one.predecessor == task_id), None)
        proposal = self._books.ledger.proposal_of(task_id)
        return {
            "pull": proposal.number if proposal is not None else None,
            "chain": chain.id,
            "task": task_id,
            "unit": link.unit,
            "outcome": link.outcome,
            "recorded": link.recorded_at is not None,
            "successor": following.task_id if following is not None else None,
            "next_unit": following.unit if following is not None else None,
            "state": chain.state,
            "because": chain.reason,
        }
