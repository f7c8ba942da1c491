"""The table of field reports: all of them, each once; every test it names is there, every reason says something."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| (D?BR-\d{3}) \| ([a-z_]+) \| (.+) \|")
NAMED = re.compile(r"`(tests/[^`:]+?\.\w+)(?:::(\w+)(?:\[([^`]+)\])?)?`")
SAME = re.compile(r"As (D?BR-\d{3})\b")
#: The numbers of the reports by area, and the collection that they come from, where it lies beside this checkout.
LIST = ROOT / "tests" / "data" / "field-reports.toml"
COLLECTION = ROOT.parent / "shared" / "cases"
#: Areas of rows that are not built: their reports are judged when the row is.
LATER = {"notification": "BX-09"}


def rows() -> list[tuple[str, str, str]]:
    lines = (ROOT / "docs" / "reference" / "cases.md").read_text().splitlines()
    table = [line for line in lines if line.startswith(("| BR-", "| DBR-"))]
    found = [match.groups() for line in table if (match := ROW.fullmatch(line))]
    assert len(found) == len(table), f"no rows: {[line for line in table if not ROW.fullmatch(line)]}"
    return [(name, area, told) for name, area, told in found]


def reports() -> dict[str, str]:
    """The area of every report."""
    listed = tomllib.loads(LIST.read_text("utf-8"))
    return {name: area for area, names in listed.items() for name in names}


@cache
def held_by(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The tests that a file has, and all texts in it, of which the name of a case is one."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    tests = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(name for name in tests if name.startswith("test_")), frozenset(texts)


def test_each_report_stands_once_and_in_order() -> None:
    names = [name for name, _, _ in rows()]
    assert names == sorted(set(names))
    assert len(names) > 50


def test_every_report_of_an_area_that_is_built_has_its_row() -> None:
    features = tomllib.loads((ROOT / "docs" / "reference" / "features.toml").read_text("utf-8"))["row"]
    states = {row["id"]: row["state"] for row in features}
    left = {area for area, row in LATER.items() if states[row] == "not yet"}
    told = {name: area for name, area, _ in rows()}
    assert {name: area for name, area in reports().items() if area not in left} == told


def test_the_list_of_reports_is_the_collections_own() -> None:
    """Nothing is compared where the collection is not there; the list itself is."""
    given: dict[str, str] = {}
    for path in sorted(COLLECTION.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            report = json.loads(line)
            given[report["id"]] = report.get("area", "chat_page")
    known = reports()
    assert len(known) == 240
    assert given in ({}, known)


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for name, _, told in rows():
        for path, test, case in NAMED.findall(told):
            file = ROOT / path
            if not test:
                missing.append(f"{name}: {path} without a test")
            elif not file.is_file() or test not in held_by(file)[0] or (case and case not in held_by(file)[1]):
                missing.append(f"{name}: {path}::{test} {case}".strip())
    assert missing == []


def test_a_row_without_a_test_says_why() -> None:
    """And one that is as another names one that says it itself."""
    known = {name: told for name, _, told in rows()}
    for name, told in known.items():
        if "::" in told:
            continue
        as_ = SAME.match(told)
        assert as_ is not None or len(told) >= 40, (name, told)
        assert as_ is None or not SAME.match(known[as_[1]]), (name, "as one that is as another")


def test_every_path_that_is_named_is_in_the_form_that_is_looked_at() -> None:
    for name, _, told in rows():
        assert told.count("tests/") == len(NAMED.findall(told)), (name, told)
