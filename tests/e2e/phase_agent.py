"""The agent of a chain of phases: in its worktree it commits its unit's file once, pushes, records its pull request.

A death at any point is made good by the next turn, which finds what is there already.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

#: The supervisor was not reachable, was changing too fast, or did not answer: what is said may be said again.
AGAIN = (3, 5, 6)
TRIES = 120


def git(where: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "gc.auto=0", *words],
        cwd=where, check=True, capture_output=True, text=True, timeout=60,
    ).stdout.strip()  # fmt: skip


def tenuto(*words: str) -> bool:
    """Say it until it is heard, within bounds: who hears it may be killed at any moment. Whether it was taken."""
    for _ in range(TRIES):
        said = subprocess.run(
            [sys.executable, "-m", "tenuto", *words], check=False, capture_output=True, text=True, timeout=120
        )
        print(said.stdout, said.stderr)
        if said.returncode not in AGAIN:
            return said.returncode == 0
        time.sleep(0.5)
    return False


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
    if not tenuto("phase", "open", "--pr", str(number)):
        print("```tenuto\nstatus: working\nsummary: its pull request is not recorded yet\n```")
        return
    tenuto("chain", "handoff", "--outcome", "done", "--evidence", commits[0])
    print(f"```tenuto\nstatus: complete\nsummary: unit {number} is pushed\nevidence: {commits[0]}\n```")


if __name__ == "__main__":
    main()
