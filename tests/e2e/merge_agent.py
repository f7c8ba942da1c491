"""The agents of a chain that advances itself: one works on a unit and hands its branch in, another one reviews it.

The first try at the second unit is a draft, which the reviewer blocks; the first at the third breaks the gate. A death
at any point is made good by the next turn, which finds what is there already.
"""

from __future__ import annotations

import os
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


def tenuto(*words: str) -> None:
    """Say it until it is heard, within bounds: who hears it may be killed at any moment. A later turn says it again."""
    for _ in range(TRIES):
        said = subprocess.run(
            [sys.executable, "-m", "tenuto", *words], check=False, capture_output=True, text=True, timeout=120
        )
        print(said.stdout, said.stderr)
        if said.returncode == 0:
            return
        if said.returncode not in AGAIN:
            break
        time.sleep(0.5)
    print("```tenuto\nstatus: working\nsummary: it is not handed in yet\n```")


def review(prompt: str, head: str) -> None:
    """Block drafts, and pass all else."""
    drafts = [file.name for file in Path.cwd().glob("unit-*.txt") if "draft" in file.read_text()]
    assert git(Path.cwd(), "rev-parse", "HEAD") == head, "a reviewer stands at the commit it is asked about"
    if drafts:
        findings = Path("findings")
        findings.write_text(f"{drafts[0]} is only a draft")
        tenuto("review", "verdict", "--say", "block", "--head", head, "--file", str(findings))
    else:
        tenuto("review", "verdict", "--say", "pass", "--head", head)


def work(prompt: str, number: int, attempt: int) -> None:
    """Write the unit's file on the branch, and hand the branch in."""
    here = Path.cwd()
    own = re.search(r"on branch (\S+), begun at (\S+)\. Stay", prompt)
    marker = re.search(r"^\[tenuto-chain:h-\S+\]$", prompt, re.MULTILINE)
    if own is None or marker is None:
        raise SystemExit("no branch, or no marker of the chain, in the prompt")
    branch = own[1]
    for lock in Path(git(here, "rev-parse", "--absolute-git-dir")).glob("*.lock"):
        lock.unlink(missing_ok=True)  # of an earlier life of this very turn; nobody else works here
    word = {(2, 1): "draft", (3, 1): "broken"}.get((number, attempt), "done")
    name = f"unit-{number:02}.txt"
    (here / name).write_text(f"{word} {number}\n")
    git(here, "add", "--", name)
    if git(here, "status", "--porcelain"):
        git(here, "commit", "-q", "-m", f"unit u{number:02}\n\n{marker[0]}")
    git(here, "push", "-q", "-f", "origin", f"HEAD:refs/heads/{branch}")
    tenuto("chain", "handoff", "--outcome", "done", "--evidence", f"branch {branch}", "--branch", branch)


def assigned(prompt: str) -> str:
    """The assignment as the first turn of this task was told it: a later turn is told less."""
    kept = Path(git(Path.cwd(), "rev-parse", "--absolute-git-dir")) / f"assigned-{os.environ['TENUTO_TASK']}"
    if "\nReview pull request" in prompt or "\nYour unit, and only this one" in prompt:
        kept.with_suffix(".new").write_text(prompt)
        kept.with_suffix(".new").replace(kept)
    return kept.read_text() if kept.exists() else prompt


def main() -> None:
    prompt = assigned(sys.stdin.read())
    asked = re.search(r"^Review pull request \d+ at commit ([0-9a-f]{40}), and nothing else", prompt, re.MULTILINE)
    if asked is not None:
        review(prompt, asked[1])
        return
    unit = re.search(r"^Your unit, and only this one: u(\d+)", prompt, re.MULTILINE)
    attempt = re.search(r"^Attempt (\d+) of", prompt, re.MULTILINE)
    if unit is None or attempt is None:
        raise SystemExit("no unit in the prompt")
    work(prompt, int(unit[1]), int(attempt[1]))


if __name__ == "__main__":
    main()
