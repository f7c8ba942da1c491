"""The one wrapper through which a chain merges: gate, review, every gate once more, and then one command.

A merge is written before it is asked for and is asked for once. What came of it is what the host says afterwards: the
marker in the merge's message says whose it was. A merge that the host has not made long after it was asked for, at a
head that still stands, is proven undone, because a host merges a pull request once and only at the expected head.
"""

from __future__ import annotations

import asyncio
import hashlib
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
from tenuto.engine.chaining.proposals import Proposals
from tenuto.engine.chaining.reviewing import Reviewing
from tenuto.engine.cycle import Cycle
from tenuto.engine.spawning import Spawning
from tenuto.model.chain import Chain, Link, Outcome
from tenuto.model.change import Commit, Guard
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import Conflict, Mistake, Refused
from tenuto.model.forge import (
    Doubtful,
    Look,
    Merge,
    Merged,
    MergeMethod,
    NoPull,
    NotMerged,
    PullFacts,
    PullState,
    Unreachable,
)
from tenuto.model.ids import ChainId, CommandId
from tenuto.model.lifecycle import ChainState, CommandEvent, CommandState, ProposalEvent, ProposalState
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.snapshot import Role

#: What carries out a merge; it is no executor of turns.
FORGE = "forge"
UNASKED = "the host cannot be asked"
#: After this a merge that cannot be looked up is a person's matter as well.
LONG = timedelta(minutes=15)
#: How soon the host is looked at again after a merge was asked for.
SOON = timedelta(seconds=2)
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
        self._cycle = cycle
        self._hosts = hosts
        self.proposals = Proposals(books, hosts)
        self._gating = Gating(books, self.proposals, cycle)
        self.reviewing = Reviewing(books, self.proposals, spawning)

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

    def due(self, chain: Chain, link: Link) -> bool | None:
        """Whether a unit that is being merged has something new by itself; None: it is not being merged."""
        proposal = self._books.ledger.proposal_of(link.task_id)
        if link.command_id is not None:
            return None
        if proposal is None:
            return False if (chain.reason or "").startswith(UNASKED) else None
        if proposal.state is not ProposalState.OPEN:
            return True
        gate = None if proposal.gate_command is None else self._books.ledger.command(proposal.gate_command)
        if gate is not None and not gate.open and proposal.gate is None:
            return True
        review = self.reviewing.newest(proposal)
        reviewer = self._books.ledger.task(review.task_id) if review is not None and review.verdict is None else None
        return reviewer is not None and reviewer.terminal

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
            return await self._settle(chain, mandate, proposal, merge, facts)
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
        return await self._merge(chain, mandate, proposal, case)

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

    async def _merge(self, chain: Chain, mandate: Mandate, proposal: Proposal, case: Case) -> Stepped | None:
        """Arm the merge, with everything that was looked at guarded by the transaction; then ask for it, once."""
        now, ledger = self._books.clock.now(), self._books.ledger
        registry, review = ledger.registry(), case.review
        if review is None:
            return None
        command_id = CommandId(self._books.mint.new("command"))
        scopes = (f"chain:{chain.id}", f"repo:{mandate.forge.kind}:{mandate.forge.location}")
        told = repr((chain.id, chain.revision, proposal, case.facts, review))
        command = Command(
            id=command_id,
            revision=1,
            kind=CommandKind.MERGE,
            task_id=proposal.task_id,
            attempt_id=None,
            conversation_id=None,
            executor=FORGE,
            state=CommandState.ARMED,
            epoch=self._books.epoch,
            fence=hashlib.sha256(told.encode()).hexdigest(),
            scopes=scopes,
            created_at=now,
            digest=hashlib.sha256(f"{proposal.number} {proposal.head}".encode()).hexdigest(),
            armed_at=now,
            target=proposal.head,
        )
        armed = self.proposals.moved(proposal, merge_command=command_id)
        looked = replace(chain, revision=chain.revision + 1, look_at=now + SOON)
        commit = Commit(
            puts=(command, armed, looked),
            facts=(Fact(FactKind.COMMAND_ARMED, chain.run_id, proposal.task_id,
                        {"command": command_id, "kind": CommandKind.MERGE}),),
            guards=(Guard("registry", registry.id, registry.revision), Guard("review", review.id, review.revision)),
            holds=tuple((scope, command_id) for scope in scopes),
            valid_until=case.facts_at + case.policy.merge_facts,
        )  # fmt: skip
        self._books.fuse.burn("merge.before_commit")
        if authority.gates(self._case(chain, mandate, proposal, case.facts, case.facts_at, asked=case.asked), now):
            return None
        if not await self._books.commit(commit):
            return None
        self._books.fuse.burn("merge.armed")
        order = Merge(
            proposal.number, proposal.head, proposal.base, mandate.method, self._title(proposal), command.marker
        )
        return await self._ask(looked, mandate, armed, command, order)

    async def _ask(
        self, chain: Chain, mandate: Mandate, proposal: Proposal, command: Command, order: Merge
    ) -> Stepped | None:
        """Ask the host for an armed merge. What it answers settles nothing but its own refusal."""
        if (why := self.stopped()) is not None or not self._cycle.holds():
            await self._undone(chain, proposal, command, why or "the lease could not be renewed in time")
            return None
        answer = await asyncio.to_thread(self.proposals.forge(mandate).merge, order)
        self._books.fuse.burn("merge.asked")
        match answer:
            case Merged():
                return None
            case NotMerged(why, _, after):
                await self._undone(chain, proposal, command, why, timedelta(seconds=after))
                return None
            case Doubtful(why, after):
                draft = Draft(self._books.snapshot(proposal.task_id), self._books.clock.now(), self._books.mint.new)
                draft.command(command, CommandEvent.BEGUN, detail=why[:500])
                wait = timedelta(seconds=after)
                told = f"whether pull request {order.number} was merged is not known yet: {why}"
                return await self._books.wait(chain, draft.commit() or Commit(), told, max(wait, SOON))

    async def _settle(
        self, chain: Chain, mandate: Mandate, proposal: Proposal, command: Command, facts: Look
    ) -> Stepped | None:
        """What the host says of a merge that was armed: done, undone, or not known yet."""
        now = self._books.clock.now()
        since = now - (command.armed_at or command.created_at)
        over = timedelta(seconds=self.proposals.forge(mandate).over)
        match facts:
            case PullFacts(state=PullState.MERGED):
                ours = facts.marker == command.marker
                rebased = mandate.method is MergeMethod.REBASE and facts.marker is None and facts.head == command.target
                draft = Draft(self._books.snapshot(proposal.task_id), now, self._books.mint.new)
                begun = () if command.state is not CommandState.ARMED else (CommandEvent.BEGUN,)
                if ours or rebased:
                    draft.command(
                        command,
                        *begun,
                        CommandEvent.ACKNOWLEDGED,
                        evidence=f"merged as {facts.merged_as or facts.head}",
                    )
                    told = f"merged as {facts.merged_as or facts.head}"
                    ended = self.proposals.ended(
                        chain, proposal, ProposalEvent.MERGED, told, facts.merged_as or facts.head
                    )
                    if await self._books.commit((draft.commit() or Commit()).then(ended)):
                        self._books.fuse.burn("merge.settled")
                    return None
                draft.command(command, CommandEvent.PROVEN_UNDONE, detail="it was merged by another hand")
                await self._books.commit(draft.commit() or Commit())
                return None
            case PullFacts(state=PullState.OPEN) if facts.head == command.target and since < over:
                wait = min(over - since, timedelta(seconds=15))
                return await self._books.rest(chain, f"pull request {proposal.number}: its merge was asked for", wait)
            case PullFacts(state=PullState.OPEN) if facts.head == command.target:
                why = f"{int(since.total_seconds())} s after it was asked for, the host has it open at that commit"
                await self._undone(chain, proposal, command, why)
                return None
            case PullFacts():
                await self._undone(chain, proposal, command, f"it is {facts.state} at {facts.head[:12]}")
                return None
            case NoPull(why):
                await self._undone(chain, proposal, command, why)
                return None
            case Unreachable(why, after):
                return await self._unseen(chain, proposal, command, why, max(OUT_OF_ORDER, timedelta(seconds=after)))

    async def _unseen(
        self, chain: Chain, proposal: Proposal, command: Command, why: str, wait: timedelta
    ) -> Stepped | None:
        """A merge whose host does not answer stays open; after long it stands in attention as well."""
        now = self._books.clock.now()
        commit = Commit()
        if now - (command.armed_at or now) >= LONG and command.state is not CommandState.AMBIGUOUS:
            draft = Draft(self._books.snapshot(proposal.task_id), now, self._books.mint.new)
            draft.command(command, CommandEvent.DOUBTED, detail=f"the host cannot be asked: {why}"[:500])
            commit = draft.commit() or Commit()
        return await self._books.wait(chain, commit, f"the host cannot be asked: {why}", wait)

    async def _undone(
        self, chain: Chain, proposal: Proposal, command: Command, why: str, wait: timedelta = timedelta(0)
    ) -> None:
        """Nothing was merged, and nothing of this command can be any more."""
        draft = Draft(self._books.snapshot(proposal.task_id), self._books.clock.now(), self._books.mint.new)
        draft.command(command, CommandEvent.PROVEN_UNDONE, detail=why[:500])
        looked = replace(
            self._books.chain(chain.id),
            look_at=self._books.clock.now() + wait,
            reason=f"it was not merged: {why}"[:2000],
        )
        looked = replace(looked, revision=looked.revision + 1)
        await self._books.commit((draft.commit() or Commit()).then(Commit(puts=(looked,))))

    @staticmethod
    def _title(proposal: Proposal) -> str:
        return f"{proposal.unit} (#{proposal.number})"[:200]

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
