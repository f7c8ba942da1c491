"""What merging needs of this machine: the hosts of repositories, checkouts of our own, and the kill switch outside.

The switch is read when it is asked for: a file in the state directory stops merging at once, and the environment that
the supervisor was started with for as long as it runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from tenuto.config import Settings
from tenuto.engine.chaining.hosts import Hosts
from tenuto.model.faults import Mistake
from tenuto.model.forge import ForgePlace
from tenuto.ports import Clock, Executor, Forge
from tenuto.sources.finding import GitHubForges, account
from tenuto.transports.forge.bare import BareForge
from tenuto.transports.forge.checkouts import Checkouts
from tenuto.transports.forge.git import ref_of, remote
from tenuto.transports.workspace.hand import Hand
from tenuto.transports.workspace.history import GitHistory
from tenuto.transports.workspace.trees import GitWorktrees


@dataclass(frozen=True)
class EveryForge:
    """Implements `ports.Forges`: GitHub, and remotes without a host."""

    settings: Settings
    clock: Clock

    def open(self, place: ForgePlace) -> Forge:
        """The host at a place; Mistake for a place that cannot be."""
        match place.kind:
            case "github":
                return GitHubForges(account(self.settings.github)).open(place)
            case "git":
                location = remote(place.location)
                if place.base is not None:
                    ref_of(place.base)
                name = hashlib.sha256(location.encode()).hexdigest()[:32]
                return BareForge(location, self.settings.forges / f"{name}.git", self.clock.now, place.base)
            case _:
                raise Mistake("a host of repositories is github or git", field="forge")


def hosts(settings: Settings, clock: Clock, executors: Mapping[str, Executor]) -> Hosts:
    """Everything that chains ask of this machine beside their sources."""
    hand = Hand()
    history = GitHistory(hand)
    return Hosts(
        EveryForge(settings, clock),
        Checkouts(settings.checkouts),
        executors,
        switch=lambda: switch(settings),
        trees=GitWorktrees(settings.worktrees, hand, history),
        history=history,
    )


def switch(settings: Settings) -> str | None:
    """Why the environment or a file stops chains that advance themselves; None: neither does."""
    if settings.self_advancing_off:
        return "TENUTO_SELF_ADVANCING_DISABLED stops the chains that advance themselves"
    if settings.self_advancing_stop.exists():
        return f"the file {settings.self_advancing_stop.name} stops the chains that advance themselves"
    return None
