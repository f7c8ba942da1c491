"""A chat in a real Chromium: how long a turn takes to be accepted, and what the extension weighs.

    python -m bench.chats [--turns 20] [--chats 50]

A supervisor, the extension and a chat site of our own, all on this machine. Measured is from the moment a turn was
armed in the registry to the moment the site's server took it, in one chat that goes on. Then as many chats as are asked
for stand in mid turn in one browser at once, and the proportional memory of the extension's own process is read beside
that of the whole browser.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil
from tests.extension.browsers import until
from tests.extension.chats import MARKER, Chats, answering, chats

from tenuto.wiring.world import SystemClock

MB = 1_000_000
PATIENCE = 1800.0


def armed_to_accepted(it: Chats, task: str) -> list[float]:
    """Seconds of each turn of a task from its row to the site's server."""
    apart = SystemClock().now().timestamp() - time.monotonic()
    armed = {row["id"]: datetime.fromisoformat(row["armed_at"]).timestamp() for row in it.commands(task)}
    taken = {MARKER.findall(turn.text)[0]: turn.at + apart for turn in it.lab.accepted() if MARKER.search(turn.text)}
    return [taken[command] - at for command, at in armed.items() if command in taken]


def processes(it: Chats) -> Iterator[psutil.Process]:
    """Every process of the browser."""
    assert it.browser.process is not None
    first = psutil.Process(it.browser.process.pid)
    yield first
    yield from first.children(recursive=True)


def memory(it: Chats) -> tuple[float, float]:
    """Proportional memory of the extension's own process, and of the browser, in MB."""
    own = whole = 0.0
    for process in processes(it):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            size = process.memory_full_info().pss / MB
            whole += size
            own += size if "--extension-process" in process.cmdline() else 0.0
    return own, whole


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and the slowest, in milliseconds."""
    return {"median_ms": round(statistics.median(values) * 1000), "slowest_ms": round(max(values) * 1000)}


def measure(folder: Path, turns: int, many: int) -> dict[str, object]:
    """All of it, once."""
    with chats(folder, "chromium") as it:
        it.lab.answers(answering(turns, pieces=1, pace=0.01))
        task = it.run("Many turns in one chat.", "--policy", "stall_pause=10000")
        it.ends(task, PATIENCE)
        told: dict[str, object] = {"one chat": {"turns": turns, **spread(armed_to_accepted(it, task)[:-1])}}
        begun = memory(it)
        it.lab.reset()
        it.lab.answers(answering(1, pieces=1, pace=0.01))
        it.lab.fault("stall", times=many)
        began = time.monotonic()
        tasks = [it.run(f"Chat number {number}.") for number in range(many)]
        it.lab.wait_accepted(many, patience=PATIENCE)
        told["fresh chats"] = {"chats": many, "all_accepted_s": round(time.monotonic() - began, 1)}
        shown = memory(it)
        until("an end of every chat", lambda: over(it, tasks), PATIENCE)
        until("every page to be closed", lambda: sum("/c/" in tab for tab in it.browser.tabs()) <= 1, PATIENCE)
        it.judge()
        names = ("extension_mb", "browser_mb")
        told["memory"] = {
            when: dict(zip(names, map(round, sizes), strict=True))
            for when, sizes in (("idle", begun), (f"{many} chats", shown), ("afterwards", memory(it)))
        }
        told["load"] = os.getloadavg()[0]
    return told


def over(it: Chats, tasks: list[str]) -> bool:
    """Whether every task has completed; what still stands is let go on."""
    it.lab.resume()
    return not {row["id"] for row in it.home.json("tasks", "--unfinished")["tasks"]} & set(tasks)


def main() -> int:
    """Measure and print."""
    asked = argparse.ArgumentParser(prog="python -m bench.chats")
    asked.add_argument("--turns", type=int, default=20)
    asked.add_argument("--chats", type=int, default=50)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenuto-chats-") as folder:
        sys.stdout.write(json.dumps(measure(Path(folder), given.turns, given.chats), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
