"""Chains: what became of a unit is recorded at its source, and the next unit is given to the next task, once.

There is one advance, and everybody calls it: the agent that hands off, the operator, and the supervisor itself when a
unit's task has ended. The record is a command, armed before the source is touched; once it is proven to stand there,
one transaction settles it, counts, moves the cursor and makes the successor. Whoever comes second finds it done. A
record may be tried again after any crash, because a source takes one marker once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never
from weakref import WeakValueDictionary

from tenuto.core import chain as rules
from tenuto.core import settle
from tenuto.core.chain import Checks, Finding, NotAdvanced, Resolution
from tenuto.core.draft import Draft
from tenuto.engine.calling import Caller, Done
from tenuto.engine.concern import concerned
from tenuto.engine.cycle import Cycle
from tenuto.engine.spawning import Source, Spawn, Spawning
from tenuto.model.chain import (
    ATTEMPT_CAPS,
    GOAL_BYTES,
    Blocker,
    Board,
    Caps,
    Chain,
    Envelope,
    Foreign,
    Link,
    Outcome,
    OutOfOrder,
    Parent,
    Record,
    Recorded,
    SourcePlace,
    Standing,
    UnitState,
    canonical_repo,
    permits,
    said,
)
from tenuto.model.change import Busy, Commit, Committed, Key, KeyConflict, NotLeader, Replayed, Stale
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, NoSupervisor, NotFound, OutOfReach, Refused, StorageFull
from tenuto.model.ids import ChainId, CommandId, LinkId, RunId, TaskId
from tenuto.model.lifecycle import CHAIN, ChainEvent, ChainState, CommandEvent, CommandState, RunState, TaskEvent
from tenuto.model.policy import Policy
from tenuto.model.snapshot import Role, Snapshot
from tenuto.model.work import AcceptanceKind, Agent, AutoResume, DispositionSource, Run, Task
from tenuto.ports import Clock, Fuse, Ledger, Minter, UnitSource, UnitSources

#: What carries out a record; it is no executor of turns.
SOURCE = "source"
TRIES = 8
LISTED = 500
EVERY = 100_000
#: A source that is out of order, and a chain that waits for its source, are looked at again after these.
OUT_OF_ORDER, WAITS, PRESSED = timedelta(seconds=5), timedelta(seconds=15), timedelta(seconds=30)
#: A chain whose task is at work is looked at when that one ends; and after this, should nobody have rung.
AT_WORK = timedelta(minutes=10)

_LOG = logging.getLogger("tenuto.chains")


@dataclass(frozen=True)
class Start:
    """What `tenuto chain start` asks for."""

    goal: str
    repo: str
    selector: str
    source: SourcePlace
    cwd: str
    caps: Caps
    attempt_cap: int = 10
    authorization: tuple[tuple[str, bool], ...] = ()
    agent: Agent | None = None
    playbook: str | None = None
    title: str = ""


@dataclass(frozen=True)
class HandOff:
    """What an agent, or the operator, says of a unit. `only_record`: the next task is not to be made yet."""

    outcome: Outcome
    evidence: str | None = None
    blocker: Blocker | None = None
    checks: Checks = Checks.NONE
    only_record: bool = False


@dataclass(frozen=True)
class Stepped:
    """Where a chain stands after a step: the task that works now, or why nobody does."""

    chain: Chain
    task_id: TaskId | None
    because: str


@dataclass(frozen=True)
class Foreseen:
    """What the next step would be; nothing was done."""

    chain: Chain
    link: Link | None
    found: Resolution
    envelope: Envelope | None
    prompt: str | None


@dataclass(frozen=True)
class Helpers:
    """What the desk lends: who leads, who has asked before, whose word is late, and whom to ring."""

    must_lead: Callable[[], None]
    replay: Callable[[Caller, str | None, str, object], Done | None]
    key: Callable[[Caller, str, str | None, object, Mapping[str, Scalar]], Key | None]
    in_time: Callable[[Caller, Snapshot, str], Awaitable[None]]
    ring: Callable[[TaskId], None]


class Chains:
    """The verbs of chains, and the one step they share."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        clock: Clock,
        minter: Minter,
        slots: int,
        defaults: Policy,
        spawning: Spawning,
        sources: UnitSources | None,
        fuse: Fuse,
        helpers: Helpers,
    ) -> None:
        self._ledger = ledger
        self._cycle = cycle
        self._clock = clock
        self._mint = minter
        self._slots = slots
        self._defaults = defaults
        self._spawning = spawning
        self._sources = sources
        self._fuse = fuse
        self._help = helpers
        self._turns: WeakValueDictionary[ChainId, asyncio.Lock] = WeakValueDictionary()

    # -- verbs that change something

    async def start(self, caller: Caller, asked: Start, key: str | None) -> Done:
        """Make a chain and its first task. Raises Mistake with the field to mend; what is refused has made nothing."""
        caller.must_operate()
        self._help.must_lead()
        if (replay := self._help.replay(caller, key, "chain start", asked)) is not None:
            return replay
        asked = self._checked(asked)
        await self._board(asked.source)
        now, new = self._clock.now(), self._mint.new
        title = (asked.title.strip() or asked.goal.strip().splitlines()[0])[:200]
        run = Run(RunId(new("run")), 1, title, RunState.OPEN, AutoResume.ON, self._defaults, None, now)
        chain = Chain(
            id=ChainId(new("chain")),
            revision=1,
            run_id=run.id,
            state=ChainState.OPEN,
            goal=asked.goal,
            repo=asked.repo,
            selector=asked.selector,
            source=asked.source,
            authorization=asked.authorization,
            caps=asked.caps,
            attempt_cap=asked.attempt_cap,
            cwd=asked.cwd,
            created_at=now,
            agent=asked.agent,
            playbook=asked.playbook,
            look_at=now,
        )
        result: dict[str, Scalar] = {"chain": chain.id, "run": run.id}
        facts = (
            Fact(FactKind.RUN_CREATED, run.id, None, {"title": title}),
            Fact(FactKind.CHAIN_STARTED, run.id, None, {"chain": chain.id, "by": caller.name}),
        )
        commit = Commit(puts=(run, chain), facts=facts, key=self._help.key(caller, "chain start", key, asked, result))
        outcome = await self._ledger.commit(commit)
        if isinstance(outcome, Replayed):
            return Done(outcome.result, replayed=True)
        if not isinstance(outcome, Committed):
            raise Conflict("something changed meanwhile; try again")
        stepped = await self.step(chain.id, asked=True)
        return Done({**result, "task": stepped.task_id, "because": stepped.because})

    async def hand_off(self, caller: Caller, task_id: TaskId, word: HandOff) -> Done:
        """Record what became of a task's unit, and give the next one to its successor: once, however often it is said.

        A claim that its acceptance has to judge is only made; the supervisor hands over when it is proven.
        """
        caller.may(task_id)
        self._help.must_lead()
        link = self._ledger.link_of(task_id)
        if link is None:
            raise Refused("this task has no unit of a chain", field="task")
        if (why := rules.may_hand_off(word.outcome, word.evidence, word.blocker, word.checks)) is not None:
            raise Refused(why.why, see=why.change)
        async with self._turn(link.chain_id):
            for _ in range(TRIES):
                snapshot = self._snapshot(task_id)
                link = self._ledger.link_of(task_id) or link
                if link.outcome is not None:
                    said_before = link.outcome is word.outcome is Outcome.DONE and not word.only_record
                    if not said_before or snapshot.task.terminal or await self._claimed(snapshot, word):
                        break
                    continue
                if not snapshot.task.terminal:
                    await self._help.in_time(caller, snapshot, "handoff")
                elif snapshot.task.disposition is not None and caller.role is not Role.OPERATOR:
                    raise Refused(f"the task is {snapshot.task.state}; the supervisor records that", field="task")
                if _judged(snapshot.task, word):
                    if await self._claimed(snapshot, word):
                        return Done({"chain": link.chain_id, "task": task_id, "successor": None, "judged": True})
                    continue
                if await self._arm(self._chain(link.chain_id), link, snapshot, word):
                    break
            else:
                raise Conflict("the task is changing too fast; try again", field="task")
        link = self._ledger.link_of(task_id) or link
        if link.outcome is not word.outcome:
            raise Conflict(f"what became of this unit is recorded already: {link.outcome}", field="outcome")
        await self._step(link.chain_id, asked=False, of=task_id, now_on=not word.only_record)
        return Done(self._told(task_id))

    async def advance(self, caller: Caller, given: ChainId) -> Done:
        """Make one step now: what the supervisor would do by itself, and what only a person may ask for."""
        caller.must_operate()
        self._help.must_lead()
        stepped = await self.step(given, asked=True)
        return Done({"chain": given, "task": stepped.task_id, "state": stepped.chain.state, "because": stepped.because})

    async def stop(self, caller: Caller, given: ChainId, reason: str) -> Done:
        """End a chain: no further unit is begun. Its task goes on, and what it comes to is recorded."""
        caller.must_operate()
        self._help.must_lead()
        async with self._turn(given):
            for _ in range(TRIES):
                chain = self._chain(given)
                if chain.state is not ChainState.OPEN:
                    return Done({"chain": given, "state": chain.state, "changed": False})
                ended = self._ended(chain, ChainEvent.STOPPED, reason or f"stopped by {caller.name}")
                link = self._last(chain)
                if link is not None and link.recorded_at is None:
                    ended = replace(ended, look_at=self._clock.now() + AT_WORK)
                if await self._commit(Commit(puts=(ended,), facts=(self._fact(FactKind.CHAIN_ENDED, ended),))):
                    return Done({"chain": given, "state": ended.state, "changed": True})
        raise Conflict("the chain is changing too fast; try again", field="chain")

    # -- verbs that look

    def chains(self, *, unfinished: bool = False) -> tuple[Chain, ...]:
        """Newest first."""
        return self._ledger.chains(LISTED, unfinished=unfinished)

    def links(self, given: ChainId) -> tuple[Link, ...]:
        """What the chain gave to tasks, newest first."""
        return self._ledger.links(given, LISTED)

    def link_of(self, task_id: TaskId) -> Link:
        """The link of a task; Refused where it has no unit."""
        link = self._ledger.link_of(task_id)
        if link is None:
            raise Refused("this task has no unit of a chain", field="task")
        return link

    async def foresee(self, given: ChainId) -> Foreseen:
        """What the next step would be, from what is durable now."""
        chain, link = self._chain(given), self._last(self._chain(given))
        board = await self._board(chain.source)
        found = self._resolve(chain, board, None)
        if link is not None and link.recorded_at is None:
            because = f"unit {link.unit} is with task {link.task_id}, and what became of it is not recorded"
            return Foreseen(chain, link, replace(found, because=because), None, None)
        if found.unit is None or chain.state is not ChainState.OPEN:
            return Foreseen(chain, link, found, None, None)
        envelope = self._envelope(chain, board, found, link)
        unit = board.unit(found.unit)
        attempt = self._ledger.tried(chain.id).get(found.unit, 0) + 1
        return Foreseen(chain, link, found, envelope, rules.render(envelope, attempt, unit.title if unit else ""))

    async def sweep(self, given: ChainId) -> tuple[Finding, ...]:
        """Every unit with the evidence that decides how it stands; nothing is put right."""
        chain = self._chain(given)
        board = await self._board(chain.source)
        shipped = {
            link.unit: f"task {link.task_id}"
            for link in self._ledger.links(given, EVERY)
            if link.outcome is Outcome.DONE and link.recorded_at is not None
        }
        claimed = {unit: str(task) for unit, task in self._ledger.claimed(self._name(chain.source)).items()}
        return rules.sweep(board, claimed, shipped, chain.attempt_cap)

    # -- by itself

    async def tend(self) -> datetime | None:
        """Step every chain whose moment has come or whose task has ended; when the next moment is."""
        soonest: datetime | None = None
        for chain in self._ledger.tended():
            if self._due(chain):
                try:
                    chain = (await self.step(chain.id, asked=False)).chain
                except (OutOfReach, StorageFull, NoSupervisor):
                    raise
                except Exception:  # noqa: BLE001 - one chain's fault must not end the others' night
                    _LOG.exception("tending %s failed", chain.id)
                    chain = replace(chain, look_at=self._clock.now() + PRESSED)
            if chain.look_at is not None:
                soonest = chain.look_at if soonest is None else min(soonest, chain.look_at)
        return soonest

    def _due(self, chain: Chain) -> bool:
        if chain.look_at is not None and chain.look_at <= self._clock.now():
            return True
        link = self._last(chain)
        if link is None:
            return False
        task = self._ledger.task(link.task_id)
        ended = task is not None and task.terminal
        apart = link.handed_at is None and link.outcome is not Outcome.GIVEN_UP
        return ended and (link.recorded_at is None or apart)

    # -- the step

    async def step(self, chain_id: ChainId, *, asked: bool) -> Stepped:
        """The one advance: record what is not recorded, then give the next unit away, as far as that may be now."""
        return await self._step(chain_id, asked=asked, of=None, now_on=asked)

    async def _step(self, chain_id: ChainId, *, asked: bool, of: TaskId | None, now_on: bool) -> Stepped:
        """`of`: on behalf of this task, whose successor it must be; `now_on`: also while its task still lives."""
        async with self._turn(chain_id):
            for _ in range(TRIES):
                chain = self._chain(chain_id)
                link = self._last(chain)
                if link is not None and of is not None and link.task_id != of:
                    return Stepped(chain, link.task_id, "it was handed over before")
                stepped = await self._once(chain, link, asked=asked, now_on=now_on)
                if stepped is not None:
                    return stepped
        raise Conflict("the chain is changing too fast; try again", field="chain")

    async def _once(self, chain: Chain, link: Link | None, *, asked: bool, now_on: bool) -> Stepped | None:
        """One commit of a step; None: look again."""
        if link is None:
            return await self._onward(chain, None, None)
        snapshot = self._snapshot(link.task_id)
        task = snapshot.task
        if link.command_id is not None and link.recorded_at is None:
            return await self._perform(chain, link, now_on=now_on)
        if link.recorded_at is None:
            if not task.terminal:
                return await self._at_work(chain, task, f"unit {link.unit} is being worked on")
            if task.disposition is not None and _given_up(task):
                return await self._give_up(chain, link, task)
            await self._arm(chain, link, snapshot, _came_to(chain, link, task))
            return None
        if link.outcome is Outcome.GIVEN_UP and not asked:
            return Stepped(chain, None, chain.reason or "its last task was stopped by a person")
        if not (task.terminal or now_on or link.handed_at is not None):
            return await self._at_work(chain, task, f"unit {link.unit} is recorded; its task has not handed over")
        return await self._onward(chain, link, None)

    async def _at_work(self, chain: Chain, task: Task, why: str) -> Stepped:
        """Leave a chain to its task; its own moment is put off where it has come."""
        if chain.look_at is not None and chain.look_at <= self._clock.now():
            await self._put(replace(chain, look_at=self._clock.now() + AT_WORK), Commit(), why)
        return Stepped(self._chain(chain.id), task.id, why)

    async def _arm(self, chain: Chain, link: Link, snapshot: Snapshot, word: HandOff) -> bool:
        """Write the record ahead. Where a living task hands off, its claim is made with it, as every other claim is."""
        now, epoch = self._clock.now(), self._cycle.epoch
        if epoch is None:
            raise NoSupervisor("no supervisor of this registry is deciding here")
        draft = Draft(snapshot, now, self._mint.new)
        claims = word.outcome is Outcome.DONE and not word.only_record
        if claims and not draft.task.terminal and draft.task.claim is None:
            settle.claim(draft, word.evidence or "", f"unit {link.unit} is done", snapshot.live)
        command_id = CommandId(self._mint.new("command"))
        told = repr((link.unit, word.outcome, word.evidence, word.blocker, command_id))
        scopes = (f"chain:{chain.id}", f"source:{link.place}")
        command = Command(
            id=command_id,
            revision=1,
            kind=CommandKind.RECORD,
            task_id=link.task_id,
            attempt_id=None,
            conversation_id=None,
            executor=SOURCE,
            state=CommandState.ARMED,
            epoch=epoch,
            fence=hashlib.sha256(f"{chain.id} {chain.revision} {link.position}".encode()).hexdigest(),
            scopes=scopes,
            created_at=now,
            digest=hashlib.sha256(told.encode()).hexdigest(),
            armed_at=now,
        )
        changed = replace(
            link,
            revision=link.revision + 1,
            outcome=word.outcome,
            evidence=word.evidence,
            blocker=word.blocker,
            command_id=command_id,
            handed_at=None if word.only_record else now,
        )
        draft.note(FactKind.COMMAND_ARMED, command=command_id, kind=CommandKind.RECORD)
        draft.note(FactKind.CHAIN_HANDED, chain=chain.id, unit=link.unit, outcome=word.outcome)
        looked = replace(chain, revision=chain.revision + 1, look_at=now)
        commit = (draft.commit() or Commit()).then(
            Commit(puts=(command, looked, changed), holds=tuple((scope, command_id) for scope in scopes))
        )
        done = await self._commit(commit)
        if done:
            self._fuse.burn("record.armed")
        return done

    async def _perform(self, chain: Chain, link: Link, *, now_on: bool) -> Stepped | None:
        """Write at the source, and when it stands there settle all that follows from it in one transaction."""
        command = self._ledger.command(link.command_id) if link.command_id is not None else None
        if command is None or link.outcome is None:
            raise NotFound("the command of a record is gone", field="command")
        what = Record(link.unit, link.outcome, link.evidence, link.blocker, link.attempt, command.marker)
        source = self._source(chain.source)
        answer = await asyncio.to_thread(source.record, what)
        self._fuse.burn("record.written")
        snapshot, now = self._snapshot(link.task_id), self._clock.now()
        draft = Draft(snapshot, now, self._mint.new)
        recorded = replace(link, revision=link.revision + 1, recorded_at=now)
        match answer:
            case OutOfOrder(why):
                return await self._rest(chain, f"its source is out of order: {why}", OUT_OF_ORDER)
            case Recorded(revision):
                draft.command(
                    command, CommandEvent.BEGUN, CommandEvent.ACKNOWLEDGED, evidence=f"revision {revision or 'none'}"
                )
            case Foreign(why, unit):
                draft.command(command, CommandEvent.PROVEN_UNDONE, detail=why)
                draft.note(FactKind.FINDING, chain=chain.id, what=why)
                if unit is not None and unit.state is UnitState.DONE:
                    recorded = replace(recorded, outcome=Outcome.DONE, evidence=unit.evidence or link.evidence)
            case _ as never:
                assert_never(never)
        if recorded.outcome is Outcome.BLOCKED and not draft.task.terminal:
            on = recorded.blocker.blocked_on if recorded.blocker is not None else "something"
            reason = f"its unit is blocked on {on}; the chain goes on without it"
            draft.end_task(TaskEvent.FAILED, reason, DispositionSource.AGENT, link.evidence, verified=False)
        draft.note(FactKind.CHAIN_RECORDED, chain=chain.id, unit=link.unit, outcome=recorded.outcome)
        if not draft.task.terminal:
            draft.look_now()
        counted = replace(chain, processed=chain.processed + (recorded.outcome is Outcome.DONE))
        commit = (draft.commit() or Commit()).then(Commit(puts=(recorded,)))
        if now_on or draft.task.terminal or link.handed_at is not None:
            return await self._onward(counted, recorded, commit)
        waiting = replace(counted, revision=chain.revision + 1, look_at=now + AT_WORK)
        if not await self._commit(commit.then(Commit(puts=(waiting,)))):
            return None
        return Stepped(waiting, link.task_id, f"unit {link.unit} is recorded; its task has not handed over")

    async def _onward(self, chain: Chain, link: Link | None, before: Commit | None) -> Stepped | None:
        """Give the next unit away, or say why not; `before` goes into the same transaction."""
        commit, now = before or Commit(), self._clock.now()
        if chain.state is not ChainState.OPEN:
            return await self._put(replace(chain, look_at=None), commit, chain.reason or str(chain.state))
        try:
            board = await self._board(chain.source)
        except Refused as why:
            return await self._wait(chain, commit, str(why), OUT_OF_ORDER)
        if (cap := rules.capped(chain, self._cost(chain), now)) is not None:
            return await self._end(chain, commit, ChainEvent.CAP_REACHED, cap)
        found = self._resolve(chain, board, link)
        match found.standing:
            case Standing.COMPLETE:
                return await self._end(chain, commit, ChainEvent.EXHAUSTED, found.because)
            case Standing.BLOCKED | Standing.IN_FLIGHT:
                return await self._wait(chain, commit, found.because, WAITS)
            case Standing.ELIGIBLE:
                return await self._give(chain, link, commit, board, found)
            case _ as never:
                assert_never(never)

    async def _give(
        self, chain: Chain, link: Link | None, commit: Commit, board: Board, found: Resolution
    ) -> Stepped | None:
        envelope = self._envelope(chain, board, found, link)
        name = found.unit or ""
        key = rules.cursor_key(envelope.cursor)
        twin = next((one for one in self._ledger.links(chain.id, LISTED) if one.key == key), None)
        if twin is not None:
            why = f"the source did not advance since unit {name} was given to task {twin.task_id}"
            return await self._wait(chain, commit, why, WAITS)
        attempt = self._ledger.tried(chain.id).get(name, 0) + 1
        unit = board.unit(name)
        title = unit.title if unit is not None else ""
        asked = Spawn(
            prompt=rules.render(envelope, attempt, title),
            title=f"{name}: {title}" if title else name,
            playbook=chain.playbook,
            run=chain.run_id,
            parent=link.task_id if link is not None else None,
            cwd=chain.cwd,
            agent=chain.agent,
        )
        async with self._spawning.lock:
            now = self._clock.now()
            try:
                made = self._spawning.made(Source(Role.OPERATOR, None, chain.id), asked, now)
            except Mistake as why:
                return await self._wait(chain, commit, f"the next task cannot be made: {why}", PRESSED)
            following = Link(
                id=LinkId(self._mint.new("link")),
                revision=1,
                chain_id=chain.id,
                position=chain.position + 1,
                predecessor=link.task_id if link is not None else None,
                task_id=made.task_id,
                unit=name,
                place=self._name(chain.source),
                key=key,
                attempt=attempt,
                made_at=now,
            )
            moved = replace(
                chain,
                revision=chain.revision + 1,
                position=following.position,
                look_at=now + AT_WORK,
                reason="; ".join(found.notes) or None,
            )
            data: dict[str, Scalar] = {"chain": chain.id, "unit": name, "position": following.position}
            fact = Fact(FactKind.CHAIN_ADVANCED, chain.run_id, made.task_id, data)
            whole = commit.then(made.commit).then(Commit(puts=(moved, following), facts=(fact,)))
            self._fuse.burn("advance.before_commit")
            done = await self._commit(whole)
        if not done:
            return None
        self._fuse.burn("advance.committed")
        return Stepped(moved, made.task_id, f"unit {name} was given to task {made.task_id}")

    # -- within

    def _checked(self, asked: Start) -> Start:
        said(asked.goal, "goal", GOAL_BYTES)
        said(asked.selector, "selector")
        if asked.caps.none:
            raise Mistake("a chain needs a cap that stops it: units, tasks, hours or cost", field="max_units")
        for field, cap in (("max_units", asked.caps.units), ("max_tasks", asked.caps.tasks)):
            if cap is not None and cap < 1:
                raise Mistake(f"{field} is at least 1", field=field)
        least, most = ATTEMPT_CAPS
        if not least <= asked.attempt_cap <= most:
            raise Mistake(f"attempt_cap is from {least} to {most}", field="attempt_cap")
        if (asked.agent is None) == (asked.playbook is None):
            raise Mistake("name a program or a playbook that works on the units", field="agent")
        allowed = permits(dict(asked.authorization))
        return replace(asked, repo=canonical_repo(asked.repo), authorization=allowed)

    def _source(self, place: SourcePlace) -> UnitSource:
        if self._sources is None:
            raise Mistake("no sources of units are read here", field="source")
        return self._sources.open(place)

    def _name(self, place: SourcePlace) -> str:
        if self._sources is None:
            raise Mistake("no sources of units are read here", field="source")
        return self._sources.name(place)

    async def _board(self, place: SourcePlace) -> Board:
        """All units of a source; Refused where it cannot be read now, Mistake where it is none."""
        source = self._source(place)
        try:
            return await asyncio.to_thread(source.read)
        except OSError as why:
            raise Refused(f"the source cannot be read: {why}", field="source") from None

    def _resolve(self, chain: Chain, board: Board, settled: Link | None) -> Resolution:
        claimed = set(self._ledger.claimed(self._name(chain.source)))
        if settled is not None:
            claimed.discard(settled.unit)
        return rules.resolve(board, None, frozenset(claimed), self._ledger.tried(chain.id), chain.attempt_cap)

    def _envelope(self, chain: Chain, board: Board, found: Resolution, link: Link | None) -> Envelope:
        """What the next task is handed. `chain` has counted the link's unit already."""
        if link is None or link.outcome is None:
            return rules.first(chain, board, found)
        before = replace(chain, processed=chain.processed - (link.outcome is Outcome.DONE))
        url = link.evidence if link.evidence is not None and link.evidence.startswith("https://") else None
        parent = Parent(task=link.task_id, pr_url=url)
        made = rules.advance(rules.first(before, board, found), found, board.revision, link.outcome, parent)
        if isinstance(made, NotAdvanced):
            raise Refused(made.why, see=made.change)
        return made

    def _cost(self, chain: Chain) -> int:
        return self._ledger.chain_cost(chain.id) if chain.caps.cost is not None else 0

    async def _claimed(self, snapshot: Snapshot, word: HandOff) -> bool:
        """Make the claim that the task's acceptance judges; the supervisor records when it is proven."""
        if snapshot.task.claim is not None:
            return True
        draft = Draft(snapshot, self._clock.now(), self._mint.new)
        settle.claim(draft, word.evidence or "", "its unit is done", snapshot.live)
        commit = draft.commit()
        return commit is None or await self._commit(commit)

    async def _give_up(self, chain: Chain, link: Link, task: Task) -> Stepped | None:
        """A person stopped the unit's task: nothing is recorded at the source, and a person says how it goes on."""
        reason = f"task {task.id} was stopped by a person; to go on: tenuto chain advance {chain.id}"
        recorded = replace(link, revision=link.revision + 1, outcome=Outcome.GIVEN_UP, recorded_at=self._clock.now())
        return await self._put(replace(chain, look_at=None, reason=reason), Commit(puts=(recorded,)), reason)

    async def _wait(self, chain: Chain, commit: Commit, why: str, wait: timedelta) -> Stepped | None:
        changed = replace(chain, reason=why[:2000], look_at=self._clock.now() + wait)
        facts = () if chain.reason == changed.reason else (self._fact(FactKind.CHAIN_WAITS, changed),)
        return await self._put(changed, commit.then(Commit(facts=facts)), why)

    async def _rest(self, chain: Chain, why: str, wait: timedelta) -> Stepped | None:
        return await self._put(replace(chain, reason=why[:2000], look_at=self._clock.now() + wait), Commit(), why)

    async def _end(self, chain: Chain, commit: Commit, event: ChainEvent, why: str) -> Stepped | None:
        ended = self._ended(chain, event, why)
        whole = commit.then(Commit(puts=(ended,), facts=(self._fact(FactKind.CHAIN_ENDED, ended),)))
        return Stepped(ended, None, why) if await self._commit(whole) else None

    def _ended(self, chain: Chain, event: ChainEvent, why: str) -> Chain:
        state = CHAIN.after(chain.state, event)
        now = self._clock.now()
        return replace(chain, revision=chain.revision + 1, state=state, ended_at=now, reason=why[:2000], look_at=None)

    async def _put(self, chain: Chain, commit: Commit, why: str) -> Stepped | None:
        changed = replace(chain, revision=chain.revision + 1)
        return Stepped(changed, None, why) if await self._commit(commit.then(Commit(puts=(changed,)))) else None

    async def _commit(self, commit: Commit) -> bool:
        """Whether it was written; False: something moved meanwhile, or somebody else was first."""
        match await self._ledger.commit(commit):
            case Committed():
                tasks = {row.id for row in commit.puts if isinstance(row, Task)}
                for task_id in (*tasks, *concerned(self._ledger, commit)):
                    self._help.ring(task_id)
                return True
            case NotLeader(epoch):
                raise NoSupervisor(f"another supervisor leads now (epoch {epoch})")
            case Stale() | Busy() | Replayed() | KeyConflict():
                return False
            case _ as never:
                assert_never(never)

    def _told(self, task_id: TaskId) -> dict[str, Scalar]:
        """How a hand-off stands, from what is durable: the same answer however late it is asked again."""
        link = self.link_of(task_id)
        chain = self._chain(link.chain_id)
        newest = chain.position - link.position
        later = self._ledger.links(chain.id, newest) if newest > 0 else ()
        following = next((one for one in later if one.predecessor == task_id), None)
        return {
            "chain": chain.id,
            "task": task_id,
            "unit": link.unit,
            "outcome": link.outcome,
            "recorded": link.recorded_at is not None,
            "successor": following.task_id if following is not None else None,
            "next_unit": following.unit if following is not None else None,
            "state": chain.state,
            "because": chain.reason,
        }

    def _fact(self, kind: FactKind, chain: Chain) -> Fact:
        data: dict[str, Scalar] = {"chain": chain.id, "state": chain.state, "because": (chain.reason or "")[:500]}
        return Fact(kind, chain.run_id, None, data)

    def _chain(self, given: ChainId) -> Chain:
        chain = self._ledger.chain(given)
        if chain is None:
            raise NotFound(f"there is no chain {given}", field="chain")
        return chain

    def _last(self, chain: Chain) -> Link | None:
        return next(iter(self._ledger.links(chain.id, 1)), None)

    def _snapshot(self, task_id: TaskId) -> Snapshot:
        snapshot = self._ledger.snapshot(task_id, self._slots)
        if snapshot is None:
            raise NotFound(f"there is no task {task_id}", field="task")
        return snapshot

    def _turn(self, chain_id: ChainId) -> asyncio.Lock:
        lock = self._turns.get(chain_id)
        if lock is None:
            lock = self._turns[chain_id] = asyncio.Lock()
        return lock


def _judged(task: Task, word: HandOff) -> bool:
    """Whether a word that a unit is done has to be proven before it counts."""
    return word.outcome is Outcome.DONE and not task.terminal and task.acceptance.kind is not AcceptanceKind.NONE


def _given_up(task: Task) -> bool:
    return str(task.state) == "cancelled"


def _came_to(chain: Chain, link: Link, task: Task) -> HandOff:
    """What a unit came to, by how its task ended."""
    ending = task.disposition
    reason = ending.reason if ending is not None else ""
    if str(task.state) == "completed":
        evidence = (ending.reference if ending is not None else None) or f"task {task.id}: {reason}"
        return HandOff(Outcome.DONE, evidence)
    if link.attempt >= chain.attempt_cap:
        blocker = Blocker(f"task {task.id}", f"{link.attempt} failed attempts", "a person has looked at it")
        return HandOff(Outcome.BLOCKED, reason or None, blocker)
    return HandOff(Outcome.FAILED, reason or None)
