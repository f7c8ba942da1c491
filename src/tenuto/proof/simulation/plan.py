"""What will go wrong in a world, drawn from its seed before it begins.

A plan is a value: the same plan is the same world, and a smaller plan is a smaller one. What is drawn later (how long
a turn takes, what its agent says, which host dies) comes from a chance of each task's own, so that a task that is
left out changes little for the others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

DAY = 86_400.0
TURNS = 3.0


class Kind(StrEnum):
    """What may befall the whole world; `size` is in seconds unless it says otherwise."""

    CRASH = "crash"
    """The supervisor dies at the `size`-th passing of a named point, and is started again."""
    PAUSE = "pause"
    """The supervisor stands still for `size` between a commit and its hand-over, and another takes over."""
    TAKEOVER = "takeover"
    """Another supervisor leads; the old one is not told."""
    FORWARD = "clock forward"
    BACK = "clock back"
    SLEEP = "sleep"
    """As a clock that goes forward, by hours."""
    DISK_FULL = "disk full"
    PARTITION = "partition"
    """The executor cannot be reached."""
    UNSEEN = "unseen"
    """Nobody can tell which processes are there."""
    DIRECTORY = "directory"
    """The directories of one task in three are away."""
    ECHO = "echo"
    """Every task is rung for twice, though nothing happened."""
    SPENT = "usage spent"
    """The usage of one account is spent; it serves again after that."""
    LOGIN = "login expired"
    """The browser's person is logged out of the site, and comes back after that."""
    BACKGROUND = "background ended"
    """The background of the extension is ended; it is there again after that."""
    TAB = "tab closed"
    WINDOWS = "windows"
    """A conversation is shown in several other tabs for so long, and not in ours."""
    DRAFT = "draft"
    """Somebody types in a conversation, and leaves it standing for so long."""
    OWN_TURN = "own turn"
    """The person sends a turn of their own."""
    GONE = "conversation gone"
    CHALLENGE = "human challenge"
    """The site asks whether a person is there, until its person was told of it and answers there."""
    CARD = "approval card"
    """A turn under way in a page stands before a card, until its person was told of it and presses it."""
    CUT_OFF = "registry out of reach"
    """Whoever leads cannot reach the registry's database; where that lasts, another leads by then."""


#: How often a day each of them happens, and between which sizes.
RATES: dict[Kind, tuple[float, float, float]] = {
    Kind.CRASH: (6.0, 1, 40),
    Kind.PAUSE: (2.0, 5, 900),
    Kind.TAKEOVER: (1.0, 0, 0),
    Kind.FORWARD: (0.3, 60, 7_200),
    Kind.BACK: (0.3, 60, 7_200),
    Kind.SLEEP: (0.3, 7_200, 36_000),
    Kind.DISK_FULL: (0.5, 60, 600),
    Kind.PARTITION: (1.0, 20, 300),
    Kind.UNSEEN: (2.0, 60, 3_600),
    Kind.DIRECTORY: (0.7, 600, 7_200),
    Kind.ECHO: (2.0, 0, 0),
    Kind.SPENT: (1.5, 1_800, 18_000),
    Kind.LOGIN: (0.3, 600, 14_400),
    Kind.BACKGROUND: (4.0, 1, 120),
    Kind.TAB: (3.0, 0, 0),
    Kind.WINDOWS: (1.0, 60, 7_200),
    Kind.DRAFT: (2.0, 20, 3_600),
    Kind.OWN_TURN: (2.0, 0, 0),
    Kind.GONE: (0.2, 0, 0),
    Kind.CHALLENGE: (0.3, 0, 0),
    Kind.CARD: (3.0, 0, 0),
    Kind.CUT_OFF: (1.0, 5, 300),
}


@dataclass(frozen=True)
class Fault:
    """One of them, at a time in seconds from the beginning."""

    at: float
    kind: Kind
    size: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.at / 3600:.2f} h, size {self.size:.0f}"


@dataclass(frozen=True)
class Plan:
    """A world: its seed, which tasks begin in it, how long it lasts, and what goes wrong.

    `mishaps` False leaves out what befalls single turns: hosts that die, rings that are lost, agents that fall silent.
    `turns_a_day` is about how many turns a task takes on a day on which nothing else keeps it waiting; from it follows
    how long it rests between two. `slots` is how many tasks may be active at once, None: as many as there are; then a
    task that rests long gives its slot back.
    """

    seed: int
    tasks: tuple[int, ...]
    days: float
    faults: tuple[Fault, ...]
    mishaps: bool = True
    turns_a_day: float = TURNS
    slots: int | None = None

    def __str__(self) -> str:
        of_all = f"seed {self.seed}, tasks {list(self.tasks)}, {self.days:.2f} days"
        lines = [f"{of_all}, mishaps {self.mishaps}, slots {self.slots}"]
        return "\n".join([*lines, *(f"  {fault}" for fault in self.faults)])


def drawn(seed: int, tasks: int, days: float, turns_a_day: float = TURNS) -> Plan:
    """The plan that belongs to a seed. Where there are fewer turns to disturb, less is disturbed."""
    share = min(1.0, turns_a_day / TURNS)
    chance = random.Random(f"faults of {seed}")  # noqa: S311 - played chance, not a secret
    faults = []
    for kind, (rate, least, most) in RATES.items():
        at = chance.expovariate(rate * share / DAY)
        while at < days * DAY:
            faults.append(Fault(at, kind, float(round(chance.uniform(least, most)))))
            at += chance.expovariate(rate * share / DAY)
    few = random.Random(f"slots of {seed}").random() < 0.5  # noqa: S311 - played chance, not a secret
    in_order = tuple(sorted(faults, key=lambda fault: fault.at))
    slots = max(1, tasks * 2 // 3) if few else None
    return Plan(seed, tuple(range(tasks)), days, in_order, turns_a_day=turns_a_day, slots=slots)
