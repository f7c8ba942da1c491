"""Real programs that cannot go on: a usage limit with its reset, an overloaded service, a session that is full.

The programs are real and their model is scripted: it fails as the services do, with their headers and bodies. What is
counted is what the model was asked and what the disk holds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import DONE, UNASKED, WORKING, Stage, staged
from tests.support.scripted_model import Call, Fail, Late, Say, ScriptedModel, Step, Wait

pytestmark = pytest.mark.timeout(900)
PATIENCE = 300.0
CODEX = (
    *UNASKED,
    *("-c", "model_providers.scripted.request_max_retries=0", "-c", "model_providers.scripted.stream_max_retries=0"),
)
CONFIG = """[policy]
limit_buffer = 1
limit_jitter = 1
overload_retry = [1]
"""
LIMIT = {"type": "rate_limit_error", "message": "This request would exceed your account's rate limit."}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
FULL: dict[str, dict[str, Any]] = {
    "claude": {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}},
    "codex": {"error": {"message": "exceeds the context window", "code": "context_length_exceeded"}},
}


def spent(agent: str, seconds: int) -> Fail:
    """The account's usage is spent, until so many seconds from now."""
    at = int(time.time()) + seconds
    if agent == "claude":
        told = {"status": "rejected", "reset": str(at), "representative-claim": "five_hour"}
        headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in told.items()}
        return Fail(429, headers=headers, body={"type": "error", "error": LIMIT})
    headers = {"used-percent": "100", "window-minutes": "300", "reset-at": str(at)}
    error = {"type": "usage_limit_reached", "message": "reached", "plan_type": "plus", "resets_at": at}
    named = {f"x-codex-primary-{name}": value for name, value in headers.items()}
    return Fail(429, headers=named, body={"error": error})


def hindered(
    folder: Path, agent: str, steps: Sequence[Step], **environment: str
) -> AbstractContextManager[tuple[Stage, ScriptedModel, list[str]]]:
    """A program whose limits are short, with these variables more."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(CONFIG, "utf-8")

    def ready(stage: Stage) -> None:
        if environment:
            stage.home.environment |= environment
            if "CLAUDE_CODE_OAUTH_TOKEN" in environment:
                del stage.home.environment["ANTHROPIC_API_KEY"]
            stage.home.tenuto("restart")

    return staged(folder, agent, steps, *CODEX, ready=ready)


def outcomes(shown: dict[str, Any]) -> list[str]:
    return [row["outcome"] for row in reversed(shown["attempts"])]


def tool(agent: str, word: str) -> Call:
    told = f"echo {word} >> log"
    return Call("Bash", {"command": told}) if agent == "claude" else Call("exec_command", {"cmd": told})


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_br_082_all_tasks_of_the_account_wait_for_the_reset_and_go_on_once_each(tmp_path: Path, agent: str) -> None:
    far, near = Late(lambda: spent(agent, 3600)), Late(lambda: spent(agent, 2))
    steps: list[Step] = [tool(agent, "one"), far, near, Say(DONE), Say(DONE)]
    more = {"CLAUDE_CODE_OAUTH_TOKEN": "no-token-at-all"} if agent == "claude" else {}
    open_ = "SELECT 1 FROM wait WHERE kind = 'limit' AND closed_at IS NULL"
    with hindered(tmp_path, agent, steps, **more) as (stage, model, tasks):
        tasks.append(task := stage.run())
        stage.home.until("the limit", lambda: bool(stage.rows(open_)), PATIENCE)
        asked = len(model.asked)
        tasks.append(other := stage.run("Another piece of work.\n"))
        stage.home.until("both wait", lambda: len(stage.rows(open_)) == 2, PATIENCE)
        (limit,) = stage.home.json("limits")["limits"]
        assert limit["resets_at"] is not None
        assert {one["task"] for one in limit["waiting"]} == {task, other}
        told = stage.home.tenuto("explain", task)
        assert "waits for a limit to reset" in told
        assert limit["account"] in told
        assert stage.shown(task)["task"]["attempts"] == 0, "a limit burns no attempt"
        assert stage.home.json("attention")["items"] == []
        stage.kill("supervisor", task)
        assert len(model.asked) == asked, "no turn is made to find out"
        stage.home.tenuto("limits", "lift", limit["id"])
        ends = [stage.ended(one, PATIENCE) for one in (task, other)]
        assert sorted(word for shown in ends for word in outcomes(shown)) == [
            "hindered", "hindered", "turn_end", "turn_end",
        ], "whoever meets the limit again, once it is lifted, waits for its reset and goes on"  # fmt: skip
        assert stage.logged() == ["one"]
        assert all(len(shown["conversations"]) == 1 for shown in ends), "they go on in the same sessions"
        assert len(model.asked) == asked + 3
        assert model.complaints == []
        assert any("was stopped from outside" in text for one in model.asked for text in one.words)
        first, second = stage.home.json("limits", "--all")["limits"][::-1]
        assert (first["closed_by"], second["closed_by"]) == ("operator", "a turn has gone through")


def test_an_overloaded_service_is_tried_again_and_is_no_limit(tmp_path: Path) -> None:
    down, watched = Fail(529, body=OVERLOADED), threading.Event()
    steps: list[Step] = [down, Wait(until=watched), down, Say(DONE)]
    with hindered(tmp_path, "claude", steps, CLAUDE_CODE_MAX_RETRIES="1") as (stage, model, tasks):
        stage.named = ("CLAUDE_CODE_MAX_RETRIES",)
        tasks.append(task := stage.run())
        sighted = 'SELECT 1 FROM sighting WHERE task_id = ? AND facts LIKE \'%"retrying","true"%\''
        stage.home.until("its own trying again is seen", lambda: bool(stage.rows(sighted, task)), PATIENCE)
        watched.set()
        shown = stage.ended(task, PATIENCE)
        assert outcomes(shown) == ["hindered", "turn_end"]
        assert shown["task"]["attempts"] == 1
        assert stage.home.json("limits", "--all")["limits"] == []
        (wait,) = stage.rows("SELECT * FROM wait WHERE task_id = ?", task)
        assert (wait["kind"], wait["subject"]) == ("time", "overload")
        assert model.complaints == []


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_full_session_is_handed_over_to_a_fresh_one(tmp_path: Path, agent: str) -> None:
    before: list[Step] = [tool(agent, "one"), Say(WORKING)] if agent == "codex" else []
    with hindered(tmp_path, agent, [*before, Fail(400, body=FULL[agent]), Say(DONE)]) as (stage, model, tasks):
        tasks.append(task := stage.run())
        shown = stage.ended(task, PATIENCE)
        assert outcomes(shown)[-2:] == ["hindered", "turn_end"], stage.told(task)
        assert stage.logged() == ["one"] * (agent == "codex")
        old, new = stage.rows("SELECT * FROM conversation WHERE task_id = ? ORDER BY opened_at", task)
        assert (old["state"], new["parent"]) == ("superseded", old["id"])
        last = model.asked[-1]
        assert any("taking over work that was begun in another conversation" in text for text in last.words)
        assert any("Keep the log" in text for text in last.words)
        assert len(last.results) == 0, "it is another session"
