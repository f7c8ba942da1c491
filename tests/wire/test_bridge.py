"""Who may come, who stays, and what the bridge believes: greetings, instances, epochs, journals, revocations."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.world import NOW
from tests.wire.frames import COMMAND, EXAMPLES, OTHER, REGISTRY
from tests.wire.pair import NAME, End, Paired, paired, said, until

from tenuto.engine.orphans import Orphan, Strangers
from tenuto.model.evidence import Mark, Presence, Rank
from tenuto.model.fact import FactKind
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.lifecycle import CommandState, TaskState
from tenuto.transports import wire
from tenuto.transports.line import moment_of, rank_of
from tenuto.transports.remote import Executors, RemoteExecutor

pytestmark = pytest.mark.anyio


def hello(it: Paired, **other: object) -> wire.Hello:
    made = EXAMPLES["hello"]
    assert isinstance(made, wire.Hello)
    registry = it.bridge.registry
    plain = replace(made, kind=wire.ExecutorKind.AGENT, name="test", registry=registry, epoch=0, journal=())
    return replace(plain, **other)  # type: ignore[arg-type]


async def greeted(it: Paired, said: wire.Hello | str) -> tuple[End, wire.Frame | None]:
    """A connection that has said its hello, and what it was answered."""
    end = it.connect()
    assert end is not None
    await end.send(said if isinstance(said, str) else wire.dump(said))
    text = await end.receive()
    return end, wire.parse(text) if text is not None else None


async def ready(it: Paired, made: wire.Hello) -> End:
    end, welcome = await greeted(it, made)
    assert isinstance(welcome, wire.Welcome), welcome
    await end.send(wire.dump(wire.Ready(welcome.epoch)))
    await until(lambda: it.bridge.standings()[0].connected)
    return end


async def frame(end: End) -> wire.Frame | None:
    """The next frame that is no ping."""
    while (text := await end.receive()) is not None:
        if not isinstance(told := wire.parse(text), wire.Ping):
            return told
    return None


def remote(it: Paired) -> RemoteExecutor:
    made = Executors({}, it.bridge)[NAME]
    assert isinstance(made, RemoteExecutor)
    return made


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"protocol": wire.protocol(3)}, wire.Farewell.VERSION),
        ({"protocol": "other/1"}, wire.Farewell.VERSION),
        ({"name": "../up"}, wire.Farewell.NAME),
        ({"name": "another"}, wire.Farewell.NAME),
        ({"incarnation": "a:b:c-d-e-f"}, wire.Farewell.PROTOCOL),
        ({"registry": REGISTRY, "epoch": 1}, wire.Farewell.REGISTRY),
        ({"epoch": 99}, wire.Farewell.EPOCH),
    ],
)
async def test_who_may_not_come_is_told_why(tmp_path: Path, wrong: dict[str, object], code: wire.Farewell) -> None:
    async with paired(tmp_path) as it:
        it.may = lambda name: name == NAME
        _, answer = await greeted(it, hello(it, **wrong))
        assert isinstance(answer, wire.Bye)
        assert answer.code is code
        assert not remote(it).connected()


@pytest.mark.parametrize("text", ["", "{}", '{"frame": "ping", "n": 1}', '{"frame": "launch"}'])
async def test_the_first_frame_is_a_hello(tmp_path: Path, text: str) -> None:
    async with paired(tmp_path) as it:
        _, answer = await greeted(it, text)
        assert isinstance(answer, wire.Bye)
        assert answer.code is wire.Farewell.PROTOCOL


async def test_a_version_apart_is_spoken_in_the_lower_one(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        _, welcome = await greeted(it, hello(it, protocol=wire.protocol(wire.VERSION + 1)))
        assert isinstance(welcome, wire.Welcome)
        assert welcome.protocol == wire.protocol(wire.VERSION)


async def test_a_peer_of_a_later_version_does_a_whole_turn(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.turns.by_itself = said(evidence="commit abc")
        it.executor.begin(it.group, it.connect, version=wire.VERSION + 1)
        await it.joined()
        task_id = await it.create()
        await it.over(task_id)
        assert it.desk.task(task_id).state is TaskState.COMPLETED


async def test_nothing_is_sent_before_the_epoch_is_written_down(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        end, welcome = await greeted(it, hello(it))
        assert isinstance(welcome, wire.Welcome)
        assert not remote(it).connected()
        await end.send(wire.dump(wire.Ready(welcome.epoch - 1)))
        await asyncio.sleep(0.02)
        assert not remote(it).connected()


async def test_a_newer_instance_takes_the_place_and_the_older_stays_away(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        old = await ready(it, hello(it, instance="one", began_at=NOW))
        new = await ready(it, hello(it, instance="two", began_at=NOW + timedelta(seconds=5)))
        farewell = await frame(old)
        assert isinstance(farewell, wire.Bye)
        assert farewell.code is wire.Farewell.REPLACED
        _, again = await greeted(it, hello(it, instance="one", began_at=NOW))
        assert isinstance(again, wire.Bye)
        assert again.code is wire.Farewell.REPLACED
        assert not new.closed
        assert it.bridge.standings()[0].instance == "two"


async def test_an_executor_refuses_a_supervisor_that_was_replaced(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        await it.executor.end()
        it.bridge.lead(7)
        it.executor.begin(it.group, it.connect)
        await it.joined()
        await it.executor.end()
        # The bridge of an older supervisor that does not know better: the executor itself refuses.
        it.bridge.lead(6)
        it.bridge._refusal = lambda hello, may: None  # type: ignore[method-assign]
        it.executor.begin(it.group, it.connect)
        await until(lambda: any("refuses this supervisor" in trouble for trouble in it.bridge.troubles()))
        assert not remote(it).connected()


async def test_a_command_that_nobody_here_knows_holds_the_executor(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        entries = (wire.Entry(COMMAND, Mark.ACCEPTED, 1), wire.Entry(OTHER, Mark.REVOKED, 1))
        await ready(it, hello(it, epoch=1, journal=entries))
        assert not remote(it).connected()
        (trouble,) = it.bridge.troubles()
        assert COMMAND in trouble
        task_id = await it.create()
        rest = await it.cycle.serve(task_id)
        assert rest is not None
        assert rest.because is not None
        assert rest.because.rung == "executor"
        assert it.bridge.accept_stranger(NAME, COMMAND)
        assert remote(it).connected()
        assert it.bridge.troubles() == []


async def test_a_stranger_that_names_its_conversation_holds_no_other(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        entry = wire.Entry(COMMAND, Mark.ACCEPTED, 1, "send", "https://chat.example/c/42")
        await ready(it, hello(it, epoch=1, journal=(entry,)))
        assert remote(it).connected()
        assert remote(it).connected("https://chat.example/c/43")
        assert not remote(it).connected("https://chat.example/c/42")
        (trouble,) = it.bridge.troubles()
        assert "Nothing is sent to https://chat.example/c/42 until" in trouble


async def test_a_stranger_whose_task_is_known_makes_it_wait_for_a_person_and_holds_nothing_else(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        task_id = await it.create()
        done = asyncio.Event()

        def waits(name: str, command: CommandId) -> None:
            assert it.bridge.accept_stranger(name, command)
            done.set()

        strangers = Strangers(it.ledger, it.clock, it.minter, 20, waits)
        it.bridge.hooks = replace(
            it.bridge.hooks,
            stranger=lambda name, entry: strangers.note(name, Orphan(entry.command, entry.task, entry.mark.value)),
        )
        entries = (wire.Entry(COMMAND, Mark.ACCEPTED, 1, task=task_id), wire.Entry(OTHER, Mark.BEGUN, 1))
        await ready(it, hello(it, epoch=1, journal=entries))
        async with asyncio.TaskGroup() as group:
            group.create_task(strangers.run())
            await asyncio.wait_for(done.wait(), 20)
            strangers.stop()
        assert [wait.question for wait in it.desk.waits(task_id) if COMMAND in wait.question]
        assert it.bridge.standings()[0].strangers == (OTHER,), "whose task nobody knows holds all of it"
        whats = [str(e.fact.data.get("what")) for e in it.desk.events(0, 1000) if e.fact.kind is FactKind.FINDING]
        assert any(COMMAND in what for what in whats)
        assert any(OTHER in what for what in whats)


async def armed(it: Paired) -> tuple[TaskId, CommandId]:
    """A task whose command was sent to an executor that says nothing."""
    task_id = await it.create()
    serving = asyncio.get_running_loop().create_task(it.cycle.serve(task_id))
    end = it.ends[-1]
    while not isinstance(command := await frame(end), wire.Command):
        assert command is not None
    it.ends[-1].cut()
    await serving
    return task_id, command.command


async def test_an_executor_with_another_journal_proves_nothing_by_its_silence(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        await ready(it, hello(it, incarnation="first-life"))
        task_id, command_id = await armed(it)
        it.executor.begin(it.group, it.connect)  # its journal is new: another incarnation
        await it.joined()
        for _ in range(3):
            await it.cycle.serve(task_id)
        (command,) = it.desk.commands(task_id=task_id)
        assert command.id == command_id
        assert command.state is CommandState.AMBIGUOUS
        assert "another journal" in str(command.detail)
        assert it.turns.effects == []


async def test_the_same_journal_proves_by_a_revocation(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        life = it.executor.carrying
        assert life is not None
        incarnation = life.incarnation()
        await it.executor.end()
        await ready(it, hello(it, incarnation=incarnation))
        task_id, command_id = await armed(it)
        it.turns.by_itself = said(evidence="commit abc")
        it.executor.begin(it.group, it.connect)
        await it.joined()
        await it.over(task_id)
        first = it.desk.command(command_id)
        assert first.state is CommandState.FAILED
        assert len(it.turns.effects) == 1
        assert command_id not in it.turns.effects


async def test_a_journal_that_is_taken_away_is_another_life(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        before = remote(it).place
        shutil.rmtree(it.executor.folder)
        task_id = await it.create()
        await it.cycle.serve(task_id)
        await until(lambda: remote(it).connected() and remote(it).place != before)
        for _ in range(3):
            await it.cycle.serve(task_id)
        assert it.turns.effects == []
        assert it.desk.commands(task_id=task_id)[-1].state is CommandState.AMBIGUOUS


async def test_a_revocation_and_a_late_command_meet_and_one_of_them_loses(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        peer, hands = it.executor.peer, it.executor.carrying
        assert peer is not None
        assert hands is not None
        made = EXAMPLES["command"]
        assert isinstance(made, wire.Command)
        it.turns.by_itself = said()
        outcomes: set[Mark] = set()
        for number in range(12):
            command = replace(made, command=CommandId(f"c-{number:026d}"), epoch=1, kind="send")
            told: list[wire.Frame] = []
            mark, _ = await asyncio.gather(
                hands.revoke(wire.Revoke(command.command, 1, "raced")), hands.carry_out(command, told.append)
            )
            outcomes.add(mark)
            assert (mark is Mark.REVOKED) == (command.command not in it.turns.effects)
            again: list[wire.Frame] = []
            await hands.carry_out(command, again.append)
            assert it.turns.effects.count(command.command) <= 1
        assert outcomes


async def test_an_executor_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    async with paired(tmp_path, heartbeat=0.05) as it:
        end = await ready(it, hello(it))
        while isinstance(told := wire.parse(str(await end.receive())), wire.Ping):
            pass
        assert isinstance(told, wire.Bye)
        assert told.code is wire.Farewell.SILENT
        await until(lambda: not it.bridge.standings()[0].connected)


async def test_one_that_answers_stays(tmp_path: Path) -> None:
    async with paired(tmp_path, heartbeat=0.05) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        await asyncio.sleep(0.5)
        assert remote(it).connected()
        assert len(it.ends) == 1


async def test_what_is_no_frame_ends_the_connection_and_it_comes_back(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        ours = it.ends[-1].other
        assert ours is not None
        ours.inbox.put_nowait('{"frame": "launch"}')
        await until(lambda: len(it.ends) == 2 and remote(it).connected())


async def test_a_journal_that_forgets_is_not_believed(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        end = await ready(it, hello(it))
        task_id = await it.create()
        serving = asyncio.get_running_loop().create_task(it.cycle.serve(task_id))
        while not isinstance(command := await frame(end), wire.Command):
            assert command is not None
        await end.send(wire.dump(wire.Accepted(command.command, NOW)))
        inquiry = await frame(end)
        assert isinstance(inquiry, wire.Inquire)
        nothing = wire.CommandSeen(Mark.NONE, Presence.GONE, Presence.GONE)
        answer = wire.Observation(command.command, NOW, 0.0, Rank.JOURNAL, inquiry.query, nothing)
        await end.send(wire.dump(answer))
        looked: asyncio.Task[object] = serving
        end.cut()
        await looked
        row = it.desk.command(command.command)
        assert row.state is not CommandState.FAILED


async def test_what_is_reported_of_a_command_counts_for_its_own_executor_alone(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        it.executor.begin(it.group, it.connect)
        await it.joined()
        task_id = await it.create()
        await it.cycle.serve(task_id)
        (command,) = it.desk.commands(task_id=task_id)
        other = it.connect()
        assert other is not None
        await other.send(wire.dump(hello(it, name="other")))
        await other.receive()
        await other.send(wire.dump(wire.Ended(command.id, NOW, said())))
        await it.cycle.serve(task_id)
        assert it.desk.attempts(task_id)[0].state == "live"


def test_a_clock_that_is_wrong_moves_nothing() -> None:
    seen = wire.Observation("x", NOW - timedelta(days=4000), 2.5, Rank.PAGE)
    assert moment_of(seen, NOW) == NOW - timedelta(seconds=2.5)
    assert moment_of(replace(seen, age=-9.0), NOW) == NOW
    assert rank_of(Rank.JOURNAL, wire.ExecutorKind.EXTENSION) is Rank.PAGE
    assert rank_of(Rank.REPORTED, wire.ExecutorKind.HOST) is Rank.REPORTED


async def test_who_never_came_says_nothing(tmp_path: Path) -> None:
    async with paired(tmp_path) as it:
        task_id = await it.create()
        rest = await it.cycle.serve(task_id)
        assert rest is not None
        assert rest.because is not None
        assert rest.because.rung == "executor"
        assert it.desk.commands(task_id=task_id) == ()
