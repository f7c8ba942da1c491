"""Clearing: worktrees whose unit is over are taken away, and those that hold work that is nowhere else are kept.

Removing is a command like every other. What is kept is kept with its reason, and is looked at again when its chain
gives the next unit away, or when somebody asks.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tenuto.core.draft import Draft
from tenuto.engine.chaining.asked import LEFT, OUT_OF_ORDER, SOURCE, WAITS
from tenuto.engine.chaining.books import Books
from tenuto.engine.chaining.preparing import Preparing
from tenuto.model.chain import Chain
from tenuto.model.change import Commit
from tenuto.model.command import Command, CommandKind
from tenuto.model.fact import FactKind
from tenuto.model.ids import ChainId, WorktreeId
from tenuto.model.lifecycle import CommandEvent, WorktreeEvent, WorktreeState
from tenuto.model.worktree import NotNow, Removed, Tree, Worktree

#: Worktrees that are looked at in one round, the newest first.
AT_ONCE = 20


class Clearing:
    """Removes worktrees."""

    def __init__(self, books: Books, preparing: Preparing) -> None:
        self._books = books
        self._preparing = preparing
        self._at: set[WorktreeId] = set()
        self._again: dict[WorktreeId, datetime] = {}

    def due(self, chain: Chain, *, kept: bool = False) -> tuple[Worktree, ...]:
        """The worktrees of a chain that can be looked at; with `kept` also those that were kept before."""
        if chain.base is None:
            return ()
        rows = self._books.ledger.worktrees(AT_ONCE, chain_id=chain.id)
        standing = (row for row in rows if row.state in (WorktreeState.READY, WorktreeState.KEPT))
        return tuple(row for row in standing if self._over(row, again=kept or row.state is WorktreeState.READY))

    def _over(self, row: Worktree, *, again: bool) -> bool:
        """Whether nobody works there any more, and what became of its unit stands at the source."""
        later = self._again.get(row.id)
        if row.id in self._at or (later is not None and later > self._books.clock.now()):
            return False
        task, link = self._books.ledger.task(row.task_id), self._books.ledger.link_of(row.task_id)
        if task is None or not task.terminal or link is None or link.recorded_at is None:
            return False
        snapshot = self._books.snapshot(row.task_id)
        removing = [one for one in snapshot.commands if one.kind is CommandKind.WORKTREE_REMOVE]
        return snapshot.live is None and len(snapshot.commands) == len(removing) and (again or bool(removing))

    def left(self, chain: Chain) -> bool:
        """Whether worktrees of a chain have not been looked at yet, or are being removed."""
        if chain.base is None:
            return False
        rows = self._books.ledger.worktrees(AT_ONCE, chain_id=chain.id)
        return any(row.state is WorktreeState.READY or self._removing(row) for row in rows)

    def moment(self, chain: Chain) -> datetime | None:
        """When a chain that waits for nothing else is looked at again for its worktrees; None: none is left."""
        return self._books.clock.now() + LEFT if self.left(chain) else None

    def _removing(self, row: Worktree) -> bool:
        """Whether the command that removes a worktree that was kept is under way."""
        if row.state is not WorktreeState.KEPT or row.command_id is None:
            return False
        command = self._books.ledger.command(row.command_id)
        return command is not None and command.open and command.kind is CommandKind.WORKTREE_REMOVE

    async def round(self, chain: Chain, *, kept: bool = False) -> None:
        """Look at every one of them once."""
        for row in self.due(chain, kept=kept):
            await self.one(row)

    async def one(self, row: Worktree) -> str:
        """Take one away, or say why it is kept; by one at a time."""
        if row.id in self._at:
            return "it is looked at already"
        self._at.add(row.id)
        try:
            return await self._removed(row)
        finally:
            self._at.discard(row.id)

    async def _removed(self, row: Worktree) -> str:
        command = await self._armed(row)
        if command is None:
            self._again[row.id] = self._books.clock.now() + OUT_OF_ORDER
            return "it is changing; try again"
        answer = await self._preparing.trees.remove(Tree(row.repository, row.path, row.branch, row.base))
        self._books.fuse.burn("worktree.removed")
        draft = Draft(self._books.snapshot(row.task_id), self._books.clock.now(), self._books.mint.new)
        now_ = self._books.ledger.worktree(row.id) or row
        if isinstance(answer, Removed):
            why = "it is removed"
            draft.command(command, CommandEvent.BEGUN, CommandEvent.ACKNOWLEDGED, evidence="nothing stands there")
            draft.note(FactKind.WORKTREE_REMOVED, path=row.path)
            changed = self._preparing.moved(now_, WorktreeEvent.REMOVED, None, None)
            self._again.pop(row.id, None)
        elif isinstance(answer, NotNow):
            why = answer.why
            draft.command(command, CommandEvent.PROVEN_UNDONE, detail=why)
            changed = replace(now_, revision=now_.revision + 1, reason=why[:2000])
            self._again[row.id] = self._books.clock.now() + WAITS
        else:
            why = answer.why
            draft.command(command, CommandEvent.PROVEN_UNDONE, detail=why)
            if why != now_.reason:
                draft.note(FactKind.WORKTREE_KEPT, path=row.path, why=why[:500])
            changed = self._preparing.moved(now_, WorktreeEvent.KEPT, why, None)
        if not await self._books.commit((draft.commit() or Commit()).then(Commit(puts=(changed,)))):
            self._again[row.id] = self._books.clock.now() + OUT_OF_ORDER
        return why

    async def _armed(self, row: Worktree) -> Command | None:
        """The command that removes it, written ahead; one that a death left open is gone on with."""
        snapshot = self._books.snapshot(row.task_id)
        left = next((one for one in snapshot.commands if one.kind is CommandKind.WORKTREE_REMOVE), None)
        if left is not None:
            return left
        scope = f"worktree:{row.path}"
        now = self._books.clock.now()
        command = self._books.command(CommandKind.WORKTREE_REMOVE, row.task_id, (scope,), SOURCE, now)
        changed = replace(row, revision=row.revision + 1, command_id=command.id)
        fact = self._books.armed(command, snapshot.task.run_id)
        commit = Commit(puts=(command, changed), facts=(fact,), holds=((scope, command.id),))
        chain = self._books.chain(row.chain_id) if row.chain_id is not None else None
        if chain is not None and chain.look_at is None:  # whoever comes after a death finds it again
            looked = replace(chain, revision=chain.revision + 1, look_at=now + LEFT)
            commit = commit.then(Commit(puts=(looked,)))
        done = await self._books.commit(commit)
        self._books.fuse.burn("worktree.armed")
        return command if done else None

    def of(self, chain_id: ChainId | None) -> tuple[Worktree, ...]:
        """Those of a chain, or all that stand somewhere; newest first."""
        return self._books.ledger.worktrees(500, chain_id=chain_id)
