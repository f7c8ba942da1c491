"""Supervisors with one promise taken out, to see that the judge notices: `python -m tests.crash.spoiled SPOIL CASE`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace

from tenuto.core import reconcile
from tenuto.model.command import Command
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence
from tenuto.model.lifecycle import CommandState
from tenuto.model.reconciliation import Finding, Undone
from tenuto.proof.case import read
from tenuto.proof.play import play
from tenuto.wiring.daemon import Supervisor


def does_it_again(supervisor: Supervisor) -> None:
    """After a crash, what was under way is simply done again."""
    for command in supervisor.ledger.commands(10, only_open=True):
        task = supervisor.ledger.task(command.task_id)
        assert task is not None
        env = {**os.environ, "TENUTO_COMMAND": command.id, "TENUTO_ATTEMPT": command.attempt_id or ""}
        subprocess.run(task.agent.argv, env=env, stdin=subprocess.DEVNULL, check=False)


def takes_it_for_undone(supervisor: Supervisor) -> None:
    """After a crash, what was under way is taken for something that never happened."""
    look = supervisor.executor.look

    async def hasty(command: Command) -> Observation:
        seen = await look(command)
        facts = seen.facts
        if isinstance(facts, CommandFacts) and not facts.launched_here and facts.mark is not Mark.ENDED:
            gone = replace(facts, mark=Mark.REVOKED, performer=Presence.GONE, agent=Presence.GONE)
            return replace(seen, facts=gone)
        return seen

    supervisor.executor.look = hasty  # type: ignore[method-assign]


def drops_turns(supervisor: Supervisor) -> None:
    """A turn that was seen to begin is settled as one that never was."""
    honest = reconcile.of_command

    def dropping(
        command: Command, facts: CommandFacts, seen: Observation, *, over: bool = False
    ) -> tuple[Finding, ...]:
        if command.state in (CommandState.ARMED, CommandState.SUBMITTED) and facts.mark in (Mark.ACCEPTED, Mark.ENDED):
            return (Undone(command, "nothing was seen of it", mendable=False, revoked=False),)
        return honest(command, facts, seen, over=over)

    reconcile.of_command = dropping


def forgets(supervisor: Supervisor) -> None:
    """Wakes that have been consumed are deleted at every start."""
    with closing(sqlite3.connect(supervisor.settings.registry_path, isolation_level=None)) as registry:
        registry.execute("DELETE FROM wake WHERE consumed_at IS NOT NULL")


SPOILS: dict[str, Callable[[Supervisor], None]] = {
    each.__name__: each for each in (does_it_again, takes_it_for_undone, drops_turns, forgets)
}

#: Seconds that one life may take. What goes wrong in the last two never ends by itself, and shows at once.
LIMITS = {"does_it_again": 60.0, "forgets": 60.0, "takes_it_for_undone": 15.0, "drops_turns": 15.0}

if __name__ == "__main__":
    print(json.dumps(asdict(play(read(sys.argv[2]), spoil=SPOILS[sys.argv[1]], limit=LIMITS[sys.argv[1]]))))
