"""The example agent in real repositories: one commit per file, whatever happens to it on the way."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tenuto.core.signal import Blocked, Complete, Kind, NoSignal, Signal, Working, blocks_in, read_signal

PROGRAM = Path(__file__).parents[2] / "examples" / "tidy_docs.py"
PROMPT = "Tidy the docs.\n"
TURNS = 12

GUIDE = (
    "# Guide\n\n## Use\n\n"
    "See [intro](intro.md#top), [gone](lost.md), [web](https://example.org/x) and `[code](no.md)`.\n\n"
    "```\n# Guide\n[fenced](no.md)\n```\n\n## Use\n\n## Use (2)\n\n"
    "![picture](<img/a b.png>)\n\n[ref]: ../outside.md\n\n## Use"
)
NOTES = "Title\n=====\n\nPart\n----\n\n`gone <lost.rst>`_ and `web <https://example.org>`_\n\nPart\n----\n"


def git(repo: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five text files, two of them below a folder, one with a name that needs care, and one that is no text."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("TIDY_DIE_AT", "TIDY_PACE"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "repo"
    (root / "docs").mkdir(parents=True)
    for name, text in {
        "a.txt": "no newline",
        "docs/guide.md": GUIDE,
        "docs/intro.md": "# Intro\n",
        "notes.rst": NOTES,
        "é *.py": "x = 1",
        "data.bin": "no newline",
    }.items():
        (root / name).write_text(text, "utf-8")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "begin")
    return root


FILES = ["a.txt", "docs/guide.md", "docs/intro.md", "notes.rst", "é *.py"]


def turn(repo: Path, **env: str) -> tuple[int, Signal | NoSignal]:
    done = subprocess.run(
        [sys.executable, PROGRAM],
        cwd=repo,
        check=False,
        input=PROMPT,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    raw = [block.body for block in blocks_in(done.stdout) if block.kind is Kind.SIGNAL]
    return done.returncode, read_signal(raw, prompt=PROMPT)


def to_the_end(repo: Path, **env: str) -> list[Signal | NoSignal]:
    said: list[Signal | NoSignal] = []
    for _ in range(TURNS):
        said.append(turn(repo, **env)[1])
        if isinstance(said[-1], Complete | Blocked):
            return said
    raise AssertionError(f"not done after {TURNS} turns: {said}")


def trailers(repo: Path) -> list[str]:
    log = git(repo, "log", "--reverse", "--format=%(trailers:key=Checked,valueonly)")
    return [line for line in log.splitlines() if line]


def test_every_file_gets_one_commit_and_the_last_turn_claims_completion(repo: Path) -> None:
    said = to_the_end(repo)
    assert [type(one) for one in said] == [Working] * 4 + [Complete]
    assert trailers(repo) == FILES
    assert git(repo, "status", "--porcelain") == ""
    last = said[-1]
    assert isinstance(last, Complete)
    assert last.evidence == git(repo, "rev-parse", "HEAD")
    assert git(repo, "rev-list", "--count", "HEAD") == "6"


def test_what_can_be_mended_is_mended_and_the_rest_reported(repo: Path) -> None:
    to_the_end(repo)
    assert (repo / "a.txt").read_text() == "no newline\n"
    assert (repo / "é *.py").read_text() == "x = 1\n"
    assert (repo / "data.bin").read_text() == "no newline"
    guide = (repo / "docs/guide.md").read_text()
    assert [line for line in guide.splitlines() if line.startswith("#")] == [
        *("# Guide", "## Use", "# Guide", "## Use (3)", "## Use (2)", "## Use (4)")
    ]
    assert guide.endswith("## Use (4)\n")
    assert (repo / "notes.rst").read_text().endswith("\nPart (2)\n--------\n")
    assert (repo / "REPORT.md").read_text() == (
        "# Dead links\n\n- `docs/guide.md` line 5: `lost.md`\n- `docs/guide.md` line 16: `img/a b.png`\n"
        "- `docs/guide.md` line 18: `../outside.md`\n- `notes.rst` line 7: `lost.rst`\n"
    )


def test_a_further_turn_changes_nothing(repo: Path) -> None:
    to_the_end(repo)
    head = git(repo, "rev-parse", "HEAD")
    code, said = turn(repo)
    assert code == 0
    assert isinstance(said, Complete)
    assert said.evidence == head == git(repo, "rev-parse", "HEAD")


@pytest.mark.parametrize("number", range(1, 6))
def test_a_death_before_the_commit_is_finished_and_not_done_twice(repo: Path, number: int, tmp_path: Path) -> None:
    straight = tmp_path / "straight"
    git(tmp_path, "clone", "--quiet", str(repo), str(straight))
    to_the_end(straight)
    env = {"TIDY_DIE_AT": str(number)}
    for _ in range(number - 1):
        assert isinstance(turn(repo, **env)[1], Working)
    code, said = turn(repo, **env)
    assert code == -signal.SIGKILL
    assert isinstance(said, NoSignal)
    assert len(trailers(repo)) == number - 1
    assert bool(git(repo, "status", "--porcelain")) is (number != 3)  # the third file needs no mending
    to_the_end(repo, **env)
    assert trailers(repo) == FILES
    assert git(repo, "rev-parse", "HEAD^{tree}") == git(straight, "rev-parse", "HEAD^{tree}")


def test_a_death_between_staging_and_commit_is_finished_too(repo: Path) -> None:
    assert turn(repo, TIDY_DIE_AT="1")[0] == -signal.SIGKILL
    git(repo, "add", "a.txt")
    to_the_end(repo)
    assert trailers(repo) == FILES


@pytest.mark.parametrize("strange", ["a.txt", "notes.rst", "data.bin", "REPORT.md"])
def test_changes_of_somebody_else_are_neither_committed_nor_undone(repo: Path, strange: str) -> None:
    (repo / strange).write_text("somebody's\n")
    head = git(repo, "rev-parse", "HEAD")
    _, said = turn(repo)
    assert isinstance(said, Blocked)
    assert strange in said.asked
    assert git(repo, "rev-parse", "HEAD") == head
    assert (repo / strange).read_text() == "somebody's\n"


def test_it_works_in_a_linked_worktree_and_from_a_folder(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "-b", "tidy", str(tmp_path / "tree"))
    said = to_the_end(tmp_path / "tree" / "docs", TIDY_DIE_AT="2")
    assert isinstance(said[-1], Complete)
    assert trailers(tmp_path / "tree") == FILES
    assert trailers(repo) == []


def test_line_ends_are_kept_and_other_encodings_left_alone(repo: Path) -> None:
    (repo / "a.txt").write_bytes(b"one\r\ntwo")
    (repo / "b.txt").write_bytes(b"caf\xe9")
    (repo / "c.txt").write_bytes(b"")
    git(repo, "add", "--all")
    git(repo, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "more")
    to_the_end(repo)
    assert (repo / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (repo / "b.txt").read_bytes() == b"caf\xe9"
    assert (repo / "c.txt").read_bytes() == b""


def test_a_turn_can_be_interrupted_before_it_changes_anything(repo: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, PROGRAM],
        cwd=repo,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TIDY_PACE": "60"},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        program.stdin.write(PROMPT.encode())
        program.stdin.close()
        assert program.stdout.readline() == b"0 of 5 files checked\n"
    finally:
        program.terminate()
        program.wait(timeout=30)
        program.stdout.close()
    assert program.returncode == -signal.SIGTERM
    assert git(repo, "status", "--porcelain") == ""
    began = time.monotonic()
    assert isinstance(turn(repo, TIDY_PACE="0.3")[1], Working)
    assert time.monotonic() - began >= 0.3


def test_without_a_prompt_it_does_nothing(repo: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM], cwd=repo, check=False, input="", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "prompt" in done.stderr
    assert trailers(repo) == []


def test_the_program_stands_alone() -> None:
    tree = ast.parse(PROGRAM.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= set(sys.stdlib_module_names)
