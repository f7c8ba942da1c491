"""The crash matrix: somebody is killed at every step of every path, and what the world saw is counted.

Undisturbed plays show the paths; every case is then played in a worker of its own, judged, and told with a name by
which it can be played again. It decides nothing itself: a case passes when the judge has nothing to say.
"""

from __future__ import annotations

import json
import os
import queue
import random
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tenuto.model.faults import Mistake
from tenuto.proof import catalogue
from tenuto.proof.case import Case, read
from tenuto.proof.scenarios import ALL, BY_NAME
from tenuto.surfaces.cli.entrances import Proof

PATIENCE = 1800.0
"""Seconds after which a worker that says nothing is given up; a case bounds itself well before."""

TOLD = 20
"""Most broken cases that are told in full."""


@dataclass(frozen=True)
class Result:
    """One case: what was broken, whether everything that was to be killed was, and the numbers."""

    case: str
    reached: bool
    broken: tuple[str, ...]
    most_effects: int
    turns_lost: int
    rows_lost: int
    passings: tuple[str, ...] = ()
    turns: int = 0
    facts: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """What a whole matrix came to; `missed` are cases in which a kill was never reached."""

    results: tuple[Result, ...]
    scenarios: int
    seconds: float

    @property
    def points(self) -> int:
        return len(self.results)

    @property
    def violations(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.broken)

    @property
    def missed(self) -> int:
        return sum(not result.reached for result in self.results)

    @property
    def most_effects(self) -> int:
        return max((result.most_effects for result in self.results), default=0)

    @property
    def turns_lost(self) -> int:
        return sum(result.turns_lost for result in self.results)

    @property
    def rows_lost(self) -> int:
        return sum(result.rows_lost for result in self.results)


class Worker:
    """A process that plays cases, started anew when it was given up."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def play(self, case: str) -> Result:
        """Play one case; a worker that dies or hangs over it is a broken promise of ours."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{case}\n".encode("ascii"))
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            line = process.stdout.readline() if ready else b""
        except OSError:
            line = b""
        if not line:
            self.close()
            return Result(case, False, ("the worker that played it ended or hung",), 0, 0, 0)
        return _result(json.loads(line))

    def close(self) -> None:
        """End the worker."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            argv = [sys.executable, "-m", "tenuto.proof.worker"]
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ))
        return self._process


def _result(told: dict[str, Any]) -> Result:
    verdict = told["verdict"]
    return Result(
        case=str(told["case"]),
        reached=bool(told["reached"]),
        broken=tuple(verdict["broken"]),
        most_effects=int(verdict["most_effects"]),
        turns_lost=int(verdict["turns_lost"]),
        rows_lost=int(verdict["rows_lost"]),
        passings=tuple(told["passings"][0]),
        turns=int(told["turns"]),
        facts=tuple(told["facts"]),
        seconds=float(told["seconds"]),
    )


def play_all(cases: Iterable[str], jobs: int, heard: Callable[[Result], None]) -> list[Result]:
    """Play cases, `jobs` at a time, in the order given; `heard` is told of each as it ends, in one thread at a time."""
    waiting: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    for item in enumerate(cases):
        waiting.put(item)
    found: dict[int, Result] = {}
    lock = threading.Lock()

    def work() -> None:
        worker = Worker()
        try:
            while True:
                try:
                    number, case = waiting.get_nowait()
                except queue.Empty:
                    return
                result = worker.play(case)
                with lock:
                    found[number] = result
                    heard(result)
        finally:
            worker.close()

    threads = [threading.Thread(target=work, name=f"crash-{number}") for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in sorted(found)]


def undisturbed(jobs: int, heard: Callable[[Result], None] = lambda result: None) -> dict[str, Result]:
    """A play of every scenario in which nobody is killed: name to result."""
    return {result.case: result for result in play_all([scenario.name for scenario in ALL], jobs, heard)}


def run(points: int, seed: int, jobs: int, say: Callable[[str], None], only: str | None = None) -> Report:
    """Play `points` cases (0: every point once), chosen by `seed`; `only` plays the one case of that name."""
    began = time.monotonic()
    told = _Teller(say)
    if only is not None:
        _known(only)
        results = play_all([only], 1, told)
        return Report(tuple(results), 1, time.monotonic() - began)
    plays = undisturbed(jobs, told)
    known = {name: catalogue.path_of(name, result.passings, result.turns) for name, result in plays.items()}
    cases: list[Case] = (
        catalogue.every_once(known) if points == 0 else catalogue.sampled(known, points, random.Random(seed))  # noqa: S311
    )
    told.expect(len(cases))
    results = play_all(map(str, cases), jobs, told)
    broken = [result for result in plays.values() if result.broken]
    return Report((*broken, *results), len(plays), time.monotonic() - began)


def _known(name: str) -> None:
    """Raises Mistake for what is no name of a case."""
    try:
        scenario = read(name).scenario
    except ValueError:
        scenario = ""
    if scenario not in BY_NAME:
        raise Mistake(f"'{name}' names no case; a name begins with one of {', '.join(sorted(BY_NAME))}", field="only")


class _Teller:
    """Says every broken case at once, and now and then how far it is."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._done = 0
        self._all = 0

    def expect(self, count: int) -> None:
        self._done, self._all = 0, count
        self._say(f"{count} cases")

    def __call__(self, result: Result) -> None:
        self._done += 1
        if result.broken:
            self._say(f"BROKEN {result.case}: {result.broken[0]}")
        if self._all and self._done % 50 == 0:
            self._say(f"{self._done} of {self._all}")


def as_proof(*, points: int, seed: int, jobs: int, say: Callable[[str], None], only: str | None = None) -> Proof:
    """The matrix as the command line shows it."""
    report = run(points, seed, jobs, say, only)
    lines = [f"{result.case}\n    " + "\n    ".join(result.broken) for result in report.violations[:TOLD]]
    if report.violations:
        lines.append("play one again: tenuto crash-matrix --only NAME")
    summary = (
        f"{report.points} points tried over {report.scenarios} scenarios in {report.seconds:.0f} s:"
        f" most effects per command {report.most_effects}, turns lost {report.turns_lost},"
        f" rows lost {report.rows_lost}, cases broken {len(report.violations)}"
    )
    result: dict[str, object] = {
        "points": report.points,
        "scenarios": report.scenarios,
        "most_effects_per_command": report.most_effects,
        "turns_lost": report.turns_lost,
        "rows_lost": report.rows_lost,
        "points_missed": report.missed,
        "seconds": round(report.seconds, 1),
        "seed": seed,
        "violations": [{"case": one.case, "broken": list(one.broken)} for one in report.violations],
    }
    return Proof(not report.violations, summary, lines, result)
