"""One suite over the sources of units: read in order, recorded once per marker, and never over somebody else's word."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tenuto.config import UnitRows
from tenuto.model.chain import Blocker, Foreign, Hold, Outcome, OutOfOrder, Record, Recorded, SourcePlace, UnitState
from tenuto.model.faults import Mistake
from tenuto.ports import UnitSource
from tenuto.sources.attempts import AttemptsLog
from tenuto.sources.finding import SourceFinder
from tenuto.sources.queue import QueueFile
from tenuto.sources.rows import SqlRows

BLOCKER = Blocker("me", "the key --> here", 'it is "there"')
LIST = "SELECT id, state, title, evidence, attempts, blocker, recorded_by, claimed_by FROM unit ORDER BY place"
RECORD = """UPDATE unit SET state = :state, evidence = :evidence, attempts = :attempts, blocker = :blocker,
    recorded_by = :marker, claimed_by = NULL WHERE id = :unit AND state <> 'done'"""
CLAIM = "UPDATE unit SET claimed_by = :by WHERE id = :unit AND claimed_by IS :over"


def queue(folder: Path) -> UnitSource:
    path = folder / "queue.json"
    path.write_text(json.dumps({"version": 1, "kept": 7, "units": [{"id": name} for name in "abc"]}))
    return QueueFile(path)


def log(folder: Path) -> UnitSource:
    path = folder / "units.txt"
    path.write_text("# units\na\tthe first\nb\nc\n")
    return AttemptsLog(path)


def rows(folder: Path) -> UnitSource:
    path = folder / "units.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE unit (id TEXT PRIMARY KEY, place INT, state TEXT DEFAULT 'eligible', title TEXT, "
            "evidence TEXT, attempts INT, blocker TEXT, recorded_by TEXT, claimed_by TEXT)"
        )
        connection.executemany("INSERT INTO unit (id, place) VALUES (?, ?)", [("a", 1), ("b", 2), ("c", 3)])
    connection.close()
    return SqlRows(f"sqlite:///{path}", LIST, RECORD, CLAIM)


SOURCES = pytest.mark.parametrize("make", [queue, log, rows])
Make = Callable[[Path], UnitSource]


def done(unit: str, marker: str) -> Record:
    return Record(unit, Outcome.DONE, "abc", None, 1, marker)


@SOURCES
def test_a_record_stands_once_and_moves_the_revision(make: Make, tmp_path: Path) -> None:
    source = make(tmp_path)
    before = source.read()
    assert [unit.id for unit in before.units] == ["a", "b", "c"]
    first = source.record(done("a", "m1"))
    after = source.read()
    assert first == Recorded(after.revision)
    assert after.revision != before.revision
    assert after.units[0].state is UnitState.DONE
    assert source.record(done("a", "m1")) == first, "the same marker again is the same record"
    assert source.read() == after
    other = source.record(done("a", "m2"))
    assert isinstance(other, Foreign)
    assert source.read() == after


@SOURCES
def test_a_blocker_comes_back_and_a_failed_attempt_is_counted(make: Make, tmp_path: Path) -> None:
    source = make(tmp_path)
    source.record(Record("b", Outcome.BLOCKED, None, BLOCKER, 1, "m1"))
    source.record(Record("c", Outcome.FAILED, "why", None, 2, "m2"))
    _, blocked, failed = source.read().units
    assert (blocked.state, blocked.blocker) == (UnitState.BLOCKED, BLOCKER)
    assert (failed.state, failed.attempts) == (UnitState.ELIGIBLE, 2)
    assert isinstance(source.record(done("nowhere", "m3")), Foreign)


@SOURCES
def test_a_claim_is_one_names_and_no_progress(make: Make, tmp_path: Path) -> None:
    source = make(tmp_path)
    before = source.read()
    mine = Hold("a", "mine")
    assert source.claim(mine) == source.claim(mine) == Recorded(before.revision), "once for one name"
    held = source.read()
    assert (held.units[0].state, held.units[0].claimed_by) == (UnitState.IN_FLIGHT, "mine")
    assert held.revision == before.revision
    assert isinstance(source.claim(Hold("a", "other")), Foreign)
    assert isinstance(source.record(done("a", "m1")), Foreign), "what somebody has is not recorded by another"
    assert isinstance(source.claim(Hold("a", "other", frozenset({"mine"}))), Recorded), "from a hold that is over"
    assert isinstance(source.claim(mine), Foreign)
    given = Record("a", Outcome.GIVEN_UP, None, None, 1, "m2", claim="other")
    assert source.record(given) == source.record(given) == Recorded(before.revision), "given back, nothing has moved"
    free = source.read()
    assert (free.units[0].state, free.units[0].claimed_by, free.revision) == (
        UnitState.ELIGIBLE, None, before.revision,
    )  # fmt: skip
    assert isinstance(source.claim(mine), Recorded)
    assert isinstance(source.record(replace(done("a", "m3"), claim="mine")), Recorded)
    after = source.read()
    assert (after.units[0].state, after.units[0].claimed_by) == (UnitState.DONE, None)
    assert after.revision != before.revision
    assert isinstance(source.claim(mine), Foreign)
    assert isinstance(source.claim(Hold("nowhere", "mine")), Foreign)


@SOURCES
def test_of_many_that_claim_at_once_one_has_it(make: Make, tmp_path: Path) -> None:
    source = make(tmp_path)
    answers: list[object] = []

    def claim(name: str) -> None:
        for _ in range(200):
            answer = source.claim(Hold("b", name))
            if not isinstance(answer, OutOfOrder):
                answers.append(answer)
                return

    threads = [threading.Thread(target=claim, args=(f"n{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(type(answer).__name__ for answer in answers) == ["Foreign"] * 7 + ["Recorded"]


def test_rows_without_a_statement_that_claims_keep_none(tmp_path: Path) -> None:
    rows(tmp_path)
    plain = SqlRows(f"sqlite:///{tmp_path}/units.sqlite", LIST, RECORD)
    assert plain.claim(Hold("a", "mine")) is None
    assert plain.read().units[0].state is UnitState.ELIGIBLE


@SOURCES
def test_many_at_once_lose_nothing(make: Make, tmp_path: Path) -> None:
    source = make(tmp_path)
    answers: dict[str, object] = {}

    def record(unit: str) -> None:
        for _ in range(200):
            answers[unit] = source.record(done(unit, f"m-{unit}"))
            if not isinstance(answers[unit], OutOfOrder):
                return

    threads = [threading.Thread(target=record, args=(unit,)) for unit in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {type(answer) for answer in answers.values()} == {Recorded}
    assert [unit.state for unit in source.read().units] == [UnitState.DONE] * 3


def test_a_queue_keeps_what_is_not_ours_and_refuses_what_is_no_queue(tmp_path: Path) -> None:
    source = queue(tmp_path)
    path = tmp_path / "queue.json"
    path.chmod(0o640)
    source.record(done("a", "m1"))
    assert json.loads(path.read_text())["kept"] == 7
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == [".queue.json.lock", "queue.json"]
    for text in ("{", "[]", '{"version": 2, "units": []}', '{"version": 1, "units": [{"id": "a"}, {"id": "a"}]}'):
        path.write_text(text)
        with pytest.raises(Mistake):
            source.read()
        assert isinstance(source.record(done("a", "m2")), OutOfOrder)
        assert path.read_text() == text
    path.write_text('{"version": 1, "units": [{"id": "a", "state": "perhaps"}]}')
    assert isinstance(source.record(done("a", "m2")), OutOfOrder)


def test_a_line_that_was_cut_off_is_no_line(tmp_path: Path) -> None:
    source = log(tmp_path)
    source.record(done("a", "m1"))
    path = tmp_path / "units.txt.log.jsonl"
    with path.open("a") as file:
        file.write('{"unit": "b", "outcome": "do')
    assert source.read().units[1].state is UnitState.ELIGIBLE
    source.record(done("b", "m2"))
    assert [unit.state for unit in source.read().units[:2]] == [UnitState.DONE] * 2


def test_a_statement_that_changes_too_much_is_undone(tmp_path: Path) -> None:
    rows(tmp_path)
    greedy = SqlRows(
        f"sqlite:///{tmp_path}/units.sqlite", LIST, "UPDATE unit SET state = :state, recorded_by = :marker"
    )
    assert isinstance(greedy.record(done("a", "m1")), OutOfOrder)
    assert [unit.state for unit in greedy.read().units] == [UnitState.ELIGIBLE] * 3


def test_sources_are_found_by_their_place_and_no_url_is_shown(tmp_path: Path) -> None:
    place = UnitRows(f"sqlite:///{tmp_path}/units.sqlite?secret=s3cret", LIST, RECORD)
    finder = SourceFinder({"mine": place})
    assert "s3cret" not in repr(place)
    assert isinstance(finder.open(SourcePlace("sql", "mine")), SqlRows)
    for bad in (SourcePlace("sql", "other"), SourcePlace("queue", "relative.json"), SourcePlace("else", "/x")):
        with pytest.raises(Mistake):
            finder.open(bad)
    names = {finder.name(SourcePlace("queue", f"{tmp_path}/{way}")) for way in ("q.json", "./q.json", "x/../q.json")}
    assert len(names) == 1
