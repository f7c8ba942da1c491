"""Words by a delivery policy, across the desk, the cycle and a registry: steered, sent, with the next turn, recorded.

The executor is played: one that can steer, and one that cannot. Whatever is killed, words reach an agent at most once,
unless a journal proves that the first way never began.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.steering import Steered, Taking
from tests.support.world import NAME, OPERATOR, World, world

from tenuto.engine.cycle import Cycle, Surroundings
from tenuto.engine.desk import Caller, Done
from tenuto.model.command import Accepted, CommandKind, Unsent
from tenuto.model.faults import Conflict, Mistake, NotAllowed
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState, DeliveryState
from tenuto.model.message import MessagePolicy
from tenuto.model.snapshot import Role
from tenuto.model.work import WaitKind, WakeKind

MIN = timedelta(minutes=1)
NOW_ = MessagePolicy.STEER_NOW
WORDS = "use the blue one"


async def said(it: World, task: TaskId, words: str = WORDS, *, key: str = "k1", **more: object) -> Done:
    """The operator says something that is to be delivered now, and the task is served."""
    done = await it.desk.say(OPERATOR, task, words, **({"policy": NOW_, "key": key} | more))  # type: ignore[arg-type]
    await it.settle(task)
    return done


def states(it: World, task: TaskId) -> list[DeliveryState]:
    """Where each message stands, oldest first."""
    return [message.state for message in reversed(it.ledger.messages(task, 50))]


def times(it: World, words: str = WORDS) -> int:
    """How often an agent has read words."""
    executor = it.executor
    assert isinstance(executor, Steered)
    return sum(text.count(words) for text in executor.heard)


def steered(it: World) -> Steered:
    assert isinstance(it.executor, Steered)
    return it.executor


async def test_words_go_into_a_turn_under_way_and_are_proven_by_its_own_acknowledgement(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        done = await said(it, task)
        assert done.result["delivery"] == "steer"
        assert states(it, task) == [DeliveryState.DELIVERED]
        (command,) = [row for row in it.desk.commands(task_id=task) if row.kind is CommandKind.STEER]
        assert (command.state, command.attempt_id is not None) == (CommandState.ACKNOWLEDGED, True)
        assert command.scopes == (f"steer:{it.ledger.conversations(task)[0].identity}",)
        steered(it).finish()
        await it.settle(task)
        assert times(it) == 1, "what was steered does not ride in the next prompt"


async def test_br_028_a_message_being_steered_is_not_sent_again_when_the_turn_ends(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        steered(it).taking = Taking.WAITS
        await said(it, task)
        assert states(it, task) == [DeliveryState.CARRIED]
        steered(it).finish()
        await it.settle(task)
        assert states(it, task) == [DeliveryState.AMBIGUOUS], "nobody saw whether the turn took it"
        assert len(steered(it).turns) == 2, "an unresolved steer does not hold the task's next turn"
        assert times(it) == 1
        assert any(item.kind == "ambiguous command" for item in it.desk.attention())
        steered(it).acknowledge(steered(it).steers[0])
        await it.settle(task)
        assert states(it, task) == [DeliveryState.DELIVERED], "late evidence still counts"


@pytest.mark.parametrize("taking", [Taking.REFUSES, Taking.LOSES, Taking.DIES_CLAIMED])
async def test_words_that_were_provably_not_taken_come_with_the_next_turn(tmp_path: Path, taking: Taking) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        steered(it).taking = taking
        done = await said(it, task)
        (message,) = it.ledger.messages(task, 5)
        assert (message.id, message.state) == (done.result["message"], DeliveryState.DEFERRED)
        assert message.policy is MessagePolicy.NEXT_TURN
        await it.settle(task)
        assert len(steered(it).steers) == 1, "it is not steered a second time"
        steered(it).finish(status="blocked", needs="path:never")
        await it.settle(task)
        assert times(it) == 0, "a dependency is not passed by words"
        (wait,) = it.desk.waits(task)
        assert wait.kind is WaitKind.PATH
        await it.desk.continue_(OPERATOR, task, anyway=True)
        for _ in range(3):
            it.clock.move(timedelta(seconds=4))
            await it.settle(task)
        assert times(it) == 1
        (after,) = it.ledger.messages(task, 5)
        assert (after.id, after.state) == (message.id, DeliveryState.DELIVERED)


@pytest.mark.parametrize(("happened", "state", "read"), [(True, DeliveryState.DELIVERED, 1), (False, None, 2)])
async def test_a_doubtful_steer_fails_closed_until_a_person_says_what_happened(
    tmp_path: Path, happened: bool, state: DeliveryState | None, read: int
) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        steered(it).taking = Taking.DIES_BEGUN
        await said(it, task)
        assert states(it, task) == [DeliveryState.AMBIGUOUS]
        second = await said(it, task, "and the red one", key="k2")
        assert second.result["delivery"] == "next_turn", "nothing is steered past an unresolved steer"
        (doubt,) = [row for row in it.desk.commands(only_open=True) if row.state is CommandState.AMBIGUOUS]
        await it.desk.release(OPERATOR, doubt.id, happened=happened)
        steered(it).able = False
        await it.settle(task)
        if state is not None:
            assert states(it, task)[0] is state
        steered(it).finish()
        await it.settle(task)
        assert times(it) == read


async def test_an_acknowledgement_of_another_turn_proves_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        steered(it).taking = Taking.OTHER_TURN
        await said(it, task)
        assert states(it, task) == [DeliveryState.AMBIGUOUS]


async def test_live_words_are_spaced_and_corrective_ones_are_not(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        await said(it, task, "first")
        spaced = await said(it, task, "second", key="k2")
        assert spaced.result["by"] == (it.clock.now() + 15 * MIN).isoformat()
        (second, _) = it.ledger.messages(task, 5)
        assert second.not_before == it.clock.now() + 15 * MIN, "the moment is written down"
        await said(it, task, "stop, wrong branch", key="k3", corrective="it would overwrite the release")
        assert states(it, task) == [DeliveryState.DELIVERED, DeliveryState.DEFERRED, DeliveryState.DELIVERED]
        it.clock.move(14 * MIN)
        await it.settle(task)
        assert times(it, "second") == 0
        it.clock.move(2 * MIN)
        await it.settle(task)
        assert times(it, "second") == 1
        assert times(it, "wrong branch") == 1


async def test_idle_delivery_bypasses_the_floor(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        await said(it, task, "first")
        await said(it, task, "second", key="k2")
        steered(it).finish()
        await it.settle(task)
        assert times(it, "second") == 1, "the turn ended, so it goes with a new one at once"


async def test_br_038_nobody_is_promised_more_than_the_executor_can_do(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.started()
        done = await it.desk.say(OPERATOR, task, WORDS, policy=NOW_, key="k1")
        assert done.result["delivery"] == "next_turn"
        assert "cannot put words into a turn" in str(done.result["because"])
        await it.settle(task)
        assert [row.kind for row in it.desk.commands(task_id=task)] == [CommandKind.SEND]
        it.executor.finish(block=False)
        await it.settle(task)
        assert states(it, task) == [DeliveryState.DELIVERED]


async def test_br_039_a_message_during_a_long_turn_is_steered_where_that_is_possible(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        steered(it).able = False
        waiting = await said(it, task)
        assert waiting.result["delivery"] == "next_turn"
        steered(it).able = True
        await it.settle(task)
        assert states(it, task) == [DeliveryState.DELIVERED], "what it can do may change within a turn"
        assert times(it) == 1


async def test_words_to_an_idle_task_make_a_turn_and_the_operators_pass_a_pause(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.started()
        await it.desk.pause(OPERATOR, task)
        it.executor.finish()
        await it.settle(task)
        neighbour = Caller(Role.AGENT, "agent", task, it.desk.task(task).lease_number)
        done = await it.desk.say(neighbour, task, "a neighbour's words", policy=NOW_, key="n1")
        assert (done.result["delivery"], "paused" in str(done.result["because"])) == ("next_turn", True)
        await it.settle(task)
        before = len(it.executor.turns)
        done = await said(it, task)
        assert done.result["delivery"] == "send"
        assert (before, len(it.executor.turns)) == (1, 2)
        attempt = it.desk.attempts(task)[0]
        assert attempt.reason is WakeKind.MESSAGE
        assert states(it, task) == [DeliveryState.DELIVERED, DeliveryState.DELIVERED], "waiting words ride along"
        it.executor.finish()
        await it.settle(task)
        assert len(it.executor.turns) == 2, "it is still paused"


async def test_br_035_words_during_a_turn_never_start_a_second_one(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.started()
        for number in range(3):
            await said(it, task, key=f"k{number}")
        assert len(it.executor.turns) == 1


async def test_br_032_the_same_message_twice_is_one_message(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        first = await said(it, task)
        again = await said(it, task)
        assert (again.replayed, again.result["message"]) == (True, first.result["message"])
        with pytest.raises(Conflict):
            await said(it, task, "something else")
        assert times(it) == 1


async def test_br_029_a_send_that_did_not_happen_carries_its_message_once(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        steered(it).finish(block=False)
        it.executor.outcome = lambda: Unsent("the place is full")
        await it.settle(task)
        await said(it, task)
        (message,) = it.ledger.messages(task, 5)
        assert message.state is DeliveryState.RETRY_WAIT
        assert message.not_before > it.clock.now(), "it is tried again at the moment the turn is"
        it.executor.outcome = Accepted
        it.clock.move(MIN)
        await it.settle(task)
        assert times(it) == 1
        assert states(it, task) == [DeliveryState.DELIVERED]


async def test_words_for_the_record_are_never_delivered(tmp_path: Path) -> None:
    async with world(tmp_path, played=Steered) as it:
        task = await it.started()
        done = await said(it, task, policy=MessagePolicy.RECORD_ONLY)
        assert done.result["delivery"] == "recorded"
        steered(it).finish()
        await it.settle(task)
        assert (states(it, task), times(it)) == ([DeliveryState.RECORDED], 0)


async def test_a_message_that_never_fits_stands_in_attention(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.create(policy={"prompt_bytes": 4000})
        await it.settle(task)
        await it.desk.say(OPERATOR, task, "x" * 5000)
        it.executor.finish()
        await it.settle(task)
        (item,) = it.desk.attention()
        assert "cannot be delivered" in item.question
        assert states(it, task) == [DeliveryState.DROPPED]


async def test_who_may_say_what(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task, other = await it.started(), await it.create()
        agent = Caller(Role.AGENT, "agent", task, it.desk.task(task).lease_number)
        for given in (other, "t-0000000000000000000000zzzz", "coordinato"):
            with pytest.raises(NotAllowed, match="its own run"):
                await it.desk.say(agent, given, WORDS, key="a")
        with pytest.raises(NotAllowed, match="corrective"):
            await it.desk.say(agent, task, WORDS, policy=NOW_, corrective="because", key="a")
        with pytest.raises(Mistake, match="idempotency key"):
            await it.desk.say(OPERATOR, task, WORDS, policy=NOW_)
        with pytest.raises(Mistake, match="corrective"):
            await it.desk.say(OPERATOR, task, WORDS, corrective="because")


# -- deaths


class Died(BaseException):
    """The supervisor is gone at this point."""


class Passing:
    """Notes the points it passes, and dies at the one it was told to."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.dies_at: int | None = None

    def burn(self, point: str) -> None:
        self.passed.append(point)
        if self.dies_at == len(self.passed):
            raise Died(point)


