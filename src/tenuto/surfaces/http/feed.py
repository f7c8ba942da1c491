"""The live feed: recorded events as server-sent events, each numbered so that a reader can go on where it stopped.

The registry is the outbox: a stream reads pages after the last number it sent and then waits to be rung. Ringing is
cheap and may be spurious; a slow look in between makes up for a ring that nobody gave.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenuto.surfaces import present

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenuto.model.fact import Event

STREAMS = 256
PAGE = 200


@dataclass(frozen=True)
class Pace:
    """Seconds between looks nobody rang for, and between comments that keep a quiet stream open."""

    look: float = 1.0
    comment: float = 15.0


class Feed:
    """Wakes the streams when something may have been recorded. To be used from the loop it serves in."""

    def __init__(self, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self.closed = False
        self._bells: set[asyncio.Event] = set()

    def notify(self) -> None:
        """Something may have been recorded."""
        for bell in self._bells:
            bell.set()

    def close(self) -> None:
        """End every stream; the reader comes back to whoever serves next."""
        self.closed = True
        self.notify()

    @property
    def full(self) -> bool:
        """Whether no further stream is taken."""
        return len(self._bells) >= STREAMS

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """A bell that is rung while this lasts."""
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    async def stream(self, read: Callable[[int, int], Sequence[Event]], after: int) -> AsyncIterator[bytes]:
        """Events after a number, as they come; `read` takes (after, limit)."""
        yield b"retry: 2000\n: open\n\n"
        loop = asyncio.get_running_loop()
        said = loop.time()
        with self.listening() as bell:
            while not self.closed:
                bell.clear()
                page = read(after, PAGE)
                if page:
                    after = page[-1].n
                    yield b"".join(map(frame, page))
                    said = loop.time()
                    continue
                if loop.time() - said >= self.pace.comment:
                    yield b": still here\n\n"
                    said = loop.time()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(self.pace.look, self.pace.comment)):
                        await bell.wait()


def frame(event: Event) -> bytes:
    """One event of the feed; JSON never holds a line break, so one data line is enough."""
    said = present.event(event)
    data = json.dumps(said, ensure_ascii=True, separators=(",", ":"))
    return f"id: {said['id']}\nevent: {said['kind']}\ndata: {data}\n\n".encode()
