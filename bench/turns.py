"""How long a turn that is due waits before its program runs, and how long a task stands still between two turns.

A real wheel, cycle, ledger and host executor serve one task in this process. A turn is due at the instant that its
wake row names; it has begun when its program stamps the time, which is the first thing it does. What no supervisor
can be quicker than is the same host, started for the same program, that keeps no journal: the two take turns in
one run, and only the difference is ours. A host may be started before its turn is due; so the wait is also laid
beside the program started by itself, with no host at all, which is the stricter of the two.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bench.world import OPERATOR, NotMeasured, centile, given, home, leading, median, stamping, stamps, times
from tenuto.config import Settings
from tenuto.model.ids import CommandId, TaskId, spelled
from tenuto.model.work import WakeKind
from tenuto.ports import NoFuse
from tenuto.proof.bench import Row
from tenuto.transports.host import carry, environment, launch
from tenuto.wiring.daemon import Supervisor

GOAL_MS = 5.0
TURNS = 200
GAPS = 60
LAPS = 4
DELAY = 0.08
#: The first turn of a task also opens its conversation, and the first of a supervisor warms its statements.
LEFT_OUT = 3
PATIENCE = 120.0

UNWRITTEN = """
import sys
sys.path.append({root!r})
from tenuto.transports.host import carry, claim
class Nowhere:
    def mark(self, line, *rest, **more): pass
claim.take = lambda *given, **more: Nowhere()
claim.admit = lambda *given, **more: True
sys.exit(carry.main())
"""


def measure(place: Path, effort: float) -> Iterator[Row]:
    """Rows for the wait before a turn and for the gap between turns."""
    settings = home(place / "home")
    turns, gaps = times(effort, TURNS, 40), times(effort, GAPS, 20)
    waits: list[float] = []
    stood: list[float] = []
    bare: list[float] = []
    alone: list[float] = []
    syncs: list[float] = []
    for lap in range(LAPS):
        for name in ("due", "bare", "gap"):
            (place / f"{name}{lap}").mkdir()
        (place / f"bare{lap}" / "unwritten.py").write_text(UNWRITTEN.format(root=str(Path(launch.SCRIPT).parents[3])))
        waits += asyncio.run(served(settings, place / f"due{lap}", turns // LAPS + LEFT_OUT, DELAY))
        bare += asyncio.run(unwritten(place / f"bare{lap}", settings, turns // LAPS))
        alone += by_themselves(place / f"bare{lap}" / "alone", turns // LAPS)
        syncs += synced(place / f"bare{lap}" / "synced", turns // LAPS)
        stood += asyncio.run(served(settings, place / f"gap{lap}", gaps // LAPS + LEFT_OUT, 0.0))
    over = centile(waits, 0.99) - centile(bare, 0.99)
    strictly = centile(waits, 0.99) - centile(alone, 0.99)
    yield Row(
        "a wake is due -> its program runs, p99",
        f"{over:.1f} ms + process start (median {median(waits) - median(bare):.1f}); beside the program's alone"
        f" {strictly:.1f} ({median(waits) - median(alone):.1f}); a sync {median(syncs):.1f},"
        f" p99 {centile(syncs, 0.99):.1f}; {len(waits)} turns",
        f"<= {GOAL_MS:.0f} ms + process start",
        over <= GOAL_MS,
        {
            "wake_p99_ms": centile(waits, 0.99),
            "wake_median_ms": median(waits),
            "host_without_journal_p99_ms": centile(bare, 0.99),
            "host_without_journal_median_ms": median(bare),
            "wake_over_process_start_p99_ms": over,
            "wake_over_process_start_median_ms": median(waits) - median(bare),
            "program_alone_p99_ms": centile(alone, 0.99),
            "program_alone_median_ms": median(alone),
            "wake_over_program_alone_p99_ms": strictly,
            "wake_over_program_alone_median_ms": median(waits) - median(alone),
            "disk_sync_median_ms": median(syncs),
            "disk_sync_p99_ms": centile(syncs, 0.99),
            "wake_turns": len(waits),
        },
    )
    own = median(stood) - median(bare)
    yield Row(
        "a turn ends -> the next program runs, median",
        f"{own:.1f} ms + process start ({median(stood):.1f} of {median(bare):.1f}; {len(stood)} gaps)",
        "",
        None,
        {"gap_median_ms": median(stood), "gap_over_process_start_ms": own, "gaps": len(stood)},
    )


async def served(settings: Settings, folder: Path, turns: int, delay: float) -> list[float]:
    """Milliseconds before each of so many turns: from when it was due (`delay` > 0) or its forerunner's last act."""
    file = folder / "stamps"
    async with leading(settings) as supervisor:
        task = await given(supervisor, stamping(file), folder, idle_delay=delay, max_attempts=turns)
        await rested(supervisor, task, turns)
        found = stamps(file)
        if delay:
            wakes = supervisor.ledger.wakes(task)
            due = {wake.consumed_by: wake.not_before.timestamp() for wake in wakes if wake.kind is WakeKind.IDLE}
            began = {stamp.attempt: stamp.at for stamp in found if stamp.word == "begin"}
            spent = [1000 * (began[who] - at) for who, at in due.items() if who is not None and who in began]
        else:
            ends = [stamp.at for stamp in found if stamp.word == "end"]
            begins = [stamp.at for stamp in found if stamp.word == "begin"]
            spent = [1000 * (after - before) for before, after in zip(ends, begins[1:], strict=False)]
        await supervisor.desk.cancel(OPERATOR, task)
    if len(spent) < turns - LEFT_OUT:
        raise NotMeasured(f"only {len(spent)} of {turns} turns were made")
    return spent[LEFT_OUT - 1 :]


