"""One task, once round the river: look, reconcile, settle, decide, write ahead, act.

Boot, recovery and everyday work are this same code: what was left open is found, looked at and settled before
anything new is decided. Nothing is handed to an executor that is not committed as armed, and nothing is concluded
from an executor's answer: the next look settles it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never
from weakref import WeakValueDictionary

from tenuto import prompts
from tenuto.core import arm, decide, permission, progress, reconcile, replacing, rungs, slots, takeover
from tenuto.core.settle import settle
from tenuto.engine import abilities, beside, closing, pageclosing
from tenuto.engine.concern import concerned
from tenuto.engine.foresight import AHEAD, Foresight, goes_on
from tenuto.engine.prompting import Prompter
from tenuto.engine.watching import Watch
from tenuto.model.change import Busy, Commit, Committed, KeyConflict, NotLeader, Replayed, Stale
from tenuto.model.command import AttemptOutcome, Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import (
    AnswerAsk,
    Because,
    CloseReady,
    Continue,
    Decision,
    GiveSlotBack,
    Intent,
    Interrupt,
    OpenCapWait,
    OpenConversation,
    OpenLimitWait,
    OpenPersonWait,
    ParkAsks,
    Revoke,
    RunCheck,
    Rung,
    Sampled,
    StartTask,
    SteerTurn,
)
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence, WorkspaceFacts
from tenuto.model.ids import CommandId, RunId, TaskId
from tenuto.model.lifecycle import CommandState, DeliveryState
from tenuto.model.limit import Quiet
from tenuto.model.reconciliation import Reconciliation, Seen, TurnEnded
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import AcceptanceKind, Task, WaitKind
from tenuto.ports import (
    Check,
    Clock,
    Executor,
    Fuse,
    Halt,
    Ledger,
    Minter,
    Order,
    PageWitness,
    Reply,
    Steer,
    TakeOver,
    Taking,
    ToolWitness,
    Turn,
    Workspace,
)

#: One pass may settle, prepare and arm in several rounds; more than this without coming to rest is a fault of ours.
ROUNDS = 24

#: What cannot be carried out now is looked at again after this.
NOT_NOW = timedelta(seconds=30)

#: What the executor is called that asks tool servers to give a session to a new run.
TAKER = "local-shell"

#: How many of a task's newest commands and messages are looked through for the ones a verdict settled.
LOOK_BACK = 64


#: Before anything was laid beside the rows; nothing is armed on it.
_NOTHING = Reconciliation((), "", ())


class Deposed(Exception):
    """Another supervisor leads; this one must not write or act any more."""


class Lapsed(Exception):
    """The lease was not renewed in time, so another supervisor may lead by now: nothing is handed over."""


class Restless(Exception):
    """A task did not come to rest within its rounds; it is left as it is and looked at later."""


@dataclass(frozen=True)
class Rest:
    """How a pass ended: why nothing more is done now, and when to look again (`durable`: it is written in the row)."""

    because: Because | None
    look_again_at: datetime | None


@dataclass(frozen=True)
class Surroundings:
    """What is given to every program of ours: the API's address, where its words go while no supervisor listens."""

    api: str
    spool: str
    home: str


