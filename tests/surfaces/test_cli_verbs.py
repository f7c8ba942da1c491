"""Each command calls the verb it is named after with parameters that verb takes, and ends as the answer says."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.cli_world import COMMAND, OPERATOR, RUN, TASK, FakeEntrances, Server, done, serving

from tenuto.surfaces import present, verbs
from tenuto.surfaces.cli import app, client, door, exits, glancing
from tenuto.surfaces.cli.entrances import Entrances
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.present.wholes import STANDINGS

Run = Callable[..., int]
PAGE = "https://chat.example/c/1"


@pytest.fixture
def outside(tmp_path: Path) -> FakeEntrances:
    (tmp_path / "operator.token").write_text(OPERATOR + "\n", "ascii")
    (tmp_path / "words").write_text("do it\n", "utf-8")
    return FakeEntrances(tmp_path)


@pytest.fixture
def server(outside: FakeEntrances) -> Iterator[Server]:
    with serving(Server(outside.places.socket)) as server:
        yield server


def tenuto(outside: Entrances, *arguments: str) -> int:
    return app.main(outside, arguments)


CHANGES: dict[str, tuple[Sequence[str], str, dict[str, Any]]] = {
    "hold": (["hold"], "hold", {}),
    "unhold": (["unhold"], "unhold", {}),
    "pause a task": (["pause", TASK], "task.pause", {"task": TASK}),
    "pause a run": (["pause", RUN], "task.pause", {"task": RUN}),
    "resume": (["resume", "tttttttt"], "task.resume", {"task": "tttttttt", "stalled": False}),
    "resume a stalled one": (["resume", "--stalled", TASK], "task.resume", {"task": TASK, "stalled": True}),
    "continue": (["continue", TASK], "task.continue", {"task": TASK, "anyway": False}),
    "continue anyway": (["continue", TASK, "--anyway"], "task.continue", {"task": TASK, "anyway": True}),
    "cancel": (["cancel", TASK, "--reason", "why"], "task.cancel", {"task": TASK, "reason": "why"}),
    "wait": (["wait", TASK, "--question", "ok?"], "task.wait", {"task": TASK, "kind": "human", "question": "ok?"}),
    "wait for a time": (
        ["wait", TASK, "--until", "2026-03-02T00:00:00Z"],
        "task.wait",
        {"task": TASK, "kind": "time", "question": "", "until": "2026-03-02T00:00:00Z"},
    ),
    "answer": (["answer", TASK, "--file", "{words}"], "task.answer", {"task": TASK, "answer": "do it\n"}),
    "complete": (
        ["complete", TASK, "--evidence", "abc", "--summary", "s"],
        "task.complete",
        {"task": TASK, "evidence": "abc", "summary": "s"},
    ),
    "fail": (["fail", TASK, "--reason", "no"], "task.fail", {"task": TASK, "reason": "no"}),
    "message": (
        ["message", "send", TASK, "--file", "{words}"],
        "message.send",
        {"task": TASK, "text": "do it\n", "policy": "next_turn"},
    ),
    "checkpoint": (["checkpoint", "request", TASK], "checkpoint.request", {"task": TASK}),
    "policy": (
        ["policy", "set", RUN, "idle-delay=2min", "max-attempts=7", "auto-resume=manual"],
        "policy.set",
        {"task": RUN, "changes": {"idle-delay": "120", "max-attempts": "7", "auto-resume": "manual"}},
    ),
    "watch a page": (
        ["page", "watch", TASK, "--url", PAGE, "--by", "desk"],
        "page.watch",
        {"task": TASK, "url": PAGE, "by": "desk"},
    ),
    "watch a page in a window": (
        ["page", "watch", TASK, "--url", PAGE, "--by", "desk", "--window", "w-1"],
        "page.watch",
        {"task": TASK, "url": PAGE, "by": "desk", "window": "w-1"},
    ),
    "unwatch a page": (
        ["page", "unwatch", TASK, "--url", PAGE, "--by", "desk"],
        "page.unwatch",
        {"task": TASK, "url": PAGE, "by": "desk"},
    ),
    "unwatch every page": (["page", "unwatch", TASK], "page.unwatch", {"task": TASK}),
    "reconcile": (["command", "reconcile", COMMAND], "command.reconcile", {"command": COMMAND}),
    "release": (
        ["command", "release", COMMAND, "--verdict", "not-happened"],
        "command.release",
        {"command": COMMAND, "verdict": "not-happened"},
    ),
}


@pytest.mark.parametrize("story", CHANGES)
def test_a_change_is_one_request_with_a_key(
    story: str, outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, verb, params = CHANGES[story]
    given = [word.replace("{words}", str(outside.root / "words")) for word in arguments]
    assert tenuto(outside, *given) == Exit.DONE
    (asked,) = server.asked
    assert (asked.verb, asked.params, asked.key) == (verb, params, "key-1")
    assert (asked.token, asked.host) == (OPERATOR, "tenuto")
    assert capsys.readouterr().out == "it is done\n"


def test_the_caller_may_choose_the_key(outside: FakeEntrances, server: Server) -> None:
    assert tenuto(outside, "pause", TASK, "--key", "mine") == 0
    assert server.asked[0].key == "mine"


def test_a_change_tells_the_effect_on_each_task(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {
        "result": {"run": RUN},
        "effects": [{"task": TASK, "changed": False, "because": {"sentence": "the task is completed"}}],
        "text": "paused: 0 of 1 tasks changed",
    }
    server.says("task.pause", answer)
    assert tenuto(outside, "pause", RUN) == 0
    assert capsys.readouterr().out == f"paused: 0 of 1 tasks changed\n  {TASK}: the task is completed\n"
    assert tenuto(outside, "pause", RUN, "--json") == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_a_report_is_read_line_by_line(outside: FakeEntrances, server: Server) -> None:
    (outside.root / "r").write_text("commits: abc\n def\n\nremaining: one: two\n", "utf-8")
    assert tenuto(outside, "report", TASK, "--file", str(outside.root / "r")) == 0
    lines = [{"name": "commits", "value": "abc\ndef"}, {"name": "remaining", "value": "one: two"}]
    assert server.asked[0].params == {"task": TASK, "lines": lines}


READS: dict[str, tuple[Sequence[str], str, dict[str, Any], dict[str, Any]]] = {
    "runs": (["runs", "--unfinished"], "run.list", {"unfinished": "true"}, {"runs": []}),
    "tasks": (["tasks", "--run", RUN], "task.list", {"run": RUN, "unfinished": "false"}, {"tasks": []}),
    "a run": (["show", RUN], "run.show", {"run": RUN}, {"run": {"id": RUN}, "tasks": []}),
    "why": (["explain", TASK], "task.explain", {"task": TASK}, {"task": {"id": TASK}, "rungs": [], "text": "x"}),
    "why then": (
        ["explain", TASK, "--at", "2026-03-01T00:00:00Z"],
        "task.explain",
        {"task": TASK, "at": "2026-03-01T00:00:00Z"},
        {"task": {"id": TASK}, "recorded": True, "events": [], "text": "x"},
    ),
    "attention": (["attention"], "attention", {}, {"items": []}),
    "events": (["events", "--after", "7"], "events", {"after": "7", "limit": "50"}, {"events": [], "last": 7}),
    "messages": (["message", "list", TASK], "message.list", {"task": TASK}, {"messages": []}),
    "reports": (["checkpoint", "show", TASK], "checkpoint.show", {"task": TASK}, {"reports": []}),
    "policy": (["policy", "show", TASK], "policy.show", {"task": TASK}, {"policy": []}),
    "pages": (["page", "list"], "page.list", {}, {"pages": [], "unasked": []}),
    "commands": (["command", "list", "--open"], "command.list", {"only_open": "true"}, {"commands": []}),
    "a command": (["command", "show", COMMAND], "command.show", {"command": COMMAND}, {"command": {"id": COMMAND}}),
}


@pytest.mark.parametrize("story", READS)
def test_a_look_is_one_request_and_json_is_its_answer(
    story: str, outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, verb, params, answer = READS[story]
    server.says(verb, answer)
    assert tenuto(outside, *arguments) == Exit.DONE
    assert tenuto(outside, *arguments, "--json") == Exit.DONE
    assert [(asked.verb, asked.params, asked.key) for asked in server.asked] == [(verb, params, None)] * 2
    told = capsys.readouterr()
    document = told.out[told.out.index("{") :]
    assert json.loads(document) == answer
    assert told.err == ""


def test_pages_are_listed_with_who_sees_them_and_who_could_not_look(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"by": "desk", "window": "w-1", "url": PAGE, "program": "browser", "pid": 7}
    server.says("page.list", {"pages": [row], "unasked": ["web: no browser answers"]})
    assert tenuto(outside, "page", "list") == Exit.DONE
    told = capsys.readouterr().out
    assert all(str(word) in told for word in (*row, *row.values()) if word not in ("url",))
    assert "not asked: web: no browser answers" in told


def test_a_page_that_is_watched_is_named_with_its_address_and_its_witness(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong in (["--url", PAGE], ["--by", "desk"], ["--url", "file:///x", "--by", "desk"]):
        assert tenuto(outside, "page", "watch", TASK, *wrong) == Exit.WRONG_USE
        assert capsys.readouterr().err
    assert tenuto(outside, "page", "unwatch", TASK, "--url", "chat.example", "--by", "desk") == Exit.WRONG_USE


def test_a_task_is_shown_with_its_policy(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.says("task.show", {"task": {"id": TASK}})
    server.says("policy.show", {"policy": []})
    assert tenuto(outside, "show", "tttttttt", "--json") == 0
    assert [(asked.verb, asked.params["task"]) for asked in server.asked] == [
        ("task.show", "tttttttt"),
        ("policy.show", TASK),
    ]
    assert json.loads(capsys.readouterr().out) == {"task": {"id": TASK}, "policy": []}


def test_what_is_no_task_may_be_a_run(outside: FakeEntrances, server: Server) -> None:
    server.says("task.show", (404, {"error": {"code": "not_found", "message": "no"}}))
    server.says("run.show", {"run": {"id": RUN}, "tasks": []})
    assert tenuto(outside, "show", "rrrrrrrr") == 0


def test_what_is_neither_is_said_so(outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("task.show", "run.show"):
        server.says(verb, (404, {"error": {"code": "not_found", "message": "no"}}))
    assert tenuto(outside, "show", "xxxxxxxx") == Exit.WRONG_USE
    assert "there is no task and no run 'xxxxxxxx'" in capsys.readouterr().err


ERRORS = {
    "a mistake": (422, "mistake", Exit.WRONG_USE),
    "not found": (404, "not_found", Exit.WRONG_USE),
    "not allowed": (403, "not_allowed", Exit.REFUSED),
    "refused": (423, "refused", Exit.REFUSED),
    "conflict": (409, "conflict", Exit.CONFLICT),
    "no leader": (503, "no_supervisor", Exit.NO_SUPERVISOR),
    "another version": (500, "unsupported_version", Exit.UNSUPPORTED),
    "corrupt": (500, "corrupt", Exit.FAILED),
    "a fault": (500, "fault", Exit.FAILED),
    "too many": (429, "too_many", Exit.REFUSED),
}


@pytest.mark.parametrize("story", ERRORS)
def test_an_error_has_its_exit_code_a_line_and_a_mend(
    story: str, outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    status, code, expected = ERRORS[story]
    error = {"code": code, "message": "it is so", "because": "it is so", "field": "task", "see": "tenuto mend it"}
    server.says("task.pause", (status, {"error": error}))
    assert tenuto(outside, "pause", TASK) == expected
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "error: it is so (task)\nmend: tenuto mend it\n")
    assert tenuto(outside, "pause", TASK, "--json") == expected
    said = json.loads(capsys.readouterr().out)["error"]
    assert said == {
        "code": code, "message": "it is so", "exit": int(expected), "mend": "tenuto mend it", "field": "task",
        "because": "it is so",
    }  # fmt: skip


def test_every_code_the_api_speaks_has_an_exit_code() -> None:
    faults = [fault("x") for fault in present.NOT_AS_ASKED]
    codes = {present.error(fault)["error"]["code"] for fault in faults} | {"not_found", "refused", "conflict"}
    assert codes <= set(exits.BY_CODE)


def test_what_an_agent_may_leave_behind_is_what_the_verbs_say() -> None:
    assert {verb.name for verb in verbs.VERBS.values() if verb.spooled} == door.SPOOLED


def test_the_words_of_a_standing_are_said_once() -> None:
    assert {standing.value: words for standing, words in STANDINGS.items()} == glancing.SAYS


# -- without a supervisor


def test_a_change_without_a_supervisor_ends_with_3(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    assert tenuto(outside, "pause", TASK) == Exit.NO_SUPERVISOR
    assert capsys.readouterr().err == ("error: no supervisor can be reached (nobody listens)\nmend: tenuto start\n")
    assert outside.reached == []


def test_a_look_without_a_supervisor_reads_the_registry_and_says_so(
    outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tenuto(outside, "tasks") == Exit.WRONG_USE
    told = capsys.readouterr()
    assert "no supervisor is running (nobody listens)" in told.err
    assert "error: there is no registry yet" in told.err
    assert outside.reached == ["desk"]


def test_a_dead_socket_is_nobody(outside: FakeEntrances) -> None:
    import socket

    left = socket.socket(socket.AF_UNIX)
    left.bind(str(outside.places.socket))
    left.close()
    assert tenuto(outside, "pause", TASK) == Exit.NO_SUPERVISOR


# -- answers that are lost


def test_a_lost_answer_is_asked_for_again_under_the_same_key(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAUSES", (0.0, 0.0))
    server.says("task.pause", None, done())
    assert tenuto(outside, "pause", TASK) == Exit.DONE
    assert [asked.key for asked in server.asked] == ["key-1", "key-1"]


def test_an_answer_lost_for_good_is_an_unknown_outcome(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "PAUSES", (0.0, 0.0))
    server.says("task.pause", None)
    assert tenuto(outside, "pause", TASK) == Exit.UNKNOWN
    assert len(server.asked) == client.TRIES
    assert "it may have been carried out" in capsys.readouterr().err


def test_a_supervisor_that_dies_over_a_request_leaves_an_unknown_outcome(
    outside: FakeEntrances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAUSES", (0.0, 0.0))
    with serving(Server(outside.places.socket)) as server:

        def die(asked: object) -> None:
            outside.places.socket.rename(outside.root / "gone")

        server.answers["task.pause"] = die
        assert tenuto(outside, "pause", TASK) == Exit.UNKNOWN
        (outside.root / "gone").rename(outside.places.socket)


def test_an_answer_that_comes_before_all_was_heard_is_an_answer(tmp_path: Path) -> None:
    """A body that is too large is refused by its length alone, and its sender is told rather than left in doubt."""
    said = b'{"error": {"code": "too_large", "message": "a body has at most 9 bytes"}}'
    head = f"HTTP/1.1 413 Too Large\r\nContent-Length: {len(said)}\r\nConnection: close\r\n\r\n".encode()
    place = tmp_path / "api.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(place))
        listening.listen(8)

        def refuse() -> None:
            one, _ = listening.accept()
            with one:
                one.recv(64)
                one.sendall(head + said)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with pytest.raises(Failure, match="at most 9 bytes"):
            client.Client(place, "x").ask("POST", "/api/v1/runs", body={"x": "y" * (4 << 20)}, key="k")
        refusing.join(20)


def test_an_answer_that_takes_too_long_is_lost(outside: FakeEntrances, server: Server) -> None:
    held = threading.Event()
    server.answers["task.pause"] = lambda _: (held.wait(20), None)[1]
    with pytest.raises(client.Lost):
        client.Client(outside.places.socket, "x", answer=0.05)._once(
            "POST", f"/api/v1/tasks/{TASK}/pause", None, {}, "k"
        )
    held.set()


def test_no_token_is_shown_to_a_socket_of_somebody_else(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 987_654)
    assert tenuto(outside, "pause", TASK) == Exit.REFUSED
    assert server.asked == []
    assert OPERATOR not in capsys.readouterr().err


# -- inside a turn


@pytest.fixture
def turn(outside: FakeEntrances) -> FakeEntrances:
    outside.environment = {"TENUTO_TOKEN": "agents-token", "TENUTO_TASK": TASK}
    return outside


def test_a_turn_uses_its_own_token_and_its_own_task(turn: FakeEntrances, server: Server) -> None:
    assert tenuto(turn, "complete", "--evidence", "abc") == 0
    assert server.asked[0].params == {"task": TASK, "evidence": "abc", "summary": ""}
    assert server.asked[0].token == "agents-token"


def test_a_turn_never_falls_back_to_the_operators_token(turn: FakeEntrances, server: Server) -> None:
    server.says("hold", (403, {"error": {"code": "not_allowed", "message": "no"}}))
    assert tenuto(turn, "hold") == Exit.REFUSED
    assert {asked.token for asked in server.asked} == {"agents-token"}


def test_a_turn_asks_where_it_was_told_to(turn: FakeEntrances) -> None:
    elsewhere = turn.root / "other.sock"
    turn.environment = {**turn.environment, "TENUTO_API": str(elsewhere)}
    with serving(Server(elsewhere)) as server:
        assert tenuto(turn, "fail", "--reason", "no") == 0
    assert server.asked[0].verb == "task.fail"


@pytest.mark.parametrize(
    "arguments, verb",
    [
        (["complete", "--evidence", "abc"], "task.complete"),
        (["fail", "--reason", "no"], "task.fail"),
        (["wait", "--question", "which?"], "task.wait"),
        (["report", "--file", "{report}"], "task.report"),
    ],
)
def test_the_last_words_of_a_turn_are_written_down_while_nobody_listens(
    arguments: list[str], verb: str, turn: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    (turn.root / "report").write_text("remaining: one\n", "utf-8")
    given = [word.replace("{report}", str(turn.root / "report")) for word in arguments]
    assert tenuto(turn, *given) == 0
    ((kind, said, params, key),) = turn.reached
    assert (kind, said, params["task"], key) == ("spool", verb, TASK, "key-1")
    verbs.parsed(verbs.VERBS[verb], params)
    assert "no supervisor is running: it is written down" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [["up"], ["start"], ["stop"], ["restart"], ["token", "--show"], ["run", "--program", "x"], ["db", "check"]],
    ids=" ".join,
)
def test_an_agent_does_not_touch_the_service(
    arguments: list[str], turn: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tenuto(turn, *arguments) == Exit.REFUSED
    assert turn.reached == []
    assert OPERATOR not in capsys.readouterr().out


# -- texts


class Piped(io.TextIOWrapper):
    """Standard input of a pipe."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw), "utf-8")


