"""Our own texts are removed when their time is over: of tasks that have ended only, a little at a time, and it is said.

What was kept of them, their digest, stays; so does everything that was concluded from them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.ledger.server import Server, server
from tests.ledger.test_tables import World as Rows
from tests.ledger.world import Counting
from tests.support.world import OPERATOR, World, world

from tenuto.engine.keeper import Keeper
from tenuto.model.change import Commit, Committed
from tenuto.model.ids import CommandId, TaskId, TextId
from tenuto.model.policy import KEEPING
from tenuto.model.work import Text, TextKind
from tenuto.store import retention
from tenuto.store.opening import open_registry
from tenuto.surfaces import verbs

pytestmark = pytest.mark.anyio
DATABASES = ("postgresql", "sqlite")
DAY = timedelta(days=1)


class Nothing:
    """No journals."""

    def old(self, age: timedelta) -> tuple[CommandId, ...]:
        return ()

    def clean(self, keep: tuple[CommandId, ...], age: timedelta) -> tuple[CommandId, ...]:
        return ()


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        running: Server = request.getfixturevalue("postgresql")
        return running.database()
    return str(tmp_path / "state" / "registry.sqlite3")


def keeper(it: World) -> Keeper:
    return Keeper(it.ledger, Nothing(), it.clock, KEEPING)


async def worked(it: World, title: str, *, end: bool) -> TaskId:
    """A task that was told something, asked something and was answered; it has ended, or goes on."""
    task = await it.started(title=title, objective=f"{title}: the whole story")
    it.executor.finish(status="blocked", needs="a person: which one?")
    await it.settle(task)
    await it.desk.answer(OPERATOR, task, "the blue one")
    await it.desk.say(OPERATOR, task, "mind the step", key=f"say {title}")
    await it.settle(task)
    it.executor.finish(status="complete" if end else "working", summary="x", evidence="it is there")
    await it.settle(task)
    return task


def texts(it: World, task: TaskId) -> list[Text]:
    """All that we have said in a task: its objective, its prompts, messages and answers."""
    row = it.ledger.task(task)
    assert row is not None
    ids: list[TextId] = [row.objective]
    ids += [one.payload for one in it.ledger.commands(50, task_id=task) if one.payload is not None]
    ids += [one.text for one in it.ledger.messages(task, 50) if one.text is not None]
    ids += [one.answer for one in it.ledger.waits(50, task_id=task, only_open=False) if one.answer is not None]
    found = [it.ledger.text(each) for each in dict.fromkeys(ids)]
    assert None not in found
    return [text for text in found if text is not None]


async def test_what_was_said_in_a_task_goes_when_it_has_been_over_for_long_and_that_is_told(
    tmp_path: Path, database: str
) -> None:
    async with world(tmp_path, database=database) as it:
        over, open_ = await worked(it, "Over", end=True), await worked(it, "Open", end=False)
        before = {text.id: text for text in texts(it, over)}
        assert {text.kind for text in before.values()} >= {TextKind.OBJECTIVE, TextKind.PROMPT, TextKind.MESSAGE}
        it.clock.move(29 * DAY)
        await keeper(it).round()
        assert {text.id: text for text in texts(it, over)} == before, "its time is not over"
        it.clock.move(2 * DAY)
        await keeper(it).round()
        gone = it.clock.now()
        assert {text.id: text for text in texts(it, over)} == {
            key: replace(text, body=None, removed_at=gone) for key, text in before.items()
        }
        it.clock.move(400 * DAY)
        await keeper(it).round()
        assert all(text.removed_at == gone for text in texts(it, over)), "it is done once"
        assert all(text.body and text.removed_at is None for text in texts(it, open_)), "an open task keeps its own"

        shown = await verbs.call(it.desk, OPERATOR, "task.show", {"task": over})
        assert shown["objective"] is None
        assert shown["objective_removed"]["at"] == gone.isoformat().replace("+00:00", "Z")
        assert shown["objective_removed"]["text"].startswith(f"removed on {gone:%Y-%m-%d}")
        (message,) = [
            row
            for row in (await verbs.call(it.desk, OPERATOR, "message.list", {"task": over}))["messages"]
            if row["kind"] == "words"
        ]
        assert (message["text"], message["removed"]["at"]) == (None, shown["objective_removed"]["at"])
        assert (await it.desk.explain(over)).rungs[0].sentence
        still = await verbs.call(it.desk, OPERATOR, "task.show", {"task": open_})
        assert still["objective"] == "Open: the whole story"
        assert still["objective_removed"] is None
        (rule,) = [row for row in it.desk.policy(over) if row[0] == "keep_texts"]
        assert rule == ("keep_texts", 30 * DAY, "default")

        it.clock.move(DAY)
        await it.settle(open_)
        it.executor.finish(status="complete", summary="x", evidence="y")
        await it.settle(open_)
        assert it.ledger.task(open_).terminal, "what it needs to go on was there"  # type: ignore[union-attr]
        assert it.ledger.check() == ()


async def test_a_text_that_was_removed_before_moments_were_kept_says_only_that(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await worked(it, "Old", end=True)
        with closing(sqlite3.connect(tmp_path / "state" / "registry.sqlite3")) as connection:
            connection.execute("UPDATE text SET body = NULL")
            connection.commit()
        told = (await verbs.call(it.desk, OPERATOR, "task.show", {"task": task}))["objective_removed"]
        assert told["at"] is None
        assert told["text"].startswith("removed: ")
        it.clock.move(31 * DAY)
        await keeper(it).round()
        assert {text.removed_at for text in texts(it, task)} == {None}, "nobody makes up when"


async def test_what_a_chain_was_swept_with_last_stays_until_it_has_been_over_for_long(
    tmp_path: Path, database: str
) -> None:
    async with world(tmp_path, database=database) as it:
        rows = Rows(Counting(10**6))
        sweeps = [
            Text(TextId(it.minter.new("text")), TextKind.SWEEP, None, f"sweep {n}", "d" * 64, it.clock.now())
            for n in (1, 2)
        ]
        chain = replace(rows.chain, swept=sweeps[1].id)
        done = await it.ledger.commit(Commit(puts=(*rows.place.rows, *sweeps, chain)))
        assert isinstance(done, Committed)
        it.clock.move(31 * DAY)
        await keeper(it).round()
        kept = [it.ledger.text(sweep.id) for sweep in sweeps]
        assert [text.body for text in kept if text is not None] == [None, "sweep 2"]


async def test_killed_in_the_middle_each_text_is_whole_or_removed_and_the_rest_goes_later(
    tmp_path: Path, database: str
) -> None:
    async with world(tmp_path, database=database) as it:
        tasks = [await worked(it, f"Task {n}", end=True) for n in range(3)]
        await it.ledger.resign(it.lease, it.clock.now())
    whole = len([text for task in tasks for text in await looked(tmp_path, database, task)])
    for nth in (1, 2, 5):
        assert forgets_and_is_killed(tmp_path, database, nth)
        left = [text for task in tasks for text in await looked(tmp_path, database, task)]
        assert all((text.body is None) == (text.removed_at is not None) for text in left)
        assert 0 < len([text for text in left if text.body is not None]) <= whole
    async with world(tmp_path, database=database, first=10**6) as it:
        it.clock.move(31 * DAY)
        await keeper(it).round()
        assert not any(text.body for task in tasks for text in texts(it, task))
        assert it.ledger.check() == ()
        again = it.desk.text(it.ledger.task(tasks[0]).objective)  # type: ignore[union-attr]
        assert again is None


async def looked(folder: Path, database: str, task: TaskId) -> list[Text]:
    """The texts of a task, as they are when nobody leads."""
    async with world(folder, led=False, database=database, first=10**7) as it:
        return texts(it, task)


def forgets_and_is_killed(folder: Path, database: str, nth: int) -> bool:
    """Have a process forget two texts at a time, killed when it is about to remove the nth; whether it was."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    try:
        apart = threading.Thread(target=lambda: asyncio.run(_forget_until_killed(folder, database, nth)))
        apart.start()
        apart.join()
    finally:
        os._exit(7)


