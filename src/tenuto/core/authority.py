"""Whether a pull request may be merged now: every gate, in the order in which an operator would ask.

The first that does not hold is the answer; all of them can be told. A gate speaks of exactly one commit, the one that
is about to be merged. Nothing here merges, asks a host or reads a clock, and nothing an agent says opens a gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tenuto.model.chain import Chain
from tenuto.model.forge import MergeMethod, PullFacts, PullState, Runs
from tenuto.model.ids import ChainId, TaskId
from tenuto.model.lifecycle import ChainState, ProposalState
from tenuto.model.merging import Gate, Mandate, MergeMode, Proposal, Review, Verdict
from tenuto.model.policy import Policy
from tenuto.model.work import Task

#: What an envelope has to authorise by this name.
MERGE = "merge"
#: How far up a task's parents are followed.
GENERATIONS = 10_000


class Stop(StrEnum):
    """What a gate that does not hold leads to.

    WAIT: look again. PERSON: only a person opens it. DOWN: the pull request is turned down, and its unit tried again.
    """

    WAIT = "wait"
    PERSON = "person"
    DOWN = "down"


@dataclass(frozen=True)
class Held:
    """A gate that does not hold: its name, why in a sentence, what would change that, and what it leads to."""

    gate: str
    why: str
    change: str
    stop: Stop
    after: timedelta = timedelta(seconds=15)


@dataclass(frozen=True)
class Case:
    """Everything the gates look at. `switch` is why merging is stopped, `kin` why the reviewer is not independent."""

    chain: Chain
    mandate: Mandate
    proposal: Proposal
    facts: PullFacts
    facts_at: datetime
    review: Review | None
    kin: str | None
    switch: str | None
    held: bool
    merges: int
    reviewed: int
    policy: Policy
    asked: bool


def chain_marker(chain: ChainId) -> str:
    """What a pull request of a chain has to say in its text, so that it is known whose it is."""
    return f"[tenuto-chain:{chain}]"


def namespace(chain: ChainId) -> str:
    """What the branches of a chain begin with, unless its mandate says otherwise."""
    return f"tenuto/{chain}/"


def unfit(chain: Chain, mandate: Mandate, facts: PullFacts) -> Held | None:
    """What is wrong with a pull request itself; whoever hands it in can mend that."""
    return next(_itself(chain, mandate, facts), None)


def _itself(chain: Chain, mandate: Mandate, facts: PullFacts) -> Iterator[Held]:
    if facts.fork:
        yield Held("namespace", "its branch is in another repository", "a branch of this repository", Stop.DOWN)
    if not facts.branch.startswith(mandate.branches) or facts.branch == mandate.branches:
        yield Held(
            "namespace",
            f"its branch {facts.branch} does not begin with {mandate.branches}",
            f"a branch called {mandate.branches}NAME",
            Stop.DOWN,
        )
    marker = chain_marker(chain.id)
    if marker not in facts.body:
        yield Held("marker", "its text does not say which chain it is of", f"the line {marker} in its text", Stop.DOWN)
    if mandate.base is not None and facts.base != mandate.base:
        yield Held(
            "base", f"it goes to {facts.base} and the chain merges to {mandate.base}", "the chain's base", Stop.DOWN
        )
    if facts.draft:
        yield Held("draft", "it is a draft", "it is marked as ready", Stop.DOWN)


def gates(case: Case, now: datetime) -> tuple[Held, ...]:
    """Every gate that does not hold, the decisive one first; none of them: it may be merged."""
    return tuple(_gates(case, now))


def _gates(case: Case, now: datetime) -> Iterator[Held]:
    chain, proposal, facts, policy = case.chain, case.proposal, case.facts, case.policy
    if case.switch is not None:
        yield Held("switch", case.switch, "tenuto chain self-advancing on", Stop.PERSON)
    if case.held:
        yield Held("hold", "the operator holds everything", "tenuto unhold", Stop.PERSON)
    if chain.state is not ChainState.OPEN:
        yield Held("chain", f"the chain is {chain.state}", "a chain that is open", Stop.PERSON)
    if dict(chain.authorization).get(MERGE) is not True:
        yield Held("authorization", "the envelope does not authorise a merge", "a chain begun with merge", Stop.PERSON)
    if proposal.state is not ProposalState.OPEN:
        yield Held("proposal", f"the pull request is {proposal.state} here", "another one", Stop.PERSON)
    if now - case.facts_at > policy.merge_facts or case.facts_at > now:
        yield Held("facts", "what the host said is too old to act on", "a fresh look", Stop.WAIT, timedelta(0))
    if facts.state is not PullState.OPEN:
        yield Held("host", f"the host says that it is {facts.state}", "an open pull request", Stop.PERSON)
    yield from _itself(chain, case.mandate, facts)
    if facts.head != proposal.head:
        yield Held(
            "head", f"its head is {facts.head[:12]} now", "gate and review of that commit", Stop.WAIT, timedelta(0)
        )
    if proposal.gate is not Gate.GREEN or proposal.gate_head != facts.head:
        yield _gate(proposal, facts)
    if facts.runs is Runs.RED:
        yield Held("checks", "the host's own checks are red", "green checks", Stop.DOWN)
    if facts.runs is Runs.PENDING:
        yield Held("checks", "the host's own checks are under way", "their end", Stop.WAIT)
    yield from _review(case)
    if case.reviewed > case.mandate.reviews:
        yield Held("reviews", f"its cap of {case.mandate.reviews} reviews is reached", "a person", Stop.DOWN)
    if case.merges >= policy.merge_rate:
        minutes = int(policy.merge_window.total_seconds() // 60)
        yield Held("rate", f"{case.merges} merges within {minutes} minutes", "time", Stop.WAIT, timedelta(seconds=60))
    if facts.mergeable is False:
        yield Held(
            "mergeable", f"it cannot be merged into {facts.base} as it is", "a merge or rebase by hand", Stop.DOWN
        )
    if case.mandate.mode is MergeMode.ASKED and not case.asked:
        yield Held("asked", "every other gate holds; the operator merges", f"tenuto merge {chain.id}", Stop.PERSON)


def _gate(proposal: Proposal, facts: PullFacts) -> Held:
    if proposal.gate is Gate.RED and proposal.gate_head == facts.head:
        return Held("gate", f"the gate is red at {facts.head[:12]}", "a commit at which it is green", Stop.DOWN)
    return Held("gate", f"the gate has not come to green at {facts.head[:12]}", "its end", Stop.WAIT)


def _review(case: Case) -> Iterator[Held]:
    """That no reviewer came to a verdict is not that one said block."""
    review, head = case.review, case.facts.head
    if review is None or review.head != head:
        yield Held("review", f"nobody has reviewed {head[:12]}", "a review of it", Stop.WAIT)
        return
    match review.verdict:
        case None:
            yield Held("review", f"task {review.task_id} is reviewing it", "its verdict", Stop.WAIT)
        case Verdict.NONE:
            yield Held("review", "its reviewer came to no verdict", "another review", Stop.WAIT)
        case Verdict.BLOCK:
            yield Held(
                "review", f"its review says block: {review.findings or 'no findings'}", "another commit", Stop.DOWN
            )
        case Verdict.PASS:
            if case.kin is not None:
                yield Held("review", case.kin, "a reviewer outside the lineage", Stop.DOWN)


def kin(reviewer: Task, worker: Task, parents: Mapping[TaskId, TaskId | None]) -> str | None:
    """Why a reviewer is not outside the lineage of a worker; None: it is. `parents` knows both all the way up."""
    mine, theirs = _line(reviewer.id, parents), _line(worker.id, parents)
    if reviewer.id in theirs or worker.id in mine:
        return "the reviewer is of the worker's own line"
    if mine[-1] == theirs[-1]:
        return "the reviewer and the worker come from one task"
    if reviewer.run_id == worker.run_id:
        return "the reviewer and the worker are of one run"
    return None


def _line(task: TaskId, parents: Mapping[TaskId, TaskId | None]) -> list[TaskId]:
    line = [task]
    while (above := parents.get(line[-1])) is not None and above not in line and len(line) < GENERATIONS:
        line.append(above)
    return line


def told(chain: ChainId, mandate: Mandate) -> str:
    """What the task of a unit is told of how its work is merged."""
    base = f" to {mandate.base}" if mandate.base is not None else ""
    where = "Open a pull request" if mandate.forge.kind == "github" else "Push it to the remote"
    text = "its text" if mandate.forge.kind == "github" else "the message of its last commit"
    return "\n".join(
        [
            "",
            "How your work is merged:",
            f"Commit on a branch called {mandate.branches}NAME. {where}{base}, with this line in {text}:",
            chain_marker(chain),
            "Then hand off with its number or its branch. Do not merge it: the server runs the gate, has it reviewed",
            "by somebody else, and merges exactly that commit. If it is turned down, the unit comes back.",
            "",
        ]
    )


def review_prompt(chain: Chain, proposal: Proposal, number: int, method: MergeMethod) -> str:
    """What a reviewer is asked."""
    return "\n".join(
        [
            f"Review pull request {proposal.number} at commit {proposal.head}, and nothing else.",
            "",
            f"Where: {proposal.url}",
            f"Repository: {chain.repo}",
            f"Branch: {proposal.branch}, to be merged into {proposal.base} ({method})",
            f"Unit: {proposal.unit}",
            f"Review {number} of this pull request.",
            "",
            "What the chain is for:",
            chain.goal.strip(),
            "",
            "You stand in a checkout of exactly that commit. You did not write it, and you change nothing in it.",
            "Read the whole difference to the base. Look for what is wrong, missing or not asked for.",
            "Then call review_verdict once, with that commit and pass or block; with block, say what has to change.",
            "If you cannot tell, say block and why.",
            "",
        ]
    )
