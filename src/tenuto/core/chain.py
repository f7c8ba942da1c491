"""Chains: which unit comes next, what its task is handed, and when a chain has to stop.

Everything is derived from what the source and the registry say now; a pointer somebody carried along is only a wish.
What is authorised is copied and never changed, counters never fall, and neither a blocked chain nor one whose units are
all being worked on is complete. Nothing here reads a source, a clock or a row.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tenuto.model.chain import (
    VERSION,
    Blocker,
    Board,
    Chain,
    Cursor,
    Envelope,
    Outcome,
    Parent,
    Standing,
    Unit,
    UnitState,
    said,
)
from tenuto.model.faults import Mistake

#: How many of the units that are left are named in a prompt.
NAMED = 20
#: How many are carried in an envelope that is made here; the rest is counted.
CARRIED = 1000
GOAL_TOLD = 8192
OPENS, CLOSES = "<!-- tenuto:blocked", "-->"
_FIELDS = ("tracked-by", "blocked-on", "resume-when")


class Checks(StrEnum):
    """What the unit's own checks say, where its task was told to run some."""

    GREEN = "green"
    RED = "red"
    NONE = "none"


@dataclass(frozen=True)
class Resolution:
    """What comes next. `healed` is the pointer that was stale; `notes` are sentences about what was put right."""

    standing: Standing
    unit: str | None
    because: str
    remaining: tuple[str, ...]
    healed: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotAdvanced:
    """Why nothing was handed over, and what would change that."""

    why: str
    change: str


def resolve(
    board: Board,
    pointer: str | None,
    claimed: frozenset[str],
    tried: Mapping[str, int],
    attempt_cap: int,
    *,
    parent_missing: str | None = None,
) -> Resolution:
    """Derive the state again from what is durable; a stale pointer is healed, and a missing parent is only told."""
    notes: list[str] = []
    if parent_missing is not None:
        notes.append(f"the parent {parent_missing} is not known here; that stops nothing")
    done = board.done
    states = [
        (unit.id, _of(unit, done, claimed, tried.get(unit.id, 0), attempt_cap))
        for unit in board.units
        if unit.state is not UnitState.DONE
    ]
    left = tuple([name for name, _ in states])
    eligible = next((name for name, state in states if state is UnitState.ELIGIBLE), None)
    if eligible is not None:
        was = None if pointer is None else _stands(pointer, done, states)
        if pointer is None or was is UnitState.ELIGIBLE:
            chosen = pointer or eligible
            return Resolution(Standing.ELIGIBLE, chosen, f"unit {chosen} can be begun", left, notes=tuple(notes))
        notes.append(
            f"the pointer {pointer} is stale ({'not in the source' if was is None else was}); "
            f"the first eligible unit is {eligible}"
        )
        return Resolution(Standing.ELIGIBLE, eligible, f"unit {eligible} can be begun", left, pointer, tuple(notes))
    if not left:
        return Resolution(Standing.COMPLETE, None, "every unit is done", (), notes=tuple(notes))
    blocked = [name for name, state in states if state is UnitState.BLOCKED]
    if blocked:
        why = f"{len(blocked)} of {len(left)} units that are left are blocked, the first is {blocked[0]}"
        return Resolution(Standing.BLOCKED, None, why, left, notes=tuple(notes))
    why = f"all {len(left)} units that are left are being worked on; that is not complete"
    return Resolution(Standing.IN_FLIGHT, None, why, left, notes=tuple(notes))


def _stands(name: str, done: frozenset[str], states: Sequence[tuple[str, UnitState]]) -> UnitState | None:
    """How a unit stands among those that are done and those that are left; None: it is not in the source."""
    if name in done:
        return UnitState.DONE
    return next((state for other, state in states if other == name), None)


def _of(unit: Unit, done: frozenset[str], claimed: frozenset[str], tried: int, attempt_cap: int) -> UnitState:
    """How a unit stands by positive evidence: done before in flight before blocked before eligible.

    A blocker that names a unit of the same source is cleared when that unit is done.
    """
    state = unit.state
    if state is UnitState.DONE:
        return UnitState.DONE
    if state is UnitState.IN_FLIGHT or unit.id in claimed:
        return UnitState.IN_FLIGHT
    if tried >= attempt_cap or unit.attempts >= attempt_cap:
        return UnitState.BLOCKED
    if state is UnitState.BLOCKED:
        on = unit.blocker.blocked_on.strip().removeprefix("unit:").strip() if unit.blocker is not None else unit.id
        return UnitState.ELIGIBLE if on != unit.id and on in done else UnitState.BLOCKED
    return UnitState.ELIGIBLE


