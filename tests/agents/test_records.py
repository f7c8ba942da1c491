"""The records of sessions as the programs write them: which is whose, which is newer, and who may go on with one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tenuto.transports import processes
from tenuto.transports.agents.records import Records
from tenuto.transports.agents.sessions import Held
from tenuto.transports.agents.verifying import verified

ONE, TWO = "0a0a0a0a-1111-4222-8333-444444444444", "0b0b0b0b-1111-4222-8333-444444444444"


def claude(home: Path, session: str, cwd: str, at: int, *, says: str | None = None) -> Path:
    file = home / ".claude" / "projects" / cwd.replace("/", "-") / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"type": "mode", "mode": "normal", "sessionId": says or session},
        {"type": "user", "cwd": cwd, "sessionId": says or session, "message": {"role": "user", "content": "words"}},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    os.utime(file, (at, at))
    return file


def codex(home: Path, session: str, cwd: str, at: int, **more: object) -> Path:
    file = home / ".codex" / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T00-00-00-{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    line = {"type": "session_meta", "payload": {"id": session, "cwd": cwd, **more}}
    file.write_text(json.dumps(line) + "\n", "utf-8")
    os.utime(file, (at, at))
    return file


def records(home: Path) -> Records:
    return Records({"HOME": str(home)})


def open_in(home: Path, session: str, pid: int, **more: object) -> None:
    place = home / ".claude" / "sessions"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{pid}.json").write_text(json.dumps({"pid": pid, "sessionId": session, **more}), "utf-8")


@pytest.mark.parametrize("make", [claude, codex])
def test_sessions_are_told_by_what_they_say_of_themselves(tmp_path: Path, make: object) -> None:
    assert callable(make)
    name = make.__name__  # type: ignore[attr-defined]
    make(tmp_path, ONE, "/w", 1000)
    make(tmp_path, TWO, "/w", 2000)
    make(tmp_path, "0c" + ONE[2:], "/elsewhere", 3000)
    found = records(tmp_path).listed(name, "/w")
    assert [(one.session, one.newer) for one in found] == [(TWO, None), (ONE, TWO)]
    assert len(records(tmp_path).listed(name, None)) == 3
    one = records(tmp_path).found(name, ONE)
    assert one is not None
    assert one.newer == TWO
    assert records(tmp_path).found(name, "nothing") is None
    assert records(tmp_path).found(name, "../" + ONE) is None


def test_what_says_something_else_of_itself_is_no_record(tmp_path: Path) -> None:
    claude(tmp_path, ONE, "/w", 1000, says=TWO)
    (codex(tmp_path, ONE, "/w", 1000)).write_text("no json\n", "utf-8")
    codex(tmp_path, TWO, "/w", 1000, source={"subagent": "review"})
    assert records(tmp_path).listed("claude", None) == ()
    assert records(tmp_path).listed("codex", None) == ()
    assert records(tmp_path).listed("gemini", None) == ()


def test_br_219_a_session_of_another_directory_is_not_gone_on_with(tmp_path: Path) -> None:
    claude(tmp_path, ONE, "/elsewhere", 1000)
    told = verified(records(tmp_path), "claude", Held("c", ONE, True), "/w", adopted=False)
    assert told == f"session {ONE} belongs to /elsewhere and not to /w"


def test_br_216_having_a_name_is_no_proof_that_the_session_is_there(tmp_path: Path) -> None:
    told = verified(records(tmp_path), "claude", Held("c", ONE, True), "/w", adopted=True)
    assert told == f"the record of session {ONE} is not there any more"


def test_one_that_was_adopted_gives_way_to_a_newer_one_and_ours_do_not(tmp_path: Path) -> None:
    claude(tmp_path, ONE, "/w", 1000)
    claude(tmp_path, TWO, "/w", 2000)
    told = verified(records(tmp_path), "claude", Held("c", ONE, True), "/w", adopted=True)
    assert isinstance(told, str)
    assert TWO in told
    assert verified(records(tmp_path), "claude", Held("c", ONE, True), "/w", adopted=False) is None


def test_who_has_it_open_is_believed_only_while_that_very_process_is_there(tmp_path: Path) -> None:
    claude(tmp_path, ONE, "/w", 1000)
    me = processes.identity_of(os.getpid())
    assert me is not None
    open_in(tmp_path, ONE, os.getpid(), procStart=str(me.start))
    assert verified(records(tmp_path), "claude", Held("c", ONE, True), "/w", adopted=True) == os.getpid()
    open_in(tmp_path, ONE, os.getpid(), procStart="1")
    assert verified(records(tmp_path), "claude", Held("c", ONE, True), "/w", adopted=True) is None


def test_a_record_that_somebody_holds_open_is_in_use(tmp_path: Path) -> None:
    file = codex(tmp_path, ONE, "/w", 1000)
    assert records(tmp_path).running("codex", ONE) is None
    with file.open("ab"):
        assert records(tmp_path).running("codex", ONE) == os.getpid()


def test_our_marker_counts_only_where_it_was_given_to_the_agent(tmp_path: Path) -> None:
    file = claude(tmp_path, ONE, "/w", 1000)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps({"type": "assistant", "message": {"content": "[tenuto:c-1]"}}) + "\n")
    assert not records(tmp_path).holds("claude", ONE, "[tenuto:c-1]")
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps({"type": "user", "message": {"content": "Stop hook feedback:\n[tenuto:c-1]"}}) + "\n")
    assert records(tmp_path).holds("claude", ONE, "[tenuto:c-1]")
