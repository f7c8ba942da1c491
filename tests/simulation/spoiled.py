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

OfCommand = Callable[[Command, CommandFacts, Observation], tuple[Finding, ...]]


def unknown_is_gone(honest: OfCommand, command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    """Whoever cannot be seen is taken for gone."""
    performer, agent = (Presence.GONE if each is Presence.UNKNOWN else each for each in (facts.performer, facts.agent))
    return honest(command, replace(facts, performer=performer, agent=agent), seen)


def crash_is_undone(honest: OfCommand, command: Command, facts: CommandFacts, seen: Observation) -> tuple[Finding, ...]:
    """A crash means that it did not happen."""
    if facts.mark in (Mark.NONE, Mark.BEGUN) and facts.performer is not Presence.ALIVE and not facts.launched_here:
        return (Undone(command, "it crashed", mendable=False, revoked=True),)
    return honest(command, facts, seen)


def orphans_are_over(
    honest: OfCommand, command: Command, facts: CommandFacts, seen: Observation
) -> tuple[Finding, ...]:
    """When the host has died, so has its agent."""
    if facts.performer is Presence.GONE:
        facts = replace(facts, agent=Presence.GONE)
    return honest(command, facts, seen)


SPOILS = {each.__name__: each for each in (unknown_is_gone, crash_is_undone, orphans_are_over)}


def spoil(name: str) -> None:
    """Take the promise out of this process's core."""
    honest, broken = reconcile.of_command, SPOILS[name]
    reconcile.of_command = lambda command, facts, seen: broken(honest, command, facts, seen)


def transcript(seed: int, tasks: int, days: float) -> list[str]:
    """What happens in a world, line by line."""
    return list(live(drawn(seed, tasks, days), telling=True).transcript)
