"""An executor on the stage of a crash: a process of its own, at the other end of the wire, with a journal of its own.

It is what `tenuto host` runs, forked from a process that has imported everything, and killed where its fuse says, as a
supervisor is. Whenever it died it is begun again with the journal it left. It is let in by a token that each life of
the supervisor looks after; nothing else is arranged between the two.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tenuto.engine.tokens import Wanted
from tenuto.model.faults import Conflict, NotFound
from tenuto.model.snapshot import Role
from tenuto.proof.case import Kill
from tenuto.proof.fuse import Fuses, KillFuse, Recorder
from tenuto.proof.person import OPERATOR, Person
from tenuto.proof.stage import Stage
from tenuto.transports.host.executor import HostExecutor
from tenuto.wiring.hosting import hosting

NAME = "far"
ON = f"host:{NAME}"
"""What a task says that is to be worked on there."""

IMPORTED = (
    "tenuto.surfaces.http.app",
    "tenuto.surfaces.mcp.mounted",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "websockets.asyncio.client",
)

HEARD = "peer.heard"
"""The point at which a command has come, and nothing of it was done."""


def token_of(stage: Stage) -> Path:
    """Where its token lies from when there is one."""
    return stage.home / "far.token"


def ready(stage: Stage) -> None:
    """Choose a port for the supervisor, and import once what every life of both would import."""
    for name in IMPORTED:
        importlib.import_module(name)
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        stage.tell("port", [str(tried.getsockname()[1])])


async def admit(person: Person) -> None:
    """See to it that the executor has a token; one whose secret was lost with a life is made again."""
    kept = token_of(person.stage)
    while not kept.exists():
        try:
            made = await person.desk.make_token(OPERATOR, Wanted(Role.EXECUTOR, NAME), None)
        except Conflict:
            try:
                await person.desk.revoke_token(OPERATOR, NAME, None)
            except (Conflict, NotFound):
                continue
        else:
            new = kept.with_suffix(".new")
            new.touch(mode=0o600)
            new.write_text(str(made.result["secret"]), "ascii")
            new.replace(kept)


class Elsewhere:
    """The lives of one executor, one after the other. `kills` are met in order, `host` is of the first life alone."""

    def __init__(self, stage: Stage, kills: Sequence[Kill], host: Kill | None) -> None:
        self._stage = stage
        self._kills = kills
        self._host = host
        self._pid: int | None = None
        self._lives = 0
        self.died = 0
        self.troubles: list[str] = []

    def look(self) -> None:
        """Begin it where there is none and it may be let in; one that died by itself is a trouble, once."""
        if self._pid is not None:
            found, status = os.waitpid(self._pid, os.WNOHANG)
            if not found:
                return
            self._pid = None
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and self.died < len(self._kills):
                self.died += 1
            else:
                self.troubles.append(f"the executor ended by itself ({os.waitstatus_to_exitcode(status)})")
        if not self.troubles and token_of(self._stage).exists():
            self._begin()

    def kill(self) -> None:
        """End it now, as a machine does that loses its power; another look begins it again."""
        pid, self._pid = self._pid, None
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _begin(self) -> None:
        self._lives += 1
        kill = self._kills[self.died] if self.died < len(self._kills) else None
        host = self._host if self._lives == 1 else None
        pid = os.fork()
        if pid == 0:
            _live(self._stage, self._lives, kill, host)
        self._pid = pid


def _live(stage: Stage, number: int, kill: Kill | None, host: Kill | None) -> NoReturn:
    code = 1
    try:
        log = os.open(stage.home / f"far.{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        asyncio.run(_speak(stage, number, kill, host))
    except BaseException:  # noqa: BLE001 - this is a copy of the parent: whatever happens, it must not go on as one
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


async def _speak(stage: Stage, number: int, kill: Kill | None, host: Kill | None) -> None:
    made: list[HostExecutor] = []
    heard = 0

    def passed(point: str, _: int) -> None:
        """Just before an order is handed on: arm the fuse of the host that gets it, or take it out."""
        nonlocal heard
        heard += point == HEARD
        chosen = host is not None and heard == host.count
        for executor in made:
            executor.host_fuse = host.point if host is not None and chosen else None
            if chosen:
                stage.mark("host.armed")

    settings = stage.settings({})
    point, count = (kill.point, kill.count) if kill is not None else ("", 0)
    fuse = Fuses(Recorder(stage.home / f"passed.far.{number}", passed), KillFuse(point, count))
    addresses = [f"ws://127.0.0.1:{settings.port}", str(settings.socket)]
    await hosting(settings, NAME, addresses, token_of(stage), stage.home / "far", fuse=fuse, made=made.append)
