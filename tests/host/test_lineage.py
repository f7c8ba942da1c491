"""An empty place proves that nothing began only in the directory the command was armed for."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

from tests.host.conftest import Room, accepted, command, python

from tenuto.model.command import Accepted
from tenuto.model.evidence import Mark, Presence
from tenuto.ports import Halt
from tenuto.transports.host import claim, journal, lineage


def test_a_directory_knows_the_epochs_it_served_and_no_others(tmp_path: Path) -> None:
    for epoch in (1, 2, 3, 5, 5, 6):
        lineage.join(tmp_path, "here", epoch)
    lineage.join(tmp_path, "there", 4)
    assert [epoch for epoch in range(8) if lineage.covers(tmp_path, "here", epoch)] == [1, 2, 3, 5, 6]
    assert [epoch for epoch in range(8) if lineage.covers(tmp_path, "there", epoch)] == [4]


def test_a_record_that_cannot_be_read_knows_nothing(tmp_path: Path) -> None:
    lineage.join(tmp_path, "here", 1)
    for damage in (b"", b"[", b'{"here":[[1]]}', b'{"here":4}', b"[1]", b"\xff"):
        (tmp_path / lineage.RECORD).write_bytes(damage)
        assert not lineage.covers(tmp_path, "here", 1)
    lineage.join(tmp_path, "here", 2)
    assert lineage.covers(tmp_path, "here", 2)
    assert not lineage.covers(tmp_path, "here", 1)


def test_hosts_that_come_late_from_another_directory_are_refused(tmp_path: Path) -> None:
    lineage.join(tmp_path, "here", 4)
    assert not claim.admit(str(tmp_path), "here", 3)
    assert claim.admit(str(tmp_path), "here", 4)


async def test_a_turn_whose_journal_was_removed_is_never_taken_for_one_that_did_not_begin(room: Room) -> None:
    mine, outcome = await room.perform(room.turn("true"))
    assert outcome == Accepted()
    await room.ended(mine)
    shutil.rmtree(room.journals)
    assert not room.executor.connected()
    assert "tenuto restart" in (room.executor.trouble() or "")
    again = Room(room.folder)
    await again.executor.open(2)
    try:
        assert again.executor.connected()
        assert again.executor.trouble() is None
        facts = await again.look(mine)
        assert (facts.mark, facts.performer, facts.agent) == (Mark.DAMAGED, Presence.GONE, Presence.GONE)
        await again.executor.revoke(mine, 2)
        assert journal.read(again.journals, mine.id).mark is Mark.REVOKED
        assert (await again.look(mine)).mark is Mark.DAMAGED
        later = command(epoch=2)
        assert (await again.look(later)).mark is Mark.NONE
    finally:
        await again.executor.close()


async def test_a_turn_of_another_directory_is_seen_to_live_and_can_be_ended(room: Room, tmp_path: Path) -> None:
    mine, _ = await room.perform(room.turn(*python("import time; time.sleep(600)")))
    await room.until(mine, accepted)
    other = Room(tmp_path / "other")
    other.folder.mkdir()
    await other.executor.open(2)
    try:
        facts = await other.look(mine)
        assert (facts.mark, facts.performer, facts.agent) == (Mark.DAMAGED, Presence.ALIVE, Presence.ALIVE)
        await other.perform(Halt(mine.id, timedelta(seconds=1)))
        facts = await room.ended(mine)
        assert facts.agent is Presence.GONE
    finally:
        await other.executor.close()
        other.sweep()
