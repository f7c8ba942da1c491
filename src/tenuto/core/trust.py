"""Whether evidence may be believed as it is: what is dated wrongly, told twice, contradicts itself or cannot be read.

Each flaw is a finding of its own, with the rank of the evidence it spoils. A flaw never makes anything more permitted:
the ladder stops at it, unless the evidence was hearsay, which decides nothing anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tenuto.core import outside, signs
from tenuto.model.evidence import CommandFacts, Observation, Rank, Sighting
from tenuto.model.reconciliation import Flawed
from tenuto.model.snapshot import Snapshot
from tenuto.model.tools import Flaw, ToolFacts
from tenuto.model.watched import WatchedFacts


def flaws(snapshot: Snapshot, observations: Sequence[Observation], now: datetime) -> tuple[Flawed, ...]:
    """Every flaw of what was seen now and of what was reported before; each once."""
    found: dict[Flawed, None] = {}
    supporting = [each for each in observations if not isinstance(each.facts, CommandFacts)]
    strong = [sighting for sighting in snapshot.sightings if sighting.rank < Rank.REPORTED]
    newest = signs.newest_of(strong)
    for observation in supporting:
        about = observation.source[: signs.SOURCE], observation.subject[: signs.SUBJECT]
        before, counted = newest.get(about), _counted(strong, about)
        for flaw in (*_dated(observation, before, snapshot, now), *_told(observation, counted)):
            found[flaw] = None
    for flaw in (
        *_twice(supporting),
        *_apart(supporting),
        *_unseen(snapshot, supporting),
        *_reported(snapshot.sightings),
    ):
        found[flaw] = None
    return tuple(found)


def _dated(observation: Observation, before: Sighting | None, snapshot: Snapshot, now: datetime) -> Iterable[Flawed]:
    rank, about = observation.rank, observation.subject
    if observation.seen_at > now + signs.SKEW:
        yield Flawed(about, Flaw.FUTURE, "it was seen at a moment that has not come yet", rank)
    elif outside.stale(observation, snapshot.run.policy, now):
        yield Flawed(about, Flaw.STALE, "it was seen too long ago", rank)
    if isinstance(observation.facts, WatchedFacts):
        moments = (observation.facts.changed_at, observation.facts.heard_at)
        if any(at is not None and at > now + signs.SKEW for at in moments):
            yield Flawed(about, Flaw.FUTURE, "it is said to have moved at a moment that has not come yet", rank)
    # What is known from a moment that has not come yet was seen before the clock went back: it rules nothing out.
    if before is not None and observation.seen_at + signs.SKEW < before.seen_at <= now + signs.SKEW:
        yield Flawed(about, Flaw.ROLLED_BACK, "it was seen before what is known already", rank)


def _counted(strong: Iterable[Sighting], about: tuple[str, str]) -> int | None:
    """How far a session's records were ever seen to go: one look at records that went back makes them no good ones."""
    told = (dict(each.facts).get("sequence") for each in strong if (each.source, each.subject) == about)
    return max((int(count) for count in told if count is not None and count.isdigit()), default=None)


def _told(observation: Observation, known: int | None) -> Iterable[Flawed]:
    """What a session's records say of themselves, and a count of them that went back; what a watched page lacks."""
    if isinstance(observation.facts, WatchedFacts):
        for defect in observation.facts.defects:
            yield Flawed(observation.facts.subject, defect.flaw, defect.why, observation.rank)
        if (why := outside.contradiction(observation.facts)) is not None:
            yield Flawed(observation.facts.subject, Flaw.CONTRADICTORY, why, observation.rank)
    if not isinstance(observation.facts, ToolFacts):
        return
    facts = observation.facts
    for defect in facts.defects:
        yield Flawed(facts.subject, defect.flaw, defect.why, observation.rank)
    if facts.readable and known is not None and facts.sequence < known:
        why = f"its records end at {facts.sequence}, and {known} had been seen"
        yield Flawed(facts.subject, Flaw.ROLLED_BACK, why, observation.rank)


def _twice(observations: Sequence[Observation]) -> Iterable[Flawed]:
    seen: dict[tuple[str, str, str], Observation] = {}
    for observation in observations:
        name = (type(observation.facts).__name__, observation.source, observation.subject)
        other = seen.get(name)
        seen[name] = observation
        if other is not None:
            same = other.facts == observation.facts
            flaw = Flaw.DUPLICATED if same else Flaw.CONTRADICTORY
            why = "it was told twice" if same else "it was told twice, and differently"
            yield Flawed(observation.subject, flaw, why, observation.rank)


def _apart(observations: Sequence[Observation]) -> Iterable[Flawed]:
    """Pages of one address, each the only one that its witness sees, that generate by one and are still by another."""
    told: dict[str, WatchedFacts] = {}
    for observation in observations:
        facts = observation.facts
        if not isinstance(facts, WatchedFacts) or facts.generating is None:
            continue
        page = facts.binding.page
        if page is None or page.window is not None:
            continue
        other = told.setdefault(page.url, facts)
        if other.binding.server != facts.binding.server and other.generating != facts.generating:
            why = f"{other.binding.server} and {facts.binding.server} see it differently"
            yield Flawed(observation.subject, Flaw.CONTRADICTORY, why, observation.rank)


def _unseen(snapshot: Snapshot, observations: Sequence[Observation]) -> Iterable[Flawed]:
    """Sessions that work for the task, and pages that are watched for it, that were not looked at at all."""
    looked = {each.facts.subject for each in observations if isinstance(each.facts, ToolFacts | WatchedFacts)}
    for binding in snapshot.task.tools:
        if snapshot.task.terminal or binding.subject in looked:
            continue
        if binding.page is None:
            yield Flawed(binding.subject, Flaw.MISSING, "nothing here looks at tool servers", Rank.JOURNAL)
        else:
            yield Flawed(binding.subject, Flaw.MISSING, "nothing here watches pages", Rank.OUTSIDE)


def _reported(sightings: Sequence[Sighting]) -> Iterable[Flawed]:
    """Flaws of what somebody reported: shown, and deciding nothing."""
    reported = sorted((each for each in sightings if each.rank == Rank.REPORTED), key=lambda each: each.id)
    newest: dict[tuple[str, str], Sighting] = {}
    for each in reported:
        before = newest.get((each.source, each.subject))
        if each.seen_at > each.made_at + signs.SKEW:
            yield Flawed(each.subject, Flaw.FUTURE, f"{each.source} reported it for a moment to come", Rank.REPORTED)
            continue
        if before is not None and each.seen_at < before.seen_at:
            why = f"{each.source} reported something older after something newer"
            yield Flawed(each.subject, Flaw.ROLLED_BACK, why, Rank.REPORTED)
        if before is not None and each.seen_at == before.seen_at and each.facts != before.facts:
            why = f"{each.source} reported two things for one moment"
            yield Flawed(each.subject, Flaw.CONTRADICTORY, why, Rank.REPORTED)
        if before is None or each.seen_at >= before.seen_at:
            newest[each.source, each.subject] = each


def deciding(findings: Iterable[object]) -> tuple[Flawed, ...]:
    """The flaws that stop the ladder: those of evidence that decides something."""
    return tuple(each for each in findings if isinstance(each, Flawed) and each.rank is not Rank.REPORTED)
