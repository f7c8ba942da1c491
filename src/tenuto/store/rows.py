"""How a frozen value crosses into columns and back.

A shape is derived once per class from its fields and type hints: identifiers and enums are text, moments and
durations are whole microseconds, tuples and small values are one JSON document, and a nested value that is asked
about stands in columns of its own behind a prefix. A type this module has no rule for is refused when the program
starts, never guessed at.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, Generic, TypeVar

from tenuto.model.fact import Fact
from tenuto.model.faults import Corrupt
from tenuto.model.health import Assessment
from tenuto.model.work import Claim, Disposition, Progress

R = TypeVar("R")
Cell = str | int | None
Convert = Callable[[Any], Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
#: Nested values that get columns of their own, with what stands before their names.
NESTED: Mapping[type, str] = {
    Disposition: "disposition_",
    Claim: "claim_",
    Progress: "progress_",
    Assessment: "health_",
    Fact: "",
}


def moment(value: datetime) -> int:
    """Microseconds since 1970 in UTC; a naive datetime is a TypeError."""
    return (value - EPOCH) // MICROSECOND


def at(cell: int) -> datetime:
    return EPOCH + timedelta(microseconds=cell)


def _duration(value: timedelta) -> int:
    return value // MICROSECOND


def _length(cell: int) -> timedelta:
    return timedelta(microseconds=cell)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
#: What the encoder makes anew for each value it writes, made once; where there is none, it is asked each time.
_chunks: Any = getattr(json.encoder, "c_make_encoder", None) and json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", True, False, True
)


def document(value: Any) -> str:
    """JSON text, the same for equal values."""
    if _chunks is None:
        return _ENCODER.encode(value)
    return "".join(_chunks(value, 0))


def read_document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Corrupt("a JSON document in the registry cannot be read; restore a backup") from error


@dataclass(frozen=True)
class Rule:
    """How one type crosses: the kind of its column, and the two conversions (None: as it is)."""

    kind: type
    dump: Convert | None = None
    load: Convert | None = None


def _optional(hint: Any) -> tuple[Any, bool]:
    """The type without None, and whether None was allowed."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        inner = [part for part in typing.get_args(hint) if part is not type(None)]
        if len(inner) == 1:
            return inner[0], True
    return hint, False


def rule(hint: Any) -> Rule:
    """The rule of a type that is not optional; TypeError when there is none."""
    hint = getattr(hint, "__supertype__", hint)
    if hint in (str, int):
        return Rule(hint)
    if hint is bool:
        return Rule(int, int, bool)
    if hint is datetime:
        return Rule(int, moment, at)
    if hint is timedelta:
        return Rule(int, _duration, _length)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Rule(str, attrgetter("_value_"), {member.value: member for member in hint}.__getitem__)
    if typing.get_origin(hint) in (tuple, Mapping) or is_dataclass(hint):
        dump, load = _tree(hint)
        return _document_rule(dump, load, frozen=typing.get_origin(hint) is not Mapping)
    raise TypeError(f"no rule for a column of type {hint!r}")


def _document_rule(dump: Convert, load: Convert, *, frozen: bool) -> Rule:
    """A value as one document; what cannot change is written and read once and then remembered."""

    def write(value: Any) -> str:
        return document(dump(value))

    def read(text: str) -> Any:
        return load(read_document(text))

    return Rule(str, lru_cache(1024)(write), lru_cache(1024)(read)) if frozen else Rule(str, write, read)


def _tree(hint: Any) -> tuple[Convert, Convert]:
    """The two conversions between a value and what JSON can say of it."""
    hint, optional = _optional(hint)
    if optional:
        dump, load = _tree(hint)
        return lambda value: None if value is None else dump(value), lambda tree: None if tree is None else load(tree)
    if typing.get_origin(hint) is Mapping:
        return dict, dict
    if typing.get_origin(hint) is tuple:
        return _tuple_tree(typing.get_args(hint))
    if isinstance(hint, type) and is_dataclass(hint):
        return _value_tree(hint)
    plain = rule(hint)
    return plain.dump or (lambda value: value), plain.load or (lambda tree: tree)


def _tuple_tree(parts: tuple[Any, ...]) -> tuple[Convert, Convert]:
    if parts[-1] is Ellipsis:
        dump, load = _tree(parts[0])
        return lambda value: [dump(item) for item in value], lambda tree: tuple(load(item) for item in tree)
    trees = [_tree(part) for part in parts]
    return (
        lambda value: [dump(item) for (dump, _), item in zip(trees, value, strict=True)],
        lambda tree: tuple(load(item) for (_, load), item in zip(trees, tree, strict=True)),
    )


def _value_tree(cls: type) -> tuple[Convert, Convert]:
    """A small value as an object. A name that is missing takes its default; a name nobody knows is corruption."""
    hints = typing.get_type_hints(cls)
    trees = {field.name: _tree(hints[field.name]) for field in fields(cls)}

    def load(tree: dict[str, Any]) -> Any:
        try:
            return cls(**{name: trees[name][1](part) for name, part in tree.items()})
        except (KeyError, TypeError) as error:
            raise Corrupt(f"a stored {cls.__name__} has a shape this program does not know: {error}") from error

    return lambda value: {name: dump(getattr(value, name)) for name, (dump, _) in trees.items()}, load


