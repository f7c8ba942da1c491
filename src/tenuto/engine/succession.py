"""Waiting to lead: what a supervisor does while another one has the lease.

It takes nothing by force. It tries when a hint says that the lease has changed, when the holder's process is proven
gone, and now and then without either, because hints may be lost; the registry decides each time. While the registry is
out of reach it goes on waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from tenuto.engine.residency import NotFree, Residency
from tenuto.model.faults import OutOfReach
from tenuto.model.leadership import Leadership

#: How often it is tried without a hint, and how often the holder's process is looked at, in seconds.
EVERY = 2.0
LOOK = 0.2


class Hinting(Protocol):
    """A registry that may say when its lease has changed."""

    async def changed(self, within: float) -> bool: ...


class Succession:
    """One supervisor in waiting."""

    def __init__(self, residency: Residency, hints: Hinting, gone: Callable[[Leadership], bool]) -> None:
        self._residency = residency
        self._hints = hints
        self._gone = gone
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Wait no longer."""
        self._stopping.set()

    async def wait(self, told: Callable[[Leadership | None], None]) -> Leadership | None:
        """The lease, once it is ours; None when it was stopped before. `told` hears of each holder it waits for."""
        waiting_for: Leadership | None = None
        while not self._stopping.is_set():
            try:
                led = await self._residency.lead()
            except OutOfReach:
                led = NotFree(waiting_for)
            if isinstance(led, Leadership):
                return led
            holder = led.holder
            if holder is not None and (waiting_for is None or holder.epoch != waiting_for.epoch):
                told(holder)
                waiting_for = holder
            await self._until_something(waiting_for)
        return None

    async def _until_something(self, holder: Leadership | None) -> None:
        """Until a hint, the holder's end, a stop, or EVERY seconds."""
        hint = asyncio.get_running_loop().create_task(self._hints.changed(EVERY))
        stop = asyncio.get_running_loop().create_task(self._stopping.wait())
        try:
            while not hint.done() and not stop.done():
                if holder is not None and self._gone(holder):
                    break
                await asyncio.wait((hint, stop), timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (hint, stop):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task
