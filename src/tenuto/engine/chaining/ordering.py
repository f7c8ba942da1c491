"""One merge as a command: armed, asked for once, and settled by what its host says afterwards.

The host's answer settles nothing but its own refusal. The marker in the merge's message says whose it was. A merge that
the host has not made long after it was asked for, at a head that still stands, is proven undone, because a host merges
a pull request once and only at the expected head.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from tenuto.core.authority import Case
from tenuto.core.draft import Draft
from tenuto.engine.chaining.asked import OUT_OF_ORDER, Stepped
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.proposals import Proposals
from tenuto.engine.cycle import Cycle
from tenuto.model.chain import Chain
from tenuto.model.change import Commit, Guard
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import Fact, FactKind
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
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import CommandEvent, CommandState, ProposalEvent
from tenuto.model.merging import Mandate, Proposal

#: What carries out a merge; it is no executor of turns.
FORGE = "forge"
#: After this a merge that cannot be looked up is a person's matter as well.
LONG = timedelta(minutes=15)
#: How soon the host is looked at again after a merge was asked for.
SOON = timedelta(seconds=2)


class Ordering:
    """Arms merges, and settles them. `stopped` says why none may be asked for now."""

    def __init__(self, books: Books, cycle: Cycle, proposals: Proposals, stopped: Callable[[], str | None]) -> None:
        self._books = books
        self._cycle = cycle
        self._proposals = proposals
        self._stopped = stopped

    async def order(
        self, chain: Chain, mandate: Mandate, proposal: Proposal, case: Case, held: Callable[[], bool]
    ) -> Stepped | None:
        """Arm the merge, with everything that was looked at guarded by the transaction; then ask for it, once.

        `held` walks every gate again, right before it is written down.
        """
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
        armed = self._proposals.moved(proposal, merge_command=command_id)
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
        if held():
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
        if (why := self._stopped()) is not None or not self._cycle.holds():
            await self._undone(chain, proposal, command, why or "the lease could not be renewed in time")
            return None
        answer = await asyncio.to_thread(self._proposals.forge(mandate).merge, order)
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

    async def settle(
        self, chain: Chain, mandate: Mandate, proposal: Proposal, command: Command, facts: Look
    ) -> Stepped | None:
        """What the host says of a merge that was armed: done, undone, or not known yet."""
        now = self._books.clock.now()
        since = now - (command.armed_at or command.created_at)
        over = timedelta(seconds=self._proposals.forge(mandate).over)
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
                    ended = self._proposals.ended(
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
