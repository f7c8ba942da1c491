"""What an agent with a protocol would tell beside its work, played over a plain program.

The program leaves files: `ask.N` where it waits for leave until `answer.N` is there, and `hindered.COMMAND` where its
turn could not go on. Here they become what a host would see, and an answer becomes the file, once, under a journal of
its own, so that a supervisor can be killed between any two steps of it. The program itself is carried as ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from dataclasses import replace
from datetime import datetime, timedelta

from tenuto.model.command import Accepted, Armed, Command, CommandKind, Outcome
from tenuto.model.evidence import Asking, CommandFacts, Hindered, Hindrance, Mark, Observation, Presence, Rank
from tenuto.model.work import Agent
from tenuto.ports import Order, Reply
from tenuto.proof.stage import Stage
from tenuto.transports import processes
from tenuto.transports.executor_side.carrying import performer_of
from tenuto.transports.host import claim, journal
from tenuto.wiring.daemon import Supervisor

ACCOUNT = "played/1"
LASTS = timedelta(milliseconds=600)
"""How long a limit lasts from when it was met."""

JOURNAL = "answers.journal"


def played(supervisor: Supervisor, stage: Stage) -> None:
    """Have the supervisor's own executor tell what the program's files say, and answer it."""
    Played(supervisor, stage).stand_in()


class Played:
    """Stands before the host executor of one life."""

    def __init__(self, supervisor: Supervisor, stage: Stage) -> None:
        self._supervisor = supervisor
        self._stage = stage
        self._folder = stage.home / JOURNAL
        self._look = supervisor.executor.look
        self._perform = supervisor.executor.perform
        self._revoke = supervisor.executor.revoke

    def stand_in(self) -> None:
        """Take the place of what looks, carries out and revokes, and say whose account it is."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        executor = self._supervisor.executor
        stand_ins = {"look": self.look, "perform": self.perform, "revoke": self.revoke, "account": self.account}
        for name, method in stand_ins.items():
            setattr(executor, name, method)

    def account(self, _agent: Agent) -> str:
        """One account for all."""
        return ACCOUNT

    async def look(self, command: Command) -> Observation:
        """What the host sees, with what the program's files tell."""
        if command.kind is CommandKind.ANSWER:
            return self._answer_seen(command)
        seen = await self._look(command)
        facts = seen.facts
        if command.kind is not CommandKind.SEND or not isinstance(facts, CommandFacts):
            return seen
        if facts.mark is Mark.ACCEPTED and facts.agent is Presence.ALIVE:
            return replace(seen, facts=replace(facts, asks=self._asks(command)))
        held = self._stage.home / f"hindered.{command.id}"
        if facts.ending is not None and facts.ending.cut is None and held.exists():
            resets = datetime.fromtimestamp(held.stat().st_mtime, self._supervisor.clock.now().tzinfo)
            hindered = Hindered(Hindrance.LIMIT, "the limit of this proof", "five_hour", None, resets + LASTS)
            return replace(seen, facts=replace(facts, ending=replace(facts.ending, hindered=hindered)))
        return seen

    def _asks(self, command: Command) -> tuple[Asking, ...]:
        """What the program of this very turn waits with."""
        found = []
        for path in sorted(self._stage.home.glob("ask.*")):
            name = path.name.partition(".")[2]
            if path.read_text("ascii").strip() == command.id and not (self._stage.home / f"answer.{name}").exists():
                found.append(Asking(name, "sh", "sweep", hashlib.sha256(b"sweep").hexdigest()))
        return tuple(found)

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Answer the program, once per command, each step on the disk before the next; the rest is the host's."""
        if not isinstance(order, Reply):
            return await self._perform(armed, order)
        command, fuse = armed.command, self._supervisor.bridge.fuse
        me = processes.identity_of(os.getpid())
        line = {
            "mark": Mark.CLAIMED.value, "at": self._now(), "command": command.id, "attempt": command.attempt_id,
            "task": command.task_id, "registry": self._supervisor.ledger.registry().id, "epoch": command.epoch,
            "kind": command.kind.value,
            "host": {"pid": me.pid, "start": me.start, "boot": me.boot} if me is not None else None,
        }  # fmt: skip
        written = await asyncio.to_thread(claim.take, str(self._folder), command.id, line)
        with contextlib.closing(written):
            fuse.burn("answer.claimed")
            await asyncio.to_thread(written.mark, {"mark": Mark.BEGUN.value, "at": self._now()})
            fuse.burn("answer.begun")
            with (self._stage.home / "answers").open("a", encoding="ascii") as answers:
                answers.write(f"{command.id}\n")
            (self._stage.home / f"answer.{order.request}").write_text("yes" if order.allow else "no", "ascii")
            fuse.burn("answer.told")
            proof = {"pid": None, "start": None, "proof": {"request": order.request}}
            await asyncio.to_thread(written.mark, {"mark": Mark.ACCEPTED.value, "at": self._now(), **proof})
            fuse.burn("answer.accepted")
        return Accepted()

    async def revoke(self, command: Command, epoch: int) -> None:
        """Take the place of an answer, so that it can never be given; anything else is the host's."""
        if command.kind is not CommandKind.ANSWER:
            await self._revoke(command, epoch)
            return
        registry, now = self._supervisor.ledger.registry().id, self._supervisor.clock.now()
        journal.revoke(self._folder, command.id, registry=registry, epoch=epoch, reason="it was revoked", now=now)

    def _answer_seen(self, command: Command) -> Observation:
        told = journal.read(self._folder, command.id)
        performer = performer_of(told) if told.host is not None else Presence.GONE
        facts = CommandFacts(
            command.id, command.attempt_id, told.mark, performer, Presence.GONE, reason=told.reason, proof=told.proof
        )
        return Observation("played", Rank.JOURNAL, command.id, self._supervisor.clock.now(), facts)

    def _now(self) -> str:
        return self._supervisor.clock.now().isoformat(timespec="milliseconds")
