"""Evidence in small named words, whatever it came from: what a judgement of health is made of.

Every source of evidence, strong or weak, is turned into the same few names, so that one table judges programs, tool
servers and web chats alike. Of several words for one name the strongest rank wins, then that something generates, then
the newest; what is dated in the future, or too old for its kind, has no word. Nothing here decides whether anything is
sent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import assert_never

from tenuto.model.evidence import (
    AcceptanceFacts,
    CommandFacts,
    Observation,
    PageFacts,
    Rank,
    Sighting,
    WorkspaceFacts,
    WorkspaceKind,
)
from tenuto.model.ids import ObservationId, TaskId
from tenuto.model.policy import Policy
from tenuto.model.tools import CallState, ClaimState, Flaw, PlanState, SessionState, ToolFacts
from tenuto.model.watched import WatchedFacts

#: A clock may differ from ours by this much before what it dates is taken for the future.
SKEW = timedelta(seconds=5)


class Kind(StrEnum):
    """What may stand behind a name."""

    TRUTH = "truth"
    COUNT = "count"
    MOMENT = "moment"
    MARK = "mark"
    WORD = "word"
    LABEL = "label"


#: The names, what may stand behind each, and the words of those that are words.
NAMES: Mapping[str, Kind] = {
    "shown": Kind.TRUTH,
    "generating": Kind.TRUTH,
    "send_ready": Kind.TRUTH,
    "tool_card": Kind.TRUTH,
    "delivery_error": Kind.TRUTH,
    "retrying": Kind.TRUTH,
    "page_changed_at": Kind.MOMENT,
    "network_at": Kind.MOMENT,
    "session": Kind.WORD,
    "plan": Kind.WORD,
    "claim": Kind.WORD,
    "directory": Kind.WORD,
    "flaw": Kind.WORD,
    "sequence": Kind.MARK,
    "calls": Kind.COUNT,
    "orphans": Kind.COUNT,
    "jobs": Kind.COUNT,
    "active_at": Kind.MOMENT,
    "due_at": Kind.MOMENT,
    "heartbeat_at": Kind.MOMENT,
    "job_updated_at": Kind.MOMENT,
    "plan_moved_at": Kind.MOMENT,
    "state": Kind.LABEL,
    "workers": Kind.COUNT,
    "tracked_jobs": Kind.COUNT,
    "recoveries": Kind.COUNT,
}
#: What a label is made of: another program's own word, which is shown and decides nothing.
LABEL = re.compile(r"[A-Za-z0-9_.: -]{1,60}")
WORDS: Mapping[str, frozenset[str]] = {
    "session": frozenset(SessionState),
    "plan": frozenset(PlanState),
    "claim": frozenset(ClaimState),
    "directory": frozenset(WorkspaceKind),
    "flaw": frozenset(Flaw),
}
#: Words of sessions, the one that speaks most against all being over first.
LIVELIEST: Mapping[str, tuple[str, ...]] = {
    "session": (SessionState.ACTIVE, SessionState.COMPLETED, SessionState.CANCELLED),
    "plan": (PlanState.BLOCKED, PlanState.ACTIVE, PlanState.COMPLETED, PlanState.CANCELLED),
    "claim": (ClaimState.PENDING, ClaimState.EXHAUSTED, ClaimState.EXPIRED, ClaimState.NONE),
}
PAGE = frozenset({"generating", "send_ready", "tool_card", "delivery_error", "page_changed_at"})


@dataclass(frozen=True)
class Sign:
    """One name's value, by whom, how strong and when."""

    name: str
    value: str
    rank: Rank
    source: str
    seen_at: datetime

    @property
    def yes(self) -> bool:
        return self.value == "true"

    @property
    def count(self) -> int:
        return int(self.value)

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.value)


def objection(name: str, value: str) -> str | None:
    """Why this is no word of the vocabulary, in a sentence; None when it is one."""
    kind = NAMES.get(name)
    match kind:
        case None:
            return f"there is no fact '{name[:40]}'; the names are {', '.join(NAMES)}"
        case Kind.TRUTH:
            return None if value in ("true", "false") else f"{name} is true or false"
        case Kind.COUNT | Kind.MARK:
            return (
                None if value.isascii() and value.isdigit() and len(value) <= 9 else f"{name} is a small whole number"
            )
        case Kind.MOMENT:
            return None if _is_moment(value) else f"{name} is an instant with its offset, as 2026-03-01T12:00:00Z"
        case Kind.LABEL:
            return None if LABEL.fullmatch(value) else f"{name} is a word of at most 60 letters, digits and signs"
        case Kind.WORD:
            return None if value in WORDS[name] else f"{name} is one of {', '.join(sorted(WORDS[name]))}"
        case _ as never:
            assert_never(never)


