"""Hosts in odd circumstances: frozen, unable to hear, on a lesser platform, given up on by whoever asked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.host.conftest import Room, accepted, command, python

from tenuto.model.command import Accepted, Unknown
from tenuto.model.evidence import Cut, Mark, Presence
from tenuto.model.ids import CommandId
from tenuto.ports import Halt, NoFuse
from tenuto.transports import processes
from tenuto.transports.host import executor, journal, sight
from tenuto.transports.host.launch import SCRIPT, launch

POOR = """
import os, sys
del os.waitid, os.pidfd_open
import runpy
sys.argv = [{script!r}]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


async def test_a_platform_with_less_is_served_all_the_same(room: Room) -> None:
    mine = command()
    room.asked.append(mine)
    ordered = room.executor._ordered(mine, room.turn("sh", "-c", "cat; exit 4", prompt="words"))
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-I", "-S", "-c", POOR.format(script=SCRIPT)],
        input=json.dumps(ordered).encode(),
        timeout=30,
        check=False,
    )
    assert run.returncode == 0
    facts = await room.look(mine)
    assert facts.mark is Mark.ENDED
    assert facts.ending is not None
    assert (facts.ending.exit_code, facts.ending.output_bytes) == (4, 5)


async def test_a_frozen_host_is_woken_to_end_its_turn(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sleep", "600"))
    host = journal.read(room.journals, mine.id).host
    assert host is not None
    assert processes.send(host, signal.SIGSTOP)
    assert (await room.look(mine)).performer is Presence.ALIVE
    _, outcome = await room.perform(Halt(mine.id, timedelta(seconds=1)))
    assert outcome == Accepted()
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert facts.ending.cut is Cut.INTERRUPT


async def test_one_that_does_not_answer_in_time_is_unknown_and_never_unsent(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "HAND_OVER", timedelta(milliseconds=1))
    mine, outcome = await room.perform(room.turn("sh", "-c", "echo x >> starts"))
    assert isinstance(outcome, Unknown)
    facts = await room.ended(mine)
    assert facts.mark is Mark.ENDED
    assert (room.folder / "starts").read_text() == "x\n"


async def test_a_hand_over_nobody_waits_for_any_more_goes_its_way(room: Room) -> None:
    mine = command()
    async with asyncio.TaskGroup() as group:
        handing = group.create_task(room.perform(room.turn("sh", "-c", "echo x >> starts"), mine))
        await asyncio.sleep(0)  # it has begun
        handing.cancel()
    assert handing.cancelled()
    facts = await room.until(mine, lambda now: now.mark in journal.SETTLED and not now.launched_here)
    assert facts.mark is Mark.ENDED
    assert (room.folder / "starts").read_text() == "x\n"


async def test_without_a_bell_turns_are_heard_of_later_but_heard_of(room: Room) -> None:
    room.executor._bell.close()
    mine, outcome = await room.perform(room.turn("true"))
    assert outcome == Accepted()
    assert (await room.ended(mine)).mark is Mark.ENDED


async def test_noise_at_the_bell_is_no_ring(room: Room) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as noisy:
        for noise in (b"", b"x" * 4000, b"c-../../../../../../../../..", b"\xff" * 28):
            noisy.sendto(noise, str(room.folder / "bell.sock"))
        noisy.sendto(command().id.encode(), str(room.folder / "bell.sock"))
    async with asyncio.timeout(60):
        await room.rung.wait()
    assert (room.folder / "bell.sock").stat().st_mode & 0o777 == 0o600
    assert room.journals.stat().st_mode & 0o777 == 0o700


def descriptors() -> int:
    """Count what this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def hosts_of_ours() -> list[int]:
    """Tell the children of any thread of this process that are hosts, or were."""
    children = [pid for one in Path("/proc/self/task").iterdir() for pid in (one / "children").read_text().split()]
    return [int(pid) for pid in children if _is_host(pid)]


def _is_host(pid: str) -> bool:
    told = Path(f"/proc/{pid}/cmdline").read_bytes()
    return SCRIPT.encode() in told or not told  # a zombie tells nothing


def of_process(pid: int) -> bytes:
    """Tell what anybody may see of a process from outside."""
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


async def test_many_turns_leave_no_descriptor_and_no_child_behind(room: Room) -> None:
    first, _ = await room.perform(room.turn("true"))
    await room.until(first, lambda now: now.mark is Mark.ENDED and not now.launched_here)
    before, earlier = descriptors(), hosts_of_ours()
    made = [command() for _ in range(12)]
    outcomes = await asyncio.gather(*(room.perform(room.turn("true"), one) for one in made))
    assert {type(outcome) for _, outcome in outcomes} == {Accepted}
    for one in made:
        await room.until(one, lambda now: now.mark is Mark.ENDED and not now.launched_here)
    assert descriptors() <= before
    assert hosts_of_ours() == earlier
    assert not room.left()


async def test_a_child_that_ended_unwatched_is_reaped_by_the_next(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sleep", "600"))
    host = journal.read(room.journals, mine.id).host
    assert host is not None
    await room.executor.close()
    assert processes.send(host, signal.SIGTERM)
    await room.until(mine, lambda now: now.performer is Presence.GONE)
    assert host.pid in hosts_of_ours()
    await room.executor.open(1)
    assert host.pid not in hosts_of_ours()


async def test_a_journal_lost_while_its_program_runs_is_not_taken_for_nothing(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sleep", "600"))
    await room.until(mine, accepted)
    (room.journals / f"{mine.id}.jsonl").unlink()
    await room.executor.revoke(mine, 2)
    facts = await room.look(mine)
    assert (facts.mark, facts.agent) == (Mark.DAMAGED, Presence.ALIVE)


async def test_the_prompt_and_the_token_stand_nowhere(room: Room) -> None:
    from dataclasses import replace

    script = "import time; open('up','w').write('1'); time.sleep(600)"
    order = replace(room.turn(*python(script), prompt="a secret prompt"), given={"TENUTO_TOKEN": "a-secret-token"})
    mine, _ = await room.perform(order)
    await room.file("up")
    host = journal.read(room.journals, mine.id).host
    assert host is not None
    seen = of_process(host.pid)
    for path in room.folder.rglob("*"):
        if path.is_file() and not path.is_socket():
            seen += path.read_bytes()
    assert b"secret" not in seen


async def test_a_host_that_claims_between_two_looks_is_looked_at_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor that lost its lease hands over late: claimed while another looks, and over before it looks again."""
    mine = command()
    room.asked.append(mine)
    ordered = room.executor._ordered(mine, room.turn("sh", "-c", "echo x >> starts"))
    honest, looks = journal.read, 0

    def read(folder: Path, command_id: CommandId) -> journal.Journal:
        nonlocal looks
        looks += 1
        if looks != 2:
            return honest(folder, command_id)
        os.waitpid(launch(ordered, NoFuse(), None), 0)  # the other's host, from its birth to its end
        whole = honest(folder, command_id)
        return replace(whole, mark=Mark.CLAIMED, agent=None, ending=None)  # as it stood a moment before

    monkeypatch.setattr(journal, "read", read)
    facts = await asyncio.to_thread(sight.of_turn, room.journals, mine, "registry", launched_here=False)
    assert (room.folder / "starts").read_text() == "x\n"
    assert facts.mark is Mark.ENDED, "a turn that took effect would pass for one that never began"
