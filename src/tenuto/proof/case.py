"""A case of the crash matrix and its name: which scenario, and who is killed where.

`plain:arm.committed:2` kills the supervisor at the second passing of that point; `plain:host.begun:1` the first host;
`plain:agent.effect:1` the agent in its first turn; `plain:all.arm.committed:1` everybody at once; in
`plain:late.arm.committed:1` the supervisor only stands still until another has taken over and is done;
`elsewhere:far.peer.heard:1` kills the executor in another process, which is begun again. A plus joins several. A name
is enough to play the case again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Who(StrEnum):
    """What is killed."""

    SUPERVISOR = ""
    HOST = "host"
    AGENT = "agent"
    EVERYTHING = "all"
    PAUSED = "late"
    EXECUTOR = "far"
    CONVERSATION = "talk"


PREFIXED = frozenset({Who.EVERYTHING, Who.PAUSED, Who.EXECUTOR, Who.CONVERSATION})
"""Whose point does not tell by itself who is killed."""


@dataclass(frozen=True)
class Kill:
    """Who is killed at the `count`-th passing of which point."""

    who: Who
    point: str
    count: int

    def __str__(self) -> str:
        prefix = f"{self.who}." if self.who in PREFIXED else ""
        return f"{prefix}{self.point}:{self.count}"


@dataclass(frozen=True)
class Case:
    """One play of the matrix; without kills it is an undisturbed one."""

    scenario: str
    kills: tuple[Kill, ...] = ()

    def __str__(self) -> str:
        return ":".join([self.scenario, *filter(None, ["+".join(map(str, self.kills))])])


def read(name: str) -> Case:
    """The case of a name; ValueError when it is none."""
    scenario, _, kills = name.partition(":")
    return Case(scenario, tuple(_kill(part) for part in kills.split("+")) if kills else ())


def _kill(text: str) -> Kill:
    point, _, count = text.rpartition(":")
    first, _, rest = point.partition(".")
    match first:
        case "host":
            return Kill(Who.HOST, point, int(count))
        case "agent":
            return Kill(Who.AGENT, point, int(count))
        case "all":
            return Kill(Who.EVERYTHING, rest, int(count))
        case "late":
            return Kill(Who.PAUSED, rest, int(count))
        case "far":
            return Kill(Who.EXECUTOR, rest, int(count))
        case "talk":
            return Kill(Who.CONVERSATION, rest, int(count))
        case _:
            return Kill(Who.SUPERVISOR, point, int(count))
