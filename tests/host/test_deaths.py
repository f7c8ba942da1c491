"""Whoever dies, at whatever point: what is seen afterwards is true, and nothing ever starts a second time."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.host.conftest import Room, command
from tests.host.dying import PROGRAM

from tenuto.model.command import Accepted, Command, CommandKind, Outcome, Unknown, Unsent
from tenuto.model.evidence import Cut, Mark, Presence
from tenuto.model.ids import AttemptId, CommandId, TaskId
from tenuto.ports import Halt
from tenuto.transports import processes
from tenuto.transports.host import journal

ROOT = Path(__file__).parents[2]
ROUNDS = 30
ALIVE, GONE = Presence.ALIVE, Presence.GONE


def starts(folder: Path) -> int:
    """Count how often the program began."""
    path = folder / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize(
    ("point", "program", "outcome", "mark", "agent"),
    [
        ("host.start", PROGRAM, Unsent, Mark.REVOKED, GONE),
        ("host.claimed", PROGRAM, Unsent, Mark.CLAIMED, GONE),
        ("host.before_begun", PROGRAM, Unsent, Mark.CLAIMED, GONE),
        ("host.begun", PROGRAM, Unknown, Mark.BEGUN, GONE),
        ("host.spawned", PROGRAM, Unknown, Mark.BEGUN, ALIVE),
        ("host.accepted", PROGRAM, Accepted, Mark.ACCEPTED, ALIVE),
        ("host.running", PROGRAM, Accepted, Mark.ACCEPTED, ALIVE),
        ("host.drained", "echo x >> starts", Accepted, Mark.ACCEPTED, GONE),
        ("host.before_ended", "echo x >> starts", Accepted, Mark.ACCEPTED, GONE),
        ("host.ended", "echo x >> starts", Accepted, Mark.ENDED, GONE),
    ],
)
async def test_a_host_that_dies_leaves_the_truth(
    tmp_path: Path,
    swept: list[Room],
    point: str,
    program: str,
    outcome: type[Outcome],
    mark: Mark,
    agent: Presence,
) -> None:
    room = Room(tmp_path, host_fuse=point)
    swept.append(room)
    await room.executor.open(1)
    order = room.turn("sh", "-c", program)
    mine, got = await room.perform(order)
    assert isinstance(got, outcome)
    began = mark in (Mark.ACCEPTED, Mark.ENDED) or agent is ALIVE
    if began:
        await room.file("starts")
    facts = await room.until(mine, lambda now: now.performer is GONE and not now.launched_here)
    assert (facts.mark, facts.agent) == (mark, agent)
    # Neither a revocation nor handing it over once more starts it again.
    await room.executor.revoke(mine, 2)
    again = Room(tmp_path)
    await again.executor.open(1)
    await again.perform(order, mine)
    facts = await again.look(mine)
    assert (facts.mark, facts.performer, facts.agent) == (mark, GONE, agent)
    assert starts(tmp_path) == int(began)
    # Whatever is left can be ended, and only then is it gone.
    _, ended = await again.perform(Halt(mine.id, timedelta(seconds=1)))
    assert ended == Accepted()
    assert (await again.look(mine)).agent is GONE
    assert not again.left()
    await again.executor.close()
    await room.executor.close()


def died(folder: Path, point: str) -> tuple[Command, Command, Command]:
    """Let a supervisor die at a point; the turn it handed over, the one it revoked, its halt."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.host.dying", str(folder), point],
        cwd=ROOT,
        check=False,
        timeout=60,
        capture_output=True,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr.decode()
    made = []
    for command_id, attempt_id, task_id, kind in json.loads((folder / "made").read_text()):
        made.append(
            replace(
                command(CommandKind(kind)),
                id=CommandId(command_id),
                attempt_id=AttemptId(attempt_id),
                task_id=TaskId(task_id),
            )
        )
    send, other, halt = made
    return send, other, halt


@pytest.mark.parametrize("point", ["handover.before_spawn", "handover.spawned", "handover.ordered", "after.handover"])
async def test_a_supervisor_that_dies_handing_over_starts_nothing_twice(room: Room, point: str) -> None:
    send, _, _ = await asyncio.to_thread(died, room.folder, point)
    room.asked.append(send)
    if point == "after.handover":
        facts = await room.look(send)
        assert (facts.mark, facts.performer, facts.agent) == (Mark.ACCEPTED, ALIVE, ALIVE)
        assert not facts.launched_here
    await room.executor.revoke(send, 2)
    await room.perform(room.turn("sh", "-c", PROGRAM), send)
    facts = await room.until(send, lambda now: now.mark in (Mark.REVOKED, Mark.ACCEPTED))
    if facts.mark is Mark.ACCEPTED:
        await room.file("starts")
    assert starts(room.folder) == int(facts.mark is Mark.ACCEPTED)
    if point in ("handover.before_spawn", "handover.spawned"):
        assert facts.mark is Mark.REVOKED
    if point == "after.handover":
        assert facts.mark is Mark.ACCEPTED


