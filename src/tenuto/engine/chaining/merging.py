"""The one wrapper through which a chain merges: gate, review, every gate once more, and then one command.

It brings what a task hands in to its end, one step at a time, from what the rows and the host say now. What is merged
past it is evidence all the same, and a person is told. Why it waits stands in the chain's row, and nothing that an
agent says opens a gate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tenuto.core import authority, settle
from tenuto.core.authority import Case, Held, Stop
from tenuto.core.draft import Draft
from tenuto.engine.calling import Caller, Done
from tenuto.engine.chaining.asked import OUT_OF_ORDER, TRIES, HandOff, Stepped
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.gating import Gating
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chaining.ordering import Ordering
from tenuto.engine.chaining.proposals import Proposals
from tenuto.engine.chaining.reviewing import Reviewing
from tenuto.engine.cycle import Cycle
from tenuto.engine.spawning import Spawning
from tenuto.model.chain import Chain, Link, Outcome
from tenuto.model.change import Commit
from tenuto.model.command import CommandKind
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import Conflict, Mistake, Refused
from tenuto.model.forge import (
    NoPull,
    PullFacts,
    PullState,
    Unreachable,
)
from tenuto.model.ids import ChainId
from tenuto.model.lifecycle import ChainState, ProposalEvent, ProposalState
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.snapshot import Role

UNASKED = "the host cannot be asked"
PERSON = timedelta(minutes=5)


@dataclass(frozen=True)
class Standing:
    """How the merging of a chain stands: nothing was done to find out, and `held` is every gate that does not hold."""

    mandate: Mandate
    proposal: Proposal | None
    reviews: tuple[Review, ...]
    held: tuple[Held, ...]
    switch: str | None


class Merging:
    """Brings the pull request of a chain's unit to its end."""

    def __init__(self, books: Books, cycle: Cycle, spawning: Spawning, hosts: Hosts) -> None:
        self._books = books
        self._hosts = hosts
        self.proposals = Proposals(books, hosts)
        self._gating = Gating(books, self.proposals, cycle)
        self.reviewing = Reviewing(books, self.proposals, spawning)
        self._ordering = Ordering(books, cycle, self.proposals, self.stopped)

    # -- what chains ask

    def stopped(self) -> str | None:
        """Why chains that advance themselves are stopped, all of them; None: they are not."""
        registry = self._books.ledger.registry()
        if registry.merging_off_at is not None:
            return f"{registry.merging_off_by} has stopped the chains that advance themselves"
        return self._hosts.switch()

    def halts(self, chain: Chain) -> str | None:
        """Why a chain that advances itself gives no unit away now; None: it may, or it is another kind of chain."""
        return self.stopped() if self.proposals.mandate(chain.id) is not None else None

    def told(self, chain: Chain, unit: str) -> str:
        """What the task of a unit is told of merging, and why its last pull request was turned down."""
        mandate = self.proposals.mandate(chain.id)
        if mandate is None:
            return ""
        last = next((one for one in self._books.ledger.proposals(chain.id, 1) if one.unit == unit), None)
        before = ""
        if last is not None and last.state is ProposalState.TURNED_DOWN:
            before = f"\nPull request {last.number} ({last.branch}) for it was turned down: {last.reason}\n"
        return authority.told(chain.id, mandate) + before

    def given_up(self, chain: Chain, link: Link) -> str | None:
        """Why a chain stops after this unit until the operator asks it on: what it handed in was turned down."""
        if link.outcome is not Outcome.BLOCKED or self._books.ledger.proposal_of(link.task_id) is None:
            return None
        why = link.evidence or "it is blocked"
        return f"unit {link.unit} was not merged: {why}; to go on: tenuto chain advance {chain.id}"

    async def handed_in(self, caller: Caller, link: Link, word: HandOff) -> bool:
        """Take what a task hands in for its unit, once; whether that stands. Raises Refused with what is wrong."""
        if word.only_record:
            raise Refused("this chain records what was merged", field="outcome", see="hand off, with the pull request")
        chain, mandate = self._books.chain(link.chain_id), self.proposals.mandate(link.chain_id)
        link = self._books.ledger.link_of(link.task_id) or link
        snapshot = self._books.snapshot(link.task_id)
        task, known = snapshot.task, self._books.ledger.proposal_of(link.task_id)
        if known is not None and (task.terminal or task.claim is not None):
            return True
        if link.outcome is not None:
            raise Conflict(f"what became of this unit is recorded already: {link.outcome}", field="outcome")
        if not task.terminal:
            await self._books.help.in_time(caller, snapshot, "handoff")
        elif caller.role is not Role.OPERATOR:
            raise Refused(f"the task is {task.state}; the supervisor records that", field="task")
        if known is not None:
            draft = Draft(snapshot, self._books.clock.now(), self._books.mint.new)
            settle.claim(draft, word.evidence or known.url, f"unit {link.unit} is to be merged", snapshot.live)
            commit = draft.commit()
            return commit is not None and await self._books.commit(commit)
        return mandate is not None and await self.proposals.open(chain, link, mandate, snapshot, word)

    async def dropped(self, link: Link, why: str) -> bool:
        """Turn down what a task had handed in and stands by no more; whether there was anything, so look again."""
        proposal = self._books.ledger.proposal_of(link.task_id)
        if proposal is None or proposal.state is not ProposalState.OPEN:
            return False
        merge = None if proposal.merge_command is None else self._books.ledger.command(proposal.merge_command)
        if merge is not None and merge.open:
            return False
        await self.proposals.turn_down(self._books.chain(link.chain_id), proposal, why)
        return True

    def news(self, link: Link) -> set[str]:
        """What has ended by itself of a unit that is being merged, and was not taken up yet; each by its name."""
        proposal = self._books.ledger.proposal_of(link.task_id)
        if proposal is None or link.command_id is not None:
            return set()
        if proposal.state is not ProposalState.OPEN:
            return {f"proposal {proposal.id}"}
        found = set()
        gate = None if proposal.gate_command is None else self._books.ledger.command(proposal.gate_command)
        if gate is not None and not gate.open and proposal.gate is None:
            found.add(f"gate {gate.id}")
        review = self.reviewing.newest(proposal)
        reviewer = self._books.ledger.task(review.task_id) if review is not None and review.verdict is None else None
        if reviewer is not None and reviewer.terminal:
            found.add(f"review {reviewer.id}")
        return found

    # -- the step

    async def step(
        self, chain: Chain, link: Link, mandate: Mandate, word: HandOff, *, asked: bool
    ) -> HandOff | Stepped | None:
        """What a unit whose task is completed comes to: a word to record, a reason to wait, or None: look again."""
        proposal = self._books.ledger.proposal_of(link.task_id)
        if proposal is None:
            return await self._unopened(chain, link, mandate, word)
        if proposal.state is not ProposalState.OPEN:
            await self.proposals.cleared(proposal)
            return self.proposals.came_to(chain, link, mandate, proposal)
        merge = None if proposal.merge_command is None else self._books.ledger.command(proposal.merge_command)
        facts_at = self._books.clock.now()
        try:
            facts = await self.proposals.look(mandate, proposal.number)
        except Mistake as mistake:
            return await self._books.rest(chain, str(mistake), PERSON)
        if merge is not None and merge.open:
            return await self._ordering.settle(chain, mandate, proposal, merge, facts)
        match facts:
            case Unreachable(why, after):
                wait = max(OUT_OF_ORDER, timedelta(seconds=after))
                return await self._books.rest(chain, f"{UNASKED}: {why}", wait)
            case NoPull(why):
                await self.proposals.turn_down(chain, proposal, why)
                return None
            case PullFacts():
                base = await self.proposals.base(mandate)
                if isinstance(base, Unreachable):
                    return await self._books.rest(chain, f"{UNASKED}: {base.why}", OUT_OF_ORDER)
                return await self._bring(chain, replace(mandate, base=base), proposal, facts, facts_at, asked=asked)

    async def _unopened(self, chain: Chain, link: Link, mandate: Mandate, word: HandOff) -> HandOff | Stepped | None:
        """Its task ended without handing anything in: what it named is taken, or it has failed."""
        try:
            await self.proposals.open(chain, link, mandate, self._books.snapshot(link.task_id), word)
        except Refused as why:
            if str(why).startswith(UNASKED):
                return await self._books.rest(chain, str(why), OUT_OF_ORDER)
            return self.proposals.failed(chain, link, mandate, f"it is not merged: {why}")
        except Mistake as why:
            return await self._books.rest(chain, str(why), PERSON)
        return None

    async def _bring(
        self, chain: Chain, mandate: Mandate, proposal: Proposal, facts: PullFacts, facts_at: datetime, *, asked: bool
    ) -> Stepped | None:
        """One step of an open proposal towards its merge."""
        if facts.state is PullState.MERGED:
            await self._found_merged(chain, proposal, facts)
            return None
        if facts.state is PullState.CLOSED:
            if asked:
                await self.proposals.turn_down(chain, proposal, "it was closed without being merged")
                return None
            why = f"pull request {proposal.number} was closed without being merged; reopen it, or: tenuto chain advance"
            return await self._books.wait(replace(chain, asks=f"{why} {chain.id}"), Commit(), why, PERSON)
        if chain.asks is not None:
            chain = replace(chain, asks=None)
        if chain.state is not ChainState.OPEN:
            await self.proposals.turn_down(chain, proposal, f"the chain is {chain.state}; it is left open")
            return None
        if (halt := self.stopped()) is not None:
            return await self._books.wait(
                chain, Commit(), f"pull request {proposal.number} is open; {halt}", OUT_OF_ORDER
            )
        if facts.head != proposal.head or facts.base != proposal.base:
            moved = self.proposals.moved(
                proposal, head=facts.head, base=facts.base, gate=None, gate_tries=0, reason=None
            )
            await self.proposals.put(chain, moved, self.proposals.fact(FactKind.PROPOSAL_MOVED, chain, moved))
            return None
        case = self._case(chain, mandate, proposal, facts, facts_at, asked=asked)
        held = authority.gates(case, self._books.clock.now())
        if (down := next((one for one in held if one.stop is Stop.DOWN), None)) is not None:
            await self.proposals.turn_down(chain, proposal, down.why)
            return None
        for one in held:
            if one.stop is Stop.PERSON and one.gate != "asked":
                return await self._books.wait(chain, Commit(), f"{one.why}: {one.change}", PERSON)
        if proposal.gate is None or proposal.gate_head != proposal.head:
            return await self._held(chain, proposal, await self._gating.step(chain, mandate, proposal))
        if any(one.gate in ("review", "reviews") for one in held):
            return await self._held(chain, proposal, await self.reviewing.step(chain, mandate, proposal))
        if held:
            return await self._held(chain, proposal, held[0])

        def closed() -> bool:
            again = self._case(chain, mandate, proposal, facts, facts_at, asked=asked)
            return bool(authority.gates(again, self._books.clock.now()))

        return await self._ordering.order(chain, mandate, proposal, case, closed)

    async def _held(self, chain: Chain, proposal: Proposal, held: Held | None) -> Stepped | None:
        if held is None:
            return None
        if held.stop is Stop.DOWN:
            await self.proposals.turn_down(chain, proposal, held.why)
            return None
        current = self._books.chain(chain.id)
        wait = PERSON if held.stop is Stop.PERSON else held.after
        return await self._books.wait(current, Commit(), f"pull request {proposal.number}: {held.why}", wait)

    async def _found_merged(self, chain: Chain, proposal: Proposal, facts: PullFacts) -> None:
        """It is merged: by a command of ours, however late it is seen, or past the wrapper."""
        if facts.marker is not None and self._ours(proposal, facts.marker):
            told = f"merged as {facts.merged_as or facts.head}"
            ended = self.proposals.ended(chain, proposal, ProposalEvent.MERGED, told, facts.merged_as or facts.head)
            await self._books.commit(ended)
            return
        await self.proposals.foreign(chain, proposal, facts)

    def _ours(self, proposal: Proposal, marker: str) -> bool:
        """Whether a marker is of a merge that was armed for this very proposal."""
        commands = self._books.ledger.commands(100, task_id=proposal.task_id)
        return any(one.kind is CommandKind.MERGE and one.marker == marker for one in commands)

    # -- the command

    def _case(
        self, chain: Chain, mandate: Mandate, proposal: Proposal, facts: PullFacts, facts_at: datetime, *, asked: bool
    ) -> Case:
        policy = self._books.snapshot(proposal.task_id).run.policy
        review = self.reviewing.newest(proposal)
        return Case(
            chain=chain,
            mandate=mandate,
            proposal=proposal,
            facts=facts,
            facts_at=facts_at,
            review=review,
            kin=self.reviewing.kin(review, proposal) if review is not None else None,
            switch=self.stopped(),
            held=self._books.ledger.registry().held_at is not None,
            merges=self._books.ledger.merges(chain.id, self._books.clock.now() - policy.merge_window),
            reviewed=self._books.ledger.reviewed(chain.id, proposal.unit),
            policy=policy,
            asked=asked,
        )

    # -- verbs

    async def standing(self, chain_id: ChainId) -> Standing | None:
        """How the merging of a chain stands now; None for a chain that merges nothing."""
        chain, mandate = self._books.chain(chain_id), self.proposals.mandate(chain_id)
        if mandate is None:
            return None
        proposal = next(iter(self._books.ledger.proposals(chain_id, 1)), None)
        if proposal is None:
            return Standing(mandate, None, (), (), self.stopped())
        reviews = self._books.ledger.reviews(proposal.id, 20)
        held: tuple[Held, ...] = ()
        if proposal.state is ProposalState.OPEN:
            at = self._books.clock.now()
            match await self.proposals.look(mandate, proposal.number):
                case PullFacts() as facts:
                    base = await self.proposals.base(mandate)
                    known = replace(mandate, base=base if isinstance(base, str) else mandate.base)
                    case = self._case(chain, known, proposal, facts, at, asked=False)
                    held = authority.gates(case, self._books.clock.now())
                case NoPull(why) | Unreachable(why):
                    held = (Held("host", why, "a host that answers", Stop.WAIT),)
        return Standing(mandate, proposal, reviews, held, self.stopped())

    async def switch(self, caller: Caller, *, off: bool) -> Done:
        """Stop every chain that advances itself, or let them go on."""
        caller.must_operate()
        self._books.help.must_lead()
        for _ in range(TRIES):
            registry, now = self._books.ledger.registry(), self._books.clock.now()
            if (registry.merging_off_at is not None) == off:
                return Done({"on": not off, "changed": False})
            changed = replace(
                registry,
                revision=registry.revision + 1,
                merging_off_at=now if off else None,
                merging_off_by=caller.name if off else None,
            )
            kind = FactKind.MERGING_OFF if off else FactKind.MERGING_ON
            if await self._books.commit(Commit(puts=(changed,), facts=(Fact(kind, data={"by": caller.name}),))):
                return Done({"on": not off, "changed": True})
        raise Conflict("the registry is changing too fast; try again")
