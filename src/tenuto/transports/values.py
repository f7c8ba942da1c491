"""Frozen values as JSON objects, and back: written without what is None, read strictly and without guessing.

A missing field, a wrong type, a text that is no identifier or a moment without an offset is refused; a field that is
not known is passed over, since a later version may have added it. Readers are made once per class from its hints.
"""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from tenuto.model.evidence import Rank
from tenuto.model.ids import SHAPE, AttemptId, CommandId, RunId, TaskId

ITEMS: Final = 10_000
"""Most items of a list."""


def loads(text: str | bytes) -> Any:
    """JSON in which no name is given twice and every number is one. ValueError or RecursionError for anything else."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is given twice")
    return made


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def written(value: Any) -> Any:
    """What JSON can say of a value."""
    if is_dataclass(value):
        held = ((one.name, getattr(value, one.name)) for one in fields(value))
        return {name: written(each) for name, each in held if each is not None}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, tuple | list):
        return [written(each) for each in value]
    if isinstance(value, Mapping):
        return {key: written(each) for key, each in value.items()}
    return value


Reads = Callable[[Any], Any]
Demands = Mapping[type, frozenset[str]]


def value(kind: Any, demands: Demands = MappingProxyType({})) -> Reads:
    """A reader of one class of frozen values; it raises ValueError or TypeError and names the field.

    `demands` are fields that must be said although they have a default.
    """
    hints = typing.get_type_hints(kind)
    readers = {one.name: _reader(hints[one.name], one.name, demands) for one in fields(kind)}
    bare = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    needed = {name for name in bare if type(None) not in typing.get_args(hints[name])} | demands.get(kind, frozenset())
    absent = dict.fromkeys(bare - needed)

    def read(told: Any) -> Any:
        if not isinstance(told, dict):
            raise TypeError(f"{kind.__name__} is an object")
        for name in needed:
            if told.get(name) is None:
                raise ValueError(f"{name} is missing")
        return kind(**absent | {name: readers[name](told[name]) for name in readers if told.get(name) is not None})

    return read


def _reader(hint: Any, name: str, demands: Demands) -> Reads:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (each for each in typing.get_args(hint) if each is not type(None))
    if hint in (CommandId, AttemptId, TaskId, RunId):
        return _identifier(name)
    hint = getattr(hint, "__supertype__", hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _list(_reader(typing.get_args(hint)[0], name, demands), name)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(name, texts=typing.get_args(hint)[1] is str)
    if is_dataclass(hint) and isinstance(hint, type):
        return value(hint, demands)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return lambda told: hint(_is(told, str, name))
    if hint is Rank:
        return lambda told: Rank(_is(told, int, name))
    if hint is datetime:
        return lambda told: _moment(told, name)
    if hint is float:
        return lambda told: _seconds(told, name)
    if hint in (str, int, bool):
        return lambda told: _is(told, hint, name)
    raise TypeError(f"no reader for {hint!r}")


def _is(told: Any, kind: type[Any], name: str) -> Any:
    if not isinstance(told, kind) or (kind is int and isinstance(told, bool)):
        raise TypeError(f"{name} is no {kind.__name__}")
    return told


def _identifier(name: str) -> Reads:
    letter = f"{name[0]}-"

    def read(told: Any) -> str:
        if not isinstance(told, str) or not SHAPE.fullmatch(told) or not told.startswith(letter):
            raise ValueError(f"{name} names no {name}")
        return told

    return read


def _list(item: Reads, name: str) -> Reads:
    def read(told: Any) -> tuple[Any, ...]:
        if len(_is(told, list, name)) > ITEMS:
            raise ValueError(f"{name} has more than {ITEMS} items")
        return tuple(item(each) for each in told)

    return read


def _mapping(name: str, *, texts: bool) -> Reads:
    def read(told: Any) -> Mapping[str, Any]:
        held = _is(told, dict, name)
        if texts and not all(isinstance(each, str) for each in held.values()):
            raise TypeError(f"{name} holds texts only")
        return dict(held)

    return read


def _moment(told: Any, name: str) -> datetime:
    moment = datetime.fromisoformat(_is(told, str, name))
    if moment.tzinfo is None:
        raise ValueError(f"{name} has no offset")
    return moment.astimezone(UTC)


def _seconds(told: Any, name: str) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float) or not math.isfinite(told):
        raise TypeError(f"{name} is no number of seconds")
    return float(told)
