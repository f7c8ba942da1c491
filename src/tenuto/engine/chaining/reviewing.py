"""Independent review: a task of its own looks at one commit and says pass or block, once, by its own token.

The reviewer is made by the supervisor, in a run of its own and outside the line of whoever did the work. A verdict
about another commit than the one that was asked about is refused. A reviewer that ended without a verdict has said
nothing: another is asked, until the cap.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from tenuto.core import authority, settle
from tenuto.core.authority import Held, Stop
from tenuto.core.draft import Draft
from tenuto.engine.calling import Caller, Done
from tenuto.engine.chaining.asked import TRIES
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.gating import checkout_of
from tenuto.engine.chaining.proposals import Proposals
from tenuto.engine.spawning import Source, Spawn, Spawning
from tenuto.model.chain import Chain
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, NotAllowed, NotFound, Pressed, Refused
from tenuto.model.ids import ReviewId, TaskId
from tenuto.model.lifecycle import ProposalState, TaskEvent
from tenuto.model.merging import Mandate, Proposal, Review, Verdict
from tenuto.model.snapshot import Role
from tenuto.model.work import DispositionSource, Task

#: A review under way is looked at when its verdict comes; and after this, should nobody have rung.
LOOK = timedelta(minutes=5)
FINDINGS = 2000


class Reviewing:
    """Asks for reviews, and takes verdicts."""

    def __init__(self, books: Books, proposals: Proposals, spawning: Spawning) -> None:
        self._books = books
        self._proposals = proposals
        self._spawning = spawning

    def newest(self, proposal: Proposal) -> Review | None:
        return next(iter(self._books.ledger.reviews(proposal.id, 1)), None)

    async def step(self, chain: Chain, mandate: Mandate, proposal: Proposal) -> Held | None:
        """Why there is no verdict yet; None: there is one about this commit, or something was written."""
        review = self.newest(proposal)
        if review is not None and review.verdict is None:
            reviewer = self._books.ledger.task(review.task_id)
            if review.head != proposal.head:
                await self._void(chain, review, f"the head moved to {proposal.head[:12]}")
                return None
            if reviewer is None or reviewer.terminal:
                await self._void(chain, review, "its task ended without a verdict")
                return None
            return Held("review", f"task {review.task_id} is reviewing it", "its verdict", Stop.WAIT, LOOK)
        if review is not None and review.head == proposal.head and review.verdict is not Verdict.NONE:
            return None
        asked = self._books.ledger.reviewed(chain.id, proposal.unit)
        if asked >= mandate.reviews:
            last = "none said block" if review is None or review.verdict is Verdict.NONE else f"last: {review.findings}"
            return Held("reviews", f"its cap of {mandate.reviews} reviews is reached; {last}", "a person", Stop.DOWN)
        return await self._ask(chain, mandate, proposal, review)

    async def _ask(self, chain: Chain, mandate: Mandate, proposal: Proposal, before: Review | None) -> Held | None:
        """Make the task that reviews the proposal's commit."""
        number = (before.number if before is not None else 0) + 1
        cwd = chain.cwd
        if self._proposals.hosts.checkouts is not None:
            try:
                cwd = await asyncio.to_thread(
                    self._proposals.hosts.checkouts.make, checkout_of(chain, mandate, proposal)
                )
            except OSError as why:
                return Held("review", str(why), "the commit is within reach", Stop.WAIT, timedelta(seconds=30))
        asked = Spawn(
            prompt=authority.review_prompt(chain, proposal, number, mandate.method),
            title=f"Review of {proposal.unit}, pull request {proposal.number}",
            playbook=mandate.playbook,
            cwd=cwd,
            agent=mandate.reviewer,
            unattended=True,
        )
        async with self._spawning.lock:
            now = self._books.clock.now()
            try:
                made = self._spawning.made(Source(Role.OPERATOR, None, chain.id), asked, now)
            except (Mistake, Pressed, NotFound) as why:
                return Held("review", f"no reviewer can be made: {why}", "that is mended", Stop.WAIT, LOOK)
            review = Review(
                id=ReviewId(self._books.mint.new("review")),
                revision=1,
                proposal_id=proposal.id,
                task_id=made.task_id,
                number=number,
                head=proposal.head,
                asked_at=now,
            )
            counted = self._proposals.moved(proposal, reviews=proposal.reviews + 1)
            looked = replace(chain, revision=chain.revision + 1, look_at=now + LOOK)
            fact = self._proposals.fact(FactKind.REVIEW_ASKED, chain, counted, reviewer=made.task_id)
            self._books.fuse.burn("review.before_commit")
            done = await self._books.commit(made.commit.then(Commit(puts=(review, counted, looked), facts=(fact,))))
        if not done:
            return None
        self._books.fuse.burn("review.asked")
        return Held("review", f"task {made.task_id} is reviewing it", "its verdict", Stop.WAIT, LOOK)

    async def _void(self, chain: Chain, review: Review, why: str) -> None:
        """A review that comes to nothing: that is no verdict, and its task ends if it still goes on."""
        now = self._books.clock.now()
        said = replace(review, revision=review.revision + 1, verdict=Verdict.NONE, findings=why, said_at=now)
        draft = Draft(self._books.snapshot(review.task_id), now, self._books.mint.new)
        if not draft.task.terminal:
            draft.end_task(TaskEvent.CANCELLED, why, DispositionSource.OPERATOR, None, verified=False)
        looked = replace(chain, revision=chain.revision + 1, look_at=now)
        fact = self._said(chain, said)
        await self._books.commit((draft.commit() or Commit()).then(Commit(puts=(said, looked), facts=(fact,))))

    def kin(self, review: Review, proposal: Proposal) -> str | None:
        """Why a reviewer is not independent of who did the work; None: it is."""
        reviewer, worker = self._books.ledger.task(review.task_id), self._books.ledger.task(proposal.task_id)
        if reviewer is None or worker is None:
            return "the reviewer's task is not known any more"
        parents: dict[TaskId, TaskId | None] = {}
        for task in (reviewer, worker):
            one: Task | None = task
            while one is not None and one.id not in parents and len(parents) < authority.GENERATIONS:
                parents[one.id] = one.parent
                one = self._books.ledger.task(one.parent) if one.parent is not None else None
        return authority.kin(reviewer, worker, parents)

    async def verdict(self, caller: Caller, task_id: TaskId, verdict: Verdict, head: str, findings: str) -> Done:
        """What a reviewer says of the commit it was asked about, by its own token; that completes its task."""
        if caller.role not in (Role.AGENT, Role.COORDINATOR):
            raise NotAllowed("a verdict is the reviewer's own, by the token of its turn")
        caller.may(task_id)
        self._books.help.must_lead()
        if verdict is Verdict.BLOCK and not findings.strip():
            raise Mistake("say what has to change", field="findings")
        for _ in range(TRIES):
            review = self._books.ledger.review_of(task_id)
            proposal = None if review is None else self._books.ledger.proposal(review.proposal_id)
            if review is None or proposal is None:
                raise Refused("this task reviews nothing", field="task")
            told: dict[str, Scalar] = {"task": task_id, "verdict": verdict, "head": review.head}
            if review.verdict is verdict and head == review.head:
                return Done(told, replayed=True)
            if review.verdict is not None:
                raise Refused(f"this review is over: {review.verdict} ({review.findings or 'nothing was added'})")
            if head != review.head:
                raise Refused(f"it was asked about commit {review.head}", field="head", see="look at that commit")
            if proposal.state is not ProposalState.OPEN:
                raise Refused(f"the pull request is {proposal.state} by now")
            if (kin := self.kin(review, proposal)) is not None:
                raise Refused(kin)
            snapshot = self._books.snapshot(task_id)
            await self._books.help.in_time(caller, snapshot, "verdict")
            now, chain = self._books.clock.now(), self._books.chain(proposal.chain_id)
            said = replace(
                review, revision=review.revision + 1, verdict=verdict, findings=findings[:FINDINGS] or None, said_at=now
            )
            draft = Draft(snapshot, now, self._books.mint.new)
            if not draft.task.terminal and draft.task.claim is None:
                settle.claim(draft, f"{verdict} at {head}", "the review is done", snapshot.live)
            looked = replace(chain, revision=chain.revision + 1, look_at=now)
            commit = Commit(puts=(said, looked), facts=(self._said(chain, said),))
            self._books.fuse.burn("verdict.before_commit")
            if await self._books.commit((draft.commit() or Commit()).then(commit)):
                self._books.fuse.burn("verdict.committed")
                return Done(told)
        raise Conflict("the review is changing too fast; try again", field="task")

    def _said(self, chain: Chain, review: Review) -> Fact:
        told: dict[str, Scalar] = {
            "chain": chain.id, "verdict": review.verdict, "head": review.head, "review": review.id,
            "findings": (review.findings or "")[:500],
        }  # fmt: skip
        return Fact(FactKind.REVIEW_SAID, chain.run_id, review.task_id, told)
