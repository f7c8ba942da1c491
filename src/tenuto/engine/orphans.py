"""What a restored registry does not know of: journals of commands that were armed after the backup was made.

Such a command may have acted, and may be acting still. Its task, as the backup has it, stands before that turn, and
would be continued as if it had never been. So the task waits for a person, once for each such command; nothing is
concluded from it, and nothing of it is ended. It refuses to guess a task that the registry does not have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tenuto.core.draft import Draft
from tenuto.model.change import Commit, Committed, Key
from tenuto.model.fact import Fact, FactKind
from tenuto.model.faults import OutOfReach, StorageFull
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.work import WaitKind
from tenuto.ports import Clock, Ledger, Minter

#: The scope of the keys by which each is dealt with once; retention leaves them.
ONCE = "once"
AGAIN = 5.0
"""Seconds until a registry that would not take it is asked again."""

_LOG = logging.getLogger("tenuto.orphans")


@dataclass(frozen=True)
class Orphan:
    """A command that began something and has no row: what its journal says of it."""

    command_id: CommandId
    task_id: TaskId | None
    mark: str


async def hold(ledger: Ledger, orphans: Iterable[Orphan], clock: Clock, mint: Minter, slots: int) -> int:
    """Let the tasks of these commands wait for a person; how many were not known of before."""
    found = 0
    for orphan in orphans:
        now = clock.now()
        key = Key(ONCE, f"orphan/{orphan.command_id}", "0" * 64, {})
        snapshot = ledger.snapshot(orphan.task_id, slots) if orphan.task_id is not None else None
        said = f"a journal has command {orphan.command_id} ({orphan.mark}), which this registry does not know"
        fact = Fact(FactKind.FINDING, data={"what": said, "task": orphan.task_id})
        commit = Commit(facts=(fact,), key=key)
        if snapshot is not None:
            draft = Draft(snapshot, now, mint.new)
            draft.note(FactKind.FINDING, what=said)
            if not snapshot.task.terminal:
                draft.wait(
                    WaitKind.HUMAN, f"{said}: it was restored from a backup. Look what that turn did, then answer"
                )
            commit = draft.commit(key=key) or commit
        found += isinstance(await ledger.commit(commit), Committed)
    return found


class Strangers:
    """What executors elsewhere say when they come, put before a person one by one: a task that is known waits.

    `done` hears of each whose task waits now. Whatever was not reached when the supervisor ended is said again when
    its executor comes to the next one.
    """

    def __init__(
        self, ledger: Ledger, clock: Clock, mint: Minter, slots: int, done: Callable[[str, CommandId], None]
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._mint = mint
        self._slots = slots
        self._done = done
        self._said: asyncio.Queue[tuple[str, Orphan] | None] = asyncio.Queue()

    def note(self, executor: str, orphan: Orphan) -> None:
        """An executor has this, and the registry does not."""
        self._said.put_nowait((executor, orphan))

    def stop(self) -> None:
        """Nothing more is put before anybody."""
        self._said.put_nowait(None)

    async def run(self) -> None:
        """One after the other, until stopped; a registry that takes nothing now is asked again."""
        while (said := await self._said.get()) is not None:
            executor, orphan = said
            try:
                await hold(self._ledger, (orphan,), self._clock, self._mint, self._slots)
            except (OutOfReach, StorageFull) as trouble:
                _LOG.warning("%s of %s is not written down yet: %s", orphan.command_id, executor, trouble)
                asyncio.get_running_loop().call_later(AGAIN, self._said.put_nowait, said)
                continue
            if orphan.task_id is not None and self._ledger.task(orphan.task_id) is not None:
                self._done(executor, orphan.command_id)
