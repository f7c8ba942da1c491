"""Sessions that a person began with the real programs, and what becomes of them: bound, gone on with, never disturbed.

Claude Code runs in a terminal as its person has it, and is given words at its own stops; Codex leaves out hooks that
nobody trusted. Their model is scripted, and what was done is counted in a file.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.agents import DONE, UNASKED, WORKING, Stage, logging, staged
from tests.support.programs import installed
from tests.support.scripted_model import Call, Say, Step

pytestmark = pytest.mark.timeout(300)

PATIENCE = 150.0
PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"


def tool(*words: str) -> Call:
    return Call("Bash", logging(*words))


def asked(stage: Stage, *argv: str, text: str = "Begin.\n") -> subprocess.CompletedProcess[str]:
    """A program run once by hand, where its person works."""
    return subprocess.run(
        argv, input=text, capture_output=True, text=True, timeout=120, check=False, cwd=stage.home.work,
        env=stage.home.environment,
    )  # fmt: skip


def by_hand(stage: Stage) -> str:
    """One turn of Claude Code by hand; its session."""
    claude = str(installed("@anthropic-ai/claude-code-*/claude"))
    said = asked(stage, claude, "-p", "--output-format", "json", "--allowedTools", "Bash")
    assert said.returncode == 0, (said.stdout, said.stderr)
    return str(json.loads(said.stdout)["session_id"])


def refused(stage: Stage, *arguments: str) -> tuple[int, str]:
    """The exit code and the words of a command that is refused."""
    import sys

    done = asked(stage, sys.executable, "-m", "tenuto", *arguments, text="")
    return done.returncode, done.stderr


def test_a_session_is_adopted_as_it_stands_and_gone_on_with(tmp_path: Path) -> None:
    steps: list[Step] = [Say("older"), tool("by-hand"), Say("I began."), tool("adopted"), Say(DONE)]
    with staged(tmp_path, "claude", steps, *UNASKED) as (stage, model, tasks):
        older, session = by_hand(stage), by_hand(stage)
        listed = {row["session"]: row for row in stage.home.json("adopt", "claude", "--list")["sessions"]}
        assert set(listed) == {older, session}
        assert listed[older]["newer"] == session
        code, words = refused(stage, "adopt", "claude", "--session", older)
        assert code == 4
        assert f"newer session stands in its place: {session}" in words
        assert refused(stage, "adopt", "claude", "--session", "no-such-one")[0] == 2
        task = stage.home.tenuto("adopt", stage.line, "--session", session).strip()
        tasks.append(task)
        assert refused(stage, "adopt", "claude", "--session", session)[0] == 4
        assert stage.shown(task)["attempts"] == [], "nothing is sent by its being adopted"
        stage.home.tenuto("continue", task)
        shown = stage.ended(task, PATIENCE)
        assert [row["signal"] for row in shown["attempts"]] == ["complete"], stage.told(task)
        (talk,) = shown["conversations"]
        assert talk["identity"] == session
        assert any("Begin." in text for text in model.asked[-1].words), "it is the session that was begun by hand"
        assert stage.logged() == ["by-hand", "adopted"]


@pytest.mark.prove
def test_one_that_was_passed_over_by_a_newer_session_is_not_gone_on_with(tmp_path: Path) -> None:
    steps: list[Step] = [Say("begun"), Say("newer")]
    with staged(tmp_path, "claude", steps, *UNASKED) as (stage, model, tasks):
        task = stage.home.tenuto("adopt", stage.line, "--session", by_hand(stage)).strip()
        tasks.append(task)
        newer = by_hand(stage)
        stage.home.tenuto("continue", task)
        stage.home.until("its question", lambda: any(row["closed_at"] is None for row in stage.shown(task)["waits"]))
        (wait,) = stage.shown(task)["waits"]
        assert newer in wait["question"]
        assert len(model.asked) == 2, "nothing was said to either"


def test_a_session_that_is_open_in_a_terminal_goes_on_at_its_own_stops(tmp_path: Path) -> None:
    by_hand = [Say("hello yourself"), Say("as you wish")]
    steps: list[Step] = [*by_hand, tool("one"), Say(WORKING), tool("two"), Say(DONE)]
    with staged(tmp_path, "claude", steps, *UNASKED) as (stage, model, tasks), terminal(stage) as typed:
        shown = stage.home.json("hooks", "install", "claude", "--yes")
        assert shown["done"]
        assert "never called" in stage.home.tenuto("hooks", "status", "claude")
        typed("")
        stage.home.until("its session", lambda: bool(open_sessions(stage)))
        (session,) = open_sessions(stage)
        typed("hello")
        stage.home.until("its record", lambda: bool(stage.home.json("adopt", "claude", "--list")["sessions"]))
        stage.home.until("its first answer", lambda: len(model.asked) == 1)
        task = stage.home.tenuto("adopt", stage.line, "--session", session).strip()
        tasks.append(task)
        assert "called last" in stage.home.tenuto("hooks", "status", "claude")
        stage.home.tenuto("policy", "set", task, "auto-resume=on")
        stage.home.until("words that are ready for it", lambda: waits_for_a_stop(stage, task))
        assert len(model.asked) == 1, "nothing is said to it before it stops"
        typed("go on, then")
        ended = stage.ended(task, PATIENCE)
        assert [row["signal"] for row in reversed(ended["attempts"])] == ["working", "complete"], stage.told(task)
        assert stage.logged() == ["one", "two"]
        assert open_sessions(stage) == [session], "it is open in its terminal, as it was"
        assert model.left == ()


def waits_for_a_stop(stage: Stage, task: str) -> bool:
    """Whether a turn is claimed and has not begun."""
    told = stage.told(task)
    assert '"begun"' not in told, told
    return '"claimed"' in told


def open_sessions(stage: Stage) -> list[str]:
    """The sessions that are open by Claude Code's own word."""
    place = stage.home.folder / "agent-home" / ".claude" / "sessions"
    return [str(json.loads(one.read_text("utf-8"))["sessionId"]) for one in place.glob("*.json")]


