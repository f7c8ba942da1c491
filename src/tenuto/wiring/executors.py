"""The bridge to executors elsewhere, put between the registry, the wheel and the door of one supervisor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tenuto.engine.deadman import DeadMan
from tenuto.engine.elsewhere import SCOPE
from tenuto.engine.orphans import Orphan, Strangers
from tenuto.model.command import Command
from tenuto.model.evidence import Presence
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.policy import Keeping
from tenuto.ports import Clock, Fuse, Ledger, Minter
from tenuto.transports import wire
from tenuto.transports.bridge import Bridge, Hooks


def bridged(
    ledger: Ledger,
    clock: Clock,
    minter: Minter,
    fuse: Fuse,
    slots: int,
    keep: Keeping,
    ring_for: Callable[[CommandId], None],
    ring: Callable[[TaskId], None],
) -> tuple[Bridge, Strangers, DeadMan]:
    """A bridge over one registry, who puts before a person what its executors know and nobody here does, and who
    listens for runs that have gone silent.

    What is older than `keep` says may be forgotten by them. `ring_for` hears of commands, `ring` of tasks whose
    executor came or went.
    """

    def changed(name: str) -> None:
        """What is under way is looked at, and what waits for this very executor."""
        waiting = {task.id for task in ledger.active(slots) if task.agent.carrier == name}
        for task_id in waiting.union(ledger.under_way()):
            ring(task_id)

    def observed(name: str, frame: wire.Observation, _at: datetime) -> None:
        """An agent's host has news (leave is asked, a limit is met): what it is, the next look says."""
        if name.startswith(wire.PREFIX[wire.ExecutorKind.AGENT]):
            ring(TaskId(name.partition(":")[2]))
        elif frame.query is None and silences.listening:
            silences.heard(ledger.bound_to(frame.subject))

    def asked(name: str, frame: wire.Ask) -> None:
        """A question decides nothing; what an extension says of a page is read from what it observes."""
        if frame.question is wire.Question.DEAD_MAN and frame.run is not None:
            silences.asked(name, frame.run)

    def stranger(name: str, entry: wire.Entry) -> None:
        strangers.note(name, Orphan(entry.command, entry.task, entry.mark.value))

    def waited_for(name: str, command_id: CommandId) -> None:
        bridge.accept_stranger(name, command_id)
        changed(name)

    def forgettable(command_id: CommandId) -> bool:
        command = ledger.command(command_id)
        settled = None if command is None or command.open else command.settled_at
        return settled is not None and clock.now() - settled >= keep.journals

    strangers = Strangers(ledger, clock, minter, slots, waited_for)
    bridge = Bridge(
        ledger.registry().id,
        clock,
        fuse,
        known=lambda command_id: ledger.command(command_id) is not None,
        settled=lambda command_id: ledger.replayed(SCOPE, command_id) is not None,
        forgettable=forgettable,
        hooks=Hooks(ring=ring_for, changed=changed, stranger=stranger, observed=observed, asked=asked),
    )
    silences = DeadMan(ledger, clock, minter, slots, Heard(bridge), ring)
    return bridge, strangers, silences


class Heard:
    """Implements `engine.deadman.Signs` by what the bridge has heard; asks nobody."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def connected(self, executor: str) -> bool:
        """Whether it is connected, and has the epoch written down."""
        line = self._bridge.known(executor).line
        return line is not None and line.open

    def alive(self, command: Command) -> bool:
        """Whether its last word was that the agent of this command is at work, and it is still here to say so."""
        told = self._bridge.known(command.executor).last.get(command.id)
        return told is not None and told.agent is Presence.ALIVE and self.connected(command.executor)
