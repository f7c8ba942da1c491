"""Installed without any extra: a whole task is done, and what would need one says which."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.support.home import Home

#: What only an extra brings, by the names it is imported by.
BROUGHT = {"accessibility": "jeepney", "acp": "acp", "github": "githubkit", "mcp": "mcp", "postgres": "psycopg"}
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / "sitecustomize.py").write_text(ABSENT.format(names=set(BROUGHT.values())), "utf-8")
    made.environment["PYTHONPATH"] = str(tmp_path / "absent")
    return made


def said(home: Home, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tenuto", *arguments],
        capture_output=True, text=True, timeout=60, check=False, cwd=home.work, env={**home.environment, **more},
    )  # fmt: skip


def test_every_extra_is_meant() -> None:
    extras = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8"))
    assert set(extras["project"]["optional-dependencies"]) == set(BROUGHT)


def test_a_whole_task_needs_no_extra(home: Home) -> None:
    agent = home.folder / "agent.py"
    agent.write_text('print("```tenuto\\nstatus: complete\\nsummary: all\\nevidence: none\\n```")', "utf-8")
    program = f"{sys.executable} {agent}"
    try:
        done = home.tenuto("run", "--objective-file", "-", "--program", program, text="Do it")
        assert "completed after 1 turn" in done
        assert home.json("status")["standing"] == "live"
    finally:
        home.tenuto("stop")


def test_what_needs_one_names_it(home: Home) -> None:
    mcp = said(home, "mcp")
    assert (mcp.returncode, "tenuto[mcp]" in mcp.stderr) == (2, True), mcp.stderr
    server = said(home, "up", TENUTO_DB="postgresql://somebody@127.0.0.1/nothing")
    assert (server.returncode, "tenuto[postgres]" in server.stderr) == (1, True), server.stderr
