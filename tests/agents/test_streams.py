"""Recorded streams of real programs, read into neutral events: what began, what was steered, what ended and how.

The recordings are kept per version in `tests/data/agents`; a new version gets a recording of its own.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tenuto.core import hindrances
from tenuto.model.evidence import Hindered, Hindrance
from tenuto.transports.agents import acp, claude, codex, sessions
from tenuto.transports.agents import events as said
from tenuto.transports.agents.hindering import Hindering

DATA = Path(__file__).parent.parent / "data" / "agents"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def test_claude_code_both_ways() -> None:
    turns: list[list[said.Event]] = []
    told = iter(["hello 1", "CALL Bash", "SLEEP 20", "after interrupt", "CALL Bash"])
    reading = claude.Reading()
    reading.give(next(told))
    seen: list[said.Event] = []
    for line in lines("claude-2.1.197-bidirectional.jsonl"):
        found = reading.of(line)
        seen += found
        if any(isinstance(event, said.ToolBegan) for event in found):
            reading.give("SAY steering")
        if any(isinstance(event, said.TurnEnded) for event in found):
            turns.append(seen)
            seen, reading.turn = [], None
            reading.given.clear()
            reading.give(next(told))
    hello, steered, cut, after = turns
    assert [type(event).__name__ for event in hello] == ["Opened", "TurnBegan", "Said", "TurnEnded"]
    assert hello[-1] == said.TurnEnded(
        hello[1].turn, "success", usage=said.Usage(11, 7, None, "USD"), session_cost=230  # type: ignore[union-attr]
    )  # fmt: skip
    began = next(event for event in steered if isinstance(event, said.TurnBegan))
    assert said.Steered(began.turn, "SAY steering") in steered
    assert said.Said("RESULT slept") in steered
    ended = cut[-1]
    assert isinstance(ended, said.TurnEnded)
    assert (ended.stop, ended.interrupted, ended.failed) == ("aborted_streaming", True, True)
    assert not any(isinstance(event, said.Said) and "interrupted" in event.text for event in cut)
    assert isinstance(after[-1], said.TurnEnded)
    assert [type(event).__name__ for event in seen] == ["TurnBegan", "ToolBegan"], "killed in mid tool: no end is said"


def test_claude_code_waits_compacts_and_is_denied() -> None:
    reading = claude.Reading()
    found = [event for line in lines("claude-2.1.197-odd.jsonl") for event in reading.of(line)]
    retries = [event for event in found if isinstance(event, said.Retrying)]
    told = [(one.attempt, one.most, one.reason) for one in retries]
    assert told[:2] == [(1, 10, "overloaded"), (2, 10, "overloaded")]
    boundary = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "manual"}}
    assert reading.of(boundary) == [said.Compacted(automatic=False)]
    assert any(isinstance(event, said.PermissionSettled) and event.allowed is False for event in found)
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1796000000}}
    (limited,) = reading.of(limit)
    assert isinstance(limited, said.Limited)
    assert limited.resets_at is not None
    limit["rate_limit_info"] = {"status": "allowed_warning"}
    assert reading.of(limit) == []


def test_a_sub_agents_words_are_not_the_agents() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "from below"}]}
    assert claude.Reading().of({"type": "assistant", "parent_tool_use_id": "toolu_1", "message": message}) == []


def test_codex_over_its_app_server() -> None:
    thread = "01a22b91-b95c-73e1-b9c9-34be259c2d0d"
    ends: list[tuple[str, bool]] = []
    taken: list[said.Event] = []
    given = iter(["hello app", "CALL exec_command", "SLEEP 20", "SLEEP 20", "SAY after resume"])
    reading = codex.Reading(thread)
    reading.give(next(given))
    for line in lines("codex-0.171.0-appserver.jsonl"):
        if line["method"] == "turn/started" and reading.turn is not None:
            reading = codex.Reading(thread)  # the program was killed, and another goes on
            reading.give(next(given))
        for event in reading.of(line):
            taken.append(event)
            if isinstance(event, said.ToolBegan):
                reading.give("m-1")
            if isinstance(event, said.TurnEnded):
                ends.append((event.stop, event.interrupted))
                reading = codex.Reading(thread)
                reading.give(next(given, "nothing more"))
    assert ends[:3] == [("completed", False), ("completed", False), ("interrupted", True)]
    (steered,) = [event for event in taken if isinstance(event, said.Steered)]
    turns = [event for event in taken if isinstance(event, said.TurnBegan)]
    assert steered == said.Steered(turns[1].turn, "m-1")
    first = next(event for event in taken if isinstance(event, said.TurnEnded))
    assert first.usage == said.Usage(11, 7)


def test_codex_names_limits_and_what_it_tries_again() -> None:
    reading = codex.Reading("x")

    def error(info: object, *, retries: bool) -> list[said.Event]:
        told = {"error": {"message": "words", "codexErrorInfo": info}, "willRetry": retries, "threadId": "x"}
        return reading.of({"method": "error", "params": told})

    assert error("usageLimitExceeded", retries=False) == [said.Limited("words")]
    assert error("contextWindowExceeded", retries=False) == [said.ContextFull("words")]
    assert error({"responseStreamDisconnected": {}}, retries=True) == [said.Retrying(1, None, None, "words")]
    assert error({"responseStreamDisconnected": {}}, retries=False) == [said.Overloaded("words")]
    assert error("badRequest", retries=False) == [said.Failure("badRequest", "words")]


def test_chunks_of_an_acp_message_are_one_text() -> None:
    reading = acp.Reading("s")
    reading.give("[tenuto:c-1]")

    def update(**told: object) -> list[said.Event]:
        return reading.of({"method": "session/update", "params": {"sessionId": "s", "update": told}})

    chunk = {"sessionUpdate": "agent_message_chunk"}
    assert update(**chunk, content={"type": "text", "text": "``"}) == [said.TurnBegan("prompt-c-1", "[tenuto:c-1]")]
    assert update(**chunk, content={"type": "text", "text": "`tenuto\n"}) == []
    answer = reading.ended({"result": {"stopReason": "end_turn"}})
    assert answer == [said.Said("```tenuto\n"), said.TurnEnded("prompt-c-1", "end_turn")]


def test_a_session_is_gone_back_to_by_its_conversation_alone(tmp_path: Path) -> None:
    assert sessions.held(tmp_path) is None
    sessions.keep(tmp_path, sessions.Held("v-1", "abc", confirmed=False))
    known = sessions.held(tmp_path)
    assert known == sessions.Held("v-1", "abc", confirmed=False)
    assert sessions.named("claude:t-1/1", "v-1", known) == known
    assert sessions.named("claude:t-1/2", "v-2", known) is None, "another conversation begins another session"
    assert sessions.named("abc", "v-3", known) == sessions.Held("v-3", "abc", confirmed=True)
    (tmp_path / sessions.RECORD).write_text("{", "utf-8")
    assert sessions.held(tmp_path) is None


def test_every_event_can_be_said_as_facts() -> None:
    told = said.facts_of(said.PermissionAsked("7", "Bash", "make", "ab"))
    assert json.loads(json.dumps(told)) == {
        "event": "PermissionAsked", "request": "7", "tool": "Bash", "what": "make", "fingerprint": "ab",
    }  # fmt: skip


def read(name: str, reading: claude.Reading | codex.Reading) -> list[said.Event]:
    """What a recording comes to, for words that carried the marker of the recordings."""
    reading.give("[tenuto:c-1]")
    return [event for line in lines(name) for event in reading.of(line)]


def hindered(name: str, reading: claude.Reading | codex.Reading) -> Hindered | None:
    """What hindered the turn of a recording."""
    seen = datetime(2026, 11, 30, 13, 55, tzinfo=UTC)
    hindering, last = Hindering(lambda: seen), None
    for event in read(name, reading):
        hindering.hear(event)
        last = event if isinstance(event, said.TurnEnded) else last
    return hindering.of(last)


@pytest.mark.parametrize(
    ("name", "by", "more"),
    [
        ("claude-2.1.332-limit.jsonl", Hindrance.LIMIT, ("five_hour", None)),
        ("claude-2.1.332-limit-of-a-model.jsonl", Hindrance.LIMIT, ("seven_day_opus", "opus")),
        ("claude-2.1.332-overload.jsonl", Hindrance.OVERLOAD, (None, None)),
        ("claude-2.1.332-full.jsonl", Hindrance.CONTEXT, (None, None)),
        ("claude-2.1.332-login.jsonl", Hindrance.LOGIN, (None, None)),
        ("codex-0.171.0-limit.jsonl", Hindrance.LIMIT, ("primary", None)),
        ("codex-0.171.0-full.jsonl", Hindrance.CONTEXT, (None, None)),
        ("codex-0.171.0-overload.jsonl", Hindrance.OVERLOAD, (None, None)),
    ],
)
def test_what_hinders_a_turn_is_read_from_each_versions_recording(
    name: str, by: Hindrance, more: tuple[str | None, str | None]
) -> None:
    reading = claude.Reading() if name.startswith("claude") else codex.Reading(thread_of(name))
    held = hindered(name, reading)
    assert held is not None
    assert (held.by, (held.name, held.model)) == (by, more)
    if by is Hindrance.LIMIT:
        assert held.resets_at is not None
        assert held.resets_at.tzinfo is not None


def thread_of(name: str) -> str:
    return str(next(line["params"]["threadId"] for line in lines(name) if "threadId" in line.get("params", {})))


def test_br_093_ordinary_words_and_a_passing_rate_are_no_limit() -> None:
    assert hindered("claude-2.1.332-rate.jsonl", claude.Reading()) is None, "it was tried again and went through"
    assert hindered("claude-2.1.332-permission.jsonl", claude.Reading()) is None
    for program, codes, text in (
        ("claude", ["invalid_request"], "You've hit your 5-hour limit · resets 3am"),
        ("claude", [], "usage limit reached|1796050800"),
        ("codex", ["badRequest"], "You've hit your usage limit. Try again at 3:05 PM."),
        ("acp", ["-32602"], "quota exhausted, retry in 3 h"),
        ("acp", ["-32603"], "the quota of your disk is exhausted"),
    ):
        assert hindrances.of(program, codes, text) is None, (program, codes, text)


def test_a_text_says_when_it_resets_where_no_field_does() -> None:
    hindering = Hindering(lambda: datetime(2026, 11, 30, 13, 55, tzinfo=UTC))
    hindering.hear(said.Limited("You've hit your 5-hour limit · resets 11:53pm (Asia/Tokyo)"))
    held = hindering.of(said.TurnEnded("t", "error", failed=True))
    assert held is not None
    assert held.resets_at == datetime(2026, 11, 30, 14, 53, tzinfo=UTC)


def test_what_is_overcome_hinders_nothing() -> None:
    hindering = Hindering(lambda: datetime(2026, 11, 30, tzinfo=UTC))
    hindering.hear(said.Retrying(2, 10, 1.0, "overloaded"))
    retrying = hindering.retrying
    assert retrying == "overloaded (try 2 of 10, again in 1 s)"
    hindering.hear(said.ContextFull("full"))
    hindering.hear(said.Compacted(automatic=True))
    hindering.hear(said.Said("on it"))
    assert hindering.retrying is None
    assert hindering.of(said.TurnEnded("t", "success")) is None


def test_codex_asks_leave_for_a_command() -> None:
    asked = [line for line in lines("codex-0.171.0-permission.jsonl") if "id" in line and "method" in line]
    (one,) = asked
    assert one["method"] in codex.APPROVALS
    assert one["params"]["command"] == "/bin/bash -lc 'touch made; echo hi'"


def test_a_wish_has_one_fingerprint_in_whatever_order_it_is_told() -> None:
    first = said.print_of("Bash", {"command": "make", "description": "x"})
    assert first == said.print_of("Bash", {"description": "x", "command": "make"})
    assert first != said.print_of("Bash", {"command": "make ", "description": "x"})
