"""What becomes of a program's session: it is compacted by the program itself, it vanishes, its host dies while it asks.

Claude Code is real and its model is scripted. What was done is counted in a file that only its tools write.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.agents import DONE, WORKING, Stage, staged
from tests.support.scripted_model import Call, Fail, Say, Step, Wait

pytestmark = pytest.mark.timeout(900)
PATIENCE = 300.0
FULL = "prompt is too long: 210000 tokens > 200000 maximum"


def asking(stage: Stage) -> None:
    """The program may do nothing unasked."""
    stage.line = stage.line.removesuffix(" --allowedTools Bash")


def bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "keep the log"})


def test_a_session_that_its_program_compacts_goes_on_as_it_is(tmp_path: Path) -> None:
    first: list[Step] = [bash("echo one >> log"), Say(WORKING)]
    full = Fail(400, body={"type": "error", "error": {"type": "invalid_request_error", "message": FULL}})
    second: list[Step] = [full, Say("<summary>One is in the log.</summary>"), bash("echo two >> log"), Say(DONE)]
    with staged(tmp_path, "claude", [*first, *second]) as (stage, model, tasks):
        tasks.append(task := stage.run())
        shown = stage.ended(task, PATIENCE)
        assert model.complaints == []
        assert model.left == ()
        assert [one["outcome"] for one in shown["attempts"]] == ["turn_end", "turn_end"], stage.told(task)
        assert len(shown["conversations"]) == 1, "it goes on in the same session"
        assert stage.logged() == ["one", "two"]
        assert stage.told(task).count('"compacted":"1"') == 1, "it was seen, in one turn"
        assert stage.home.json("limits", "--all")["limits"] == []
        assert stage.rows("SELECT * FROM wait WHERE task_id = ?", task) == []


def vanished(stage: Stage, task: str, held: threading.Event) -> None:
    """The task is paused in its first turn, and its session's record is taken away after it."""
    stage.until_logged("one")
    stage.home.tenuto("pause", task)
    held.set()
    over = "SELECT 1 FROM attempt WHERE task_id = ? AND ended_at IS NOT NULL"
    stage.home.until("the turn's end", lambda: bool(stage.rows(over, task)), PATIENCE)
    (talk,) = stage.shown(task)["conversations"]
    (record,) = stage.home.folder.glob(f".claude/projects/*/{talk['identity']}.jsonl")
    record.unlink()
    stage.home.tenuto("resume", task)


def test_a_session_that_vanished_is_followed_by_a_fresh_one_with_what_is_known(tmp_path: Path) -> None:
    held = threading.Event()
    first: list[Step] = [bash("echo one >> log"), Wait(PATIENCE, held), Say(WORKING)]
    with staged(tmp_path, "claude", [*first, bash("echo two >> log"), Say(DONE)]) as (stage, model, tasks):
        tasks.append(task := stage.run())
        vanished(stage, task, held)
        shown = stage.ended(task, PATIENCE)
        old, new = stage.rows("SELECT * FROM conversation WHERE task_id = ? ORDER BY opened_at", task)
        assert (old["state"], new["parent"]) == ("superseded", old["id"]), stage.told(task)
        assert old["identity"] != new["identity"]
        assert stage.logged() == ["one", "two"]
        assert shown["task"]["attempts"] == 2, "a session that is gone burns no attempt"
        fresh = model.asked[2]
        assert any("taking over work that was begun in another conversation" in text for text in fresh.words)
        assert fresh.results == ()
        assert model.complaints == []


def test_where_the_policy_lets_no_fresh_session_begin_a_person_is_asked(tmp_path: Path) -> None:
    held = threading.Event()
    first: list[Step] = [bash("echo one >> log"), Wait(PATIENCE, held), Say(WORKING)]
    with staged(tmp_path, "claude", [*first, bash("echo two >> log"), Say(DONE)]) as (stage, model, tasks):
        tasks.append(task := stage.run("Keep the log.\n", "--policy", "fresh_sessions=0"))
        vanished(stage, task, held)
        stage.home.until("the question", lambda: bool(stage.home.json("attention")["items"]), PATIENCE)
        (item,) = stage.home.json("attention")["items"]
        assert "Shall a fresh session take it over?" in item["question"]
        assert len(model.asked) == 2, "nothing is begun meanwhile"
        words = stage.home.work / "words"
        words.write_text("Yes.", "utf-8")
        stage.home.tenuto("answer", task, "--file", str(words))
        stage.ended(task, PATIENCE)
        assert stage.logged() == ["one", "two"]
        assert any("taking over work that was begun" in text for text in model.asked[2].words)


def test_a_host_that_dies_while_it_asks_leaves_no_consent_behind(tmp_path: Path) -> None:
    # Whoever asks next, the orphan or the turn of recovery, may take the words; the turn after that asks for leave.
    steps: list[Step] = [bash("echo one >> log"), Say("Nothing was allowed."), bash("echo one >> log"), Say(DONE)]
    asks = "SELECT * FROM permission WHERE task_id = ? ORDER BY id"
    with staged(tmp_path, "claude", steps, ready=asking) as (stage, _, tasks):
        tasks.append(task := stage.run())
        stage.home.until("the question", lambda: len(stage.rows(asks, task)) == 1, PATIENCE)
        (first,) = stage.rows(asks, task)
        stage.kill("host", task)
        stage.home.until("it is asked anew", lambda: len(stage.rows(asks, task)) == 2, PATIENCE)
        assert stage.logged() == []
        late = refused(stage, "answer", task, "--wait", first["wait_id"], "--allow")
        assert "the turn that asked is over" in late
        second = stage.rows(asks, task)[1]
        assert (second["verdict"], second["fingerprint"]) == (None, first["fingerprint"])
        stage.home.tenuto("answer", task, "--wait", second["wait_id"], "--allow")
        stage.ended(task, PATIENCE)
        assert stage.logged() == ["one"], stage.told(task)
        before, after = stage.rows(asks, task)
        assert (before["verdict"], after["verdict"]) == (None, "allow")


def refused(stage: Stage, *arguments: str) -> str:
    """What a command says that is refused."""
    with pytest.raises(AssertionError) as failed:
        stage.home.tenuto(*arguments)
    return str(failed.value)
