"""The desk: every verb of operators and agents, once, behind all faces.

A verb reads, asks the core what the rows become, and commits; where a row moved meanwhile it looks again, a few
times. It never acts on the world: what a verb wants done is written, and the wheel is rung. Reading verbs work on any
registry that can be opened, with or without a supervisor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tenuto.core import control, delivery, slots
from tenuto.engine import elsewhere, words
from tenuto.engine.adopting import Adopting, Lent
from tenuto.engine.calling import Caller, Done, Effect
from tenuto.engine.chaining.hosts import Hosts
from tenuto.engine.chains import Chains, Helpers
from tenuto.engine.cycle import Cycle
from tenuto.engine.hooking import Hooking
from tenuto.engine.importing import Importing, Loan
from tenuto.engine.limiting import Limiting
from tenuto.engine.numbers import TASK_CAPS, auto_resume, cap, numbered, policy_with
from tenuto.engine.ordering import Order, checked, rows
from tenuto.engine.permitting import Permitting
from tenuto.engine.reading import EVERY, LISTED, Explained, Shown
from tenuto.engine.spawning import Source, Spawn, Spawning
from tenuto.engine.supervising import Supervision
from tenuto.engine.tokens import Tokens, Wanted
from tenuto.engine.unfollowed import unfollowed
from tenuto.engine.writing import TRIES, Writing
from tenuto.model.change import Commit
from tenuto.model.decision import Because
from tenuto.model.evidence import Presence
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, NoSupervisor, NotAllowed, Refused
from tenuto.model.ids import CommandId, RunId, TaskId, WaitId
from tenuto.model.lifecycle import TaskState
from tenuto.model.message import MessagePolicy
from tenuto.model.permission import Verdict
from tenuto.model.policy import KEEPING, POLICY, Keeping, Policy
from tenuto.model.snapshot import Leadership, Role, Snapshot, Token
from tenuto.model.work import (
    HUMAN_WAITS,
    Agent,
    DispositionSource,
    ReportKind,
    Wait,
    WaitKind,
)
from tenuto.ports import Clock, Executor, Fuse, Ledger, Minter, NoFuse, Playbooks, Sessions, UnitSources

__all__ = ["Caller", "Desk", "Done", "Effect", "Explained", "Order", "Shown"]


class Desk(Writing):
    """Verbs over one registry. `ledger` None: a reader's desk, on which nothing can be changed."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        clock: Clock,
        minter: Minter,
        *,
        slots: int,
        defaults: Policy = POLICY,
        keep: Keeping = KEEPING,
        executors: Mapping[str, Executor] | None = None,
        away: elsewhere.Elsewhere | None = None,
        ring: Callable[[TaskId], None] | None = None,
        stop: Callable[[], None] | None = None,
        troubles: Callable[[], Sequence[str]] = tuple,
        presence: Callable[[Leadership], Presence] = lambda _holder: Presence.UNKNOWN,
        playbooks: Playbooks | None = None,
        sources: UnitSources | None = None,
        hosts: Hosts | None = None,
        sessions: Sessions | None = None,
        fuse: Fuse | None = None,
    ) -> None:
        super().__init__(
            ledger, cycle, clock, minter,
            slots=slots, defaults=defaults, keep=keep, troubles=troubles, presence=presence, ring=ring,
        )  # fmt: skip
        self._executors = executors or {}
        self._stop = stop
        self._spawning = Spawning(ledger, minter, self._executors, playbooks, defaults, Cycle.executor_of, policy_with)
        self._tokens = Tokens(ledger, clock, minter)
        self._elsewhere = away or elsewhere.Nowhere()
        self.chains = Chains(
            ledger, cycle, clock, minter, slots, defaults, self._spawning, sources, fuse or NoFuse(),
            Helpers(self._must_lead, self._replay, self._key, self._in_time, self._rung), hosts,
        )  # fmt: skip
        self.permitting = Permitting(ledger, minter, self._one, self._replay)
        self.limiting = Limiting(ledger, clock)
        self.supervision = Supervision(ledger, cycle, clock, minter, slots, self._one, self._must_lead)
        self.hooking = Hooking(ledger, self.supervision, clock, self._rung)
        lent = Lent(self._must_lead, self._allowed, self._replay, self._key, self._committed, self._rung)
        self.adopting = Adopting(ledger, clock, minter, self._executors, sessions, lent)
        self.importing = Importing(
            ledger, clock, minter, Loan(self._must_lead, self._allowed, self._key, self._committed, self._rung)
        )

    # -- work

    async def create(self, caller: Caller, order: Order, key: str | None = None) -> Done:
        """Make a run with one task. Raises Mistake with the field to mend."""
        caller.must_operate()
        if (replay := self._replay(caller, key, "create", order)) is not None:
            return replay  # before anything is objected to: what was made stays made
        policy = checked(order, self._defaults, self._executors)
        made, result = rows(order, policy, self._clock.now(), self._mint.new)
        commit = replace(made, key=self._key(caller, "create", key, order, result))
        done = await self._committed(commit, result)
        self._rung(TaskId(str(result["task"])))
        return done

    def _allowed(self, title: str, objective: str, cwd: str, agent: Agent) -> Policy:
        """The policy of work that may be; raises Mistake with the field to mend."""
        return checked(Order(title, objective, cwd, agent), self._defaults, self._executors)

    async def spawn(self, caller: Caller, asked: Spawn, key: str | None) -> Done:
        """Make one more task, at most once under one key. What is refused has made nothing."""
        if key is None:
            raise Mistake("a spawn needs an idempotency key, to be asked for again under", field="Idempotency-Key")
        if caller.role is Role.EXECUTOR:
            raise NotAllowed("an executor's token opens no verbs")
        self._must_lead()
        async with self._spawning.lock:
            if (replay := self._replay(caller, key, "spawn", asked)) is not None:
                return replay
            now = self._clock.now()
            if caller.task_id is not None:
                await self._in_time(caller, self._snapshot(caller.task_id), "spawn")
            made = self._spawning.made(Source(caller.role, caller.task_id), asked, now)
            commit = replace(made.commit, key=self._key(caller, "spawn", key, asked, made.result))
            done = await self._committed(commit, made.result)
        self._rung(made.task_id)
        return done

    async def ready(self, caller: Caller, given: str, note: str, *, key: str | None = None) -> Done:
        """Say that a task's work can be closed; with auto-close it is, after a grace."""
        if not note.strip():
            raise Mistake("say in a line what is ready", field="note")
        self._short("note", note)
        return await self._one(
            caller,
            f"ready {note}",
            self.task_id(given),
            key,
            lambda seen, now: control.ready(seen, note, now, self._mint.new),
        )

    def slots(self) -> slots.Ledger:
        """Who holds a slot and what it does with it, and who stands in line."""
        now = self._clock.now()
        held = []
        for task in self._ledger.active(LISTED):
            snapshot = self._ledger.snapshot(task.id, self._slots)
            if snapshot is not None and snapshot.task.state is TaskState.ACTIVE:
                policy = snapshot.run.policy
                held.append(slots.occupancy(snapshot.task, snapshot.live, snapshot.live_command, policy, now))
        used = sum(one.counts for one in held)
        return slots.Ledger(
            slots=self._slots,
            free=max(self._slots - used, 0),
            held=tuple(held),
            line=slots.in_order(self._ledger.line()),
            pending_cap=self._defaults.pending_tasks,
            spawned_pending=self._ledger.spawned_pending(),
        )

    # -- executors elsewhere

    def executors(self) -> Sequence[elsewhere.Known]:
        """Every executor that has been connected since this supervisor leads."""
        return self._elsewhere.standings()

    async def settle_executor(self, caller: Caller, name: str, command: str, key: str | None) -> Done:
        """Say that somebody has looked at a command that only an executor knows; nothing else follows from it."""
        caller.must_operate()
        self._must_lead()
        if self._ledger.replayed(elsewhere.SCOPE, command) is not None:
            return Done({"executor": name, "command": command}, replayed=True)
        commit, result = elsewhere.settled(self._elsewhere, name, command, caller.name)
        done = await self._committed(commit, result)
        self._elsewhere.accept_stranger(name, CommandId(command))
        return done

    async def lift_limit(self, caller: Caller, given: str, key: str | None) -> Done:
        """Say that a usage limit is over: its tasks go on."""
        caller.must_operate()
        self._must_lead()
        if (replay := self._replay(caller, key, "lift", given)) is not None:
            return replay
        commit, result, waiting = self.limiting.lift(self.resolve("limit", given), caller.name)
        if commit is None:
            return Done({**result, "changed": False})
        done = await self._committed(replace(commit, key=self._key(caller, "lift", key, given, result)), result)
        for task_id in waiting:
            self._rung(task_id)
        return done

    # -- tokens

    def tokens(self) -> tuple[Token, ...]:
        """Tokens that were made by hand, oldest first."""
        return self._tokens.listed()

    async def make_token(self, caller: Caller, wanted: Wanted, key: str | None) -> Done:
        """Make a token. It is in this answer and in no other, and nowhere on the disk."""
        caller.must_operate()
        self._must_lead()
        if (replay := self._replay(caller, key, "token", wanted)) is not None:
            return replay
        commit, secret, result = self._tokens.made(wanted, caller.name)
        await self._committed(replace(commit, key=self._key(caller, "token", key, wanted, result)), result)
        return Done({**result, "secret": secret})

    async def revoke_token(self, caller: Caller, given: str, key: str | None) -> Done:
        """Take a token back: nothing is opened by it from now on."""
        caller.must_operate()
        self._must_lead()
        if (replay := self._replay(caller, key, "revoke", given)) is not None:
            return replay
        commit, result = self._tokens.revoked(given, caller.name)
        if commit is None:
            return Done({**result, "changed": False})
        return await self._committed(replace(commit, key=self._key(caller, "revoke", key, given, result)), result)

    async def pause(self, caller: Caller, given: str, key: str | None = None) -> Done:
        """Stop future automatic continuation of a task, or of a run's unfinished tasks."""
        return await self._each(
            caller, "pause", given, key, lambda seen, now: control.pause(seen, caller.name, now, self._mint.new)
        )

    async def resume(self, caller: Caller, given: str, *, stalled: bool = False, key: str | None = None) -> Done:
        """Clear the operator's pause, and the stall pause when `stalled` says so."""
        return await self._each(
            caller,
            f"resume stalled={stalled}",
            given,
            key,
            lambda seen, now: control.resume(seen, caller.name, now, self._mint.new, stalled=stalled),
        )

    async def continue_(self, caller: Caller, given: str, *, anyway: bool = False, key: str | None = None) -> Done:
        """Ask for one attempt of one task."""
        caller.must_operate()
        return await self._one(
            caller,
            f"continue anyway={anyway}",
            self.task_id(given),
            key,
            lambda seen, now: control.continue_once(seen, caller.name, now, self._mint.new, anyway=anyway),
        )

    async def cancel(self, caller: Caller, given: str, *, reason: str = "", key: str | None = None) -> Done:
        """Stop a task for good, or a run with all its unfinished tasks."""
        return await self._each(
            caller,
            f"cancel {reason}",
            given,
            key,
            lambda seen, now: control.cancel(seen, caller.name, reason, now, self._mint.new),
            stop_run=True,
        )

    async def wait(
        self,
        caller: Caller,
        given: str,
        kind: WaitKind,
        question: str,
        *,
        subject: str | None = None,
        until: datetime | None = None,
        key: str | None = None,
    ) -> Done:
        """Record a durable reason not to continue."""
        task_id = self.task_id(given)
        self._short("question", question)
        if kind is WaitKind.CHILDREN:
            subject = self._children(task_id, subject or "all")
        if kind in (WaitKind.TASK, WaitKind.PATH, WaitKind.COMMIT) and not subject:
            raise Mistake(f"a wait on a {kind} names it", field="on")
        if kind is WaitKind.TASK and subject is not None:
            subject = self.task_id(subject)
            if subject == task_id:
                raise Mistake("a task cannot wait for itself", field="on")
        if kind is WaitKind.TIME and until is None:
            raise Mistake("a wait for a time names the instant, with its offset", field="until")
        return await self._one(
            caller,
            f"wait {kind} {question} {subject} {until}",
            task_id,
            key,
            lambda seen, now: control.open_wait(
                seen, kind, question, now, self._mint.new, subject=subject, until=until
            ),
        )

    def _children(self, task_id: TaskId, subject: str) -> str:
        """`any` or `all` and the names of the children that are meant, each a child of the task indeed."""
        how, *given = subject.replace(",", " ").split()
        if how not in ("any", "all"):
            raise Mistake("a wait for children is for any or for all of them", field="on")
        mine = [child.id for child in self._ledger.children(task_id, LISTED)]
        if not mine:
            raise Mistake("this task has no children to wait for", field="on")
        named: list[str] = []
        for one in given:
            bare = one.strip().lower().removeprefix("t-")
            found = [child for child in mine if len(bare) >= 4 and bare in child]
            if len(found) != 1:
                raise Mistake(f"'{one[:40]}' names none of its children, or several", field="on")
            named.append(found[0])
        return " ".join((how, *named))

    async def answer(
        self,
        caller: Caller,
        given: str,
        body: str,
        *,
        verdict: Verdict | None = None,
        wait: str | None = None,
        key: str | None = None,
    ) -> Done:
        """Answer the open question of a task (the one named, or the only one); `verdict` where it asks for leave."""
        caller.must_operate()
        task_id = self.task_id(given)
        named = self.resolve("wait", wait) if wait is not None else None
        if (done := await self.permitting.answer(caller, task_id, body, verdict, named, key)) is not None:
            return done
        self._sized("answer", body)
        waits = [row for row in self._ledger.waits(LISTED, task_id=task_id) if row.kind is not WaitKind.CAP]
        if wait is not None:
            waits = [row for row in waits if row.id == WaitId(self.resolve("wait", wait))]
        if not waits:
            replay = self._replay(caller, key, f"answer {body}", task_id)
            if replay is not None:
                return replay
            raise Refused("the task waits for nothing that could be answered", field="task")
        human = [row for row in waits if row.kind in HUMAN_WAITS] or waits
        if len(human) > 1:
            names = ", ".join(f"{row.id} ({row.question[:40]})" for row in human[:5])
            raise Mistake(f"it waits for several things; name one with --wait: {names}", field="wait")
        return await self._one(
            caller,
            f"answer {body}",
            task_id,
            key,
            lambda seen, now: control.answer(seen, self._still(seen, human[0]), body, caller.name, now, self._mint.new),
        )

    @staticmethod
    def _still(seen: Snapshot, wait: Wait) -> Wait:
        found = next((row for row in seen.waits if row.id == wait.id), None)
        if found is None:
            raise Refused("that question was settled meanwhile", field="wait")
        return found

    async def complete(
        self, caller: Caller, given: str, evidence: str, *, summary: str = "", key: str | None = None
    ) -> Done:
        """End a task (the operator), or claim that it is complete (its agent)."""
        if not evidence.strip():
            raise Mistake("name a reference that proves the completion", field="evidence")
        self._short("evidence", evidence)
        self._short("summary", summary)
        source = DispositionSource.OPERATOR if caller.role is Role.OPERATOR else DispositionSource.AGENT
        return await self._one(
            caller,
            f"complete {evidence} {summary}",
            self.task_id(given),
            key,
            lambda seen, now: control.complete(seen, source, evidence, summary, now, self._mint.new),
        )

    async def fail(self, caller: Caller, given: str, reason: str, *, key: str | None = None) -> Done:
        """End a task as failed."""
        if not reason.strip():
            raise Mistake("say why it failed", field="reason")
        self._short("reason", reason)
        source = DispositionSource.OPERATOR if caller.role is Role.OPERATOR else DispositionSource.AGENT
        return await self._one(
            caller,
            f"fail {reason}",
            self.task_id(given),
            key,
            lambda seen, now: control.fail(seen, source, reason, now, self._mint.new),
        )

    async def report(
        self, caller: Caller, given: str, lines: Sequence[tuple[str, str]], *, key: str | None = None
    ) -> Done:
        """Record a structured progress report."""
        if not lines:
            raise Mistake("a report has at least one line", field="lines")
        if sum(len(name.encode()) + len(value.encode()) for name, value in lines) > self._defaults.report_bytes:
            raise Mistake(f"a report has at most {self._defaults.report_bytes} bytes", field="lines")
        kept = tuple((name, value) for name, value in lines)
        return await self._one(
            caller,
            f"report {kept}",
            self.task_id(given),
            key,
            lambda seen, now: control.report(seen, ReportKind.PROGRESS, kept, now, self._mint.new),
        )

    async def request_checkpoint(self, caller: Caller, given: str, *, key: str | None = None) -> Done:
        """Ask a task for a structured report in its next turn."""
        caller.must_operate()
        return await self._one(
            caller,
            "checkpoint",
            self.task_id(given),
            key,
            lambda seen, now: control.request_checkpoint(seen, caller.name, now, self._mint.new),
        )

    async def set_policy(
        self, caller: Caller, given: str, changes: Mapping[str, str], *, key: str | None = None
    ) -> Done:
        """Override policy numbers of a task (auto-resume and its caps) or of a run (any number)."""
        caller.must_operate()
        run_id, task_ids = self.tasks_of(given)
        if run_id is not None:
            return await self._set_run_policy(caller, run_id, changes, task_ids, key)
        known = {"auto-resume", *TASK_CAPS}
        if unknown := set(changes) - known:
            raise Mistake(
                f"a task has no policy '{sorted(unknown)[0]}'; it has {', '.join(sorted(known))}",
                field=sorted(unknown)[0],
            )
        mode = changes.get("auto-resume")
        clear = mode == "inherit"
        auto = None if mode is None or clear else auto_resume(mode)
        caps = {name.replace("-", "_"): cap(name, value) for name, value in changes.items() if name in TASK_CAPS}
        return await self._one(
            caller,
            f"policy {sorted(changes.items())}",
            task_ids[0],
            key,
            lambda seen, now: control.set_policy(
                seen, caller.name, now, self._mint.new,
                auto_resume=auto, clear_auto_resume=clear, caps=caps,
            ),
        )  # fmt: skip

    async def _set_run_policy(
        self, caller: Caller, run_id: RunId, changes: Mapping[str, str], task_ids: Sequence[TaskId], key: str | None
    ) -> Done:
        numbers, auto = numbered(changes)
        result: dict[str, Scalar] = {"run": run_id}
        for _ in range(TRIES):
            run = self.run(run_id)
            changed = replace(
                run,
                revision=run.revision + 1,
                policy=policy_with(run.policy, numbers),
                auto_resume=auto or run.auto_resume,
            )
            data: dict[str, Scalar] = {name: str(value) for name, value in changes.items()}
            commit = Commit(
                puts=(changed,),
                facts=(Fact(FactKind.RUN_CHANGED, run_id, None, data),),
                key=self._key(caller, f"policy {run_id}", key, sorted(changes.items()), result),
            )
            done = await self._try(commit, result)
            if done is not None:
                for task_id in task_ids:
                    self._rung(task_id)
                return done
        raise Conflict("the run is changing too fast; try again")

    # -- words

    async def say(
        self,
        caller: Caller,
        given: str,
        body: str,
        *,
        policy: MessagePolicy = MessagePolicy.NEXT_TURN,
        corrective: str | None = None,
        key: str | None = None,
    ) -> Done:
        """Store words for a task, to be recorded, to ride with its next turn, or to be delivered now.

        The answer says how they will be delivered as things stand, and when at the earliest.
        """
        self._sized("message", body)
        if corrective is not None:
            self._short("corrective", corrective)
        party = words.party_of(caller.role)
        words.checked(party, policy, corrective, key)
        task_id = words.reached(self._ledger, caller.role, caller.task_id, given, self.task_id)
        verb = f"say {policy} {corrective} {body}"
        self._must_lead()
        if (replay := self._replay(caller, key, verb, task_id)) is not None:
            return replay
        if caller.task_id is not None:
            await self._in_time(caller, self._snapshot(caller.task_id), verb)
        looked = await self._cycle.look(self._snapshot(task_id))
        told: dict[str, Scalar] = {}

        def act(seen: Snapshot, now: datetime) -> control.Outcome:
            stored = delivery.store(
                replace(looked, snapshot=seen), party, caller.name, body, policy, corrective, now, self._mint.new
            )
            if isinstance(stored, Because):
                return stored
            prospect = stored.prospect
            told["message"] = stored.message.id
            told["delivery"] = prospect.way.value
            told["by"] = None if prospect.by is None else prospect.by.isoformat()
            told["because"] = prospect.because
            return stored.commit

        return await self._one(caller, verb, task_id, key, act, told=told)

    def known(self, caller: Caller, given: str) -> TaskId:
        """The task that the caller may read about: any, its own, or one of the run it coordinates."""
        if caller.role is Role.EXECUTOR:
            raise NotAllowed("an executor's token opens no verbs")
        return words.known(self._ledger, caller.role, caller.task_id, given, self.task_id)

    def known_run(self, caller: Caller, given: str | None) -> RunId | None:
        """The run that the caller may read about: any, or the one it coordinates, which it need not name."""
        if caller.role is Role.OPERATOR:
            return None if given is None else self.run_id(given)
        run = words.coordinated(self._ledger, caller.role, caller.task_id)
        if run is None or (given is not None and given.strip().lower() not in run.id):
            raise NotAllowed("this token opens its own run only, and that only for its coordinator", field="run")
        return run.id

    async def coordinate(self, caller: Caller, given: str, task: str | None, *, key: str | None = None) -> Done:
        """Make a task its run's coordinator, which is told what the others come to; None: the run has none."""
        caller.must_operate()
        self._must_lead()
        run_id = self.run_id(given)
        task_id = self.task_id(task) if task is not None else None
        if (replay := self._replay(caller, key, f"coordinate {task_id}", run_id)) is not None:
            return replay
        result: dict[str, Scalar] = {"run": run_id, "coordinator": task_id}
        for _ in range(TRIES):
            run = self.run(run_id)
            if run.coordinator == task_id:
                return Done({**result, "changed": False})
            commit = Commit(
                puts=(replace(run, revision=run.revision + 1, coordinator=task_id),),
                facts=(Fact(FactKind.RUN_CHANGED, run_id, None, {"coordinator": task_id, "by": caller.name}),),
                key=self._key(caller, f"coordinate {task_id}", key, run_id, result),
            )
            if task_id is not None:
                chosen = self.task(task_id)
                if chosen.run_id != run_id or chosen.terminal:
                    raise Mistake("a coordinator is an unfinished task of the run itself", field="task")
                # What happened before it was chosen it can look up; it is told what comes after.
                informed = replace(chosen, revision=chosen.revision + 1, informed=self._ledger.last_event())
                commit = replace(commit, puts=(*commit.puts, informed))
            done = await self._try(commit, result)
            if done is not None:
                return done
        raise Conflict("the run is changing too fast; try again", field="run")

    # -- supervision

    async def release(
        self, caller: Caller, given: str, *, happened: bool, by: str | None = None, key: str | None = None
    ) -> Done:
        """Give a verdict on an ambiguous command, with a name on it."""
        caller.must_operate()
        command = self.command(CommandId(self.resolve("command", given)))
        alone = await unfollowed(self._executors, command)
        return await self._one(
            caller,
            f"release {command.id} {happened}",
            command.task_id,
            key,
            lambda seen, now: control.release(
                seen,
                self.command(command.id),
                by or caller.name,
                happened=happened,
                now=now,
                new=self._mint.new,
                unfollowed=alone,
            ),
        )

    async def reconcile(self, caller: Caller, given: str) -> Done:
        """Look at what a command hangs on again, now."""
        caller.must_operate()
        self._must_lead()
        command = self.command(CommandId(self.resolve("command", given)))
        await self._cycle.serve(command.task_id)
        after = self.command(command.id)
        return Done({"command": after.id, "state": after.state, "detail": after.detail})

    async def hold(self, caller: Caller, *, lift: bool = False) -> Done:
        """Hold everything: nothing is continued anywhere until it is lifted."""
        caller.must_operate()
        for _ in range(TRIES):
            now, registry = self._clock.now(), self._ledger.registry()
            if (registry.held_at is None) == lift:
                return Done({"held": not lift})
            changed = replace(
                registry,
                revision=registry.revision + 1,
                held_at=None if lift else now,
                held_by=None if lift else caller.name,
            )
            kind = FactKind.HOLD_LIFTED if lift else FactKind.HOLD_SET
            done = await self._try(
                Commit(puts=(changed,), facts=(Fact(kind, data={"by": caller.name}),)), {"held": not lift}
            )
            if done is not None:
                if lift:
                    for task in self._ledger.tasks(EVERY, unfinished=True):
                        self._rung(task.id)
                return done
        raise Conflict("the registry is changing too fast; try again")

    async def stop(self, caller: Caller) -> Done:
        """Ask the supervisor to stop; nothing is cancelled by it."""
        caller.must_operate()
        if self._stop is None:
            if not await self._ledger.ask_stop(self._clock.now()):
                raise NoSupervisor("no supervisor holds the lease of this registry")
            return Done({"stopping": True})
        self._stop()
        return Done({"stopping": True})
