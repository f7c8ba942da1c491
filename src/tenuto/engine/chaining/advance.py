"""The one step of a chain: record what is not recorded, then give the next unit away, as far as that may be now.

Everybody who wants a chain to go on calls it: the agent that hands off, the operator, and the supervisor itself.
Whoever comes second finds it done, because links are unique in the registry. A chain that may not go on says why, and
when it is looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from tenuto.core import chain as rules
from tenuto.core.chain import Resolution
from tenuto.engine.chaining.asked import AT_WORK, OUT_OF_ORDER, PRESSED, TRIES, WAITS, HandOff, Stepped
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.clearing import Clearing
from tenuto.engine.chaining.merging import Merging
from tenuto.engine.chaining.phasing import Phasing
from tenuto.engine.chaining.preparing import Preparing
from tenuto.engine.chaining.recording import Recording, Settled, came_to
from tenuto.engine.chaining.sweeping import Sweeping
from tenuto.engine.chaining.units import Units
from tenuto.engine.spawning import Source, Spawn, Spawning
from tenuto.model.chain import Board, Chain, Link, Outcome, Standing
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, Refused
from tenuto.model.ids import ChainId, LinkId, TaskId
from tenuto.model.lifecycle import ChainEvent, ChainState
from tenuto.model.snapshot import Role
from tenuto.model.work import Task


@dataclass(frozen=True)
class Ahead:
    """What has to be there before a task begins, and before the next unit may."""

    preparing: Preparing
    phasing: Phasing
    sweeping: Sweeping
    clearing: Clearing


class Advance:
    """The step, and what it is made of."""

    def __init__(
        self, books: Books, units: Units, recording: Recording, spawning: Spawning, merging: Merging, ahead: Ahead
    ) -> None:
        self._ahead = ahead
        self._books = books
        self._units = units
        self._recording = recording
        self._spawning = spawning
        self._merging = merging

    async def step(self, chain_id: ChainId, *, asked: bool, of: TaskId | None, now_on: bool) -> Stepped:
        """`of`: on behalf of this task, whose successor it must be; `now_on`: also while its task still lives."""
        async with self._books.turn(chain_id):
            for _ in range(TRIES):
                chain = self._books.chain(chain_id)
                link = self._books.last(chain)
                if link is not None and of is not None and link.task_id != of:
                    return Stepped(chain, link.task_id, "it was handed over before")
                stepped = await self._once(chain, link, asked=asked, now_on=now_on)
                if stepped is not None:
                    return await self._prepared(stepped)
        raise Conflict("the chain is changing too fast; try again", field="chain")

    async def _once(self, chain: Chain, link: Link | None, *, asked: bool, now_on: bool) -> Stepped | None:
        """One commit of a step; None: look again."""
        if link is None:
            return await self.onward(chain, None, None)
        snapshot = self._books.snapshot(link.task_id)
        task = snapshot.task
        if (command := self._ahead.preparing.open(snapshot)) is not None:
            return await self._ahead.preparing.go(chain, link, snapshot, command)
        if link.command_id is not None and link.recorded_at is None:
            return await self._settled(chain, link, now_on=now_on, asked=asked)
        if link.recorded_at is None:
            if not task.terminal:
                return await self._at_work(chain, task, f"unit {link.unit} is being worked on")
            done = str(task.state) == "completed"
            if not done and await self._merging.dropped(link, f"its task is {task.state}"):
                return None
            word = came_to(chain, link, task)
            mandate = self._merging.proposals.mandate(chain.id) if word.outcome is Outcome.DONE else None
            if mandate is not None:
                brought = await self._merging.step(chain, link, mandate, word, asked=asked)
                if not isinstance(brought, HandOff):
                    return brought
                word = brought
            if chain.phases and word.outcome is Outcome.DONE:
                landed = await self._ahead.phasing.bring(chain, link, word, asked=asked)
                if not isinstance(landed, HandOff):
                    return landed
                word = landed
            await self._recording.arm(chain, link, snapshot, word)
            return None
        if (why := self._given_up(chain, link)) is not None and not asked:
            return await self._left_alone(chain, why)
        if not (task.terminal or now_on or link.handed_at is not None):
            return await self._at_work(chain, task, f"unit {link.unit} is recorded; its task has not handed over")
        return await self.onward(chain, link, None)

    async def _prepared(self, stepped: Stepped) -> Stepped:
        """What a task that was just made needs and that is quick: its source is told who has the unit."""
        link = self._books.last(stepped.chain)
        if link is not None and link.recorded_at is None:
            snapshot = self._books.snapshot(link.task_id)
            if (command := self._ahead.preparing.open(snapshot, quick=True)) is not None:
                await self._ahead.preparing.go(self._books.chain(stepped.chain.id), link, snapshot, command)
        return stepped

    async def _at_work(self, chain: Chain, task: Task, why: str) -> Stepped:
        """Leave a chain to its task; its own moment is put off where it has come."""
        if chain.look_at is not None and chain.look_at <= self._books.clock.now():
            await self._books.put(replace(chain, look_at=self._books.clock.now() + AT_WORK), Commit(), why)
        return Stepped(self._books.chain(chain.id), task.id, why)

    def _given_up(self, chain: Chain, link: Link) -> str | None:
        """Why an open chain goes on only when somebody asks it; None: it goes on by itself, or it has ended."""
        if chain.state is not ChainState.OPEN:
            return None
        if link.outcome is Outcome.GIVEN_UP:
            return chain.reason or "its last task was stopped by a person"
        return self._merging.given_up(chain, link)

    async def _left_alone(self, chain: Chain, why: str) -> Stepped | None:
        """Nothing comes of looking again, but for worktrees that are to be taken away."""
        moment = self._ahead.clearing.moment(chain)
        if chain.look_at is None or (moment is not None and chain.look_at > self._books.clock.now()):
            return Stepped(chain, None, why)
        return await self._books.put(replace(chain, look_at=moment), Commit(), why)

    async def _settled(self, chain: Chain, link: Link, *, now_on: bool, asked: bool) -> Stepped | None:
        """Write the record at its source; where it stands, all that follows from it is one transaction."""
        match await self._recording.perform(chain, link):
            case Settled(counted, recorded, commit, _) if (
                not asked and (why := self._merging.given_up(chain, recorded)) is not None
            ):
                moment = self._ahead.clearing.moment(counted)
                stopped = replace(counted, look_at=moment, reason=why[:2000], asks=why[:2000])
                return await self._books.put(stopped, commit, why)
            case Settled(counted, recorded, commit, _) if recorded.outcome is Outcome.GIVEN_UP and not asked:
                why = f"task {link.task_id} was stopped by a person; to go on: tenuto chain advance {chain.id}"
                moment = self._ahead.clearing.moment(counted)
                return await self._books.put(replace(counted, look_at=moment, reason=why), commit, why)
            case Settled(counted, recorded, commit, ended) if ended or now_on or link.handed_at is not None:
                return await self.onward(counted, recorded, commit)
            case Settled(counted, _, commit, _):
                waiting = replace(counted, revision=chain.revision + 1, look_at=self._books.clock.now() + AT_WORK)
                if not await self._books.commit(commit.then(Commit(puts=(waiting,)))):
                    return None
                return Stepped(waiting, link.task_id, f"unit {link.unit} is recorded; its task has not handed over")
            case other:
                return other

    async def onward(self, chain: Chain, link: Link | None, before: Commit | None) -> Stepped | None:
        """Give the next unit away, or say why not; `before` goes into the same transaction."""
        commit, now = before or Commit(), self._books.clock.now()
        if chain.state is not ChainState.OPEN:
            over = replace(chain, look_at=self._ahead.clearing.moment(chain))
            return await self._books.put(over, commit, chain.reason or str(chain.state))
        try:
            board = await self._units.board(chain.source)
        except (Refused, Mistake) as why:
            return await self._books.wait(chain, commit, str(why), OUT_OF_ORDER)
        if (halt := self._merging.halts(chain)) is not None:
            return await self._books.wait(chain, commit, halt, WAITS)
        open_ = await self._ahead.phasing.held(chain, commit)
        if not isinstance(open_, Chain):
            return open_
        chain = open_
        if (cap := rules.capped(chain, self._units.cost(chain), now)) is not None:
            return await self._end(chain, link, commit, ChainEvent.CAP_REACHED, cap)
        found = self._units.resolve(chain, board, link)
        match found.standing:
            case Standing.COMPLETE:
                return await self._end(chain, link, commit, ChainEvent.EXHAUSTED, found.because)
            case Standing.BLOCKED if chain.reason != found.because:
                swept, note = await self._ahead.sweeping.noted(chain, link)
                return await self._books.wait(swept, commit.then(note), found.because, WAITS)
            case Standing.BLOCKED | Standing.IN_FLIGHT:
                return await self._books.wait(chain, commit, found.because, WAITS)
            case Standing.ELIGIBLE if chain.phases and found.unit != found.remaining[0]:
                order = f"its phases are in strict order, and unit {found.remaining[0]} before {found.unit} is not done"
                return await self._books.wait(chain, commit, order, WAITS)
            case Standing.ELIGIBLE:
                return await self._give(chain, link, commit, board, found)
            case _ as never:
                assert_never(never)

    async def _end(
        self, chain: Chain, link: Link | None, commit: Commit, event: ChainEvent, why: str
    ) -> Stepped | None:
        """The chain is over: every unit is looked at once more, and its worktrees in the next round."""
        swept, note = await self._ahead.sweeping.noted(chain, link)
        return await self._books.end(swept, commit.then(note), event, why)

    async def _give(
        self, chain: Chain, link: Link | None, commit: Commit, board: Board, found: Resolution
    ) -> Stepped | None:
        envelope = self._units.envelope(chain, board, found, link)
        name = found.unit or ""
        key = rules.cursor_key(envelope.cursor)
        twin = self._books.ledger.link_keyed(chain.id, key)
        if twin is not None:
            why = f"the source did not advance since unit {name} was given to task {twin.task_id}"
            return await self._books.wait(chain, commit, why, WAITS)
        attempt = self._books.ledger.tried(chain.id).get(name, 0) + 1
        unit = board.unit(name)
        title = unit.title if unit is not None else ""
        asked = Spawn(
            prompt=rules.render(envelope, attempt, title)
            + self._merging.told(chain, name)
            + self._ahead.preparing.told(chain, name, chain.position + 1),
            title=f"{name}: {title}" if title else name,
            playbook=chain.playbook,
            run=chain.run_id,
            parent=link.task_id if link is not None else None,
            cwd=chain.cwd,
            agent=chain.agent,
            worktree=self._ahead.preparing.path(chain, name, chain.position + 1),
        )
        async with self._spawning.lock:
            now = self._books.clock.now()
            try:
                made = self._spawning.made(Source(Role.OPERATOR, None, chain.id), asked, now)
            except Mistake as why:
                return await self._books.wait(chain, commit, f"the next task cannot be made: {why}", PRESSED)
            following = Link(
                id=LinkId(self._books.mint.new("link")),
                revision=1,
                chain_id=chain.id,
                position=chain.position + 1,
                predecessor=link.task_id if link is not None else None,
                task_id=made.task_id,
                unit=name,
                place=self._units.name(chain.source),
                key=key,
                attempt=attempt,
                made_at=now,
            )
            moved = replace(
                chain,
                revision=chain.revision + 1,
                position=following.position,
                look_at=now,  # until what it needs is there
                reason="; ".join(found.notes) or None,
                asks=None,
            )
            data: dict[str, Scalar] = {"chain": chain.id, "unit": name, "position": following.position}
            fact = Fact(FactKind.CHAIN_ADVANCED, chain.run_id, made.task_id, data)
            whole = commit.then(made.commit).then(Commit(puts=(moved, following), facts=(fact,)))
            whole = whole.then(self._ahead.preparing.plan(chain, following, now))
            self._books.fuse.burn("advance.before_commit")
            done = await self._books.commit(whole)
        if not done:
            return None
        self._books.fuse.burn("advance.committed")
        return Stepped(moved, made.task_id, f"unit {name} was given to task {made.task_id}")
