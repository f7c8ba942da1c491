"""A chat in a real Chromium: how long a turn takes to be accepted, and what the extension weighs.

    python -m bench.chats [--turns 20] [--chats 50] [--browser firefox]

A supervisor, the extension and a chat site of our own, all on this machine. In one chat, while the extension is
connected and nothing goes on, a moment that a task waits for comes; measured is from that moment, and from the moment
the turn was armed in the registry, to the moment the site's server took it. Then as many chats as are asked for stand
in mid turn in one browser at once, and the proportional memory of the extension's own process is read beside that of
the whole browser, and what browser and supervisor use of a processor while they stand.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import psutil
from tests.extension.browsers import until
from tests.extension.chats import MARKER, Chats, answering, chats

from tenuto.wiring.world import SystemClock

MB = 1_000_000
PATIENCE = 1800.0
REST = timedelta(seconds=7)
"""How long the chat rests before each moment that is measured; longer than a page is left alone between two turns."""
STANDING = 20.0
"""Over how many seconds processor time is counted."""
SETTINGS = "slots = 200\n[policy]\nstall_pause = 100000\n"


def to_accepted(it: Chats, task: str, turns: int) -> dict[str, list[float]]:
    """Seconds from the moment that was waited for, and from the row, to the site's server, turn by turn."""
    apart = SystemClock().now().timestamp() - time.monotonic()
    found: dict[str, list[float]] = {"due": [], "armed": []}
    for number in range(1, turns):
        it.lab.wait_accepted(number, patience=PATIENCE)
        due = SystemClock().now() + REST
        it.ask("task.wait", task=task, kind="time", until=due.isoformat())
        turn = it.lab.wait_accepted(number + 1, patience=PATIENCE)[number]
        armed = {row["id"]: datetime.fromisoformat(row["armed_at"]).timestamp() for row in it.commands(task)}
        found["due"].append(turn.at + apart - due.timestamp())
        found["armed"].append(turn.at + apart - armed[MARKER.findall(turn.text)[-1]])
    return found


def processes(it: Chats) -> Iterator[psutil.Process]:
    """Every process of the browser."""
    assert it.browser.process is not None
    first = psutil.Process(it.browser.process.pid)
    yield first
    yield from first.children(recursive=True)


def memory(it: Chats) -> tuple[float | None, float]:
    """Proportional memory of the extension's own process, None where it has none that can be told, and of the browser.

    In MB.
    """
    own: float | None = None
    whole = 0.0
    for process in processes(it):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            size = process.memory_full_info().pss / MB
            whole += size
            if "--extension-process" in process.cmdline():
                own = (own or 0.0) + size
    return own, whole


def busy(it: Chats) -> dict[str, float]:
    """What part of one processor the browser and the supervisor use while nothing new comes, in percent."""
    owner = psutil.Process(int(it.home.json("status")["pid"]))

    def spent(found: Iterable[psutil.Process]) -> float:
        total = 0.0
        for process in found:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    before = spent(processes(it)), spent([owner])
    began = time.monotonic()
    time.sleep(STANDING)
    took = time.monotonic() - began
    after = spent(processes(it)), spent([owner])
    names = ("browser_percent", "supervisor_percent")
    return {name: round((b - a) / took * 100, 1) for name, a, b in zip(names, before, after, strict=True)}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and the slowest, in milliseconds."""
    return {"median_ms": round(statistics.median(values) * 1000), "slowest_ms": round(max(values) * 1000)}


def measure(folder: Path, turns: int, many: int, kind: str) -> dict[str, object]:
    """All of it, once."""
    with chats(folder, kind, SETTINGS) as it:
        it.lab.answers(answering(turns, pieces=1, pace=0.01))
        task = it.run("Many turns in one chat.")
        apart = to_accepted(it, task, turns)
        it.ends(task, PATIENCE)
        told: dict[str, object] = {
            "turns": turns - 1,
            **{f"{since} -> accepted": spread(apart[since]) for since in apart},
        }
        weighed, standing = {"idle": memory(it)}, {"idle": busy(it)}
        it.lab.reset()
        it.lab.answers(answering(1, pieces=1, pace=0.01))
        it.lab.fault("stall", times=many)
        began = time.monotonic()
        tasks = [it.begin(f"Chat number {number}.") for number in range(many)]
        it.lab.wait_accepted(many, patience=PATIENCE)
        taken = time.monotonic() - began
        told["fresh chats"] = {"chats": many, "all_accepted_s": round(taken, 1)}
        weighed[f"{many} chats"], standing[f"{many} chats"] = memory(it), busy(it)
        until("an end of every chat", lambda: over(it, tasks), PATIENCE)
        until("every page to be closed", lambda: sum("/c/" in tab for tab in it.browser.tabs()) <= 1, PATIENCE)
        it.judge()
        weighed["afterwards"] = memory(it)
        names = ("extension_mb", "browser_mb")
        told["memory"] = {
            when: {name: None if size is None else round(size) for name, size in zip(names, sizes, strict=True)}
            for when, sizes in weighed.items()
        }
        told["processor"] = standing
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
    asked.add_argument("--browser", choices=("chromium", "firefox"), default="chromium")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenuto-chats-") as folder:
        sys.stdout.write(json.dumps(measure(Path(folder), given.turns, given.chats, given.browser), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
