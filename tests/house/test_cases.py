"""The table of field reports: sorted, each report once, and every test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| (D?BR-\d{3}) \| ([a-z_]+) \| (.+) \|")


def rows() -> list[tuple[str, str, str]]:
    lines = (ROOT / "docs" / "reference" / "cases.md").read_text().splitlines()
    table = [line for line in lines if line.startswith(("| BR-", "| DBR-"))]
    found = [match.groups() for line in table if (match := ROW.fullmatch(line))]
    assert len(found) == len(table), f"no rows: {[line for line in table if not ROW.fullmatch(line)]}"
    return [(name, area, told) for name, area, told in found]


def test_each_report_stands_once_and_in_order() -> None:
    names = [name for name, _, _ in rows()]
    assert names == sorted(set(names))
    assert len(names) > 50


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for name, _, told in rows():
        for path, test in re.findall(r"`(tests/\S+?\.py)::(\w+)", told):
            file = ROOT / path
            if not file.is_file() or not re.search(rf"^\s*(?:async )?def {test}\(", file.read_text(), re.MULTILINE):
                missing.append(f"{name}: {path}::{test}")
    assert missing == []


def test_a_row_without_a_test_says_why() -> None:
    bare = [(name, told) for name, _, told in rows() if "::" not in told and len(told) < 25]
    assert [name for name, told in bare if not re.fullmatch(r"As D?BR-\d{3}\.", told)] == []
