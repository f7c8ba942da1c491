"""Gemini CLI by its stream and opencode over ACP: whole tasks in one session, killed in mid tool, three kinds at once.

The programs are real and their model is scripted. What was done is counted in a file that only their tools write.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.agents import DONE, WORKING, Stage, answers, lined, logging, staged
from tests.support.scripted_model import Call, Say, ScriptedModel, Step

pytestmark = pytest.mark.timeout(300)

PATIENCE = 200.0
TOOL = {"gemini": "run_shell_command", "opencode": "bash", "claude": "Bash"}


def tool(agent: str, *words: str, pause: float = 0.0) -> Call:
    """A call of the program's shell tool that logs these words."""
    return Call(TOOL[agent], {**logging(*words, pause=pause), "description": "write the log"})


@pytest.mark.prove
@pytest.mark.parametrize("who", ["agent", "host"])
def test_opencode_killed_in_mid_tool_is_gone_on_with_in_its_session(tmp_path: Path, who: str) -> None:
    steps: list[Step] = [tool("opencode", "began", "over", pause=6), *answers(4)]
    with staged(tmp_path, "opencode", steps) as (stage, model, tasks):
        tasks.append(task := stage.run())
        stage.until_logged("began")
        stage.kill(who, task)
        shown = stage.ended(task, PATIENCE)
        assert stage.logged().count("began") == 1
        outcomes = [row["outcome"] for row in reversed(shown["attempts"])]
        assert outcomes == ["interrupted", "turn_end"], stage.told(task)
        assert len(shown["conversations"]) == 1
        assert any("Keep the log" in text for text in model.asked[-1].words), "the session remembers its first turn"
        assert any("did not come to its own end" in text for text in model.asked[-1].words)


def test_three_kinds_of_agents_at_once_each_in_a_session_of_its_own(tmp_path: Path) -> None:
    kinds = ("claude", "gemini", "opencode")
    with ExitStack() as open_models:
        models = {
            kind: open_models.enter_context(
                ScriptedModel([tool(kind, f"{kind}-one"), Say(WORKING), tool(kind, f"{kind}-two"), Say(DONE)])
            )
            for kind in kinds
        }
        stage, tasks = Stage(tmp_path, "claude", models["claude"].url), dict[str, str]()
        lines = {"claude": stage.line}
        for kind in kinds[1:]:
            lines[kind], environment, _ = lined(tmp_path, kind, models[kind].url)
            stage.home.environment |= environment
        stage.home.tenuto("restart")
        try:
            for kind in kinds:
                said = stage.home.tenuto("run", "--agent", lines[kind], "--detach", text="Keep the log.\n")
                tasks[kind] = said.strip()
            for kind, task in tasks.items():
                shown = stage.ended(task, PATIENCE)
                assert [row["signal"] for row in reversed(shown["attempts"])] == ["working", "complete"], kind
                (talk,) = shown["conversations"]
                assert ":" not in talk["identity"], "it is called what the program calls its session"
                assert any("Keep the log" in text for text in models[kind].asked[-1].words), kind
                assert models[kind].complaints == [], kind
            assert sorted(stage.logged()) == sorted(f"{kind}-{word}" for kind in kinds for word in ("one", "two"))
        finally:
            stage.close(*tasks.values())
