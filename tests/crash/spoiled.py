"""Supervisors with one promise taken out, to see that the judge notices: `python -m tests.crash.spoiled SPOIL CASE`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

from tenuto.core import reconcile
from tenuto.model.command import Command
from tenuto.model.evidence import CommandFacts, Mark, Observation
from tenuto.model.reconciliation import Finding, TurnEnded, Undone
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


def believes_silence(supervisor: Supervisor) -> None:
    """What nobody has claimed yet is taken for undone, without taking its place."""
    look = supervisor.executor.look

    async def hasty(command: Command) -> Observation:
        seen = await look(command)
        facts = seen.facts
        if isinstance(facts, CommandFacts) and facts.mark is Mark.NONE and not facts.launched_here:
            return replace(seen, facts=replace(facts, mark=Mark.REVOKED))
        return seen

    supervisor.executor.look = hasty  # type: ignore[method-assign]


def drops_turns(supervisor: Supervisor) -> None:
    """A turn that ended is settled as one that never was."""
    honest = reconcile.of_command

    def dropping(command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
        found = honest(command, facts, seen)
        if any(isinstance(finding, TurnEnded) for finding in found):
            return (Undone(command, "nothing was seen of it", mendable=False, revoked=False),)
        return found

    reconcile.of_command = dropping


def forgets(supervisor: Supervisor) -> None:
    """The newest wake is deleted at every start."""
    import sqlite3

    with sqlite3.connect(supervisor.settings.registry_path) as registry:
        registry.execute("DELETE FROM wake WHERE consumed_at IS NOT NULL")
    registry.close()


SPOILS: dict[str, Callable[[Supervisor], None]] = {
    each.__name__: each for each in (does_it_again, believes_silence, drops_turns, forgets)
}

if __name__ == "__main__":
    print(json.dumps(asdict(play(read(sys.argv[2]), spoil=SPOILS[sys.argv[1]], limit=6.0))))
