"""Real repositories for tests: a bare remote, a checkout of it, and somebody who works elsewhere."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

QUIET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.c",
}


def git(where: Path, *words: str) -> str:
    """What git says, without its last line's end; CalledProcessError where it fails."""
    done = subprocess.run(
        ["git", *words], cwd=where, check=True, capture_output=True, text=True, timeout=60, env={**os.environ, **QUIET}
    )
    return done.stdout.rstrip("\n")


@dataclass(frozen=True)
class Remote:
    """`bare` is the remote, `clone` the checkout that chains are given, `desk` where somebody else works and merges."""

    bare: Path
    clone: Path
    desk: Path

    def commit(self, name: str, text: str, message: str) -> str:
        """One commit of one file at the desk; its id."""
        (self.desk / name).write_text(text)
        git(self.desk, "add", "--", name)
        git(self.desk, "commit", "-q", "-m", message)
        return git(self.desk, "rev-parse", "HEAD")

    def push(self, *specs: str) -> None:
        git(self.desk, "push", "-q", "origin", *specs)


def remote(folder: Path) -> Remote:
    """A remote with one commit on main."""
    made = Remote(folder / "bare.git", folder / "clone", folder / "desk")
    git(folder, "init", "-q", "--bare", "-b", "main", str(made.bare))
    git(folder, "clone", "-q", str(made.bare), str(made.desk))
    git(made.desk, "checkout", "-q", "-B", "main")
    made.commit("begin.txt", "begin\n", "begin")
    made.push("HEAD:main")
    git(folder, "clone", "-q", str(made.bare), str(made.clone))
    return made
