"""The doctor's look outside: each thing that can be wrong is told with its mend, and nothing is changed by looking."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import pytest
from tests.support.world import NOW, OPERATOR, world

from tenuto import config
from tenuto.config import PageWitnessAt, Settings
from tenuto.surfaces.cli.entrances import Check
from tenuto.wiring import examining, probing
from tenuto.wiring.entrances import RealEntrances

DATA = Path(__file__).parent.parent / "data" / "localshell"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith(("TENUTO_", "LOCAL_SHELL_"))]:
        monkeypatch.delenv(name)
    return replace(config.load({"TENUTO_HOME": str(tmp_path)}), state=tmp_path / "state")


def told(settings: Settings) -> dict[str, Check]:
    found = {check.name: check for check in examining.checks(settings)}
    assert all(check.mend for check in found.values() if check.ok is False), "what is wrong has a mend"
    return found


def test_an_empty_home_is_well(settings: Settings) -> None:
    found = told(settings)
    assert not [check for check in found.values() if check.ok is False]
    assert found["tool servers"].found == "none is known here"
    assert "descriptors" in found
    assert "processes" in found


def test_too_many_slots_for_the_descriptors(settings: Settings) -> None:
    """BR-210, BR-208: what the machine allows is compared with what could be needed."""
    found = told(replace(settings, slots=10_000_000))
    assert found["descriptors"].ok is False
    assert "ulimit" in found["descriptors"].mend


def test_tool_servers_are_looked_into(settings: Settings, tmp_path: Path) -> None:
    state = tmp_path / "lsm"
    named = replace(settings, tool_servers={"mine": state})
    assert told(named)["tool server mine"].ok is False
    (state / "sessions").mkdir(parents=True)
    assert told(named)["tool server mine"].ok
    session = state / "sessions" / f"s_{'1' * 24}.json"
    shutil.copy(DATA / "session-v1.json", session)
    assert told(named)["tool server mine"].found.startswith("1 sessions")
    session.write_text(json.dumps(json.loads(session.read_text()) | {"version": 9}))
    found = told(named)["tool server mine"]
    assert found.ok is False
    assert "version" in found.found
    session.write_text("{")
    assert told(named)["tool server mine"].ok is False


async def test_the_registry_is_compared_with_what_is_there(settings: Settings, tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        task, _command = await it.doubted()
        it.clock.time = it.clock.time.replace(year=2999)
        await it.desk.hold(OPERATOR)
    found = told(replace(settings, database=str(tmp_path / "state" / "registry.sqlite3")))
    assert found["commands"].ok is False
    assert found["commands"].mend == "tenuto attention"
    assert found["clock"].ok is False
    assert found["directories"].ok
    assert found["agent programs"].ok
    assert task


async def test_a_line_that_is_full_and_journals_that_nobody_knows_are_named(settings: Settings, tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.create()
        registry = it.ledger.registry().id
    named = replace(settings, database=str(tmp_path / "state" / "registry.sqlite3"))
    assert told(named)["queue"].ok
    assert told(named)["journals"].found == "each is known"
    full = told(replace(named, policy=replace(named.policy, pending_tasks=0)))["queue"]
    assert (full.ok, full.found) == (False, "0 of at most 0 spawned tasks wait for a slot")
    named.journal.mkdir(parents=True, exist_ok=True)
    name = "c-00000000000000000000000001"
    began = {
        "v": 1,
        "mark": "claimed",
        "registry": registry,
        "epoch": 1,
        "kind": "turn",
        "attempt": "a-1",
        "host": None,
    }
    (named.journal / f"{name}.jsonl").write_text(json.dumps({**began, "command": name}) + "\n")
    strange = told(named)["journals"]
    assert strange.ok is False
    assert "attention" in strange.mend


def test_a_witness_of_pages_that_cannot_look_is_named(settings: Settings, tmp_path: Path) -> None:
    nowhere = f"unix:path={tmp_path}/none"
    at = {"desk": PageWitnessAt("accessibility", nowhere), "web": PageWitnessAt("devtools", "127.0.0.1:9")}
    found = told(replace(settings, page_witnesses=at))
    for name in ("desk", "web"):
        assert found[f"page witness {name}"].ok is False
        assert "page_witnesses" in found[f"page witness {name}"].mend


def checked(home: Path) -> dict[str, Check]:
    """All that `tenuto doctor` says of a home."""
    outside = RealEntrances({"TENUTO_HOME": str(home), "PATH": os.environ["PATH"]})
    return {check.name: check for check in outside.doctor()}


def test_a_port_that_another_program_has_is_named_before_a_start_fails(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        (tmp_path / "config.toml").write_text(f"port = {port}\n")
        taken = checked(tmp_path)["HTTP port"]
        assert taken.ok is False
        assert str(port) in taken.found
        assert "`port`" in taken.mend
    assert checked(tmp_path)["HTTP port"].ok
    (tmp_path / "config.toml").write_text("port = 0\n")
    assert checked(tmp_path)["HTTP port"].found == "none is wanted"


def test_a_database_of_something_else_is_not_told_to_be_upgraded(tmp_path: Path) -> None:
    """Whoever follows the mend must not have a stranger's database changed."""
    path = tmp_path / "state" / "registry.sqlite3"
    path.parent.mkdir(mode=0o700)
    with contextlib.closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE tasks(a)")
        made.commit()
    before = path.read_bytes()
    found = checked(tmp_path)
    for name in ("registry", "supervisor"):
        assert found[name].ok is False
        assert "something else" in found[name].found
        assert "upgrade" not in found[name].found + found[name].mend
    assert path.read_bytes() == before


