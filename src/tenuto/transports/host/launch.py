"""Handing one order to a new host process.

The host is started apart from everything of ours and given its order through a pipe; until the pipe is
closed it does nothing, so half a hand-over is none. It blocks for at most a few seconds and belongs in a
thread. It never waits for what the host does with the order.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from tenuto.ports import Fuse
from tenuto.transports.host import carry, turn
from tenuto.transports.processes import identity_of

SCRIPT: Final = str(Path(turn.__file__).resolve())
PIPE: Final = 60_000
"""Bytes that an empty pipe takes at once; it holds 64 KiB, and an order has names and numbers besides."""

PATIENCE: Final = 5.0
"""Seconds that a host may take to read its order."""

BADGE: Final = "TENUTO_HOST"
"""What a host carries in its environment, with its command, and hands to no program."""


class Waiting(NamedTuple):
    """A host that waits for its order: its process, and the end of the pipe that the order goes into."""

    pid: int
    pipe: int


class TooLongError(Exception):
    """The order is longer than a host reads; nothing was started."""


def wait_for_order(command_id: str) -> Waiting:
    """Start a host that does nothing until it has its order; should the pipe be closed before, it only ends."""
    reading, writing = os.pipe()
    try:
        return Waiting(_spawn(command_id, reading), writing)
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)


def fits_a_pipe(order: carry.Order) -> bool:
    """Whether an order, with all that JSON makes of it, is taken by an empty pipe without anybody reading."""
    spoken = len(order["prompt"]) + sum(len(name) + len(value) for name, value in order["env"].items())
    return 6 * (spoken + sum(map(len, order["argv"])) + len(order["cwd"])) < PIPE


def launch(order: carry.Order, fuse: Fuse, waiting: Waiting | None = None) -> int:
    """Start a host, unless one waits, and hand it the order; its pid. OSError when it could not be started.

    A host that dies while it reads is no error here: its journal and its end tell what happened.
    """
    try:
        encoded = json.dumps(order).encode("ascii")
        if len(encoded) + 256 > carry.ORDER_LIMIT:  # the host's own identity is still to come
            raise TooLongError("the order is longer than a host reads")
        fuse.burn("handover.before_spawn")
    except BaseException:
        if waiting is not None:
            os.close(waiting.pipe)
        raise
    pid, writing = waiting if waiting is not None else wait_for_order(order["command"])
    try:
        fuse.burn("handover.spawned")
        found = identity_of(pid)
        if found is not None:
            order = {**order, "host": {"pid": found.pid, "start": found.start, "boot": found.boot}}
        _write(writing, json.dumps(order).encode("ascii"))
    finally:
        os.close(writing)
    fuse.burn("handover.ordered")
    return pid


def _spawn(command_id: str, stdin: int) -> int:
    argv = [sys.executable, "-I", "-S", "-X", "utf8", SCRIPT]
    env = {BADGE: command_id, "PATH": os.environ.get("PATH", os.defpath)}
    actions = (
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    )
    return os.posix_spawn(sys.executable, argv, env, file_actions=actions, setsigmask=())


def _write(descriptor: int, data: bytes) -> None:
    """Write what the host takes in time; a rest it does not take makes the order none."""
    os.set_blocking(descriptor, False)
    until = time.monotonic() + PATIENCE
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    view = memoryview(data)
    while view and (left := until - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            return
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            continue
        except BrokenPipeError:
            return
