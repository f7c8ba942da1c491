"""MCP on standard input and output: a thin client of the supervisor's API.

It opens no registry. In a turn it uses the agent's own token (`TENUTO_TOKEN`), else the operator's from its file, and
what that token opens is the supervisor's to say. It starts without a supervisor, too: then reading says that nobody
is there, and what ends a turn is left in the spool. It holds nothing, so that it may be ended at any moment.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from tenuto.model.snapshot import Role
from tenuto.surfaces.cli.client import Unreachable
from tenuto.surfaces.cli.door import Door
from tenuto.surfaces.cli.entrances import Entrances
from tenuto.surfaces.cli.exits import Failure, no_supervisor
from tenuto.surfaces.mcp.server import make_server
from tenuto.surfaces.mcp.ways import Told, Who, who_of
from tenuto.surfaces.present import explanation
from tenuto.surfaces.verbs import VERBS


def serve(entrances: Entrances) -> int:
    """Serve until standard input ends; the exit code of the process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a client that ends us must not have to wait for our input to end
    anyio.run(_serve, OverSocket(entrances))
    return 0


async def _serve(way: OverSocket) -> None:
    server = make_server(way)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class OverSocket:
    """The verbs of the supervisor at its socket."""

    def __init__(self, entrances: Entrances) -> None:
        self._door = Door(entrances, lambda _line: None)
        self._environment = entrances.environment

    async def who(self) -> Who:
        """Whom it is for, by the supervisor's word; while nobody answers, by what the environment says."""
        try:
            return who_of(await anyio.to_thread.run_sync(partial(self._door.live, "whoami", {})))
        except Unreachable:
            role = Role.AGENT if self._environment.get("TENUTO_TOKEN") else Role.OPERATOR
            opened = frozenset(verb.name for verb in VERBS.values() if role in verb.roles)
            return Who(role, self._environment.get("TENUTO_TASK"), None, opened)
        except Failure as failure:
            raise _told(failure) from None

    async def ask(self, verb: str, params: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
        """Carry out a verb."""
        if VERBS[verb].mutates:
            act = partial(self._door.change, verb, params, key)
        else:
            act = partial(self._door.live, verb, params)
        try:
            return await anyio.to_thread.run_sync(act)
        except Unreachable as why:
            raise _told(no_supervisor(str(why))) from None
        except Failure as failure:
            raise _told(failure) from None


def _told(failure: Failure) -> Told:
    because = None if failure.because is None else str(failure.because)
    return Told(
        explanation(failure.code, failure.message, because=because, field=failure.field, see=failure.mend or None)
    )
