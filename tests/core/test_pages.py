"""What a page has to say about the next turn: told through the cycle, with an executor whose page is played."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.world import OPERATOR, Played, World, world

from tenuto.core import pages
from tenuto.engine.adopting import Adoption
from tenuto.engine.desk import Order
from tenuto.model.command import Accepted, Armed, CommandKind, Outcome, Unsent
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Rung
from tenuto.model.evidence import Asking, Mark, Observation, PageFacts, Presence, Rank
from tenuto.model.faults import Mistake, Refused
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import LeaseState, TaskState
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, AutoResume, WaitKind
from tenuto.ports import Halt, Turn
from tenuto.ports import Order as Ordered

pytestmark = pytest.mark.anyio
URL = "https://chat.example/c/{}"
NAME = "ext:browser"
READY = PageFacts(shown=True, state="ready", composer="empty", generating="no")


@dataclass
class Paged(Played):
    """A played executor with a page. `refusing` are reasons for which the next turns do not begin."""

    shows: PageFacts = READY
    refusing: list[str] = field(default_factory=list)
    chats: int = 0

    async def page(self, talk: Conversation) -> Observation:
        """What the page shows."""
        return Observation(self.name, Rank.PAGE, talk.identity, self.clock.now(), self.shows)

    def addressed(self, url: str) -> tuple[str, str] | None:
        """Addresses of the played site."""
        return ("lab", url.partition("?")[0]) if url.startswith("https://chat.example/c/") else None

    def account(self, agent: Agent) -> str | None:
        """One account."""
        return f"{agent.adapter}@{self.name}"

    async def perform(self, armed: Armed, order: Ordered) -> Outcome:
        """As ever; a turn in a fresh conversation gets an address, and a refusal says why."""
        if self.refusing:
            why = self.refusing.pop()
            self.outcome = lambda: Unsent(f"refused: {why}")
            done = await super().perform(armed, order)
            self.outcome = Accepted
            self.journal[armed.command.id] = replace(self.journal[armed.command.id], proof={"why": why})
            return done
        done = await super().perform(armed, order)
        named = next((scope for scope in armed.command.scopes if scope.startswith("conversation:https")), None)
        if named is None:
            self.chats += 1
        session = named.removeprefix("conversation:") if named is not None else URL.format(self.chats)
        proof = {"session": session, "turn": armed.command.marker}
        self.journal[armed.command.id] = replace(self.journal[armed.command.id], proof=proof)
        return done

    @property
    def prompts(self) -> list[str]:
        """What was sent."""
        return [order.prompt for order in self.orders.values() if isinstance(order, Turn)]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    def played(clock: object) -> Paged:
        return Paged(clock, NAME)  # type: ignore[arg-type]

    async with world(tmp_path, played=played) as it:
        executors = {NAME: it.executor}
        it.cycle._executors = executors
        it.desk._executors = executors
        it.desk.adopting._executors = executors
        yield it


def paged(it: World) -> Paged:
    assert isinstance(it.executor, Paged)
    return it.executor


async def made(it: World) -> TaskId:
    order = Order("chat", "Do it.", str(it.folder), Agent("lab", ("lab",), resumable=True, on=NAME))
    return TaskId(str((await it.desk.create(OPERATOR, order)).result["task"]))


def talk_of(it: World, task: TaskId) -> Conversation:
    return next(one for one in it.ledger.conversations(task) if one.state is LeaseState.ACTIVE)


@dataclass
class Troubled(Played):
    """The played host, which may be unable to take anything although it is there."""

    why: str | None = None

    def connected(self, conversation: str | None = None) -> bool:
        """Nothing is handed to it while it is in trouble."""
        return self.reachable and self.why is None

    def trouble(self) -> str | None:
        """As a test says."""
        return self.why


async def held(it: World, task: TaskId) -> Rung | None:
    rest = await it.settle(task)
    assert rest is not None
    return rest.because.rung if rest.because is not None else None


async def test_a_chat_is_called_by_its_address_once_a_turn_in_it_has_told(it: World) -> None:
    task = await made(it)
    await it.settle(task)
    assert talk_of(it, task).identity == URL.format(1)
    paged(it).finish(status="working")
    await it.settle(task)
    assert len(paged(it).turns) == 1, "a page is left alone for a moment"
    it.clock.move(timedelta(seconds=5))
    await it.settle(task)
    assert len(paged(it).turns) == 2
    assert {talk.identity for talk in it.ledger.conversations(task)} == {URL.format(1)}


@pytest.mark.parametrize("state", ["generating", "draft", "approval", "dialog", "error", "loading", "unknown"])
async def test_a_page_that_is_not_ready_holds_the_turn_back(it: World, state: str) -> None:
    task = await made(it)
    paged(it).shows = replace(READY, state=state, composer="foreign" if state == "draft" else "empty")
    assert await held(it, task) is Rung.PAGE
    assert paged(it).turns == ()
    paged(it).shows = READY
    await it.settle(task)
    assert len(paged(it).turns) == 1


async def test_what_is_ours_or_over_holds_nothing_back(it: World) -> None:
    for shows in (
        replace(READY, state="draft", composer="ours"),
        replace(READY, state="error", error="delivery_timeout", stale=True),
        PageFacts(shown=False),
        PageFacts(shown=None),
    ):
        paged(it).shows = shows
        before = len(paged(it).turns)
        await it.settle(await made(it))
        assert len(paged(it).turns) == before + 1, shows


async def test_a_person_at_the_page_comes_first(it: World) -> None:
    task = await made(it)
    paged(it).shows = replace(READY, typing=True)
    assert await held(it, task) is Rung.PAGE
    paged(it).shows = replace(READY, foreign_turns=1, foreign_age=30.0)
    assert await held(it, task) is Rung.PAGE
    paged(it).shows = replace(READY, foreign_turns=1, foreign_age=700.0)
    await it.settle(task)
    assert len(paged(it).turns) == 1


@pytest.mark.parametrize("state", ["login", "challenge"])
async def test_what_only_its_person_can_do_is_asked_once_and_ends_by_itself(it: World, state: str) -> None:
    task = await made(it)
    paged(it).refusing.append(state)  # no page was shown yet: the try itself finds out
    paged(it).shows = PageFacts(shown=False)
    await it.settle(task)
    paged(it).shows = replace(READY, state=state)
    for _ in range(3):
        it.clock.move(timedelta(minutes=10))
        assert await held(it, task) is Rung.PERMISSION
    (wait,) = it.ledger.waits(10, task_id=task)
    assert (wait.kind, wait.subject) == (WaitKind.PERMISSION, f"page:{state}")
    row = it.ledger.task(task)
    assert row is not None
    assert row.attempts == 0
    assert row.look_at is not None, "it is looked at again without anybody's ring"
    paged(it).shows = READY
    it.clock.move(timedelta(minutes=10))
    await it.settle(task)
    assert it.ledger.waits(10, task_id=task) == ()
    assert len(paged(it).under_way) == 1


@pytest.mark.parametrize("gone", [READY, PageFacts(shown=False)], ids=["taken away", "its page closed"])
@pytest.mark.parametrize("state", ["draft", "dialog", "approval", "login", "challenge"])
async def test_what_a_turn_was_refused_for_is_its_persons_until_it_is_gone(
    it: World, state: str, gone: PageFacts
) -> None:
    task = await made(it)
    paged(it).refusing.append(state)
    paged(it).shows = PageFacts(shown=None)
    await it.settle(task)
    paged(it).shows = replace(READY, state=state, composer="foreign" if state == "draft" else "empty")
    for _ in range(3):
        it.clock.move(timedelta(minutes=10))
        assert await held(it, task) is Rung.PERMISSION
    (wait,) = it.ledger.waits(10, task_id=task)
    assert (wait.kind, wait.subject) == (WaitKind.PERMISSION, f"page:{state}")
    if state in pages.STANDS:
        assert f"refused: {state}" in wait.question, "what the executor itself said is told"
    assert not paged(it).under_way
    paged(it).shows = gone
    it.clock.move(timedelta(minutes=10))
    await it.settle(task)
    assert it.ledger.waits(10, task_id=task) == ()
    assert len(paged(it).under_way) == 1


async def test_a_full_conversation_is_left_for_a_fresh_one_with_a_hand_over(it: World) -> None:
    task = await made(it)
    await it.settle(task)
    paged(it).finish(status="working", progress="half of it", next="the other half")
    paged(it).shows = replace(READY, state="full")
    # Only the page of the full one is full.
    real = paged(it).page

    async def page(talk: Conversation) -> Observation:
        seen = await real(talk)
        return seen if talk.identity == URL.format(1) else replace(seen, facts=READY)

    paged(it).page = page  # type: ignore[method-assign]
    await it.settle(task)
    it.clock.move(timedelta(seconds=5))
    await it.settle(task)
    assert len(paged(it).turns) == 2
    assert talk_of(it, task).identity == URL.format(2)
    assert "Do it." in paged(it).prompts[1]
    assert "half of it" in paged(it).prompts[1]


async def test_a_turn_that_a_dead_conversation_refused_is_made_in_a_fresh_one(it: World) -> None:
    task = await made(it)
    await it.settle(task)
    paged(it).finish(status="working")
    paged(it).refusing.append("dead")
    await it.settle(task)
    it.clock.move(timedelta(seconds=5))
    await it.settle(task)
    it.clock.move(timedelta(minutes=1))
    await it.settle(task)
    assert talk_of(it, task).identity == URL.format(2)
    assert it.ledger.waits(10, task_id=task) == ()


async def test_a_turn_that_was_asked_for_once_is_made_in_a_fresh_conversation_too(it: World) -> None:
    """Nobody's asking is spent on a conversation that is full: adopted and manual, as it is."""
    done = await it.desk.adopting.adopt_chat(OPERATOR, adoption(URL.format(7)), str(it.folder), None)
    task = TaskId(str(done.result["task"]))
    await it.settle(task)
    await it.desk.continue_(OPERATOR, task)
    paged(it).refusing.append("full")
    await it.settle(task)
    row = it.ledger.task(task)
    assert row is not None
    assert row.look_at is not None, "it is looked at when its time has come, and not only when somebody rings"
    assert row.look_at <= it.clock.now() + timedelta(seconds=10)
    it.clock.move(timedelta(seconds=10))
    await it.settle(task)
    it.clock.move(timedelta(minutes=1))
    await it.settle(task)
    assert [talk.state for talk in it.ledger.conversations(task)].count(LeaseState.ACTIVE) == 1
    assert talk_of(it, task).identity != URL.format(7)
    paged(it).finish(status="complete", evidence="done")
    await it.settle(task)
    row = it.ledger.task(task)
    assert row is not None
    assert row.state is TaskState.COMPLETED


