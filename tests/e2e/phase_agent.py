"""The agent of a chain of phases: in its worktree it commits its unit's file once, pushes, records its pull request.

A death at any point is made good by the next turn, which finds what is there already.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def git(where: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "gc.auto=0", *words],
        cwd=where, check=True, capture_output=True, text=True, timeout=60,
    ).stdout.strip()  # fmt: skip


def tenuto(*words: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tenuto", *words], check=False, capture_output=True, text=True, timeout=120
    )
    print(said.stdout, said.stderr)


def main() -> None:
    prompt, here = sys.stdin.read(), Path.cwd()
    branch, base = git(here, "symbolic-ref", "--short", "HEAD"), "origin/main"
    found = re.fullmatch(r"tenuto/h-[^/]+/u(\d+)-\d+", branch)
    if found is None:
        raise SystemExit(f"no unit: {branch}")
    number = int(found[1])
    if "Your unit, and only this one" in prompt:  # a turn after a death is told less, and finds the rest here
        assert f"on branch {branch}, begun at {base}. Stay" in prompt
    for lock in Path(git(here, "rev-parse", "--absolute-git-dir")).glob("*.lock"):
        lock.unlink(missing_ok=True)  # of an earlier life of this very turn; nobody else works here
    name = f"unit-{number:02}.txt"
    (here / name).write_text(f"{number}\n")
    git(here, "add", "--", name)
    if git(here, "status", "--porcelain"):
        git(here, "commit", "-q", "-m", f"unit u{number:02}")
    commits = git(here, "log", "--format=%H", "--", name).split()
    assert len(commits) == 1, commits
    git(here, "push", "-q", "-f", "origin", f"HEAD:refs/heads/{branch}", f"HEAD:refs/pull/{number}/head")
    tenuto("phase", "open", "--pr", str(number))
    tenuto("chain", "handoff", "--outcome", "done", "--evidence", commits[0])
    print(f"```tenuto\nstatus: complete\nsummary: unit {number} is pushed\nevidence: {commits[0]}\n```")


if __name__ == "__main__":
    main()
