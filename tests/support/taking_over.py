"""A supervisor that has a tool session taken over, and may die at a named point of it; or one that finds what was left.

    python -m tests.support.taking_over FOLDER STATE DOOR POINT ACT

`ACT` is `begin` (make a task bound to the session named in FOLDER/session), `take` (register a place and pass the lease
to it) or `look` (lead, serve the task once, and tell). What it finds at its end is written to FOLDER/told.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tenuto.config import Settings, load
from tenuto.engine.calling import Caller
from tenuto.engine.residency import NotFree
from tenuto.model.faults import Refused
from tenuto.model.ids import TaskId
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Role
from tenuto.surfaces import verbs
from tenuto.wiring.daemon import Supervisor, assembled

OPERATOR = Caller(Role.OPERATOR, "operator")
APART = timedelta(milliseconds=50)


class Dying:
    """A fuse that ends this very process at its point, as a power cut would; and counts what it passed."""

    def __init__(self, point: str) -> None:
        self.point = point

    def burn(self, point: str) -> None:
        """Die if this is the point."""
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


def settings_of(folder: Path, state: Path, door: str) -> Settings:
    """A home below the folder, with one tool server."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    made = load({"TENUTO_HOME": str(home), "PATH": os.environ["PATH"]}, None)
    policy = replace(POLICY, reconcile_separation=APART)
    doors = {"real": door} if door != "-" else {}
    return replace(made, tool_servers={"real": state}, tool_doors=doors, policy=policy, port=None)


async def main(folder: Path, state: Path, door: str, point: str, act: str) -> None:
    """Lead, do it, and tell."""
    async with assembled(settings_of(folder, state, door), fuse=Dying(point)) as it:
        led = await it.residency.lead()
        for _ in range(200):  # the lease of who was killed is given up once its process is seen to be gone
            if not isinstance(led, NotFree):
                break
            await asyncio.sleep(0.05)
            led = await it.residency.lead()
        assert not isinstance(led, NotFree)
        await it.executor.open(led.epoch)
        told: dict[str, object] = {}
        if act == "begin":
            (folder / "task").write_text(await begin(it, folder))
        task = TaskId((folder / "task").read_text())
        if act == "take":
            told = await take(it, task, folder)
        await it.cycle.serve(task)
        told |= found(it, task)
        (folder / "told.new").write_text(json.dumps(told))
        (folder / "told.new").rename(folder / "told")


async def call(it: Supervisor, name: str, **params: object) -> dict[str, object]:
    return dict(await verbs.call(it.desk, OPERATOR, name, params, None))


async def begin(it: Supervisor, folder: Path) -> str:
    """A task at rest that a place holds, with the session bound to it."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    params = {"objective": "Hold on", "agent": {"argv": ["true"]}, "cwd": str(work), "auto_resume": "manual"}
    made = await call(it, "run.create", **params)
    task = str(made["result"]["task"])  # type: ignore[index]
    await call(it, "tool.bind", task=task, server="real", session=(folder / "session").read_text())
    first = await call(it, "lease.register", task=task, identity="place-0")
    await call(it, "lease.claim", task=task, conversation=first["result"]["conversation"])  # type: ignore[index]
    return task


async def take(it: Supervisor, task: TaskId, folder: Path) -> dict[str, object]:
    """Register the next place and have it take over, after two looks."""
    number = len(it.ledger.conversations(task))
    made = await call(it, "lease.register", task=task, identity=f"place-{number}")
    place = made["result"]["conversation"]  # type: ignore[index]
    await call(it, "lease.handoff", task=task, conversation=place)
    for _ in range(2):
        await call(it, "reconcile", task=task)
        await asyncio.sleep(2 * APART.total_seconds())
    try:
        return {"result": (await call(it, "lease.takeover", task=task, conversation=place))["result"]}
    except Refused as why:
        return {"refused": why.message}


def found(it: Supervisor, task: TaskId) -> dict[str, object]:
    """The rows as they stand."""
    commands = [c for c in it.ledger.commands(100, task_id=task) if c.kind == "takeover"]
    snapshot = it.ledger.snapshot(task, 20)
    assert snapshot is not None
    holder = snapshot.conversation
    return {
        "commands": [[c.state, c.detail or c.evidence] for c in commands],
        "holder": holder.identity if holder is not None else None,
        "lease": holder.lease_number if holder is not None else None,
        "waits": [wait.question for wait in snapshot.waits],
        "messages": len(snapshot.messages),
    }


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]))
