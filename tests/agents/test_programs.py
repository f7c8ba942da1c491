"""Claude Code and Codex themselves as workers: several turns, words into a turn, and whoever is killed in mid tool.

The programs are real and their model is scripted. What was done is counted in a file that only their tools write.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.agents import DONE, UNASKED, WORKING, answers, logging, staged
from tests.support.scripted_model import Call, Say, Step

pytestmark = pytest.mark.timeout(240)


TOOL = {"claude": "Bash", "codex": "exec_command"}


@pytest.fixture(params=["claude", "codex"])
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tool(agent: str, *words: str, pause: float = 0.0) -> Call:
    """A call of the program's shell tool that logs these words."""
    (told,) = logging(*words, pause=pause).values()
    return Call(TOOL[agent], {"command": told} if agent == "claude" else {"cmd": told, "yield_time_ms": 30000})


def test_a_task_over_two_turns_in_one_session(tmp_path: Path, agent: str) -> None:
    steps: list[Step] = [tool(agent, "one"), Say(WORKING), tool(agent, "two"), Say(DONE)]
    with staged(tmp_path, agent, steps, *UNASKED) as (stage, model, tasks):
        tasks.append(task := stage.run())
        shown = stage.ended(task)
        second, first = shown["attempts"]
        assert stage.logged() == ["one", "two"]
        assert [first["signal"], second["signal"]] == ["working", "complete"]
        assert (first["tokens_in"], second["tokens_in"]) == (22, 22), "what an earlier turn took is not taken again"
        if agent == "claude":
            assert first["cost"] == second["cost"] > 0
        (talk,) = shown["conversations"]
        assert ":" not in talk["identity"], "it is called what the program calls its session"
        assert any("Keep the log" in text for text in model.asked[-1].words), "the session remembers its first turn"
        assert model.complaints == []
        assert "no-key" not in stage.told(task)
        assert len(stage.host_of(task)) == 1


def test_words_into_a_turn_under_way_are_acknowledged_by_that_turn(tmp_path: Path, agent: str) -> None:
    steps: list[Step] = [tool(agent, "began", "over", pause=6), Say(DONE)]
    with staged(tmp_path, agent, steps, *UNASKED) as (stage, model, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.home.tenuto("message", "send", task, "--policy", "steer_now", text="Mind the gap.\n")
        shown = stage.ended(task)
        assert len(shown["attempts"]) == 1
        (message,) = stage.home.json("message", "list", task)["messages"]
        assert message["state"] == "delivered", (message, stage.told(task))
        (steer,) = [row for row in shown["commands"] if row["kind"] == "steer"]
        assert steer["state"] == "acknowledged"
        assert any("Mind the gap" in text for text in model.asked[-1].words)
        assert stage.logged() == ["began", "over"]


@pytest.mark.parametrize("who", ["agent", "host"])
def test_killed_in_mid_tool_it_is_resumed_in_its_session_and_the_tool_is_not_done_again(
    tmp_path: Path, agent: str, who: str
) -> None:
    steps: list[Step] = [tool(agent, "began", "over", pause=4), *answers(4)]
    with staged(tmp_path, agent, steps, *UNASKED) as (stage, model, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.kill(who, task)
        shown = stage.ended(task)
        assert stage.logged().count("began") == 1
        outcomes = [row["outcome"] for row in reversed(shown["attempts"])]
        assert outcomes == ["interrupted", "turn_end"], stage.told(task)
        assert len(shown["conversations"]) == 1
        assert any("Keep the log" in text for text in model.asked[-1].words)
        assert any("did not come to its own end" in text for text in model.asked[-1].words)


def test_a_supervisor_that_is_killed_in_mid_tool_finds_the_turn_going_on(tmp_path: Path, agent: str) -> None:
    steps: list[Step] = [tool(agent, "began", "over", pause=4), Say(DONE)]
    with staged(tmp_path, agent, steps, *UNASKED) as (stage, model, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.kill("supervisor", task)
        shown = stage.ended(task)
        assert stage.logged() == ["began", "over"]
        assert [row["outcome"] for row in shown["attempts"]] == ["turn_end"]
        assert model.complaints == []


def test_a_person_interrupts_a_turn_in_mid_tool(tmp_path: Path, agent: str) -> None:
    steps: list[Step] = [tool(agent, "began", "over", pause=30), *answers(3)]
    with staged(tmp_path, agent, steps, *UNASKED) as (stage, _, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.home.tenuto("cancel", task)
        shown = stage.ended(task)
        stage.home.until("the turn's end", lambda: all(row["ended_at"] for row in stage.shown(task)["attempts"]))
        assert shown["task"]["state"] == "cancelled"
        assert stage.logged() == ["began"]
        assert not stage.carrying("TENUTO_TASK", task)
