"""Envelopes and units: refused by the field's name, healed aloud, copied word for word, and bounded."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenuto.prompts
from tenuto.core import chain as rules
from tenuto.core.chain import Checks, NotAdvanced, Swept
from tenuto.model.chain import (
    Blocker,
    Board,
    Cursor,
    Envelope,
    Outcome,
    Parent,
    Standing,
    Unit,
    UnitState,
    canonical_repo,
    document_of,
    envelope_of,
)
from tenuto.model.faults import Mistake
from tenuto.prompts.skills import skills
from tenuto.surfaces.mcp.tools import TOOLS

GOLDEN = Path(__file__).parents[1] / "golden" / "chains" / "unit.md"
SCHEMA = json.loads((Path(tenuto.prompts.__file__).parent / "envelope-v1.schema.json").read_text("utf-8"))
UNITS = tuple(f"U-{number}" for number in range(1, 31))
CURSOR = Cursor("github.com/some/where", "label:ready", "U-3", UNITS[2:], "rev-7", 10, 2, 28)
WHOLE = Envelope(
    "Mend every page\nand say so", CURSOR, Parent("t-1", "https://a.b/pull/1", "12"), (("merge", False), ("push", True))
)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20).filter(
    lambda text: text.strip() != ""
)


def changed(path: str, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(document_of(WHOLE)))
    *where, name = path.split(".")
    inner: Any = document
    for step in where:
        inner = inner[step]
    if value is None:
        del inner[name]
    else:
        inner[name] = value
    return document


def test_an_envelope_comes_back_as_it_went_and_the_schema_knows_it() -> None:
    document = document_of(WHOLE)
    assert envelope_of(json.loads(json.dumps(document))) == WHOLE
    jsonschema.validate(document, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2), ("version", True), ("version", None), ("goal", "  "), ("goal", None), ("cursor.repo", " "),
        ("cursor.selector", ""), ("cursor.attempt_cap", 0), ("cursor.attempt_cap", 21), ("cursor.attempt_cap", True),
        ("cursor.processed", -1), ("cursor.remaining_units", "U-1"), ("cursor.remaining_budget", -1),
        ("authorization.merge", 1), ("authorization.merge", "yes"), ("extra", 1), ("cursor.extra", 1),
        ("parent.extra", 1), ("parent", None), ("authorization", None), ("cursor", []),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_the_name_of_its_field(path: str, value: Any) -> None:
    document = changed(path, value)
    with pytest.raises(Mistake) as mistake:
        envelope_of(document)
    assert mistake.value.field is not None
    assert mistake.value.field.startswith(path.split(".", maxsplit=1)[0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_br_180_a_unit_is_told_as_in_the_golden_file_with_goal_and_cursor() -> None:
    text = rules.render(WHOLE, 2, "the third page")
    if os.environ.get("TENUTO_GOLDEN") == "write":
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


@given(st.lists(WORDS, max_size=40, unique=True), WORDS)
def test_a_prompt_is_bounded_however_many_units_are_left(units: list[str], unit: str) -> None:
    cursor = replace(CURSOR, next_unit=unit, remaining_units=tuple(units))
    text = rules.render(replace(WHOLE, cursor=cursor))
    assert len(text) < 20 * 25 + 2000
    others = [one for one in units if one != unit]
    assert (f"+{len(others) - 20} more" in text) == (len(others) > 20)


BOARDS = st.lists(
    st.tuples(WORDS, st.sampled_from(UnitState), st.integers(0, 4)), max_size=12, unique_by=lambda row: row[0]
).map(lambda rows: Board(tuple(Unit(name, state, attempts=tries) for name, state, tries in rows), "r"))


@given(BOARDS, st.sets(WORDS, max_size=3), WORDS)
def test_resolving_never_calls_complete_what_is_not_done(board: Board, more: set[str], pointer: str) -> None:
    claimed = frozenset(more | {unit.id for unit in board.units[:1]})
    found = rules.resolve(board, pointer, claimed, {}, 3)
    done = all(unit.state is UnitState.DONE for unit in board.units)
    assert (found.standing is Standing.COMPLETE) == done
    assert (found.unit is not None) == (found.standing is Standing.ELIGIBLE)
    if found.unit is not None:
        unit = board.unit(found.unit)
        assert unit is not None
        assert unit.state is not UnitState.DONE
        assert unit.id not in claimed
        assert unit.attempts < 3
        assert (found.healed == pointer) == (found.unit != pointer)
        assert bool(found.notes) == (found.healed is not None)


@given(BOARDS, st.lists(st.sampled_from(Outcome), max_size=8))
def test_along_a_chain_authorization_stays_and_counters_never_fall(board: Board, outcomes: list[Outcome]) -> None:
    envelope = WHOLE
    for outcome in outcomes:
        found = rules.resolve(board, None, frozenset(), {}, 3)
        after = rules.advance(envelope, found, "r2", outcome, Parent(task="t-2"))
        if isinstance(after, NotAdvanced):
            assert found.standing is not Standing.ELIGIBLE
            return
        assert after.authorization == envelope.authorization
        assert after.goal == envelope.goal
        assert after.cursor.attempt_cap == envelope.cursor.attempt_cap
        assert after.cursor.processed == envelope.cursor.processed + (outcome is Outcome.DONE)
        assert after.cursor.remaining_budget is not None
        assert envelope.cursor.remaining_budget is not None
        assert after.cursor.remaining_budget <= envelope.cursor.remaining_budget
        assert after.parent.task == "t-2"
        envelope = after


PLACES = st.builds(
    lambda repo, selector, unit, revision: Cursor(repo, selector, unit, (), revision, 10, 0, None),
    WORDS, WORDS, st.none() | WORDS, st.none() | WORDS,
)  # fmt: skip


@given(PLACES, PLACES)
def test_two_keys_are_one_only_where_the_cursors_are(one: Cursor, other: Cursor) -> None:
    assert (rules.cursor_key(one) == rules.cursor_key(other)) == (one == other)


def test_a_nonce_is_for_sources_without_revisions() -> None:
    without = replace(CURSOR, source_revision=None)
    assert rules.cursor_key(without, "n1") != rules.cursor_key(without, "n2") != rules.cursor_key(without)
    with pytest.raises(Mistake):
        rules.cursor_key(CURSOR, "n1")


@pytest.mark.parametrize(
    ("given_", "name"),
    [
        ("https://github.com/Some/Where.git", "github.com/some/where"),
        ("git@github.com:Some/Where.git", "github.com/some/where"),
        ("ssh://git@Git.Example.org:22/Some/Where", "git.example.org/Some/Where"),
        ("github.com/some/where/", "github.com/some/where"),
        ("/srv/bare.git/", "localhost/srv/bare.git"),
        ("file:///srv/bare.git", "localhost/srv/bare.git"),
    ],
)
def test_a_repository_has_one_name(given_: str, name: str) -> None:
    assert canonical_repo(given_) == name
    assert canonical_repo(name) == name


@pytest.mark.parametrize("given_", ["where", "some/where", "a.b", "a.b/../c", "", "https://a.b"])
def test_what_names_no_repository_is_refused(given_: str) -> None:
    with pytest.raises(Mistake):
        canonical_repo(given_)


@given(WORDS, WORDS, WORDS, WORDS)
def test_a_blocker_is_read_back_as_it_was_written(one: str, two: str, three: str, around: str) -> None:
    blocker = Blocker(one, two, three)
    told = f"{around}\n{rules.blocker_text(blocker)}\n{around}"
    assert rules.blocker_in(told) == blocker
    assert rules.blocker_in(told.replace("blocked-on", "blocked-of")) is None


def test_a_unit_that_hangs_on_another_goes_on_when_that_one_is_done() -> None:
    waiting = Unit("b", UnitState.BLOCKED, blocker=Blocker("me", "unit:a", "it is done"))
    for state, standing in ((UnitState.IN_FLIGHT, Standing.BLOCKED), (UnitState.DONE, Standing.ELIGIBLE)):
        board = Board((Unit("a", state), waiting), "r")
        assert rules.resolve(board, None, frozenset(), {}, 3).standing is standing


def test_a_hand_off_needs_evidence_or_a_blocker() -> None:
    marker = Blocker("me", "it", "then")
    assert rules.may_hand_off(Outcome.DONE, "abc", None, Checks.GREEN) is None
    assert rules.may_hand_off(Outcome.BLOCKED, None, marker, Checks.RED) is None
    for word in (
        (Outcome.DONE, " ", None, Checks.NONE),
        (Outcome.DONE, "abc", None, Checks.RED),
        (Outcome.BLOCKED, "abc", None, Checks.RED),
        (Outcome.FAILED, "abc", None, Checks.GREEN),
    ):
        assert isinstance(rules.may_hand_off(*word), NotAdvanced)


def test_a_missing_parent_is_told_and_stops_nothing() -> None:
    found = rules.resolve(Board((Unit("a", UnitState.ELIGIBLE),), "r"), None, frozenset(), {}, 3, parent_missing="t-9")
    assert found.unit == "a"
    assert "t-9" in found.notes[0]


def test_a_sweep_names_every_unit_with_its_evidence() -> None:
    board = Board(
        (
            Unit("a", UnitState.DONE, evidence="abc"), Unit("b", UnitState.ELIGIBLE), Unit("c", UnitState.BLOCKED),
            Unit("d", UnitState.ELIGIBLE), Unit("e", UnitState.IN_FLIGHT), Unit("f", UnitState.ELIGIBLE),
        ),
        "r",
    )  # fmt: skip
    found = rules.sweep(board, {"b": "t-1"}, {"d": "t-2"}, 10)
    assert [one.what for one in found] == [
        Swept.DONE, Swept.IN_FLIGHT, Swept.BLOCKED, Swept.STALE, Swept.IN_FLIGHT, Swept.PENDING,
    ]  # fmt: skip
    assert all(one.evidence for one in found)


def test_the_skill_of_a_unit_is_short_and_names_tools_that_exist() -> None:
    skill = skills()["self-continuation-task"]
    named = set(re.findall(r"`((?:chain|phase)_[a-z]+)`", skill.body))
    assert named == {"chain_next", "chain_record", "chain_handoff", "phase_open"} <= set(TOOLS)
    assert len(skill.body.split()) < 300