async def test_spent_usage_is_the_accounts_limit_until_its_reset(it: World) -> None:
    task, other = await made(it), await made(it)
    resets = it.clock.now() + timedelta(hours=2)
    paged(it).shows = replace(READY, state="limit", error="usage_limit", resets="2 PM", resets_at=resets)
    assert await held(it, task) is Rung.LIMIT
    (limit,) = it.ledger.limits(10)
    assert limit.account == f"lab@{NAME}"
    assert limit.resets_at == resets
    paged(it).shows = READY
    assert await held(it, other) is Rung.LIMIT
    assert paged(it).turns == ()
    it.clock.move(timedelta(hours=3))
    await it.settle(task)
    assert len(paged(it).turns) == 1


def adoption(url: str, auto: AutoResume = AutoResume.MANUAL) -> Adoption:
    return Adoption(Agent("chat", ("chat",), resumable=True, on=NAME), url, auto_resume=auto)


async def test_a_chat_that_is_there_is_adopted_without_a_word_and_gone_on_with_when_asked(it: World) -> None:
    done = await it.desk.adopting.adopt_chat(OPERATOR, adoption(URL.format(7) + "?model=x"), str(it.folder), None)
    task = TaskId(str(done.result["task"]))
    assert await held(it, task) is Rung.MANUAL
    assert paged(it).turns == ()
    await it.desk.continue_(OPERATOR, task)
    await it.settle(task)
    assert talk_of(it, task).identity == URL.format(7)
    paged(it).finish(status="complete", evidence="done")
    await it.settle(task)
    row = it.ledger.task(task)
    assert row is not None
    assert row.state is TaskState.COMPLETED
    assert row.agent.adapter == "lab"


