"""Leave that a program asks for: asked of a person, answered into the very turn, and never taken for granted.

The programs are real where a parameter says so; the rest is tried with an agent of the protocol's own package, which
asks in the same way and starts faster.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import DONE, WORKING, Stage, block, staged
from tests.support.scripted_model import Call, Say, ScriptedModel, Step

pytestmark = pytest.mark.timeout(900)
PATIENCE = 300.0
AGENT = Path(__file__).parent.parent / "support" / "acp_agent.py"
CODEX = ("-c", "approval_policy='\"on-request\"'", "-c", "sandbox_mode='\"read-only\"'")
Steps = list[dict[str, Any]]


def real(folder: Path, agent: str, steps: list[Step]) -> AbstractContextManager[tuple[Stage, ScriptedModel, list[str]]]:
    """A real program that may do nothing unasked."""

    def asking(stage: Stage) -> None:
        stage.line = stage.line.removesuffix(" --allowedTools Bash")

    return staged(folder, agent, steps, *CODEX, ready=asking)


@contextmanager
def played(folder: Path, turns: list[Steps], config: str = "") -> Iterator[tuple[Stage, list[str]]]:
    """An agent that plays these turns, under a configuration."""
    sessions, script = folder / "sessions", folder / "script.json"
    sessions.mkdir()
    script.write_text(json.dumps(turns), "utf-8")
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(config, "utf-8")
    stage, tasks = Stage(folder, "acp", f"acp:{sys.executable} {AGENT} {script} {sessions}"), list[str]()
    try:
        yield stage, tasks
    finally:
        stage.close(*tasks)


def tool(agent: str, word: str) -> Call:
    """A call that the program asks leave for."""
    told = f"echo {word} >> log"
    if agent == "claude":
        return Call("Bash", {"command": told, "description": "keep the log"})
    return Call("exec_command", {"cmd": told, "sandbox_permissions": "require_escalated", "justification": "the log"})


def permissions(stage: Stage, task: str) -> list[sqlite3.Row]:
    """What was asked, newest first."""
    return stage.rows("SELECT * FROM permission WHERE task_id = ? ORDER BY id DESC", task)


def asked(stage: Stage, task: str, times: int = 1) -> sqlite3.Row:
    """The newest question of a task, once it has asked so often."""
    stage.home.until("the question", lambda: len(permissions(stage, task)) >= times, PATIENCE)
    return permissions(stage, task)[0]


def refused(stage: Stage, *arguments: str) -> str:
    """What a command says that is refused."""
    with pytest.raises(AssertionError) as failed:
        stage.home.tenuto(*arguments)
    return str(failed.value)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_real_program_is_answered_into_its_turn_yes_and_no_with_words(tmp_path: Path, agent: str) -> None:
    steps: list[Step] = [tool(agent, "one"), tool(agent, "two"), Say(WORKING), Say(DONE)]
    with real(tmp_path, agent, steps) as (stage, model, tasks):
        tasks.append(task := stage.run())
        row = asked(stage, task)
        assert "echo one >> log" in row["what"]
        assert stage.shown(task)["clocks"]["network"] is not None, "something was heard of its program"
        (item,) = stage.home.json("attention")["items"]
        assert "echo one >> log" in item["question"]
        assert "--allow" in item["mend"]
        assert "a permission" in stage.home.tenuto("explain", task)
        assert stage.logged() == []
        stage.home.tenuto("answer", task, "--wait", row["wait_id"], "--allow")
        asked(stage, task, times=2)
        words = stage.home.work / "words"
        words.write_text("Leave the log alone.", "utf-8")
        stage.home.tenuto("answer", task, "--deny", "--file", str(words))
        shown = stage.ended(task, PATIENCE)
        assert stage.logged() == ["one"], stage.told(task)
        assert [each["signal"] for each in reversed(shown["attempts"])] == ["working", "complete"]
        heard = [text for one in model.asked for text in (*one.words, *one.results)]
        assert any("Leave the log alone" in text for text in heard), stage.told(task)
        no, yes = stage.home.json("permissions", task)["permissions"]
        assert (yes["verdict"], yes["answered_by"], yes["outcome"]) == ("allow", "operator", "told")
        assert (no["verdict"], no["outcome"]) == ("deny", "told")


def test_words_alone_are_no_answer_and_the_supervisor_may_die_while_it_is_asked(tmp_path: Path) -> None:
    turns: list[Steps] = [[{"ask": "sweep"}, {"log": "over"}, {"say": DONE}]]
    with played(tmp_path, turns) as (stage, tasks):
        tasks.append(task := stage.run())
        row = asked(stage, task)
        words = stage.home.work / "words"
        words.write_text("Sure.", "utf-8")
        assert "asks for leave" in refused(stage, "answer", task, "--file", str(words))
        stage.kill("supervisor", task)
        (again,) = permissions(stage, task)
        assert (again["id"], again["verdict"]) == (row["id"], None)
        stage.home.tenuto("answer", task, "--allow")
        shown = stage.ended(task, PATIENCE)
        assert stage.logged() == ["sweep:yes", "over"]
        assert len(shown["attempts"]) == 1
        assert len(permissions(stage, task)) == 1
        left = "SELECT count(*) FROM token WHERE revoked_at IS NULL AND (task_id = ? OR name = ?)"
        stage.home.until("no token is left", lambda: stage.rows(left, task, task)[0][0] == 0, PATIENCE)


def test_br_105_an_answer_to_a_turn_that_died_says_so_and_the_next_turn_asks_anew(tmp_path: Path) -> None:
    turns: list[Steps] = [[{"ask": "sweep"}, {"say": DONE}], [{"ask": "sweep"}, {"say": DONE}]]
    with played(tmp_path, turns) as (stage, tasks):
        tasks.append(task := stage.run())
        first = asked(stage, task)
        stage.kill("agent", task)
        second = asked(stage, task, times=2)
        assert second["fingerprint"] == first["fingerprint"]
        late = refused(stage, "answer", task, "--wait", first["wait_id"], "--allow")
        assert "the turn that asked is over" in late
        assert stage.logged() == [], "a late word on the first question answers no other"
        stage.home.tenuto("answer", task, "--wait", second["wait_id"], "--allow")
        shown = stage.ended(task, PATIENCE)
        assert stage.logged() == ["sweep:yes"]
        assert [each["outcome"] for each in reversed(shown["attempts"])] == ["interrupted", "turn_end"]


def test_br_102_rules_and_an_answer_for_the_task_hold_for_the_very_same_wish(tmp_path: Path) -> None:
    turns: list[Steps] = [
        [{"ask": "wash-floor"}, {"ask": "wash-safe"}, {"ask": "sweep"}, {"ask": "sweep"}, {"ask": "mop"}, {"say": DONE}]
    ]
    config = '[policy]\nallow = ["*: wash-*"]\ndeny = ["*: *safe*"]\n'
    with played(tmp_path, turns, config) as (stage, tasks):
        tasks.append(task := stage.run())
        assert asked(stage, task, times=3)["what"] == "sweep"
        stage.home.tenuto("answer", task, "--allow-for-task")
        row = asked(stage, task, times=5)
        assert (row["what"], row["verdict"]) == ("mop", None)
        stage.home.tenuto("answer", task, "--deny")
        stage.ended(task, PATIENCE)
        assert stage.logged() == ["wash-floor:yes", "wash-safe:no", "sweep:yes", "sweep:yes", "mop:no"]
        rules = [each["answered_by"] for each in permissions(stage, task) if each["wait_id"] is None]
        assert rules == ["operator, before", "a rule of the policy", "a rule of the policy"]


def test_br_103_nobody_answers_for_long_no_program_is_kept_waiting_and_the_question_stays(tmp_path: Path) -> None:
    turns: list[Steps] = [
        [{"ask": "sweep"}, {"say": WORKING}],
        [{"ask": "sweep"}, {"log": "over"}, {"say": block("complete", evidence="log")}],
    ]
    with played(tmp_path, turns, "[policy]\npermission_wait = 1\n") as (stage, tasks):
        tasks.append(task := stage.run())
        row = asked(stage, task)
        over = "SELECT 1 FROM attempt WHERE task_id = ? AND ended_at IS NOT NULL"
        stage.home.until("the turn's end", lambda: bool(stage.rows(over, task)), PATIENCE)
        assert stage.logged() == ["sweep:no"]
        assert stage.shown(task)["task"]["ended_at"] is None
        assert not stage.carrying("TENUTO_TASK", task), "waiting for a person costs no running program"
        stage.home.tenuto("answer", task, "--wait", row["wait_id"], "--allow")
        shown = stage.ended(task, PATIENCE)
        assert stage.logged() == ["sweep:no", "sweep:yes", "over"], stage.told(task)
        assert len(shown["attempts"]) == 2
        assert permissions(stage, task)[0]["answered_by"] == "operator, before"