def test_a_registry_that_cannot_be_read_is_said(settings: Settings) -> None:
    settings.state.mkdir()
    settings.registry_path.write_bytes(b"not a database at all, but long enough to look like something" * 50)
    assert told(settings)["tasks"].ok is None


# -- executors elsewhere


@contextmanager
def answering(settings: Settings, executors: list[dict[str, object]]) -> Iterator[None]:
    """A supervisor's socket that tells these executors to whoever has the operator's token."""
    body = json.dumps({"executors": executors}).encode()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def address_string(self) -> str:
            return "local"

        def do_GET(self) -> None:
            good = self.path == "/api/v1/executors" and self.headers["Authorization"] == "Bearer of-the-operator"
            self.send_response(200 if good else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    settings.socket.parent.mkdir(parents=True, exist_ok=True)
    settings.operator_token.write_text("of-the-operator")
    with ThreadingUnixStreamServer(str(settings.socket), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join(10)


def row(name: str, **more: object) -> dict[str, object]:
    rest: dict[str, object] = {"connected": True, "conversations": [], "strangers": [], "trouble": None}
    return rest | {"name": name, "heard_at": "2026-03-01T11:00:00+00:00"} | more


def judged(settings: Settings, rows: list[dict[str, object]], **needed: int) -> dict[str, Check]:
    wanted = {name.replace("_", ":"): count for name, count in needed.items()}
    with answering(settings, rows):
        found = probing.executors(settings, (), wanted, NOW)
    assert all(check.mend for check in found if check.ok is False), "what is wrong has a mend"
    return {check.name: check for check in found}


def test_each_executor_elsewhere_is_judged_by_the_supervisors_word(settings: Settings) -> None:
    found = judged(
        settings,
        [
            row("host:well"),
            row("host:away", connected=False),
            row("host:just-gone", connected=False, heard_at=NOW.isoformat()),
            row("host:needed", connected=False),
            row("host:strange", strangers=["c-1", "c-2"]),
            row("host:ill", trouble="its journal cannot be written"),
        ],
        host_needed=2,
        host_never=1,
    )
    assert {name.removeprefix("executor host:"): check.ok for name, check in found.items()} == {
        "well": True, "away": None, "just-gone": None, "needed": False, "strange": False, "ill": False, "never": False,
    }  # fmt: skip
    assert found["executor host:needed"].mend == "tenuto host --name needed --token-file FILE, on its machine"
    assert "2 commands" in found["executor host:strange"].found
    assert not found["executor host:just-gone"].mend, "it may be back in a moment"


def test_without_a_supervisor_executors_are_unknown_and_never_well(settings: Settings) -> None:
    (none,) = probing.executors(settings, (), {}, NOW)
    assert none.ok
    (unknown,) = probing.executors(settings, (), {"host:lab": 1}, NOW)
    assert unknown.ok is None
    assert unknown.mend


# -- programs and doors that are asked


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_agent_programs_are_asked_for_their_version_and_left_alone_otherwise(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    program(folder, "claude", f'echo "$PWD" > {tmp_path}/ran; test "$HOME" = "$PWD" && echo "2.1.0 (Claude Code)"')
    program(folder, "codex", "echo broken; exit 1")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    examining.checks(settings)
    assert not (tmp_path / "ran").exists(), "nothing is started unless that was asked for"
    found = {check.name: check for check in examining.checks(settings, probe=True)}
    assert found["agent claude"].ok
    assert found["agent claude"].found.endswith("2.1.0")
    assert found["agent codex"].ok is False
    assert "--version" in found["agent codex"].mend
    assert not Path((tmp_path / "ran").read_text().strip()).exists(), "its directory is gone"


def test_a_program_that_does_not_answer_is_not_waited_for(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "claude", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(probing, "ANSWERS", 0.2)
    found = {check.name: check for check in probing.programs(settings, ())}
    assert found["agent claude"].ok is False


def test_an_old_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probing.git().ok
    program(tmp_path / "bin", "git", "echo git version 2.9.5")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    old = probing.git()
    assert old.ok is False
    assert "2.9.5" in old.found
    assert "2.20" in old.mend
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert probing.git().ok is False


def test_a_door_that_does_not_answer_is_named(settings: Settings, tmp_path: Path) -> None:
    state = tmp_path / "lsm"
    (state / "sessions").mkdir(parents=True)
    closed = replace(settings, tool_servers={"mine": state}, tool_doors={"mine": "http://127.0.0.1:9/mcp"})
    (check,) = probing.doors(closed)
    assert check.ok is False
    assert "cannot be reached" in check.found
    token = settings.tool_tokens / "mine"
    token.parent.mkdir(parents=True)
    token.write_text("open to all")
    token.chmod(0o644)
    (check,) = probing.doors(closed)
    assert "mode 600" in check.found
    assert probing.doors(replace(closed, tool_doors={})) == [], "nobody is asked where no address is known"
