"""Chains: an ordered set of units, worked one task at a time, and the envelope each task is handed.

A unit is what its source says it is; a link is one unit given to one task; a chain is the rule they follow. An envelope
of another version, or with a field that cannot be, is refused by the field's name: nothing of it is dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from tenuto.model.faults import Mistake
from tenuto.model.ids import ChainId, CommandId, LinkId, RunId, TaskId, TextId
from tenuto.model.lifecycle import ChainState
from tenuto.model.work import Agent
from tenuto.model.worktree import Base

VERSION = 1
#: The fewest and the most attempts a unit may be given.
ATTEMPT_CAPS = (1, 20)
GOAL_BYTES = 8192
NAME_BYTES = 500


class UnitState(StrEnum):
    """How a unit stands; positive evidence counts in this order."""

    DONE = "done"
    IN_FLIGHT = "in_flight"
    BLOCKED = "blocked"
    ELIGIBLE = "eligible"


class Standing(StrEnum):
    """What a source comes to as a whole. IN_FLIGHT: all that is left is being worked on; that is not COMPLETE."""

    ELIGIBLE = "eligible"
    BLOCKED = "blocked"
    IN_FLIGHT = "in_flight"
    COMPLETE = "complete"


class Outcome(StrEnum):
    """What became of a unit in one task. FAILED: it may be tried again. GIVEN_UP: a person stopped its task.

    TAKEN: somebody else had it before its task began.
    """

    DONE = "done"
    BLOCKED = "blocked"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    TAKEN = "taken"


@dataclass(frozen=True)
class Blocker:
    """Why a unit cannot be done now: who follows it, what it hangs on, and what lets it go on."""

    tracked_by: str
    blocked_on: str
    resume_when: str


@dataclass(frozen=True)
class Unit:
    """One unit as its source tells it. `recorded_by` is the marker of the command that last recorded it,
    `claimed_by` the name of whoever has it now, where the source says so.
    """

    id: str
    state: UnitState
    title: str = ""
    evidence: str | None = None
    blocker: Blocker | None = None
    attempts: int = 0
    recorded_by: str | None = None
    claimed_by: str | None = None


@dataclass(frozen=True)
class Board:
    """All units of a source in their order, and its revision (None: it has none)."""

    units: tuple[Unit, ...]
    revision: str | None

    @cached_property
    def done(self) -> frozenset[str]:
        """The names of units that are done."""
        return frozenset(unit.id for unit in self.units if unit.state is UnitState.DONE)

    def unit(self, name: str) -> Unit | None:
        return next((unit for unit in self.units if unit.id == name), None)


@dataclass(frozen=True)
class Record:
    """What is to be written about a unit at its source, by the command of this `marker`: done twice it is done once.

    `claim` is the name under which its task has the unit; GIVEN_UP only takes that back.
    """

    unit: str
    outcome: Outcome
    evidence: str | None
    blocker: Blocker | None
    attempts: int
    marker: str
    claim: str | None = None


@dataclass(frozen=True)
class Hold:
    """That a unit is worked on, to be written at its source under the name `by`: done twice it is done once.

    `over` are names whose hold is known to be over, so that it may be taken from them.
    """

    unit: str
    by: str
    over: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Recorded:
    """It stands at the source."""

    revision: str | None


@dataclass(frozen=True)
class Foreign:
    """Somebody else has settled the unit, or taken it away; nothing was written."""

    why: str
    unit: Unit | None


@dataclass(frozen=True)
class OutOfOrder:
    """The source cannot be read or written now; nothing is known to have changed."""

    why: str


Answer = Recorded | Foreign | OutOfOrder


@dataclass(frozen=True)
class Cursor:
    """Where a chain stands in its source. `processed` and `attempt_cap` are counts; `remaining_budget` None: no cap."""

    repo: str
    selector: str
    next_unit: str | None
    remaining_units: tuple[str, ...]
    source_revision: str | None
    attempt_cap: int
    processed: int
    remaining_budget: int | None


@dataclass(frozen=True)
class Parent:
    """The task that hands over, and where its work can be looked up."""

    task: str | None = None
    pr_url: str | None = None
    issue: str | None = None


@dataclass(frozen=True)
class Envelope:
    """What one task hands to the next. `authorization` never changes by itself."""

    goal: str
    cursor: Cursor
    parent: Parent
    authorization: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class SourcePlace:
    """Which source: its kind, where it is (a path, the name of a configured database, a repository), and a query.

    `merges`: the chain merges what is done, so that an open pull request is not the end of a unit. `own` begins the
    names of the chain's own branches, which are no evidence against its units.
    """

    kind: str
    location: str
    query: str | None = None
    merges: bool = False
    own: str | None = None


@dataclass(frozen=True)
class Caps:
    """What stops a chain mechanically: units, tasks, time since its start, cost in millionths. None: no such cap."""

    units: int | None = None
    tasks: int | None = None
    life: timedelta | None = None
    cost: int | None = None

    @property
    def none(self) -> bool:
        return (self.units, self.tasks, self.life, self.cost) == (None, None, None, None)


@dataclass(frozen=True)
class Chain:
    """The rule of one chain, and how far it has come.

    `position` is the number of its last link, `processed` how many units were recorded as done. `look_at` is when it is
    to be looked at again (None: when somebody asks), `reason` why it waits or how it ended. `base`: each task has a
    fresh worktree of the repository at `cwd`, begun there; `phases`: a unit counts when its pull request is part of
    that base. `asks` is what only a person can say, `swept` the last sweep of its units, `seen` the commit of the base
    up to which its phases were looked at.
    """

    id: ChainId
    revision: int
    run_id: RunId
    state: ChainState
    goal: str
    repo: str
    selector: str
    source: SourcePlace
    authorization: tuple[tuple[str, bool], ...]
    caps: Caps
    attempt_cap: int
    cwd: str
    created_at: datetime
    agent: Agent | None = None
    playbook: str | None = None
    position: int = 0
    processed: int = 0
    look_at: datetime | None = None
    reason: str | None = None
    ended_at: datetime | None = None
    base: Base | None = None
    phases: bool = False
    asks: str | None = None
    swept: TextId | None = None
    seen: str | None = None


@dataclass(frozen=True)
class Link:
    """One unit given to one task: permanent, one per position, and one successor per predecessor.

    `place` is the source's own name, so that two chains cannot have one unit at once. `handed_at` is when its task
    handed over; `recorded_at` when what became of the unit was proven to stand at the source.
    """

    id: LinkId
    revision: int
    chain_id: ChainId
    position: int
    predecessor: TaskId | None
    task_id: TaskId
    unit: str
    place: str
    key: str
    attempt: int
    made_at: datetime
    outcome: Outcome | None = None
    evidence: str | None = None
    blocker: Blocker | None = None
    command_id: CommandId | None = None
    handed_at: datetime | None = None
    recorded_at: datetime | None = None


# -- reading an envelope


@dataclass
class _Reading:
    """One object of an envelope, read by name; what is left over in the end is a mistake."""

    where: str
    left: dict[str, object]
    known: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, where: str, value: object) -> _Reading:
        if not isinstance(value, Mapping):
            raise Mistake(f"{where} is an object", field=where)
        return cls(where, {str(name): each for name, each in value.items()})

    def at(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where != "envelope" else name

    def take(self, name: str, *, needed: bool = True) -> object:
        self.known.add(name)
        if name not in self.left:
            if needed:
                raise Mistake(f"{self.at(name)} is missing", field=self.at(name))
            return None
        return self.left[name]

    def text(self, name: str, most: int = NAME_BYTES) -> str:
        return said(self.take(name), self.at(name), most)

    def perhaps(self, name: str) -> str | None:
        value = self.take(name, needed=False)
        return None if value is None else said(value, self.at(name))

    def count(self, name: str, least: int, most: int) -> int:
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Mistake(f"{self.at(name)} is a whole number from {least} to {most}", field=self.at(name))
        return value

    def end(self) -> None:
        for name in self.left:
            if name not in self.known:
                raise Mistake(f"{self.at(name[:64])} is not known", field=self.at(name[:64]))


MANY = 2**53


def said(value: object, where: str, most: int = NAME_BYTES) -> str:
    """A text that is not blank, not too long, and holds no NUL; Mistake otherwise."""
    if not isinstance(value, str) or not value.strip():
        raise Mistake(f"{where} is a text that is not blank", field=where)
    if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Mistake(f"{where} is no valid text", field=where)
    if len(value.encode()) > most:
        raise Mistake(f"{where} has at most {most} bytes", field=where)
    return value


def permits(value: object) -> tuple[tuple[str, bool], ...]:
    """An authorization from names and booleans, in the order of the names; Mistake for anything else."""
    if not isinstance(value, Mapping):
        raise Mistake("authorization is an object of names and booleans", field="authorization")
    for name, allowed in value.items():
        said(name, "authorization", 64)
        if not isinstance(allowed, bool):
            raise Mistake(f"authorization.{name} is true or false", field=f"authorization.{name}")
    return tuple(sorted(value.items()))


def envelope_of(data: object) -> Envelope:
    """The envelope that a JSON document holds; Mistake names the field that cannot be."""
    whole = _Reading.of("envelope", data)
    version = whole.take("version")
    if isinstance(version, bool) or version != VERSION:
        raise Mistake(f"version {version!r:.40} of an envelope is not known; this is {VERSION}", field="version")
    goal = whole.text("goal", GOAL_BYTES)
    inner = _Reading.of("cursor", whole.take("cursor"))
    units = inner.take("remaining_units")
    if not isinstance(units, (list, tuple)):
        raise Mistake("cursor.remaining_units is a list", field="cursor.remaining_units")
    budget = inner.take("remaining_budget", needed=False)
    cursor = Cursor(
        repo=canonical_repo(inner.text("repo"), "cursor.repo"),
        selector=inner.text("selector"),
        next_unit=inner.perhaps("next_unit"),
        remaining_units=tuple(said(unit, "cursor.remaining_units") for unit in units),
        source_revision=inner.perhaps("source_revision"),
        attempt_cap=inner.count("attempt_cap", *ATTEMPT_CAPS),
        processed=inner.count("processed", 0, MANY),
        remaining_budget=None if budget is None else inner.count("remaining_budget", 0, MANY),
    )
    inner.end()
    above = _Reading.of("parent", whole.take("parent"))
    parent = Parent(above.perhaps("task"), above.perhaps("pr_url"), above.perhaps("issue"))
    above.end()
    authorization = permits(whole.take("authorization"))
    whole.end()
    return Envelope(goal, cursor, parent, authorization)


def document_of(envelope: Envelope) -> dict[str, object]:
    """The envelope as a JSON document; `envelope_of` gives the same envelope back."""
    at, parent = envelope.cursor, envelope.parent
    return {
        "version": VERSION,
        "goal": envelope.goal,
        "cursor": {
            "repo": at.repo,
            "selector": at.selector,
            "next_unit": at.next_unit,
            "remaining_units": list(at.remaining_units),
            "source_revision": at.source_revision,
            "attempt_cap": at.attempt_cap,
            "processed": at.processed,
            "remaining_budget": at.remaining_budget,
        },
        "parent": {"task": parent.task, "pr_url": parent.pr_url, "issue": parent.issue},
        "authorization": dict(envelope.authorization),
    }


_URL = re.compile(r"^(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+)$")
_SCP = re.compile(r"^(?:[^@/:]+@)(?P<host>[^/:]+):(?P<path>[^/].*)$")
_HOSTS_WITHOUT_CASE = frozenset({"github.com"})


def canonical_repo(given: str, where: str = "repo") -> str:
    """`host/owner/name` of a repository's URL or name, or `localhost/PATH` of one on this disk; Mistake otherwise."""
    text = said(given, where).strip()
    if text.startswith("file:///"):
        text = text.removeprefix("file://")
    if text.startswith("/"):
        return f"localhost{text.rstrip('/') or '/'}"
    found = _URL.match(text) or _SCP.match(text)
    if found:
        host, path = found["host"].lower(), found["path"]
    else:
        host, _, path = text.partition("/")
        host = host.lower()
        if host == "localhost":
            return f"localhost/{path.strip('/')}"
    parts = path.strip("/").removesuffix(".git").split("/")
    if "." not in host or len(parts) < 2 or any(not part or part in (".", "..") for part in parts):
        raise Mistake(f"{where} is a repository, as host/owner/name", field=where)
    name = "/".join(parts)
    return f"{host}/{name.lower() if host in _HOSTS_WITHOUT_CASE else name}"
