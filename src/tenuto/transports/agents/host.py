"""An agent's host as a program of its own: speaks for one conversation to whoever leads, and goes when nobody needs it.

It outlives the supervisor that started it. Only one at a time holds a journal; a second one leaves at once. It reads
its token from a file, gives orders to nobody, and goes by itself after a while without a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import logging
import os
import random
import secrets
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tenuto import __version__
from tenuto.model.evidence import Rank
from tenuto.ports import Clock, Fuse, NoFuse
from tenuto.transports import processes, wire
from tenuto.transports.agents import events
from tenuto.transports.agents.adapters import ADAPTERS
from tenuto.transports.agents.clock import HostClock
from tenuto.transports.agents.conversing import Conversing, Eyes
from tenuto.transports.agents.folder import IDLE, JOURNAL, LOCK, TOKEN_FILE
from tenuto.transports.agents.stops import Stops
from tenuto.transports.executor_side.carrying import Carrying
from tenuto.transports.executor_side.connecting import connector
from tenuto.transports.executor_side.keeping import Keeping
from tenuto.transports.executor_side.peer import Me, Peer
from tenuto.transports.executor_side.token import token_file

_LOG = logging.getLogger("tenuto.agent")
ANOTHER: Final = 3
"""The exit code of a host that found another one at its journal."""


async def hosting(
    folder: Path, name: str, adapter: str, sockets: Sequence[str], env_file: Path, idle: float, fuse: Fuse
) -> int:
    """Speak for the conversation until idle, stopped or not wanted."""
    clock: Clock = HostClock()
    keeping = Keeping(folder / JOURNAL, clock, fuse)
    await asyncio.to_thread(keeping.open)
    read = token_file(folder / TOKEN_FILE)
    peers: list[Peer] = []

    def tell(conversation: str, event: events.Event) -> None:
        for peer in peers:
            told = events.facts_of(event)
            peer.tell(wire.Observation(conversation, clock.now(), 0.0, Rank.JOURNAL, facts=told))

    stops = Stops(Path(sockets[0]).parent)
    work = Conversing(keeping, clock, dict(os.environ), env_file, tell=tell, stops=stops)
    hands = Carrying(keeping, work.kinds, Eyes(), doing=work.doing)
    can = ("send", "interrupt", "answer", *(("steer",) if ADAPTERS[adapter].steers else ()))
    me = Me(
        wire.ExecutorKind.AGENT,
        name,
        secrets.token_hex(8),
        processes.boot_id() or "",
        can,
        f"tenuto {__version__} {adapter}",
    )
    peer = Peer(me, hands, [connector(one, read) for one in sockets], clock, fuse, shake=random.random)
    peers.append(peer)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, peer.stop)

    async def leave() -> None:
        over = asyncio.Event()
        while hands.carried or clock.monotonic() - work.busy_until < idle:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(idle, 10.0)):
                    await over.wait()
        peer.stop()

    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(leave(), name="idle")
        try:
            await peer.run()
        finally:
            leaving.cancel()
            await stops.close()
    return 0


def main(argv: Sequence[str] | None = None, lit: Callable[[], Fuse] = NoFuse) -> int:
    """`python -m tenuto.transports.agents.host`: started by the supervisor, never by hand.

    `lit` is asked for a fuse once the journal is this host's alone.
    """
    told = argparse.ArgumentParser(prog="tenuto-agent-host")
    told.add_argument("--folder", type=Path, required=True)
    told.add_argument("--name", required=True)
    told.add_argument("--adapter", choices=sorted(ADAPTERS), required=True)
    told.add_argument("--connect", action="append", required=True)
    told.add_argument("--env-file", type=Path, required=True)
    told.add_argument("--idle", type=float, default=IDLE)
    given = told.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("websockets").setLevel(logging.WARNING)
    lock = os.open(given.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ANOTHER
    fuse = lit()
    return asyncio.run(
        hosting(given.folder, given.name, given.adapter, given.connect, given.env_file, given.idle, fuse)
    )


if __name__ == "__main__":
    sys.exit(main())
