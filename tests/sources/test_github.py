"""GitHub as a source and as a host: the real client library against a played GitHub, judged by its own description.

Whatever goes wrong on the way, a record and a merge take effect once, and what is not known is not taken for anything.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.github import TOKEN, PlayedGitHub

from tenuto.core.chain import blocker_text
from tenuto.model.chain import Blocker, Foreign, Hold, Outcome, OutOfOrder, Record, Recorded, SourcePlace, UnitState
from tenuto.model.faults import Mistake
from tenuto.model.forge import (
    BaseFacts,
    Doubtful,
    ForgePlace,
    Merge,
    Merged,
    MergeMethod,
    NoPull,
    NotMerged,
    PullFacts,
    PullState,
    Runs,
    Unreachable,
)
from tenuto.sources.finding import GitHubForges, SourceFinder
from tenuto.sources.github import api, claiming, reading, selecting
from tenuto.sources.github.api import Account
from tenuto.sources.github.doubts import Doubts
from tenuto.sources.github.forge import GitHubForge
from tenuto.sources.github.issues import GitHubIssues

MARK = "[tenuto:c-{:026d}]"
HEAD = "b" * 40


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedGitHub]:
    monkeypatch.setattr(api, "PATIENCE", 1.0)
    monkeypatch.setattr(api, "BREATH", 0.01)
    with PlayedGitHub().serving() as made:
        yield made
    assert made.wrong == [], "every question and every answer is as GitHub describes it"


class Now:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def now() -> Now:
    return Now()


def account(hub: PlayedGitHub) -> Account:
    return Account(api=hub.url, token=TOKEN)


def issues(hub: PlayedGitHub, query: str = "label:unit", **more: object) -> GitHubIssues:
    """The source, some time after its supervisor began."""
    doubts = Doubts(lambda: 0.0, 0.0)
    place = SourcePlace("github", f"github.com/{hub.repo.name}", query)
    source = SourceFinder({}, account(hub), doubts).open(place)
    assert isinstance(source, GitHubIssues)
    return replace(source, **more)  # type: ignore[arg-type]


def forge(hub: PlayedGitHub) -> GitHubForge:
    made = GitHubForges(account(hub)).open(ForgePlace("github", hub.repo.former or hub.repo.name))
    assert isinstance(made, GitHubForge)
    return made


def states(source: GitHubIssues) -> dict[str, UnitState]:
    return {unit.id: unit.state for unit in source.read().units}


def record(unit: str = "#1", outcome: Outcome = Outcome.DONE, mark: int = 1, **more: object) -> Record:
    made = Record(unit, outcome, "commit abc", None, 1, MARK.format(mark))
    return replace(made, **more)  # type: ignore[arg-type]


def order(number: int = 5, head: str = HEAD, method: MergeMethod = MergeMethod.MERGE, mark: int = 1) -> Merge:
    return Merge(number, head, "main", method, "Unit 1 (#5)", MARK.format(mark))


# -- units


def test_evidence_counts_in_one_order(hub: PlayedGitHub) -> None:
    for number in range(1, 9):
        hub.issue(number, "unit")
    hub.repo.issues[1] |= {"state": "closed", "state_reason": "completed", "closed_at": "2026-03-01T12:00:00Z"}
    hub.pull(12, "x", HEAD, "Fixes #2")
    hub.merged(12, "c" * 40)
    hub.pull(13, "y", HEAD, "closes some/where#3 and see #8")
    hub.repo.branches["tenuto/h-1/issue-4"] = HEAD
    hub.repo.issues[5]["labels"].append(hub.label("tenuto:blocked"))
    hub.comment(5, blocker_text(Blocker("me", "unit:#6", "it is done")), "somebody", "MEMBER")
    hub.comment(5, blocker_text(Blocker("a stranger", "nothing", "never")), "stranger", "NONE")
    hub.pull(14, "z", HEAD, "resolves #6", state="closed")
    hub.pull(15, "w", HEAD, "fixes #7 listed as an issue", author_association="NONE")
    hub.fork(15)
    hub.pull(16, "v", HEAD, "fixes other/where#8")
    board = issues(hub).read()
    told = {unit.id: (unit.state, unit.evidence) for unit in board.units}
    root = "https://github.example/some/where"
    assert told["#1"] == (UnitState.DONE, f"{root}/issues/1 is closed as completed")
    assert told["#2"] == (UnitState.DONE, f"{root}/pull/12")
    assert told["#3"] == (UnitState.DONE, f"{root}/pull/13"), "where nothing is merged, an open one is enough"
    assert told["#4"] == (UnitState.IN_FLIGHT, "branch tenuto/h-1/issue-4")
    assert told["#5"][0] is UnitState.BLOCKED
    assert board.unit("#5").blocker == Blocker("me", "unit:#6", "it is done")  # type: ignore[union-attr]
    assert told["#6"][0] is UnitState.ELIGIBLE, "closed without being merged is no evidence"
    assert told["#7"][0] is UnitState.ELIGIBLE, "a stranger's fork settles nothing"
    assert told["#8"][0] is UnitState.ELIGIBLE, "neither a mention nor another repository's number closes anything"
    assert list(told) == [f"#{number}" for number in range(1, 9)], "in order, and no pull request among them"
    merging = states(issues(hub, plain=False, own="tenuto/h-1/"))
    assert (merging["#3"], merging["#4"]) == (UnitState.IN_FLIGHT, UnitState.ELIGIBLE)


def test_what_was_merged_and_reopened_is_not_done(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit", state_reason="reopened")
    hub.pull(12, "x", HEAD, "Fixes #1")
    hub.merged(12, "c" * 40)
    assert states(issues(hub)) == {"#1": UnitState.ELIGIBLE}
    hub.issue(2, "unit")
    hub.pull(13, "y", HEAD, "Fixes #2")
    hub.repo.pulls[13]["base"]["ref"] = "release"
    hub.merged(13, "d" * 40)
    assert states(issues(hub))["#2"] is UnitState.ELIGIBLE, "only what goes to the default branch closes an issue"


@pytest.mark.parametrize("query", ["label:unit", "search:is:open label:unit"])
def test_every_page_is_read(hub: PlayedGitHub, query: str) -> None:
    hub.page = 7
    for number in range(1, 31):
        hub.issue(number, "unit")
    board = issues(hub, query).read()
    assert [unit.id for unit in board.units] == [f"#{number}" for number in range(1, 31)]
    listed = [path for _, path in hub.seen if path.startswith(("/repos/some/where/issues?", "/search/issues?"))]
    assert len(listed) == 5


def test_a_list_keeps_its_order_and_what_is_gone_is_left_out(hub: PlayedGitHub) -> None:
    for number in (3, 1, 2):
        hub.issue(number)
    hub.issue(4, repository_url="https://api.github.example/repos/else/where")
    board = issues(hub, "issues:3,#1,99,4").read()
    assert [unit.id for unit in board.units] == ["#3", "#1"], "99 was deleted and 4 was moved away"


def test_a_search_may_be_late_so_the_issue_itself_is_asked(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    hub.stale_search = {1: {}}
    hub.repo.issues[1] |= {"state": "closed", "state_reason": "completed"}
    assert states(issues(hub, "search:label:unit")) == {"#1": UnitState.DONE}


@pytest.mark.parametrize(
    "bad", [None, "", "label:", "issues:", "issues:1,1", "issues:0", "issues:1,x", "sql:x", "label"]
)
def test_a_selection_that_cannot_be_is_refused(bad: str | None) -> None:
    with pytest.raises(Mistake):
        selecting.selection(bad)


def test_the_revision_moves_with_what_is_seen_and_with_nothing_else(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    source = issues(hub)
    before = source.read().revision
    assert source.read().revision == before
    assert isinstance(source.record(record()), Recorded)
    assert source.read().revision != before


# -- claims


def test_a_claim_stands_once_is_read_back_and_ends_with_its_record(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    source = issues(hub)
    for _ in range(3):
        assert isinstance(source.claim(Hold("#1", "l-one")), Recorded)
    assert len(hub.repo.comments[1]) == 1
    (unit,) = source.read().units
    assert (unit.state, unit.claimed_by) == (UnitState.IN_FLIGHT, "l-one")
    other = source.claim(Hold("#1", "l-two"))
    assert isinstance(other, Foreign)
    assert "l-one" in other.why
    assert isinstance(source.record(record(outcome=Outcome.FAILED, claim="l-two")), Foreign)
    assert isinstance(source.record(record(outcome=Outcome.FAILED, claim="l-one")), Recorded)
    assert [label["name"] for label in hub.repo.issues[1]["labels"]] == ["unit", "tenuto:tried"]
    (unit,) = source.read().units
    assert (unit.state, unit.claimed_by) == (UnitState.ELIGIBLE, None)
    assert isinstance(source.claim(Hold("#1", "l-two")), Recorded)
    assert isinstance(source.claim(Hold("#9", "l-two")), Foreign)


def test_of_many_who_claim_at_once_one_has_it(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    gate = threading.Barrier(6)
    answers: dict[str, object] = {}

    def claim(name: str) -> None:
        source = issues(hub)
        gate.wait(60)
        answers[name] = source.claim(Hold("#1", name))

    threads = [threading.Thread(target=claim, args=(f"l-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    won = [name for name, answer in answers.items() if isinstance(answer, Recorded)]
    assert len(answers) == 6
    assert len(won) == 1, answers
    (unit,) = issues(hub).read().units
    assert unit.claimed_by == won[0], "and everybody reads the same"


def test_who_is_known_to_be_over_is_followed_and_a_strangers_word_is_nothing(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    source = issues(hub)
    lie = '<!-- tenuto:claim {"by": "l-stranger", "over": []} -->'
    hub.comment(1, lie, "stranger")
    assert isinstance(source.claim(Hold("#1", "l-one")), Recorded)
    assert isinstance(source.claim(Hold("#1", "l-two", frozenset({"l-one"}))), Recorded)
    (unit,) = source.read().units
    assert unit.claimed_by == "l-two"
    assert isinstance(source.claim(Hold("#1", "l-one")), Foreign)
    assert isinstance(source.record(record(claim="l-two")), Recorded)
    assert isinstance(source.claim(Hold("#1", "l-three")), Foreign), "it is done"


@pytest.mark.parametrize("after", [True, False])
def test_a_claim_that_was_not_answered_is_looked_for(hub: PlayedGitHub, after: bool) -> None:
    hub.issue(1, "unit")
    source = issues(hub)
    hub.fail("POST", "comments$", "502", after=after)
    assert isinstance(source.claim(Hold("#1", "l-one")), OutOfOrder)
    assert isinstance(source.claim(Hold("#1", "l-one")), Recorded)
    assert len(hub.repo.comments[1]) == 1


@pytest.mark.parametrize("told", ["{", "[]", '{"by": 3}', '{"by": "", "over": 1}', '{"over": ["l-one"]}'])
def test_a_claim_that_cannot_be_read_is_none(told: str) -> None:
    assert claiming.after("l-one", f"<!-- tenuto:claim {told} -->") == "l-one"
    assert claiming.after(None, f"<!-- tenuto:claim {told} -->") is None


# -- records


def test_a_record_is_a_comment_then_labels_then_the_closing_and_stands_once(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit", "tenuto:blocked")
    source = issues(hub)
    for _ in range(3):
        assert isinstance(source.record(record()), Recorded)
    assert hub.repo.issues[1]["state"] == "closed"
    assert [label["name"] for label in hub.repo.issues[1]["labels"]] == ["unit"]
    assert len(hub.repo.comments[1]) == 1
    assert MARK.format(1) in hub.repo.comments[1][0]["body"]


def test_a_blocker_and_failed_attempts_are_read_back(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    source = issues(hub)
    blocker = Blocker("task t-1", "the key --> of <!-- it", "somebody gives it")
    assert isinstance(source.record(record(outcome=Outcome.FAILED, attempts=2)), Recorded)
    (unit,) = source.read().units
    assert (unit.state, unit.attempts, unit.recorded_by) == (UnitState.ELIGIBLE, 2, MARK.format(1))
    assert isinstance(source.record(record(outcome=Outcome.BLOCKED, mark=2, blocker=blocker, attempts=3)), Recorded)
    (unit,) = source.read().units
    assert (unit.state, unit.blocker, unit.attempts) == (UnitState.BLOCKED, blocker, 3)
    hub.repo.issues[1]["labels"] = [hub.label("unit")]
    assert states(source) == {"#1": UnitState.ELIGIBLE}, "who takes the label off says that it can go on"


def test_evidence_of_an_agent_forges_no_record(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    source = issues(hub)
    lie = '<!-- tenuto:record {"marker": "[tenuto:c-x]", "attempts": 20} -->\n<!-- tenuto:blocked'
    source.record(record(outcome=Outcome.FAILED, evidence=lie))
    (unit,) = source.read().units
    assert (unit.attempts, unit.recorded_by, unit.blocker) == (1, MARK.format(1), None)


def test_what_somebody_else_settled_is_not_settled_again(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit", state="closed", state_reason="completed")
    source = issues(hub)
    answer = source.record(record(outcome=Outcome.FAILED))
    assert isinstance(answer, Foreign)
    assert answer.unit is not None
    assert answer.unit.state is UnitState.DONE
    assert isinstance(source.record(record()), Recorded), "that it is done is what we say as well"
    assert isinstance(source.record(record("#9")), Foreign)
    assert isinstance(source.record(record("nine")), Foreign)
    assert hub.took_effect("PATCH", "issues/1$") == 0


def test_an_open_pull_request_is_left_to_close_its_issue(hub: PlayedGitHub) -> None:
    hub.issue(1, "unit")
    hub.pull(12, "x", HEAD, "Fixes #1")
    assert isinstance(issues(hub).record(record()), Recorded)
    assert hub.repo.issues[1]["state"] == "open"
    assert len(hub.repo.comments[1]) == 1


@pytest.mark.parametrize(("kind", "after"), [("silence", True), ("broken", True), ("502", True), ("silence", False)])
@pytest.mark.parametrize("what", ["comments$", "labels$", "issues/1$"])
def test_a_write_that_was_not_answered_is_looked_for_and_never_made_twice(
    hub: PlayedGitHub, now: Now, kind: str, after: bool, what: str
) -> None:
    hub.issue(1, "unit")
    doubts = Doubts(now, 15.0)
    now.at += 60
    source = issues(hub, doubts=doubts)
    blocker = Blocker("me", "it", "then")
    word = record(outcome=Outcome.BLOCKED, blocker=blocker) if what == "labels$" else record()
    hub.fail("PATCH" if what == "issues/1$" else "POST", what, kind, after=after)
    assert isinstance(source.record(word), OutOfOrder)
    again = source.record(word)
    if what == "comments$" and not after:
        assert isinstance(again, OutOfOrder), "it may still be on its way"
        assert "nothing was heard" in again.why
        now.at += 16
        again = source.record(word)
    assert isinstance(again, Recorded)
    assert len(hub.repo.comments[1]) == 1
    assert isinstance(source.record(word), Recorded)
    assert len(hub.repo.comments[1]) == 1


def test_after_a_start_nothing_is_said_that_the_supervisor_before_may_have_said(hub: PlayedGitHub, now: Now) -> None:
    hub.issue(1, "unit")
    source = issues(hub, doubts=Doubts(now, 15.0))
    answer = source.record(record())
    assert isinstance(answer, OutOfOrder)
    assert hub.effects == []
    now.at += 15
    assert isinstance(source.record(record()), Recorded)


# -- limits and failures


@pytest.mark.parametrize(("kind", "least"), [("secondary", 7), ("said", 60), ("limited", 3600), ("429", 60)])
def test_limits_of_both_kinds_are_waited_for_and_nothing_is_asked_meanwhile(
    hub: PlayedGitHub, kind: str, least: float
) -> None:
    hub.pull(5, "x", HEAD)
    hub.fail("GET", "pulls/5$", kind)
    answer = forge(hub).pull(5)
    assert isinstance(answer, Unreachable)
    assert answer.after >= least
    assert len([path for _, path in hub.seen if path.endswith("/pulls/5")]) == 1
    hub.issue(1, "unit")
    hub.fail("GET", "/issues", kind)
    with pytest.raises(OSError, match="again in"):
        issues(hub).read()


@pytest.mark.parametrize("kind", ["500", "502", "503", "broken", "garbled"])
def test_a_question_is_asked_again_where_the_server_fails(hub: PlayedGitHub, kind: str) -> None:
    hub.issue(1, "unit")
    hub.fail("GET", "/issues", kind, 2)
    assert states(issues(hub)) == {"#1": UnitState.ELIGIBLE}
    hub.fail("GET", "/issues", kind, 3)
    with pytest.raises(OSError, match="GitHub"):
        issues(hub).read()


def test_a_server_that_is_not_there_is_out_of_reach(hub: PlayedGitHub) -> None:
    nobody = Account(api="http://127.0.0.1:9", token=TOKEN)
    source = SourceFinder({}, nobody).open(SourcePlace("github", "some/where", "label:x"))
    with pytest.raises(OSError, match="did not answer"):
        source.read()
    assert isinstance(source.record(record()), OutOfOrder)
    answer = GitHubForges(nobody).open(ForgePlace("github", "some/where")).merge(order())
    assert isinstance(answer, NotMerged), "a connection that never stood wrote nothing"


def test_a_next_page_elsewhere_is_not_asked(hub: PlayedGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.page = 1
    for number in (1, 2):
        hub.issue(number, "unit")
    monkeypatch.setattr(type(hub), "url", "http://127.0.0.2:9")
    source = GitHubIssues(
        lambda: api.Api(replace(account(hub), api=f"http://127.0.0.1:{hub.server.server_address[1]}"), "some/where"),
        selecting.selection("label:unit"),
        Doubts(lambda: 0.0, 0.0),
    )
    with pytest.raises(OSError, match="another server"):
        source.read()


# -- pull requests


def test_facts_of_a_pull_request(hub: PlayedGitHub) -> None:
    hub.pull(5, "tenuto/h-1/u1", HEAD, "body")
    hub.repo.checks[HEAD] = [("completed", "success"), ("completed", "skipped")]
    hub.repo.statuses[HEAD] = ["success"]
    seen = forge(hub).pull(5)
    assert seen == PullFacts(
        5, PullState.OPEN, "tenuto/h-1/u1", HEAD, "main", "https://github.example/some/where/pull/5",
        title="Pull 5", body="body", mergeable=True, runs=Runs.GREEN,
    )  # fmt: skip
    hub.fork(5)
    assert forge(hub).pull(5).fork  # type: ignore[union-attr]
    assert forge(hub).pull(6) == NoPull("there is no pull request 6")
    hub.pull(7, "tenuto/h-1/u1", HEAD)
    found = forge(hub).pulls("tenuto/h-1/u1")
    assert not isinstance(found, Unreachable)
    assert [one.number for one in found] == [7], "what comes from a fork is not of this branch"


@pytest.mark.parametrize(
    ("checks", "statuses", "told"),
    [
        ([], [], Runs.NONE),
        ([("in_progress", None)], ["success"], Runs.PENDING),
        ([("completed", "failure"), ("queued", None)], [], Runs.RED),
        ([("completed", "success")], ["error"], Runs.RED),
        ([("completed", "success")], ["pending"], Runs.PENDING),
        ([("completed", "cancelled")], [], Runs.RED),
    ],
)
def test_checks_and_statuses_count_together(
    hub: PlayedGitHub, checks: list[tuple[str, str | None]], statuses: list[str], told: Runs
) -> None:
    hub.pull(5, "x", HEAD)
    hub.repo.checks[HEAD], hub.repo.statuses[HEAD] = checks, statuses
    seen = forge(hub).pull(5)
    assert isinstance(seen, PullFacts)
    assert seen.runs is told


@pytest.mark.parametrize("method", list(MergeMethod))
def test_exactly_the_expected_head_is_merged_once(hub: PlayedGitHub, method: MergeMethod) -> None:
    hub.pull(5, "x", HEAD)
    stale = forge(hub).merge(order(head="e" * 40, method=method))
    assert isinstance(stale, NotMerged)
    assert stale.moved
    done = forge(hub).merge(order(method=method))
    again = forge(hub).merge(order(method=method))
    assert isinstance(done, Merged)
    assert again == done
    assert hub.took_effect("PUT", "pulls/5/merge") == 1
    seen = forge(hub).pull(5)
    assert isinstance(seen, PullFacts)
    assert (seen.state, seen.merged_as) == (PullState.MERGED, done.commit)
    assert seen.marker == (None if method is MergeMethod.REBASE else MARK.format(1))
    if method is not MergeMethod.REBASE:
        other = forge(hub).merge(order(method=method, mark=2))
        assert other == NotMerged("it was merged by somebody else", moved=True)


def test_a_push_right_before_the_merge_is_refused_by_the_host_itself(hub: PlayedGitHub) -> None:
    hub.pull(5, "x", HEAD)
    lagging = hub._one_pull

    def late(number: str, query: object, body: object) -> tuple[int, object]:
        status, row = lagging(number, query, body)
        told = {**row, "head": dict(row["head"])}
        hub.repo.pulls[5]["head"] = row["head"] | {"sha": "f" * 40}
        return status, told

    hub._one_pull = late  # type: ignore[method-assign]
    answer = forge(hub).merge(order())
    assert isinstance(answer, NotMerged)
    assert answer.moved
    assert hub.took_effect("PUT", "merge") == 0


@pytest.mark.parametrize("kind", ["silence", "broken", "502", "garbled"])
def test_a_merge_that_was_done_and_told_otherwise_is_found_done(hub: PlayedGitHub, kind: str) -> None:
    hub.pull(5, "x", HEAD)
    hub.fail("PUT", "merge$", kind, after=True)
    done = forge(hub).merge(order())
    assert isinstance(done, Merged)
    assert hub.took_effect("PUT", "merge") == 1


def test_a_merge_that_was_not_answered_and_cannot_be_looked_up_is_in_doubt(hub: PlayedGitHub) -> None:
    hub.pull(5, "x", HEAD)
    hub.fail("PUT", "merge$", "silence")
    answer = forge(hub).merge(order())
    assert isinstance(answer, Doubtful)
    assert answer.after > 0
    assert hub.took_effect("PUT", "merge") == 0
    hub.fail("PUT", "merge$", "secondary")
    limited = forge(hub).merge(order())
    assert isinstance(limited, NotMerged), "a limit is certain: nothing was merged"
    assert limited.after == 7


def test_what_the_host_refuses_is_said_in_its_own_words(hub: PlayedGitHub) -> None:
    hub.pull(5, "x", HEAD, mergeable=False)
    answer = forge(hub).merge(order())
    assert isinstance(answer, NotMerged)
    assert "Pull Request is not mergeable" in answer.why
    hub.pull(6, "y", HEAD, state="closed")
    assert forge(hub).merge(order(6)) == NotMerged("it was closed without being merged", moved=True)
    assert isinstance(forge(hub).merge(order(7)), NotMerged)


def test_a_renamed_repository_and_a_renamed_branch_are_followed(hub: PlayedGitHub) -> None:
    hub.repo.former, hub.repo.name = "old/name", "some/where"
    hub.repo.default = "trunk"
    hub.repo.branches = {"trunk": "a" * 40}
    hub.repo.renamed = {"main": "trunk"}
    hub.pull(5, "x", HEAD)
    asked = forge(hub)
    assert asked.base(None) == BaseFacts("trunk", "a" * 40)
    assert asked.base("main") == BaseFacts("trunk", "a" * 40)
    assert isinstance(asked.pull(5), PullFacts)
    assert isinstance(asked.merge(replace(order(), base="trunk")), Merged)
    answer = asked.base("nowhere")
    assert isinstance(answer, Unreachable)


# -- the token


def test_a_token_is_read_from_a_file_that_only_its_owner_reads(hub: PlayedGitHub, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o644)
    told = Account(api=hub.url, token_file=file)
    hub.pull(5, "x", HEAD)
    place = ForgePlace("github", "some/where")
    answer = GitHubForges(told).open(place).pull(5)
    assert isinstance(answer, Unreachable)
    assert "0600" in answer.why
    assert hub.seen == []
    file.chmod(0o600)
    assert isinstance(GitHubForges(told).open(place).pull(5), PullFacts)
    file.write_text("two words\n")
    assert isinstance(GitHubForges(told).open(place).pull(5), Unreachable)
    file.unlink()
    assert isinstance(GitHubForges(told).open(place).pull(5), Unreachable)


def test_the_token_stands_in_no_address_no_log_and_no_text(hub: PlayedGitHub, caplog: pytest.LogCaptureFixture) -> None:
    hub.issue(1, "unit")
    hub.pull(5, "x", HEAD)
    told = account(hub)
    with caplog.at_level(logging.DEBUG):
        issues(hub).record(record())
        hub.fail("GET", "pulls/5$", "404")
        answer = forge(hub).pull(5)
        forge(hub).merge(order())
    assert TOKEN not in caplog.text
    assert TOKEN not in repr((told, answer, issues(hub), forge(hub), hub.seen))


@pytest.mark.parametrize("bad", ["", "one", "a/b/c", "else.example/a/b", "../x/y", "a/..", "a b/c", "a/b?x"])
def test_a_repository_is_named_by_its_owner_and_name(bad: str) -> None:
    with pytest.raises(Mistake):
        GitHubForges(Account()).open(ForgePlace("github", bad))


def test_a_source_is_one_however_its_units_are_chosen() -> None:
    finder = SourceFinder({})
    names = {
        finder.name(SourcePlace("github", place, query))
        for place in ("Some/Where", "github.com/some/where", "some/where.git")
        for query in ("label:a", "issues:1")
    }
    assert names == {"github:github.com/some/where"}


def test_only_what_closes_counts_as_closing() -> None:
    text = "Fixes #1, fixes: #2; closed o/r#3 RESOLVES https://github.com/o/r/issues/4 see #5 refixes #6 fix x/y#7"
    assert reading.closes(text, "O/R") == {1, 2, 3, 4}
    began = time.monotonic()
    reading.closes("fixes " * 200_000, "o/r")
    assert time.monotonic() - began < 30
