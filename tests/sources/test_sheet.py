"""What is kept of a queue file is what the file says: a sheet that was changed is the sheet of the bytes it became."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.model.chain import Hold, Outcome, Record, Recorded, UnitState
from tenuto.model.faults import Mistake
from tenuto.sources.queue import QueueFile
from tenuto.sources.sheet import KEPT, KEPT_BYTES, Kept, Sheet, Unreadable, sheet

TEXT = st.text(max_size=20)
MORE = st.dictionaries(TEXT.filter(lambda name: name not in ("version", "units", "id", "state")), TEXT, max_size=3)
ROW = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from([one.value for one in UnitState]),
        "title": TEXT, "attempts": st.integers(0, 30), "claimed_by": TEXT, "evidence": TEXT,
    },
)  # fmt: skip


def same(one: Sheet, other: Sheet) -> None:
    assert (one.rows, one.lines, one.plain, one.document) == (other.rows, other.lines, other.plain, other.document)
    assert (one.revision, one.board) == (other.revision, other.board)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ROW, min_size=1, max_size=6), MORE, st.lists(st.tuples(st.integers(0, 5), ROW), max_size=4), st.booleans()
)
def test_a_changed_sheet_is_the_sheet_of_its_bytes(
    rows: list[dict[str, Any]], more: dict[str, Any], changes: list[tuple[int, dict[str, Any]]], looked: bool
) -> None:
    document = {"version": 1, **more, "units": [{"id": f"u{n}", **row} for n, row in enumerate(rows)]}
    now = sheet(json.dumps(document).encode())
    for place, row in changes:
        if looked:
            assert now.board.units
        now = now.changed({"id": f"u{place % len(rows)}", **row})
        same(now, sheet(now.raw))
    told = json.loads(now.raw)
    assert {name: told[name] for name in more} == more, "what is not ours is carried along"


def test_a_row_is_given_to_be_changed_and_a_sheet_stays_as_it_is() -> None:
    now = sheet(b'{"version": 1, "units": [{"id": "a"}]}')
    row = now.row("a")
    assert row is not None
    row["state"] = "done"
    assert now.board.units[0].state is UnitState.ELIGIBLE
    assert now.row("b") is None


def test_a_half_of_a_pair_is_no_reason_to_write_nothing() -> None:
    now = sheet(b'{"version": 1, "units": [{"id": "a", "title": "\\ud800"}]}').changed({"id": "a", "title": "\ud800"})
    same(now, sheet(now.raw))


def test_bytes_decide_and_not_the_name_of_a_file() -> None:
    kept = Kept()
    first = kept.of("q", b'{"version": 1, "units": [{"id": "a"}]}')
    assert kept.of("q", b'{"version": 1, "units": [{"id": "a"}]}') is first
    assert kept.of("q", b'{"version": 1, "units": [{"id": "b"}]}').row("b") is not None
    with pytest.raises(Unreadable):
        kept.of("q", b"[]")


def test_few_files_are_kept_and_none_that_is_large() -> None:
    kept = Kept()
    sheets = [kept.of(f"q{n}", b'{"version": 1, "units": []}') for n in range(KEPT + 1)]
    assert kept.of(f"q{KEPT}", b'{"version": 1, "units": []}') is sheets[-1]
    assert kept.of("q0", b'{"version": 1, "units": []}') is not sheets[0], "the oldest was forgotten"
    large = json.dumps({"version": 1, "units": [], "more": "x" * KEPT_BYTES}).encode()
    assert kept.of("large", large) is not kept.of("large", large)


def test_an_edit_between_two_writes_of_ours_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    path.write_text(json.dumps({"version": 1, "units": [{"id": "a"}, {"id": "b"}]}))
    queue = QueueFile(path)
    assert isinstance(queue.claim(Hold("a", "me")), Recorded)
    before = queue.read().revision
    edited = json.loads(path.read_text())
    edited["units"][1]["state"] = "done"
    path.write_text(json.dumps(edited))
    assert queue.read().revision != before
    done = queue.record(Record("a", Outcome.DONE, "abc", None, 1, "marker", "me"))
    assert isinstance(done, Recorded)
    assert [unit.state for unit in queue.read().units] == [UnitState.DONE] * 2
    assert done.revision == QueueFile(path).read().revision


def test_a_bad_row_of_somebody_else_stops_nobody_but_who_reads_all(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    path.write_text(json.dumps({"version": 1, "units": [{"id": "a"}, {"id": "b", "state": "strange"}]}))
    queue = QueueFile(path)
    with pytest.raises(Mistake, match="strange"):
        queue.read()
    assert isinstance(queue.claim(Hold("a", "me")), Recorded)
