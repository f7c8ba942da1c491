"""A session that is open in somebody else's program: words at its stops, each once, and no word beside them."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tenuto.config import SOCKET_BYTES, load
from tenuto.transports.agents import events as said
from tenuto.transports.agents.channel import NotOpened
from tenuto.transports.agents.standing import Standing
from tenuto.transports.agents.stops import Stops
from tenuto.transports.hooks import calls

SESSION, MARKER = "s-1", "[tenuto:c-1]"
MACOS = 103
"""Bytes that a socket's path may have there, the least of the systems that are supported."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tn-") as made:  # short: sockets lie in it
        yield Path(made)


class Program:
    """Somebody else's program: whether it is there, and what stands in its record."""

    def __init__(self) -> None:
        self.pid: int | None = 4711
        self.record = ""


@asynccontextmanager
async def standing(folder: Path) -> AsyncIterator[tuple[Standing, Program, Stops]]:
    stops, program = Stops(folder), Program()
    try:
        yield Standing(stops, lambda: program.pid, lambda marker: marker in program.record), program, stops
    finally:
        await stops.close()


async def hook(folder: Path, event: str, *, again: bool = False, last: str = "", take: bool = True) -> str:
    """A hook as it is called; the words that it was given."""
    place = folder / calls.socket_name(SESSION)
    async with asyncio.timeout(30):
        while not place.exists():  # noqa: ASYNC110 - a file that appears tells nobody
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_unix_connection(place)
        writer.write(json.dumps({"event": event, "session": SESSION, "again": again, "last": last}).encode() + b"\n")
        told = json.loads(await reader.readline() or b"{}")
        words = str(told.get("words", ""))
        if words and take:
            writer.write(b"taken\n")
            await writer.drain()
        writer.close()
        return words


async def test_words_are_given_at_a_stop_and_the_turn_ends_with_the_next(folder: Path) -> None:
    async with standing(folder) as (channel, program, stops):
        called = asyncio.create_task(hook(folder, "Stop"))
        assert await channel.open(SESSION) == SESSION
        await channel.prompt(f"Go on. {MARKER}", MARKER)
        assert await called == f"Go on. {MARKER}"
        program.record = f"Stop hook feedback: {MARKER}"
        began = await channel.hear()
        assert began == said.TurnBegan("stop-c-1", MARKER)
        after = asyncio.create_task(hook(folder, "Stop", again=True, last="all of it"))
        assert await channel.hear() == said.Said("all of it")
        assert await channel.hear() == said.TurnEnded("stop-c-1", "stop")
        assert await channel.close(1.0)
        assert not after.done(), "it is held a little: the next words may come at once"
        again = Standing(stops, lambda: program.pid, lambda marker: marker in program.record)
        assert await again.open(SESSION) == SESSION
        await again.prompt("And on. [tenuto:c-2]", "[tenuto:c-2]")
        assert await after == "And on. [tenuto:c-2]"


async def test_a_hook_that_has_gone_is_given_nothing_and_the_words_are_refused(folder: Path) -> None:
    async with standing(folder) as (channel, _, _stops):
        called = asyncio.create_task(hook(folder, "Stop"))
        await channel.open(SESSION)
        assert channel._stop is not None
        await channel._stop.let_go()
        assert await called == ""
        await channel.prompt("Go on.", MARKER)
        assert await channel.hear() == said.Refused(MARKER, "its hook had gone")


async def test_words_that_may_have_been_had_are_not_refused_and_not_given_again(folder: Path) -> None:
    async with standing(folder) as (channel, program, _stops):
        called = asyncio.create_task(hook(folder, "Stop", take=False))
        await channel.open(SESSION)
        await channel.prompt("Go on.", MARKER)
        assert await called == "Go on."
        assert await hook(folder, "Stop") == ""
        assert isinstance(await channel.hear(), said.Closed), "nothing shows that they were taken up"
        program.pid = None


async def test_its_person_speaks_and_the_turn_is_cut(folder: Path) -> None:
    async with standing(folder) as (channel, program, _stops):
        called = asyncio.create_task(hook(folder, "Stop"))
        await channel.open(SESSION)
        await channel.prompt("Go on.", MARKER)
        await called
        program.record = MARKER
        assert await hook(folder, "UserPromptSubmit") == ""
        assert isinstance(await channel.hear(), said.TurnBegan)
        ended = await channel.hear()
        assert isinstance(ended, said.TurnEnded)
        assert ended.interrupted


async def test_it_is_not_resumed_beside_its_program_and_let_go_once_that_has_ended(folder: Path) -> None:
    async with standing(folder) as (channel, program, _stops):
        program.pid = None
        with pytest.raises(NotOpened, match="has ended") as refused:
            await channel.open(SESSION)
        assert not refused.value.mendable


async def test_what_is_interrupted_before_a_stop_does_not_begin(folder: Path) -> None:
    async with standing(folder) as (channel, _, _stops):
        opening = asyncio.create_task(channel.open(SESSION))
        await channel.interrupt()
        with pytest.raises(NotOpened):
            await opening


async def test_a_stop_that_nobody_waits_for_is_let_go_at_once(folder: Path) -> None:
    async with standing(folder) as (_, _program, stops):
        await stops.listen(SESSION)
        async with asyncio.timeout(60):
            assert await hook(folder, "Stop") == ""


async def test_where_the_supervisors_socket_fits_hooks_are_heard_too(folder: Path) -> None:
    state = folder / ("x" * (SOCKET_BYTES - len(os.fsencode(folder)) - len("//api.sock")))
    state.mkdir(mode=0o700)
    at = replace(load({"TENUTO_HOME": str(folder)}), state=state).socket
    assert (at, len(os.fsencode(at))) == (state / "api.sock", SOCKET_BYTES)
    async with standing(state) as (channel, _program, _stops):
        called = asyncio.create_task(hook(state, "Stop"))
        assert await channel.open(SESSION) == SESSION
        await channel.prompt("Go on.", MARKER)
        assert await called == "Go on."
    assert len(os.fsencode(at.with_name(calls.socket_name(SESSION)))) <= MACOS
