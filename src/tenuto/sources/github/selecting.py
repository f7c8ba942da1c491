"""Which issues of a repository are units: those with a label, those that a search finds, or a list of numbers.

The order is the numbers' own, and a list keeps its order. More issues than can be looked at are refused, not cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from tenuto.model.faults import Mistake
from tenuto.sources.github import reading
from tenuto.sources.github.api import Api, Later, Said

#: Pages of a label's issues, and of a search, which GitHub itself ends at a thousand.
LABELLED, FOUND = 50, 10
#: Issues that are looked at one by one.
SINGLY = 300


@dataclass(frozen=True)
class Labelled:
    names: tuple[str, ...]


@dataclass(frozen=True)
class Searched:
    words: str


@dataclass(frozen=True)
class Listed:
    numbers: tuple[int, ...]


Selection = Labelled | Searched | Listed


def selection(query: str | None) -> Selection:
    """`label:NAME[,NAME]`, `search:WORDS` or `issues:1,2,3`; Mistake for anything else."""
    kind, colon, rest = (query or "").partition(":")
    parts = tuple(part.strip() for part in rest.split(",") if part.strip())
    if colon and parts and kind == "label":
        return Labelled(parts)
    if colon and rest.strip() and kind == "search":
        return Searched(rest.strip())
    if colon and parts and kind == "issues":
        numbers = tuple(int(part.removeprefix("#")) for part in parts if _number(part.removeprefix("#")))
        if len(numbers) == len(parts) == len(set(numbers)) <= SINGLY:
            return Listed(numbers)
    raise Mistake("units on GitHub are label:NAME, search:WORDS, or issues:1,2,3 without doubles", field="source")


def _number(part: str) -> bool:
    return part.isascii() and part.isdigit() and 0 < len(part) <= 10 and int(part) > 0


def rows(api: Api, chosen: Selection) -> Iterator[Mapping[str, Any]]:
    """The issues as GitHub tells them, each once, none of them a pull request. Raises Later or Said."""
    match chosen:
        case Labelled(names):
            asked: dict[str, str | int] = {
                "labels": ",".join(names), "state": "all", "sort": "created", "direction": "asc",
            }  # fmt: skip
            found = {
                reading.field(row, "number", int): row for row in api.pages(f"{api.place}/issues", asked, LABELLED)
            }
            yield from (row for _, row in sorted(found.items()) if "pull_request" not in row)
        case Searched(words):
            yield from _each(api, sorted(_numbers(api, words)))
        case Listed(numbers):
            yield from _each(api, numbers)
        case _ as never:
            assert_never(never)


def _numbers(api: Api, words: str) -> set[int]:
    """What a search finds. Its answer may be late, so what an issue is like is asked of the issue itself."""
    asked: dict[str, str | int] = {"q": f"repo:{api.repo} is:issue {words}", "sort": "created", "order": "asc"}
    found = {reading.field(row, "number", int) for row in api.pages("/search/issues", asked, FOUND, "items")}
    if len(found) > SINGLY:
        raise Later(f"the search finds {len(found)} issues; at most {SINGLY} are looked at, ask for fewer")
    return found


def _each(api: Api, numbers: Any) -> Iterator[Mapping[str, Any]]:
    for number in numbers:
        row = one(api, number)
        if row is not None and "pull_request" not in row:
            yield row


def one(api: Api, number: int) -> Mapping[str, Any] | None:
    """One issue; None where there is none any more, or it was moved to another repository."""
    try:
        row = api.get(f"{api.place}/issues/{number}")
    except Said as why:
        if why.status in (404, 410):
            return None
        raise
    if not isinstance(row, Mapping):
        raise Later("GitHub's answer about an issue cannot be read")
    here = reading.text(row, "repository_url").lower().endswith(api.place.lower())
    return row if here and row.get("number") == number else None
