"""One task, once round the river: look, reconcile, settle, decide, write ahead, act.

Boot, recovery and everyday work are this same code: what was left open is found, looked at and settled before
anything new is decided. Nothing is handed to an executor that is not committed as armed, and nothing is concluded
from an executor's answer: the next look settles it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from tenuto import prompts
from tenuto.core import arm, decide, progress, reconcile, rungs
from tenuto.core.settle import settle
from tenuto.engine.prompting import Prompter
from tenuto.model.change import Busy, Commit, Committed, KeyConflict, NotLeader, Replayed, Stale
from tenuto.model.command import Command, CommandKind
from tenuto.model.decision import (
    Because,
    Continue,
    Decision,
    GiveSlotBack,
    Intent,
    Interrupt,
    OpenCapWait,
    OpenConversation,
    Revoke,
    RunCheck,
    Rung,
    Sampled,
    StartTask,
)
from tenuto.model.evidence import CommandFacts, Mark, Observation, WorkspaceFacts
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.reconciliation import Reconciliation, Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import AcceptanceKind, WaitKind
from tenuto.ports import Check, Clock, Executor, Fuse, Halt, Ledger, Minter, Order, Turn, Workspace

#: One pass may settle, prepare and arm in several rounds; more than this without coming to rest is a fault of ours.
ROUNDS = 24


class Deposed(Exception):
    """Another supervisor leads; this one must not write or act any more."""


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
        self._told: dict[TaskId, Rung] = {}

    async def serve(self, task_id: TaskId) -> Rest | None:
        """Go round until the task rests; None when there is no such task. Raises Deposed."""
        for _ in range(ROUNDS):
            snapshot = self._ledger.snapshot(task_id, self._slots)
            if snapshot is None:
                return None
            seen = await self.look(snapshot)
            now = self._clock.now()
            if await self._settle(seen, now):
                continue
            decision = decide.decide(seen, now)
            if decision.intent is None:
                await self._rest(seen, decision, now)
                return Rest(decision.because, decision.look_again_at)
            if (rest := await self._carry_out(decision.intent, seen, now)) is not None:
                return rest
        raise Restless(task_id)

    # -- look and reconcile

    async def look(self, snapshot: Snapshot) -> Seen:
        """Everything outside that this task's decision may hang on, laid beside its rows."""
        observations: list[Observation] = [
            await self._executors[command.executor].look(command)
            for command in reconcile.subjects(snapshot)
            if command.executor in self._executors
        ]
        now = self._clock.now()
        task = snapshot.task
        first = Seen(snapshot, _nothing(snapshot), self.epoch, self._connected(snapshot))
        ended = any(
            isinstance(o.facts, CommandFacts) and o.facts.mark is Mark.ENDED and _is_turn(snapshot, o.facts)
            for o in observations
        )
        proof = not task.terminal and decide.needs_workspace(first, now)
        if ended or proof:
            plain = proof or progress.measure_plain(task.progress, snapshot.run.policy)
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
        resolved: dict[str, bool | None] = {
            wait.id: await self._workspace.resolved(wait, task.cwd)
            for wait in snapshot.waits
            if wait.kind in (WaitKind.PATH, WaitKind.COMMIT)
        }
        found = reconcile.reconcile(snapshot, observations, resolved, self._clock.now())
        return Seen(snapshot, found, self.epoch, self._connected(snapshot))

    def _connected(self, snapshot: Snapshot) -> bool:
        name = (
            snapshot.conversation.executor if snapshot.conversation else self.executor_of(snapshot.task.agent.adapter)
        )
        executor = self._executors.get(name)
        return executor is not None and executor.connected()

    @staticmethod
    def executor_of(adapter: str) -> str:
        """Which executor carries an adapter's turns."""
        return {"program": "host"}.get(adapter, adapter)

    # -- settle

    async def _settle(self, seen: Seen, now: datetime) -> bool:
        """Write what was found; whether anything was to be written."""
        prompt = ""
        live = seen.snapshot.live_command
        if live is not None and live.payload is not None:
            text = self._ledger.text(live.payload)
            prompt = (text.body or "") if text is not None else ""
        commit = settle(seen, now, self._mint.new, prompt)
        if commit is None:
            return False
        await self._write(commit, "settle")
        return True

    async def _rest(self, seen: Seen, decision: Decision, now: datetime) -> None:
        if seen.epoch is None or (decision.because is not None and decision.because.rung is Rung.LIVE):
            return  # a live turn is watched from memory and found again by `under_way`
        task_id, because = seen.snapshot.task.id, decision.because
        news = because if because is not None and self._told.get(task_id) != because.rung else None
        commit = arm.rest(seen, decision.look_again_at, news, now, self._mint.new)
        if commit is not None and await self._write(commit, "rest") and because is not None:
            self._told[task_id] = because.rung

    async def _write(self, commit: Commit, point: str) -> Committed | None:
        """Commit; None when it was stale or held, which the next round sees. Raises Deposed."""
        self._fuse.burn(f"{point}.before_commit")
        result = await self._ledger.commit(commit)
        self._fuse.burn(f"{point}.committed")
        match result:
            case Committed():
                return result
            case NotLeader(epoch):
                raise Deposed(f"epoch {epoch} leads")
            case Stale() | Busy() | Replayed() | KeyConflict():
                return None
            case _ as never:
                assert_never(never)

    # -- write ahead and act

    async def _carry_out(self, intent: Intent, seen: Seen, now: datetime) -> Rest | None:
        """Do what was decided; a Rest when nothing more can be done now."""
        new = self._mint.new
        match intent:
            case Revoke(command_id):
                await self._revoke(seen, command_id)
            case StartTask():
                await self._prepare(arm.start(seen, now, new), "start")
            case GiveSlotBack():
                because = decide.first(rungs.CONTINUE, seen, now)
                until = because.until if because else None
                await self._prepare(arm.give_slot_back(seen, now, new, until), "slot_back")
            case OpenConversation():
                executor = self.executor_of(seen.snapshot.task.agent.adapter)
                opened = arm.open_conversation(seen, executor, now, new)
                if isinstance(opened, Because):
                    return Rest(opened, opened.until)
                await self._prepare(opened, "open_conversation")
            case Sampled():
                await self._prepare(arm.sampled(seen, now, new), "sample")
            case OpenCapWait(question):
                await self._prepare(arm.cap_wait(seen, question, now, new), "cap")
            case Continue():
                return await self._continue(intent, seen, now)
            case RunCheck():
                await self._act(arm.check(seen, now, new), self._check_order(seen), "check")
            case Interrupt(attempt_id):
                halt = self._halt_order(seen)
                if halt is not None:
                    await self._act(arm.interrupt(seen, attempt_id, now, new), halt, "interrupt")
            case _ as never:
                assert_never(never)
        return None

    async def _prepare(self, commit: Commit | None, point: str) -> None:
        if commit is not None:
            await self._write(commit, point)

    async def _revoke(self, seen: Seen, command_id: CommandId) -> None:
        command = next(c for c in reconcile.subjects(seen.snapshot) if c.id == command_id)
        executor = self._executors.get(command.executor)
        if executor is not None and self.epoch is not None:
            await executor.revoke(command, self.epoch)

    async def _continue(self, intent: Continue, seen: Seen, now: datetime) -> Rest | None:
        snapshot = seen.snapshot
        task = snapshot.task
        baseline: WorkspaceFacts | None = None
        if task.progress.cursor is None:
            observed = await self._workspace.look(task.cwd, None, plain=True)
            baseline = observed.facts if isinstance(observed.facts, WorkspaceFacts) else None
        command_id = CommandId(self._mint.new("command"))
        secret = self._mint.secret()
        try:
            told = self._prompter.tell(seen, command_id, now)
        except prompts.PromptError as error:
            because = Because(Rung.EVIDENCE, f"its prompt cannot be made: {error}", "shorten what is sent to it")
            return Rest(because, None)
        digest = hashlib.sha256(secret.encode()).hexdigest()
        written = arm.turn(seen, intent, command_id, told.text, told.carried, digest, baseline, now, self._mint.new)
        if written is None:
            return None
        await self._act(written, self._turn_order(seen, written, told.text, secret), "arm")
        return None

    async def _act(self, written: arm.Written | None, order: Order, point: str) -> None:
        """Commit, and only then hand over. What came of it is for the next look to say."""
        if written is None:
            return
        committed = await self._write(written.commit, point)
        if committed is None:
            return
        for armed in committed.armed:
            executor = self._executors[armed.command.executor]
            await executor.perform(armed, order)
            self._fuse.burn(f"{point}.handed_over")

    # -- orders

    def _turn_order(self, seen: Seen, written: arm.Written, prompt: str, secret: str) -> Turn:
        snapshot = seen.snapshot
        task, policy = snapshot.task, snapshot.run.policy
        given = self._given(written.command)
        given |= {"TENUTO_TOKEN": secret, "TENUTO_HOME": self._around.home}
        return Turn(
            prompt=prompt,
            argv=task.agent.argv,
            cwd=task.cwd,
            env=task.agent.env,
            given=given,
            limit=policy.turn_limit,
            grace=policy.interrupt_grace,
        )

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
        return Halt(live.id, seen.snapshot.run.policy.interrupt_grace) if live is not None else None

    def _given(self, command: Command) -> dict[str, str]:
        return {
            "TENUTO_TASK": command.task_id,
            "TENUTO_ATTEMPT": command.attempt_id or "",
            "TENUTO_COMMAND": command.id,
            "TENUTO_API": self._around.api,
            "TENUTO_SPOOL": self._around.spool,
        }


def _nothing(snapshot: Snapshot) -> Reconciliation:
    members = reconcile.fence_members(snapshot, None)
    return Reconciliation((), reconcile.digest_of(members), members)


def _is_turn(snapshot: Snapshot, facts: CommandFacts) -> bool:
    live = snapshot.live_command
    return live is not None and live.id == facts.command_id and live.kind is CommandKind.SEND
