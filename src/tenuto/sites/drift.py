"""Whether a site still looks as its profile says: which candidate matched, and what was not found.

A critical role that only a late candidate finds, or none does, is drift. It is told in one sentence for a site, the
same for as long as it stands, so that a person is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CRITICAL = ("composer", "send", "stop", "user_turn", "assistant_turn", "finished")
"""Roles without which no turn can be sent and seen to its end."""

LATE = 4
"""The rank from which a match of a critical role is drift: a class or a label, where an id or a role was known."""


@dataclass(frozen=True)
class Drift:
    """One role that is not found as it was: `candidate` is which one matched, None for none; `css` is how it looks."""

    role: str
    candidate: int | None
    rank: int | None = None
    css: str | None = None

    def __str__(self) -> str:
        if self.candidate is None:
            return f"{self.role} is not found, or not surely"
        return f"{self.role} is found by candidate {self.candidate + 1} alone (rank {self.rank})"


def drifted(profile: Mapping[str, Any], found: Mapping[str, int], missing: Sequence[str]) -> tuple[Drift, ...]:
    """What is not as the compiled profile says. `found` and `missing` are a page's facts of those names."""
    roles = profile["roles"]
    told = [Drift(role, None) for role in dict.fromkeys(missing) if role in CRITICAL]
    for role in CRITICAL:
        at = found.get(role)
        candidates = roles.get(role, [])
        if at is None or role in missing or not 0 <= at < len(candidates):
            continue
        candidate = candidates[at]
        if candidate["rank"] >= LATE:
            told.append(Drift(role, at, candidate["rank"], candidate["css"]))
    return tuple(told)


def sentence(profile: Mapping[str, Any], drifts: Sequence[Drift]) -> str | None:
    """What a person is told of it, None where there is nothing to tell."""
    if not drifts:
        return None
    said = "; ".join(str(drift) for drift in drifts)
    name, version = profile["id"], profile["version"]
    return f"pages of {name} do not look as profile {version} says: {said}. tenuto site check URL looks again"
