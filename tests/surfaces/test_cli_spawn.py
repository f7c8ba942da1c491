"""Spawning from the shell: what is sent, and the exit code of each outcome, which scripts rely on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.cli_world import OPERATOR, TASK, FakeEntrances, Server, done, serving

from tenuto.surfaces import present
from tenuto.surfaces.cli import app
from tenuto.surfaces.cli.exits import Exit


@pytest.fixture
def outside(tmp_path: Path) -> FakeEntrances:
    (tmp_path / "operator.token").write_text(OPERATOR + "\n", "ascii")
    (tmp_path / "prompt").write_text("sweep the attic\n", "utf-8")
    return FakeEntrances(tmp_path)


@pytest.fixture
def server(outside: FakeEntrances) -> Iterator[Server]:
    with serving(Server(outside.places.socket)) as server:
        yield server


def spawn(outside: FakeEntrances, *more: str) -> int:
    return app.main(outside, ["spawn", "--key", "mine", "--file", str(outside.root / "prompt"), *more])


def test_a_spawn_says_what_was_asked_and_prints_the_task(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("task.spawn", done())
    more = ("--playbook", "user/careful", "--parent", TASK, "--no-auto-close", "--unattended", "--hand-over")
    assert spawn(outside, *more) == Exit.DONE
    (asked,) = server.of("task.spawn")
    assert asked.key == "mine"
    assert asked.params == {
        "prompt": "sweep the attic\n", "title": "", "playbook": "user/careful", "parent": TASK,
        "auto_close": False, "unattended": True, "hand_over": True,
    }  # fmt: skip
    assert capsys.readouterr().out.strip() == TASK


@pytest.mark.parametrize(
    ("status", "code", "ends"),
    [
        (409, "conflict", Exit.CONFLICT),
        (409, "duplicate", Exit.CONFLICT),
        (429, "back_pressure", Exit.REFUSED),
        (429, "rate_limited", Exit.REFUSED),
        (401, "not_allowed", Exit.REFUSED),
        (422, "mistake", Exit.WRONG_USE),
        (503, "no_supervisor", Exit.NO_SUPERVISOR),
    ],
)
def test_every_outcome_has_its_exit_code(
    outside: FakeEntrances, server: Server, status: int, code: str, ends: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("task.spawn", (status, present.explanation(code, "no")))
    assert spawn(outside, "--json") == ends
    assert json.loads(capsys.readouterr().out or capsys.readouterr().err)["error"]["code"] == code


def test_an_answer_that_is_lost_is_asked_for_under_the_same_key_only(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.surfaces.cli.client.PAUSES", (0.0, 0.0))
    server.says("task.spawn", None)
    assert spawn(outside) == Exit.UNKNOWN
    assert {asked.key for asked in server.of("task.spawn")} == {"mine"}
    assert "--key mine" in capsys.readouterr().err


def test_without_a_key_nothing_is_sent(outside: FakeEntrances, server: Server) -> None:
    assert app.main(outside, ["spawn", "--file", str(outside.root / "prompt")]) == Exit.WRONG_USE
    assert spawn(outside, "--resumable") == Exit.WRONG_USE
    assert server.asked == []


def test_a_signal_waits_in_the_spool_while_nobody_listens(outside: FakeEntrances) -> None:
    outside.environment = {"TENUTO_TOKEN": "agents", "TENUTO_TASK": TASK}
    assert app.main(outside, ["signal", "completion-ready", "--note", "all done", "--key", "k"]) == Exit.DONE
    assert outside.reached == [("spool", "task.ready", {"task": TASK, "note": "all done"}, "k")]


def test_tokens_are_told_once_and_the_operators_is_changed(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("token.new", done(secret="told-once", name="far"), done(name="far"))
    assert app.main(outside, ["token", "new", "--role", "executor", "--name", "far", "--ttl", "8h"]) == Exit.DONE
    assert capsys.readouterr().out.strip() == "told-once"
    assert server.of("token.new")[0].params == {"role": "executor", "name": "far", "ttl": 28800.0}
    assert app.main(outside, ["token", "new", "--name", "far", "--key", "again"]) == Exit.CONFLICT
    outside.places.operator_token.chmod(0o600)
    outside.places.operator_token.write_text("o" * 43)
    outside.fresh_key = lambda: "n" * 43  # type: ignore[method-assign]
    assert app.main(outside, ["token", "rotate"]) == Exit.DONE
    assert outside.places.operator_token.read_text().strip() == "n" * 43
    outside.environment = {"TENUTO_TOKEN": "agents"}
    for words in (["token", "--show"], ["token", "new", "--name", "x"], ["token", "rotate"], ["login"]):
        assert app.main(outside, words) == Exit.REFUSED
