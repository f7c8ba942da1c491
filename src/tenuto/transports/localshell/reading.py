"""Single values out of a document that somebody else wrote: of the right sort and size, or Unreadable with the name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tenuto.transports.localshell.files import Unreadable

#: Moments outside of these are no moments of a server's life.
EARLIEST: Final = 946_684_800.0
LATEST: Final = 32_503_680_000.0


def text(tree: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    value = tree.get(name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Unreadable(f"'{name}' is not what it should be")
    return value


def maybe_text(tree: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str | None:
    return None if tree.get(name) is None else text(tree, name, pattern)


def moment(tree: Mapping[str, Any], name: str) -> datetime:
    value = tree.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(f"'{name}' is no moment")
    if not EARLIEST <= value <= LATEST:
        raise Unreadable(f"'{name}' is no moment of this age")
    return datetime.fromtimestamp(value, UTC)


def maybe_moment(tree: Mapping[str, Any], name: str) -> datetime | None:
    return None if tree.get(name) is None else moment(tree, name)


def number(tree: Mapping[str, Any], name: str, most: int = 1_000_000_000) -> int:
    value = tree.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise Unreadable(f"'{name}' is no number that it could be")
    return value


def maybe_code(tree: Mapping[str, Any], name: str) -> int | None:
    value = tree.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**32:
        raise Unreadable(f"'{name}' is no exit code")
    return value


def truth(tree: Mapping[str, Any], name: str) -> bool:
    value = tree.get(name, False)
    if not isinstance(value, bool):
        raise Unreadable(f"'{name}' is neither true nor false")
    return value


def objects(tree: Mapping[str, Any], name: str, most: int) -> list[Mapping[str, Any]]:
    value = tree.get(name, [])
    if not isinstance(value, list) or len(value) > most or not all(isinstance(each, dict) for each in value):
        raise Unreadable(f"'{name}' is no list of at most {most} objects")
    return value


def mapping(tree: Mapping[str, Any], name: str, most: int) -> Mapping[str, Any]:
    value = tree.get(name)
    value = {} if value is None else value
    if not isinstance(value, dict) or len(value) > most:
        raise Unreadable(f"'{name}' is no object of at most {most} names")
    return value
