"""Ending the turn that another command began, and nobody else.

What has not begun is revoked. A host that lives is asked and goes down its own ladder, so that its journal
tells the end; where none lives, the program's own processes are ended, each pinned and compared first. It
says that all is over only when it has seen that.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenuto.model.evidence import Mark, Presence
from tenuto.ports import Fuse, Halt
from tenuto.transports import processes
from tenuto.transports.host import journal, sight
from tenuto.transports.host.bell import Deaths
from tenuto.transports.host.journal import Journal

MARGIN: Final = timedelta(seconds=8)
"""What a host may take beyond the grace: killing, draining, and the disk."""


@dataclass(frozen=True)
class Halting:
    """One halt at work. `revoke` takes the target's free place; `accepted` is called once a signal has gone out."""

    folder: Path
    order: Halt
    fuse: Fuse
    revoke: Callable[[], bool]
    accepted: Callable[[], None]

    async def over(self) -> bool:
        """End it; whether all of it is proven gone."""
        seen = self._seen()
        if seen.mark is Mark.NONE and await asyncio.to_thread(self.revoke):
            # Its journal may have been in another directory: whoever is seen to carry it is ended all the same.
            left = await asyncio.to_thread(sight.agent_of, seen, Presence.GONE)
            return left is not Presence.ALIVE or await self._rest(seen)
        seen = self._seen()
        if seen.mark in (Mark.REVOKED, Mark.FAILED):
            return True
        self.fuse.burn("halt.before")
        if seen.host is not None and processes.send(seen.host, signal.SIGTERM):
            processes.send(seen.host, signal.SIGCONT)
            await asyncio.to_thread(self.accepted)
            self.fuse.burn("halt.signalled")
            await self._gone(seen.host)
            seen = self._seen()
        return await self._rest(seen)

    async def _rest(self, seen: Journal) -> bool:
        """What its host has left, or has left us to do."""
        name, value = sight.badge(seen)
        left = await asyncio.to_thread(sight.agent_of, seen, Presence.GONE)
        if left is not Presence.GONE:
            if seen.agent is not None:
                ending = await processes.end_belongings(seen.agent, name, value, grace=self.order.grace)
            else:
                since = seen.host.start if seen.host is not None else None
                ending = await processes.end_all(
                    lambda: processes.carriers(name, value, since=since), grace=self.order.grace
                )
            await asyncio.to_thread(self.accepted)
            self.fuse.burn("halt.signalled")
            if not ending:
                return False
            left = await asyncio.to_thread(sight.agent_of, self._seen(), Presence.GONE)
        if seen.host is not None and sight.presence(seen.host) is not Presence.GONE:
            await self._gone(seen.host)
            return left is Presence.GONE and sight.presence(seen.host) is Presence.GONE
        return left is Presence.GONE

    async def _gone(self, host: processes.Identity) -> None:
        """Wait for a host to be done, within the grace and its margin."""
        done = asyncio.Event()
        deaths = Deaths(lambda command_id: done.set())
        deaths.watch(self.order.target, host)
        try:
            async with asyncio.timeout((self.order.grace + MARGIN).total_seconds()):
                await done.wait()
        except TimeoutError:
            pass
        finally:
            deaths.close()

    def _seen(self) -> Journal:
        return journal.read(self.folder, self.order.target)
