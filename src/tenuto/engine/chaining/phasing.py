"""Phases of a chain: a pull request is recorded when it is opened, and its unit counts when its merge is in the base.

The chain watches by itself. How often it looks grows with how long it has waited, so that a merge is seen soon and a
long wait costs little. A pull request that was closed, and a task that ended without one, are a person's to judge; the
chain asks, and goes on watching all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tenuto.core import phases as rules
from tenuto.engine.calling import Done
from tenuto.engine.chaining.asked import OUT_OF_ORDER, TRIES, HandOff, Stepped
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chaining.watching import Watch
from tenuto.model.chain import Chain, Link, Outcome
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, Refused
from tenuto.model.forge import ForgePlace, Look
from tenuto.model.ids import PhaseId, TaskId
from tenuto.model.lifecycle import PHASE, PhaseEvent, PhaseState
from tenuto.model.phase import Phase
from tenuto.ports import History

#: The shortest and the longest time between two looks, and which part of the time waited lies between them.
SOONEST, LATEST, PART = timedelta(seconds=1), timedelta(minutes=1), 0.1
NOTED = {
    PhaseState.MERGED: FactKind.PHASE_MERGED,
    PhaseState.REVERTED: FactKind.PHASE_REVERTED,
    PhaseState.CLOSED: FactKind.PHASE_CLOSED,
    PhaseState.OPEN: FactKind.PHASE_OPENED,
}


@dataclass(frozen=True)
class Opening:
    """What a task says of the pull request it has opened for its unit."""

    number: int
    branch: str | None = None
    url: str | None = None


class Phasing:
    """Records pull requests, and watches the base."""

    def __init__(self, books: Books, history: History | None, hosts: Hosts) -> None:
        self._books = books
        self._history = history
        self._hosts = hosts

    # -- recording

    async def open(self, task_id: TaskId, said: Opening) -> Done:
        """Record the pull request of a task's unit; another number takes its place as long as nothing has landed."""
        link = self._books.ledger.link_of(task_id)
        if link is None:
            raise Refused("this task has no unit of a chain", field="task")
        if not 1 <= said.number < 2**31:
            raise Mistake("a pull request has a number of at least 1", field="pull")
        for _ in range(TRIES):
            chain = self._books.chain(link.chain_id)
            if not chain.phases:
                raise Refused("this chain has no phases", field="task", see="tenuto chain start --phases")
            known = self.of(chain, link.unit)
            if known is not None and known.number == said.number:
                return Done(self._told(chain, known))
            if known is not None and known.state is PhaseState.MERGED:
                raise Conflict(f"unit {link.unit} has landed with pull request {known.number}", field="pull")
            phase = self._opened(link, known, said)
            if await self._written(chain, link.task_id, phase):
                return Done(self._told(chain, phase))
        raise Conflict("the chain is changing too fast; try again", field="chain")

    def _opened(self, link: Link, known: Phase | None, said: Opening) -> Phase:
        now = self._books.clock.now()
        tree = self._books.ledger.worktree_of(link.task_id)
        branch = said.branch or (tree.branch if tree is not None else None)
        if known is None:
            return Phase(
                id=PhaseId(self._books.mint.new("phase")), revision=1, chain_id=link.chain_id, unit=link.unit,
                task_id=link.task_id, number=said.number, state=PhaseState.OPEN, opened_at=now, branch=branch,
                url=said.url,
            )  # fmt: skip
        state = known.state if known.state is PhaseState.OPEN else PHASE.after(known.state, PhaseEvent.REOPENED)
        return replace(
            known, revision=known.revision + 1, task_id=link.task_id, number=said.number, state=state, branch=branch,
            url=said.url, head=None, landing=None, undone_by=(), settled_at=None, reason=None,
        )  # fmt: skip

    async def _written(self, chain: Chain, task_id: TaskId, phase: Phase) -> bool:
        looked = replace(chain, revision=chain.revision + 1, look_at=self._books.clock.now(), asks=None)
        return await self._books.commit(Commit(puts=(phase, looked), facts=(self._fact(chain, task_id, phase),)))

    def of(self, chain: Chain, unit: str) -> Phase | None:
        return next((one for one in self._books.ledger.phases(chain.id) if one.unit == unit), None)

    def must_be_open(self, chain: Chain, link: Link) -> None:
        """Refused where a unit is said to be done before its pull request is recorded."""
        if chain.phases and self.of(chain, link.unit) is None:
            raise Refused(
                "a unit of this chain is done when its pull request has landed, and none is recorded",
                field="outcome",
                see="tenuto phase open --pr NUMBER, or the tool phase_open",
            )

    # -- watching

    async def bring(self, chain: Chain, link: Link, word: HandOff, *, asked: bool) -> HandOff | Stepped | None:
        """What is to be recorded of a unit whose task says it is done: when its pull request is part of the base."""
        phase = self.of(chain, link.unit) or await self._found(chain, link)
        if phase is None:
            if asked:
                return HandOff(Outcome.FAILED, "its task ended, and no pull request was recorded")
            why = f"task {link.task_id} says that unit {link.unit} is done, and no pull request of it is recorded"
            mend = f"tenuto phase open {link.task_id} --pr NUMBER, or tenuto chain advance {chain.id} for another try"
            return await self._waits(chain, why, f"{why}: {mend}", link.handed_at or chain.created_at)
        watched = await self._look(chain)
        if not isinstance(watched, Chain):
            return watched
        chain = watched
        phase = self.of(chain, link.unit) or phase
        if phase.state is PhaseState.MERGED and phase.landing is not None:
            named = phase.url or f"pull request {phase.number}"
            return replace(word, evidence=f"{named} landed as {phase.landing.commit}")
        if phase.state is PhaseState.CLOSED and asked:
            return HandOff(Outcome.FAILED, f"pull request {phase.number} was closed: {phase.reason}"[:2000])
        return await self._waits(chain, rules.sentence(phase), self._asks(chain, phase), phase.opened_at)

    async def held(self, chain: Chain, before: Commit) -> Stepped | Chain | None:
        """Why no further unit may be begun, told after a fresh look; the chain as it is then, where one may."""
        phases = self._books.ledger.phases(chain.id)
        if not chain.phases or not phases:
            return chain
        watched: Chain | Stepped | None = chain
        if before == Commit():  # else it was looked at a moment ago, for the unit that is recorded with it
            watched = await self._look(chain)
        if not isinstance(watched, Chain):
            return watched
        blocking = rules.first_blocking(self._books.ledger.phases(chain.id))
        if blocking is None:
            return watched
        since = blocking.settled_at or blocking.opened_at
        return await self._waits(watched, rules.sentence(blocking), self._asks(watched, blocking), since, before)

    async def _look(self, chain: Chain) -> Chain | Stepped | None:
        """Every phase as it stands now; None: something moved meanwhile."""
        if self._history is None or chain.base is None:
            return await self._books.rest(chain, "the base of its phases cannot be looked at here", OUT_OF_ORDER)
        before = self._books.ledger.phases(chain.id)
        trees = self._books.ledger.worktrees(100_000, chain_id=chain.id)
        begun_at = {row.task_id: row.begun_at_commit for row in trees if row.begun_at_commit is not None}
        begun = {one.unit: begun_at[one.task_id] for one in before if one.task_id in begun_at}
        now = self._books.clock.now()
        watch = Watch(self._history, chain.cwd, chain.base, self._said(chain))
        found = await watch.look(before, begun, chain.seen, now)
        if isinstance(found, str):
            return await self._books.rest(chain, f"the base {chain.base} cannot be looked at: {found}", OUT_OF_ORDER)
        changed = [
            replace(after, revision=after.revision + 1)
            for after, was in zip(found.phases, before, strict=True)
            if after != was
        ]
        if not changed and found.base == chain.seen:
            return chain
        facts = tuple(
            self._fact(chain, after.task_id, after)
            for after in changed
            if any(was.id == after.id and was.state is not after.state for was in before)
        )
        looked = replace(chain, revision=chain.revision + 1, seen=found.base)
        self._books.fuse.burn("phase.looked")
        done = await self._books.commit(Commit(puts=(*changed, looked), facts=facts))
        self._books.fuse.burn("phase.committed")
        return looked if done else None

    async def _found(self, chain: Chain, link: Link) -> Phase | None:
        """The pull request of a unit's branch by the word of its host, where its task has not recorded it."""
        place, tree = self._place(chain), self._books.ledger.worktree_of(link.task_id)
        if place is None or self._hosts.forges is None or tree is None:
            return None
        said = await asyncio.to_thread(self._hosts.forges.open(place).pulls, tree.branch)
        if not isinstance(said, tuple) or not said:
            return None
        phase = self._opened(link, None, Opening(said[0].number, said[0].branch, said[0].url))
        return phase if await self._written(self._books.chain(chain.id), link.task_id, phase) else None

    def _said(self, chain: Chain) -> Callable[[int], Look] | None:
        place = self._place(chain)
        if place is None or self._hosts.forges is None:
            return None
        return self._hosts.forges.open(place).pull

    def _place(self, chain: Chain) -> ForgePlace | None:
        """The host of a chain's pull requests; None: it has none, and its remote alone is asked."""
        mandate = self._books.ledger.mandate(chain.id)
        if mandate is not None:
            return mandate.forge if mandate.forge.kind != "git" else None
        return ForgePlace("github", chain.repo) if chain.repo.startswith("github.com/") else None

    # -- waiting

    async def _waits(
        self, chain: Chain, why: str, asks: str | None, since: datetime, before: Commit | None = None
    ) -> Stepped | None:
        now = self._books.clock.now()
        wait = min(max((now - since) * PART, SOONEST), LATEST)
        return await self._books.wait(replace(chain, asks=asks), before or Commit(), why, wait)

    def _asks(self, chain: Chain, phase: Phase) -> str | None:
        """What a person is asked about a phase; None: it settles by itself."""
        if phase.state is not PhaseState.CLOSED:
            return None
        return (
            f"{rules.sentence(phase)}. Reopen it, or record another: tenuto phase open {phase.task_id} --pr NUMBER; "
            f"or have the unit done again: tenuto chain advance {chain.id}"
        )

    # -- telling

    def _told(self, chain: Chain, phase: Phase) -> dict[str, Scalar]:
        return {
            "chain": chain.id, "task": phase.task_id, "unit": phase.unit, "pull": phase.number, "state": phase.state,
        }  # fmt: skip

    def _fact(self, chain: Chain, task_id: TaskId, phase: Phase) -> Fact:
        data: dict[str, Scalar] = {"chain": chain.id, "unit": phase.unit, "number": phase.number}
        if phase.state is PhaseState.MERGED and phase.landing is not None:
            data |= {"how": phase.landing.how, "commit": phase.landing.commit}
        if phase.state is PhaseState.REVERTED:
            data["why"] = (phase.reason or "")[:500]
        return Fact(NOTED[phase.state], chain.run_id, task_id, data)
