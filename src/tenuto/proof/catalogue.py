"""Which cases there are: every place where somebody can be killed, as undisturbed plays have shown it.

Listing decides nothing about the outcome. Chance is an argument: the same seed and the same plays give the same list.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenuto.proof.case import Case, Kill, Who

HOST_POINTS = (
    "host.start",
    "host.claimed",
    "host.before_begun",
    "host.begun",
    "host.spawned",
    "host.accepted",
    "host.running",
    "host.drained",
    "host.before_ended",
    "host.ended",
)

#: Kills that only a second life can reach: what it does about an order nobody has taken up.
REVOCATIONS = tuple(
    (first, second)
    for first in ("arm.committed", "handover.before_spawn", "handover.spawned")
    for second in ("revoke.before", "revoke.done", "settle.before_commit", "settle.committed")
)
LAUNCHES = frozenset({"arm.committed", "check.committed"})


@dataclass(frozen=True)
class Path:
    """What one undisturbed play has shown: the points its first supervisor passed, in order, and its turns."""

    scenario: str
    points: tuple[tuple[str, int], ...]
    launches: int
    turns: int


def path_of(scenario: str, passings: Sequence[str], turns: int) -> Path:
    """The path of a play from its recorded passings."""
    seen: Counter[str] = Counter()
    points = []
    for point in passings:
        seen[point] += 1
        points.append((point, seen[point]))
    return Path(scenario, tuple(points), sum(seen[point] for point in LAUNCHES), turns)


def supervisor(path: Path, *, all_of: bool) -> list[Kill]:
    """Every passing of the supervisor; unless `all_of`, without what a neighbour makes the same.

    Between a commit's own points and the writer's lies nothing that outlives the process.
    """
    kept, before = [], ""
    for point, count in path.points:
        same = point.startswith("write.") and before.endswith((".before_commit", "write.prepared"))
        if all_of or not (same and not (before == "write.prepared" and point != "write.durable")):
            kept.append(Kill(Who.SUPERVISOR, point, count))
        before = point
    return kept


def hosts(path: Path) -> list[Kill]:
    """Every point of every host that is launched."""
    return [Kill(Who.HOST, point, count) for count in range(1, path.launches + 1) for point in HOST_POINTS]


def agents(path: Path) -> list[Kill]:
    """The agent before its effect, after it, and after it has said everything, in every turn."""
    turns = range(1, path.turns + 1)
    said = [Kill(Who.AGENT, point, count) for count in turns for point in ("agent.effect", "agent.said")]
    return [Kill(Who.AGENT, "agent.start", 1), *said]


def every_once(paths: Mapping[str, Path]) -> list[Case]:
    """Every point of every path once, and beside them the kills that only a second life, or everybody, can die of."""
    cases = []
    for path in paths.values():
        singles = [*supervisor(path, all_of=False), *hosts(path), *agents(path)]
        cases += [Case(path.scenario, (kill,)) for kill in singles]
    plain = paths["plain"]
    cases += [
        Case("plain", (Kill(Who.SUPERVISOR, first, 1), Kill(Who.SUPERVISOR, second, 1))) for first, second in REVOCATIONS
    ]
    firsts = [kill.point for kill in supervisor(plain, all_of=False) if kill.count == 1]
    cases += [Case("slow", (Kill(who, point, 1),)) for who in (Who.EVERYTHING, Who.PAUSED) for point in firsts]
    return cases


def sampled(paths: Mapping[str, Path], count: int, chance: random.Random) -> list[Case]:
    """`count` cases by chance: half of them with one kill, the others with two, with everybody, or with a pause."""
    known = sorted(paths)
    cases = []
    for number in range(count):
        path = paths[chance.choice(known)]
        first = chance.choice(supervisor(path, all_of=True))
        if number % 2 == 0:
            kills: tuple[Kill, ...] = (chance.choice([first, *hosts(path), *agents(path)]),)
        else:
            kills = _several(path, first, chance)
        cases.append(Case(path.scenario, kills))
    return cases


def _several(path: Path, first: Kill, chance: random.Random) -> tuple[Kill, ...]:
    host, agent = chance.choice(hosts(path)), chance.choice(agents(path))
    again = chance.choice(supervisor(path, all_of=True))
    return chance.choice(
        [
            (first, host),
            (first, agent),
            (first, again),
            (host, agent),
            (first, host, agent),
            (Kill(Who.EVERYTHING, first.point, first.count),),
            (Kill(Who.PAUSED, first.point, first.count),),
        ]
    )