async def test_a_chat_is_adopted_once_and_only_by_the_address_of_one(it: World) -> None:
    await it.desk.adopting.adopt_chat(OPERATOR, adoption(URL.format(7)), str(it.folder), None)
    with pytest.raises(Refused, match="works in that chat already"):
        await it.desk.adopting.adopt_chat(OPERATOR, adoption(URL.format(7)), str(it.folder), None)
    with pytest.raises(Mistake, match="no conversation"):
        await it.desk.adopting.adopt_chat(OPERATOR, adoption("https://chat.example/"), str(it.folder), None)


async def test_a_stopped_tasks_answer_is_stopped_once_and_what_it_says_later_wakes_nothing(it: World) -> None:
    task = await made(it)
    await it.settle(task)
    await it.desk.cancel(OPERATOR, task)
    await it.settle(task)
    (sent, halt) = paged(it).orders
    order = paged(it).orders[halt]
    assert isinstance(order, Halt)
    assert order.target == sent
    it.clock.move(timedelta(minutes=5))
    await it.settle(task)
    assert list(paged(it).orders) == [sent, halt], "one that is under way is not joined by another"
    paged(it).finish(sent, status="working")
    paged(it).finish(halt, block=False)
    await it.settle(task)
    it.clock.move(timedelta(hours=1))
    await it.settle(task)
    assert len(paged(it).turns) == 1
    assert len(paged(it).orders) == 2


