"""Cores with one promise taken out, to see that a simulated world notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tenuto.core import reconcile
from tenuto.model.command import Command
from tenuto.model.evidence import CommandFacts, Mark, Observation, Presence
from tenuto.model.reconciliation import Finding, Undone
from tenuto.proof.simulation.plan import drawn
from tenuto.proof.simulation.universe import live

Spoil = Callable[[Command, CommandFacts], CommandFacts | Undone]


def unknown_is_gone(command: Command, facts: CommandFacts) -> CommandFacts:
    """Whoever cannot be seen is taken for gone."""
    performer, agent = (Presence.GONE if each is Presence.UNKNOWN else each for each in (facts.performer, facts.agent))
    return replace(facts, performer=performer, agent=agent)


def crash_is_undone(command: Command, facts: CommandFacts) -> CommandFacts | Undone:
    """A crash means that it did not happen."""
    unseen = facts.mark in (Mark.NONE, Mark.BEGUN) and facts.performer is not Presence.ALIVE and not facts.launched_here
    if unseen and command.open:
        return Undone(command, "it crashed", mendable=False, revoked=True)
    return facts


def orphans_are_over(command: Command, facts: CommandFacts) -> CommandFacts:
    """When the host has died, so has its agent."""
    return replace(facts, agent=Presence.GONE) if facts.performer is Presence.GONE else facts


SPOILS: dict[str, tuple[Spoil, str]] = {
    "unknown_is_gone": (unknown_is_gone, "while its agent still acts"),
    "crash_is_undone": (crash_is_undone, "said not to have happened"),
    "orphans_are_over": (orphans_are_over, "while its agent still acts"),
}
"""What is taken out, and the words in which it is missed."""


def spoil(name: str) -> None:
    """Take the promise out of this process's core."""
    honest, broken = reconcile.of_command, SPOILS[name][0]

    def of_command(
        command: Command, facts: CommandFacts, seen: Observation, *, over: bool = False
    ) -> tuple[Finding, ...]:
        told = broken(command, facts)
        return (told,) if isinstance(told, Undone) else honest(command, told, seen, over=over)

    reconcile.of_command = of_command


def transcript(seed: int, tasks: int, days: float) -> list[str]:
    """What happens in a world, line by line."""
    return list(live(drawn(seed, tasks, days), telling=True).transcript)
