"""Beside others, in one run: durable transitions a second, how soon what is due starts, and what a kill leaves.

    python -m bench.peers [--count 300] [--json]

Each library runs in an environment of its own, as its own documentation uses it, with its disk's syncs on. A durable
transition is one committed step: a step of a DBOS workflow; a Huey task queued, taken and its result kept; a job of
Procrastinate deferred, taken and finished; a turn armed in our ledger, which is nine rows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.ledger.server import Server, programs, server

from bench import ledger, turns
from bench.environments import python_of
from bench.midturn import OTHERS, contenders, trial

AFTERWARDS_S = 6.0
"""How long a library that was started again is watched."""


@dataclass(frozen=True)
class Found:
    """One row: a rate, a median wait in milliseconds, and what a kill in mid effect came to."""

    name: str
    transitions_per_s: float
    start_ms: float
    effects: int
    finished: bool
    owed: int
    note: str = ""

    @property
    def told(self) -> str:
        """What became of the intent whose effect was cut."""
        if self.effects > 1:
            return f"done {self.effects} times"
        if self.finished:
            return "done once"
        return "hung: owed for ever" if self.owed else "lost: nobody owes it any more"


@dataclass(frozen=True)
class Peer:
    """A library over one database."""

    name: str
    library: str
    program: str
    database: Callable[[Path], str]
    note: str = ""

    def argv(self, mode: str, url: str, file: Path, count: int) -> list[str]:
        return [str(python_of(self.library)), str(OTHERS / self.program), mode, url, str(file), str(count)]

    def asked(self, mode: str, url: str, file: Path, count: int) -> Any:
        """What a mode printed."""
        done = subprocess.run(
            self.argv(mode, url, file, count), cwd=file.parent, capture_output=True, text=True, timeout=180, check=True
        )
        return json.loads(done.stdout.strip().splitlines()[-1])


def measured(peer: Peer, folder: Path, count: int) -> Found:
    """One row for a library."""
    rate = peer.asked("rate", peer.database(folder / "rate.db"), folder / "rate", count)
    waits = peer.asked("latency", peer.database(folder / "latency.db"), folder / "latency", 40)
    url, file = peer.database(folder / "effect.db"), folder / "effect"
    victim = _started(peer.argv("effect", url, file, 1), folder)
    try:
        _until(file.exists)
        time.sleep(0.3)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    again = _started(peer.argv("effect", url, file, 1), folder)
    try:
        patience = time.monotonic() + AFTERWARDS_S
        while time.monotonic() < patience and not file.with_suffix(".done").exists():
            time.sleep(0.05)
    finally:
        again.kill()
        again.wait()
    effects = file.read_text().count("effect")
    owed = int(peer.asked("owed", url, file, 1)) if not file.with_suffix(".done").exists() else 0
    finished = file.with_suffix(".done").exists()
    return Found(peer.name, rate, statistics.median(waits) * 1000, effects, finished, owed, peer.note)


def ours(folder: Path, count: int) -> list[Found]:
    """Our own rows: one caller, and sixteen at once, each the second time round, as the libraries are measured."""
    one, many = (asyncio.run(ledger.warmed(folder / f"ours{callers}", count, callers)) for callers in (1, 16))
    (folder / "turns").mkdir()
    figures = next(row for row in turns.measure(folder / "turns", 0.1) if "wake_median_ms" in row.figures).figures
    wait = float(figures["wake_median_ms"]) - float(figures["host_without_journal_median_ms"])
    (folder / "killed").mkdir()
    us = next(contender for contender in contenders() if contender.name == "tenuto")
    killed = trial(us, folder / "killed", 3, 1.0, random.Random(3))  # noqa: S311 - when in the turn it is killed
    note = "start: over a process start, its program's own"
    rows = [("tenuto (SQLite), one caller", one), ("tenuto (SQLite), 16 callers", many)]
    return [Found(name, rate, wait, 1 + killed.run_again, killed.lost == 0, 0, note) for name, rate in rows]


def _started(argv: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _until(come: Callable[[], bool], seconds: float = 60.0) -> None:
    patience = time.monotonic() + seconds
    while not come():
        if time.monotonic() > patience:
            raise TimeoutError(f"waited {seconds:.0f} s for an effect")
        time.sleep(0.01)


def peers(postgres: Server | None) -> list[Peer]:
    """Those that can be measured here."""
    found = [
        Peer("DBOS (SQLite)", "dbos", "dbos_peer.py", lambda path: f"sqlite:///{path}", "queue polled every 10 ms"),
        Peer("Huey (SQLite)", "huey", "huey_peer.py", str, "polled every 10 ms"),
    ]
    if postgres is not None:
        polled = "queue polled every 10 ms"
        fresh = lambda _: postgres.database()  # noqa: E731 - each mode gets an empty database
        found += [
            Peer("DBOS (PostgreSQL)", "dbos", "dbos_peer.py", fresh, polled),
            Peer("Procrastinate (PostgreSQL)", "procrastinate", "procrastinate_peer.py", fresh, "LISTEN"),
        ]
    return found


def main(arguments: list[str]) -> int:
    """Measure everybody, print a table; 1 when ours missed a goal."""
    parser = argparse.ArgumentParser(description="Durable transitions, waits and kills, beside other libraries.")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args(arguments)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenuto-peers-")))
        postgres = stack.enter_context(server(durable=True)) if programs() is not None else None
        found = ours(folder, told.count)
        for number, peer in enumerate(peers(postgres)):
            (folder / str(number)).mkdir()
            found.append(measured(peer, folder / str(number), told.count))
    if told.json:
        print(json.dumps([asdict(one) | {"told": one.told} for one in found]))  # noqa: T201
    else:
        print("| | durable transitions a second | due to start, median | killed in mid effect | |")  # noqa: T201
        print("|---|---|---|---|---|")  # noqa: T201
        for one in found:
            print(f"| {one.name} | {one.transitions_per_s:.0f} | {one.start_ms:.1f} ms | {one.told} | {one.note} |")  # noqa: T201
    us, dbos = found[0], next(one for one in found if one.name == "DBOS (SQLite)")
    return 0 if us.transitions_per_s >= 10 * dbos.transitions_per_s and us.start_ms * 20 <= dbos.start_ms else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
