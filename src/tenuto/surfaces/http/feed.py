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
    from collections.abc import Hashable, Iterator, Sequence

    from tenuto.model.fact import Event

    Read = Callable[[int, int], Sequence[Event]]

STREAMS = 256
PAGE = 200


@dataclass(frozen=True)
class Pace:
    """Seconds between looks nobody rang for, and between comments that keep a quiet stream open."""

    look: float = 1.0
    comment: float = 15.0


@dataclass(frozen=True)
class Framed:
    """A page as it is sent, and the number of its last event."""

    last: int
    told: bytes


NOTHING = Framed(0, b"")


class Feed:
    """Wakes the streams when something may have been recorded. To be used from the loop it serves in."""

    def __init__(self, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self.closed = False
        self._bells: set[asyncio.Event] = set()
        self._rings = 0
        self._moment: tuple[int, float] = (0, 0.0)
        self._pages: dict[tuple[Hashable, int], Framed] = {}

    def notify(self) -> None:
        """Something may have been recorded."""
        self._rings += 1
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

    def _page(self, read: Read, after: int, scope: Hashable) -> Framed:
        """The page after a number, read and framed once for all streams of a scope that stand there."""
        moment = (self._rings, asyncio.get_running_loop().time() // self.pace.look)
        if moment != self._moment:
            self._moment = moment
            self._pages.clear()
        found = self._pages.get((scope, after))
        if found is None:
            page = read(after, PAGE)
            found = self._pages[scope, after] = Framed(page[-1].n, b"".join(map(frame, page))) if page else NOTHING
        return found

    async def stream(self, read: Read, after: int, scope: Hashable = None) -> AsyncIterator[bytes]:
        """Events after a number, as they come; `read` takes (after, limit). Streams of one `scope` read the same."""
        yield b"retry: 2000\n: open\n\n"
        loop = asyncio.get_running_loop()
        said = loop.time()
        with self.listening() as bell:
            while not self.closed:
                bell.clear()
                page = self._page(read, after, scope)
                if page.told:
                    after = page.last
                    yield page.told
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
