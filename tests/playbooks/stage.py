"""Plays a transcript: what is seen, what the operator asks, and what must be armed or refused, line by line.

    >> seen by the supervisor        ** asked by the operator        << what the supervisor did, or says
    -- time passing, restarts and clocks

Under it lie a real registry in a temporary directory, the real cycle and desk, and a played executor that keeps an
honest journal. Every line that changes something is followed by as many passes as the supervisor would make; every
armed command must be claimed by a later `<< armed` line, so that nothing is armed unnoticed.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from tests.support.world import NOW, OPERATOR, Counting, SetClock

from tenuto.core import wake
from tenuto.engine.cycle import Cycle, Rest, Surroundings
from tenuto.engine.desk import Caller, Desk, Order
from tenuto.model.command import Accepted, Armed, Command, CommandKind, Outcome, Unknown, Unsent
from tenuto.model.evidence import (
    AcceptanceFacts,
    CommandFacts,
    Cut,
    Ending,
    Mark,
    Observation,
    Presence,
    Rank,
    WorkspaceFacts,
    WorkspaceKind,
)
from tenuto.model.fact import FactKind
from tenuto.model.faults import Refused
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.lifecycle import CommandState
from tenuto.model.snapshot import Leadership, Role
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, AutoResume, Wait, WaitKind
from tenuto.ports import Check, Halt, NoFuse, Turn
from tenuto.ports import Order as Ordered
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry

STEPS = 5000
PLAYED = "played"
GONE, ALIVE, UNKNOWN = Presence.GONE, Presence.ALIVE, Presence.UNKNOWN


@dataclass
class Hall:
    """The executor and the directory, as a transcript plays them."""

    clock: SetClock
    away: bool = False
    next: list[str] = field(default_factory=list)
    journal: dict[CommandId, CommandFacts] = field(default_factory=dict)
    orders: dict[CommandId, Ordered] = field(default_factory=dict)
    kinds: dict[CommandId, CommandKind] = field(default_factory=dict)
    launched: set[CommandId] = field(default_factory=set)
    effects: dict[CommandId, int] = field(default_factory=dict)
    armed: list[Command] = field(default_factory=list)
    deaf: bool = False
    cursor: int = 0
    kind: WorkspaceKind = WorkspaceKind.GIT
    there: set[str] = field(default_factory=set)
    holds: bool | None = True
    name: str = PLAYED

    # -- ports.Executor

    def connected(self, conversation: str | None = None) -> bool:
        return not self.away

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        return None

    async def perform(self, armed: Armed, order: Ordered) -> Outcome:
        command = armed.command
        self.armed.append(command)
        how = self.next.pop(0) if self.next and not isinstance(order, Halt) else "accepted"
        if how == "never":  # the supervisor died between its commit and the hand-over
            return Unknown("it was not handed over")
        assert command.id not in self.journal, f"{command.id} is handed over twice"
        self.orders[command.id], self.kinds[command.id] = order, command.kind
        if isinstance(order, Halt):
            return self._halt(command, order)
        match how:
            case "accepted":
                self._mark(command, Mark.ACCEPTED, ALIVE, ALIVE)
                self.effects[command.id] = self.effects.get(command.id, 0) + 1
                return Accepted()
            case "slow":
                self._mark(command, Mark.CLAIMED, ALIVE, GONE)
                return Unknown("it has not said yet")
            case "lost":
                self._mark(command, Mark.BEGUN, GONE, GONE)
                return Unknown("its host died while starting it")
            case "damaged":
                self._mark(command, Mark.DAMAGED, UNKNOWN, UNKNOWN)
                return Unknown("its journal cannot be read")
            case "unmendable" | "missing":
                self._mark(command, Mark.FAILED, GONE, GONE, reason=how, mendable=how == "missing")
                return Unsent(how)
            case _:
                raise AssertionError(f"no such outcome: {how}")

    def _halt(self, command: Command, order: Halt) -> Outcome:
        if self.deaf:
            self._mark(command, Mark.FAILED, GONE, GONE, reason="what it was to end still runs")
            return Unknown("not everything of it is gone")
        target = self.journal[order.target]
        cut = Ending(None, 15, Cut.INTERRUPT)
        self.journal[order.target] = replace(target, mark=Mark.ENDED, performer=GONE, agent=GONE, ending=cut)
        self._mark(command, Mark.ENDED, GONE, GONE, ending=Ending(0, None, None))
        return Accepted()

    async def look(self, command: Command) -> Observation:
        found = self.journal.get(command.id) or CommandFacts(command.id, command.attempt_id, Mark.NONE, GONE, GONE)
        found = replace(found, launched_here=command.id in self.launched)
        return Observation(self.name, Rank.JOURNAL, command.id, self.clock.now(), found)

    async def revoke(self, command: Command, epoch: int) -> None:
        if command.id not in self.journal:
            self._mark(command, Mark.REVOKED, GONE, GONE)

    def _mark(self, command: Command, mark: Mark, performer: Presence, agent: Presence, **more: object) -> None:
        self.journal[command.id] = CommandFacts(
            command.id, command.attempt_id, mark, performer, agent, marked_at=self.clock.now(), **more  # type: ignore[arg-type]
        )  # fmt: skip

    def change(self, command: CommandId, **more: object) -> None:
        self.journal[command] = replace(self.journal[command], **more)  # type: ignore[arg-type]

    def running(self, kind: CommandKind = CommandKind.SEND) -> CommandId:
        """The only command of a kind that has not ended."""
        open_ = [
            key for key, facts in self.journal.items()
            if self.kinds[key] is kind and facts.mark in (Mark.CLAIMED, Mark.BEGUN, Mark.ACCEPTED, Mark.DAMAGED)
        ]  # fmt: skip
        assert open_, f"no {kind} is under way"
        return open_[-1]

    # -- ports.Workspace

    async def _facts(self, cwd: str) -> Observation:
        cursor = f"cursor-{self.cursor}" if self.kind is WorkspaceKind.GIT else None
        facts = WorkspaceFacts(self.kind, head=f"{self.cursor:040d}", cursor=cursor)
        return Observation("played", Rank.JOURNAL, cwd, self.clock.now(), facts)

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        facts = AcceptanceFacts(self.holds, "it was looked at")
        return Observation("played", Rank.JOURNAL, cwd, self.clock.now(), facts)

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        return wait.subject in self.there


class Ground:
    """The directory's port, played by the same hall."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    async def look(self, cwd: str, since: str | None, *, plain: bool) -> Observation:
        return await self._hall._facts(cwd)

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        return await self._hall.accept(acceptance, cwd, evidence)

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        return await self._hall.resolved(wait, cwd)


UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}


def span(text: str) -> timedelta:
    return int(text[:-1]) * UNITS[text[-1]]


class Stage:
    """One supervisor over one registry, and the transcript's way to speak to it."""

    def __init__(self, folder: Path, *, slots: int = 20) -> None:
        self.folder = folder
        self.slots = slots
        self.clock = SetClock()
        self.minter = Counting()
        self.hall = Hall(self.clock)
        self.tasks: list[TaskId] = []
        self.watch: dict[TaskId, datetime] = {}
        self.rest: dict[TaskId, Rest | None] = {}
        self.rung: set[TaskId] = set()
        self.passes = 0
        self.ledger: TableLedger
        self.cycle: Cycle
        self.desk: Desk

    async def open(self) -> None:
        self.ledger = open_registry(self.folder / "state" / "registry.sqlite3", self.clock, minter=self.minter)
        around = Surroundings("api", "spool", str(self.folder))
        self.cycle = Cycle(
            self.ledger, {PLAYED: self.hall}, Ground(self.hall), self.clock, self.minter, NoFuse(), around, self.slots
        )
        now = self.clock.now()
        lease = Leadership(0, "me", "host", 1, "s", "b", "api", now, now, now + timedelta(days=400))
        taken = await self.ledger.lead(lease, lambda _holder: True)
        assert taken is not None
        self.cycle.epoch = taken.epoch
        self.desk = Desk(
            self.ledger, self.cycle, self.clock, self.minter, slots=self.slots,
            executors={PLAYED: self.hall}, ring=self.rung.add,
        )  # fmt: skip
        self.rung.update(self.ledger.under_way())

    async def close(self) -> None:
        await self.ledger.close()

    async def create(self, *, resumable: bool = True, manual: bool = False, check: str = "", **more: object) -> TaskId:
        kinds = {"": Acceptance(), "check": Acceptance(AcceptanceKind.CHECK, ("make", "test")),
                 "file": Acceptance(AcceptanceKind.FILE, path="out")}  # fmt: skip
        order = Order(
            "Tidy up", "Tidy the attic", str(self.folder), Agent(PLAYED, ("agent",), resumable=resumable),
            acceptance=kinds[check], auto_resume=AutoResume.MANUAL if manual else AutoResume.ON, **more,  # type: ignore[arg-type]
        )  # fmt: skip
        done = await self.desk.create(OPERATOR, order)
        self.tasks.append(TaskId(str(done.result["task"])))
        await self.turn_the_wheel()
        return self.tasks[-1]

    # -- the wheel, with a clock one can set

    async def turn_the_wheel(self) -> None:
        """Serve whatever is due now, until nothing is; more passes than STEPS in all is a wheel that spins."""
        for _ in range(STEPS):
            now = self.clock.now()
            due = set(self.rung) | set(self.ledger.due(now, 100))
            due |= {task for task, when in self.watch.items() if when <= now}
            if not due:
                return
            for task in sorted(due):
                self.rung.discard(task)
                self.watch.pop(task, None)
                rest = self.rest[task] = await self.cycle.serve(task)
                self.passes += 1
                if rest is not None and rest.look_again_at is not None:
                    assert rest.look_again_at > now, f"it spins: {rest}"
                    self.watch[task] = rest.look_again_at
        raise AssertionError("the wheel never comes to rest")

    async def pass_time(self, time: timedelta) -> None:
        until = self.clock.now() + time
        for _ in range(STEPS):
            moments = [when for when in (*self.watch.values(), self.ledger.next_due()) if when is not None]
            moment = min([*moments, until])
            if moment >= until:
                break
            self.clock.time = max(moment, self.clock.time)
            await self.turn_the_wheel()
        else:
            raise AssertionError("too many looks for that time")
        self.clock.time = until
        await self.turn_the_wheel()

    # -- the transcript

    async def play(self, script: str) -> None:
        for number, raw in enumerate(script.strip().splitlines(), start=1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            mark, _, words = line.partition(" ")
            try:
                await {">>": self.seen, "**": self.asked, "--": self.passing, "<<": self.did}[mark](words.strip())
            except AssertionError as error:
                raise AssertionError(f"line {number}: {line}\n{error}\n{await self.told()}") from error
        assert not self.hall.armed, f"armed and not told: {[c.kind for c in self.hall.armed]}\n{await self.told()}"

    async def told(self) -> str:
        lines = []
        for task in self.tasks:
            explained = await self.desk.explain(task)
            lines += [f"{explained.task.state} {explained.intent} {[b.sentence for b in explained.rungs]}"]
        return "\n".join(lines)

    @property
    def task(self) -> TaskId:
        return self.tasks[0]

    async def seen(self, words: str) -> None:
        """Evidence: what happens outside, and the ring that comes with it."""
        verb, *rest = shlex.split(words)
        hall = self.hall
        match verb, rest:
            case "ends", [status, *lines]:
                self.end(status, lines)
            case "killed", []:
                hall.change(
                    hall.running(), mark=Mark.ENDED, performer=GONE, agent=GONE, ending=Ending(None, 9, Cut.KILLED)
                )
            case "host", ["dies"]:
                hall.change(hall.running(), performer=GONE)
            case "agent", ["is", how]:
                hall.change(hall.running(), agent=Presence(how))
            case "everything", ["gone"]:
                hall.change(hall.running(), performer=GONE, agent=GONE)
            case "journal", ["damaged"]:
                hall.change(hall.running(), mark=Mark.DAMAGED)
            case "journal", ["accepted", "late"]:
                last = [key for key, kind in hall.kinds.items() if kind is CommandKind.SEND][-1]
                hall.change(last, mark=Mark.ACCEPTED, performer=GONE, agent=GONE)
            case "starts", []:
                hall.change(hall.running(), mark=Mark.ACCEPTED, performer=ALIVE, agent=ALIVE)
            case "check", ["exits", code]:
                end = Ending(int(code), None, None)
                hall.change(hall.running(CommandKind.CHECK), mark=Mark.ENDED, performer=GONE, agent=GONE, ending=end)
            case "check", ["vanishes"]:
                hall.change(hall.running(CommandKind.CHECK), performer=GONE, agent=GONE)
            case "files", ["change"]:
                hall.cursor += 1
            case "directory", [kind]:
                hall.kind = WorkspaceKind(kind)
            case "path", [path]:
                hall.there.add(path)
            case "executor", [how]:
                hall.away = how == "away"
            case "deaf", []:
                hall.deaf = True
            case "hears", []:
                hall.deaf = False
            case "next", outcomes:
                hall.next += outcomes
                return
            case "holds", [how]:
                hall.holds = {"yes": True, "no": False, "unknown": None}[how]
            case "agent", ["says", *what]:
                await self.agent_says(what)
            case _:
                raise AssertionError(f"nothing of that kind can be seen: {words}")
        if verb not in ("files", "path", "directory", "holds", "deaf", "hears"):
            self.rung.update(self.tasks)
        await self.turn_the_wheel()

    def end(self, status: str, lines: list[str]) -> None:
        given = dict(line.split("=", 1) for line in lines)
        code = int(given.pop("exit", "0"))
        report = given.pop("report", None)
        body = "\n".join(f"{k}: {v}" for k, v in {"status": status, "summary": "it went", **given}.items())
        signals = () if status == "silent" else (body, body) if status == "twice" else (body,)
        reports = (f"completed: {report}",) if report else ()
        end = Ending(code, None, None, signals, len(signals), reports)
        self.hall.change(self.hall.running(), mark=Mark.ENDED, performer=GONE, agent=GONE, ending=end)

    async def agent_says(self, what: list[str]) -> None:
        number = self.ledger.snapshot(self.task, self.slots).task.lease_number  # type: ignore[union-attr]
        agent = Caller(Role.AGENT, "agent", self.task, number)
        match what:
            case ["complete", evidence]:
                await self.desk.complete(agent, self.task, evidence)
            case ["progress", line]:
                await self.desk.report(agent, self.task, [("current", line)])
            case ["wait", question]:
                await self.desk.wait(agent, self.task, WaitKind.HUMAN, question)
            case ["late", "complete"]:
                try:
                    await self.desk.complete(replace(agent, lease_number=number - 1), self.task, "late")
                except Refused:
                    return
                raise AssertionError("a late word was obeyed")
            case _:
                raise AssertionError(f"no agent says that: {what}")

    async def asked(self, words: str) -> None:
        """The operator's verbs."""
        desk, task = self.desk, self.task
        match shlex.split(words):
            case ["continue"]:
                await desk.continue_(OPERATOR, task)
            case ["anyway"]:
                await desk.continue_(OPERATOR, task, anyway=True)
            case ["pause"]:
                await desk.pause(OPERATOR, task)
            case ["resume"]:
                await desk.resume(OPERATOR, task)
            case ["resume", "stalled"]:
                await desk.resume(OPERATOR, task, stalled=True)
            case ["resume", "refused"]:
                try:
                    await desk.resume(OPERATOR, task)
                except Refused:
                    return
                raise AssertionError("it was not refused")
            case ["stop"]:
                await desk.cancel(OPERATOR, task)
            case ["answer", text]:
                await desk.answer(OPERATOR, task, text)
            case ["release", verdict]:
                (command,) = [c for c in desk.commands(only_open=True) if c.state is CommandState.AMBIGUOUS]
                await desk.release(OPERATOR, command.id, happened=verdict == "happened")
            case ["hold"]:
                await desk.hold(OPERATOR)
            case ["unhold"]:
                await desk.hold(OPERATOR, lift=True)
            case ["say", text]:
                await desk.say(OPERATOR, task, text)
            case ["policy", change]:
                await desk.set_policy(OPERATOR, task, dict([change.split("=", 1)]))
            case ["waits", "for", number]:
                other = self.tasks[int(number)]
                await desk.wait(OPERATOR, task, WaitKind.TASK, "the other first", subject=other)
            case ["stop", number]:
                await desk.cancel(OPERATOR, self.tasks[int(number)])
            case _:
                raise AssertionError(f"the operator cannot ask that: {words}")
        await self.turn_the_wheel()

    async def passing(self, words: str) -> None:
        """Time, clocks and restarts."""
        match shlex.split(words):
            case [time] if re.fullmatch(r"\d+[smh]", time):
                await self.pass_time(span(time))
            case ["clock", "back", time]:
                self.clock.time -= span(time)
                self.rung.update(self.ledger.due(NOW + timedelta(days=3650), 1000))
                self.rung.update(self.watch)
                await self.turn_the_wheel()
            case ["asleep", time]:
                self.clock.time += span(time)
                await self.turn_the_wheel()
            case ["restart"]:
                await self.close()
                self.watch.clear()
                self.rung.clear()
                self.hall.launched.clear()
                await self.open()
                await self.turn_the_wheel()
            case ["another", "task"]:
                await self.create()
            case ["restart", "twice"]:
                await self.passing("restart")
                await self.passing("restart")
            case _:
                raise AssertionError(f"that does not pass: {words}")

    async def did(self, words: str) -> None:
        """What must have been done, or must stand."""
        verb, *rest = shlex.split(words)
        snapshot = self.ledger.snapshot(self.task, self.slots)
        assert snapshot is not None
        match verb, rest:
            case "armed", [kind, *reason]:
                assert self.hall.armed, "nothing was armed"
                command = self.hall.armed.pop(0)
                assert command.kind == kind, f"a {command.kind} was armed"
                if reason:
                    number = next(a for a in self.ledger.attempts(command.task_id, 50) if a.id == command.attempt_id)
                    assert [number.reason, *(["anyway"] if number.anyway else [])] == reason, number
            case "nothing", []:
                assert not self.hall.armed, f"armed: {[c.kind for c in self.hall.armed]}"
            case "because", [rung]:
                rests = self.rest[self.task]
                assert rests is not None
                assert rests.because is not None
                assert rests.because.rung == rung, rests.because
            case "asks", [text]:
                questions = [w.question for w in self.ledger.waits(50, task_id=self.task)]
                assert any(text in question for question in questions), questions
                assert any(i.task_id == self.task for i in self.desk.attention()), "it stands nowhere in attention"
            case "asks", []:
                assert not self.ledger.waits(50, task_id=self.task)
            case "task", [state]:
                assert snapshot.task.state == state, snapshot.task.state
            case "slot", [how]:
                assert snapshot.task.state == {"kept": "active", "back": "pending"}[how], snapshot.task.state
            case "prompt", ["has", text]:
                assert text in self.prompt(), self.prompt()
            case "prompt", ["lacks", text]:
                assert text not in self.prompt(), self.prompt()
            case "counts", [*pairs]:
                task = snapshot.task
                have = {
                    "attempts": task.attempts, "faults": task.faults, "without": task.progress.without,
                    "unsent": task.unsent_in_row, "lease": task.lease_number, "checkpoints": task.checkpoints,
                    "verified": int(task.disposition is not None and task.disposition.verified),
                    "stalled": int(task.stalled_at is not None),
                }  # fmt: skip
                for pair in pairs:
                    name, value = pair.split("=")
                    assert have[name] == int(value), have
            case "command", [state]:
                newest = next(c for c in self.ledger.commands(20, task_id=self.task) if c.kind is CommandKind.SEND)
                assert newest.state == state, newest
            case "late", []:
                newest = next(c for c in self.ledger.commands(20, task_id=self.task) if c.kind is CommandKind.SEND)
                assert newest.late, newest
            case "message", [state]:
                assert next(m.state for m in self.ledger.messages(self.task, 10)) == state, self.ledger.messages(
                    self.task, 10
                )
            case "noted", [kind]:
                events = self.ledger.events(0, 10_000, task_id=self.task)
                assert any(event.fact.kind is FactKind(kind) for event in events), kind
            case "reports", [count]:
                assert len([r for r in self.ledger.reports(self.task, 50) if r.kind != "signal"]) == int(count)
            case "wakes", [count]:
                assert len(snapshot.wakes) == int(count), snapshot.wakes
            case "checkpoint", ["waits"]:
                assert wake.checkpoint_waiting(snapshot)
            case "checkpoint", ["none"]:
                assert not wake.checkpoint_waiting(snapshot)
            case "quiet", []:
                assert not [i for i in self.desk.attention() if i.task_id == self.task]
            case _:
                raise AssertionError(f"that cannot be told: {words}")

    def prompt(self) -> str:
        turns = [order for order in self.hall.orders.values() if isinstance(order, Turn)]
        return turns[-1].prompt

    def checks(self) -> list[Check]:
        return [order for order in self.hall.orders.values() if isinstance(order, Check)]
