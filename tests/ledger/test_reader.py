"""A look finds what is asked for, at a cost that does not grow with what is not."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.world import NOW, SECOND, Counting, digest, place, settled_in, turn, wake, written

from tenuto.model.change import Commit, Row
from tenuto.model.command import AttemptOutcome, Command, CommandKind
from tenuto.model.evidence import Sample
from tenuto.model.fact import Fact, FactKind
from tenuto.model.ids import CommandId, MessageId, ReconciliationId, ReportId, TaskId, TokenId, WaitId, short
from tenuto.model.lifecycle import AttemptState, CommandState, DeliveryState, RunState, TaskState
from tenuto.model.message import Message, MessageKind, MessagePolicy
from tenuto.model.snapshot import Role, Token
from tenuto.model.work import Disposition, DispositionSource, Report, ReportKind, Task, Wait, WaitKind
from tenuto.store import questions
from tenuto.store.ledger import TableLedger

pytestmark = pytest.mark.anyio
DONE = Disposition("done", DispositionSource.OPERATOR, TaskState.ACTIVE, None, verified=False)


def over(task: Task, revision: int = 2) -> Task:
    return replace(task, revision=revision, state=TaskState.CANCELLED, ended_at=NOW, disposition=DONE, look_at=None)


async def test_an_empty_registry_answers_everything(ledger: TableLedger) -> None:
    nobody = TaskId("t-nobody")
    assert ledger.snapshot(nobody, 3) is None
    assert (ledger.due(NOW, 5), ledger.next_due(), ledger.under_way()) == ((), None, ())
    assert (ledger.runs(5), ledger.tasks(5), ledger.commands(5), ledger.waits(5)) == ((), (), (), ())
    assert (ledger.task(nobody), ledger.command(CommandId("c-nobody")), ledger.token("0" * 64)) == (None, None, None)
    assert (ledger.last_event(), ledger.events(0, 5), ledger.find("task", "abc")) == (0, (), ())
    assert set(ledger.counts().values()) == {0}
    assert ledger.check() == ()


async def test_what_is_due_comes_earliest_first(ledger: TableLedger, ids: Counting) -> None:
    late, never, early = (
        place(ids, look_at=NOW + 20 * SECOND),
        place(ids),
        place(ids, look_at=NOW + 10 * SECOND),
    )
    for here in (late, never, early):
        await settled_in(ledger, here)
    assert ledger.next_due() == NOW + 10 * SECOND
    assert ledger.due(NOW, 5) == ()
    assert ledger.due(NOW + 10 * SECOND, 5) == (early.task.id,)
    assert ledger.due(NOW + 60 * SECOND, 5) == (early.task.id, late.task.id)
    assert ledger.due(NOW + 60 * SECOND, 1) == (early.task.id,)


async def test_a_snapshot_holds_what_hangs_on_the_task_and_nothing_else(ledger: TableLedger, ids: Counting) -> None:
    here, there = place(ids), place(ids)
    await settled_in(ledger, here)
    await settled_in(ledger, there)
    gone = Wait(WaitId(ids.new("wait")), 1, here.task.id, WaitKind.HUMAN, "?", NOW, closed_at=NOW, closed_by="me")
    hanging = Wait(WaitId(ids.new("wait")), 1, here.task.id, WaitKind.TASK, "the other", NOW, subject=there.task.id)
    lost = Wait(WaitId(ids.new("wait")), 1, here.task.id, WaitKind.TASK, "nobody", NOW, subject="t-nobody")
    pending, eaten = wake(ids, here.task), replace(wake(ids, here.task), consumed_at=NOW)
    samples = [
        Sample(ReconciliationId(ids.new("reconciliation")), here.task.id, "f", ("a", "b"), NOW + i * SECOND)
        for i in range(5)
    ]
    messages = [message(ids, here.task.id, state) for state in DeliveryState]
    first = turn(ids, here)
    rows: tuple[Row, ...] = (
        gone,
        hanging,
        lost,
        pending,
        eaten,
        *samples,
        *(replace(each, carried_by=first.command.id) for each in messages),
    )
    await written(ledger, first.commit())
    await written(ledger, Commit(puts=rows))
    checks = [side(ids, first.command, kind) for kind in (CommandKind.CHECK, CommandKind.INTERRUPT)]
    await written(ledger, Commit(puts=tuple(checks)))
    open_check = replace(side(ids, first.command, CommandKind.CHECK), state=CommandState.ARMED, settled_at=None)
    await written(ledger, Commit(puts=(open_check,)))

    snapshot = ledger.snapshot(here.task.id, 1)
    assert snapshot is not None
    assert snapshot.waits == (hanging, lost)
    assert snapshot.others == {there.task.id: TaskState.ACTIVE}
    assert snapshot.wakes == (pending,)
    assert snapshot.samples == (samples[4], samples[3], samples[2])
    assert [each.state for each in snapshot.messages] == [
        DeliveryState.DEFERRED,
        DeliveryState.CARRIED,
        DeliveryState.RETRY_WAIT,
        DeliveryState.AMBIGUOUS,
    ]
    assert snapshot.commands == (first.command, open_check)
    assert snapshot.checks == (checks[1], checks[0])
    assert snapshot.live_command == first.command
    assert (snapshot.slots_used, snapshot.slots) == (1, 1)
    elsewhere = ledger.snapshot(there.task.id, 9)
    assert elsewhere is not None
    assert (elsewhere.waits, elsewhere.wakes, elsewhere.messages, elsewhere.checks) == ((), (), (), ())
    assert elsewhere.slots_used == 2


def message(ids: Counting, task_id: TaskId, state: DeliveryState) -> Message:
    return Message(
        id=MessageId(ids.new("message")),
        revision=1,
        task_id=task_id,
        sender="operator",
        kind=MessageKind.WORDS,
        policy=MessagePolicy.NEXT_TURN,
        text=None,
        size=0,
        state=state,
        created_at=NOW,
        not_before=NOW,
        settled_at=NOW if state in (DeliveryState.DELIVERED, DeliveryState.DROPPED) else None,
    )


def side(ids: Counting, send: Command, kind: CommandKind) -> Command:
    return replace(
        send,
        id=CommandId(ids.new("command")),
        kind=kind,
        state=CommandState.FAILED,
        settled_at=NOW,
        scopes=(),
    )


async def test_a_send_that_a_verdict_settled_is_still_looked_at(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    first = turn(ids, here)
    await written(ledger, first.commit())
    doubted = replace(first.command, revision=2, state=CommandState.AMBIGUOUS)
    verdict = replace(
        doubted, revision=3, state=CommandState.RELEASED, settled_at=NOW, released_by="me", verdict="not done"
    )
    ended = replace(first.attempt, revision=2, state=AttemptState.ENDED, ended_at=NOW, outcome=AttemptOutcome.RELEASED)
    await written(ledger, Commit(puts=(doubted, verdict, ended), frees=(verdict.id,)))
    snapshot = ledger.snapshot(here.task.id, 1)
    assert snapshot is not None
    assert (snapshot.last, snapshot.released, snapshot.commands) == (ended, verdict, ())


async def test_the_lists_are_newest_first_and_cut(ledger: TableLedger, ids: Counting) -> None:
    places = [place(ids) for _ in range(4)]
    for here in places:
        await settled_in(ledger, here)
    assert ledger.tasks(2) == (places[3].task, places[2].task)
    assert ledger.runs(1) == (places[3].run,)
    ended = over(places[3].task)
    await written(ledger, Commit(puts=(ended,)))
    assert ledger.tasks(9, unfinished=True) == tuple(here.task for here in reversed(places[:3]))
    assert ledger.tasks(9, run_id=places[3].run.id) == (ended,)
    assert ledger.tasks(9, run_id=places[3].run.id, unfinished=True) == ()
    assert ledger.runs(9, unfinished=True) == tuple(here.run for here in reversed(places[:3]))
    assert ledger.run(places[0].run.id) == places[0].run
    assert ledger.counts() == {
        "pending": 0,
        "active": 3,
        "completed": 0,
        "failed": 0,
        "cancelled": 1,
        "open_commands": 0,
    }


async def test_events_go_on_from_where_a_listener_was(ledger: TableLedger, ids: Counting) -> None:
    here, there = place(ids), place(ids)
    for i in range(6):
        where = (here, there)[i % 2]
        fact = Fact(FactKind.TASK_PROGRESSED, where.run.id, where.task.id, {"i": i, "why": None, "ok": True})
        await written(ledger, Commit(facts=(fact,)))
    assert [event.n for event in ledger.events(2, 3)] == [3, 4, 5]
    assert [event.n for event in ledger.events(0, 9, task_id=there.task.id)] == [2, 4, 6]
    assert [event.n for event in ledger.events(2, 9, run_id=here.run.id)] == [3, 5]
    assert [event.n for event in ledger.events(0, 9, run_id=here.run.id, task_id=there.task.id)] == []
    assert ledger.events(5, 9)[0].fact.data == {"i": 5, "why": None, "ok": True}
    assert ledger.last_event() == 6


async def test_a_name_is_found_by_its_beginning_or_its_end(ledger: TableLedger, ids: Counting) -> None:
    places = [place(ids) for _ in range(12)]
    for here in places:
        await settled_in(ledger, here)
    one = places[7].task.id
    assert ledger.find("task", one) == (one,)
    assert ledger.find("task", one[-8:]) == (one,)
    assert ledger.find("task", short(one)) == (one,)
    assert len(ledger.find("task", "t-000")) == 10
    assert ledger.find("run", short(one)) == ()
    assert [ledger.find("task", odd) for odd in ("", "%", "t-", "_", "' OR 1=1", "ü")] == [()] * 6
    assert ledger.find("observation", "abc") == ledger.find("nothing", "abc") == ()


async def test_texts_tokens_reports_and_messages(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    token = Token(TokenId(ids.new("token")), 1, digest("secret"), Role.AGENT, here.task.id, 1, NOW)
    lines = (("completed", "the lexer"), ("completed", "the parser"), ("risks", ""))
    reports = [
        Report(ReportId(ids.new("report")), here.task.id, None, ReportKind.CHECKPOINT, lines, NOW + i * SECOND)
        for i in range(3)
    ]
    words = message(ids, here.task.id, DeliveryState.RECORDED)
    await written(ledger, Commit(puts=(token, *reports, words)))
    assert ledger.token(digest("secret")) == token
    assert ledger.tokens(digest("secret")[:8]) == (token,)
    assert ledger.tokens("0" * 40) == ()
    assert ledger.text(here.text.id) == here.text
    assert ledger.reports(here.task.id, 2) == (reports[2], reports[1])
    assert ledger.message(words.id) == words
    assert ledger.messages(here.task.id, 9) == (words,)
    assert ledger.conversations(here.task.id) == (here.conversation,)


async def test_a_run_that_is_stopped_and_a_hold_on_everything(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    stopped = replace(here.run, revision=2, state=RunState.STOPPED, stopped_at=NOW)
    held = replace(ledger.registry(), revision=2, held_at=NOW, held_by="operator")
    await written(ledger, Commit(puts=(held, stopped)))
    snapshot = ledger.snapshot(here.task.id, 1)
    assert snapshot is not None
    assert (snapshot.registry, snapshot.run) == (held, stopped)


async def test_every_thread_looks_for_itself_while_the_writer_writes(ledger: TableLedger, ids: Counting) -> None:
    here = place(ids)
    await settled_in(ledger, here)
    torn: list[str] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            snapshot = ledger.snapshot(here.task.id, 5)
            if snapshot is None or (snapshot.live is None) != (snapshot.task.look_at is None):
                torn.append(str(snapshot))

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    task = here.task
    for number in range(1, 16):
        armed = turn(ids, here, number=number, revision=2 * number)
        armed = replace(armed, task=replace(armed.task, look_at=NOW + timedelta(hours=1)))
        await written(ledger, armed.commit())
        task = replace(armed.task, revision=2 * number + 1, look_at=None)
        await written(ledger, armed.settled(NOW).then(Commit(puts=(task,))))
    stop.set()
    for watcher in watchers:
        await asyncio.to_thread(watcher.join)
    assert torn == []
    assert ledger.task(here.task.id) == task


#: Looks that every cycle makes, and the words by which SQLite says that a look reads a whole table.
CYCLE = ["DUE", "NEXT_DUE", "UNDER_WAY", "SLOTS", "HOLDER", "LIVE", "LAST", "SENT", "OPEN_OF_TASK", "SIDE"]
CYCLE += ["OPEN_WAITS", "PENDING_WAKES", "UNDELIVERED", "SAMPLES", "STATE", "TOKEN"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_no_look_of_a_cycle_reads_a_whole_table(ledger: TableLedger) -> None:
    whole: list[tuple[str, str]] = []
    used: set[tuple[str, str]] = set()
    with ledger._looking() as look:
        for name in CYCLE:
            sentence = ledger._sql.of(getattr(questions, name))
            nothing = [None] * len(sentence.names)
            plan = look.connection.execute(f"EXPLAIN QUERY PLAN {sentence.sql}", nothing).fetchall()
            whole += [(name, step) for *_, step in plan if reads_all(step)]
            used |= {(name, word) for *_, step in plan for word in step.split() if "_" in word}
    assert whole == []
    assert used >= {
        ("DUE", "task_due"),
        ("NEXT_DUE", "task_due"),
        ("SLOTS", "task_state"),
        ("UNDER_WAY", "command_open"),
        ("UNDER_WAY", "one_live_attempt_per_task"),
        ("OPEN_OF_TASK", "command_open"),
        ("OPEN_WAITS", "wait_open"),
        ("PENDING_WAKES", "one_pending_wake_per_kind"),
        ("UNDELIVERED", "message_undelivered"),
    }


def reads_all(step: str) -> bool:
    """Whether a step of a plan walks a table: neither a part of an index nor the few rows a subquery gave."""
    return step.startswith("SCAN") and "INDEX" not in step and "anon_" not in step