async def test_the_next_supervisor_hears_the_end_of_a_turn_it_did_not_start(room: Room) -> None:
    send, _, _ = await asyncio.to_thread(died, room.folder, "after.handover")
    room.asked.append(send)
    facts = await room.look(send)
    assert facts.performer is ALIVE
    host = journal.read(room.journals, send.id).host
    assert host is not None
    room.rung.clear()
    assert processes.send(host, signal.SIGTERM)
    async with asyncio.timeout(90):
        await room.rung.wait()
    facts = await room.ended(send)
    assert facts.ending is not None
    assert facts.ending.cut is Cut.INTERRUPT


@pytest.mark.parametrize("point", ["revoke.before", "revoke.done"])
async def test_a_supervisor_that_dies_revoking(room: Room, point: str) -> None:
    send, other, _ = await asyncio.to_thread(died, room.folder, point)
    room.asked += [send, other]
    facts = await room.look(other)
    assert facts.mark is (Mark.NONE if point == "revoke.before" else Mark.REVOKED)
    assert (facts.performer, facts.agent) == (GONE, GONE)


@pytest.mark.parametrize("point", ["halt.before", "halt.signalled", "after.halt"])
async def test_a_supervisor_that_dies_halting_can_be_followed_by_another(room: Room, point: str) -> None:
    send, _, halt = await asyncio.to_thread(died, room.folder, point)
    room.asked += [send, halt]
    if point == "halt.before":
        facts = await room.look(halt)
        assert (facts.mark, facts.performer, facts.agent) == (Mark.FAILED, GONE, ALIVE)
        _, outcome = await room.perform(Halt(send.id, timedelta(seconds=1)))
        assert outcome == Accepted()
    facts = await room.ended(send)
    assert facts.ending is not None
    assert facts.ending.cut is Cut.INTERRUPT
    facts = await room.look(halt)
    assert facts.mark is Mark.ENDED
    assert not room.left()


async def test_a_halt_of_what_has_not_begun_keeps_it_from_beginning(room: Room) -> None:
    never = command()
    halt, outcome = await room.perform(Halt(never.id, timedelta(seconds=1)))
    assert outcome == Accepted()
    assert (await room.look(halt)).mark is Mark.ENDED
    _, late = await room.perform(room.turn("touch", "begun"), never)
    assert isinstance(late, Unsent)
    assert not (room.folder / "begun").exists()


async def test_a_halt_ends_a_turn_through_its_host(room: Room) -> None:
    mine, _ = await room.perform(room.turn("sleep", "600"))
    _, outcome = await room.perform(Halt(mine.id, timedelta(seconds=5)))
    assert outcome == Accepted()
    facts = await room.ended(mine)
    assert facts.ending is not None
    assert (facts.ending.cut, facts.ending.signal) == (Cut.INTERRUPT, 15)


async def test_a_claim_and_a_revocation_never_both_win(room: Room) -> None:
    outcomes = set()
    for number in range(ROUNDS):
        mine = command()
        folder = room.folder / str(number)
        folder.mkdir()
        order = replace(room.turn("sh", "-c", "echo x >> starts"), cwd=str(folder))

        async def revoke(mine: Command = mine, number: int = number) -> None:
            if number == ROUNDS - 1:
                await room.file(f"{number}/starts")  # however slow the machine: once the revocation comes too late
            await asyncio.sleep(number * 0.003)
            await room.executor.revoke(mine, 1)

        async with asyncio.TaskGroup() as both:
            handing = both.create_task(room.perform(order, mine))
            both.create_task(revoke())
        _, outcome = handing.result()
        facts = await room.ended(mine)
        outcomes.add(facts.mark)
        if facts.mark is Mark.REVOKED:
            assert isinstance(outcome, Unsent)
            assert starts(folder) == 0
        else:
            assert facts.mark is Mark.ENDED
            assert outcome == Accepted()
            assert starts(folder) == 1
    assert outcomes == {Mark.REVOKED, Mark.ENDED}


async def test_closing_ends_nobody(tmp_path: Path, swept: list[Room]) -> None:
    room = Room(tmp_path)
    swept.append(room)
    await room.executor.open(1)
    mine, _ = await room.perform(room.turn("sh", "-c", PROGRAM))
    await room.executor.close()
    assert not room.executor.connected()
    facts = await room.look(mine)
    assert (facts.mark, facts.performer, facts.agent) == (Mark.ACCEPTED, ALIVE, ALIVE)
