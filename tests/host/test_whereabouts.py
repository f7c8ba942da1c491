"""A command belongs to the place it was armed for: another home's directory, another machine, a life that is over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.host.conftest import Room, command

from tenuto.model.command import Unknown
from tenuto.model.evidence import Mark, Presence
from tenuto.model.ids import CommandId
from tenuto.ports import Halt
from tenuto.transports.host import journal, whereabouts
from tenuto.transports.host.executor import HostExecutor

pytestmark = pytest.mark.anyio


def test_a_place_is_read_as_it_was_written(tmp_path: Path) -> None:
    life = whereabouts.settle_in(tmp_path)
    place = whereabouts.Place("box", life, str(tmp_path / "with:colon"))
    assert whereabouts.place_of(str(place)) == place
    assert whereabouts.settle_in(tmp_path) == life
    assert [whereabouts.place_of(text) for text in ("", "box", "box:short:/x", f"box:{life}:")] == [None] * 4


async def test_what_another_home_of_this_machine_armed_is_read_and_revoked_there(room: Room, tmp_path: Path) -> None:
    other = Room(tmp_path / "other")
    other.folder.mkdir()
    await other.executor.open(1)
    try:
        armed = replace(command(), place=other.executor.place)
        assert room.executor.reaches(other.executor.place)
        await room.executor.revoke(armed, 2)
        assert journal.read(other.journals, armed.id).mark is Mark.REVOKED
        assert journal.read(room.journals, armed.id).mark is Mark.NONE
        assert (await room.look(armed)).mark is Mark.REVOKED
    finally:
        await other.executor.close()


async def test_a_directory_that_was_emptied_is_another_life(room: Room, tmp_path: Path) -> None:
    """An empty place there proves nothing: it is never concluded that the command did not begin."""
    other = Room(tmp_path / "other")
    other.folder.mkdir()
    await other.executor.open(1)
    armed = replace(command(), place=other.executor.place, epoch=99)
    await other.executor.close()
    for path in other.journals.iterdir():
        path.unlink()
    facts = await room.look(armed)
    assert (facts.mark, facts.performer) == (Mark.DAMAGED, Presence.GONE)


async def test_another_machine_is_neither_revoked_nor_ended_from_here(room: Room) -> None:
    mine = whereabouts.place_of(room.executor.place)
    assert mine is not None
    far = str(replace(mine, host="far-away"))
    armed = replace(command(), place=far)
    assert not room.executor.reaches(far)
    assert not room.executor.carries(far)
    await room.executor.revoke(armed, 2)
    assert journal.read(room.journals, armed.id).mark is Mark.NONE
    _, outcome = await room.perform(Halt(CommandId(armed.id), room.turn("x").grace, far))
    assert outcome == Unknown("the host that its turn is on is not reached from here")


async def test_with_shared_directories_any_machine_carries_on(room: Room) -> None:
    shared = HostExecutor(room.journals, room.folder / "b", None, "registry", None, None, shared=True)  # type: ignore[arg-type]
    assert shared.carries("far-away:0123456789abcdef:/journal")
    assert not shared.reaches("far-away:0123456789abcdef:/journal")
