"""What merging needs from outside the registry: hosts, checkouts, what runs a gate, and the kill switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tenuto.ports import Checkouts, Executor, Forges, History, Worktrees


def on() -> str | None:
    """Nothing outside stops merging."""
    return None


@dataclass(frozen=True)
class Hosts:
    """`switch` says why the environment or a file stops chains that advance themselves; None: neither does."""

    forges: Forges | None = None
    checkouts: Checkouts | None = None
    executors: Mapping[str, Executor] = field(default_factory=dict)
    gate: str = "host"
    switch: Callable[[], str | None] = on
    trees: Worktrees | None = None
    history: History | None = None
