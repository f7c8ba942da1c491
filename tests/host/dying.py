"""A supervisor that dies at a named point of its work, played for the tests of what is left behind.

Called with a directory and a point. It writes down which commands it made before it acts on them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from tests.host.conftest import RealClock, Room, command

from tenuto.model.command import Armed, CommandKind
from tenuto.ports import Halt
from tenuto.transports.host.executor import HostExecutor

PROGRAM = "echo x >> starts; exec sleep 600"


class Dying:
    """A fuse that ends this very process at its point, as a power cut would."""

    def __init__(self, point: str) -> None:
        """Remember where to die."""
        self.point = point

    def burn(self, point: str) -> None:
        """Die if this is the point."""
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(folder: Path, point: str) -> None:
    """Hand over a turn, revoke another, halt the first; die on the way."""
    fuse = Dying(point)
    room = Room(folder)
    executor = HostExecutor(
        room.journals, folder / "dying.sock", folder / "env", "registry", RealClock(), fuse, surroundings=os.environ
    )
    await executor.open(1)
    send, other, halt = command(), command(), command(CommandKind.INTERRUPT)
    (folder / "made.new").write_text(
        json.dumps([[one.id, one.attempt_id, one.task_id, one.kind] for one in (send, other, halt)])
    )
    (folder / "made.new").rename(folder / "made")
    await executor.perform(Armed(send), room.turn("sh", "-c", PROGRAM))
    fuse.burn("after.handover")
    await executor.revoke(other, 1)
    await executor.perform(Armed(halt), Halt(send.id, timedelta(seconds=1)))
    fuse.burn("after.halt")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