async def test_a_stop_that_was_not_pressed_is_tried_again_and_one_that_cannot_be_is_its_persons(it: World) -> None:
    task = await made(it)
    await it.settle(task)
    paged(it).outcome = lambda: Unsent("the page shows another conversation")
    await it.desk.cancel(OPERATOR, task)
    for _ in range(4):
        await it.settle(task)
        it.clock.move(timedelta(minutes=1))
    halts = [order for order in paged(it).orders.values() if isinstance(order, Halt)]
    assert 2 <= len(halts) <= 4, "with longer and longer pauses"
    (wait,) = it.ledger.waits(10, task_id=task)
    assert "Press Stop in its page" in wait.question


async def test_nobody_stops_an_answer_whose_task_goes_on(it: World) -> None:
    """A pause, a turn past its time, a task that was said to be done: the chat writes to its end."""
    task = await made(it)
    await it.settle(task)
    await it.desk.pause(OPERATOR, task)
    it.clock.move(timedelta(hours=13))
    await it.settle(task)
    assert [type(order).__name__ for order in paged(it).orders.values()] == ["Turn"]


async def test_a_browser_that_is_away_when_its_supervisor_comes_back_has_forgotten_nothing(it: World) -> None:
    task = await made(it)
    await it.settle(task)
    (command,) = paged(it).turns
    known = paged(it).journal[command]
    nobody = replace(known, mark=Mark.NONE, performer=Presence.UNKNOWN, agent=Presence.UNKNOWN, proof={})
    paged(it).journal[command] = replace(nobody, unreachable="ext:browser is not connected")
    assert await held(it, task) is Rung.LIVE
    assert it.ledger.waits(10, task_id=task) == ()
    paged(it).journal[command] = known
    paged(it).finish(status="complete", evidence="done")
    await it.settle(task)
    row = it.ledger.task(task)
    assert row is not None
    assert row.state is TaskState.COMPLETED


async def test_a_refusal_that_only_a_person_can_mend_asks_once(it: World) -> None:
    task = await made(it)
    paged(it).refusing.append("unknown_page")
    await it.settle(task)
    command = paged(it).journal[paged(it).turns[0]]
    assert command.mark is Mark.FAILED
    assert it.ledger.waits(10, task_id=task) == (), "it may pass, and is tried again"


async def test_a_card_in_mid_turn_is_asked_of_its_person_once_and_by_no_rule(it: World) -> None:
    """Nobody here may press it, whatever a rule allows; once it is gone nobody waits."""
    task = await made(it)
    await it.settle(task)
    (command,) = paged(it).under_way

    async def shown(*cards: str) -> list[tuple[str | None, str]]:
        asks = tuple(Asking(card, "page", f"its page asks for approval, card {card}", card) for card in cards)
        paged(it).journal[command] = replace(paged(it).journal[command], asks=asks)
        await it.settle(task)
        assert it.ledger.permissions(task, 5) == ()
        return [(wait.subject, wait.question) for wait in it.ledger.waits(10, task_id=task)]

    first = [("page:approval:one", "its page asks for approval, card one")]
    assert await shown("one") == first
    assert await shown("one") == first
    (item,) = it.desk.attention()
    assert item.kind == "permission wait"
    assert "in the browser" in item.mend, "no command of ours answers it"
    assert await shown("two") == [("page:approval:two", "its page asks for approval, card two")]
    assert await shown() == []
    await shown("three")
    paged(it).finish(status="complete", evidence="done")
    await it.settle(task)
    assert it.ledger.waits(10, task_id=task) == ()


async def test_a_claim_made_in_a_page_is_checked_by_the_host_though_the_browser_is_closed(it: World) -> None:
    host = Troubled(it.clock, "host", why="its journal cannot be written")
    check = Acceptance(AcceptanceKind.CHECK, ("make", "test"))
    order = Order("chat", "Do it.", str(it.folder), Agent("lab", ("lab",), resumable=True, on=NAME), acceptance=check)
    task = TaskId(str((await it.desk.create(OPERATOR, order)).result["task"]))
    await it.settle(task)
    paged(it).finish(status="complete", evidence="the tests pass")
    paged(it).reachable = False

    async def unjudged(why: str) -> None:
        it.clock.move(timedelta(seconds=5))
        rest = await it.settle(task)
        assert rest is not None
        assert rest.because is not None
        assert rest.because.rung is Rung.EXECUTOR
        assert rest.because.sentence == f"no program can check its claim now: {why}"
        assert not any(one.kind is CommandKind.CHECK for one in it.ledger.commands(50, task_id=task))

    await unjudged("the host that runs programs is not connected")
    it.cycle._executors = {NAME: it.executor, "host": host}
    await unjudged("its journal cannot be written")
    host.why, host.reachable = None, False
    await unjudged("the host that runs programs is not connected")
    host.reachable = True
    it.clock.move(timedelta(seconds=5))
    await it.settle(task)
    (sent,) = host.under_way
    host.finish(sent)
    await it.settle(task)
    assert it.desk.task(task).state is TaskState.COMPLETED
    assert len(paged(it).turns) == 1
