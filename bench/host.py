# ruff: noqa: T201 - a program of its own that prints
"""What it costs to hand a turn to a host of its own.

Measures from the call of `perform` to the first act of the program, beside the same host started in the same way
whose marks go nowhere: the difference is what exclusiveness and the disk cost. Also how dear a look at a live turn
is, and how fast output flows by. Medians; the ratio is what counts, the times belong to the machine.

    python bench/host.py
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.host.conftest import Room, command

from tenuto.model.command import Accepted, Armed
from tenuto.ports import Halt
from tenuto.transports.host import launch

ROUNDS = 30
OUTPUT = 1 << 30

UNWRITTEN = """
import sys
sys.path.append(sys.argv[1])
from tenuto.transports.host import carry, claim
class Nowhere:
    def mark(self, *given, **more): pass
claim.take = lambda *given, **more: Nowhere()
claim.admit = lambda *given, **more: True
sys.exit(carry.main())
"""


async def started(fifo: Path, begin: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds from the call until the program opens and writes its pipe, which is made for it alone."""
    loop = asyncio.get_running_loop()
    os.mkfifo(fifo, 0o600)
    told = asyncio.Event()
    descriptor = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    loop.add_reader(descriptor, told.set)
    began = time.perf_counter()
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_awaited(begin()))
            await told.wait()
            took = time.perf_counter() - began
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        os.unlink(fifo)  # noqa: PTH108 - nothing that could keep the loop waiting
    return took * 1000


async def _awaited(what: Awaitable[object]) -> None:
    await what


async def main() -> None:
    """Measure in a directory of its own, and leave nothing running."""
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder))
        fifo = room.folder / "fifo"
        await room.executor.open(1)
        script = launch.SCRIPT
        bare = room.folder / "unwritten.py"
        bare.write_text(UNWRITTEN.replace("sys.argv[1]", repr(str(Path(script).parents[3]))))
        order = room.turn("sh", "-c", f"echo > {fifo}")
        written: list[float] = []
        unwritten: list[float] = []
        for _ in range(ROUNDS):
            mine = command()
            written.append(await started(fifo, lambda mine=mine: room.executor.perform(Armed(mine), order)))  # type: ignore[misc]
            await room.ended(mine)
            other = command()
            ordered = room.executor._ordered(other, order)
            launch.SCRIPT = str(bare)  # type: ignore[misc]
            unwritten.append(await started(fifo, lambda: room.executor._launch(other.id, ordered)))  # noqa: B023
            launch.SCRIPT = script  # type: ignore[misc]
        await measured_look(room)
        await measured_flow(room)
        await room.executor.close()
        with_journal, without = statistics.median(written), statistics.median(unwritten)
        print(f"perform to program   {with_journal:8.2f} ms")
        print(f"same, no journal     {without:8.2f} ms")
        print(f"ratio                {with_journal / without:8.2f}")


async def measured_look(room: Room) -> None:
    """One look at a turn whose host lives."""
    mine, outcome = await room.perform(room.turn("sleep", "600"))
    assert outcome == Accepted()
    times = []
    for _ in range(200):
        began = time.perf_counter()
        await room.look(mine)
        times.append(time.perf_counter() - began)
    await room.perform(Halt(mine.id, timedelta(seconds=1)))
    print(f"look at a live turn  {statistics.median(times) * 1000:8.3f} ms")


async def measured_flow(room: Room) -> None:
    """A gibibyte of output through the host."""
    began = time.perf_counter()
    mine, _ = await room.perform(room.turn("head", "-c", str(OUTPUT), "/dev/zero"))
    facts = await room.ended(mine)
    took = time.perf_counter() - began
    assert facts.ending is not None
    assert facts.ending.output_bytes == OUTPUT
    print(f"output               {OUTPUT / took / 1e6:8.0f} MB/s")


if __name__ == "__main__":
    asyncio.run(main())
