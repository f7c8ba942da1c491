"""One agent program as a process that speaks lines of JSON on its standard input and output.

It gets a session of its own and exactly the environment it was given. Of what it prints on standard error the last
line is kept for the reason of a failure, with every credential's value blotted out. It is ended with everything that
carries its attempt, and that all of it is gone is looked up, not believed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from tenuto.transports import processes

LINE: Final = 16 << 20
"""Most bytes of one line; a longer one is passed over."""

KEPT: Final = 4096
ATTEMPT: Final = "TENUTO_ATTEMPT"

Json = dict[str, Any]


class NotStarted(Exception):
    """The program did not start; nothing of it ran."""


class _Tail(asyncio.Protocol):
    """Keeps the end of what comes."""

    def __init__(self) -> None:
        self.held = b""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.held = (self.held + data)[-KEPT:]

    def close(self) -> None:
        """Listen no longer."""
        if self._transport is not None:
            self._transport.close()


class Program:
    """A program under way. `carries` is the NAME, value that everything of it has in its environment."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], secrets: Sequence[str] = ()) -> None:
        self._argv = tuple(argv)
        self._cwd = cwd
        self._env = dict(env)
        self._secrets = tuple(value for value in secrets if len(value) >= 4)
        self._process: asyncio.subprocess.Process | None = None
        self._leader: processes.Identity | None = None
        self._errors = _Tail()
        self._sending = asyncio.Lock()

    async def start(self) -> None:
        """Start it; NotStarted says why it could not be."""
        reading, writing = os.pipe()
        await asyncio.get_running_loop().connect_read_pipe(lambda: self._errors, os.fdopen(reading, "rb", 0))
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=writing,
                cwd=self._cwd,
                env=self._env,
                start_new_session=True,
                limit=LINE,
            )
        except (OSError, ValueError) as error:
            raise NotStarted(f"{self._argv[0]} could not be started ({error})") from None
        finally:
            os.close(writing)
        self._leader = processes.identity_of(self._process.pid)

    @property
    def leader(self) -> processes.Identity | None:
        """Who was started."""
        return self._leader

    async def say(self, told: Json) -> None:
        """Write one line; ConnectionError when nobody reads any more."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            raise ConnectionError("the program is gone")
        line = json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
        async with self._sending:
            try:
                process.stdin.write(line)
                await process.stdin.drain()
            except OSError as error:
                raise ConnectionError(str(error)) from None

    async def give(self, text: str) -> None:
        """Write these words as they are and close its input; ConnectionError when nobody reads any more."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            raise ConnectionError("the program is gone")
        async with self._sending:
            try:
                process.stdin.write(text.encode("utf-8", "replace"))
                await process.stdin.drain()
                process.stdin.close()
            except OSError as error:
                raise ConnectionError(str(error)) from None

    async def hear(self) -> Json | None:
        """The next line that is an object; None once there will be none. What is no JSON is passed over."""
        process = self._process
        if process is None or process.stdout is None:
            return None
        while True:
            try:
                line = await process.stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as over:
                await self._skip(process.stdout, over.consumed)
                continue
            except OSError:
                return None
            try:
                told = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(told, dict):
                return told

    async def code(self, within: float = 2.5) -> int | None:
        """Its exit code, negative for a signal, once it has ended within that many seconds; None while it runs."""
        process = self._process
        if process is None:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await process.wait()
        return process.returncode

    async def gave_up(self) -> bool:
        """Whether it ended by itself. One that was killed, or that only takes its time, may do better the next time."""
        code = await self.code()
        return code is not None and code >= 0

    def last_words(self) -> str:
        """The last line it printed on standard error, short and without secrets."""
        lines = [line for line in self._errors.held.decode("utf-8", "replace").splitlines() if line.strip()]
        told = lines[-1].strip() if lines else ""
        for secret in self._secrets:
            told = told.replace(secret, "***")
        return told[:300]

    async def close(self, grace: float) -> bool:
        """Close its input, give it `grace` seconds to end, and end what is left; whether all is proven gone."""
        process = self._process
        if process is None:
            return True
        if process.stdin is not None:
            process.stdin.close()
        async with asyncio.TaskGroup() as group:
            flowing = group.create_task(self._sink(process), name="sink")
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(grace):
                        await process.wait()
                gone = await self._end(grace)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        await process.wait()
            finally:
                flowing.cancel()
        self._errors.close()
        return gone

    async def _end(self, grace: float) -> bool:
        """End the leader, its group and session, and everyone who carries its attempt."""
        attempt, leader = self._env.get(ATTEMPT, ""), self._leader
        if leader is None:
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            return bool(attempt) and await end_carriers(attempt, grace)
        if not attempt:
            return bool(await processes.end(leader, grace=timedelta(seconds=grace)))
        return bool(await processes.end_belongings(leader, ATTEMPT, attempt, grace=timedelta(seconds=grace)))

    @staticmethod
    async def _sink(process: asyncio.subprocess.Process) -> None:
        """Take what it still prints, so that it is not kept from ending."""
        with contextlib.suppress(OSError, ValueError):
            while process.stdout is not None and await process.stdout.read(1 << 16):
                pass

    @staticmethod
    async def _skip(stream: asyncio.StreamReader, most: int) -> None:
        """Pass over the rest of a line that is too long."""
        await stream.read(most)
        while True:
            try:
                await stream.readuntil(b"\n")
            except asyncio.LimitOverrunError as over:
                await stream.read(over.consumed)
            except asyncio.IncompleteReadError:
                return
            else:
                return


async def end_carriers(attempt: str, grace: float) -> bool:
    """End everyone who carries this attempt; whether it was seen that nobody is left."""
    return bool(await processes.end_all(lambda: processes.carriers(ATTEMPT, attempt), grace=timedelta(seconds=grace)))
