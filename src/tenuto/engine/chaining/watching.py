"""Watching phases: each look fetches the base, and says of every phase how it stands there now.

A phase that has not landed is looked for; one that has is held against what came to the base since the last look. A
base that was rewritten is looked through anew. What cannot be told is a sentence, and then nothing has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tenuto.core import phases as rules
from tenuto.model.forge import Look, PullFacts, PullState
from tenuto.model.lifecycle import PhaseState
from tenuto.model.phase import Looked, Phase, Sought
from tenuto.model.worktree import Base
from tenuto.ports import History

LANDED = frozenset({PhaseState.MERGED, PhaseState.REVERTED})


@dataclass(frozen=True)
class Watched:
    """The phases as they stand in this commit of the base."""

    phases: tuple[Phase, ...]
    base: str


@dataclass(frozen=True)
class Watch:
    """What is watched: a base of a repository, and what its host says of a pull request (None: it has no host)."""

    history: History
    repository: str
    base: Base
    said: Callable[[int], Look] | None = None

    async def look(
        self, phases: Sequence[Phase], begun: Mapping[str, str], seen: str | None, now: datetime
    ) -> Watched | str:
        """`begun` says from which commit of the base each unit's work began, `seen` up to where it was looked at."""
        found: dict[str, Phase] = {}
        at: str | None = None
        since: Looked | None = None
        for phase in phases:
            if phase.state in LANDED:
                continue
            told = None if self.said is None else await asyncio.to_thread(self.said, phase.number)
            merged_as = told.merged_as if isinstance(told, PullFacts) and told.state is PullState.MERGED else None
            sought = Sought(phase.number, phase.branch, phase.head, merged_as, begun.get(phase.unit))
            looked = await self.history.look(self.repository, self.base, sought, seen)
            if isinstance(looked, str):
                return looked
            found[phase.unit] = rules.seen(phase, looked, now) if told is None else rules.told(phase, told, looked, now)
            at, since = at or looked.base, since or looked
        if since is None:
            looked = await self.history.look(self.repository, self.base, Sought(0), seen)
            if isinstance(looked, str):
                return looked
            at, since = looked.base, looked
        for phase in phases:
            if phase.state in LANDED:
                after = await self._after(phase, since, now)
                if isinstance(after, str):
                    return after
                found[phase.unit] = after
        return Watched(tuple(found[phase.unit] for phase in phases), at or since.base)

    async def _after(self, phase: Phase, looked: Looked, now: datetime) -> Phase | str:
        if looked.since is not None:
            return rules.later(phase, looked.since, now)
        if phase.landing is None:
            return phase
        came = await self.history.after(self.repository, looked.base, phase.landing.commit)
        if isinstance(came, str):
            return came
        return rules.lost(phase, now) if came is None else rules.later(phase, came, now, anew=True)
