"""Any agent over the Agent Client Protocol: an agent of the protocol's own package, whole tasks, killed and resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import DONE, WORKING, Stage

pytestmark = pytest.mark.timeout(180)
AGENT = Path(__file__).parent.parent / "support" / "acp_agent.py"
Steps = list[dict[str, Any]]


@contextmanager
def staged(folder: Path, turns: list[Steps]) -> Iterator[tuple[Stage, list[str]]]:
    sessions, script = folder / "sessions", folder / "script.json"
    sessions.mkdir()
    script.write_text(json.dumps(turns), "utf-8")
    stage, tasks = Stage(folder, "acp", f"acp:{sys.executable} {AGENT} {script} {sessions}"), list[str]()
    try:
        yield stage, tasks
    finally:
        stage.close(*tasks)


def prompts(stage: Stage) -> list[str]:
    """What the sessions were told, one after the other."""
    found = sorted((stage.home.folder / "sessions").iterdir())
    return [json.loads(line) for one in found for line in one.read_text("utf-8").splitlines()]


def test_a_task_over_two_turns_in_one_session(tmp_path: Path) -> None:
    turns: list[Steps] = [
        [{"log": "one"}, {"say": WORKING}],
        [{"log": "two"}, {"say": DONE}],
    ]
    with staged(tmp_path, turns) as (stage, tasks):
        tasks.append(task := stage.run())
        shown = stage.ended(task)
        assert stage.logged() == ["one", "two"], stage.told(task)
        assert [row["signal"] for row in reversed(shown["attempts"])] == ["working", "complete"]
        assert len(prompts(stage)) == 2
        (talk,) = shown["conversations"]
        assert [one.name for one in (tmp_path / "sessions").iterdir()] == [talk["identity"]]


@pytest.mark.parametrize("who", ["agent", "host", "supervisor"])
def test_killed_in_mid_turn(tmp_path: Path, who: str) -> None:
    turns: list[Steps] = [[{"log": "began"}, {"pause": 5}, {"log": "over"}, {"say": DONE}], [{"say": DONE}]]
    with staged(tmp_path, turns) as (stage, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.kill(who, task)
        shown = stage.ended(task)
        assert stage.logged().count("began") == 1
        told = prompts(stage)
        assert len(list((tmp_path / "sessions").iterdir())) == 1
        if who == "supervisor":
            assert [row["outcome"] for row in shown["attempts"]] == ["turn_end"]
            assert len(told) == 1
        else:
            assert [row["outcome"] for row in reversed(shown["attempts"])] == ["interrupted", "turn_end"]
            assert "did not come to its own end" in told[1]


def test_words_go_with_the_next_turn_and_an_interruption_is_cancelled(tmp_path: Path) -> None:
    turns: list[Steps] = [[{"log": "began"}, {"pause": 60}, {"log": "over"}]]
    with staged(tmp_path, turns) as (stage, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.home.tenuto("message", "send", task, "--policy", "steer_now", text="Mind the gap.\n")
        assert not [row for row in stage.shown(task)["commands"] if row["kind"] == "steer"]
        stage.home.tenuto("cancel", task)
        stage.home.until("its end", lambda: all(row["ended_at"] for row in stage.shown(task)["attempts"]))
        assert stage.logged() == ["began"]
        assert '"stop":"cancelled"' in stage.told(task)
        assert not stage.carrying("TENUTO_TASK", task)
