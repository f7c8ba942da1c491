"""Tasks that hear of each other: a coordinator of its run, a parent of its children; and caps on what they spend."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import OPERATOR, World, world

from tenuto.engine.desk import Caller
from tenuto.model.change import Commit
from tenuto.model.decision import Rung
from tenuto.model.evidence import CommandFacts, Ending, Mark, Presence
from tenuto.model.faults import Mistake, NotAllowed, Refused
from tenuto.model.ids import RunId, TaskId
from tenuto.model.lifecycle import TaskState
from tenuto.model.message import MessagePolicy
from tenuto.model.snapshot import Role
from tenuto.model.work import AutoResume, Task, WaitKind
from tenuto.ports import Turn

MIN = timedelta(minutes=1)


async def another(it: World, first: TaskId, *, parent: TaskId | None = None, **more: Any) -> TaskId:
    """One more task of the same run, written as it would be made."""
    model = it.desk.task(first)
    task = Task(
        id=TaskId(it.minter.new("task")),
        revision=1,
        run_id=model.run_id,
        title="another",
        objective=model.objective,
        cwd=model.cwd,
        agent=model.agent,
        acceptance=model.acceptance,
        state=TaskState.PENDING,
        created_at=it.clock.now(),
        parent=parent,
        **more,
    )
    await it.ledger.commit(Commit(puts=(task,)))
    return task.id


def prompts(it: World, task: TaskId) -> list[str]:
    """What a task was told, turn by turn."""
    orders = [order for order in it.executor.orders.values() if isinstance(order, Turn)]
    return [order.prompt for order in orders if order.given["TENUTO_TASK"] == task]


async def led(it: World) -> tuple[TaskId, TaskId, Caller]:
    """An idle coordinator that never ran, a task beside it, and the caller that the coordinator's agent is."""
    task = await it.create(auto_resume=AutoResume.ON, coordinator=True)
    await it.settle(task)
    it.executor.finish(block=False)
    await it.settle(task)
    it.executor.finish(status="blocked", needs="path:never")
    await it.settle(task)
    caller = Caller(Role.COORDINATOR, "coordinator", task, it.desk.task(task).lease_number)
    return task, await another(it, task), caller


