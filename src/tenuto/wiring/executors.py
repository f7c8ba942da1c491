"""The bridge to executors elsewhere, put between the registry, the wheel and the door of one supervisor."""

from __future__ import annotations

from collections.abc import Callable

from tenuto.engine.elsewhere import SCOPE
from tenuto.model.ids import CommandId, TaskId
from tenuto.ports import Clock, Fuse, Ledger
from tenuto.transports.bridge import Bridge, Hooks


def bridged(
    ledger: Ledger, clock: Clock, fuse: Fuse, ring_for: Callable[[CommandId], None], ring: Callable[[TaskId], None]
) -> Bridge:
    """A bridge over one registry. `ring_for` hears of commands, `ring` of tasks whose executor came or went."""

    def changed(_name: str) -> None:
        for task_id in ledger.under_way():
            ring(task_id)

    return Bridge(
        ledger.registry().id,
        clock,
        fuse,
        known=lambda command_id: ledger.command(command_id) is not None,
        settled=lambda command_id: ledger.replayed(SCOPE, command_id) is not None,
        hooks=Hooks(ring=ring_for, changed=changed),
    )
