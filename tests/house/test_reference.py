"""The reference pages say what the code says, and a page that does not is noticed.

The pages are made by scripts/reference.py from the code and from words beside them; here they are made again and
compared, and the words are harmed one by one to see each harm refused.
"""

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tenuto.model.evidence import Mark
from tenuto.transports.host import journal

AREAS = {"EC": 22, "SC": 20, "SV": 23, "BX": 16}
PAGES = ("features", "policy", "events", "storage", "config", "wire")


@pytest.fixture(scope="module")
def reference(root: Path) -> ModuleType:
    """The maker of pages, imported from where it lies."""
    found = importlib.util.spec_from_file_location("reference", root / "scripts" / "reference.py")
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules["reference"] = made
    found.loader.exec_module(made)
    return made


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_what_the_code_says(reference: ModuleType, root: Path, name: str) -> None:
    stands = (root / "docs" / "reference" / f"{name}.md").read_text("utf-8")
    assert stands == reference.page_of(name), "run scripts/reference.py and look at what it changed"


def test_no_page_is_left_out(reference: ModuleType) -> None:
    assert tuple(reference.MAKERS) == PAGES


def test_every_feature_row_is_there(reference: ModuleType) -> None:
    rows = [row["id"] for row in reference.words_of("features")["row"]]
    assert rows == [f"{area}-{number:02}" for area, count in AREAS.items() for number in range(1, count + 1)]


def without_row(words: dict[str, Any]) -> None:
    del words["row"][3]


def row_twice(words: dict[str, Any]) -> None:
    words["row"].append(words["row"][0])


def works_unproved(words: dict[str, Any]) -> None:
    words["row"][0] |= {"state": "works", "tests": []}


def proved_by_no_file(words: dict[str, Any]) -> None:
    words["row"][0] |= {"tests": ["tests/house/test_nothing.py::test_it"]}


def proved_by_no_name(words: dict[str, Any]) -> None:
    words["row"][0] |= {"tests": ["tests/house/test_links.py::test_that_nobody_wrote"]}


def proved_by_no_case(words: dict[str, Any]) -> None:
    words["row"][0] |= {
        "tests": ["tests/house/test_reference.py::test_every_page_is_what_the_code_says[" + "nobody played this]"]
    }


def module_of_no_file(words: dict[str, Any]) -> None:
    words["row"][0] |= {"modules": ["core/nothing.py"]}


def unknown_state(words: dict[str, Any]) -> None:
    words["row"][0] |= {"state": "almost"}


def number_forgotten(words: dict[str, Any]) -> None:
    del words["turn_limit"]


def number_invented(words: dict[str, Any]) -> None:
    words["patience"] = {"bounds": "", "reason": ""}


def kind_forgotten(words: dict[str, Any]) -> None:
    del words["wake"]["added"]


def data_forgotten(words: dict[str, Any]) -> None:
    words["attempt"]["armed"]["data"].remove("number")


def column_forgotten(words: dict[str, Any]) -> None:
    words["tables"]["text"]["columns"]["own"].remove("body")


def column_twice(words: dict[str, Any]) -> None:
    words["tables"]["text"]["columns"]["coarse"].append("body")


def table_forgotten(words: dict[str, Any]) -> None:
    del words["tables"]["hold"]


def key_forgotten(words: dict[str, Any]) -> None:
    del words["keys"]["slots"]


def variable_forgotten(words: dict[str, Any]) -> None:
    del words["variables"]["TENUTO_TOKEN"]


HARMS: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("features", without_row, "EC-04"),
    ("features", row_twice, "twice"),
    ("features", works_unproved, "no test proves it"),
    ("features", proved_by_no_file, "test_nothing"),
    ("features", proved_by_no_name, "test_that_nobody_wrote"),
    ("features", proved_by_no_case, "nobody played"),
    ("features", module_of_no_file, "core/nothing.py"),
    ("features", unknown_state, "almost"),
    ("policy", number_forgotten, "turn_limit"),
    ("policy", number_invented, "patience"),
    ("events", kind_forgotten, "wake.added"),
    ("events", data_forgotten, "number"),
    ("storage", column_forgotten, "body"),
    ("storage", column_twice, "two reasons"),
    ("storage", table_forgotten, "hold"),
    ("config", key_forgotten, "slots"),
    ("config", variable_forgotten, "TENUTO_TOKEN"),
]


@pytest.mark.parametrize(("name", "harm", "told"), HARMS, ids=[harm.__name__ for _, harm, _ in HARMS])
def test_words_that_do_not_fit_are_refused(
    reference: ModuleType, name: str, harm: Callable[[dict[str, Any]], None], told: str
) -> None:
    words = reference.words_of(name)
    harm(words)
    with pytest.raises(reference.Disagreement, match=re.escape(told)):
        reference.MAKERS[name](words)


def test_the_journal_page_shows_the_marks_and_their_order(root: Path) -> None:
    page = (root / "docs" / "reference" / "journal.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    shown = {mark for row in rows if len(row) == 4 for mark in re.findall(r"^`(\w+)`$", row[0])}
    assert shown == {mark.value for mark in Mark} - {Mark.NONE.value, Mark.DAMAGED.value}
    order = {
        mark: set(re.findall(r"`(\w+)`", row[1]))
        for row in rows
        if len(row) == 2
        for mark in (re.findall(r"`(\w+)`", row[0]) or [row[0]])
        if mark in {*shown, "nothing"}
    }
    assert order == {
        mark.value if mark is not Mark.NONE else "nothing": {after.value for after in follow}
        for mark, follow in journal.AFTER.items()
    }