class Cycle:
    """Serves one task at a time; safe to run for many tasks at once, never twice for the same one."""

    def __init__(
        self,
        ledger: Ledger,
        executors: Mapping[str, Executor],
        workspace: Workspace,
        clock: Clock,
        minter: Minter,
        fuse: Fuse,
        surroundings: Surroundings,
        slots: int,
    ) -> None:
        self._ledger = ledger
        self._executors = executors
        self._workspace = workspace
        self._clock = clock
        self._mint = minter
        self._fuse = fuse
        self._around = surroundings
        self._slots = slots
        self._prompter = Prompter(ledger)
        self.epoch: int | None = None
        #: Whether the lease is still surely ours, by a clock that no other machine shares.
        self.holds: Callable[[], bool] = lambda: True
        self._told: dict[TaskId, Rung] = {}
        self.committed: Callable[[], None] = lambda: None
        self.ring: Callable[[TaskId], None] = lambda _task: None
        #: What looks at the sessions of tool servers; None: nothing here does.
        self.tools: ToolWitness | None = None
        #: What watches pages from outside, by the names they are called here.
        self.witnesses: Mapping[str, PageWitness] = {}
        #: The hours in which nothing goes on by itself after a limit.
        self.quiet: Quiet | None = None
        #: Hears of runs with the dead-man switch on when a turn of theirs is ordered.
        self.watched: Callable[[RunId], None] = lambda _run: None
        self.watch = Watch()
        self._turns: WeakValueDictionary[TaskId, asyncio.Lock] = WeakValueDictionary()
        self._starting = asyncio.Lock()
        self._foresight = Foresight(minter)

    async def serve(self, task_id: TaskId) -> Rest | None:
        """Go round until the task rests; None when there is no such task. Raises Deposed.

        Whoever comes while the task is served waits for its turn: a second look between a commit and its hand-over
        would take what is about to begin for something that may never begin.
        """
        async with self._turn_of(task_id):
            try:
                return await self._serve(task_id)
            finally:
                self._foresight.let_go(task_id)
                self._foresight.provide(self._clock.monotonic())

    @property
    def foresees(self) -> bool:
        """Whether any executor can be made ready for a turn before its moment."""
        return any(abilities.foresees(executor) for executor in self._executors.values())

    async def foresee(self, task_id: TaskId, at: datetime) -> None:
        """Have an executor made ready, if the task would be continued at `at` as things stand; writes nothing."""
        lock = self._turn_of(task_id)
        if lock.locked():
            return
        async with lock:
            snapshot = self._ledger.snapshot(task_id, self._slots)
            if snapshot is None or snapshot.live is not None or snapshot.commands:
                return
            decision = decide.decide(await self.look(snapshot), at)
            if isinstance(decision.intent, Continue):
                self._foresight.make_ready(task_id, self._executor(snapshot), self._clock.monotonic())

    def tend(self) -> None:
        """Give up what was made ready and waited for too long."""
        self._foresight.tend(self._clock.monotonic())

    def _turn_of(self, task_id: TaskId) -> asyncio.Lock:
        lock = self._turns.get(task_id)
        if lock is None:
            lock = self._turns[task_id] = asyncio.Lock()
        return lock

    @property
    def taker(self) -> Taking | None:
        """What asks tool servers to give a session to a new run; None where nothing does."""
        executor: object = self._executors.get(TAKER)
        return executor if abilities.takes_over(executor) else None

    async def take_over(self, candidate: Conversation, subject: str) -> Because | None:
        """Have a tool server give the session `subject` to a new run, for a candidate; a Because where it may not be.

        What came of it is in the rows afterwards, or will be once it can be told.
        """
        async with self._turn_of(candidate.task_id):
            snapshot = self._ledger.snapshot(candidate.task_id, self._slots)
            executor = self._executors.get(TAKER)
            if snapshot is None or executor is None:
                return Because(Rung.EXECUTOR, "nothing here asks tool servers", "a supervisor on this machine")
            seen = await self.look(snapshot, whole=True)
            session = next((session for session in seen.found.tools if session.subject == subject), None)
            if session is None:
                return Because(Rung.TOOL, f"{subject} does not work for it any more", "tenuto tool bind")
            command_id = CommandId(self._mint.new("command"))
            now, new = self._clock.now(), self._mint.new
            written = replacing.armed(seen, candidate, session, command_id, TAKER, now, new)
            if isinstance(written, Because):
                return written
            named = session.binding
            label = written.command.marker
            order = TakeOver(named.server, named.session, session.run, label, snapshot.task.cwd)
            await self._act(written, order, "takeover", seen)
            await self._serve(candidate.task_id)
        return None

    def alone(self, task_id: TaskId) -> asyncio.Lock:
        """To be held by whoever arms something for a task elsewhere, from before the commit until it is handed over."""
        return self._turn_of(task_id)

    async def _serve(self, task_id: TaskId) -> Rest | None:
        for _ in range(ROUNDS):
            snapshot = self._ledger.snapshot(task_id, self._slots)
            if snapshot is None:
                return None
            seen = await self.look(snapshot, ahead=True)
            now = self._clock.now()
            if await self._settle(seen, now):
                continue
            decision = decide.decide(seen, now)
            if decision.intent is None:
                closes = await pageclosing.due(self._ledger, self._executors, seen, self._clock, self._mint)
                if isinstance(closes, tuple):
                    await self._act(*closes, "page_close")
                    continue
                decision = replace(decision, look_again_at=closes) if closes is not None else decision
                await self._rest(seen, decision, now)
                return Rest(decision.because, decision.look_again_at)
            if (because := await self._carry_out(decision.intent, seen, now)) is not None:
                rested = Decision(because=because, look_again_at=because.until or now + NOT_NOW)
                await self._rest(seen, rested, now)
                return Rest(because, rested.look_again_at)
        raise Restless(task_id)

    # -- look and reconcile

    async def look(self, snapshot: Snapshot, *, whole: bool = False, ahead: bool = False) -> Seen:
        """Everything outside that this task's decision may hang on, laid beside its rows.

        The workspace is among it where it decides, or with `whole`. With `ahead` an executor is made ready while the
        rest is looked at, where a turn has ended that looks as if the next were to follow.
        """
        snapshot = self._with_released(snapshot)
        observations: list[Observation] = [
            await self._executors[command.executor].look(command)
            for command in reconcile.subjects(snapshot)
            if command.executor in self._executors and self._reaches(command)
        ]
        now = self._clock.now()
        task = snapshot.task
        first, looked = self._seen(snapshot, _NOTHING), len(observations)
        ended = any(isinstance(o.facts, CommandFacts) and _turn_is_over(snapshot, o.facts) for o in observations)
        if (
            ahead
            and ended
            and snapshot.run.policy.idle_delay <= AHEAD
            and any(isinstance(o.facts, CommandFacts) and goes_on(o.facts) for o in observations)
        ):
            self._foresight.make_ready(task.id, self._executor(snapshot), self._clock.monotonic())
        proof = not task.terminal and decide.needs_workspace(first, now)
        whole = whole or takeover.underway(snapshot) is not None
        if ended or proof or whole:
            plain = proof or whole or progress.measure_plain(task.progress, snapshot.run.policy)
            observations.append(await self._workspace.look(task.cwd, task.progress.head, plain=plain))
        if (
            task.claim is not None
            and snapshot.live is None
            and task.acceptance.kind
            in (
                AcceptanceKind.FILE,
                AcceptanceKind.COMMIT,
            )
        ):
            observations.append(await self._workspace.accept(task.acceptance, task.cwd, task.claim.evidence))
        observations += await self._sessions(snapshot)
        observations += await self._page(snapshot)
        resolved: dict[str, bool | None] = {
            wait.id: await self._workspace.resolved(wait, task.cwd)
            for wait in snapshot.waits
            if wait.kind in (WaitKind.PATH, WaitKind.COMMIT)
        }
        observations = await beside.anew(observations, self.witnesses, snapshot.run.policy, self._clock)
        found = reconcile.reconcile(snapshot, observations, resolved, self._clock.now())
        if len(observations) == looked and not resolved:
            return replace(first, found=found)  # nothing was waited for: what surrounds the task is as it was
        return self._seen(snapshot, found)

    async def _sessions(self, snapshot: Snapshot) -> list[Observation]:
        """What tool servers say of the sessions that work for the task, and what is seen of pages watched for it."""
        task = snapshot.task
        if not task.tools or (task.terminal and takeover.underway(snapshot) is None):
            return []
        return await beside.looked(task, self.tools, self.witnesses)

    async def _page(self, snapshot: Snapshot) -> list[Observation]:
        """What the page of the conversation shows, where it has one and a turn may be made there now."""
        talk = snapshot.conversation
        executor: object = self._executors.get(talk.executor) if talk is not None else None
        if talk is None or not abilities.has_pages(executor):
            return []
        if snapshot.task.terminal or snapshot.live is not None or not all(map(_harmless, snapshot.commands)):
            return []
        return [await executor.page(talk)]

    async def _still(self, seen: Seen) -> bool:
        """Whether the cheap facts a turn was armed on hold yet, looked at again right before it is handed over."""
        if not seen.snapshot.task.tools:
            return True
        policy = seen.snapshot.run.policy
        looked = await beside.anew(await self._sessions(seen.snapshot), self.witnesses, policy, self._clock)
        return reconcile.still(seen, looked, self._clock.now())

    def _seen(self, snapshot: Snapshot, found: Reconciliation) -> Seen:
        executor: object = self._executor(snapshot)
        place = executor.place if abilities.has_place(executor) else None
        apart = self._apart(snapshot)
        connected = self._connected(snapshot) and apart is None
        steerable = self._steerable(snapshot)
        return Seen(
            snapshot,
            found,
            self.epoch,
            connected,
            steerable=steerable,
            place=place,
            apart=apart,
            account=executor.account(snapshot.task.agent) if abilities.has_account(executor) else None,
            quiet_until=self.quiet.until(self._clock.now()) if self.quiet is not None else None,
            unchecked=self._unchecked(snapshot.task),
        )

    def _unchecked(self, task: Task) -> str | None:
        """Why the host takes no program now, where it has to check a claim that was made in a page."""
        if not task.agent.in_page or task.claim is None or task.acceptance.kind is not AcceptanceKind.CHECK:
            return None
        host = self._executors.get(arm.HOST)
        if host is None or not host.connected():
            told = host.trouble() if abilities.tells_trouble(host) else None
            return told or "the host that runs programs is not connected"
        return None

    def _steerable(self, snapshot: Snapshot) -> bool:
        """Whether the executor that carries the turn under way would put words into it."""
        sent = snapshot.live_command
        executor: object = self._executors.get(sent.executor) if sent is not None else None
        return sent is not None and abilities.steers(executor) and executor.can_steer(sent)

    def _reaches(self, command: Command) -> bool:
        """Whether what became of a command can be looked at from here."""
        executor: object = self._executors.get(command.executor)
        return command.place is None or not abilities.has_place(executor) or executor.reaches(command.place)

    def _apart(self, snapshot: Snapshot) -> str | None:
        """The host that has what is open of this task, or its conversation, where that is out of reach."""
        for command in reconcile.subjects(snapshot):
            if command.place is not None and not self._reaches(command):
                return command.place.partition(":")[0]
        talk = snapshot.conversation
        executor: object = self._executor(snapshot)
        if talk is None or talk.place is None or not abilities.has_place(executor) or executor.carries(talk.place):
            return None
        return talk.place.partition(":")[0]

    def _with_released(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the last attempt's send, and what rides in it, where a verdict settled it.

        Evidence that comes later may still acknowledge it; once another turn has ended it is not looked at any more.
        """
        last = snapshot.last
        if last is None or last.outcome not in (AttemptOutcome.LOST, AttemptOutcome.RELEASED):
            return snapshot
        for command in self._ledger.commands(LOOK_BACK, task_id=snapshot.task.id):
            if command.attempt_id == last.id and command.kind is CommandKind.SEND:
                given_up = last.outcome is AttemptOutcome.RELEASED and command.state is CommandState.ACKNOWLEDGED
                if command.state is not CommandState.RELEASED and not command.late and not given_up:
                    break
                known = {message.id for message in snapshot.messages}
                riders = tuple(
                    message
                    for message in self._ledger.messages(snapshot.task.id, LOOK_BACK)
                    if message.carried_by == command.id and message.id not in known
                    and message.state is DeliveryState.AMBIGUOUS
                )  # fmt: skip
                return replace(snapshot, released=command, messages=(*snapshot.messages, *riders))
        return snapshot

    def _executor(self, snapshot: Snapshot) -> Executor | None:
        """The one that would carry the next turn."""
        name = snapshot.conversation.executor if snapshot.conversation else self.executor_for(snapshot.task)
        return self._executors.get(name)

    @property
    def _hosts(self) -> str | None:
        """Where the programs of this machine are carried out."""
        host: object = self._executors.get(arm.HOST)
        return host.place if abilities.has_place(host) else None

    def _connected(self, snapshot: Snapshot) -> bool:
        executor, talk = self._executor(snapshot), snapshot.conversation
        return executor is not None and executor.connected(talk.identity if talk is not None else None)

    @staticmethod
    def executor_of(carrier: str) -> str:
        """Which executor carries an agent's turns: the one that is named, or its adapter's own."""
        return {"program": "host"}.get(carrier, carrier)

    def executor_for(self, task: Task) -> str:
        """Which executor carries this task's turns: its own, where its adapter has one for each."""
        name = self.executor_of(task.agent.carrier)
        executor: object = self._executors.get(name)
        return executor.executor_for(task.id) if abilities.per_task(executor) else name

    # -- settle

    async def _settle(self, seen: Seen, now: datetime) -> bool:
        """Write what was found; whether anything was to be written."""
        prompt = ""
        live = seen.snapshot.live_command
        ended = any(isinstance(finding, TurnEnded) for finding in seen.found.findings)
        if ended and live is not None and live.payload is not None:
            text = self._ledger.text(live.payload)
            prompt = (text.body or "") if text is not None else ""
        commit = settle(seen, now, self._mint.new, prompt)
        if commit is None:
            return False
        await self._write(commit, "settle")
        return True

    async def _rest(self, seen: Seen, decision: Decision, now: datetime) -> None:
        if seen.epoch is None:
            return
        while (over := closing.closed(self._ledger, seen.snapshot, self._clock)) is not None:
            if await self._write(over, "close") is None:
                break
        task_id, because = seen.snapshot.task.id, decision.because
        news = because if because is not None and self._told.get(task_id) != because.rung else None
        look_at = decision.look_again_at
        if decide.under_way(seen):
            # Watched from memory and found again by the ledger's `under_way`; a moment that has passed is taken back.
            written = seen.snapshot.task.look_at
            look_at = written if written is None or written > now else None
            news = None if because is not None and because.rung is Rung.LIVE else news
        else:
            look_at = arm.netted(seen.snapshot.task.look_at, look_at, because, now)
        in_line = because is not None and because.rung is Rung.SLOT
        health = self.watch.judged(seen, now)
        commit = arm.rest(seen, look_at, news, now, self._mint.new, in_line=in_line, health=health)
        if commit is not None and await self._write(commit, "rest") and because is not None:
            self._told[task_id] = because.rung

    async def _write(self, commit: Commit, point: str) -> Committed | None:
        """Commit; None when it was stale or held, which the next round sees. Raises Deposed."""
        self._fuse.burn(f"{point}.before_commit")
        result = await self._ledger.commit(commit)
        self._fuse.burn(f"{point}.committed")
        match result:
            case Committed():
                self.committed()
                for task_id in concerned(self._ledger, commit):
                    self.ring(task_id)
                return result
            case NotLeader(epoch):
                raise Deposed(f"epoch {epoch} leads")
            case Stale() | Busy() | Replayed() | KeyConflict():
                return None
            case _ as never:
                assert_never(never)

    # -- write ahead and act

    async def _carry_out(self, intent: Intent, seen: Seen, now: datetime) -> Because | None:
        """Do what was decided; a Because when that cannot be done now."""
        new = self._mint.new
        match intent:
            case Revoke(command_id):
                await self._revoke(seen, command_id)
            case StartTask():
                await self._start(seen)
            case GiveSlotBack():
                because = decide.first(rungs.CONTINUE, seen, now)
                until = because.until if because else None
                await self._prepare(arm.give_slot_back(seen, now, new, until), "slot_back")
            case OpenConversation():
                executor = self.executor_for(seen.snapshot.task)
                opened = arm.open_conversation(seen, executor, now, new)
                if isinstance(opened, Because):
                    return opened
                await self._prepare(opened, "open_conversation")
            case Sampled():
                await self._prepare(arm.sampled(seen, now, new), "sample")
            case OpenCapWait(question, cap):
                await self._prepare(arm.cap_wait(seen, question, cap, now, new), "cap")
            case OpenLimitWait():
                await self._prepare(arm.limit_wait(seen, intent, now, new), "limit")
            case ParkAsks():
                await self._prepare(permission.parked(seen, now, new), "park")
            case AnswerAsk():
                await self._answer(intent, seen, now)
            case OpenPersonWait(question):
                await self._prepare(arm.ask(seen, question, now, new), "ask")
            case CloseReady():
                await self._prepare(arm.close_ready(seen, now, new), "close_ready")
            case Continue():
                await self._continue(intent, seen, now)
            case RunCheck():
                await self._act(arm.check(seen, now, new, self._hosts), self._check_order(seen), "check")
            case SteerTurn():
                await self._steer(intent, seen, now)
            case Interrupt(attempt_id):
                halt = self._halt_order(seen)
                if seen.apart is not None:
                    return Because(
                        Rung.EXECUTOR,
                        f"its turn is on {seen.apart}, which is not reached from here, and cannot be ended from here",
                        f"a supervisor leads on {seen.apart}",
                    )
                if halt is not None:
                    await self._act(arm.interrupt(seen, attempt_id, now, new), halt, "interrupt")
            case _ as never:
                assert_never(never)
        return None

    async def _prepare(self, commit: Commit | None, point: str) -> None:
        if commit is not None:
            await self._write(commit, point)

    async def _start(self, seen: Seen) -> None:
        """Give the task a slot: one task at a time, counting again, so that no two take the last one."""
        async with self._starting:
            fresh = self._ledger.snapshot(seen.snapshot.task.id, self._slots)
            if fresh is not None and slots.may_start(fresh):
                await self._prepare(arm.start(seen, self._clock.now(), self._mint.new), "start")

    def next_up(self) -> tuple[TaskId, ...]:
        """Who stands first in line for the slots that are free now."""
        held = sum(map(slots.holds, self._ledger.active(self._slots * 2 + 1)))
        return slots.next_up(self._ledger.line(), self._slots - held)

    async def _revoke(self, seen: Seen, command_id: CommandId) -> None:
        command = next(c for c in reconcile.subjects(seen.snapshot) if c.id == command_id)
        executor = self._executors.get(command.executor)
        if executor is not None and self.epoch is not None:
            await executor.revoke(command, self.epoch)

    async def _continue(self, intent: Continue, seen: Seen, now: datetime) -> None:
        snapshot = seen.snapshot
        task = snapshot.task
        baseline: WorkspaceFacts | None = None
        if task.progress.cursor is None:
            observed = await self._workspace.look(task.cwd, None, plain=True)
            baseline = observed.facts if isinstance(observed.facts, WorkspaceFacts) else None
        executor = self._executor(snapshot)
        command_id = self._foresight.take(task.id, executor)
        with self._foreseen(seen, command_id):
            if await self._turn(intent, seen, command_id, baseline, now):
                self._foresight.begun(task.id, executor)

    @contextmanager
    def _foreseen(self, seen: Seen, command_id: CommandId) -> Iterator[None]:
        """Let the executor make ready, while the turn is written down, what does nothing without its order."""
        talk = seen.snapshot.conversation
        executor: object = self._executors.get(talk.executor) if talk is not None else None
        if not abilities.foresees(executor):
            yield
            return
        executor.foresee(command_id)
        try:
            yield
        finally:
            executor.forgo(command_id)

    async def _turn(
        self, intent: Continue, seen: Seen, command_id: CommandId, baseline: WorkspaceFacts | None, now: datetime
    ) -> bool:
        """Write a turn down and hand it over; whether it was handed over."""
        secret = self._mint.secret()
        try:
            told = self._prompter.tell(seen, command_id, now)
        except prompts.PromptError as error:
            question = f"its next prompt cannot be made: {error}. Shorten what is sent to it"
            await self._prepare(arm.ask(seen, question, now, self._mint.new), "ask")
            return False
        if told.unfit is not None:
            message_id, why = told.unfit
            await self._prepare(arm.unfit(seen, message_id, why, now, self._mint.new), "unfit")
            return False
        digest = hashlib.sha256(secret.encode()).hexdigest()
        written = arm.turn(seen, intent, command_id, told.text, told.carried, digest, baseline, now, self._mint.new)
        if written is None:
            return False
        return await self._act(written, self._turn_order(seen, written, told.text, secret), "arm", seen)

    async def _act(self, written: arm.Written | None, order: Order, point: str, seen: Seen | None = None) -> bool:
        """Commit, and only then hand over; whether all was handed over. What came of it is for the next look to say.

        Where `seen` is given, its cheap facts are looked at once more in between: what has moved is not handed over,
        and the next look makes sure that it never begins.
        """
        if written is None:
            return False
        self._must_hold()
        committed = await self._write(written.commit, point)
        if committed is None:
            return False
        for armed in committed.armed:
            if seen is not None and not await self._still(seen):
                return False
            self._must_hold()
            executor = self._executors[armed.command.executor]
            await executor.perform(armed, order)
            self._fuse.burn(f"{point}.handed_over")
        return True

    def _must_hold(self) -> None:
        """Raises Lapsed once another may lead: asked before arming, and again between the commit and the hand-over."""
        if not self.holds():
            raise Lapsed("the lease could not be renewed in time")

    async def _steer(self, intent: SteerTurn, seen: Seen, now: datetime) -> None:
        """Put waiting words into the turn under way; the look that follows says what became of them."""
        sent = seen.snapshot.live_command
        if sent is None:
            return
        command_id = CommandId(self._mint.new("command"))
        try:
            text, carried = self._prompter.words(seen, intent.messages, command_id)
        except prompts.PromptError as error:
            await self._prepare(arm.unfit(seen, intent.messages[0], str(error), now, self._mint.new), "unfit")
            return
        written = arm.steer(seen, intent, command_id, text, carried, now, self._mint.new)
        await self._act(written, Steer(text, sent.id, intent.turn), "steer")

    async def _answer(self, intent: AnswerAsk, seen: Seen, now: datetime) -> None:
        """Tell the program of the turn under way what it asked leave for."""
        sent = seen.snapshot.live_command
        text = self._ledger.text(intent.text) if intent.text is not None else None
        words = text.body if text is not None and text.body is not None else intent.words
        written = arm.answer(seen, intent, CommandId(self._mint.new("command")), now, self._mint.new)
        if sent is not None:
            await self._act(written, Reply(sent.id, intent.request, intent.allow, words), "answer")

    # -- orders

    def _turn_order(self, seen: Seen, written: arm.Written, prompt: str, secret: str) -> Turn:
        snapshot = seen.snapshot
        task, policy = snapshot.task, snapshot.run.policy
        given = self._given(written.command)
        given |= {"TENUTO_TOKEN": secret, "TENUTO_HOME": self._around.home}
        if task.unattended:
            given["TENUTO_UNATTENDED"] = "1"
        if task.delivery is not None:
            given["TENUTO_DELIVERY"] = task.delivery
        return Turn(
            prompt=prompt,
            argv=task.agent.argv,
            cwd=task.cwd,
            env=task.agent.env,
            given=given,
            limit=policy.turn_limit,
            grace=policy.interrupt_grace,
            adapter=task.agent.adapter,
            watched=self._watched(snapshot),
        )

    def _watched(self, snapshot: Snapshot) -> tuple[RunId, timedelta] | None:
        """The run, and the silence after which to ask about it, where its dead-man switch is on."""
        policy = snapshot.run.policy
        if not policy.dead_man:
            return None
        self.watched(snapshot.run.id)
        return snapshot.run.id, policy.dead_man_ask

    def _check_order(self, seen: Seen) -> Check:
        task, policy = seen.snapshot.task, seen.snapshot.run.policy
        return Check(
            argv=task.acceptance.argv,
            cwd=task.cwd,
            env=task.agent.env,
            given={"TENUTO_TASK": task.id},
            limit=policy.check_limit,
            grace=policy.interrupt_grace,
        )

    def _halt_order(self, seen: Seen) -> Halt | None:
        live = seen.snapshot.live_command
        return Halt(live.id, seen.snapshot.run.policy.interrupt_grace, live.place) if live is not None else None

    def _given(self, command: Command) -> dict[str, str]:
        return {
            "TENUTO_TASK": command.task_id,
            "TENUTO_ATTEMPT": command.attempt_id or "",
            "TENUTO_COMMAND": command.id,
            "TENUTO_API": self._around.api,
            "TENUTO_SPOOL": self._around.spool,
        }


def _turn_is_over(snapshot: Snapshot, facts: CommandFacts) -> bool:
    """Whether the live turn has ended or nothing is left of it: its progress is measured then."""
    live = snapshot.live_command
    if live is None or live.id != facts.command_id:
        return False
    gone = facts.performer is Presence.GONE and facts.agent is Presence.GONE
    return facts.mark is Mark.ENDED or (gone and facts.mark in (Mark.BEGUN, Mark.ACCEPTED))


def _harmless(command: Command) -> bool:
    """Whether a turn may be made beside it: words for a turn that is over, of which nobody knows if they were read."""
    return command.kind is CommandKind.STEER and command.state is CommandState.AMBIGUOUS
