"""Every value a row can have crosses into cells and back unchanged."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.faults import Corrupt
from tenuto.model.policy import POLICY, Policy
from tenuto.store import tables
from tenuto.store.rows import EPOCH, Shape, at, moment, rule

WORDS = st.text(max_size=20)
NUMBERS = st.integers(-(2**62), 2**62)
MOMENTS = st.integers(0, 2**52).map(lambda microseconds: EPOCH + timedelta(microseconds=microseconds))
LENGTHS = st.timedeltas(timedelta(0), timedelta(days=4000))


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    hint = getattr(hint, "__supertype__", hint)
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: WORDS,
        int: NUMBERS,
        bool: st.booleans(),
        datetime: MOMENTS,
        timedelta: LENGTHS,
    }
    if hint in plain:
        return plain[hint]
    if hint is type(None):
        return st.none()
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return st.one_of(*(values(part) for part in typing.get_args(hint)))
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        if parts[-1] is Ellipsis:
            return st.lists(values(parts[0]), max_size=3).map(tuple)
        return st.tuples(*map(values, parts))
    if typing.get_origin(hint) is Mapping:
        return st.dictionaries(WORDS, values(typing.get_args(hint)[1]), max_size=3)
    if issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    assert isinstance(hint, type)
    assert dataclasses.is_dataclass(hint)
    hints = typing.get_type_hints(hint)
    return st.builds(hint, **{field.name: values(hints[field.name]) for field in dataclasses.fields(hint)})


@pytest.mark.parametrize("shape", [*tables.ORDER, tables.LEADERSHIP, tables.EVENT], ids=lambda shape: shape.name)
@given(data=st.data())
def test_a_row_comes_back_as_it_was(shape: Shape[Any], data: st.DataObject) -> None:
    row = data.draw(values(shape.cls))
    cells = shape.dump(row)
    assert len(cells) == len(shape.columns)
    assert all(cell is None or type(cell) in (str, int) for cell in cells)
    assert shape.load(cells) == row


@given(MOMENTS)
def test_moments_keep_their_microseconds(when: datetime) -> None:
    assert at(moment(when)) == when
    assert moment(when.astimezone(timezone(timedelta(hours=5, minutes=30)))) == moment(when)


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(TypeError):
        moment(EPOCH.replace(tzinfo=None))


def test_a_type_without_a_rule_is_refused() -> None:
    with pytest.raises(TypeError, match="float"):
        rule(float)


def test_a_policy_of_an_older_program_takes_the_defaults_it_lacks() -> None:
    policy = rule(Policy)
    assert policy.load is not None
    assert policy.load('{"stall_warn": 5}') == dataclasses.replace(POLICY, stall_warn=5)
    with pytest.raises(Corrupt, match="Policy"):
        policy.load('{"stall_wran": 5}')
    with pytest.raises(Corrupt):
        policy.load('{"stall_warn": 5')


def test_a_word_nobody_knows_is_corruption() -> None:
    shape = tables.RUN
    cells: list[Any] = ["r-1", 1, "title", "paused", "on", "{}", None, 0, None]
    with pytest.raises(Corrupt, match="paused"):
        shape.load(cells)
