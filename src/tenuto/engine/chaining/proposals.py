"""The pull requests of a chain that advances itself: which one a task hands in, and how it ends here.

A task has one for good. What is wrong with a pull request itself is said to whoever hands it in; what becomes of it
later is written with its reason. Nothing here merges.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from tenuto.core import authority, settle
from tenuto.core.draft import Draft
from tenuto.engine.chaining.asked import HandOff
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.hosts import Hosts
from tenuto.model.chain import Blocker, Chain, Link, Outcome
from tenuto.model.change import Commit, Row
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Mistake, Refused
from tenuto.model.forge import ForgePlace, Look, NoPull, PullFacts, PullState, Unreachable
from tenuto.model.ids import ChainId, ProposalId
from tenuto.model.lifecycle import PROPOSAL, ProposalEvent, ProposalState
from tenuto.model.merging import Mandate, Proposal
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import WaitKind
from tenuto.ports import Forge

_PULL = re.compile(r"/pulls?/(\d{1,15})\b|(?:^|\s)#(\d{1,15})\b")


class Proposals:
    """Finds, opens and settles them."""

    def __init__(self, books: Books, hosts: Hosts) -> None:
        self._books = books
        self.hosts = hosts

    def mandate(self, chain_id: ChainId) -> Mandate | None:
        return self._books.ledger.mandate(chain_id)

    def forge(self, mandate: Mandate) -> Forge:
        return self.checked(mandate.forge)

    def checked(self, place: ForgePlace) -> Forge:
        """The host at a place; Mistake for a place that cannot be."""
        if self.hosts.forges is None:
            raise Mistake("no hosts of repositories are asked here", field="forge")
        return self.hosts.forges.open(place)

    async def look(self, mandate: Mandate, number: int) -> Look:
        """What the host says of one pull request now."""
        return await asyncio.to_thread(self.forge(mandate).pull, number)

    async def base(self, mandate: Mandate) -> str | Unreachable:
        """The branch that is merged to: the mandate's, or what the host calls its default one now."""
        if mandate.base is not None:
            return mandate.base
        found = await asyncio.to_thread(self.forge(mandate).base, None)
        return found if isinstance(found, Unreachable) else found.branch

    async def open(self, chain: Chain, link: Link, mandate: Mandate, snapshot: Snapshot, word: HandOff) -> bool:
        """Hand a pull request in, and claim that the unit is done, in one commit; whether it was written.

        Raises Refused with what is wrong with it.
        """
        facts = await self._meant(chain, link, mandate, word)
        if facts.state is PullState.CLOSED:
            raise Refused(f"pull request {facts.number} is closed, or has nothing that its base has not", field="pull")
        base = await self.base(mandate)
        if isinstance(base, Unreachable):
            raise Refused(f"the host cannot be asked: {base.why}", see="try again")
        if (held := authority.unfit(chain, replace(mandate, base=base), facts)) is not None:
            raise Refused(f"this pull request cannot be merged by the chain: {held.why}", field="pull", see=held.change)
        now = self._books.clock.now()
        row = Proposal(
            id=ProposalId(self._books.mint.new("proposal")),
            revision=1,
            chain_id=chain.id,
            task_id=link.task_id,
            unit=link.unit,
            state=ProposalState.OPEN,
            number=facts.number,
            branch=facts.branch,
            base=facts.base,
            head=facts.head,
            url=facts.url,
            opened_at=now,
        )
        draft = Draft(snapshot, now, self._books.mint.new)
        if not draft.task.terminal and draft.task.claim is None:
            settle.claim(draft, word.evidence or facts.url, f"unit {link.unit} is to be merged", snapshot.live)
        fact = self.fact(FactKind.PROPOSAL_OPENED, chain, row)
        looked = replace(chain, revision=chain.revision + 1, look_at=now)
        return await self._books.commit((draft.commit() or Commit()).then(Commit(puts=(row, looked), facts=(fact,))))

    async def _meant(self, chain: Chain, link: Link, mandate: Mandate, word: HandOff) -> PullFacts:
        """The pull request that is named by number or branch, or that the unit's evidence or its worktree name."""
        forge = self.forge(mandate)
        number, branch = word.pull, word.branch
        if number is None and branch is None:
            named = _PULL.search(word.evidence or "")
            number = int(named[1] or named[2]) if named is not None else None
        if number is None and branch is None:
            phase = next((one for one in self._books.ledger.phases(chain.id) if one.unit == link.unit), None)
            tree = self._books.ledger.worktree_of(link.task_id)
            number = phase.number if phase is not None else None
            branch = tree.branch if tree is not None else None
        if number is not None:
            found: Look = await asyncio.to_thread(forge.pull, number)
        elif branch is not None:
            several = await asyncio.to_thread(forge.pulls, branch)
            if isinstance(several, Unreachable):
                raise Refused(f"the host cannot be asked: {several.why}", see="try again")
            opened = [one for one in several if one.state is PullState.OPEN]
            newest = next(iter(opened or several), None)
            found = newest if newest is not None else NoPull(f"branch {branch} has no pull request")
        else:
            raise Refused("this chain merges what is handed in: name the pull request", field="pull",
                          see="its number, or its branch")  # fmt: skip
        match found:
            case Unreachable(why):
                raise Refused(f"the host cannot be asked: {why}", see="try again")
            case NoPull(why):
                raise Refused(why, field="pull")
            case PullFacts():
                return found

    # -- how it ends

    def moved(self, proposal: Proposal, **fields: object) -> Proposal:
        """The row with other fields."""
        return replace(proposal, revision=proposal.revision + 1, **fields)  # type: ignore[arg-type]

    def ended(self, chain: Chain, proposal: Proposal, event: ProposalEvent, reason: str, commit: str | None) -> Commit:
        """It was merged, or turned down."""
        kind = FactKind.PROPOSAL_MERGED if event is ProposalEvent.MERGED else FactKind.PROPOSAL_TURNED_DOWN
        row = self.moved(
            proposal,
            state=PROPOSAL.after(proposal.state, event),
            reason=reason[:2000],
            merged_as=commit,
            settled_at=self._books.clock.now(),
        )
        looked = replace(chain, revision=chain.revision + 1, look_at=self._books.clock.now())
        return Commit(puts=(row, looked), facts=(self.fact(kind, chain, row),))

    async def turn_down(self, chain: Chain, proposal: Proposal, why: str) -> None:
        """It is not merged, for good; its unit may be tried again."""
        await self._books.commit(self.ended(chain, proposal, ProposalEvent.TURNED_DOWN, why, None))

    async def foreign(self, chain: Chain, proposal: Proposal, facts: PullFacts) -> None:
        """It was merged past the wrapper: that is evidence all the same, and a person is told."""
        commit = facts.merged_as or facts.head
        why = f"pull request {proposal.number} was merged by somebody else, as {commit}, past the gates of its chain"
        draft = Draft(self._books.snapshot(proposal.task_id), self._books.clock.now(), self._books.mint.new)
        draft.wait(WaitKind.HUMAN, f"{why}. Look at what was merged, and say that you have seen it")
        told: dict[str, Scalar] = {"chain": chain.id, "number": proposal.number, "commit": commit}
        fact = Fact(FactKind.MERGE_FOREIGN, chain.run_id, proposal.task_id, told)
        asked = (draft.commit() or Commit()).then(Commit(facts=(fact,)))
        ended = self.ended(chain, proposal, ProposalEvent.MERGED, why, commit)
        await self._books.commit(asked.then(ended))

    async def cleared(self, proposal: Proposal) -> None:
        """Throw away the checkouts that its gate and its reviewers stood in; what a death left is found by the next."""
        if self.hosts.checkouts is not None:
            for one in (proposal, *self._books.ledger.proposals(proposal.chain_id, 3)):
                if one.id == proposal.id or one.state is not ProposalState.OPEN:
                    await asyncio.to_thread(self.hosts.checkouts.clear, one.id)

    def came_to(self, chain: Chain, link: Link, mandate: Mandate, proposal: Proposal) -> HandOff:
        """What is recorded of the unit of a proposal that has ended."""
        if proposal.state is ProposalState.MERGED:
            return HandOff(Outcome.DONE, f"{proposal.url} merged as {proposal.merged_as}")
        return self.failed(chain, link, mandate, proposal.reason or "it was turned down")

    def failed(self, chain: Chain, link: Link, mandate: Mandate, why: str) -> HandOff:
        """Another try, or at the cap a blocker that stops the chain."""
        reviews = self._books.ledger.reviewed(chain.id, link.unit)
        if link.attempt >= chain.attempt_cap or reviews >= mandate.reviews:
            on = f"{link.attempt} attempts and {reviews} reviews, the last: {why}"[:500]
            return HandOff(Outcome.BLOCKED, why, Blocker(f"task {link.task_id}", on, "a person has looked at it"))
        return HandOff(Outcome.FAILED, why)

    def fact(self, kind: FactKind, chain: Chain, proposal: Proposal, **more: Scalar) -> Fact:
        told: dict[str, Scalar] = {
            "chain": chain.id, "number": proposal.number, "unit": proposal.unit, "head": proposal.head,
            "because": (proposal.reason or "")[:500],
        }  # fmt: skip
        return Fact(kind, chain.run_id, proposal.task_id, {**told, **more})

    async def put(self, chain: Chain, proposal: Proposal, fact: Fact | None = None, *more: Row) -> None:
        """Write a proposal as it is now; the chain is looked at again at once."""
        looked = replace(chain, revision=chain.revision + 1, look_at=self._books.clock.now())
        await self._books.commit(Commit(puts=(proposal, looked, *more), facts=() if fact is None else (fact,)))
