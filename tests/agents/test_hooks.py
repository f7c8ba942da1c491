"""Hooks in a user's settings: what stands there stays, what is ours comes out again, and a call never harms anybody."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.engine.calling import Caller
from tenuto.model.faults import Mistake
from tenuto.transports.hooks import calls, installing, settings
from tenuto.wiring.hooked import Hooked

CLAUDE = settings.KINDS["claude"]
LINE = settings.command(sys.executable, "claude", "0123abcd", None)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
OTHERS = {
    "model": "opus",
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify-me"}]}], "PreToolUse": [{"matcher": "Bash"}]},
}


def installed(file: Path, records: Path, mark: str = "0123abcd") -> None:
    line = settings.command(sys.executable, "claude", mark, None)
    installing.carry_out(installing.install(CLAUDE, file, line, mark), records)


@pytest.mark.parametrize(
    "before",
    [None, b"", b"{}\n", b'{"model": "opus"}', json.dumps(OTHERS, indent=4).encode(), b'{\n\t"a": "\xc3\xa4"\n}\n\n'],
)
def test_a_file_becomes_byte_for_byte_what_it_was(tmp_path: Path, before: bytes | None) -> None:
    file, records = tmp_path / "home" / "settings.json", tmp_path / "records"
    file.parent.mkdir()
    if before is not None:
        file.write_bytes(before)
        file.chmod(0o640)
    installed(file, records)
    installed(file, records, "89abcdef")  # twice: ours of before are replaced
    assert settings.marks(file.read_bytes()) == ("89abcdef",)
    told = json.loads(file.read_bytes())
    assert all(event in told["hooks"] for event in CLAUDE.events)
    if before is not None:
        assert file.stat().st_mode & 0o777 == 0o640
    change = installing.remove(file, records)
    assert change is not None
    assert change.exact
    installing.carry_out(change, records)
    assert (file.read_bytes() if file.exists() else None) == before
    assert list(records.iterdir()) == []


def test_what_the_user_has_stays_and_what_was_added_since_too(tmp_path: Path) -> None:
    file, records = tmp_path / "settings.json", tmp_path / "records"
    file.write_text(json.dumps(OTHERS), "utf-8")
    installed(file, records)
    told = json.loads(file.read_bytes())
    assert told["hooks"]["Stop"][0] == OTHERS["hooks"]["Stop"][0]  # type: ignore[index]
    told["theme"] = "dark"
    told["hooks"]["Stop"][1]["hooks"].append({"type": "command", "command": "mine too"})
    file.write_text(json.dumps(told), "utf-8")
    change = installing.remove(file, records)
    assert change is not None
    assert not change.exact
    installing.carry_out(change, records)
    left = json.loads(file.read_bytes())
    assert left["theme"] == "dark"
    assert left["model"] == "opus"
    assert left["hooks"]["PreToolUse"] == [{"matcher": "Bash"}]
    assert [hook["command"] for entry in left["hooks"]["Stop"] for hook in entry["hooks"]] == ["notify-me", "mine too"]
    assert installing.remove(file, records) is None


@pytest.mark.parametrize("broken", [b"{", b"[]", b'{"hooks": []}', b'{"hooks": {"Stop": {}}}', b'{"a": 1} // mine'])
def test_what_is_not_understood_is_left_alone(tmp_path: Path, broken: bytes) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(broken)
    with pytest.raises(Mistake):
        installing.install(CLAUDE, file, LINE, "0123abcd")
    assert file.read_bytes() == broken


def test_a_change_that_was_not_shown_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b"{}")
    change = installing.install(CLAUDE, file, LINE, "0123abcd")
    file.write_bytes(b'{"new": 1}')
    with pytest.raises(Mistake, match="meanwhile"):
        installing.carry_out(change, tmp_path / "records")
    assert file.read_bytes() == b'{"new": 1}'


NAMES = st.sampled_from(["Stop", "PreToolUse", "SessionStart"])
HOOKS = st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=8)}), max_size=2)
ENTRIES = st.lists(st.fixed_dictionaries({"hooks": HOOKS}), max_size=2)


@given(st.dictionaries(NAMES, ENTRIES, max_size=3), st.dictionaries(st.text(max_size=4), st.integers(), max_size=2))
def test_taking_out_what_was_put_in_leaves_what_was_there(hooks: dict[str, object], others: dict[str, object]) -> None:
    before = {**{name: value for name, value in others.items() if name != "hooks"}, "hooks": hooks}
    raw = json.dumps(before).encode()
    left = json.loads(settings.taken(settings.put(raw, CLAUDE.events, LINE)) or b"")
    kept = {event: rows for event, rows in hooks.items() if rows}
    assert left == {
        **{name: value for name, value in before.items() if name != "hooks"},
        **({"hooks": kept} if kept else {}),
    }


def payload(**more: object) -> bytes:
    return json.dumps({"hook_event_name": "Stop", "session_id": "s-1", "cwd": "/w", **more}).encode()


def test_only_names_are_read_of_a_call() -> None:
    found = calls.read("claude", payload(last_assistant_message="words", stop_hook_active=True))
    assert found == (calls.Call("claude", "Stop", "s-1", "/w", again=True), "words")
    sub = calls.read("claude", payload(agent_id="a-1"))
    assert sub is not None
    assert sub[0].sub
    for wrong in (b"", b"[]", b"{", payload(session_id="../x"), payload(session_id=3), b"[" * 100_000):
        assert calls.read("claude", wrong) is None


def called(home: Path, raw: bytes, *, within: float = 30.0, **environ: str) -> tuple[str, float]:
    """What a hook prints when it is called as a program calls it, and how long it took."""
    begun = time.monotonic()
    line = settings.command(sys.executable, "claude", "0123abcd", home)
    done = subprocess.run(
        ["/bin/sh", "-c", line], input=raw, capture_output=True, timeout=within, check=False,
        env={"PATH": os.defpath, **environ},
    )  # fmt: skip
    assert done.returncode == 0
    return done.stdout.decode(), time.monotonic() - begun


def test_without_a_supervisor_a_word_is_left_and_nothing_is_said(tmp_path: Path) -> None:
    assert called(tmp_path, payload())[0] == ""
    place = tmp_path / "state" / "hooks"
    assert calls.called(place, "0123abcd") is not None
    ((_, left),) = calls.waiting(place)
    assert left == calls.Call("claude", "Stop", "s-1")
    for raw in (b"", b"no json", payload(agent_id="sub"), payload(hook_event_name="SubagentStop")):
        assert called(tmp_path, raw)[0] == ""
    assert called(tmp_path, payload(), TENUTO_ATTEMPT="a-1")[0] == "", "a turn of ours tells more by its channel"
    assert len(calls.waiting(place)) == 1


def test_it_ends_well_where_nothing_is_as_it_should_be(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("nonsense = [", "utf-8")
    assert called(tmp_path, payload())[0] == ""
    (tmp_path / "elsewhere").write_text("a file", "utf-8")
    assert called(tmp_path / "elsewhere", payload())[0] == ""
    gone = settings.command("/nowhere/python", "claude", "0123abcd", None)
    assert subprocess.run(["/bin/sh", "-c", gone], input=b"", check=False, timeout=20).returncode == 0


def test_somebody_who_never_answers_does_not_hold_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "operator.token").write_text("a-token", "ascii")
    place = state / calls.socket_name("s-1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        here = os.open(state, os.O_RDONLY)
        try:
            silent.bind(f"/proc/self/fd/{here}/{place.name}")
        finally:
            os.close(here)
        silent.listen(4)
        held: list[socket.socket] = []
        taking = threading.Thread(target=lambda: held.append(silent.accept()[0]), daemon=True)
        taking.start()
        said, took = called(tmp_path, payload(), within=60.0)
        assert said == ""
        assert took < 30
        for one in held:
            one.close()


def test_words_are_left_in_a_bounded_place(tmp_path: Path) -> None:
    call = calls.Call("claude", "Stop", "s-1")
    for number in range(calls.WAITING + 5):
        calls.leave(tmp_path, call, NOW.replace(microsecond=number))
    assert len(calls.waiting(tmp_path)) == calls.WAITING


async def test_words_that_were_left_are_heard_once(tmp_path: Path) -> None:
    heard: list[tuple[str, str, str]] = []

    async def told(_: Caller, adapter: str, event: str, session: str) -> None:
        heard.append((adapter, event, session))

    calls.leave(tmp_path, calls.Call("claude", "Stop", "s-1"), NOW)
    calls.leave(tmp_path, calls.Call("claude", "Stop", "s-2", sub=True), NOW.replace(second=1))
    (tmp_path / "waiting" / "z.json").write_text("no word", "utf-8")
    hooked = Hooked(tmp_path, told)
    assert await hooked.hear() == 1
    assert await hooked.hear() == 0
    assert heard == [("claude", "Stop", "s-1")]
