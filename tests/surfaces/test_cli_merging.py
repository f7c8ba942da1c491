"""Merging from the shell: what a chain is begun with, what a gate says, a verdict, and the switch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.cli_world import OPERATOR, TASK, FakeEntrances, Server, done, serving

from tenuto.surfaces import present
from tenuto.surfaces.cli import app
from tenuto.surfaces.cli.exits import Exit

CHAIN = "h-" + "0" * 18 + "hhhhhhhh"
HEAD = "a" * 40
BEGIN = ("chain", "start", "--repo", "a.b/c/d", "--queue", "q.json", "--program", "agent", "--max-units", "3")


@pytest.fixture
def outside(tmp_path: Path) -> FakeEntrances:
    (tmp_path / "operator.token").write_text(OPERATOR + "\n", "ascii")
    (tmp_path / "goal").write_text("Mend it\n", "utf-8")
    return FakeEntrances(tmp_path)


@pytest.fixture
def server(outside: FakeEntrances) -> Iterator[Server]:
    with serving(Server(outside.places.socket)) as server:
        yield server


def test_a_chain_that_merges_is_begun_with_all_that_it_may(outside: FakeEntrances, server: Server) -> None:
    server.says("chain.start", done(chain=CHAIN))
    more = (
        "--merge-at", "git:/srv/site.git", "--gate", "make check", "--reviewer", "agent --review", "--reviews", "3",
        "--merge-asked", "--merge-method", "squash", "--branches", "bots/", "--base", "trunk", "--allow", "merge",
    )  # fmt: skip
    assert app.main(outside, [*BEGIN, "--file", str(outside.root / "goal"), *more]) == Exit.DONE
    (asked,) = server.of("chain.start")
    assert asked.params["authorization"] == {"merge": True}
    assert asked.params["merging"] == {
        "forge": "git", "location": "/srv/site.git", "gate": ["make", "check"], "playbook": None,
        "reviewer": {"argv": ["agent", "--review"], "resumable": True}, "mode": "asked", "method": "squash",
        "base": "trunk", "branches": "bots/", "reviews": 3,
    }  # fmt: skip


def test_issues_are_units_by_the_way_they_are_selected(outside: FakeEntrances, server: Server) -> None:
    server.says("chain.start", done(chain=CHAIN))
    begin = [word for word in BEGIN if word not in ("--queue", "q.json")]
    more = ("--github", "some/where", "--select", "label:unit", "--file", str(outside.root / "goal"))
    assert app.main(outside, [*begin, *more]) == Exit.DONE
    (asked,) = server.of("chain.start")
    assert asked.params["source"] == {"kind": "github", "location": "some/where", "query": "label:unit"}
    assert "merging" not in asked.params


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--merge-at", "here"), "--merge-at"),
        (("--merge-at", "svn:x"), "--merge-at"),
        (("--merge-at", "git:/x"), "--gate"),
    ],
)
def test_what_cannot_be_meant_is_wrong_use(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], named: str
) -> None:
    assert app.main(outside, [*BEGIN, "--file", str(outside.root / "goal"), *more]) == Exit.WRONG_USE
    assert named in capsys.readouterr().err
    assert server.of("chain.start") == []


def test_the_gates_are_told_without_merging(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {
        "stopped": None,
        "mandate": {},
        "proposal": {"pull": 7, "unit": "u1", "head": HEAD, "state": "open"},
        "reviews": [{"number": 1, "head": HEAD, "verdict": None, "task": TASK, "findings": None}],
        "held": [{"gate": "review", "because": "task t-1 is reviewing it", "change": "its verdict"}],
    }
    server.says("chain.gates", told)
    assert app.main(outside, ["merge", CHAIN, "--dry"]) == Exit.DONE
    out = capsys.readouterr().out
    assert "pull request 7 of unit u1" in out
    assert "under way" in out
    assert "task t-1 is reviewing it" in out
    assert server.of("chain.merge") == []
    server.says("chain.gates", told | {"proposal": None, "stopped": "sam has stopped the chains"})
    assert app.main(outside, ["merge", CHAIN, "--dry"]) == Exit.DONE
    assert "sam has stopped" in capsys.readouterr().out


def test_a_merge_that_is_refused_says_by_which_gate(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("chain.merge", (423, present.explanation("refused", "the gate is red", see="a green commit")))
    assert app.main(outside, ["merge", CHAIN]) == Exit.REFUSED
    assert "the gate is red" in capsys.readouterr().err


def test_a_verdict_is_sent_with_the_commit_and_its_findings(outside: FakeEntrances, server: Server) -> None:
    server.says("review.verdict", done(verdict="block"))
    (outside.root / "findings").write_text("it tests nothing\n")
    more = ("--say", "block", "--head", HEAD, "--file", str(outside.root / "findings"))
    assert app.main(outside, ["review", "verdict", TASK, *more]) == Exit.DONE
    (asked,) = server.of("review.verdict")
    assert asked.params == {"task": TASK, "verdict": "block", "head": HEAD, "findings": "it tests nothing\n"}


@pytest.mark.parametrize(("word", "on"), [("on", True), ("off", False)])
def test_the_switch(outside: FakeEntrances, server: Server, word: str, on: bool) -> None:
    server.says("chain.self-advancing", done(on=on))
    assert app.main(outside, ["chain", "self-advancing", word]) == Exit.DONE
    (asked,) = server.of("chain.self-advancing")
    assert asked.params == {"on": on}