@contextmanager
def terminal(stage: Stage) -> Iterator[Callable[[str], None]]:
    """A terminal with Claude Code in it, begun by the first word that is typed."""
    home = stage.home.folder / "agent-home"
    stage.home.environment |= {"CLAUDE_CONFIG_DIR": str(home / ".claude"), "TERM": "xterm-256color"}
    (home / ".claude").mkdir(exist_ok=True)
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settled = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["no-key"], "rejected": []},
        "projects": {str(stage.home.work): trusted},
    }
    (home / ".claude" / ".claude.json").write_text(json.dumps(settled), "utf-8")
    stage.home.tenuto("restart")
    place = stage.home.folder / "t"
    begun: list[str] = []

    def tmux(*arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(place), "-f", "/dev/null", *arguments], capture_output=True, text=True, timeout=60,
            check=False, cwd=stage.home.work, env=stage.home.environment,
        )  # fmt: skip
        return done.stdout

    def typed(words: str) -> None:
        if not begun:
            claude = str(installed("@anthropic-ai/claude-code-*/claude"))
            tmux("new-session", "-d", "-x", "120", "-y", "40", claude, "--allowedTools", "Bash")
            begun.append(claude)
            stage.home.until("its prompt", lambda: PROMPT in tmux("capture-pane", "-p"))
            return
        tmux("send-keys", "-l", words)
        stage.home.until("the words", lambda: words in tmux("capture-pane", "-p"))
        tmux("send-keys", "Enter")

    try:
        yield typed
    finally:
        tmux("kill-server")


def test_codex_leaves_out_hooks_that_nobody_trusted_and_that_is_said(tmp_path: Path) -> None:
    steps: list[Step] = [Say("once"), Say("twice"), Say(DONE)]
    with staged(tmp_path, "codex", steps, *UNASKED) as (stage, model, tasks):
        stage.home.environment |= {"SCRIPTED_KEY": "no-key"}
        stage.home.tenuto("restart")
        stage.home.tenuto("hooks", "install", "codex", "--yes")
        codex = str(installed("@openai/codex-*/vendor/*/bin/codex"))
        bare = ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"')
        plain = ("exec", "--json", "--skip-git-repo-check", *bare, "-")
        first = asked(stage, codex, *plain)
        assert first.returncode == 0, first.stderr
        told = stage.home.tenuto("hooks", "status", "codex")
        assert "never called" in told
        assert "trusted" in told
        second = asked(stage, codex, *plain[:2], "--dangerously-bypass-hook-trust", *plain[2:])
        assert second.returncode == 0, second.stderr
        assert "called last" in stage.home.tenuto("hooks", "status", "codex")
        (session,) = [json.loads(line)["thread_id"] for line in second.stdout.splitlines() if "thread.started" in line]
        task = stage.home.tenuto(
            "adopt", stage.line, "--session", session, "--auto", "--env", "SCRIPTED_KEY"
        ).strip()  # fmt: skip
        tasks.append(task)
        shown = stage.ended(task, PATIENCE)
        assert [row["signal"] for row in shown["attempts"]] == ["complete"], stage.told(task)
        assert sum("Begin." in text for text in model.asked[-1].words) == 1, "it is that session and no other"
        stage.home.tenuto("hooks", "remove", "codex", "--yes")
        assert not (Path(stage.home.environment["CODEX_HOME"]) / "hooks.json").exists()
        assert not any((stage.home.folder / "home" / "state" / "hooks" / "installed").iterdir())