@pytest.mark.parametrize("arguments", [["--file", "-"], []], ids=["asked for", "by itself"])
def test_a_text_may_be_piped_in(
    arguments: list[str], outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Piped("grüße".encode()))
    assert tenuto(outside, "answer", TASK, *arguments) == 0
    assert server.asked[0].params["answer"] == "grüße"


@pytest.mark.parametrize(
    "raw, said",
    [(b"\xff\xfe", "is not UTF-8 text"), (b"x" * (1024 * 1024 + 1), "is larger than")],
    ids=["not text", "too large"],
)
def test_a_text_that_cannot_be_is_refused_before_anything_is_sent(
    raw: bytes, said: str, outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    (outside.root / "words").write_bytes(raw)
    assert tenuto(outside, "answer", TASK, "--file", str(outside.root / "words")) == Exit.WRONG_USE
    assert said in capsys.readouterr().err
    assert server.asked == []


def test_a_missing_file_is_named(outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert tenuto(outside, "message", "send", TASK, "--file", "/no/such/file") == Exit.WRONG_USE
    assert "/no/such/file" in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize(
    "arguments",
    [["pause"], ["shaw"], ["continue"], ["tasks", "--nope"], ["command", "release", COMMAND, "--verdict", "maybe"],
     ["policy", "set", TASK, "x"], ["policy", "set", TASK, "a=1", "a=2"], ["events", "--limit", "0"]],
    ids=" ".join,
)  # fmt: skip
def test_wrong_use_is_2_and_one_line(
    arguments: list[str], outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tenuto(outside, *arguments) == Exit.WRONG_USE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert server.asked == []
    assert tenuto(outside, *arguments, "--json") == Exit.WRONG_USE
    assert json.loads(capsys.readouterr().out)["error"]["exit"] == 2
