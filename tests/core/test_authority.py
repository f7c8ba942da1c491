"""The gates of a merge: one ladder, whose every rung speaks of exactly one commit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.core import authority
from tenuto.core.authority import Case, Stop, gates, kin, namespace, unfit
from tenuto.model.chain import Caps, Chain, SourcePlace
from tenuto.model.forge import ForgePlace, MergeMethod, PullFacts, PullState, Runs
from tenuto.model.ids import ChainId, CommandId, MandateId, ProposalId, ReviewId, RunId, TaskId, TextId
from tenuto.model.lifecycle import ChainState, ProposalState, TaskState
from tenuto.model.merging import Gate, Mandate, MergeMode, Proposal, Review, Verdict
from tenuto.model.policy import POLICY
from tenuto.model.work import Acceptance, Agent, Task

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEAD, OTHER = "a" * 40, "b" * 40
CHAIN = Chain(
    ChainId("h-1"), 1, RunId("r-1"), ChainState.OPEN, "goal", "github.com/a/b", "all", SourcePlace("queue", "/q"),
    (("merge", True),), Caps(units=1), 10, "/w", NOW,
)  # fmt: skip
MANDATE = Mandate(
    MandateId("d-1"), 1, CHAIN.id, ForgePlace("github", "a/b"), MergeMode.SELF, MergeMethod.MERGE,
    namespace(CHAIN.id), "main", ("check",), 10, NOW,
)  # fmt: skip
PROPOSAL = Proposal(
    ProposalId("q-1"), 1, CHAIN.id, TaskId("t-1"), "u1", ProposalState.OPEN, 5, f"{namespace(CHAIN.id)}u1", "main",
    HEAD, "https://h/5", NOW, CommandId("c-1"), HEAD, Gate.GREEN, reviews=1,
)  # fmt: skip
FACTS = PullFacts(
    5, PullState.OPEN, PROPOSAL.branch, HEAD, "main", "https://h/5", body=f"x\n{authority.chain_marker(CHAIN.id)}",
    mergeable=True, runs=Runs.GREEN,
)  # fmt: skip
REVIEW = Review(ReviewId("z-1"), 1, PROPOSAL.id, TaskId("t-9"), 1, HEAD, NOW, Verdict.PASS, None, NOW)
CASE = Case(CHAIN, MANDATE, PROPOSAL, FACTS, NOW, REVIEW, None, None, False, 0, 1, POLICY, False)


def held(case: Case = CASE, now: datetime = NOW) -> list[tuple[str, Stop]]:
    return [(one.gate, one.stop) for one in gates(case, now)]


def test_when_everything_holds_it_may_be_merged() -> None:
    assert held() == []


@pytest.mark.parametrize(
    ("changed", "gate", "stop"),
    [
        ({"switch": "off"}, "switch", Stop.PERSON),
        ({"held": True}, "hold", Stop.PERSON),
        ({"chain": replace(CHAIN, state=ChainState.STOPPED)}, "chain", Stop.PERSON),
        ({"chain": replace(CHAIN, authorization=(("merge", False),))}, "authorization", Stop.PERSON),
        ({"chain": replace(CHAIN, authorization=())}, "authorization", Stop.PERSON),
        ({"proposal": replace(PROPOSAL, state=ProposalState.TURNED_DOWN)}, "proposal", Stop.PERSON),
        ({"facts_at": NOW - timedelta(seconds=31)}, "facts", Stop.WAIT),
        ({"facts_at": NOW + timedelta(seconds=1)}, "facts", Stop.WAIT),
        ({"facts": replace(FACTS, state=PullState.CLOSED)}, "host", Stop.PERSON),
        ({"facts": replace(FACTS, fork=True)}, "namespace", Stop.DOWN),
        ({"facts": replace(FACTS, branch="feature")}, "namespace", Stop.DOWN),
        ({"facts": replace(FACTS, branch=namespace(CHAIN.id))}, "namespace", Stop.DOWN),
        ({"facts": replace(FACTS, branch=f"{namespace(ChainId('h-2'))}u1")}, "namespace", Stop.DOWN),
        ({"facts": replace(FACTS, body="")}, "marker", Stop.DOWN),
        ({"facts": replace(FACTS, body=authority.chain_marker(ChainId("h-2")))}, "marker", Stop.DOWN),
        ({"facts": replace(FACTS, base="release")}, "base", Stop.DOWN),
        ({"facts": replace(FACTS, draft=True)}, "draft", Stop.DOWN),
        ({"proposal": replace(PROPOSAL, gate=None)}, "gate", Stop.WAIT),
        ({"proposal": replace(PROPOSAL, gate_head=OTHER)}, "gate", Stop.WAIT),
        ({"proposal": replace(PROPOSAL, gate=Gate.RED)}, "gate", Stop.DOWN),
        ({"facts": replace(FACTS, runs=Runs.RED)}, "checks", Stop.DOWN),
        ({"facts": replace(FACTS, runs=Runs.PENDING)}, "checks", Stop.WAIT),
        ({"review": None}, "review", Stop.WAIT),
        ({"review": replace(REVIEW, head=OTHER)}, "review", Stop.WAIT),
        ({"review": replace(REVIEW, verdict=None)}, "review", Stop.WAIT),
        ({"review": replace(REVIEW, verdict=Verdict.NONE)}, "review", Stop.WAIT),
        ({"review": replace(REVIEW, verdict=Verdict.BLOCK)}, "review", Stop.DOWN),
        ({"kin": "they are one"}, "review", Stop.DOWN),
        ({"reviewed": 11}, "reviews", Stop.DOWN),
        ({"merges": 4}, "rate", Stop.WAIT),
        ({"facts": replace(FACTS, mergeable=False)}, "mergeable", Stop.DOWN),
        ({"mandate": replace(MANDATE, mode=MergeMode.ASKED)}, "asked", Stop.PERSON),
    ],
)
def test_each_gate_alone_is_enough(changed: dict[str, Any], gate: str, stop: Stop) -> None:
    assert held(replace(CASE, **changed)) == [(gate, stop)]


def test_asked_by_the_operator_only_the_asking_is_passed() -> None:
    asked = replace(CASE, mandate=replace(MANDATE, mode=MergeMode.ASKED), asked=True)
    assert held(asked) == []
    assert held(replace(asked, review=None)) == [("review", Stop.WAIT)]


def test_every_reason_says_what_would_change_it() -> None:
    worst = replace(
        CASE, switch="off", held=True, kin="kin", merges=99, reviewed=99, review=None,
        facts=replace(FACTS, draft=True, fork=True, body="", base="x", mergeable=False, runs=Runs.RED, head=OTHER),
    )  # fmt: skip
    told = gates(worst, NOW)
    assert told[0].gate == "switch", "the first that holds it up is the one an operator would ask about first"
    assert all(one.why and one.change for one in told)
    assert len({one.gate for one in told}) >= 9


ANY = st.fixed_dictionaries(
    {
        "facts": st.builds(
            replace,
            st.just(FACTS),
            head=st.sampled_from((HEAD, OTHER)),
            fork=st.booleans(),
            draft=st.booleans(),
            runs=st.sampled_from(Runs),
            state=st.sampled_from(PullState),
            mergeable=st.sampled_from((None, True, False)),
            base=st.sampled_from(("main", "x")),
            body=st.sampled_from((FACTS.body, "")),
        ),
        "proposal": st.builds(
            replace,
            st.just(PROPOSAL),
            head=st.sampled_from((HEAD, OTHER)),
            gate=st.sampled_from((None, *Gate)),
            gate_head=st.sampled_from((None, HEAD, OTHER)),
            state=st.sampled_from(ProposalState),
        ),
        "review": st.one_of(
            st.none(),
            st.builds(
                replace,
                st.just(REVIEW),
                head=st.sampled_from((HEAD, OTHER)),
                verdict=st.sampled_from((None, *Verdict)),
            ),
        ),
        "kin": st.sampled_from((None, "kin")),
        "switch": st.sampled_from((None, "off")),
        "held": st.booleans(),
        "merges": st.integers(0, 6),
        "asked": st.booleans(),
        "facts_at": st.integers(-60, 60).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    }
)


@given(ANY)
def test_nothing_is_merged_that_was_not_gated_and_passed_at_that_very_commit(changed: dict[str, Any]) -> None:
    case = replace(CASE, **changed)
    if gates(case, NOW):
        return
    head = case.facts.head
    assert case.review is not None
    assert (case.proposal.head, case.proposal.gate_head, case.review.head) == (head, head, head)
    assert (case.proposal.gate, case.review.verdict, case.kin) == (Gate.GREEN, Verdict.PASS, None)
    assert (case.switch, case.held, case.facts.fork, case.facts.draft) == (None, False, False, False)
    assert timedelta(0) <= NOW - case.facts_at <= timedelta(seconds=30)
    assert case.merges < POLICY.merge_rate
    assert case.facts.runs in (Runs.GREEN, Runs.NONE)


@given(ANY, st.sampled_from(("switch", "held", "draft")))
def test_a_gate_that_closes_never_opens_another(changed: dict[str, Any], gate: str) -> None:
    case = replace(CASE, **changed)
    before = {one.gate for one in gates(case, NOW)}
    worse = {
        "switch": lambda: replace(case, switch="off"),
        "held": lambda: replace(case, held=True),
        "draft": lambda: replace(case, facts=replace(case.facts, draft=True)),
    }[gate]()
    assert before <= {one.gate for one in gates(worse, NOW)}


def task(name: str, run: str, parent: str | None = None) -> Task:
    return Task(
        TaskId(name), 1, RunId(run), name, TextId("x"), "/w", Agent("program", ("a",), True), Acceptance(),
        TaskState.ACTIVE, NOW, parent=None if parent is None else TaskId(parent),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reviewer", "parents", "independent"),
    [
        (task("t-r", "r-2"), {}, True),
        (task("t-r", "r-1"), {}, False),
        (task("t-w", "r-1"), {}, False),
        (task("t-r", "r-2", "t-w"), {"t-r": "t-w"}, False),
        (task("t-p", "r-2"), {"t-w": "t-p"}, False),
        (task("t-r", "r-2", "t-p"), {"t-r": "t-p", "t-w": "t-p"}, False),
        (task("t-r", "r-2", "t-x"), {"t-r": "t-x", "t-w": "t-p"}, True),
    ],
)
def test_a_reviewer_is_outside_the_lineage(reviewer: Task, parents: dict[str, str], independent: bool) -> None:
    known = {TaskId(name): TaskId(above) for name, above in parents.items()}
    assert (kin(reviewer, task("t-w", "r-1"), known) is None) is independent


def test_a_circle_of_parents_comes_to_an_end() -> None:
    circle = {TaskId("t-a"): TaskId("t-b"), TaskId("t-b"): TaskId("t-a")}
    assert kin(task("t-a", "r-2"), task("t-w", "r-1"), circle) is None


def test_what_whoever_hands_in_can_mend_is_told_apart() -> None:
    assert unfit(CHAIN, MANDATE, FACTS) is None
    assert unfit(CHAIN, MANDATE, replace(FACTS, head=OTHER, runs=Runs.RED)) is None
    assert unfit(CHAIN, replace(MANDATE, base=None), replace(FACTS, base="release")) is None
