"""The verbs of supervision: look, tell what was seen elsewhere, plan, send one fenced turn, pass the lease on.

Planning and orchestrating read only. Executing is the ordinary wake of one exactly named task, refused beforehand if
any rung would hold it; there is no second way to send.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tenuto.core import (
    arm,
    classify,
    control,
    decide,
    orchestrate,
    reconcile,
    rungs,
    signs,
    supervision,
    takeover,
    wake,
)
from tenuto.engine.calling import Caller, Done, Effect
from tenuto.engine.cycle import Cycle
from tenuto.model.change import Committed, NotLeader
from tenuto.model.command import Command, CommandKind
from tenuto.model.conversation import Conversation
from tenuto.model.decision import Because
from tenuto.model.evidence import Sighting, WorkspaceFacts
from tenuto.model.fact import Scalar
from tenuto.model.faults import Conflict, Mistake, NoSupervisor, NotFound, Refused
from tenuto.model.health import Assessment, Clocks
from tenuto.model.ids import ConversationId, TaskId
from tenuto.model.lifecycle import CommandState, LeaseState
from tenuto.model.reconciliation import Flawed, Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import PageName, ToolFacts
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.model.work import WakeKind
from tenuto.ports import Clock, Ledger, Minter

#: How many tasks one orchestration looks at.
CONSIDERED = 500
#: How much recorded evidence one answer holds.
SHOWN = 200

OUR_LEASE = "our lease alone"
BY_HAND = "take it over there yourself and say --by-hand, or name its address in `tool_doors`"

One = Callable[[Caller, str, TaskId, str | None, Callable[[Snapshot, datetime], supervision.Outcome]], Awaitable[Done]]


@dataclass(frozen=True)
class Evidence:
    """What is known of a task's health now: the judgement, its clocks, its flaws, its tools, and what was recorded."""

    task_id: TaskId
    health: Assessment
    clocks: Clocks
    flaws: tuple[Flawed, ...]
    tools: tuple[ToolFacts, ...]
    sightings: tuple[Sighting, ...]
    at: datetime
    workspace: WorkspaceFacts | None = None
    watched: tuple[WatchedFacts, ...] = ()


@dataclass(frozen=True)
class Reconciled:
    """A recorded look: its fence and members, what was found, and why another is wanted (None: none is)."""

    task_id: TaskId
    fence: str
    members: tuple[str, ...]
    findings: tuple[str, ...]
    wanting: Because | None


@dataclass(frozen=True)
class Planned:
    """What a send would come to: every rung with its answer, the fence it would be armed on, what would be done."""

    task_id: TaskId
    rungs: tuple[tuple[str, Because | None], ...]
    intent: str | None
    because: Because | None
    fence: str
    members: tuple[str, ...]
    proof: bool
    at: datetime


