"""Killed in mid turn: a job of ten turns, its orchestrator killed in the middle of one and started again.

    python -m bench.midturn [--trials 5] [--turns 10] [--seconds 1] [--full] [--only NAME]

The agent is a process of its own that does not die with whoever started it, as agents do not. Counted is what the
agents themselves stamped: turns that were run again, agents that were alive at once, turns that never ran to their
end, and how long after the killed turn's end, or after the kill where that turn was lost, the next one began.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.environments import python_of
from bench.world import clean_environment, filling, given, home

OTHERS = Path(__file__).parent / "others"
PATIENCE = 25.0
"""Seconds without a stamp after which a job is given up as lost."""


@dataclass(frozen=True)
class Act:
    """One stamp of an agent."""

    word: str
    at: float
    turn: str
    pid: int


@dataclass(frozen=True)
class Trial:
    """What one killing came to."""

    run_again: int
    alive_at_once: int
    lost: int
    next_turn_s: float | None
    gaps_s: tuple[float, ...]
    told: str


@dataclass(frozen=True)
class Contender:
    """Somebody who keeps a job of turns going: how it is started (again), and what it tells a person afterwards."""

    name: str
    prepare: Callable[[Path, int, float], list[str]]
    told: Callable[[Path], str]
    environment: Callable[[Path], dict[str, str]] = lambda place: dict(os.environ)


def acts(file: Path) -> list[Act]:
    """What the agents have stamped so far, in order."""
    if not file.exists():
        return []
    rows = [line.split() for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [Act(word, float(at.replace(",", ".")), turn, int(pid)) for word, at, turn, pid in rows]


def trial(contender: Contender, place: Path, turns: int, seconds: float, chance: random.Random) -> Trial:
    """Start it, kill it in the middle of a turn, start it again, and see the job to its end or give it up."""
    stamps = place / "stamps"
    argv = contender.prepare(place, turns, seconds)
    victim = chance.randint(2, max(2, turns // 2))
    process = _started(contender, argv, place)
    try:
        _until(lambda: len(_ended(stamps)) >= victim - 1 and len(_begun(stamps)) >= victim, PATIENCE + turns * seconds)
        time.sleep(seconds * chance.uniform(0.3, 0.6))
        known = len(_begun(stamps))
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed_at = time.time()  # noqa: TID251 - the same clock as the agents' stamps
        process = _started(contender, argv, place)
        quiet = time.monotonic() + PATIENCE + seconds
        seen = 0
        while len({act.turn for act in _ended(stamps)}) < turns and time.monotonic() < quiet:
            if len(acts(stamps)) != seen:
                seen, quiet = len(acts(stamps)), time.monotonic() + PATIENCE + seconds
            time.sleep(0.02)
        told = contender.told(place)
    finally:
        _stop(process)
    time.sleep(seconds * 1.2)  # an agent nobody waits for any more stamps its end as well
    return _judged(stamps, turns, known, killed_at, told)


def _judged(stamps: Path, turns: int, known: int, killed_at: float, told: str) -> Trial:
    begun, ended = _begun(stamps), _ended(stamps)
    again = sum(count - 1 for count in Counter(act.turn for act in begun).values())
    edges = sorted([(act.at, 1) for act in begun] + [(act.at, -1) for act in ended])
    alive = most = 0
    for _, step in edges:
        alive += step
        most = max(most, alive)
    later = begun[known] if len(begun) > known else None
    cut = next((act.at for act in ended if act.pid == begun[known - 1].pid), killed_at)
    gaps = [
        after.at - before.at
        for before, after in zip(ended, begun[1:], strict=False)
        if before.at < killed_at - 0.001 and after.at < killed_at
    ]
    gaps += [after.at - before.at for before, after in zip(ended[known:], begun[known + 1 :], strict=False)]
    waited = None if later is None else later.at - max(cut, killed_at) if later.at > cut else later.at - killed_at
    return Trial(
        again, most - 1, turns - len({act.turn for act in ended}), waited, tuple(g for g in gaps if g > 0), told
    )


def _begun(stamps: Path) -> list[Act]:
    return [act for act in acts(stamps) if act.word == "begin"]


def _ended(stamps: Path) -> list[Act]:
    return [act for act in acts(stamps) if act.word == "end"]


def _started(contender: Contender, argv: list[str], place: Path) -> subprocess.Popen[bytes]:
    with (place / "log").open("ab") as log:
        return subprocess.Popen(
            argv, cwd=place, env=contender.environment(place), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip


def _until(come: Callable[[], bool], seconds: float) -> None:
    patience = time.monotonic() + seconds
    while not come():
        if time.monotonic() > patience:
            raise TimeoutError(f"waited {seconds:.0f} s for a turn")
        time.sleep(0.01)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# -- who is tried


def _ours(place: Path, turns: int, seconds: float) -> list[str]:
    # An agent of ours counts its turns by the attempt it is in: the same attempt twice is a turn run again.
    agent = f'exec bash "$1" "$2" "$TENUTO_ATTEMPT" {seconds} {turns}'

    async def fill() -> None:
        async with filling(home(place / "home")) as supervisor:
            argv = ("bash", "-c", agent, "agent", str(OTHERS / "agent.sh"), str(place / "stamps"))
            await given(supervisor, argv, place)

    asyncio.run(fill())
    return [sys.executable, "-m", "tenuto", "up"]


def _home_of(place: Path) -> dict[str, str]:
    return clean_environment(place / "home", place / "bytecode")


def _told_by_ours(place: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tenuto", "tasks", "--json"],
        env=_home_of(place), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["nothing"])[0]
    try:
        tasks = json.loads(done.stdout)
        first = tasks["tasks"][0] if isinstance(tasks, dict) else tasks[0]
        return f"task {first['state']}; no turn in doubt"
    except (KeyError, IndexError, ValueError):
        return done.stdout.strip()[:80]


def _last_line(place: Path, word: str, otherwise: str) -> str:
    lines = (place / "log").read_text("utf-8", "replace").splitlines()
    return next((line.strip().rpartition(") ")[2][-90:] for line in reversed(lines) if word in line.lower()), otherwise)


def contenders(python: Callable[[str], Path] = python_of) -> list[Contender]:
    """Ours, and the others beside it."""
    return [
        Contender("tenuto", _ours, _told_by_ours, _home_of),
        Contender(
            "DBOS (SQLite)",
            lambda place, turns, seconds: [
                str(python("dbos")), str(OTHERS / "dbos_job.py"), f"sqlite:///{place}/dbos.sqlite",
                str(place / "stamps"), str(turns), str(seconds),
            ],
            lambda place: _last_line(place, "recover", "nothing"),
        ),
        Contender(
            "Huey (SQLite)",
            lambda place, turns, seconds: [
                str(python("huey")), str(OTHERS / "huey_job.py"), str(place / "huey.db"),
                str(place / "stamps"), str(turns), str(seconds),
            ],
            lambda place: _last_line(place, "lost", "nothing"),
        ),
        Contender(
            "shell loop, restarted",
            lambda place, turns, seconds: [
                "bash", str(OTHERS / "loop.sh"), str(place / "counter"),
                str(place / "stamps"), str(turns), str(seconds),
            ],
            lambda place: "nothing",
        ),
    ]  # fmt: skip


def own_start(times: int = 15) -> float:
    """Seconds that the agent itself takes from being started to its first stamp (median)."""
    found = []
    with tempfile.TemporaryDirectory(prefix="tenuto-midturn-") as folder:
        stamps = Path(folder) / "stamps"
        for _ in range(times):
            began = time.time()  # noqa: TID251 - the same clock as the agents' stamps
            subprocess.run(["bash", OTHERS / "agent.sh", stamps, "x", "0"], check=True, capture_output=True)
            found.append(_begun(stamps)[-1].at - began)
    return statistics.median(found)


def main(arguments: list[str]) -> int:
    """Try everybody in turn, print a table; 1 when ours missed its goal."""
    parser = argparse.ArgumentParser(description="Kill an orchestrator in mid turn, and count.")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--full", action="store_true", help="20 trials with turns of 4 to 10 seconds")
    parser.add_argument("--only", help="one contender, by the beginning of its name")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args(arguments)
    chance = random.Random(7)  # noqa: S311 - which turn is killed, and when in it
    start = own_start()
    found: dict[str, list[Trial]] = {}
    for contender in contenders():
        if told.only and not contender.name.lower().startswith(told.only.lower()):
            continue
        for _ in range(20 if told.full else told.trials):
            place = Path(tempfile.mkdtemp(prefix="tenuto-midturn-"))
            try:
                seconds = chance.uniform(4, 10) if told.full else told.seconds
                found.setdefault(contender.name, []).append(trial(contender, place, told.turns, seconds, chance))
            finally:
                shutil.rmtree(place, ignore_errors=True)
    if told.json:
        print(json.dumps({"own_start_s": start, "trials": {k: [asdict(t) for t in v] for k, v in found.items()}}))  # noqa: T201
    else:
        _print(found, start)
    ours = found.get("tenuto", [])
    gaps = [gap for one in ours for gap in one.gaps_s]
    kept = all((one.run_again, one.alive_at_once, one.lost) == (0, 0, 0) for one in ours)
    return 0 if kept and (not gaps or statistics.median(gaps) - start <= 0.05) else 1


def _print(found: dict[str, list[Trial]], start: float) -> None:
    print(f"the agent's own start: {start * 1000:.0f} ms (median)\n")  # noqa: T201
    print("| | trials | turns run again | agents at once | turns lost | next turn after | gap between turns | told |")  # noqa: T201
    print("|---|---|---|---|---|---|---|---|")  # noqa: T201
    for name, trials in found.items():
        waits = [one.next_turn_s for one in trials if one.next_turn_s is not None]
        gaps = [gap for one in trials for gap in one.gaps_s]
        wait = f"{statistics.median(waits):.2f} s" if waits else "never"
        gap = f"{statistics.median(gaps) * 1000:.0f} ms" if gaps else "-"
        print(  # noqa: T201
            f"| {name} | {len(trials)} | {sum(one.run_again for one in trials)} |"
            f" {sum(one.alive_at_once for one in trials)} | {sum(one.lost for one in trials)} | {wait} | {gap} |"
            f" {trials[-1].told} |"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
