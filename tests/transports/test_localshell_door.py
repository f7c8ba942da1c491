"""Asking a tool server: what proves that nothing happened, what proves nothing, and what its log tells afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tenuto.transports.localshell import asked, door, links
from tenuto.transports.localshell.door import Door, NotAsked, Refused, Unanswered

RUN = "r_" + "0" * 24
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Reply = Callable[[dict[str, Any]], tuple[int, str] | None]


@contextmanager
def server(reply: Reply) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that answers each message as `reply` says; None: it hangs up."""
    heard: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append(message | {"authorization": self.headers.get("Authorization")})
            answer = reply(message)
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer[0])
            self.send_header("Mcp-Session-Id", "one")
            self.end_headers()
            self.wfile.write(answer[1].encode())

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/mcp", heard
    finally:
        http.shutdown()
        http.server_close()
        thread.join(10)


def result(message: dict[str, Any], **told: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": told})


def calls(structured: object, **more: Any) -> Reply:
    return lambda message: (200, result(message, structuredContent=structured, **more))


def test_it_greets_lists_and_calls_with_its_token() -> None:
    def reply(message: dict[str, Any]) -> tuple[int, str]:
        if message["method"] == "tools/list":
            tool = {"name": "session_manage", "inputSchema": {"properties": {"action": {}, "takeover": {}}}}
            return 200, f"event: message\ndata: {result(message, tools=[tool, 'no tool'])}\n\n"
        return 200, result(message, structuredContent={"ok": True, "data": {"active_run": {"run_id": RUN}}})

    with server(reply) as (url, heard):
        entered = Door(url, "secret-of-the-server")
        assert set(entered.enter()["session_manage"]) == {"action", "takeover"}
        assert asked.run_of(entered.call("session_manage", {"action": "resume"})) == RUN
    assert [each["method"] for each in heard] == [
        "initialize", "notifications/initialized", "tools/list", "tools/call",
    ]  # fmt: skip
    assert {each["authorization"] for each in heard} == {"Bearer secret-of-the-server"}


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (calls({"ok": False, "message": "no\nthat\tis refused"}), Refused),
        (calls(None, isError=True, content=[{"type": "text", "text": "superseded"}]), Refused),
        (calls(None, isError=True), Refused),
        (lambda message: (200, json.dumps({"id": message["id"], "error": {"code": -1}})), Refused),
        (lambda _: (401, "who are you"), NotAsked),
        (lambda _: (404, ""), NotAsked),
        (lambda _: (500, "oh"), Unanswered),
        (lambda _: None, Unanswered),
        (lambda _: (200, "no json"), Unanswered),
        (lambda _: (200, "[" * 100_000), Unanswered),
        (lambda message: (200, result(message | {"id": 99}, structuredContent={"data": {}})), Unanswered),
        (calls({"ok": True}), Unanswered),
        (lambda _: (200, "x" * (door.ANSWER_LIMIT + 1)), Unanswered),
    ],
)
def test_only_an_answer_proves_that_nothing_happened(reply: Reply, fault: type[Exception]) -> None:
    with server(reply) as (url, _), pytest.raises(fault):
        Door(url).call("session_manage", {})


def test_whatever_fails_before_the_call_is_not_asked() -> None:
    with server(lambda _: None) as (url, _):
        with pytest.raises(NotAsked):
            Door(url).enter()
    with pytest.raises(NotAsked):  # nobody listens there any more
        Door(url).call("session_manage", {})


@pytest.mark.parametrize(
    "url",
    ["http://192.0.2.1/mcp", "http://example.org/mcp", "ftp://127.0.0.1/", "http://u:p@127.0.0.1/mcp",
     "http://127.0.0.1/mcp?token=x", "http://127.0.0.1:0/mcp", "http://127.0.0.1:x/mcp", "nothing"],
)  # fmt: skip
def test_a_server_in_the_open_is_not_asked_without_tls(url: str) -> None:
    assert door.objection_to(url) is not None
    with pytest.raises(NotAsked):
        Door(url).call("session_manage", {})


def test_the_log_tells_of_our_own_call_only(tmp_path: Path) -> None:
    def log(*entries: dict[str, Any]) -> None:
        (tmp_path / "audit.jsonl").write_text("".join(json.dumps(each) + "\n" for each in entries) + '{"torn')

    def start(label: str, call: str = "k1") -> dict[str, Any]:
        given = {"action": "resume", "label": label}
        return {"event": "mcp_tool_call_start", "call_id": call, "ts": 1.0, "arguments": {"keyword_args": given}}

    def end(ok: bool, call: str = "k1") -> dict[str, Any]:
        data = {"ok": ok, "data": {"active_run": {"run_id": RUN}}}
        return {"event": "mcp_tool_call_end", "call_id": call, "ok": ok, "result": data if ok else {"isError": True}}

    assert asked.of("mine", tmp_path, NOW).came is None, "no log tells nothing"
    log(start("other"), end(True))
    assert asked.of("mine", tmp_path, NOW) == asked.Asked(0)
    log(start("mine"))
    assert asked.of("mine", tmp_path, NOW) == asked.Asked(1)
    log(start("mine"), end(True))
    assert asked.of("mine", tmp_path, NOW) == asked.Asked(1, True, RUN)
    log(start("mine"), end(False))
    assert asked.of("mine", tmp_path, NOW) == asked.Asked(1, False, None)
    log(start("mine"), end(True), start("mine", "k2"))
    assert asked.of("mine", tmp_path, NOW).came == 2


def test_a_log_whose_end_is_younger_than_the_call_tells_nothing(tmp_path: Path) -> None:
    line = json.dumps({"event": "x", "ts": NOW.timestamp() + 1, "pad": "x" * 1000}) + "\n"
    (tmp_path / "audit.jsonl").write_text(line * (links.TAIL // len(line) + 10))
    assert asked.of("mine", tmp_path, NOW).came is None
    later = datetime.fromtimestamp(NOW.timestamp() + 2, UTC)
    assert asked.of("mine", tmp_path, later).came == 0