def _is_moment(value: str) -> bool:
    try:
        at = datetime.fromisoformat(value)
        return at.tzinfo is not None and at.astimezone(UTC).year >= 1970
    except (ValueError, OverflowError):
        return False


def said(observation: Observation) -> tuple[tuple[str, str], ...]:
    """An observation's facts as names and words; nothing for what is no evidence of health."""
    match observation.facts:
        case WorkspaceFacts(kind=kind):
            return (("directory", kind.value),)
        case ToolFacts() as facts:
            return _of_tools(facts)
        case PageFacts() as facts:
            return _of_page(facts)
        case WatchedFacts() as facts:
            return _of_watched(facts)
        case CommandFacts(asks=asks, retrying=retrying, heard_at=heard):
            told = () if asks is None else (("retrying", "false" if retrying is None else "true"),)
            return told if heard is None else (*told, ("network_at", heard.isoformat()))
        case AcceptanceFacts():
            return ()
        case _ as never:
            assert_never(never)


def _of_page(facts: PageFacts) -> tuple[tuple[str, str], ...]:
    if not facts.shown or facts.several:
        return ()
    told = [("send_ready", str(facts.state == "ready").lower()), ("tool_card", str(facts.approval is not None).lower())]
    if facts.generating in ("yes", "no"):
        told.insert(0, ("generating", str(facts.generating == "yes").lower()))
    told.append(("delivery_error", str(facts.error == "delivery_timeout" and not facts.stale).lower()))
    moments = {"page_changed_at": facts.changed_at, "network_at": facts.grew_at}
    return (*told, *((name, moment.isoformat()) for name, moment in moments.items() if moment is not None))


def _of_watched(facts: WatchedFacts) -> tuple[tuple[str, str], ...]:
    told = [("flaw", flaw.value) for flaw in sorted({defect.flaw for defect in facts.defects})]
    truths = {"shown": facts.shown, "generating": facts.generating, "send_ready": facts.send_ready}
    told += [(name, str(value).lower()) for name, value in truths.items() if value is not None]
    moments = {"page_changed_at": facts.changed_at, "network_at": facts.heard_at}
    return (*told, *((name, moment.isoformat()) for name, moment in moments.items() if moment is not None))


def _of_tools(facts: ToolFacts) -> tuple[tuple[str, str], ...]:
    flaws = [("flaw", flaw.value) for flaw in sorted({defect.flaw for defect in facts.defects})]
    if facts.state is None:
        return tuple(flaws)
    told = [*flaws, ("session", facts.state.value), ("claim", facts.claim.value), ("sequence", str(facts.sequence))]
    if facts.plan is not None:
        told.append(("plan", facts.plan.state.value))
    counts = {
        "calls": sum(call.state is CallState.LIVE for call in facts.calls),
        "orphans": sum(call.state is CallState.ORPHANED for call in facts.calls),
        "jobs": len(facts.running),
    }
    told += [(name, str(count)) for name, count in counts.items()]
    moments = {
        "active_at": facts.active_at,
        "due_at": facts.due_at,
        "heartbeat_at": max((call.heartbeat_at for call in facts.calls), default=None),
        "job_updated_at": max((job.updated_at for job in facts.jobs if job.updated_at), default=None),
        "plan_moved_at": facts.plan.moved_at if facts.plan else None,
    }
    told += [(name, moment.isoformat()) for name, moment in moments.items() if moment is not None]
    return tuple(told)


def of(observation: Observation) -> tuple[Sign, ...]:
    """The signs of an observation made just now."""
    return tuple(
        Sign(name, value, _rank(name, observation.rank), observation.source, observation.seen_at)
        for name, value in said(observation)
    )


def kept(sighting: Sighting) -> tuple[Sign, ...]:
    """The signs of a sighting in the registry."""
    return tuple(
        Sign(name, value, _rank(name, Rank(sighting.rank)), sighting.source, sighting.seen_at)
        for name, value in sighting.facts
        if objection(name, value) is None
    )


def _rank(name: str, told: Rank) -> Rank:
    """How strong a sign is: that something passes says little, whoever saw it."""
    return max(told, Rank.NETWORK) if name == "network_at" else told