def first(chain: Chain, board: Board, found: Resolution) -> Envelope:
    """The envelope of a chain as it stands, for the unit that was found."""
    cursor = Cursor(
        repo=chain.repo,
        selector=chain.selector,
        next_unit=found.unit,
        remaining_units=found.remaining[:CARRIED],
        source_revision=board.revision,
        attempt_cap=chain.attempt_cap,
        processed=chain.processed,
        remaining_budget=None if chain.caps.units is None else max(chain.caps.units - chain.processed, 0),
    )
    return Envelope(chain.goal, cursor, Parent(), chain.authorization)


def advance(
    before: Envelope, found: Resolution, revision: str | None, outcome: Outcome, parent: Parent
) -> Envelope | NotAdvanced:
    """The successor's envelope: authorization and caps word for word, counters that never fall, the parent carried."""
    if found.standing is not Standing.ELIGIBLE or found.unit is None:
        return NotAdvanced(f"there is nothing to hand over to: {found.because}", "a unit that can be begun")
    at = before.cursor
    done = int(outcome is Outcome.DONE)
    budget = None if at.remaining_budget is None else max(at.remaining_budget - done, 0)
    cursor = replace(
        at,
        next_unit=found.unit,
        remaining_units=found.remaining[:CARRIED],
        source_revision=revision,
        processed=at.processed + done,
        remaining_budget=budget,
    )
    carried = Parent(parent.task or before.parent.task, parent.pr_url, parent.issue or before.parent.issue)
    return replace(before, cursor=cursor, parent=carried)


def may_hand_off(outcome: Outcome, evidence: str | None, blocker: Blocker | None, checks: Checks) -> NotAdvanced | None:
    """Why a unit may not be handed off; None: it is done with evidence, or blocked with a marker."""
    if outcome is Outcome.BLOCKED:
        if blocker is None:
            return NotAdvanced("a blocked unit is handed off with its blocker", "say who, what and until when")
        return None
    if outcome is not Outcome.DONE:
        return NotAdvanced("a hand-off needs the unit done or blocked", "finish it, or record what blocks it")
    if checks is Checks.RED:
        return NotAdvanced("the checks are red and no blocker is recorded", "make them green, or record the blocker")
    if evidence is None or not evidence.strip():
        return NotAdvanced("a unit is done by evidence", "name a reference that somebody else can look up")
    return None


