"""What it costs to watch: one observation of every session of a tool server, judged, for more and more tasks.

Each task has a session of its own with a plan, a full activity and a job; all jobs stand in one list, as a server
keeps them. An observation reads the session, the list and the job's status file, and ends with a judgement.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from bench.world import Counting, median, place, times
from tenuto.core import classify, reconcile
from tenuto.model.evidence import Observation, Rank
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Registry, Snapshot
from tenuto.model.tools import ToolBinding
from tenuto.proof.bench import Row
from tenuto.transports.localshell.servers import Life, Server
from tenuto.transports.localshell.witness import LocalShellWitness
from tenuto.wiring.world import SystemClock

SIZES = (10, 100, 1_000)
CYCLES = 5
#: What watching a thousand tasks once may take of one core, in milliseconds for each task.
GOAL_MS = 5.0
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def measure(where: Path, effort: float) -> Iterator[Row]:
    """One row: the cost of an observation cycle for each number of tasks, and what memory it adds."""
    rows: dict[int, float] = {}
    before = psutil.Process().memory_info().rss
    for size in SIZES:
        rows[size] = 1000 * median([cycle(where / f"watched-{size}", size) for _ in range(times(effort, CYCLES, 2))])
    grown = (psutil.Process().memory_info().rss - before) / 1_000_000
    each = rows[SIZES[-1]] / SIZES[-1]
    told = ", ".join(f"{rows[size]:.0f} ms for {size:,}" for size in SIZES)
    figures = {f"observe_{size}_ms": took for size, took in rows.items()} | {"observe_memory_mb": grown}
    goal = f"<= {GOAL_MS:g} ms a task at {SIZES[-1]:,}"
    yield Row("one observation cycle", f"{told} tasks; {grown:.0f} MB more", goal, each <= GOAL_MS, figures)


def cycle(state: Path, size: int) -> float:
    """Seconds of looking at every session once, and judging it."""
    if not state.exists():
        fill(state, size)
    some = place(Counting())
    like = Snapshot(
        registry=Registry("g-bench", 1, NOW), run=some.run, task=some.task, conversation=None, live=None, last=None,
        live_command=None, commands=(), waits=(), wakes=(), messages=(), samples=(), checks=(), slots_used=1, slots=20,
    )  # fmt: skip
    seer = LocalShellWitness(SystemClock(), lambda _cwd: [Server("bench", state)], alive=lambda _state: Life(NOW))
    began = time.perf_counter()
    for number in range(size):
        binding = ToolBinding("bench", f"s_{number:024x}")
        facts = seer.read(binding, None, NOW)
        looked = Observation("local-shell", Rank.JOURNAL, binding.subject, NOW, facts)
        snapshot = replace(like, task=replace(like.task, tools=(binding,)))
        found = reconcile.reconcile(snapshot, (looked,), {}, NOW)
        said = classify.classify(classify.of(Seen(snapshot, found, 1, True), NOW - timedelta(minutes=1), NOW))
        if said.row != "5":
            raise ValueError(f"a session of the bench is judged {said}")
    return time.perf_counter() - began


def fill(state: Path, size: int) -> None:
    """A state directory as a server leaves it, with so many sessions."""
    (state / "sessions").mkdir(parents=True)
    (state / "jobs").mkdir()
    at = NOW.timestamp() - 60
    jobs: list[dict[str, Any]] = []
    for number in range(size):
        name, job = f"s_{number:024x}", f"job_{number:012x}"
        data = {"tool": "job_start", "job_id": job, "call_id": f"{number:032x}", "command": "x" * 200}
        spoken = [{"seq": n, "ts": at, "type": "tool.completed", "actor": "agent", "data": data} for n in range(1, 201)]
        plan = {"plan_id": "p", "status": "active", "updated_at": at, "steps": [{"status": "active"}] * 20}
        plan |= {"continuation_count": 0, "last_agent_activity": at, "continuation_pending": False}
        tree = {"version": 2, "session_id": name, "created_at": at, "updated_at": at, "status": "active", "plan": plan}
        tree |= {"in_flight_calls": {}, "activity_seq": 200, "activity": spoken}
        (state / "sessions" / f"{name}.json").write_text(json.dumps(tree), "utf-8")
        jobs.append({"job_id": job, "status": "running", "attempts": 1, "created_at": at, "updated_at": at})
    (state / "jobs.json").write_text(json.dumps({"version": 2, "jobs": jobs}), "utf-8")
