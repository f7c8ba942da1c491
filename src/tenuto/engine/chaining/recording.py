"""Recording: what became of a unit is armed as a command, written at its source, and settled when it stands there.

A record may be tried again after any crash, because a source takes one marker once. What the unit's task has still to
prove is only claimed here.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import assert_never

from tenuto.core import settle
from tenuto.core.draft import Draft
from tenuto.engine.chaining.asked import OUT_OF_ORDER, SOURCE, HandOff, Stepped
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.units import Units
from tenuto.model.chain import Blocker, Chain, Foreign, Link, Outcome, OutOfOrder, Record, Recorded, UnitState
from tenuto.model.change import Commit
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import FactKind
from tenuto.model.faults import NotFound
from tenuto.model.ids import CommandId
from tenuto.model.lifecycle import CommandEvent, CommandState, TaskEvent
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import AcceptanceKind, DispositionSource, Task


@dataclass(frozen=True)
class Settled:
    """What stands at the source: the rows as they are to be, and whether the unit's task has ended."""

    chain: Chain
    link: Link
    commit: Commit
    ended: bool


class Recording:
    """Arms a record, and carries it out."""

    def __init__(self, books: Books, units: Units) -> None:
        self._books = books
        self._units = units

    async def arm(self, chain: Chain, link: Link, snapshot: Snapshot, word: HandOff) -> bool:
        """Write the record ahead. Where a living task hands off, its claim is made with it, as every other claim is."""
        now, epoch = self._books.clock.now(), self._books.epoch
        draft = Draft(snapshot, now, self._books.mint.new)
        claims = word.outcome is Outcome.DONE and not word.only_record
        if claims and not draft.task.terminal and draft.task.claim is None:
            settle.claim(draft, word.evidence or "", f"unit {link.unit} is done", snapshot.live)
        command_id = CommandId(self._books.mint.new("command"))
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
        done = await self._books.commit(commit)
        if done:
            self._books.fuse.burn("record.armed")
        return done

    async def perform(self, chain: Chain, link: Link) -> Settled | Stepped | None:
        """Write at the source, and when it stands there say what follows from it, for one transaction."""
        command = self._books.ledger.command(link.command_id) if link.command_id is not None else None
        if command is None or link.outcome is None:
            raise NotFound("the command of a record is gone", field="command")
        what = Record(link.unit, link.outcome, link.evidence, link.blocker, link.attempt, command.marker, link.id)
        source = self._units.source(chain.source)
        answer = await asyncio.to_thread(source.record, what)
        self._books.fuse.burn("record.written")
        snapshot, now = self._books.snapshot(link.task_id), self._books.clock.now()
        draft = Draft(snapshot, now, self._books.mint.new)
        recorded = replace(link, revision=link.revision + 1, recorded_at=now)
        match answer:
            case OutOfOrder(why):
                return await self._books.rest(chain, f"its source is out of order: {why}", OUT_OF_ORDER)
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
        return Settled(counted, recorded, commit, draft.task.terminal)

    async def claimed(self, snapshot: Snapshot, word: HandOff) -> bool:
        """Make the claim that the task's acceptance judges; the supervisor records when it is proven."""
        if snapshot.task.claim is not None:
            return True
        draft = Draft(snapshot, self._books.clock.now(), self._books.mint.new)
        settle.claim(draft, word.evidence or "", "its unit is done", snapshot.live)
        commit = draft.commit()
        return commit is None or await self._books.commit(commit)


def judged(task: Task, word: HandOff) -> bool:
    """Whether a word that a unit is done has to be proven before it counts."""
    return word.outcome is Outcome.DONE and not task.terminal and task.acceptance.kind is not AcceptanceKind.NONE


def given_up(task: Task) -> bool:
    """Whether a person stopped it: nothing is said of its unit, and a person says how it goes on."""
    return str(task.state) == "cancelled"


def came_to(chain: Chain, link: Link, task: Task) -> HandOff:
    """What a unit came to, by how its task ended."""
    ending = task.disposition
    if given_up(task):
        return HandOff(Outcome.GIVEN_UP, ending.reason if ending is not None else None)
    reason = ending.reason if ending is not None else ""
    if str(task.state) == "completed":
        evidence = (ending.reference if ending is not None else None) or f"task {task.id}: {reason}"
        return HandOff(Outcome.DONE, evidence)
    if link.attempt >= chain.attempt_cap:
        blocker = Blocker(f"task {task.id}", f"{link.attempt} failed attempts", "a person has looked at it")
        return HandOff(Outcome.BLOCKED, reason or None, blocker)
    return HandOff(Outcome.FAILED, reason or None)
