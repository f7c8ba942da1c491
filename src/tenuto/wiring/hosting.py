"""A host executor as a program of its own: runs plain programs here for a supervisor that leads here or elsewhere.

It keeps its own journal, so it may be killed and started again at any time; what its programs do goes on meanwhile.
Stopping it ends nothing but the talking.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from tenuto import __version__
from tenuto.config import Settings
from tenuto.model.faults import Mistake
from tenuto.model.ids import CommandId
from tenuto.ports import Clock, Fuse, NoFuse
from tenuto.transports import processes, wire
from tenuto.transports.executor_side.connecting import connector
from tenuto.transports.executor_side.keeping import Keeping
from tenuto.transports.executor_side.peer import Me, Peer
from tenuto.transports.executor_side.programs import Programs
from tenuto.transports.executor_side.token import token_file
from tenuto.transports.host.executor import HostExecutor
from tenuto.wiring.world import SystemClock

_LOG = logging.getLogger("tenuto")
STOPPED, FAILED, NOT_WANTED = 0, 1, 4


def journal_of(settings: Settings, name: str) -> Path:
    """Where the journal of a host executor lies unless it is told."""
    return settings.state / "hosts" / name


async def hosting(
    settings: Settings,
    name: str,
    addresses: Sequence[str],
    token: Path,
    journal: Path | None = None,
    *,
    clock: Clock | None = None,
    fuse: Fuse | None = None,
    host_fuse: str | None = None,
    started: Callable[[Peer], None] = lambda peer: None,
    made: Callable[[HostExecutor], None] = lambda executor: None,
) -> wire.Bye | None:
    """Speak for programs on this machine until stopped (None) or not wanted (the farewell). Raises Mistake, OSError.

    `made` is given what hands orders to hosts, before its first one.
    """
    if not wire.NAME.fullmatch(name):
        raise Mistake("a name is up to 64 of a-z, 0-9, dot, dash and underscore", field="name")
    clock, fuse = clock or SystemClock(), fuse or NoFuse()
    told = list(addresses or settings.supervisor) or [str(settings.socket)]
    read = token_file(token)
    connects = [connector(address, read) for address in told]
    keeping = Keeping(journal or journal_of(settings, name), clock, fuse)
    await asyncio.to_thread(keeping.open)

    def make(registry: str, ring: Callable[[CommandId], None]) -> HostExecutor:
        bell = keeping.folder / "bell.sock"
        executor = HostExecutor(
            keeping.folder, bell, settings.env_file, registry, clock, fuse, host_fuse=host_fuse, ring=ring
        )
        made(executor)
        return executor

    programs = Programs(keeping, make, clock)
    me = Me(
        wire.ExecutorKind.HOST,
        name,
        secrets.token_hex(8),
        processes.boot_id() or "",
        ("send", "check", "interrupt"),
        f"tenuto {__version__}",
    )
    peer = Peer(me, programs, connects, clock, fuse, shake=random.random)
    programs.speaks(peer.tell)
    started(peer)
    try:
        return await peer.run()
    finally:
        await programs.close()


def host(settings: Settings, name: str, addresses: Sequence[str], token: Path, journal: Path | None) -> int:
    """`tenuto host`: 0 after a clean stop, 4 when the supervisor does not want it, 1 when something failed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("websockets").setLevel(logging.WARNING)

    def stoppable(peer: Peer) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, peer.stop)

    try:
        bye = asyncio.run(hosting(settings, name, addresses, token, journal, started=stoppable))
    except OSError as error:
        _LOG.error("%s", error)
        return FAILED
    if bye is None:
        return STOPPED
    _LOG.error("%s", bye.message)
    return NOT_WANTED