async def test_the_coordinator_is_told_many_things_in_one_message_and_not_again_before_the_floor(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as it:
        lead, task, _ = await led(it)
        await it.desk.report(OPERATOR, task, [("current", "the parser")])
        assert lead in it.rung, "a report rings the coordinator"
        await it.desk.wait(OPERATOR, task, WaitKind.HUMAN, "which colour?")
        await it.settle(lead)
        (message,) = it.desk.messages(lead)
        text = it.desk.text(message.text) if message.text else None
        assert text is not None
        assert "the parser" in text
        assert "which colour?" in text
        assert it.desk.task(task).state is TaskState.PENDING, "nothing of it ends a task"
        (wait,) = it.desk.waits(lead)
        await it.desk.answer(OPERATOR, lead, "go on", wait=wait.id)
        await it.settle(lead)
        assert "the parser" in prompts(it, lead)[-1]
        it.executor.finish(status="blocked", needs="path:never")
        await it.desk.fail(OPERATOR, task, "no way")
        rest = await it.settle(lead)
        assert len(it.desk.messages(lead)) == 2, "the answer, and the first news"
        assert rest is not None
        assert rest.look_again_at is not None
        it.clock.move(6 * MIN)
        await it.settle(lead)
        assert len(it.desk.messages(lead)) == 3
        it.clock.move(6 * MIN)
        await it.settle(lead)
        assert len(it.desk.messages(lead)) == 3, "nothing is told twice"


async def test_news_wake_an_idle_coordinator_and_are_a_neighbours_words(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        lead = await it.create(coordinator=True)
        await it.settle(lead)
        await it.desk.pause(OPERATOR, lead)
        it.executor.finish()
        await it.settle(lead)
        task = await another(it, lead)
        await it.desk.fail(OPERATOR, task, "no way")
        await it.settle(lead)
        assert len(prompts(it, lead)) == 1, "news do not pass a pause"
        await it.desk.resume(OPERATOR, lead)
        await it.settle(lead)
        assert "failed: no way" in prompts(it, lead)[-1]


async def test_a_coordinator_knows_its_run_and_nothing_else(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        lead, task, caller = await led(it)
        other = await it.create()
        run = it.desk.task(lead).run_id
        assert it.desk.known(caller, task) == task
        assert it.desk.known_run(caller, None) == run
        for given in (other, "t-0000000000000000000000zzzz"):
            with pytest.raises(NotAllowed):
                it.desk.known(caller, given)
        with pytest.raises(NotAllowed):
            it.desk.known_run(caller, it.desk.task(other).run_id)
        with pytest.raises(NotAllowed):
            await it.desk.cancel(caller, task)
        done = await it.desk.say(
            caller, task, "stop that", policy=MessagePolicy.STEER_NOW, corrective="it is wrong", key="k"
        )
        assert done.result["delivery"] == "send"
        agent = Caller(Role.AGENT, "agent", task, it.desk.task(task).lease_number)
        assert (await it.desk.say(agent, "coordinator", "done soon", key="m")).result["task"] == lead
        with pytest.raises(NotAllowed):
            it.desk.known(agent, lead)
        await it.desk.coordinate(OPERATOR, run, None)
        with pytest.raises(NotAllowed):
            it.desk.known(caller, task)


async def test_the_word_of_a_coordinator_about_itself_is_a_claim(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        lead, _, caller = await led(it)
        await it.desk.complete(caller, lead, "commit abc")
        ended = it.desk.task(lead).disposition
        assert ended is not None
        assert ended.source == "agent"


async def test_a_token_of_the_coordinators_turn_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        lead = await it.create(coordinator=True)
        await it.settle(lead)
        import hashlib

        token = it.ledger.token(hashlib.sha256(it.agent_token().encode()).hexdigest())
        assert token is not None
        assert token.role is Role.COORDINATOR


# -- children


async def parent_of(it: World, count: int) -> tuple[TaskId, list[TaskId]]:
    parent = await it.create()
    await it.settle(parent)
    return parent, [await another(it, parent, parent=parent) for _ in range(count)]


async def test_a_parent_is_woken_with_the_outcome_and_reference_of_each_child(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        parent, (first, second) = await parent_of(it, 2)
        await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "the children", subject="all")
        it.executor.finish()
        rest = await it.settle(parent)
        assert rest is not None
        assert rest.because is not None
        assert rest.because.rung is Rung.DEPENDENCY
        await it.desk.complete(OPERATOR, first, "commit one")
        assert parent in it.rung, "an end rings the parent"
        await it.settle(parent)
        assert len(prompts(it, parent)) == 1
        await it.desk.fail(OPERATOR, second, "no way")
        await it.settle(parent)
        told = prompts(it, parent)[-1]
        assert "reference: commit one" in told
        assert "is failed: no way" in told, "a child that failed has ended"


async def test_br_126_a_parent_that_waits_for_children_is_not_complete_before_they_ended(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        parent, (child,) = await parent_of(it, 1)
        await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "the child", subject="all")
        itself = Caller(Role.AGENT, "agent", parent, it.desk.task(parent).lease_number)
        with pytest.raises(Refused, match="have not ended"):
            await it.desk.complete(itself, parent, "commit one")
        with pytest.raises(Refused, match="have not ended"):
            await it.desk.ready(itself, parent, "all but the child", key="r")
        it.executor.finish(status="complete", summary="done", evidence="commit one")
        rest = await it.settle(parent)
        assert rest is not None
        assert rest.because is not None
        assert (rest.because.rung, it.desk.task(parent).state) == (Rung.DEPENDENCY, TaskState.ACTIVE)
        assert len(prompts(it, parent)) == 1
        await it.desk.complete(OPERATOR, child, "commit two")
        await it.settle(parent)
        assert "commit two" in prompts(it, parent)[-1], "it hears how they ended"
        it.executor.finish(status="complete", summary="done", evidence="commit two")
        await it.settle(parent)
        assert it.desk.task(parent).state is TaskState.COMPLETED


async def test_a_parent_that_was_ready_is_not_while_it_waits_for_children(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        parent, _children = await parent_of(it, 1)
        itself = Caller(Role.AGENT, "agent", parent, it.desk.task(parent).lease_number)
        await it.desk.ready(itself, parent, "all of it", key="r")
        assert it.desk.task(parent).ready_at is not None
        await it.desk.wait(itself, parent, WaitKind.CHILDREN, "the child", subject="all", key="w")
        assert it.desk.task(parent).ready_at is None


async def test_any_child_wakes_a_parent_once_and_an_earlier_end_resolves_at_once(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        parent, (first, second) = await parent_of(it, 2)
        await it.desk.complete(OPERATOR, first, "commit one")
        await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "any child", subject="any")
        await it.settle(parent)
        assert not it.desk.waits(parent), "it had ended before the wait was opened"
        assert it.desk.task(first).told_at is not None
        await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "any child", subject="any")
        await it.settle(parent)
        (wait,) = it.desk.waits(parent)
        assert wait.kind is WaitKind.CHILDREN, "the same end does not wake it again"
        await it.desk.cancel(OPERATOR, second)
        await it.settle(parent)
        assert not it.desk.waits(parent)
        it.executor.finish()
        await it.settle(parent)
        told = prompts(it, parent)[-1]
        assert (told.count("commit one"), told.count(second)) == (1, 1)
        await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "any child", subject="any")
        await it.settle(parent)
        (question,) = it.desk.waits(parent)
        assert (question.kind, "told of each" in question.question) == (WaitKind.HUMAN, True)


async def test_named_children_must_be_its_own(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        parent, (child,) = await parent_of(it, 1)
        other = await it.create()
        for given in (f"any {other}", "some", f"all {parent}"):
            with pytest.raises(Mistake):
                await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "q", subject=given)
        with pytest.raises(Mistake, match="no children"):
            await it.desk.wait(OPERATOR, other, WaitKind.CHILDREN, "q", subject="all")
        await it.desk.wait(OPERATOR, parent, WaitKind.CHILDREN, "q", subject=f"any {child}")
        assert it.desk.waits(parent)[0].subject == f"any {child}"


# -- caps


def end(it: World, **used: Any) -> None:
    """End the turn under way; its agent reports what it used."""
    it.executor.finish()
    command = it.executor.turns[-1]
    facts: CommandFacts = it.executor.journal[command]
    assert isinstance(facts.ending, Ending)
    assert (facts.mark, facts.performer) == (Mark.ENDED, Presence.GONE)
    it.executor.journal[command] = replace(facts, ending=replace(facts.ending, **used))


CAPS: dict[str, tuple[str, str, str]] = {
    "tokens": ("max-tokens", "100", "101"),
    "money": ("max-cost", "2500000", "2500001"),
    "hours": ("max-live", "3600", "7200"),
    "turns": ("max-attempts", "1", "2"),
    "tokens of the run": ("run-tokens", "100", "101"),
    "money of the run": ("run-cost", "2500000", "none"),
    "hours of the run": ("run-live", "3600", "7200"),
    "turns of the run": ("run-attempts", "1", "2"),
}


@pytest.mark.parametrize("name", CAPS)
async def test_a_cap_is_a_wait_that_names_it_and_ends_when_it_is_raised(tmp_path: Path, name: str) -> None:
    cap, low, high = CAPS[name]
    async with world(tmp_path) as it:
        task = await it.create()
        owner: TaskId | RunId = it.desk.task(task).run_id if cap.startswith("run") else task
        await it.desk.set_policy(OPERATOR, owner, {cap: low})
        await it.settle(task)
        it.clock.move(60 * MIN)
        end(it, tokens_in=60, tokens_out=40, cost=2_500_000, currency="EUR")
        await it.settle(task)
        (wait,) = it.desk.waits(task)
        assert (wait.kind, wait.subject) == (WaitKind.CAP, f"{owner} {cap}")
        assert "budget" in wait.question
        (item,) = it.desk.attention()
        assert item.mend == f"tenuto policy set {owner} {cap}=N"
        await it.desk.continue_(OPERATOR, task, anyway=True)
        for _ in range(3):
            await it.settle(task)
            it.clock.move(timedelta(seconds=4))
        assert len(it.executor.turns) == 2, "*anyway* passes it once"
        end(it)
        await it.settle(task)
        assert (len(it.executor.turns), len(it.desk.waits(task))) == (2, 1)
        raised = high if cap not in ("max-attempts", "run-attempts") else "3"
        await it.desk.set_policy(OPERATOR, owner, {cap: raised})
        await it.settle(task)
        assert (len(it.executor.turns), it.desk.waits(task)) == (3, ())


async def test_what_is_not_reported_is_not_counted_and_another_currency_is_said(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task = await it.started()
        end(it, cost=5, currency="EUR")
        await it.settle(task)
        end(it, cost=7, currency="USD")
        await it.settle(task)
        end(it)
        await it.settle(task)
        row = it.desk.task(task)
        assert (row.cost, row.currency, row.tokens) == (5, "EUR", 0)
        told = [event.fact.data for event in it.desk.events(0, 500, task_id=task) if event.fact.kind == "finding"]
        assert any("USD" in str(data.get("what")) for data in told)
