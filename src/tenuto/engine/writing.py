"""How a verb is written down: look, ask the core what the rows become, commit; again where a row moved meanwhile.

Once under an idempotency key, refused to whoever may not, and shown where it comes from a conversation that a later
lease has fenced. It never acts on the world: what is wanted done is a row, and the wheel is rung.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never
from weakref import WeakValueDictionary

from tenuto.core import control
from tenuto.engine.calling import Caller, Done, Effect
from tenuto.engine.concern import concerned
from tenuto.engine.cycle import Cycle
from tenuto.engine.reading import Reading
from tenuto.model.change import KEY_LIFE, Busy, Commit, Committed, Key, KeyConflict, NotLeader, Replayed, Stale
from tenuto.model.decision import Because
from tenuto.model.evidence import Presence
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, NoSupervisor, Refused
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import RunState
from tenuto.model.policy import Keeping, Policy
from tenuto.model.snapshot import Leadership, Role, Snapshot
from tenuto.ports import Clock, Ledger, Minter

TRIES = 5

Verb = Callable[[Snapshot, datetime], control.Outcome]


class Writing(Reading):
    """What all writing verbs share. `ring` None: a reader's desk, on which nothing can be changed."""

    def __init__(
        self,
        ledger: Ledger,
        cycle: Cycle,
        clock: Clock,
        minter: Minter,
        *,
        slots: int,
        defaults: Policy,
        keep: Keeping,
        troubles: Callable[[], Sequence[str]],
        presence: Callable[[Leadership], Presence],
        ring: Callable[[TaskId], None] | None,
    ) -> None:
        super().__init__(
            ledger, cycle, clock, slots=slots, defaults=defaults, keep=keep, troubles=troubles, presence=presence
        )
        self._mint = minter
        self._ring = ring
        self._turns: WeakValueDictionary[TaskId, asyncio.Lock] = WeakValueDictionary()

    def _must_lead(self) -> None:
        if self._ring is None:
            raise NoSupervisor("this verb needs a running supervisor; start one with: tenuto start")

    def _rung(self, task_id: TaskId) -> None:
        if self._ring is not None:
            self._ring(task_id)

    def _short(self, name: str, text: str) -> None:
        if len(text.encode("utf-8", "replace")) > 8192:
            raise Mistake(f"{name} has at most 8192 bytes", field=name)

    def _sized(self, name: str, text: str) -> None:
        if not text.strip():
            raise Mistake(f"the {name} is empty", field=name)
        if len(text.encode("utf-8", "replace")) > self._defaults.message_bytes:
            raise Mistake(f"a {name} has at most {self._defaults.message_bytes} bytes", field=name)

    def _key(
        self, caller: Caller, verb: str, key: str | None, body: object, result: Mapping[str, Scalar]
    ) -> Key | None:
        if key is None:
            return None
        if not 1 <= len(key) <= 200:
            raise Mistake("an idempotency key has 1 to 200 characters", field="Idempotency-Key")
        told = json.dumps([verb, body], default=repr, sort_keys=True)
        return Key(f"{caller.role}:{caller.task_id or ''}", key, hashlib.sha256(told.encode()).hexdigest(), result)

    def _replay(self, caller: Caller, key: str | None, verb: str, body: object) -> Done | None:
        """What an earlier call with this very key and body came to, if there was one."""
        made = self._key(caller, verb, key, body, {})
        since = self._clock.now() - KEY_LIFE
        if made is None or (known := self._ledger.replayed(made.scope, made.key, since)) is None:
            return None
        if known[0] != made.digest:
            raise Conflict("this idempotency key was used for another request", field="Idempotency-Key")
        return Done(known[1], replayed=True)

    async def _one(
        self,
        caller: Caller,
        verb: str,
        task_id: TaskId,
        key: str | None,
        act: Verb,
        *,
        told: Mapping[str, Scalar] | None = None,
    ) -> Done:
        """One verb on one task: look, ask the core, commit; again where the row moved.

        `told` is what the verb adds to its answer, filled in by `act`; such a verb has asked before who may use it.
        """
        if told is None:
            caller.may(task_id)
        self._must_lead()
        lock = self._turns.get(task_id)
        if lock is None:
            lock = self._turns[task_id] = asyncio.Lock()
        async with lock:  # who comes at the same time waits a moment, and need not come again
            return await self._alone(caller, verb, task_id, key, act, told)

    async def _alone(
        self,
        caller: Caller,
        verb: str,
        task_id: TaskId,
        key: str | None,
        act: Verb,
        told: Mapping[str, Scalar] | None,
    ) -> Done:
        if (replay := self._replay(caller, key, verb, task_id)) is not None:
            return replay
        result: dict[str, Scalar] = {"task": task_id}
        for _ in range(TRIES):
            snapshot = self._snapshot(task_id)
            now = self._clock.now()
            if told is None:
                await self._in_time(caller, snapshot, verb)
            outcome = act(snapshot, now)
            result |= told or {}
            if isinstance(outcome, Because):
                raise Refused(outcome.sentence, see=outcome.change)
            if outcome is None:
                return Done({**result, "changed": False}, effects=(Effect(task_id, False),))
            commit = replace(outcome, key=self._key(caller, verb, key, task_id, result))
            done = await self._try(commit, result)
            if done is not None:
                self._rung(task_id)
                return replace(done, effects=(Effect(task_id, True),))
        raise Conflict("the task is changing too fast; try again", field="task")

    async def _in_time(self, caller: Caller, snapshot: Snapshot, verb: str) -> None:
        """A word from a conversation that a later lease has fenced is shown, and refused."""
        if caller.role is Role.OPERATOR:
            return
        because = control.late_word(snapshot, verb.split(" ", maxsplit=1)[0], caller.lease_number)
        if because is None:
            return
        task = snapshot.task
        data: dict[str, Scalar] = {"said": verb[:200], "lease_number": caller.lease_number, "why": because.sentence}
        await self._ledger.commit(Commit(facts=(Fact(FactKind.LATE_WORD, task.run_id, task.id, data),)))
        raise Refused(because.sentence, see=because.change)

    async def _each(
        self, caller: Caller, verb: str, given: str, key: str | None, act: Verb, *, stop_run: bool = False
    ) -> Done:
        """One verb on a task or on a run's unfinished tasks: one transaction, with the effect on each."""
        caller.must_operate()
        run_id, task_ids = self.tasks_of(given)
        if run_id is None:
            return await self._one(caller, verb, task_ids[0], key, act)
        self._must_lead()
        for _ in range(TRIES):
            now = self._clock.now()
            whole, effects = Commit(), []
            for task_id in self.tasks_of(run_id)[1]:
                outcome = act(self._snapshot(task_id), now)
                if isinstance(outcome, Because):
                    effects.append(Effect(task_id, False, outcome))
                    continue
                effects.append(Effect(task_id, outcome is not None))
                if outcome is not None:
                    whole = whole.then(replace(outcome, guards=()))
            run = self.run(run_id)
            if stop_run and run.state is RunState.OPEN:
                stopped = replace(run, revision=run.revision + 1, state=RunState.STOPPED, stopped_at=now)
                whole = whole.then(
                    Commit(puts=(stopped,), facts=(Fact(FactKind.RUN_STOPPED, run_id, None, {"by": caller.name}),))
                )
            changed = sum(effect.changed for effect in effects)
            result: dict[str, Scalar] = {"run": run_id, "changed": changed}
            if not whole.puts:
                return Done(result, effects=tuple(effects))
            whole = replace(whole, key=self._key(caller, verb, key, run_id, result))
            done = await self._try(whole, result)
            if done is not None:
                for effect in effects:
                    self._rung(effect.task_id)
                return replace(done, effects=tuple(effects))
        raise Conflict("the run is changing too fast; try again", field="run")

    async def _committed(self, commit: Commit, result: Mapping[str, Scalar]) -> Done:
        done = await self._try(commit, result)
        if done is None:
            raise Conflict("something changed meanwhile; try again")
        return done

    async def _try(self, commit: Commit, result: Mapping[str, Scalar]) -> Done | None:
        """Commit; None when it was stale and is to be looked at again."""
        outcome = await self._ledger.commit(commit)
        match outcome:
            case Committed():
                for task_id in concerned(self._ledger, commit):
                    self._rung(task_id)
                return Done(result)
            case Replayed(earlier):
                return Done(earlier, replayed=True)
            case KeyConflict():
                raise Conflict("this idempotency key was used for another request", field="Idempotency-Key")
            case NotLeader(epoch):
                raise NoSupervisor(f"another supervisor leads now (epoch {epoch})")
            case Stale() | Busy():
                return None
            case _ as never:
                assert_never(never)
