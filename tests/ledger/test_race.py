"""Two processes on one registry: one leads, and no scope is ever held twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.ledger.world import Counting, SetClock

from tenuto.model.fact import FactKind
from tenuto.store.opening import open_registry

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 30

#: Takes the lease over again and again (its holder is always said to be gone) and arms one turn each time it can.
RIVAL = """
import asyncio, sys
from dataclasses import replace
from tenuto.model.change import Busy, Committed, NotLeader, Stale
from tenuto.store.opening import open_registry
from tests.ledger.world import *

async def main(where, name, start, rounds):
    clock, ids = SetClock(), Counting(start)
    ledger = open_registry(where, clock, minter=ids)
    task = ledger.tasks(1)[0]
    run, text = ledger.run(task.run_id), ledger.text(task.objective)
    here = Place(run, text, task, ledger.conversations(task.id)[0])
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(rounds):
        lease = await ledger.lead(candidate(name), lambda holder: holder.owner != name)
        if lease is None:
            continue
        snapshot = ledger.snapshot(task.id, 5)
        if snapshot.live is not None:
            left = Turn(snapshot.live, snapshot.live_command, snapshot.task).settled(clock.now())
            assert isinstance(await ledger.commit(left), Committed | NotLeader | Stale)
            snapshot = ledger.snapshot(task.id, 5)
        number = (snapshot.live or snapshot.last).number + 1 if snapshot.live or snapshot.last else 1
        armed = turn(ids, here, epoch=lease.epoch, number=number, revision=snapshot.task.revision + 1)
        result = await ledger.commit(armed.commit())
        assert isinstance(result, Committed | Busy | NotLeader | Stale), result
        print("armed" if isinstance(result, Committed) else type(result).__name__, lease.epoch, flush=True)
        if isinstance(result, Committed):
            settled = await ledger.commit(armed.settled(clock.now()))
            assert isinstance(settled, Committed | NotLeader | Stale), settled
    await ledger.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""

MAKER = """
import asyncio, sys
from tests.ledger.world import *
from tenuto.store.opening import open_registry

async def main(where):
    ids = Counting()
    ledger = open_registry(where, SetClock(), minter=ids)
    lease = await ledger.lead(candidate("maker"), never)
    await settled_in(ledger, place(ids))
    await ledger.resign(lease, NOW)
    await ledger.close()

asyncio.run(main(sys.argv[1]))
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_supervisors_never_arm_twice(database: str) -> None:
    maker = start(MAKER, database)
    maker.communicate(timeout=60)
    assert maker.returncode == 0
    rivals = [start(RIVAL, database, f"rival{i}", str(10**9 * (i + 1)), str(ROUNDS)) for i in range(2)]
    said: list[list[str]] = []
    for rival in rivals:
        assert rival.stdout is not None
        assert rival.stdout.readline() == "ready\n"
    for rival in rivals:
        assert rival.stdin is not None
        rival.stdin.write("go\n")
        rival.stdin.flush()
    for rival in rivals:
        out, _ = rival.communicate(timeout=100)
        assert rival.returncode == 0
        said.append(out.split("\n")[:-1])
    epochs = [Counter(line.split()[1] for line in lines) for lines in said]
    assert not set(epochs[0]) & set(epochs[1]), "an epoch was led by two"

    reader = open_registry(database, SetClock(), minter=Counting(), read_only=True)
    assert reader.check() == ()
    task = reader.tasks(1)[0]
    attempts = reader.attempts(task.id, 1000)
    armed = sum(line.startswith("armed") for lines in said for line in lines)
    assert len(attempts) == armed > 0
    assert [attempt.number for attempt in attempts] == list(range(armed, 0, -1))
    events = reader.events(0, 10_000)
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert [event.epoch for event in events] == sorted(event.epoch for event in events)
    arms = [event.epoch for event in events if event.fact.kind is FactKind.COMMAND_ARMED]
    assert arms == sorted(command.epoch for command in reader.commands(1000))
    reader.close_readers()
