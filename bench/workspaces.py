"""What a look at a large repository costs: HEAD, branch and the digest of all that differs, and what memory it adds.

A repository of many files is made with real git. It is looked at as it was committed, with one file changed, and with
a thousand changed, each as often as the effort allows. A look takes no lock, so git may never write back what it found
out about files that changed: each look compares them anew.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.world import median, times
from tenuto.model.evidence import WorkspaceFacts, WorkspaceKind
from tenuto.proof.bench import Row
from tenuto.transports.workspace.port import WorkspaceWitness
from tenuto.wiring.world import SystemClock

FILES, FEWER = 100_000, 10_000
FOLDER = 500
CHANGED = 1_000
LOOKS = 10
#: What a look at a repository of that size may take before a turn's end would feel it, in milliseconds.
GOAL_MS = 2_000.0
WHOLE = 0.4


def measure(where: Path, effort: float) -> Iterator[Row]:
    """One row: the median look at a repository as it is, with one file changed, and with a thousand."""
    files = FILES if effort >= WHOLE else FEWER
    top = where / "repository"
    fill(top, files)
    looks = times(effort, LOOKS, 3)
    with Watched() as watched:
        clean, seen = _looked(top, looks)
        (top / "0" / "0.txt").write_text("changed\n", "utf-8")
        one, after = _looked(top, looks)
        for number in range(CHANGED):
            (top / str(number // FOLDER) / f"{number % FOLDER}.txt").write_text(f"changed {number}\n", "utf-8")
        many, last = _looked(top, looks)
    if len({seen.cursor, after.cursor, last.cursor}) != 3 or None in (seen.cursor, after.cursor, last.cursor):
        raise ValueError("a look at the bench's repository missed a change")
    figures = {
        "git_files": float(files),
        "git_clean_ms": clean,
        "git_one_changed_ms": one,
        "git_thousand_changed_ms": many,
        "git_memory_mb": watched.most / 1_000_000,
        "witness_memory_mb": watched.grown / 1_000_000,
    }
    told = (
        f"{clean:.0f} ms as it is, {one:.0f} ms with one file changed, {many:.0f} ms with {CHANGED:,}; "
        f"git takes {watched.most / 1_000_000:.0f} MB, we {watched.grown / 1_000_000:.0f} MB more"
    )
    yield Row(f"a look at a repository of {files:,} files", told, f"<= {GOAL_MS:g} ms", clean <= GOAL_MS, figures)


def _looked(top: Path, looks: int) -> tuple[float, WorkspaceFacts]:
    """The median of several looks in milliseconds, and what the last one saw."""
    witness = WorkspaceWitness(SystemClock())
    took = []
    facts: object = None
    for _ in range(looks):
        began = time.perf_counter()
        facts = asyncio.run(witness.look(str(top), None, plain=True)).facts
        took.append(1000 * (time.perf_counter() - began))
    if not isinstance(facts, WorkspaceFacts) or facts.kind is not WorkspaceKind.GIT:
        raise ValueError(f"the bench's repository is seen as {facts}")
    return median(took), facts


def fill(top: Path, files: int) -> None:
    """A repository with so many committed files, in directories of 500."""
    for folder in range((files + FOLDER - 1) // FOLDER):
        (top / str(folder)).mkdir(parents=True)
        for number in range(min(FOLDER, files - folder * FOLDER)):
            (top / str(folder) / f"{number}.txt").write_text(f"file {number} of {folder}\n", "utf-8")
    plain = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        subprocess.run(["git", *who, *words], cwd=top, env=plain, check=True, capture_output=True)


class Watched:
    """The most memory that git took at once while something was done, and what this process grew by."""

    def __init__(self) -> None:
        self.most = 0
        self.grown = 0
        self._over = threading.Event()
        self._me = psutil.Process()
        self._before = self._me.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)
        self.grown = max(0, self._me.memory_info().rss - self._before)

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            taken = 0
            for child in self._me.children(recursive=True):
                try:
                    taken += child.memory_info().rss
                except psutil.Error:
                    continue
            self.most = max(self.most, taken)
