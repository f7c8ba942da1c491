"""How long what is seen of pages may be acted on, and how still a page that is watched must be before a send.

Whoever looks needs time, and a page changes meanwhile: evidence of one is believed for a short while only, and one that
moved or heard something just now is no quiet page, whatever it says of itself. Nothing here permits anything: it says
until when an act holds back, and until when one that was decided may be written down.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from tenuto.core import signs
from tenuto.model.evidence import Observation, PageFacts
from tenuto.model.policy import Policy
from tenuto.model.tools import Flaw
from tenuto.model.watched import WatchedFacts


def believed_for(observation: Observation, policy: Policy) -> timedelta:
    """How long an observation may be acted on: that of a page shortly, and one that tells of traffic as that does."""
    match observation.facts:
        case WatchedFacts(requests=None, heard_at=None):
            return min(policy.page_fresh, policy.reconcile_age)
        case WatchedFacts():
            return min(policy.page_fresh, policy.network_fresh, policy.reconcile_age)
        case PageFacts(shown=shown) if shown is not None:
            return min(policy.page_fresh, policy.reconcile_age)
        case _:
            return policy.reconcile_age


def stale(observation: Observation, policy: Policy, now: datetime) -> bool:
    """Whether an observation was made too long ago to be acted on."""
    return now - observation.seen_at > believed_for(observation, policy)


def good_until(
    observations: Iterable[Observation], passed: Iterable[tuple[str, Flaw]], policy: Policy
) -> datetime | None:
    """Until when a send may be written down on what was seen of pages that are watched; None: nothing bounds it.

    What was too old already and passed by a person's word, by its subject and flaw, bounds nothing.
    """
    known = set(passed)
    moments = [
        observation.seen_at + believed_for(observation, policy)
        for observation in observations
        if isinstance(observation.facts, WatchedFacts) and (observation.subject, Flaw.STALE) not in known
    ]
    return min(moments, default=None)


def unquiet(facts: WatchedFacts, policy: Policy, now: datetime) -> tuple[str, datetime] | None:
    """What moved just now of a page that is shown, and when it has been still for long enough; None for a quiet one."""
    if not facts.shown:
        return None
    moved = (
        ("changed", facts.changed_at, policy.page_quiet),
        ("was still told something", facts.heard_at, policy.network_quiet),
    )
    found = [(what, at + quiet) for what, at, quiet in moved if at is not None and at - signs.SKEW <= now < at + quiet]
    return max(found, key=lambda one: one[1], default=None)


def contradiction(facts: WatchedFacts) -> str | None:
    """How what one look tells of a page cannot all be true; None where it can."""
    if facts.generating and facts.send_ready:
        return "it generates, and could send at the same moment"
    if not facts.shown and (facts.generating is not None or facts.send_ready is not None):
        return "it tells of a page that it does not see"
    return None
