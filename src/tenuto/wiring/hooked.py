"""Reads what hooks left while no supervisor listened: each once, oldest first, and none of it twice.

What cannot be read is thrown away: it was only a reason to look, and whoever leads looks anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from tenuto.engine.calling import Caller
from tenuto.model.faults import Mistake
from tenuto.model.ids import TaskId
from tenuto.model.snapshot import Role
from tenuto.transports.hooks import calls

EVERY: Final = 30.0
HOOK: Final = Caller(Role.OPERATOR, "a hook")

Told = Callable[[Caller, str, str, str], Awaitable[TaskId | None]]

_LOG = logging.getLogger("tenuto.hooks")


class Hooked:
    """Brings words of hooks to the desk; `place` is where they lie."""

    def __init__(self, place: Path, told: Told, *, every: float = EVERY) -> None:
        self._place = place
        self._told = told
        self._every = every
        self._over = asyncio.Event()

    def stop(self) -> None:
        """Read no more."""
        self._over.set()

    async def run(self) -> None:
        """Read at once, and again from time to time, until stopped."""
        while not self._over.is_set():
            await self.hear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._over.wait()

    async def hear(self) -> int:
        """Read what lies there now; how many words were heard."""
        heard = 0
        for file, call in await asyncio.to_thread(calls.waiting, self._place):
            if call is not None and not call.sub:
                try:
                    await self._told(HOOK, call.adapter, call.event, call.session)
                    heard += 1
                except Mistake as mistake:
                    _LOG.info("a word of a hook came to nothing: %s", mistake)
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
        return heard
