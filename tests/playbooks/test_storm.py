"""A storm over recoveries: stale, future, torn and contradictory evidence, clocks that jump, two supervisors in turn.

The evidence is that of a tool server and of two watched pages. Whatever comes, a turn that follows an end nobody saw is
armed only after two recorded looks with one fence, apart in time and fresh, on evidence that could be believed; and a
supervisor that lost its lease arms nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import builders as b
from tests.support.world import NAME, OPERATOR, Played, Still, World, world

from tenuto.engine.cycle import Cycle, Deposed, Restless, Surroundings
from tenuto.model.command import AttemptOutcome
from tenuto.model.evidence import Mark, Observation, Presence, Rank
from tenuto.model.ids import TaskId
from tenuto.model.policy import POLICY
from tenuto.model.snapshot import Leadership
from tenuto.model.tools import ClaimState, Defect, Flaw, SessionState, ToolBinding, ToolFacts
from tenuto.model.watched import ShownPage, WatchedFacts
from tenuto.ports import NoFuse
from tenuto.store.opening import open_registry

S = timedelta(seconds=1)
GOOD: dict[str, Any] = {}
BAD: tuple[dict[str, Any], ...] = (
    {"defects": (Defect(Flaw.FUTURE, "it is dated tomorrow"),)},
    {"state": None, "defects": (Defect(Flaw.UNREADABLE, "it is cut off"),)},
    {"state": None, "defects": (Defect(Flaw.UNKNOWN_VERSION, "version 9"),)},
    {"defects": (Defect(Flaw.CONTRADICTORY, "two ways"),)},
    {"sequence": 1},
    {"calls": (b.CALL,)},
    {"jobs": (b.JOB,)},
    {"claim": ClaimState.PENDING},
)


@dataclass
class Tools:
    """A tool server in the storm. `aged` makes its looks older than they are, or newer."""

    it: World
    said: dict[str, Any] = field(default_factory=dict)
    aged: timedelta = timedelta(0)

    async def look(self, binding: ToolBinding, cwd: str) -> Observation:
        now = self.it.clock.now()
        facts = replace(ToolFacts(binding, "4.0", SessionState.ACTIVE, sequence=50), **self.said)
        return Observation("local-shell", Rank.JOURNAL, binding.subject, now - self.aged, facts)

    async def sessions(self, cwd: str | None = None) -> tuple[ToolFacts, ...]:
        return ()

    @property
    def good(self) -> bool:
        return not self.said and not self.aged


#: Of the page that is watched by two witnesses; each of these holds a recovery.
BAD_PAGES: tuple[dict[str, Any], ...] = (
    {"shown": None, "window": None, "generating": None, "defects": (Defect(Flaw.UNREADABLE, "no browser answers"),)},
    {"window": None, "generating": None, "defects": (Defect(Flaw.DUPLICATED, "2 windows show it"),)},
    {"generating": True},
    {"generating": True, "send_ready": True},
    {"shown": False},
)
URL = "https://chat.example/c/1"


@dataclass
class Pages:
    """A witness of a page in the storm. `aged` makes its looks older than they are, or newer.

    `moved` is when it was last seen to move.
    """

    it: World
    said: dict[str, Any] = field(default_factory=dict)
    aged: timedelta = timedelta(0)
    moved: datetime | None = None
    looks: list[Observation] = field(default_factory=list)

    async def look(self, binding: ToolBinding) -> Observation:
        now = self.it.clock.now()
        told: dict[str, Any] = {"shown": True, "window": "w-1", "generating": False, **self.said}
        facts = WatchedFacts(binding, changed_at=self.moved, **told)
        self.looks.append(Observation("accessibility", Rank.OUTSIDE, binding.subject, now - self.aged, facts))
        return self.looks[-1]

    async def shown(self) -> tuple[ShownPage, ...]:
        return ()

    def good(self, now: datetime) -> bool:
        """Whether what it tells now may be acted on: neither too old nor to come, seen, still, and not just moved."""
        moves = self.moved is not None and not self.moved + POLICY.page_quiet <= now
        return not self.said and timedelta(0) <= self.aged <= POLICY.page_fresh and not moves


def cut_short(executor: Played) -> None:
    """The turn under way ends, and nobody sees how."""
    for command in executor.under_way:
        old = executor.journal[command]
        executor.journal[command] = replace(old, mark=Mark.ACCEPTED, performer=Presence.GONE, agent=Presence.GONE)


async def serve(cycle: Cycle, task: TaskId) -> bool:
    """Serve a task; whether this supervisor still leads."""
    try:
        await cycle.serve(task)
    except Deposed:
        return False
    except Restless:
        return True
    return True


async def test_no_recovery_without_two_good_looks(tmp_path: Path) -> None:
    recovered = [await storm(seed, tmp_path / str(seed)) for seed in range(8)]
    assert sum(recovered) >= 6, "storms in which nothing was recovered prove nothing"


@pytest.mark.prove
async def test_no_recovery_without_two_good_looks_in_many_storms(tmp_path: Path) -> None:
    assert sum([await storm(seed, tmp_path / str(seed)) for seed in range(100, 300)]) >= 200


async def storm(seed: int, tmp_path: Path) -> int:
    """Sixty things happen; how many recoveries were armed in spite of them."""
    chance = random.Random(seed)
    async with world(tmp_path) as it:
        tools, pages = Tools(it), {"desk": Pages(it), "web": Pages(it)}
        other_ledger = open_registry(tmp_path / "state" / "registry.sqlite3", it.clock, minter=it.minter)
        other = Cycle(
            other_ledger, {NAME: it.executor}, it.workspace, it.clock, it.minter, NoFuse(), Surroundings("", "", ""), 20
        )
        pairs: list[tuple[Cycle, Any]] = [(it.cycle, it.ledger), (other, other_ledger)]
        for cycle, _ in pairs:
            cycle.tools, cycle.witnesses = tools, pages
        try:
            leads, recoveries = 0, 0
            task = await it.create(policy={"fault_recoveries": 1000})
            await it.desk.supervision.bind(OPERATOR, task, "local", b.SESSION.session, None)
            for name in pages:
                await it.desk.supervision.bind(OPERATOR, task, name, URL, None)
            await it.settle(task)
            for step in range(60):
                leads = await _stir(it, tools, it.workspace, chance, pairs, leads, step)
                _stir_pages(it, pages, chance)
                before = {attempt.id for attempt in it.ledger.attempts(task, 500)}
                assert await serve(pairs[leads][0], task)
                await serve(pairs[1 - leads][0], task)
                for attempt in it.ledger.attempts(task, 500):
                    if attempt.id in before:
                        continue
                    ended = [a for a in it.ledger.attempts(task, 500) if a.number < attempt.number]
                    cut = next((a for a in ended if a.outcome is not AttemptOutcome.UNSENT), None)
                    if cut is None or cut.outcome is AttemptOutcome.TURN_END:
                        continue
                    recoveries += 1
                    assert tools.good, (step, tools)
                    assert all(page.good(it.clock.now()) for page in pages.values()), (step, pages)
                    (sent,) = [one for one in it.ledger.commands(500, task_id=task) if one.attempt_id == attempt.id]
                    armed, *same = [one for one in it.ledger.samples(task, 50) if one.fence == sent.fence]
                    assert attempt.scheduled_at in {one.made_at for one in (armed, *same)}
                    ages = sorted(attempt.scheduled_at - one.made_at for one in (armed, *same))
                    ages.remove(timedelta(0))  # the look that was recorded with the turn itself
                    fresh = [age for age in ages if timedelta(0) <= age <= POLICY.reconcile_age]
                    assert fresh, step
                    assert max(fresh) >= POLICY.reconcile_separation
                    assert any("interrupted" in member for member in armed.members)
                    watched = [member for member in armed.members if member.startswith("watched ")]
                    assert [member.endswith(" still") for member in watched] == [True, True]
                    assert not any(member.startswith("flawed ") for member in armed.members)
            effects = [len(it.executor.turns), len({*it.executor.turns})]
            assert effects[0] == effects[1]
        finally:
            await other_ledger.close()
    return recoveries


def _stir_pages(it: World, pages: Mapping[str, Pages], chance: random.Random) -> None:
    """Now and then something becomes of what the witnesses of the page say; mostly it is good for a while then."""
    what = chance.choice(["", "", "", "bad", "late", "good", "good", "good", "moved"])
    page = chance.choice(sorted(pages))
    match what:
        case "bad":
            pages[page].said, pages[page].aged = chance.choice(BAD_PAGES), chance.choice((0, 200, -60)) * S
        case "late":
            pages[page].said, pages[page].aged = GOOD, chance.choice((31, 45, 119)) * S
        case "good":
            for each in pages.values():
                each.said, each.aged, each.moved = GOOD, 0 * S, None
        case "moved":
            pages[page].moved = it.clock.now() + chance.choice([0, 0, 60]) * S
        case _:
            pass


async def _stir(
    it: World, tools: Tools, ground: Still, chance: random.Random, pairs: list[tuple[Cycle, Any]], leads: int, step: int
) -> int:
    """Something happens; who leads then."""
    what = chance.choice(
        ["time", "time", "time", "cut", "cut", "bad", "good", "good", "back", "far", "files", "change"]
    )
    match what:
        case "time":
            it.clock.move(chance.choice([1, 2, 4, 5]) * S)
        case "far":
            it.clock.move(chance.choice([130, 1000]) * S)
        case "back":
            it.clock.move(-chance.choice([1, 10, 100]) * S)
        case "cut":
            cut_short(it.executor)
        case "bad":
            tools.said, tools.aged = chance.choice(BAD), chance.choice([0, 0, 200, -60]) * S
        case "good":
            tools.said, tools.aged = GOOD, 0 * S
        case "files":
            ground.cursor = f"{chance.randrange(3):064d}"
        case "change":
            leads = 1 - leads
            cycle, ledger = pairs[leads]
            now = it.clock.now()
            lease = Leadership(0, f"s{step}", "host", step, "x", "boot", "", now, now, now + timedelta(days=9))
            taken = await ledger.lead(lease, lambda _holder: True)
            assert taken is not None
            cycle.epoch = taken.epoch
        case _:
            raise AssertionError(what)
    return leads