async def _forget_until_killed(folder: Path, database: str, nth: int) -> None:
    retention.MOST = 2
    usual, count = retention.removing, 0

    def removing(*arguments: object) -> None:
        nonlocal count
        count += 1
        if count == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        usual(*arguments)  # type: ignore[arg-type]

    retention.removing = removing  # type: ignore[assignment]
    async with world(folder, database=database, first=10**8 + nth) as it:
        it.clock.move(31 * DAY)
        await keeper(it).round()


async def test_a_registry_whose_texts_were_removed_is_backed_up_and_moved_as_it_is(
    tmp_path: Path, postgresql: Server
) -> None:
    from tests.migrations.keeping import moved

    async with world(tmp_path) as it:
        task = await worked(it, "Over", end=True)
        it.clock.move(31 * DAY)
        await keeper(it).round()
        mine = texts(it, task)
        it.ledger.backup(tmp_path / "backup.sqlite3")
    url = postgresql.database()
    moved(tmp_path / "backup.sqlite3", url)
    for where in (str(tmp_path / "backup.sqlite3"), url):
        reader = open_registry(where, it.clock, minter=Counting(10**9), read_only=True)
        assert [reader.text(text.id) for text in mine] == mine
        assert all(text.removed_at for text in mine)
        reader.close_readers()
