"""The service as its operator sees it: how it stands, starting and stopping, the log, the token, the doctor, proofs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.cli_world import LIVE, MISSING, NOW, FakeEntrances, Server, done, serving

from tenuto.engine.residency import Standing
from tenuto.model.faults import Corrupt, Mistake, StorageFull, UnsupportedVersion
from tenuto.surfaces import cli
from tenuto.surfaces.cli import app, client, door, service
from tenuto.surfaces.cli.entrances import AlreadyLed, Check, Glance, NotSpawned, Proof
from tenuto.surfaces.cli.exits import Exit


@pytest.fixture
def outside(tmp_path: Path) -> FakeEntrances:
    return FakeEntrances(tmp_path)


def ended(outside: FakeEntrances, *arguments: str) -> int:
    """The exit code of the whole program, its quick answers included."""
    with pytest.raises(SystemExit) as ending:
        cli.main(outside, arguments)
    assert isinstance(ending.value.code, int)
    return ending.value.code


# -- how it stands


@pytest.mark.parametrize("standing", list(Standing))
def test_status_says_how_it_stands(
    standing: Standing, outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.glances = [
        replace(LIVE, standing=standing.value, held_at=NOW, held_by="Ann", tasks={"active": 2, "failed": 0})
    ]
    assert ended(outside, "status") == 0
    quick = capsys.readouterr()
    assert quick.out.startswith(f"{standing}: ")
    assert "4711 on here" in quick.out
    assert "(1 h ago)" in quick.out
    assert "2 active" in quick.out
    assert "failed" not in quick.out
    assert "everything, by Ann" in quick.out
    there = standing in (Standing.LIVE, Standing.STOP_FENCED, Standing.STALE_ALIVE)
    assert ("tenuto start" in quick.err) is not there
    assert app.main(outside, ["status"]) == 0
    assert capsys.readouterr() == quick


def test_status_in_json(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(outside, "status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["standing"], told["pid"], told["epoch"], told["held"]) == ("live", 4711, 3, None)
    assert told["since"] == "2026-03-01T11:00:00Z"


def test_status_of_nothing_yet(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    outside.glances = [MISSING]
    assert ended(outside, "status") == 0
    assert "(not made yet)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "fault, code",
    [
        (Corrupt("broken"), 1),
        (UnsupportedVersion("newer"), 7),
        (Mistake("bad", field="slots"), 2),
        (StorageFull("full"), 1),
    ],
)
def test_a_fault_is_told_with_its_code(
    fault: Exception,
    code: int,
    outside: FakeEntrances,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def glance(self: FakeEntrances) -> Glance:
        raise fault

    monkeypatch.setattr(FakeEntrances, "glance", glance)
    assert ended(outside, "status") == code
    assert capsys.readouterr().err.startswith(f"error: {fault}")


def test_status_brings_in_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from tenuto.surfaces.cli import glancing, quick, ending, output, exits, entrances\n"
        "print(*sorted(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path
    )
    heavy = {
        "sqlalchemy",
        "alembic",
        "fastapi",
        "starlette",
        "uvicorn",
        "pydantic",
        "typer",
        "rich",
        "http.client",
        "asyncio",
    }
    assert not heavy & set(said.stdout.split())


# -- starting and stopping


def test_start_says_whether_it_started(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(outside, "start", "--within", "7") == 0
    assert outside.reached == [("spawn", timedelta(seconds=7))]
    assert capsys.readouterr().out == "started: pid 4711, epoch 3\n"
    outside.spawned = AlreadyLed(LIVE)
    assert ended(outside, "start") == 0
    assert capsys.readouterr().out == "it runs already: pid 4711, epoch 3\n"
    assert ended(outside, "start", "--json") == 0
    assert json.loads(capsys.readouterr().out)["started"] is False


def test_a_start_that_fails_says_where_to_look(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    outside.spawned = NotSpawned("it ended with exit code 1", outside.places.log)
    assert ended(outside, "start") == Exit.FAILED
    assert capsys.readouterr().err == (
        f"error: the supervisor did not start: it ended with exit code 1\nmend: tenuto logs ({outside.places.log})\n"
    )


def test_up_ends_as_the_supervisor_ends(outside: FakeEntrances) -> None:
    assert ended(outside, "up") == 5
    assert outside.reached == ["foreground"]


@pytest.fixture
def server(outside: FakeEntrances, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(service, "LOOK_EVERY", 0.01)
    with serving(Server(outside.places.socket)) as server:
        server.says("stop", done(stopping=True))
        yield server


RELEASED = replace(LIVE, standing="missing", released=NOW)


def test_stop_waits_until_the_lease_is_given_back(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.glances = [LIVE, LIVE, replace(LIVE, standing="stop-fenced"), RELEASED]
    assert ended(outside, "stop") == 0
    assert capsys.readouterr().out == "stopped: pid 4711\n"
    assert outside.glances == [RELEASED]
    assert [asked.verb for asked in server.asked] == ["stop"]


def test_stop_without_a_supervisor_has_nothing_to_do(
    outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.glances = [MISSING]
    assert ended(outside, "stop") == 0
    assert capsys.readouterr().out == "no supervisor runs\n"


def test_a_stop_that_does_not_come_is_an_unknown_outcome(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(outside, "stop", "--within", "1") == Exit.UNKNOWN
    assert "it was asked to stop and is still there after 1 s: pid 4711" in capsys.readouterr().err


def test_a_leader_that_does_not_answer_is_not_stopped_and_named(
    outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(outside, "stop") == Exit.NO_SUPERVISOR
    assert "pid 4711 on here holds the lease and does not answer" in capsys.readouterr().err


def test_one_that_hangs_is_named_with_its_mend(
    outside: FakeEntrances, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hung = replace(LIVE, standing="stale-alive")
    outside.spawned = AlreadyLed(hung)
    assert ended(outside, "start") == Exit.NO_SUPERVISOR
    assert "pid 4711 on here leads but has not renewed its lease" in capsys.readouterr().err
    monkeypatch.setattr(door, "Client", partial(client.Client, answer=0.2))
    over = threading.Event()
    server.answers["stop"] = lambda asked: (over.wait(20), None)[1]
    outside.glances = [hung]
    try:
        assert ended(outside, "restart") == Exit.NO_SUPERVISOR
    finally:
        over.set()
    assert "kill -9 4711, then tenuto start" in capsys.readouterr().err
    assert [asked.verb for asked in server.asked] == ["stop"], "silence is not asked again"


def test_restart_never_starts_beside_the_old_one(
    outside: FakeEntrances, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(outside, "restart", "--within", "1") == Exit.UNKNOWN
    assert outside.reached == []
    outside.glances = [LIVE, RELEASED]
    assert ended(outside, "restart") == 0
    assert [reached[0] for reached in outside.reached] == ["spawn"]
    assert "restarted: pid 4711, epoch 3" in capsys.readouterr().out


# -- the log, the token, the doctor


def test_logs_print_the_end(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    outside.places.log.write_text("".join(f"line {n}\n" for n in range(100)) + "odd \x1b[31mred\n", "utf-8")
    assert ended(outside, "logs", "-n", "2") == 0
    assert capsys.readouterr().out == "line 99\nodd \N{REPLACEMENT CHARACTER}[31mred\n"
    assert ended(outside, "logs", "-n", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["lines"] == ["odd \x1b[31mred"]


def test_a_large_log_is_not_read_whole(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    outside.places.log.write_bytes(b"y" * (service.LOG_TAIL + 10) + b"\nlast\n")
    assert ended(outside, "logs") == 0
    assert capsys.readouterr().out == "last\n"


def test_no_log_yet(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(outside, "logs") == 0
    assert "there is no log yet" in capsys.readouterr().err


def test_a_followed_log_goes_on_and_over(outside: FakeEntrances) -> None:
    log = outside.places.log
    log.write_text("one\ntw", "utf-8")
    growing = service._growing(log, 4)
    log.write_text("one\ntwo\n", "utf-8")
    assert next(growing) == "two"
    log.write_text("new\n", "utf-8")
    assert next(growing) == "new"


def test_the_token_is_shown_when_asked_for_only(outside: FakeEntrances, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(outside, "token", "--show") == Exit.WRONG_USE
    assert "there is no operator token yet" in capsys.readouterr().err
    outside.places.operator_token.write_text("secret\n", "ascii")
    assert ended(outside, "token") == 0
    assert capsys.readouterr().out == f"{outside.places.operator_token}\n"
    assert ended(outside, "token", "--show") == 0
    assert capsys.readouterr().out == "secret\n"


@pytest.mark.parametrize("ok, code", [(True, 0), (None, 0), (False, 1)])
def test_the_doctor_names_what_is_wrong_and_its_mend(
    ok: bool | None, code: int, outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.checks = [Check("git", True, "2.40"), Check("log", ok, "not writable", "" if ok else "chmod it")]
    assert ended(outside, "doctor") == code
    assert ("mend log: chmod it" in capsys.readouterr().out) is not bool(ok)
    assert ended(outside, "doctor", "--probe", "--json") == code
    assert outside.reached[-2:] == [("doctor", False), ("doctor", True)]
    assert json.loads(capsys.readouterr().out)["checks"][1]["ok"] is ok


# -- proofs and the database

ACTS: dict[str, Any] = {
    "demo --keep": ("demo", True),
    "crash-matrix --points 9 --seed 4 --jobs 3": ("crash_matrix", 9, 4, 3, None),
    "crash-matrix --only plain:arm.committed:1": ("crash_matrix", 0, 1, 2, "plain:arm.committed:1"),
    "simulate --seed 4 --tasks 9 --days 2": ("simulate", 4, 9, 2.0, 1, 3.0, 2),
    "bench --seconds 2": ("bench", 2),
    "db upgrade": ("database", "upgrade", None),
    "db check": ("database", "check", None),
    "db backup there": ("database", "backup", Path("there")),
}


@pytest.mark.parametrize("line", ACTS)
@pytest.mark.parametrize("ok", [True, False])
def test_a_proof_ends_as_it_came_out(
    line: str, ok: bool, outside: FakeEntrances, capsys: pytest.CaptureFixture[str]
) -> None:
    outside.proof = Proof(ok, "it came out so", ("a line",), {"kills": 3})
    assert ended(outside, *line.split()) == (0 if ok else 1)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("a line\nit came out so\n", "")
    assert outside.reached == [ACTS[line]]
    assert ended(outside, *line.split(), "--json") == (0 if ok else 1)
    assert json.loads(capsys.readouterr().out) == {"ok": ok, "summary": "it came out so", "kills": 3}


def test_another_registry_is_chosen_before_the_command(outside: FakeEntrances) -> None:
    assert ended(outside, "--db", "other.sqlite3", "--config", "c.toml", "status") == 0
    assert outside.reached == [("chosen", Path("c.toml"), "other.sqlite3")]