async def rested(supervisor: Supervisor, task: TaskId, turns: int) -> None:
    """Wait until the task has made its turns and asks for more."""
    told = asyncio.Event()
    supervisor.wheel.served = lambda _task, _rest: told.set()
    async with asyncio.timeout(PATIENCE):
        while not supervisor.ledger.waits(1, task_id=task):
            told.clear()
            try:
                async with asyncio.timeout(1.0):
                    await told.wait()
            except TimeoutError:
                continue


async def unwritten(folder: Path, settings: Settings, starts: int) -> list[float]:
    """Milliseconds from the call that starts a host without a journal to its program's first act."""
    file, script = folder / "stamps", folder / "unwritten.py"
    kept, began = launch.SCRIPT, []
    launch.SCRIPT = str(script)  # type: ignore[misc]
    try:
        for number in range(starts):
            order = plain(folder, settings, stamping(file), number)
            began.append(time.time())  # noqa: TID251 - the same clock as the program's stamp
            pid = await asyncio.to_thread(launch.launch, order, NoFuse())
            await asyncio.to_thread(os.waitpid, pid, 0)
    finally:
        launch.SCRIPT = kept  # type: ignore[misc]
    begins = [stamp.at for stamp in stamps(file) if stamp.word == "begin"]
    return [1000 * (at - call) for call, at in zip(began, begins, strict=True)]


def by_themselves(file: Path, starts: int) -> list[float]:
    """Milliseconds from the call that starts the program, and nothing else, to its first act."""
    argv, began = stamping(file), []
    for _ in range(starts):
        began.append(time.time())  # noqa: TID251 - the same clock as the program's stamp
        quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        os.waitpid(os.posix_spawn(argv[0], argv, {**os.environ, "TENUTO_ATTEMPT": "none"}, file_actions=[quiet]), 0)
    begins = [stamp.at for stamp in stamps(file) if stamp.word == "begin"]
    return [1000 * (at - call) for call, at in zip(began, begins, strict=True)]


def synced(file: Path, writes: int) -> list[float]:
    """Milliseconds of one sync of a small write: between a wake and its program lie two that nothing can spare."""
    spent = []
    with file.open("ab", buffering=0) as opened:
        for _ in range(writes):
            opened.write(b"x" * 200)
            began = time.perf_counter()
            os.fsync(opened.fileno())
            spent.append(1000 * (time.perf_counter() - began))
    return spent


def plain(folder: Path, settings: Settings, argv: tuple[str, ...], number: int) -> carry.Order:
    """An order like a turn's."""
    command = CommandId(spelled("command", number + 1))
    env = environment.resolve((), {"TENUTO_COMMAND": command, "TENUTO_ATTEMPT": "none"}, os.environ, None)
    return {
        "folder": str(folder),
        "command": command,
        "attempt": None,
        "task": spelled("task", 1),
        "registry": "bench",
        "epoch": 1,
        "kind": "turn",
        "host": None,
        "argv": list(argv),
        "cwd": str(folder),
        "env": env,
        "prompt": "go on",
        "limit": 60.0,
        "grace": 1.0,
        "bell": str(settings.bell),
        "fuse": None,
    }
