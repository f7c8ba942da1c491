"""Preparing: before a unit's task begins, its source says that it is taken, and its worktree stands.

Both are commands, written in the transaction that makes the task, so that its first turn waits for them and a death
finds them again. A unit that somebody else has taken meanwhile is left to them; a worktree that cannot be made ends
its task as failed, and the next attempt has another place.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from tenuto.core import authority, naming, phases
from tenuto.core.draft import Draft
from tenuto.engine.chaining.asked import AT_WORK, OUT_OF_ORDER, SOURCE, Stepped
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.units import Units
from tenuto.model.chain import Chain, Foreign, Hold, Link, Outcome, OutOfOrder, Recorded
from tenuto.model.change import Commit
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import FactKind
from tenuto.model.ids import LinkId, WorktreeId
from tenuto.model.lifecycle import WORKTREE, CommandEvent, TaskEvent, WorktreeEvent, WorktreeState
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import DispositionSource
from tenuto.model.worktree import InTheWay, Made, NotNow, Tree, TreeMade, Worktree
from tenuto.ports import Worktrees

KINDS = (CommandKind.CLAIM, CommandKind.WORKTREE_MAKE)


@dataclass(frozen=True)
class Nowhere:
    """Where no worktrees can be made."""

    def path(self, name: str) -> str:
        return f"/nonexistent/{name}"

    def objection(self, repository: str) -> str | None:
        return "no worktrees are made here"

    async def make(self, tree: Tree) -> TreeMade:
        return NotNow("no worktrees are made here")

    async def found(self, tree: Tree) -> TreeMade | None:
        return NotNow("no worktrees are made here")

    async def remove(self, tree: Tree) -> NotNow:
        return NotNow("no worktrees are made here")


class Preparing:
    """Plans what a task needs before its first turn, and carries it out."""

    def __init__(self, books: Books, units: Units, trees: Worktrees) -> None:
        self._books = books
        self._units = units
        self.trees = trees

    def path(self, chain: Chain, unit: str, position: int) -> str | None:
        """Where a unit's task will work, if it gets a worktree; None: where the chain is."""
        if chain.base is None:
            return None
        return self.trees.path(naming.tree(chain.id, unit, position))

    def branch(self, chain: Chain, unit: str, position: int) -> str:
        """The branch that is taken for a unit's work."""
        mandate = self._books.ledger.mandate(chain.id)
        beginning = mandate.branches if mandate is not None else authority.namespace(chain.id)
        return f"{beginning}{naming.leaf(unit, position)}"

    def told(self, chain: Chain, unit: str, position: int) -> str:
        """What a unit's task is told of its worktree; nothing where it has none."""
        if chain.base is None:
            return ""
        merges = self._books.ledger.mandate(chain.id) is not None
        told = chain.phases and not merges
        return phases.worktree_told(self.branch(chain, unit, position), str(chain.base), phases=told)

    def plan(self, chain: Chain, link: Link, now: datetime) -> Commit:
        """The commands to be written with a link, and the row of its worktree."""
        held = f"unit:{link.place}:{link.unit}"
        claim = self._books.command(CommandKind.CLAIM, link.task_id, (held,), SOURCE, now)
        commit = Commit(puts=(claim,), facts=(self._books.armed(claim, chain.run_id),), holds=((held, claim.id),))
        path = self.path(chain, link.unit, link.position)
        if path is None or chain.base is None:
            return commit
        scope = f"worktree:{path}"
        make = self._books.command(CommandKind.WORKTREE_MAKE, link.task_id, (scope,), SOURCE, now)
        row = Worktree(
            id=WorktreeId(self._books.mint.new("worktree")),
            revision=1,
            task_id=link.task_id,
            chain_id=chain.id,
            repository=chain.cwd,
            path=path,
            branch=self.branch(chain, link.unit, link.position),
            base=chain.base,
            state=WorktreeState.PLANNED,
            created_at=now,
            command_id=make.id,
        )
        fact = self._books.armed(make, chain.run_id)
        return commit.then(Commit(puts=(make, row), facts=(fact,), holds=((scope, make.id),)))

    def open(self, snapshot: Snapshot, *, quick: bool = False) -> Command | None:
        """The next thing to be done for a task; `quick`: only what takes no remote."""
        kinds = KINDS[:1] if quick else KINDS
        return next((one for kind in kinds for one in snapshot.commands if one.kind is kind), None)

    async def go(self, chain: Chain, link: Link, snapshot: Snapshot, command: Command) -> Stepped | None:
        """Do it, and settle it in one transaction; None: look again."""
        match command.kind:
            case CommandKind.CLAIM:
                return await self._claim(chain, link, snapshot, command)
            case _:
                return await self._make(chain, link, snapshot, command)

    # -- the unit

    async def _claim(self, chain: Chain, link: Link, snapshot: Snapshot, command: Command) -> Stepped | None:
        source = self._units.source(chain.source)
        answer = await asyncio.to_thread(source.claim, Hold(link.unit, link.id))
        if isinstance(answer, Foreign) and (over := self._over(link, answer)) is not None:
            answer = await asyncio.to_thread(source.claim, Hold(link.unit, link.id, frozenset({over})))
        self._books.fuse.burn("claim.written")
        draft = Draft(self._books.snapshot(link.task_id), self._books.clock.now(), self._books.mint.new)
        commit = Commit()
        match answer:
            case OutOfOrder(why):
                return await self._books.rest(chain, f"its source is out of order: {why}", OUT_OF_ORDER)
            case None | Recorded():
                draft.command(command, CommandEvent.BEGUN, CommandEvent.ACKNOWLEDGED, evidence="the source says so")
                draft.look_now()
                if self.open(draft.snapshot) is None:
                    commit = Commit(puts=(self._at_work(chain),))
            case Foreign(why):
                draft.command(command, CommandEvent.PROVEN_UNDONE, detail=why)
                commit = self._left(chain, link, draft, why)
            case _ as never:
                assert_never(never)
        await self._books.commit((draft.commit() or Commit()).then(commit))
        return None

    def _at_work(self, chain: Chain) -> Chain:
        """A chain whose task has all that it needs."""
        return replace(chain, revision=chain.revision + 1, look_at=self._books.clock.now() + AT_WORK)

    def _over(self, link: Link, answer: Foreign) -> str | None:
        """Whoever has the unit at its source, if that is a link of ours whose hold is over."""
        name = answer.unit.claimed_by if answer.unit is not None else None
        other = self._books.ledger.link(LinkId(name)) if name is not None else None
        if other is None or other.place != link.place or other.unit != link.unit or other.recorded_at is None:
            return None
        return name

    def _left(self, chain: Chain, link: Link, draft: Draft, why: str) -> Commit:
        """Somebody else has the unit: its task ends before it begins, and the chain goes on without it."""
        now = self._books.clock.now()
        puts: list[Link | Worktree] = []
        if link.recorded_at is None:
            puts.append(
                replace(link, revision=link.revision + 1, outcome=Outcome.TAKEN, evidence=why[:2000], handed_at=now,
                        recorded_at=now)
            )  # fmt: skip
        tree = self._books.ledger.worktree_of(link.task_id)
        make = next((one for one in draft.snapshot.commands if one.kind is CommandKind.WORKTREE_MAKE), None)
        if make is not None and tree is not None and tree.state is WorktreeState.PLANNED:
            draft.command(make, CommandEvent.PROVEN_UNDONE, detail="it was not begun")
            puts.append(self.moved(tree, WorktreeEvent.REFUSED, "it was not needed", None))
        if not draft.task.terminal:
            reason = f"its unit is not free: {why}"
            draft.end_task(TaskEvent.FAILED, reason, DispositionSource.SUPERVISOR, None, verified=False)
        looked = replace(chain, revision=chain.revision + 1, look_at=now)
        return Commit(puts=(*puts, looked))

    # -- the worktree

    async def _make(self, chain: Chain, link: Link, snapshot: Snapshot, command: Command) -> Stepped | None:
        row = self._books.ledger.worktree_of(link.task_id)
        if row is None:
            raise LookupError(f"the worktree of {link.task_id} is gone")
        tree = Tree(row.repository, row.path, row.branch, row.base)
        if snapshot.task.terminal:
            answer = await self.trees.found(tree) or InTheWay("its task ended before it was made")
        else:
            answer = await self.trees.make(tree)
        self._books.fuse.burn("worktree.made")
        if isinstance(answer, NotNow):
            return await self._books.rest(chain, f"the worktree of unit {link.unit}: {answer.why}", OUT_OF_ORDER)
        draft = Draft(self._books.snapshot(link.task_id), self._books.clock.now(), self._books.mint.new)
        if isinstance(answer, Made):
            draft.command(command, CommandEvent.BEGUN, CommandEvent.ACKNOWLEDGED, evidence=f"made at {answer.commit}")
            changed = self.moved(row, WorktreeEvent.MADE, None, answer.commit)
            draft.note(FactKind.WORKTREE_MADE, path=row.path, branch=row.branch, commit=answer.commit)
            draft.look_now()
        else:
            draft.command(command, CommandEvent.PROVEN_UNDONE, detail=answer.why)
            changed = self.moved(row, WorktreeEvent.REFUSED, answer.why, None)
            if not draft.task.terminal:
                draft.note(FactKind.WORKTREE_FAILED, path=row.path, why=answer.why[:500])
                reason = f"its worktree could not be made: {answer.why}"
                draft.end_task(TaskEvent.FAILED, reason, DispositionSource.SUPERVISOR, None, verified=False)
        seen = replace(self._at_work(chain), seen=chain.seen or changed.begun_at_commit)
        await self._books.commit((draft.commit() or Commit()).then(Commit(puts=(changed, seen))))
        return None

    def moved(self, row: Worktree, event: WorktreeEvent, why: str | None, commit: str | None) -> Worktree:
        """The row of a worktree after something became of it."""
        state = WORKTREE.after(row.state, event)
        return replace(
            row,
            revision=row.revision + 1,
            state=state,
            reason=None if why is None else why[:2000],
            begun_at_commit=commit or row.begun_at_commit,
            ended_at=self._books.clock.now() if state in WORKTREE.terminal else None,
        )
