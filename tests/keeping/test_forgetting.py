"""What is over is forgotten a little at a time; what is open, new or the newest never is."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.supervisors.homes import wait_for
from tests.support.world import NOW, world

from tenuto.engine.keeper import Keeper
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.policy import KEEPING
from tenuto.model.work import Task, TextKind
from tenuto.transports.host import journal
from tenuto.wiring.board import SIZE, Board, read

pytestmark = pytest.mark.anyio
DAY = timedelta(days=1)


class Nothing:
    """No journals."""

    def old(self, age: timedelta) -> tuple[CommandId, ...]:
        return ()

    def clean(self, keep: tuple[CommandId, ...], age: timedelta) -> tuple[CommandId, ...]:
        return ()


async def test_events_texts_and_keys_go_in_their_time_and_the_newest_event_stays(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        done, open_ = await it.started(objective="Sweep"), await it.create(objective="Mop")
        it.executor.finish(status="complete", summary="swept", evidence="clean")
        await it.settle(done)
        assert it.ledger.task(done).terminal  # type: ignore[union-attr]
        keeper = Keeper(it.ledger, Nothing(), it.clock, KEEPING)
        before = it.ledger.events(0, 500)

        def bodies(task: TaskId) -> list[str | None]:
            texts = [it.ledger.text(it.ledger.task(task).objective)]  # type: ignore[union-attr]
            texts += [it.ledger.text(one.payload) for one in it.ledger.commands(50, task_id=task) if one.payload]
            return [text.body for text in texts if text is not None]

        it.clock.move(29 * DAY)
        await keeper.round()
        assert it.ledger.events(0, 500) == before
        assert all(bodies(done))
        it.clock.move(2 * DAY)
        await keeper.round()
        assert not any(bodies(done))
        assert all(bodies(open_))
        kept = it.ledger.text(it.ledger.task(done).objective)  # type: ignore[union-attr]
        assert kept is not None
        assert (kept.kind, len(kept.digest)) == (TextKind.OBJECTIVE, 64)
        it.clock.move(60 * DAY)
        await keeper.round()
        (newest,) = it.ledger.events(0, 500)
        assert newest == before[-1]
        assert it.ledger.check() == ()


async def test_of_what_was_seen_the_newest_stay(tmp_path: Path) -> None:
    async with world(tmp_path) as it:

        def samples(task: Task) -> int:
            seen = it.ledger.snapshot(task.id, 20)
            return len(seen.samples) if seen is not None else 0

        await it.create()
        for _ in range(6):
            task = await it.started()
            it.executor.finish(status="complete", summary="done", evidence="x")
            await it.settle(task)
        assert sum(map(samples, it.ledger.tasks(50))) >= 6
        keeper = Keeper(it.ledger, Nothing(), it.clock, replace(KEEPING, samples=0))
        await keeper.round()
        assert sum(map(samples, it.ledger.tasks(50))) == 0


async def test_what_is_the_matter_is_read_without_asking_anybody(tmp_path: Path) -> None:
    """It is written over in place, so that a full disk has room for it; another process's is not believed."""
    troubles: list[str] = []
    board = Board(tmp_path, lambda: troubles)
    async with asyncio.TaskGroup() as group:
        group.create_task(board.run())
        troubles.append("the disk is full; nothing is armed until there is room" + "!" * 5000)
        assert await asyncio.to_thread(wait_for, lambda: read(tmp_path, os.getpid()), "it is written") < 20
        assert read(tmp_path, os.getpid())[0].startswith("the disk is full")
        assert read(tmp_path, os.getpid() + 1) == ()
        assert (tmp_path / "troubles").stat().st_size == SIZE
        board.stop()
    assert read(tmp_path, os.getpid()) == ()


async def test_who_does_not_lead_forgets_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.create()
        it.clock.move(400 * DAY)
        await it.ledger.resign(it.lease, it.clock.now())
        assert await it.ledger.forget(KEEPING, it.clock.now()) is False
        assert len(it.ledger.events(0, 500)) > 1


async def test_journals_go_only_when_the_registry_knows_how_they_ended(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.started()
        it.executor.finish(status="complete", summary="done", evidence="x")
        await it.settle(task)
        (known,) = (one.id for one in it.ledger.commands(10))
        stranger = CommandId("c-" + "0" * 26)
        folder = tmp_path / "journal"
        folder.mkdir()
        for command_id in (known, stranger):
            journal.revoke(folder, command_id, registry="g", epoch=1, reason="over", now=NOW)
            long_ago = (NOW - 40 * DAY).timestamp()
            os.utime(folder / f"{command_id}.jsonl", (long_ago, long_ago))

        class Folder:
            def old(self, age: timedelta) -> tuple[CommandId, ...]:
                return journal.old(folder, age=age, now=it.clock.now())

            def clean(self, keep: tuple[CommandId, ...], age: timedelta) -> tuple[CommandId, ...]:
                return journal.clean(folder, keep, age=age, now=it.clock.now())

        await Keeper(it.ledger, Folder(), it.clock, KEEPING).round()
        assert journal.held(folder) == (stranger,)