def _crossed(value: Any, dump: Convert | None) -> Any:
    return value if dump is None or value is None else dump(value)


@dataclass(frozen=True)
class Field:
    """One column of a shape."""

    name: str
    rule: Rule
    nullable: bool


@dataclass(frozen=True)
class Nest:
    """Columns `start` to `stop` (not included) that make one nested value; None when the first of them is null."""

    start: int
    stop: int
    place: int
    cls: type
    optional: bool
    parts: Convert


def _fields(cls: type, prefix: str = "", *, loose: bool = False) -> tuple[list[Field], list[Nest]]:
    """The columns of a class, and which of them make nested values. `loose`: all may be null, for the value may be."""
    found: list[Field] = []
    nests: list[Nest] = []
    hints = typing.get_type_hints(cls)
    for place, field in enumerate(fields(cls)):
        hint, optional = _optional(hints[field.name])
        if hint in NESTED:
            inner, _ = _fields(hint, NESTED[hint], loose=loose or optional)
            parts = attrgetter(*(part.name for part in fields(hint)))
            nests.append(Nest(len(found), len(found) + len(inner), place, hint, optional, parts))
            found += inner
        else:
            found.append(Field(prefix + field.name, rule(hint), optional or loose))
    return found, nests


def _spans(count: int, nests: Sequence[Nest]) -> tuple[tuple[int, int, Nest | None], ...]:
    """For each field of a class its first column, how many it has, and how it is nested if it is."""
    nested = {nest.place: nest for nest in nests}
    found: list[tuple[int, int, Nest | None]] = []
    start = 0
    for place in range(count):
        nest = nested.get(place)
        width = 1 if nest is None else nest.stop - nest.start
        found.append((start, width, nest))
        start += width
    return tuple(found)


class Shape(Generic[R]):
    """The columns of one class, in the order of its fields, and the two ways across."""

    def __init__(self, cls: type[R]) -> None:
        self.cls = cls
        self.name = cls.__name__.lower()
        found, nests = _fields(cls)
        self.fields = tuple(found)
        self.columns = tuple(field.name for field in found)
        self.revised = "revision" in self.columns
        self._nests = tuple(reversed(nests))
        self._spans = _spans(len(fields(cls)), nests)  # type: ignore[arg-type]
        self._numbers = range(len(self._spans))
        #: The values of a row's fields, in their order.
        self.parts: Callable[[R], tuple[Any, ...]] = attrgetter(*(field.name for field in fields(cls)))  # type: ignore[arg-type]
        self._dumps = tuple((place, f.rule.dump) for place, f in enumerate(found) if f.rule.dump is not None)
        self._rules = tuple(field.rule.dump for field in found)
        self._loads = tuple(field.rule.load for field in found)

    def dump(self, row: R) -> list[Cell]:
        """The row's cells, in the order of `columns`."""
        return self.cells(self.parts(row))

    def cells(self, parts: tuple[Any, ...]) -> list[Cell]:
        """The cells of a row, from its parts."""
        cells = list(parts)
        for nest in self._nests:
            inner = cells[nest.place]
            width = nest.stop - nest.start
            cells[nest.place : nest.place + 1] = [None] * width if inner is None else nest.parts(inner)
        for place, dump in self._dumps:
            value = cells[place]
            if value is not None:
                cells[place] = dump(value)
        return cells

    def changes(self, before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[tuple[int, ...], list[Cell]]:
        """Which fields differ between the parts of two rows, by their places, and the later one's cells there."""
        places = tuple([n for n in compress(self._numbers, map(is_not, before, after)) if before[n] != after[n]])
        cells: list[Any] = []
        for n in places:
            value = after[n]
            start, width, nest = self._spans[n]
            if nest is None:
                dump = self._rules[start]
                cells.append(value if dump is None or value is None else dump(value))
            else:
                inner = (None,) * width if value is None else nest.parts(value)
                cells += map(_crossed, inner, self._rules[start : start + width])
        return places, cells

    def spanned(self, places: tuple[int, ...]) -> tuple[str, ...]:
        """The columns of the fields at these places."""
        spans = [self._spans[n] for n in places]
        return tuple([name for start, width, _ in spans for name in self.columns[start : start + width]])

    def load(self, cells: Sequence[Any]) -> R:
        """The row whose cells these are, in the order of `columns`."""
        try:
            values: list[Any] = [
                cell if load is None or cell is None else load(cell)
                for cell, load in zip(cells, self._loads, strict=True)
            ]
        except KeyError as error:
            raise Corrupt(f"a {self.name} in the registry has a word this program does not know: {error}") from error
        for nest in self._nests:
            inner = values[nest.start : nest.stop]
            values[nest.start : nest.stop] = [None if nest.optional and inner[0] is None else nest.cls(*inner)]
        return self.cls(*values)
