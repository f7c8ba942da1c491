"""`run` and `follow`: when watching ends, with which code, and what is said then."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.cli_world import (
    LIVE,
    MISSING,
    RUN,
    TASK,
    FakeEntrances,
    Server,
    because,
    event,
    followed,
    serving,
)

from tenuto.surfaces.cli import app, edges, running
from tenuto.surfaces.cli.entrances import NotSpawned
from tenuto.surfaces.cli.exits import Exit

DISPOSITION = {"reason": "claimed with evidence", "source": "agent", "reference": "abc", "verified": True}
MADE = (201, {"result": {"run": RUN, "task": TASK}, "replayed": False, "effects": [], "text": "made task"})


@pytest.fixture
def outside(tmp_path: Path) -> FakeEntrances:
    (tmp_path / "operator.token").write_text("x", "ascii")
    (tmp_path / "objective").write_text("Tidy the docs.\n", "utf-8")
    return FakeEntrances(tmp_path)


@pytest.fixture
def server(outside: FakeEntrances, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for module, name in ((edges, "POLL"), (edges, "HEARD"), (running, "SETTLING"), (running, "DOUBT")):
        monkeypatch.setattr(module, name, 0.02)
    with serving(Server(outside.places.socket)) as server:
        server.says("run.create", MADE)
        yield server


def start(outside: FakeEntrances, *more: str) -> int:
    return app.main(outside, ["run", "--objective-file", str(outside.root / "objective"), "--program", "agent", *more])


# -- making it


def test_a_run_is_made_of_what_was_said(outside: FakeEntrances, server: Server) -> None:
    code = start(
        outside, "--title", "T", "--cwd", str(outside.root), "--program", "agent --model 'a b'", "--resumable",
        "--max-attempts", "9", "--accept-check", "pytest -q", "--env", "KEY", "--env", "OTHER", "--manual",
        "--policy", "idle-delay=2min", "--policy", "stall_pause=4", "--detach", "--key", "mine",
    )  # fmt: skip
    assert code == 0
    (asked,) = server.asked
    assert asked.key == "mine"
    assert asked.params == {
        "objective": "Tidy the docs.\n",
        "title": "T",
        "cwd": str(outside.root),
        "agent": {"argv": ["agent", "--model", "a b"], "resumable": True, "env": ["KEY", "OTHER"], "on": None},
        "coordinator": False,
        "acceptance": {"kind": "check", "argv": ["pytest", "-q"]},
        "auto_resume": "manual",
        "max_attempts": 9,
        "policy": {"idle-delay": 120.0, "stall_pause": 4.0},
    }


@pytest.mark.parametrize(
    "options, expected",
    [
        ([], {"kind": "none"}),
        (["--accept-file", "out.txt"], {"kind": "file", "path": "out.txt"}),
        (["--accept-commit"], {"kind": "commit"}),
    ],
)
def test_what_completion_hangs_on(
    options: list[str], expected: dict[str, Any], outside: FakeEntrances, server: Server
) -> None:
    assert start(outside, "--detach", *options) == 0
    assert server.asked[0].params["acceptance"] == expected


@pytest.mark.parametrize(
    "options, said",
    [
        (["--accept-commit", "--accept-file", "x"], "name one of"),
        (["--program", "agent 'unclosed"], "cannot be split into words"),
        (["--program", " "], "names no program"),
        (["--policy", "idle-delay=soon"], "must be a number, or a duration"),
        (["--policy", "idle-delay"], "is not of the form NAME=VALUE"),
        (["--objective-file", "/no/such"], "cannot be read"),
    ],
)
def test_wrong_use_makes_nothing(
    options: list[str],
    said: str,
    outside: FakeEntrances,
    server: Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert start(outside, *options) == Exit.WRONG_USE
    assert said in capsys.readouterr().err
    assert (server.asked, outside.reached) == ([], [])


def test_detached_the_task_alone_is_printed(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(outside, "--detach") == 0
    told = capsys.readouterr()
    assert told.out == f"{TASK}\n"
    assert "tenuto follow t-tttttttt" in told.err
    assert start(outside, "--detach", "--json") == 0
    assert json.loads(capsys.readouterr().out) == MADE[1]


def test_a_supervisor_is_started_where_none_runs_and_that_is_said(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.glances = [MISSING]
    assert start(outside, "--detach") == 0
    assert [reached[0] for reached in outside.reached] == ["spawn"]
    assert "no supervisor was running: started one, pid 4711" in capsys.readouterr().err


def test_nothing_is_made_when_no_supervisor_comes_up(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.glances, outside.spawned = [MISSING], NotSpawned("the disk is full", outside.places.log)
    assert start(outside) == Exit.FAILED
    assert "the supervisor did not start: the disk is full" in capsys.readouterr().err
    assert server.asked == []


# -- watching it

ENDS: dict[str, tuple[dict[str, Any], Exit, str]] = {
    "completed and checked": (
        followed(state="completed", disposition=DISPOSITION),
        Exit.DONE,
        "completed after 2 turns: claimed with evidence (abc)",
    ),
    "completed and unchecked": (
        followed(state="completed", attempts=1, disposition=DISPOSITION | {"verified": False}),
        Exit.DONE,
        "completed after 1 turn: claimed with evidence (abc), unverified",
    ),
    "failed": (
        followed(state="failed", disposition=DISPOSITION | {"reason": "gave up"}),
        Exit.FAILED,
        "failed after 2 turns: gave up",
    ),
    "cancelled": (
        followed(state="cancelled", disposition=DISPOSITION | {"reason": "stopped"}),
        Exit.FAILED,
        "cancelled after 2 turns: stopped",
    ),
} | {
    f"on the rung {rung}": (
        followed(reason=because(rung, "it waits for a person: which?", "tenuto answer it")),
        Exit.NEEDS_PERSON,
        "it waits for a person: which?\ndo: tenuto answer it",
    )
    for rung in ("human", "permission", "cap", "stalled", "paused", "manual", "held", "nothing_asked")
}


@pytest.mark.parametrize("story", ENDS)
def test_watching_ends(story: str, outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    answer, code, said = ENDS[story]
    server.says("task.follow", followed(reason=because("live")), answer)
    assert start(outside) == code
    told = capsys.readouterr()
    assert told.out == f"{said}\nmore: tenuto show {TASK}\n"
    assert told.err == ""


def test_a_limit_keeps_waiting(outside: FakeEntrances, server: Server) -> None:
    waits = [followed(reason=because(rung)) for rung in ("limit", "dependency", "spacing", "executor", "claim", "slot")]
    server.says("task.follow", *waits, ENDS["completed and checked"][0])
    assert start(outside) == 0
    assert len(server.of("task.follow")) == len(waits) + 1


def test_a_moment_without_a_wish_is_not_taken_for_an_end(outside: FakeEntrances, server: Server) -> None:
    server.says(
        "task.follow",
        followed(reason=because("nothing_asked")),
        followed(reason=because("live")),
        ENDS["completed and checked"][0],
    )
    assert start(outside) == 0


def test_an_ambiguous_command_ends_with_6_once_it_stays_so(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = because("unresolved", "an earlier command is unresolved", "look, then release it")
    server.says("task.follow", followed(reason=reason))
    server.says("command.list", {"commands": [{"state": "submitted"}]}, {"commands": [{"state": "ambiguous"}]})
    assert start(outside) == Exit.UNKNOWN
    assert "an earlier command is unresolved\ndo: look, then release it" in capsys.readouterr().out
    assert server.of("command.list")[0].params == {"task": TASK, "only_open": "true"}


def test_json_is_one_document_at_the_end(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("task.follow", followed([event(1)]), followed(reason=because("human", "which?", "tenuto answer it")))
    assert start(outside, "--json") == Exit.NEEDS_PERSON
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["task"], told["exit"], told["text"]) == ("end", TASK, 8, "which?")
    assert told["mend"] == "tenuto answer it"


def test_following_in_json_tells_what_happens_from_now_on(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("task.follow", followed([event(1), event(2)]), followed([event(3)]), ENDS["completed and checked"][0])
    assert app.main(outside, ["follow", "tttttttt", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line.get("n"), line["kind"]) for line in lines] == [(3, "attempt.ended"), (None, "end")]
    assert [asked.params["after"] for asked in server.of("task.follow")] == ["0", "2", "3"]


def test_the_feed_rings_before_the_next_look_is_due(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edges, "HEARD", 60.0)
    monkeypatch.setattr(edges, "POLL", 0.2)
    server.events = [event(5)]
    server.says("task.follow", followed(reason=because("live")), ENDS["completed and checked"][0])
    began = time.monotonic()
    assert start(outside) == 0
    assert time.monotonic() - began < 30, "it looked again because it was time to, not because it was rung"


def test_ctrl_c_lets_go_and_says_how_to_come_back(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: edges.Edges, most: float = 0) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(edges.Edges, "wait", interrupted)
    server.says("task.follow", followed(reason=because("live")))
    assert start(outside) == Exit.DETACHED
    assert f"tenuto follow {TASK}" in capsys.readouterr().err
    assert {asked.verb for asked in server.asked} == {"run.create", "task.follow"}


def test_a_supervisor_that_restarts_is_waited_for(outside: FakeEntrances, server: Server) -> None:
    away = outside.root / "away"
    looks = iter(range(100))

    def answer(asked: object) -> tuple[int, object]:
        match next(looks):
            case 0:
                outside.places.socket.rename(away)
                return 200, followed(reason=because("live"))
            case _:
                return 200, ENDS["completed and checked"][0]

    class Back(edges.Edges):
        def wait(self, most: float = 0) -> None:
            super().wait(most)
            if away.exists() and seen:
                away.rename(outside.places.socket)
            seen.append(1)

    seen: list[int] = []
    server.answers["task.follow"] = answer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "Edges", Back)
        assert start(outside) == 0
    assert len(seen) >= 2


def test_a_supervisor_that_stays_away_ends_with_3(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GONE", 0.05)
    away = outside.root / "away"

    def answer(asked: object) -> tuple[int, object]:
        outside.places.socket.rename(away)
        return 200, followed(reason=because("live"))

    server.answers["task.follow"] = answer
    assert start(outside) == Exit.NO_SUPERVISOR
    away.rename(outside.places.socket)


def test_following_without_a_supervisor_ends_with_3(outside: FakeEntrances) -> None:
    assert app.main(outside, ["follow", TASK]) == Exit.NO_SUPERVISOR


def test_the_live_line_is_drawn_over_and_wiped(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    sentence = "a turn is under way \x1b]0;title\x07 " + "and long " * 10
    server.says("task.follow", followed([event(1)], because("live", sentence)), ENDS["completed and checked"][0])
    assert start(outside) == 0
    told = capsys.readouterr()
    drawn = [part for part in told.err.split("\r\x1b[2K") if part.startswith("turn 2: a turn is under way")]
    assert drawn
    assert all(len(line) <= 39 and "\x1b" not in line for line in drawn)
    assert told.err.endswith("\r\x1b[2K")
    assert "  turn 1 ended\n" in told.err
    assert "\x1b" not in told.out


def test_words_are_split_and_never_reach_a_shell() -> None:
    assert running.words("a 'b c' $(d) ; e", "--program") == ["a", "b c", "$(d)", ";", "e"]
    assert shlex.join(running.words("a 'b c'", "--program")) == "a 'b c'"


def test_a_lease_that_is_there_is_not_started_beside(outside: FakeEntrances, server: Server) -> None:
    outside.glances = [replace(LIVE, standing="stale-alive")]
    assert start(outside, "--detach") == 0
    assert outside.reached == []