class Supervision:
    """Verbs over the evidence of tasks. `one` carries a verb out on one task; `lead` refuses where nobody leads."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        clock: Clock,
        minter: Minter,
        slots: int,
        one: One,
        lead: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._cycle = cycle
        self._clock = clock
        self._mint = minter
        self._slots = slots
        self._one = one
        self._lead = lead

    # -- looking

    async def evidence(self, task_id: TaskId) -> Evidence:
        """Look at a task now and judge it; nothing is written."""
        seen = await self._look(task_id)
        now = self._clock.now()
        watch = self._cycle.watch
        case = classify.of(seen, watch.since(task_id), now, watch.away_since(task_id))
        return Evidence(
            task_id=task_id,
            health=classify.episode(seen.snapshot.task.health, classify.classify(case)),
            clocks=classify.clocks(case),
            flaws=tuple(finding for finding in seen.found.findings if isinstance(finding, Flawed)),
            tools=seen.found.tools,
            sightings=self._ledger.sightings(task_id, SHOWN),
            at=now,
            workspace=seen.found.workspace,
            watched=seen.found.watched,
        )

    async def observe(
        self, caller: Caller, task_id: TaskId, told: Sequence[supervision.Told], key: str | None
    ) -> tuple[Done, int, int]:
        """Keep what somebody else saw, at rank 5: it is shown, and decides no send."""
        caller.must_operate()
        for number, each in enumerate(told):
            self._sane(number, each)
        counts = [0, len(told)]

        def act(snapshot: Snapshot, now: datetime) -> supervision.Outcome:
            taken = supervision.observed(snapshot, told, caller.name, now, self._mint.new)
            counts[:] = [taken.taken, taken.known]
            return taken.commit

        done = await self._one(caller, f"observe {told}", task_id, key, act)
        return done, counts[0], counts[1]

    @staticmethod
    def _sane(number: int, told: supervision.Told) -> None:
        field = f"observations.{number}"
        if told.seen_at.tzinfo is None:
            raise Mistake("an observation's moment needs its offset", field=f"{field}.seen_at")
        if not told.facts:
            raise Mistake("an observation says at least one thing", field=f"{field}.facts")
        if len({name for name, _ in told.facts}) != len(told.facts):
            raise Mistake("an observation says each thing once", field=f"{field}.facts")
        for name, value in told.facts:
            if objection := signs.objection(name, value):
                raise Mistake(objection, field=f"{field}.facts")

    async def reconcile(self, caller: Caller, task_id: TaskId) -> Reconciled:
        """Look at everything of a task and record the look."""
        caller.must_operate()
        self._lead()
        seen = await self._look(task_id)
        now = self._clock.now()
        wanting = None if seen.snapshot.task.terminal else rungs.twice(seen, now)
        if not seen.snapshot.task.terminal:
            await self._write(seen, now)
        fence, members = supervision.fence_of(seen)
        findings = tuple(f"{type(finding).__name__}: {_said(finding)}" for finding in seen.found.findings)
        return Reconciled(task_id, fence, members, findings, wanting)

    async def _write(self, seen: Seen, now: datetime) -> None:
        commit = arm.sampled(seen, now, self._mint.new)
        if commit is None:
            return
        match await self._ledger.commit(commit):
            case Committed():
                self._cycle.ring(seen.snapshot.task.id)
            case NotLeader(epoch):
                raise NoSupervisor(f"another supervisor leads now (epoch {epoch})")
            case _:
                raise Conflict("the task changed meanwhile; look again", field="task")

    # -- planning

    async def plan(self, task_id: TaskId) -> Planned:
        """What one send would come to if it were asked for now; dry."""
        seen = self._asked(await self._look(task_id))
        now = self._clock.now()
        decision = decide.decide(seen, now)
        fence, members = supervision.fence_of(seen)
        return Planned(
            task_id=task_id,
            rungs=decide.whole(seen, now),
            intent=type(decision.intent).__name__ if decision.intent is not None else None,
            because=decision.because or decide.beyond(seen, now),
            fence=fence,
            members=members,
            proof=reconcile.proof_needed(seen.snapshot, anyway=False),
            at=now,
        )

    async def execute(self, caller: Caller, task_id: TaskId, confirm: str, fence: str | None, key: str | None) -> Done:
        """One fenced send of one task, named whole; refused if a rung holds it, or if `fence` is not what is seen."""
        caller.must_operate()
        self._lead()
        if confirm != task_id:
            raise Mistake("name the task whole, as `tenuto show` prints it, to confirm it", field="confirm_task")
        planned = await self.plan(task_id)
        if planned.because is not None:
            raise Refused(planned.because.sentence, see=planned.because.change)
        if fence is not None and fence != planned.fence:
            raise Refused("what is seen is not what was planned on", see=f"tenuto dispatch plan {task_id}")
        before = {command.id for command in self._ledger.commands(CONSIDERED, task_id=task_id)}
        done = await self._one(
            caller,
            f"dispatch {fence}",
            task_id,
            key,
            lambda snapshot, now: control.continue_once(snapshot, caller.name, now, self._mint.new, anyway=False),
        )
        if done.replayed:
            return done
        await self._cycle.serve(task_id)
        made = [command for command in self._ledger.commands(CONSIDERED, task_id=task_id) if command.id not in before]
        result: dict[str, Scalar] = {**done.result, "command": None, "state": "asked"}
        if made:
            result |= {"command": made[0].id, "state": made[0].state, "fence": made[0].fence}
        return _with(done, result)

    def _asked(self, seen: Seen) -> Seen:
        """The same as if the operator had asked for one attempt; in thought only."""
        snapshot = seen.snapshot
        if snapshot.task.terminal:
            return seen
        now = self._clock.now()
        row = wake.added(snapshot, WakeKind.MANUAL, "planned", now, now, self._mint.new, asked_by="plan")
        others = tuple(each for each in snapshot.wakes if each.kind is not WakeKind.MANUAL)
        return replace(seen, snapshot=replace(snapshot, wakes=(*others, row)))

    async def orchestrate(self, given: Sequence[TaskId]) -> orchestrate.Plan:
        """Which of these tasks (of all unfinished ones, where none is given) would be served next; changes nothing."""
        if twice := supervision.duplicates(given):
            raise Mistake(f"{twice[0]} is given twice", field="tasks")
        if len(given) > CONSIDERED:
            raise Mistake(f"at most {CONSIDERED} tasks are considered at once", field="tasks")
        names = list(given) or [task.id for task in self._ledger.tasks(CONSIDERED, unfinished=True)]
        seen = [await self._look(name, whole=False) for name in names]
        return orchestrate.plan(seen, self._clock.now())

    # -- tool servers

    async def sessions(self, cwd: str | None) -> tuple[ToolFacts, ...]:
        """Every session of every tool server that is known here."""
        return await self._cycle.tools.sessions(cwd) if self._cycle.tools is not None else ()

    async def bind(self, caller: Caller, task_id: TaskId, server: str, session: str, key: str | None) -> Done:
        caller.must_operate()
        return await self._one(
            caller, f"bind {server}/{session}", task_id, key,
            lambda seen, now: supervision.bind(seen, server, session, caller.name, now, self._mint.new),
        )  # fmt: skip

    async def unbind(self, caller: Caller, task_id: TaskId, subject: str | None, key: str | None) -> Done:
        caller.must_operate()
        return await self._one(
            caller, f"unbind {subject}", task_id, key,
            lambda seen, now: supervision.unbind(seen, subject, caller.name, now, self._mint.new),
        )  # fmt: skip

    async def mark_service(self, caller: Caller, task_id: TaskId, job: str, unmark: bool, key: str | None) -> Done:
        caller.must_operate()
        return await self._one(
            caller, f"mark {job} {unmark}", task_id, key,
            lambda seen, now: supervision.mark_service(seen, job, caller.name, now, self._mint.new, unmark=unmark),
        )  # fmt: skip

    # -- pages watched from outside

    async def shown(self) -> tuple[tuple[ShownPage, ...], tuple[str, ...]]:
        """Every page that a witness sees now, and of each witness that could not look, why."""
        pages: list[ShownPage] = []
        unasked: list[str] = []
        for name, witness in sorted(self._cycle.witnesses.items()):
            try:
                pages += await witness.shown()
            except Mistake as mistake:
                unasked.append(f"{name}: {mistake.message}")
        return tuple(pages), tuple(unasked)

    async def watch_page(self, caller: Caller, task_id: TaskId, witness: str, page: PageName, key: str | None) -> Done:
        """Let what a witness sees of a page count for a task."""
        caller.must_operate()
        if witness not in self._cycle.witnesses:
            known = ", ".join(sorted(self._cycle.witnesses)) or "none; name one in `page_witnesses`"
            raise Mistake(f"no page witness is called {witness} here; there are: {known}", field="by")
        return await self._one(
            caller, f"watch {witness} {page}", task_id, key,
            lambda seen, now: supervision.bind(seen, witness, str(page), caller.name, now, self._mint.new),
        )  # fmt: skip

    async def unwatch_page(self, caller: Caller, task_id: TaskId, subject: str | None, key: str | None) -> Done:
        """Let a page (all of them, where none is named) not count any more."""
        caller.must_operate()
        return await self._one(
            caller, f"unwatch {subject}", task_id, key,
            lambda seen, now: supervision.unbind(seen, subject, caller.name, now, self._mint.new, pages=True),
        )  # fmt: skip

    # -- the lease

    def places(self, task_id: TaskId) -> tuple[Conversation, ...]:
        """Every place of a task, oldest first."""
        return self._ledger.conversations(task_id)

    def _place(self, task_id: TaskId, given: str) -> Conversation:
        part = given.strip().lower().removeprefix("v-")
        if len(part) < 4:
            raise Mistake("name a conversation by 4 or more characters", field="conversation")
        found = [
            each
            for each in self.places(task_id)
            if each.id.removeprefix("v-").startswith(part) or each.id.endswith(part)
        ]
        if len(found) != 1:
            raise NotFound(f"that names {len(found)} conversations of the task", field="conversation")
        return found[0]

    async def register(
        self, caller: Caller, task_id: TaskId, identity: str, executor: str | None, key: str | None
    ) -> Done:
        caller.must_operate()
        hand = executor or self._cycle.executor_for(self._snapshot(task_id).task)
        done = await self._one(
            caller, f"register {identity} {executor}", task_id, key,
            lambda seen, now: supervision.register(
                seen, self.places(task_id), identity, hand, caller.name, now, self._mint.new
            ),
        )  # fmt: skip
        named = [each.id for each in self.places(task_id) if each.identity == identity]
        return _with(done, {**done.result, "conversation": named[-1] if named else None})

    async def claim(self, caller: Caller, task_id: TaskId, given: str, key: str | None) -> Done:
        caller.must_operate()
        named = self._place(task_id, given).id
        done = await self._one(
            caller, f"claim {named}", task_id, key,
            lambda seen, now: supervision.claim(seen, self._now(task_id, named), now, self._mint.new),
        )  # fmt: skip
        return self._held(done, task_id)

    async def heartbeat(self, caller: Caller, task_id: TaskId, lease_number: int, key: str | None) -> Done:
        caller.must_operate()
        done = await self._one(
            caller, f"heartbeat {lease_number}", task_id, key,
            lambda seen, now: supervision.heartbeat(seen, lease_number, now, self._mint.new),
        )  # fmt: skip
        return self._held(done, task_id)

    async def hand_off(self, caller: Caller, task_id: TaskId, to: str, key: str | None) -> Done:
        caller.must_operate()
        named = self._place(task_id, to).id
        return await self._one(
            caller, f"handoff {named}", task_id, key,
            lambda seen, now: supervision.hand_off(seen, self._now(task_id, named), caller.name, now, self._mint.new),
        )  # fmt: skip

    async def take_over(
        self, caller: Caller, task_id: TaskId, given: str, key: str | None, *, by_hand: bool = False
    ) -> Done:
        """Pass the lease to a candidate; looked at now, and compared with the looks that were recorded.

        Where the tool server fences its runs, it is made to give the session to a new one first. `by_hand`: somebody
        has seen to that, or our lease alone shall be the fence.
        """
        caller.must_operate()
        self._lead()
        place = self._place(task_id, given)
        named = place.id
        looked = await self._look(task_id)
        if not by_hand and (fenced := takeover.fenced(looked.found.tools)):
            return await self._taken_outside(place, looked, fenced)

        def act(snapshot: Snapshot, now: datetime) -> supervision.Outcome:
            if snapshot.task.revision != looked.snapshot.task.revision:
                raise Conflict("the task changed meanwhile; look again", field="task")
            return supervision.take_over(looked, self._now(task_id, named), now, self._mint.new)

        done = await self._one(caller, f"takeover {named}", task_id, key, act)
        held = self._held(done, task_id)
        return _with(held, {**held.result, "outside": supervision.outside_fence(looked)})

    async def _taken_outside(self, place: Conversation, looked: Seen, fenced: Sequence[ToolFacts]) -> Done:
        """The tool server first, as a command; the lease follows it in the commit that acknowledges it."""
        task_id, now = place.task_id, self._clock.now()
        holder = looked.snapshot.conversation
        if place.state is LeaseState.ACTIVE and holder is not None and holder.id == place.id:
            before = self._takeover_for(task_id, place.id)
            told: dict[str, Scalar] = {"task": task_id, "outside": OUR_LEASE if before is None else before.evidence}
            return self._held(Done(told, replayed=True, effects=(Effect(task_id, False),)), task_id)
        if because := supervision.may_take_over(looked, now):
            raise Refused(because.sentence, see=because.change)
        session = fenced[0]
        if len(fenced) > 1:
            subjects = ", ".join(each.subject for each in fenced)
            raise Refused(f"more than one tool session has a run of its own: {subjects}", see=BY_HAND)
        if self._cycle.taker is None:
            raise Refused("nothing here asks tool servers", see=BY_HAND)
        why = await self._cycle.taker.refusal(session, looked.snapshot.task.cwd)
        if why is not None:
            raise Refused(f"run {session.run} of {session.subject} cannot be taken over from here: {why}", see=BY_HAND)
        refused = await self._cycle.take_over(place, session.subject)
        if refused is not None:
            raise Refused(refused.sentence, see=refused.change)
        made = self._takeover_for(task_id, place.id)
        if made is None:
            raise Conflict("the task changed meanwhile; look again", field="task")
        if made.state is CommandState.FAILED:
            raise Refused(f"the tool server was not taken over: {made.detail}", see="mend that, and ask again")
        told = {"task": task_id, "command": made.id, "state": made.state, "outside": f"a new run of {session.subject}"}
        return self._held(Done(told, effects=(Effect(task_id, True),)), task_id)

    def _takeover_for(self, task_id: TaskId, place: ConversationId) -> Command | None:
        """The newest takeover that was made for a place."""
        for command in self._ledger.commands(CONSIDERED, task_id=task_id):
            if command.kind is CommandKind.TAKEOVER and command.conversation_id == place:
                return command
        return None

    async def abandon(self, caller: Caller, task_id: TaskId, given: str, key: str | None) -> Done:
        caller.must_operate()
        named = self._place(task_id, given).id
        return await self._one(
            caller, f"abandon {named}", task_id, key,
            lambda seen, now: supervision.abandon(seen, self._now(task_id, named), caller.name, now, self._mint.new),
        )  # fmt: skip

    def _held(self, done: Done, task_id: TaskId) -> Done:
        snapshot = self._ledger.snapshot(task_id, self._slots)
        holder = snapshot.conversation if snapshot is not None else None
        told: Mapping[str, Scalar] = {
            **done.result,
            "conversation": holder.id if holder is not None else None,
            "lease_number": holder.lease_number if holder is not None else None,
            "expires_at": holder.expires_at.isoformat() if holder is not None and holder.expires_at else None,
        }
        return _with(done, told)

    # -- within

    def _now(self, task_id: TaskId, named: ConversationId) -> Conversation:
        return next(each for each in self.places(task_id) if each.id == named)

    def _snapshot(self, task_id: TaskId) -> Snapshot:
        snapshot = self._ledger.snapshot(task_id, self._slots)
        if snapshot is None:
            raise NotFound(f"there is no task {task_id}", field="task")
        return snapshot

    async def _look(self, task_id: TaskId, *, whole: bool = True) -> Seen:
        return await self._cycle.look(self._snapshot(task_id), whole=whole)


def _with(done: Done, result: Mapping[str, Scalar]) -> Done:
    return replace(done, result=result)


def _said(finding: object) -> str:
    """A finding in a few words, for a person."""
    for name in ("why", "reason", "how"):
        told = getattr(finding, name, None)
        if isinstance(told, str):
            return told
    command = getattr(finding, "command", None)
    return str(getattr(command, "id", ""))
