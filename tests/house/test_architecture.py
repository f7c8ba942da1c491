"""ARCHITECTURE.md speaks of the tree as it is.

Every file and directory it names exists, and every room of the package is named. A name in backticks that has a slash
or a known ending is taken for a path: from the top of the tree, or from src/tenuto.
"""

import re

import pytest

SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
ENDINGS = (".py", ".md", ".toml", ".sql", ".js", ".json")
PACKAGE = "src/tenuto/"


def named(text: str) -> set[str]:
    """The paths a text names, without a slash at the end."""
    return {
        span.rstrip("/")
        for span in SPAN.findall(text)
        if PATH.fullmatch(span) and ("/" in span or span.endswith(ENDINGS)) and not span.startswith("/")
    }


def places(tracked: dict[str, bytes]) -> set[str]:
    """Every tracked file and every directory above one, from the top and from the package."""
    paths = set(tracked)
    paths |= {"/".join(path.split("/")[:n]) for path in tracked for n in range(1, path.count("/") + 1)}
    return paths | {path.removeprefix(PACKAGE) for path in paths if path.startswith(PACKAGE)}


def rooms(tracked: dict[str, bytes]) -> set[str]:
    """What stands at the top of the package: its directories and its modules."""
    tops = {path.removeprefix(PACKAGE).split("/")[0] for path in tracked if path.startswith(PACKAGE)}
    return tops - {"__init__.py", "py.typed"}


@pytest.fixture(scope="module")
def told(tracked: dict[str, bytes]) -> str:
    """What the document says."""
    return tracked["ARCHITECTURE.md"].decode("utf-8")


def test_what_it_names_exists(told: str, tracked: dict[str, bytes]) -> None:
    assert not (gone := sorted(named(told) - places(tracked))), f"named and not there: {gone}"


def test_every_room_is_named(told: str, tracked: dict[str, bytes]) -> None:
    assert not (silent := sorted(rooms(tracked) - named(told))), f"these rooms are not spoken of: {silent}"


def test_the_judgement_can_fail(tracked: dict[str, bytes]) -> None:
    assert named("see `core/gone.py`, `attic/`, `tenuto run` and `and/or else`") == {"core/gone.py", "attic"}
    assert "core/gone.py" not in places(tracked)
    assert "model" in rooms(tracked)
