"""What a played agent is to whatever carries its turns: how long it takes, and how it ends."""

from __future__ import annotations

from typing import Protocol

from tenuto.model.command import Command
from tenuto.model.evidence import Ending


class Mind(Protocol):
    """What an agent, or a check, comes to."""

    def lasts(self, command: Command) -> float:
        """How many seconds it takes."""
        ...

    async def ends(self, command: Command) -> Ending | None:
        """How it ends by itself, after it has said what it had to say; None: it is killed from outside."""
        ...
