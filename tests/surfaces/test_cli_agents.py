"""Agents, hooks and adoption from the shell: what is shown before it is done, what is sent, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.cli_world import OPERATOR, TASK, FakeEntrances, Server, done, serving

from tenuto.surfaces.cli import app
from tenuto.surfaces.cli.exits import Exit


@pytest.fixture
def outside(tmp_path: Path) -> FakeEntrances:
    (tmp_path / "operator.token").write_text(OPERATOR + "\n", "ascii")
    return FakeEntrances(tmp_path)


@pytest.fixture
def server(outside: FakeEntrances) -> Iterator[Server]:
    with serving(Server(outside.places.socket)) as server:
        yield server


def test_agents_are_listed_with_what_is_to_be_said_of_each(
    outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(outside, ["agent", "list"]) == Exit.DONE
    told = capsys.readouterr().out
    assert "9.9.9" in told
    assert "was not tried" in told
    assert "not on the PATH" in told
    assert app.main(outside, ["agent", "list", "--json"]) == Exit.DONE
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["agents"]] == ["claude", "codex"]


def test_a_dry_turn_is_asked_for_by_name_and_never_from_within_a_turn(outside: FakeEntrances) -> None:
    assert app.main(outside, ["agent", "test", "acp:'my agent' --acp"]) == Exit.DONE
    assert outside.reached == [("agent test", "acp", ("my agent", "--acp"))]
    inside = FakeEntrances(outside.root, {"TENUTO_TOKEN": "an agent's"})
    assert app.main(inside, ["agent", "test", "claude"]) == Exit.REFUSED
    assert app.main(inside, ["hooks", "install", "claude", "--yes"]) == Exit.REFUSED
    assert inside.reached == []


def test_hooks_are_shown_and_written_only_when_that_was_said(
    outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(outside, ["hooks", "install", "claude"]) == Exit.REFUSED, "nobody can be asked here"
    assert "+ a line" in capsys.readouterr().out
    assert app.main(outside, ["hooks", "install", "claude", "--dry-run"]) == Exit.DONE
    assert outside.reached == []
    assert app.main(outside, ["hooks", "remove", "codex", "--yes"]) == Exit.DONE
    assert outside.reached == [("hooks", "remove", "codex", None)]
    assert app.main(outside, ["hooks", "status", "claude"]) == Exit.DONE
    assert app.main(outside, ["hooks", "status", "codex"]) == Exit.FAILED


def test_a_session_is_adopted_by_its_whole_name(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("session.adopt", done(open_in=4711))
    assert app.main(outside, ["adopt", "claude:'claude' --flag", "--session", "s-1", "--key", "mine"]) == Exit.DONE
    (asked,) = server.of("session.adopt")
    assert asked.key == "mine"
    assert asked.params["session"] == "s-1"
    assert asked.params["argv"] == ["claude", "--flag"]
    assert asked.params["auto_resume"] == "manual"
    told = capsys.readouterr()
    assert told.out.strip() == TASK
    assert "4711" in told.err


def test_without_a_name_the_sessions_are_listed_and_that_is_wrong_use(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"session": "s-2", "cwd": "/w", "open_in": 12, "newer": None, "task": None, "changed_at": None},
        {"session": "s-1", "cwd": "/w", "open_in": None, "newer": "s-2", "task": None, "changed_at": None},
    ]
    server.says("session.list", {"sessions": rows})
    assert app.main(outside, ["adopt", "claude"]) == Exit.WRONG_USE
    told = capsys.readouterr().out
    assert "open in process 12" in told
    assert "an older one of its directory" in told
