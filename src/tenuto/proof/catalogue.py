"""Which cases there are: every place where somebody can be killed, as undisturbed plays have shown it.

Listing decides nothing about the outcome. Chance is an argument: the same seed and the same plays give the same list.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tenuto.proof.case import Case, Kill, Who, read

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
#: Paths on which hosts and agents are killed, and which launch of theirs.
CARRIED = {
    "plain": 3,
    "slow": 1,
    "cut-short-person": 1,
    "blocked": 2,
    "message": 2,
    "check": 2,
    "cancel": 1,
    "limit": 1,
    "permission": 1,
    "two": 1,
    "elsewhere": 2,
    "elsewhere-cancel": 1,
}
#: Points at which an executor elsewhere loses an order with its life; its next life is told that it is revoked.
LOST = ("far.peer.heard", "far.handover.before_spawn")
REVOKED_ELSEWHERE = (
    "far.peer.before_revoke",
    "far.peer.revoked",
    "far.peer.said_revoked",
    "revoke.before",
    "revoke.done",
    "settle.before_commit",
    "settle.committed",
)
FAR = "far."
TALK = "talk."
#: Whoever stands still there holds the registry's lock: nobody else can write, which is safe and no take-over.
LOCKED = "write.prepared"
LAUNCHES = frozenset({"arm.committed", "check.committed"})


@dataclass(frozen=True)
class Path:
    """What one undisturbed play has shown: the points its first supervisor passed, in order, and its turns.

    `executor` are those of the first executor in another process, where there is one, and `conversation` those of the
    host of a conversation.
    """

    scenario: str
    points: tuple[tuple[str, int], ...]
    launches: int
    turns: int
    executor: tuple[tuple[str, int], ...] = ()
    conversation: tuple[tuple[str, int], ...] = ()


def path_of(scenario: str, passings: Sequence[str], turns: int) -> Path:
    """The path of a play from its recorded passings."""
    seen: Counter[str] = Counter()
    points = []
    for point in passings:
        seen[point] += 1
        points.append((point, seen[point]))
    mine = tuple(one for one in points if not one[0].startswith((FAR, TALK)))
    far, talk = (
        tuple((point.removeprefix(prefix), count) for point, count in points if point.startswith(prefix))
        for prefix in (FAR, TALK)
    )
    return Path(scenario, mine, sum(seen[point] for point in LAUNCHES), turns, far, talk)


def supervisor(path: Path) -> list[Kill]:
    """Every passing of every point of the supervisor."""
    return [Kill(Who.SUPERVISOR, point, count) for point, count in path.points]


def telling(path: Path) -> list[Kill]:
    """The passings that differ in what they leave behind.

    Left out are later passings of points between commits, the writer's points where a commit's own stand beside them,
    and, on every path but the plain one, the way to the first turn, which is the same on all of them.
    """
    names = [point for point, _ in path.points]
    began = names.index("arm.handed_over") if path.scenario != "plain" and "arm.handed_over" in names else 0
    kept = []
    for place, (point, count) in enumerate(path.points):
        after = names[place + 1] if place + 1 < len(names) else ""
        if point.startswith("write."):
            told = point == "write.durable" and not after.endswith((".committed", "lead.taken"))
        elif point.endswith(".committed"):
            told = True
        else:
            told = count == 1
        if told and place >= began:
            kept.append(Kill(Who.SUPERVISOR, point, count))
    return kept


def hosts(path: Path) -> list[Kill]:
    """Every point of every host that is launched, or every passing of one that a conversation has."""
    if path.conversation:
        return [Kill(Who.CONVERSATION, point, count) for point, count in path.conversation]
    return [Kill(Who.HOST, point, count) for count in range(1, path.launches + 1) for point in HOST_POINTS]


def executors(path: Path) -> list[Kill]:
    """Every passing of every point of an executor in another process."""
    return [Kill(Who.EXECUTOR, point, count) for point, count in path.executor]


def agents(path: Path) -> list[Kill]:
    """The agent before its effect, after it, and after it has said everything, in every turn."""
    turns = range(1, path.turns + 1)
    said = [Kill(Who.AGENT, point, count) for count in turns for point in ("agent.effect", "agent.said")]
    return [Kill(Who.AGENT, "agent.start", 1), *said]


def every_once(paths: Mapping[str, Path]) -> list[Case]:
    """Every point of every path once."""
    return [case for path in paths.values() for case in cases_of(path)]


def cases_of(path: Path) -> list[Case]:
    """Every point of one path once, and beside them the kills that only a second life, or everybody, can die of.

    What a host or an agent does differs by what it carries, so they are killed on the paths in `CARRIED`.
    """
    kills = telling(path)
    if path.scenario in CARRIED:
        launch = min(CARRIED[path.scenario], path.launches)
        kills += [kill for kill in hosts(path) if kill.count == launch]
        kills += agents(path)
    if path.conversation:
        kills += [kill for kill in hosts(path) if kill.count == 1] + agents(path)
    kills += executors(path)
    cases = [Case(path.scenario, (kill,)) for kill in kills]
    if path.scenario == "elsewhere":
        cases += [read(f"elsewhere:{lost}:1+{revoked}:1") for lost in LOST for revoked in REVOKED_ELSEWHERE]
    if path.scenario == "slow":
        firsts = [kill.point for kill in supervisor(path) if kill.count == 1]
        cases += [Case("slow", (Kill(Who.EVERYTHING, point, 1),)) for point in firsts]
        cases += [Case("slow", (Kill(Who.PAUSED, point, 1),)) for point in firsts if point != LOCKED]
    if path.scenario == "plain":
        twice = [(Kill(Who.SUPERVISOR, first, 1), Kill(Who.SUPERVISOR, second, 1)) for first, second in REVOCATIONS]
        cases += [Case("plain", kills_of_two) for kills_of_two in twice]
    return cases


def sampled(paths: Mapping[str, Path], count: int, chance: random.Random) -> list[Case]:
    """`count` cases by chance: half of them with one kill, the others with two, with everybody, or with a pause."""
    known = sorted(paths)
    cases = []
    for number in range(count):
        path = paths[chance.choice(known)]
        first = chance.choice(supervisor(path))
        if number % 2 == 0:
            kills: tuple[Kill, ...] = (chance.choice([first, *hosts(path), *agents(path)]),)
        else:
            kills = _several(path, first, chance)
        cases.append(Case(path.scenario, kills))
    return cases


def _several(path: Path, first: Kill, chance: random.Random) -> tuple[Kill, ...]:
    host, agent = chance.choice(hosts(path)), chance.choice(agents(path))
    again = chance.choice(supervisor(path))
    choices: list[tuple[Kill, ...]] = [
        (first, host),
        (first, agent),
        (first, again),
        (host, agent),
        (first, host, agent),
        (Kill(Who.EVERYTHING, first.point, first.count),),
    ]
    if path.executor:
        choices += [(chance.choice(executors(path)),), (first, chance.choice(executors(path)))]
    elif path.conversation:
        choices.append((chance.choice(hosts(path)),))  # whoever stands still keeps its host at its line
    elif path.scenario != "two" and first.point != LOCKED:  # one that stands by cannot tell standing still from living
        choices.append((Kill(Who.PAUSED, first.point, first.count),))
    return chance.choice(choices)
