"""Whose usage the turns of agents take, and when it is spent.

An account is shared by tasks. Once it is spent it serves nobody until its reset, however often it is asked; whether it
says when that is holds for as long as it is spent.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

from tenuto.model.evidence import Ending, Hindered, Hindrance
from tenuto.model.work import Agent
from tenuto.proof.simulation.virtual import VirtualClock, VirtualLoop

ACCOUNTS = ("red", "blue")
LIMIT = "five hours"


def account_of(agent: Agent) -> str | None:
    """The account that an agent's turns take from; None where that cannot be told."""
    if agent.on is not None:
        return f"{agent.adapter}@{agent.on}"
    return next((each.removeprefix("--account=") for each in agent.argv if each.startswith("--account=")), None)


class Accounts:
    """The accounts of programs, by name."""

    def __init__(self, loop: VirtualLoop, clock: VirtualClock) -> None:
        self._loop = loop
        self._clock = clock
        self._until: dict[str, tuple[float, bool]] = {}

    def spend(self, account: str, seconds: float, *, tells: bool) -> None:
        """It is spent for so long; `tells`: it says when it resets."""
        self._until[account] = (self._loop.time() + seconds, tells)

    def calm(self) -> None:
        """Every account serves again."""
        self._until.clear()

    def reset(self, account: str | None) -> tuple[float, bool] | None:
        """When it serves again, in seconds of the loop, and whether it says so; None while it serves."""
        held = self._until.get(account) if account is not None else None
        return held if held is not None and self._loop.time() < held[0] else None

    def hindered(self, account: str, chance: Random) -> Ending:
        """How a turn ends that meets the limit."""
        held = self.reset(account)
        assert held is not None
        resets = self.shown(held[0]) if held[1] else None
        told = f"limit reached, resets at {resets.isoformat()}" if resets is not None else "limit reached"
        by = Hindered(Hindrance.LIMIT, told, LIMIT, resets_at=resets)
        return Ending(chance.choice((0, 1)), None, None, hindered=by)

    def shown(self, moment: float) -> datetime:
        """A moment of the loop as the wall clock of now would show it."""
        return self._clock.now() + timedelta(seconds=moment - self._loop.time())