async def play(folder: Path, taking: Taking, dies_at: int | None) -> tuple[list[str], int, DeliveryState, int]:
    """Words into a turn under way, and the turn's end; whoever died is succeeded. Passings, readings, state, steers."""
    fuse = Passing()
    async with world(folder, played=Steered, fuse=fuse) as it:
        task = await it.started()
        fuse.passed.clear()
        fuse.dies_at = dies_at
        executor = steered(it)
        executor.taking = taking
        await it.desk.say(OPERATOR, task, WORDS, policy=NOW_, key="k1")

        async def served() -> None:
            try:
                await it.settle(task)
            except Died:
                fuse.dies_at = None
                reborn(it, folder)
                await it.settle(task)

        await served()
        executor.finish()
        await served()
        if executor.under_way:
            executor.finish(status="complete", evidence="commit abc")
            await served()
        (message,) = it.ledger.messages(task, 5)
        return fuse.passed, times(it), message.state, len(executor.steers)


def reborn(it: World, folder: Path) -> None:
    """Another supervisor on the same registry and the same executor."""
    around = Surroundings(str(folder / "api.sock"), str(folder / "spool"), str(folder))
    epoch = it.cycle.epoch
    it.cycle = Cycle(it.ledger, {NAME: it.executor}, it.workspace, it.clock, it.minter, Passing(), around, 20)
    it.cycle.epoch = epoch


EVERY_DAY = (Taking.TAKES, Taking.LOSES, Taking.WAITS)


@pytest.mark.parametrize(
    "taking", [*EVERY_DAY, *(pytest.param(one, marks=pytest.mark.prove) for one in Taking if one not in EVERY_DAY)]
)
async def test_words_are_read_at_most_once_wherever_the_supervisor_dies(tmp_path: Path, taking: Taking) -> None:
    passed, _, _, _ = await play(tmp_path / "whole", taking, None)
    assert "steer.committed" in passed
    assert "steer.handed_over" in passed
    for number, point in enumerate(passed, start=1):
        _, read, state, steers = await play(tmp_path / str(number), taking, number)
        assert (read <= 1, steers <= 1) == (True, True), f"{point} ({number}): read {read} times, steered {steers}"
        expected = {DeliveryState.DELIVERED}
        if taking in (Taking.DIES_BEGUN, Taking.WAITS, Taking.OTHER_TURN):
            expected.add(DeliveryState.AMBIGUOUS)
        assert state in expected, f"{point} ({number}): {state}"
        assert read == 1 or taking is Taking.OTHER_TURN, f"{point} ({number}): never read"
