"""What a restored registry does not know of: journals of commands that were armed after the backup was made.

Such a command may have acted, and may be acting still. Its task, as the backup has it, stands before that turn, and
would be continued as if it had never been. So the task waits for a person, once for each such command; nothing is
concluded from it, and nothing of it is ended. It refuses to guess a task that the registry does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tenuto.core.draft import Draft
from tenuto.model.change import Commit, Committed, Key
from tenuto.model.fact import Fact, FactKind
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.work import WaitKind
from tenuto.ports import Clock, Ledger, Minter

#: The scope of the keys by which each is dealt with once; retention leaves them.
ONCE = "once"


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
