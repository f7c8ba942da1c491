"""A commit is everything or nothing, and says which."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.world import NOW, SECOND, Counting, SetClock, place, settled_in, turn, wake, written

from tenuto.model.change import Busy, Commit, Committed, Guard, Key, KeyConflict, NotLeader, Replayed, Stale
from tenuto.model.command import Armed
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import IllegalMove
from tenuto.model.lifecycle import CommandState
from tenuto.store.ledger import TableLedger

pytestmark = pytest.mark.anyio


async def test_what_was_written_is_read_back_as_it_was(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    armed = turn(ids, here)
    result = await written(ledger, armed.commit())
    assert result.armed == (Armed(armed.command),)
    snapshot = ledger.snapshot(here.task.id, 5)
    assert snapshot is not None
    assert snapshot.run == here.run
    assert snapshot.task == armed.task
    assert snapshot.conversation == here.conversation
    assert snapshot.live == armed.attempt
    assert snapshot.live_command == armed.command
    assert snapshot.commands == (armed.command,)
    assert (snapshot.slots_used, snapshot.slots) == (1, 5)
    assert ledger.under_way() == (here.task.id,)
    assert [event.n for event in ledger.events(0, 10)] == [1, 2]
    assert ledger.last_event() == result.n == 2


async def test_settling_frees_the_scopes_and_the_next_turn_takes_them(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    first = turn(ids, here)
    await written(ledger, first.commit())
    second = turn(ids, here, number=2, revision=3)
    assert await ledger.commit(second.commit()) == Busy("one_live_attempt_per_task")
    await written(ledger, first.settled(NOW + SECOND))
    await written(ledger, second.commit())
    snapshot = ledger.snapshot(here.task.id, 5)
    assert snapshot is not None
    assert snapshot.last is not None
    assert (snapshot.last.number, snapshot.commands) == (1, (second.command,))


async def test_a_held_scope_is_busy_and_nothing_is_written(ledger: TableLedger, ids: Counting) -> None:
    here, there = place(ids), place(ids)
    await settled_in(ledger, here)
    await settled_in(ledger, there)
    await written(ledger, turn(ids, here).commit())
    stolen = turn(ids, there).commit()
    scope = f"task:{here.task.id}"
    assert await ledger.commit(replace(stolen, holds=((scope, stolen.holds[0][1]),))) == Busy(scope)
    assert ledger.attempts(there.task.id, 5) == ()
    assert ledger.task(there.task.id) == there.task


async def test_only_the_put_that_arms_gives_an_armed(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    armed = turn(ids, here)
    queued = replace(armed.command, state=CommandState.QUEUED, armed_at=None)
    assert (await written(ledger, Commit(puts=(armed.attempt, queued)))).armed == ()
    now_armed = replace(armed.command, revision=2)
    assert (await written(ledger, Commit(puts=(now_armed,)))).armed == (Armed(now_armed),)
    noted = replace(now_armed, revision=3, detail="handed over")
    assert (await written(ledger, Commit(puts=(noted,)))).armed == ()


async def test_a_row_that_moved_on_is_stale(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    await written(ledger, Commit(puts=(replace(here.task, revision=2, title="once"),)))
    late = Commit(puts=(replace(here.task, revision=2, title="twice"),), facts=(Fact(FactKind.FINDING),))
    assert await ledger.commit(late) == Stale(f"task {here.task.id}")
    assert await ledger.commit(Commit(puts=(here.task,))) == Stale(f"task {here.task.id}")
    assert await ledger.commit(Commit(guards=(Guard("task", here.task.id, 1),))) == Stale(f"task {here.task.id}")
    assert isinstance(await ledger.commit(Commit(guards=(Guard("task", here.task.id, 2),))), Committed)
    assert ledger.events(0, 5) == ()


async def test_what_was_seen_too_long_ago_is_stale(ledger: TableLedger, clock: SetClock) -> None:
    limit = Commit(facts=(Fact(FactKind.FINDING),), valid_until=NOW + 10 * SECOND)
    clock.pass_(10 * SECOND)
    assert isinstance(await ledger.commit(limit), Committed)
    clock.pass_(timedelta(microseconds=1))
    assert isinstance(await ledger.commit(limit), Stale)


async def test_a_key_replays_its_result_and_conflicts_with_another_body(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    key = Key("tasks", "k1", "digest", {"task": here.task.id, "made": True, "count": 3, "parent": None})
    await written(ledger, Commit(puts=here.rows, key=key))
    assert await ledger.commit(Commit(puts=place(ids).rows, key=key)) == Replayed(dict(key.result))
    assert await ledger.commit(Commit(key=replace(key, digest="other"))) == KeyConflict("k1")
    assert ledger.replayed("tasks", "k1") == ("digest", dict(key.result))
    assert ledger.replayed("runs", "k1") is None
    assert len(ledger.tasks(10)) == 1


async def test_a_refused_commit_does_not_use_its_key(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    key = Key("tasks", "k1", "digest", {})
    refused = Commit(puts=(replace(here.task, revision=9),), key=key)
    assert isinstance(await ledger.commit(refused), Stale)
    assert ledger.replayed("tasks", "k1") is None


async def test_the_second_pending_wake_of_a_kind_is_busy(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    first = wake(ids, here.task)
    await written(ledger, Commit(puts=(first,)))
    assert await ledger.commit(Commit(puts=(wake(ids, here.task),))) == Busy("one_pending_wake_per_kind")
    await written(ledger, Commit(puts=(replace(first, revision=2, consumed_at=NOW), wake(ids, here.task))))
    assert len(ledger.wakes(here.task.id)) == 2


async def test_arming_under_another_epoch_is_refused(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    assert await ledger.commit(turn(ids, here, epoch=7).commit()) == NotLeader(1)
    assert ledger.commands(5) == ()


async def test_one_bad_item_takes_no_neighbour_with_it(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    good = [Commit(facts=(Fact(FactKind.FINDING, data={"i": i}),)) for i in range(40)]
    nonsense = replace(here.task, revision=2, started_at=None)
    stale = Commit(puts=(replace(here.task, revision=5),), facts=(Fact(FactKind.FINDING),))
    bad = Commit(puts=(nonsense,), facts=(Fact(FactKind.FINDING),))
    results = await asyncio.gather(
        *(ledger.commit(commit) for commit in (*good[:20], bad, stale, *good[20:])), return_exceptions=True
    )
    assert isinstance(results[20], IllegalMove)
    assert isinstance(results[21], Stale)
    numbers = [result.n for result in results if isinstance(result, Committed)]
    assert numbers == list(range(1, 41))
    assert [event.fact.data["i"] for event in ledger.events(0, 100)] == list(range(40))
