"""Where the hooks of a session call at the host that works in it: one socket for a session, one call at a time.

A program that stops may be given words by which it goes on; its hook waits for them, a little and no longer. It is
held only while somebody has words for it, or may have any moment as a turn of ours has just ended; else it goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tenuto.transports.hooks import calls

HELD: Final = 6.0
"""Seconds that a hook is held at most; it gives up by itself after eight."""

TAKEN: Final = 3.0
"""Seconds for a hook to say that it has the words."""

LINE: Final = 2 << 20


@dataclass
class Heard:
    """One call: what the program did. `answered` is set once its hook has gone."""

    event: str
    again: bool
    last: str
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def give(self, words: str) -> bool | None:
        """Give the words; False where the hook was gone before, None where it cannot be told whether it has them."""
        if self.answered.is_set() or self.writer.is_closing() or self.reader.at_eof():
            return False
        try:
            self.writer.write(json.dumps({"words": words}).encode() + b"\n")
            await self.writer.drain()
            async with asyncio.timeout(TAKEN):
                return True if await self.reader.readline() == b"taken\n" else None
        except (OSError, TimeoutError, ValueError):
            return None
        finally:
            self.answered.set()

    async def let_go(self) -> None:
        """Have the program stop."""
        if not self.answered.is_set():
            self.answered.set()
            with contextlib.suppress(OSError):
                self.writer.write(b"{}\n")
                await self.writer.drain()


class Stops:
    """The calls of one session after the other. `folder` is where sockets lie."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()
        self._held: list[Heard] = []
        self.awaited = False

    async def listen(self, session: str) -> None:
        """Hear the hooks of this session; OSError when that cannot be."""
        path = self._folder / calls.socket_name(session)
        if self._path == path:
            return
        await self.close()
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._called, path, limit=LINE)
        path.chmod(0o600)
        self._path = path

    async def next(self, within: float) -> Heard | None:
        """The next call, within so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                return await self._heard.get()
        return None

    def again(self, heard: Heard) -> None:
        """Keep a stop for whoever has words next."""
        self._heard.put_nowait(heard)

    async def close(self) -> None:
        """Hear nothing any more, and let everybody go who is held."""
        for one in list(self._held):
            await one.let_go()
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._server = self._path = None

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(TAKEN):
                told = json.loads(await reader.readline())
            one = Heard(str(told["event"]), told["again"] is True, str(told["last"]), writer, reader)
            stopped = one.event == "Stop"
            if stopped and not self.awaited:
                await one.let_go()
                return
            self._heard.put_nowait(one)
            if not stopped:
                await one.let_go()
            self._held.append(one)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HELD):
                    await one.answered.wait()
            if not one.answered.is_set():
                self.awaited = False  # no words came: the next stop is nobody's
            await one.let_go()
            self._held.remove(one)
        except (OSError, ValueError, KeyError, TypeError, TimeoutError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
