"""A host that is started while its command is still being written down does nothing without its order."""

from __future__ import annotations

import asyncio
import signal
import sys

from tests.host.conftest import PATIENCE, Room, command

from tenuto.model.command import Accepted, Armed
from tenuto.model.evidence import Mark, Presence
from tenuto.ports import Foreseeing
from tenuto.transports import processes
from tenuto.transports.host import journal, launch, sight

WAITS = """
import sys
from tenuto.transports.host.launch import wait_for_order
held = wait_for_order(sys.argv[1])
sys.stdin.read()
"""


async def carried(room: Room, name: str, *, there: bool) -> None:
    """Wait until a host of this command is there, or is not any more."""
    async with asyncio.timeout(PATIENCE):
        while bool(processes.carriers(launch.BADGE, name)) is not there:  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)


async def test_the_host_that_waits_is_the_one_that_carries(room: Room) -> None:
    assert isinstance(room.executor, Foreseeing)
    mine = command()
    room.asked.append(mine)
    room.executor.foresee(mine.id)
    await carried(room, mine.id, there=True)
    (waiting,) = processes.carriers(launch.BADGE, mine.id) or ()
    assert journal.read(room.journals, mine.id).mark is Mark.NONE
    assert await room.executor.perform(Armed(mine), room.turn("true")) == Accepted()
    room.executor.forgo(mine.id)
    await room.ended(mine)
    host = journal.read(room.journals, mine.id).host
    assert host is not None
    assert host.pid == waiting.pid


async def test_a_host_that_is_given_up_ends_and_leaves_no_journal(room: Room) -> None:
    mine = command()
    room.asked.append(mine)
    room.executor.foresee(mine.id)
    await carried(room, mine.id, there=True)
    room.executor.forgo(mine.id)
    await carried(room, mine.id, there=False)
    assert journal.read(room.journals, mine.id).mark is Mark.NONE
    assert sight.unclaimed(mine.id) is Presence.GONE


async def test_who_is_given_up_before_it_is_there_hinders_nobody(room: Room) -> None:
    mine = command()
    room.asked.append(mine)
    room.executor.foresee(mine.id)
    room.executor.forgo(mine.id)
    assert await room.executor.perform(Armed(mine), room.turn("true")) == Accepted()
    await room.ended(mine)


async def test_closing_lets_the_waiting_go(room: Room) -> None:
    mine = command()
    room.asked.append(mine)
    room.executor.foresee(mine.id)
    await carried(room, mine.id, there=True)
    await room.executor.close()
    await carried(room, mine.id, there=False)


async def test_another_takes_the_place_of_a_host_that_died_before_it_had_an_order(room: Room) -> None:
    mine = command()
    room.asked.append(mine)
    room.executor.foresee(mine.id)
    await carried(room, mine.id, there=True)
    (dead,) = processes.carriers(launch.BADGE, mine.id) or ()
    processes.send(dead, signal.SIGKILL)
    await carried(room, mine.id, there=False)
    assert await room.executor.perform(Armed(mine), room.turn("true")) == Accepted()
    await room.ended(mine)
    host = journal.read(room.journals, mine.id).host
    assert host is not None
    assert host.pid != dead.pid


async def test_a_host_that_waits_ends_with_whoever_would_have_given_it_an_order(room: Room) -> None:
    mine = command()
    room.asked.append(mine)
    giver = await asyncio.create_subprocess_exec(sys.executable, "-c", WAITS, mine.id, stdin=asyncio.subprocess.PIPE)
    try:
        await carried(room, mine.id, there=True)
        giver.kill()
        await carried(room, mine.id, there=False)
    finally:
        if giver.returncode is None:
            giver.kill()
        await giver.wait()
    assert journal.read(room.journals, mine.id).mark is Mark.NONE
