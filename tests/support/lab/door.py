"""The door a browser goes through: an HTTP proxy that leads the site's names to the site, and nothing anywhere else.

It speaks CONNECT alone. A name that is not the site's is refused, so a browser behind it touches no network.
"""

from __future__ import annotations

import asyncio
import contextlib

LONGEST = 16 * 1024


class Door:
    """Serves one proxy on loopback. `names` lead to `port`."""

    def __init__(self, names: frozenset[str], port: int) -> None:
        self.names, self.port = names, port
        self.refused: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from the browser."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, _, rest = head.partition(b" ")
            host = rest.split(b" ", 1)[0].decode("ascii", "replace").rpartition(":")[0]
            if method != b"CONNECT" or host not in self.names:
                self.refused.add(host)
                writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
            else:
                await self._lead(reader, writer)
        writer.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        try:
            both = (_pour(reader, there_writer), _pour(there_reader, writer))
            await asyncio.gather(*both)
        finally:
            there_writer.close()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes one way until they end; then end the other side too."""
    try:
        while piece := await reader.read(LONGEST):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.close()