def gathered(
    sightings: Iterable[Sighting], observations: Iterable[Observation], policy: Policy, now: datetime
) -> Mapping[str, Sign]:
    """One sign per name: strongest first, then that something generates, then newest.

    A page that is still says nothing of another that generates, nor a session that is over of another that is active;
    which was looked at first makes no difference. `sightings` are the newest of each source and subject
    that were not seen again just now.
    """
    found: dict[str, Sign] = {}
    order: dict[str, tuple[Rank, bool, float, float, str, str]] = {}
    looks = tuple(observations)
    sessions = [look for look in looks if isinstance(look.facts, ToolFacts)]
    looked_at = max((look.seen_at for look in sessions if look.seen_at <= now + SKEW), default=now)
    told = [(sign, looked_at if look in sessions else sign.seen_at) for look in looks for sign in of(look)]
    told += [(sign, sign.seen_at) for sighting in sightings for sign in kept(sighting)]
    for sign, at in told:
        before = _before(sign, at)
        if _counts(sign, policy, now) and (sign.name not in order or before < order[sign.name]):
            found[sign.name], order[sign.name] = sign, before
    return found


def _before(sign: Sign, at: datetime) -> tuple[Rank, bool, float, float, str, str]:
    """What is smaller goes before. Of sessions looked at in turn none is newer; the liveliest has the word."""
    generates = sign.name == "generating" and sign.yes
    return sign.rank, not generates, -at.timestamp(), -_lively(sign), sign.source, sign.value


def _lively(sign: Sign) -> float:
    """How much a sign says that something is still going on, among signs of its name."""
    match NAMES[sign.name]:
        case Kind.COUNT | Kind.MARK:
            return sign.count
        case Kind.MOMENT:
            return sign.moment.timestamp() * (-1 if sign.name == "due_at" else 1)
        case Kind.WORD if sign.name in LIVELIEST:
            return -LIVELIEST[sign.name].index(sign.value)
        case _:
            return 0


def _counts(sign: Sign, policy: Policy, now: datetime) -> bool:
    """Whether a sign is neither of the future nor too old for what it speaks of.

    Whether a page is shown is kept, so that what was seen of it before is not its newest word, and judges nothing.
    """
    if sign.name == "shown":
        return False
    if sign.seen_at > now + SKEW or (
        NAMES[sign.name] is Kind.MOMENT and sign.name != "due_at" and sign.moment > now + SKEW
    ):
        return False
    return now - sign.seen_at <= life(sign, policy)


def life(sign: Sign, policy: Policy) -> timedelta:
    """How long a sign tells something: the page's and the network's soon nothing any more, durable facts longer."""
    if sign.name == "network_at":
        return policy.suspect_network
    if sign.name in PAGE:
        return policy.suspect_page
    return policy.suspect_hard if sign.rank is Rank.REPORTED else timedelta(days=36500)


def digest_of(facts: Iterable[tuple[str, str]]) -> str:
    """A sha256 over the facts, the same in whatever order they were said."""
    return hashlib.sha256(json.dumps(sorted(facts)).encode()).hexdigest()


def sighting(
    task_id: TaskId,
    observation: Observation,
    identifier: ObservationId,
    now: datetime,
) -> Sighting:
    """An observation as it is kept."""
    facts = said(observation)
    return Sighting(
        id=identifier,
        task_id=task_id,
        subject=observation.subject[:SUBJECT],
        source=observation.source[:SOURCE],
        rank=int(observation.rank),
        seen_at=observation.seen_at,
        made_at=now,
        digest=digest_of(edges(facts)),
        facts=facts,
    )


#: The most characters of a subject's and a source's name.
SUBJECT = 500
SOURCE = 60


def edges(facts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The facts whose change is worth a row: what is there and how it stands, not when it last stirred."""
    return tuple((name, value) for name, value in facts if NAMES.get(name) not in (Kind.MOMENT, Kind.MARK))


def news(known: Iterable[Sighting], observations: Iterable[Observation]) -> tuple[Observation, ...]:
    """Those observations that say something else than the newest sighting of the same source and subject before them.

    That something stirred is no news by itself. What is known from later on is left out: where the clock went back it
    would make the same look news again and again.
    """
    kept = tuple(known)
    found = []
    for observation in observations:
        facts = edges(said(observation))
        source, subject, at = observation.source[:SOURCE], observation.subject[:SUBJECT], observation.seen_at
        before = (each for each in kept if each.source == source and each.subject == subject and each.seen_at <= at)
        last = max(before, key=lambda one: (one.seen_at, one.id), default=None)
        if facts and (last is None or last.digest != digest_of(facts)):
            found.append(observation)
    return tuple(found)


def newest_of(known: Iterable[Sighting]) -> dict[tuple[str, str], Sighting]:
    """The newest sighting of each source and subject, by the moment it was seen and then by when it came."""
    found: dict[tuple[str, str], Sighting] = {}
    for each in sorted(known, key=lambda one: (one.seen_at, one.id)):
        found[each.source, each.subject] = each
    return found
