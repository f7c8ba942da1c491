"""Issues on GitHub as units of a chain.

Evidence counts in one order. Done: the issue is closed, or a pull request that closes it is merged; where nothing is
merged by the chain itself, an open one is enough. In flight: an open pull request, a branch in the namespace of chains,
or a claim in a comment. Blocked: the label says so, and the marker in a comment says on what. Only words of people who
may write to the repository count; what is missing is never taken for done.

A record is a comment with the command's marker, then labels, then the closing. Each step is looked for before it is
made, and a comment whose answer never came is looked for until GitHub can have nothing of it under way any more.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from tenuto.core.chain import blocker_in, blocker_text
from tenuto.model.chain import (
    Answer,
    Blocker,
    Board,
    Foreign,
    Hold,
    Outcome,
    OutOfOrder,
    Record,
    Recorded,
    Unit,
    UnitState,
)
from tenuto.model.faults import Mistake
from tenuto.model.forge import PullFacts, PullState
from tenuto.sources.claims import refusal, taken
from tenuto.sources.github import claiming, reading, selecting
from tenuto.sources.github.api import Api, Doubt, Later, Said
from tenuto.sources.github.claiming import WORKING
from tenuto.sources.github.doubts import Doubts

BLOCKED, TRIED = "tenuto:blocked", "tenuto:tried"
LABELS: Mapping[Outcome, frozenset[str]] = {
    Outcome.DONE: frozenset(),
    Outcome.BLOCKED: frozenset({BLOCKED, TRIED}),
    Outcome.FAILED: frozenset({TRIED}),
    Outcome.GIVEN_UP: frozenset({TRIED}),
    Outcome.TAKEN: frozenset(),
}
#: Branches of chains begin with this.
NAMESPACE = "tenuto/"
#: Pages of pull requests (the latest changed first), and of one issue's comments.
PULLS, COMMENTS = 10, 10
EVIDENCE = 2000
_RECORD = re.compile(r"<!-- tenuto:record (\{[^\n]{1,2000}\}) -->")
_BRANCH = re.compile(r"(?:^|/)(?:issue-)?(\d{1,10})(?:-[^/]*)?$")


@dataclass(frozen=True)
class Work:
    """What is under way: pull requests by the issues they close, and branches by the issues they name."""

    closing: Mapping[int, tuple[PullFacts, ...]]
    branches: Mapping[int, str]


@dataclass(frozen=True)
class Note:
    """What our own comments say of an issue: the last record, the last blocker, and whose claim stands."""

    marker: str | None = None
    attempts: int = 0
    blocker: Blocker | None = None
    holder: str | None = None


@dataclass(frozen=True)
class GitHubIssues:
    """Implements `ports.UnitSource`.

    `plain`: nothing is merged by the chain, so an open pull request is all a unit comes to. `own` begins the branches
    of the chain that asks: they are no evidence against its own units.
    """

    connect: Callable[[], Api]
    chosen: selecting.Selection
    doubts: Doubts
    plain: bool = True
    own: str | None = None

    def read(self) -> Board:
        """All units in their order; OSError where GitHub cannot be asked."""
        api = self.connect()
        try:
            api.about()
            rows = list(selecting.rows(api, self.chosen))
            work, me = self._work(api), api.whoami()
            units = []
            for row in rows:
                names = _labels(row)
                note = _note(api, row, me)[0] if names & {BLOCKED, TRIED, WORKING} else Note()
                units.append(self._unit(row, work, note))
            told = [[unit.id, unit.state, unit.evidence, reading.text(row, "updated_at")] for unit, row in
                    zip(units, rows, strict=True)]  # fmt: skip
            return Board(tuple(units), hashlib.sha256(json.dumps(told).encode()).hexdigest())
        except Later as why:
            raise OSError(f"{why}; again in {why.after:g} s" if why.after else str(why)) from None
        except Said as why:
            raise OSError(str(why)) from None
        finally:
            api.close()

    def claim(self, hold: Hold) -> Answer:
        """Say in a comment who works on an issue, once for one name, and see whose word came first."""
        api = self.connect()
        try:
            return self._claim(api, hold)
        except (Later, Said, Doubt, Mistake) as why:
            return OutOfOrder(str(why))
        finally:
            api.close()

    def record(self, what: Record) -> Answer:
        """Write what became of one issue, once for one marker."""
        api = self.connect()
        try:
            return self._record(api, what)
        except (Later, Said, Doubt, Mistake) as why:
            return OutOfOrder(str(why))
        finally:
            api.close()

    # -- looking

    def _work(self, api: Api) -> Work:
        default = reading.field(api.about(), "default_branch", str)
        me = api.whoami()
        closing: dict[int, tuple[PullFacts, ...]] = {}
        asked: dict[str, str | int] = {"state": "all", "sort": "updated", "direction": "desc"}
        for row in api.pages(f"{api.place}/pulls", asked, PULLS, whole=False):
            pull = reading.pull(row)
            if pull.state is PullState.CLOSED or (pull.state is PullState.MERGED and pull.base != default):
                continue
            if pull.state is PullState.OPEN and pull.fork and not reading.trusted(row, me):
                continue
            for number in reading.closes(pull.body, api.repo):
                closing[number] = (*closing.get(number, ()), pull)
        branches: dict[int, str] = {}
        for row in reading.rows(api.get(f"{api.place}/git/matching-refs/heads/{NAMESPACE}")):
            name = reading.field(row, "ref", str).removeprefix("refs/heads/")
            found = _BRANCH.search(name)
            if found is not None and not (self.own is not None and name.startswith(self.own)):
                branches[int(found[1])] = name
        return Work(closing, branches)

    def _unit(self, row: Mapping[str, Any], work: Work, note: Note) -> Unit:
        number = reading.field(row, "number", int)
        state, evidence = self._stands(row, number, work)
        held = note.holder is not None and state in (UnitState.BLOCKED, UnitState.ELIGIBLE)
        state = UnitState.IN_FLIGHT if held else state
        blocked = state is UnitState.BLOCKED
        return Unit(
            id=f"#{number}",
            state=state,
            title=_line(reading.text(row, "title")),
            evidence=evidence if evidence is not None or not held else f"claimed by {note.holder}",
            blocker=(note.blocker or _unsaid(number)) if blocked else None,
            attempts=note.attempts,
            recorded_by=note.marker,
            claimed_by=note.holder,
        )

    def _stands(self, row: Mapping[str, Any], number: int, work: Work) -> tuple[UnitState, str | None]:
        """Done before in flight before blocked before eligible, each with what decides."""
        url = reading.field(row, "html_url", str)
        if reading.field(row, "state", str) == "closed":
            why = reading.text(row, "state_reason")
            return UnitState.DONE, f"{url} is closed" + (f" as {why}" if why else "")
        pulls = work.closing.get(number, ())
        merged = next((pull for pull in pulls if pull.state is PullState.MERGED), None)
        if merged is not None and reading.text(row, "state_reason") != "reopened":
            return UnitState.DONE, merged.url
        opened = next((pull for pull in pulls if pull.state is PullState.OPEN), None)
        if opened is not None:
            return (UnitState.DONE if self.plain else UnitState.IN_FLIGHT), opened.url
        if number in work.branches:
            return UnitState.IN_FLIGHT, f"branch {work.branches[number]}"
        if BLOCKED in _labels(row):
            return UnitState.BLOCKED, None
        return UnitState.ELIGIBLE, None

    # -- claiming

    def _claim(self, api: Api, hold: Hold) -> Answer:
        api.about()
        row = self._row(api, hold.unit)
        if row is None:
            return Foreign(f"unit {hold.unit} is no issue of this repository any more", None)
        place, work, me = f"{api.place}/issues/{reading.field(row, 'number', int)}", self._work(api), api.whoami()
        unit = self._unit(row, work, _note(api, row, me)[0])
        if (refused := refusal(unit, hold)) is None and unit.claimed_by != hold.by:
            api.write("POST", f"{place}/comments", {"body": claiming.words(hold)})
            unit = self._unit(row, work, _note(api, row, me)[0])
            refused = refusal(unit, hold)
        if WORKING not in _labels(row) and unit.claimed_by is not None:
            api.write("POST", f"{place}/labels", {"labels": [WORKING]})
        return refused or Recorded(f"{hold.unit} {hold.by}")

    @staticmethod
    def _row(api: Api, unit: str) -> Mapping[str, Any] | None:
        digits = unit.removeprefix("#")
        row = selecting.one(api, int(digits)) if digits.isascii() and digits.isdigit() else None
        return None if row is None or "pull_request" in row else row

    # -- recording

    def _record(self, api: Api, what: Record) -> Answer:
        api.about()
        row = self._row(api, what.unit)
        if row is None:
            return Foreign(f"unit {what.unit} is no issue of this repository any more", None)
        number = reading.field(row, "number", int)
        note, said = _note(api, row, api.whoami(), what.marker)
        unit = self._unit(row, self._work(api), note)
        if unit.state is UnitState.DONE and what.outcome is not Outcome.DONE and not said:
            return Foreign(f"unit {what.unit} was settled by somebody else", unit)
        if not said and (other := taken(unit, what)) is not None:
            return other
        place = f"{api.place}/issues/{number}"
        if not said:
            self._comment(api, place, what)
        self._label(api, place, _labels(row), what.outcome)
        if what.outcome is Outcome.DONE and unit.state is not UnitState.DONE:
            api.write("PATCH", place, {"state": "closed", "state_reason": "completed"})
        return Recorded(f"{what.unit} {what.marker}")

    def _comment(self, api: Api, place: str, what: Record) -> None:
        """Say it, unless it may still be on its way from before."""
        wait = self.doubts.wait(what.marker)
        if wait > 0:
            raise Later(f"it was said before and nothing was heard; looking again in {wait:.0f} s", wait)
        try:
            api.write("POST", f"{place}/comments", {"body": _words(what)})
        except Doubt:
            self.doubts.add(what.marker)
            raise

    @staticmethod
    def _label(api: Api, place: str, has: frozenset[str], outcome: Outcome) -> None:
        """Labels are a set: adding one twice, or taking off one that is gone, changes nothing."""
        wanted = LABELS[outcome]
        if wanted - has:
            api.write("POST", f"{place}/labels", {"labels": sorted(wanted - has)})
        for name in sorted({BLOCKED, WORKING} & (has - wanted)):
            try:
                api.write("DELETE", f"{place}/labels/{quote(name, safe='')}")
            except Said as why:
                if why.status != 404:
                    raise


def _note(api: Api, row: Mapping[str, Any], me: str | None, marker: str | None = None) -> tuple[Note, bool]:
    """What comments of trusted people say, and whether one of them carries this marker."""
    note, said = Note(), False
    number = reading.field(row, "number", int)
    for comment in api.pages(f"{api.place}/issues/{number}/comments", {}, COMMENTS):
        if not reading.trusted(comment, me):
            continue
        body = reading.text(comment, "body")[: reading.SEARCHED]
        note = replace(note, blocker=blocker_in(body) or note.blocker, holder=claiming.after(note.holder, body))
        told = _told(body)
        if told is None:
            continue
        attempts = told.get("attempts")
        attempts = attempts if isinstance(attempts, int) and not isinstance(attempts, bool) and attempts >= 0 else 0
        over = note.holder is not None and told.get("claim") == note.holder
        note = Note(str(told.get("marker")), max(note.attempts, attempts), note.blocker, None if over else note.holder)
        said = said or (marker is not None and told.get("marker") == marker)
    return note, said


def _told(body: str) -> dict[str, object] | None:
    """The last record in a comment."""
    for raw in reversed(_RECORD.findall(body)):
        try:
            told = json.loads(raw)
        except ValueError:
            continue
        if isinstance(told, dict):
            return told
    return None


def _words(what: Record) -> str:
    """The comment of a record: a line for people, what it rests on, and the same for ourselves."""
    lines = [f"Unit {what.unit}: {what.outcome.value.replace('_', ' ')}, attempt {what.attempts}."]
    if what.evidence:
        lines += ["", "\n".join(f"> {line}" for line in what.evidence[:EVIDENCE].replace("<!--", "<! --").splitlines())]
    told = {"marker": what.marker, "outcome": what.outcome.value, "attempts": what.attempts, "claim": what.claim}
    lines += ["", f"<!-- tenuto:record {json.dumps(told)} -->"]
    if what.blocker is not None:
        lines.append(blocker_text(what.blocker))
    return "\n".join(lines)


def _labels(row: Mapping[str, Any]) -> frozenset[str]:
    told = row.get("labels")
    names = [one.get("name") if isinstance(one, Mapping) else one for one in told] if isinstance(told, list) else []
    return frozenset(name for name in names if isinstance(name, str))


def _unsaid(number: int) -> Blocker:
    return Blocker(f"#{number}", f"whoever set the label {BLOCKED}", "the label is taken off")


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:300]
