"""Numbers of a policy and of what is kept: those that would break whoever reckons with them are named and refused."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.world import OPERATOR, world

from tenuto import config
from tenuto.engine.keeper import Keeper
from tenuto.model.faults import Mistake
from tenuto.model.ids import CommandId
from tenuto.model.policy import KEEPING, LONGEST, MOST, POLICY, SHORTEST, Keeping, Policy, number

pytestmark = pytest.mark.anyio
CENTURY = LONGEST.total_seconds()
BROKEN = (math.nan, math.inf, -math.inf, 1e300, 10**400, 1e12, 1e11, CENTURY + 1, -1, True, "1", None, [1])
TIMES = [one.name for one in fields(Policy) if isinstance(getattr(POLICY, one.name), timedelta)]
COUNTS = [one.name for one in fields(Policy) if isinstance(getattr(POLICY, one.name), int)]


class Nothing:
    """No journals."""

    def old(self, age: timedelta) -> tuple[CommandId, ...]:
        return ()

    def clean(self, keep: tuple[CommandId, ...], age: timedelta) -> tuple[CommandId, ...]:
        return ()


@pytest.mark.parametrize("name", ["turn_limit", "slot-rest", "dead_man_apart", "max-live", "run_live"])
def test_a_time_is_one_that_can_be_reckoned_with(name: str) -> None:
    now = getattr(POLICY, name.replace("-", "_"))
    for value in BROKEN:
        with pytest.raises(Mistake, match=f"^{name} must be a number of seconds from . to 3153600000$") as broken:
            number(name, now, value)
        assert broken.value.field == name
    assert number(name, now, CENTURY) == LONGEST
    assert number(name, now, 1) == timedelta(seconds=1)


@pytest.mark.parametrize("name", ["stall_pause", "max-tokens", "dead-man"])
def test_a_count_is_a_whole_number_that_can_be_kept(name: str) -> None:
    now = getattr(POLICY, name.replace("-", "_"))
    for value in (math.nan, math.inf, 1e300, 10**400, MOST + 1, -1, 1.5, False):
        with pytest.raises(Mistake) as broken:
            number(name, now, value)
        assert broken.value.field == name
        assert name in broken.value.message
    assert (number(name, now, MOST), number(name, now, 0), number(name, now, 3.0)) == (MOST, 0, 3)


@pytest.mark.parametrize("told", ["turn_limit = 0", "turn-limit = 0.5", "retry_unsent = [5, 0]", "dead_man_ask = 0.5"])
def test_what_would_stop_the_work_or_make_a_storm_is_refused(tmp_path: Path, told: str) -> None:
    name = told.partition(" ")[0]
    (tmp_path / "config.toml").write_text(f"[policy]\n{told}\n")
    with pytest.raises(Mistake, match=f"^{name} must be a number of seconds from (0.)?1 to") as broken:
        config.load({"TENUTO_HOME": str(tmp_path)})
    assert broken.value.field == name


@pytest.mark.parametrize("told", ["[policy]\nlimit_unknown = [nan]", "[keep]\ntexts = 1e11", "[keep]\nsamples = inf"])
def test_the_configuration_says_which_number_cannot_be(tmp_path: Path, told: str) -> None:
    (tmp_path / "config.toml").write_text(told)
    with pytest.raises(Mistake, match="must be a number") as broken:
        config.load({"TENUTO_HOME": str(tmp_path)})
    assert broken.value.field == told.partition("\n")[2].partition(" ")[0]


def test_what_is_short_where_it_does_no_harm_is_taken(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[policy]\nretry_unsent = [0.2]\nidle-delay = 0\n[keep]\nevents = 0\n")
    settings = config.load({"TENUTO_HOME": str(tmp_path)})
    assert settings.policy == replace(POLICY, retry_unsent=(timedelta(seconds=0.2),), idle_delay=timedelta())
    assert settings.keep == replace(KEEPING, events=timedelta())
    assert all(getattr(POLICY, name) >= least for name, least in SHORTEST.items() if name in TIMES)


async def test_a_verb_refuses_them_too_and_nothing_breaks_with_the_longest(tmp_path: Path) -> None:
    longest = dict.fromkeys(TIMES, CENTURY)
    async with world(tmp_path) as it:
        for name, value in (
            ("dead_man_apart", 1e11),
            ("slot_rest", 1e12),
            ("turn_limit", 0),
            ("stall_pause", math.nan),
        ):
            with pytest.raises(Mistake, match=f"^{name} must be"):
                await it.create(policy={name: value})
        task = await it.create(policy={**longest, **dict.fromkeys(COUNTS, MOST), "prompt_bytes": 1 << 20})
        run = it.desk.task(task).run_id
        for words in ("nan", "inf", "1e300", "-1"):
            with pytest.raises(Mistake, match=r"^slot_rest must be") as broken:
                await it.desk.set_policy(OPERATOR, run, {"slot-rest": words})
            assert broken.value.field == "slot_rest"
            with pytest.raises(Mistake, match=r"^max-live must be"):
                await it.desk.set_policy(OPERATOR, task, {"max-live": words})
        for words in ("9" * 5000, "²", "0"):
            with pytest.raises(Mistake, match=r"^max-tokens is a whole number"):
                await it.desk.set_policy(OPERATOR, task, {"max-tokens": words})
        await it.settle(task)
        it.executor.finish(status="waiting")
        await it.settle(task)
        keep = Keeping(events=LONGEST, texts=LONGEST, samples=MOST, keys=LONGEST, journals=LONGEST)
        events = it.ledger.events(0, 500)
        await Keeper(it.ledger, Nothing(), it.clock, keep).round()
        assert it.ledger.events(0, 500) == events