def cursor_key(cursor: Cursor, nonce: str | None = None) -> str:
    """The sha256 (hex) of where a cursor stands: the same for the same place, and for no other.

    A nonce is for sources without revisions only; Mistake where there is one.
    """
    if nonce is not None and cursor.source_revision is not None:
        raise Mistake("a nonce is for sources without revisions, and is no progress", field="nonce")
    told = [VERSION, cursor.repo, cursor.selector, cursor.next_unit, cursor.source_revision, nonce]
    return hashlib.sha256(json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def capped(chain: Chain, cost: int, now: datetime) -> str | None:
    """The cap of a chain that is reached, in words; None while it may begin another unit."""
    caps = chain.caps
    if caps.units is not None and chain.processed >= caps.units:
        return f"its cap of {caps.units} units is reached"
    if caps.tasks is not None and chain.position >= caps.tasks:
        return f"its cap of {caps.tasks} tasks is reached"
    if caps.life is not None and now - chain.created_at >= caps.life:
        return f"its cap of {caps.life} is reached"
    if caps.cost is not None and cost >= caps.cost:
        return f"its cap of {caps.cost / 1_000_000:g} in cost is reached"
    return None


# -- texts


def render(envelope: Envelope, attempt: int = 1, title: str = "") -> str:
    """The prompt of one unit: bounded, one unit only, rules referred to and not repeated."""
    at, parent = envelope.cursor, envelope.parent
    unit = at.next_unit or ""
    others = [name for name in at.remaining_units if name != unit]
    named = ", ".join(others[:NAMED]) or "none"
    more = f" +{len(others) - NAMED} more" if len(others) > NAMED else ""
    allowed = ", ".join(f"{name}={'yes' if yes else 'no'}" for name, yes in envelope.authorization)
    above = ", ".join(
        f"{name} {value}"
        for name, value in (("task", parent.task), ("pull request", parent.pr_url), ("issue", parent.issue))
        if value is not None
    )
    budget = "" if at.remaining_budget is None else f", {at.remaining_budget} left to the cap"
    lines = [
        f"[tenuto:envelope v{VERSION}]",
        "",
        "Goal:",
        envelope.goal.strip(),
        "",
        f"Your unit, and only this one: {unit}" + (f" ({title})" if title else ""),
        f"Attempt {attempt} of {at.attempt_cap} for this unit.",
        f"Repository: {at.repo}",
        f"Selector: {at.selector}",
        f"Source revision: {at.source_revision or 'none'}",
        f"Done so far: {at.processed}{budget}",
        f"Left after it, not yours: {named}{more}",
        f"Parent: {above or 'none'}",
        f"Authorised: {allowed or 'nothing beyond the unit itself'}",
        "",
        "Revalidate the cursor against durable state first: chain_next tells it. When the unit is done with evidence,",
        "or blocked with its marker, call chain_handoff once, and complete nothing else. The rules are kept by the",
        "server; the skill self-continuation-task says how.",
    ]
    return "\n".join(lines) + "\n"


def blocker_text(blocker: Blocker) -> str:
    """The marker of a blocker, for a comment, a label's text or a queue's row."""
    values = (blocker.tracked_by, blocker.blocked_on, blocker.resume_when)
    lines = [f"{name}: {_one_line(value)}" for name, value in zip(_FIELDS, values, strict=True)]
    return "\n".join([OPENS, *lines, CLOSES])


def _one_line(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace(CLOSES, "--\\u003e")


_MARK = re.compile(re.escape(OPENS) + r"\n(.*?)\n" + re.escape(CLOSES), re.DOTALL)


def blocker_in(text: str) -> Blocker | None:
    """The last whole marker in a text; None where there is none."""
    for found in reversed(_MARK.findall(text)):
        values: dict[str, str] = {}
        for line in found.split("\n"):
            name, colon, value = line.partition(": ")
            try:
                told = json.loads(value) if colon else None
            except ValueError:
                told = None
            if name in _FIELDS and isinstance(told, str) and name not in values:
                values[name] = told
        if len(values) == len(_FIELDS):
            return Blocker(*(values[name] for name in _FIELDS))
    return None


def blocker_of(tracked_by: object, blocked_on: object, resume_when: object) -> Blocker:
    """A blocker from what somebody says; Mistake names the part that is missing."""
    return Blocker(said(tracked_by, "tracked_by"), said(blocked_on, "blocked_on"), said(resume_when, "resume_when"))


# -- the sweep


class Swept(StrEnum):
    """What a sweep finds of a unit."""

    DONE = "done"
    IN_FLIGHT = "in_flight"
    BLOCKED = "blocked"
    STALE = "stale_open_but_shipped"
    PENDING = "pending"


@dataclass(frozen=True)
class Finding:
    """One unit with the evidence that decided."""

    unit: str
    what: Swept
    evidence: str


def sweep(board: Board, claimed: Mapping[str, str], proven: Mapping[str, str], attempt_cap: int) -> tuple[Finding, ...]:
    """Every unit as it stands. `claimed` says which task has a unit, `proven` what the registry knows to be shipped."""
    done = board.done
    found = []
    for unit in board.units:
        if unit.id in done:
            found.append(Finding(unit.id, Swept.DONE, unit.evidence or "the source says so"))
        elif unit.id in proven:
            found.append(Finding(unit.id, Swept.STALE, f"shipped by {proven[unit.id]}, and the source has it open"))
        elif unit.id in claimed:
            found.append(Finding(unit.id, Swept.IN_FLIGHT, f"task {claimed[unit.id]} has it"))
        elif unit.state is UnitState.IN_FLIGHT:
            found.append(Finding(unit.id, Swept.IN_FLIGHT, "the source says so"))
        elif _of(unit, done, frozenset(), 0, attempt_cap) is UnitState.BLOCKED:
            blocker = unit.blocker
            why = f"blocked on {blocker.blocked_on}" if blocker else f"{unit.attempts} attempts"
            found.append(Finding(unit.id, Swept.BLOCKED, why))
        else:
            found.append(Finding(unit.id, Swept.PENDING, "nothing speaks of it"))
    return tuple(found)
