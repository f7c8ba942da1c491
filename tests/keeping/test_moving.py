"""Registries restored, brought here, moved to PostgreSQL and archived: nothing is lost and nothing is done twice."""

from __future__ import annotations

import gzip
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.ledger.server import Server, programs, server
from tests.ledger.world import Counting, SetClock
from tests.migrations.keeping import kept, undumped
from tests.supervisors.homes import Home, effects_of, program, wait_for

from tenuto.store.opening import KNOWN, open_registry
from tenuto.store.sqlite import Sqlite


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home", str(tmp_path / "home" / "state" / "registry.sqlite3"))
    yield made
    made.close()


def worked(home: Home, tmp_path: Path, effects: Path, turns: int = 2) -> str:
    """A task that has been done, and a supervisor that was stopped after it."""
    home.up()
    home.led()
    task = home.run(program(tmp_path, effects, turns=turns), tmp_path)
    wait_for(lambda: home.over(task), home.log())
    return task


def test_a_restored_registry_leads_above_every_epoch_and_holds_what_it_does_not_know(
    home: Home, tmp_path: Path
) -> None:
    """The backup stands before the second turn: that turn is not made again, a person is asked once."""
    effects, backup = tmp_path / "effects", tmp_path / "backup.sqlite3"
    home.up()
    home.led()
    task = home.run(program(tmp_path, effects, turns=10**6, seconds=0.2), tmp_path, "--policy", "idle_delay=1")
    wait_for(lambda: len(effects_of(effects)) == 1, home.log())
    assert home.tenuto("db", "backup", str(backup)).returncode == 0
    refused = home.tenuto("db", "restore", str(backup))
    assert (refused.returncode, "uses this registry" in refused.stderr) == (4, True), refused
    wait_for(lambda: len(effects_of(effects)) >= 3, home.log())
    home.tenuto("stop")
    home.up()
    home.led()
    wait_for(lambda: len(effects_of(effects)) >= 4, home.log())
    home.tenuto("stop")
    before = home.json("status")["epoch"]
    done = home.json("db", "restore", str(backup))
    assert (done["ok"], done["epoch_above"]) == (True, before), done
    assert Path(done["aside"]).exists()
    seen = effects_of(effects)
    home.up()
    home.led()
    assert home.json("status")["epoch"] > before
    wait_for(lambda: home.json("attention")["items"], home.log())
    (item,) = {entry["task"]: entry for entry in home.json("attention")["items"]}.values()
    assert "which this registry does not know" in item["question"]
    assert item["task"] == task
    assert effects_of(effects) == seen
    home.tenuto("stop")
    asked = len(home.json("attention")["items"])
    home.up()
    home.led()
    assert len(home.json("attention")["items"]) == asked
    assert home.tenuto("db", "check").returncode == 0


#: Writes into a file of SQLite, and is killed when some of it has come there: its log undoes that for the next one.
KILLED = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size = 1")
file.execute("BEGIN IMMEDIATE")
file.execute("UPDATE filler SET a = a || 'x'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_restore_that_was_killed_leaves_nothing_to_the_next(home: Home, tmp_path: Path) -> None:
    path, backup = Path(home.database), tmp_path / "backup.sqlite3"
    ledger = open_registry(path, SetClock(), minter=Counting())
    ledger.close_readers()
    Sqlite(path).backup(backup)
    made = path.with_name(f".{path.name}.restoring")
    with closing(sqlite3.connect(made)) as file, file:
        file.execute("CREATE TABLE filler (a)")
        file.executemany("INSERT INTO filler VALUES (?)", [("one" * 100,)] * 3000)
    assert subprocess.run([sys.executable, "-c", KILLED, made], check=False).returncode == -signal.SIGKILL
    assert made.with_name(f"{made.name}-journal").stat().st_size > 0
    told = home.tenuto("db", "restore", str(backup))
    assert told.returncode == 0, told
    assert home.tenuto("db", "check").returncode == 0
    assert [found.name for found in path.parent.iterdir() if ".restoring" in found.name] == []
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM registry").fetchone() == (1,)
        assert file.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'filler'").fetchone() == (0,)


def test_a_copy_that_is_not_sound_replaces_nothing(home: Home, tmp_path: Path) -> None:
    """An older backup is looked through once it has been carried forward."""
    path, backup = Path(home.database), tmp_path / "backup.sqlite3"
    open_registry(path, SetClock(), minter=Counting()).close_readers()
    undumped(kept(KNOWN[0], "lived", "sqlite").read_text("utf-8"), backup)
    with closing(sqlite3.connect(backup)) as file, file:
        file.execute("DELETE FROM run")
    before = path.read_bytes()
    told = home.tenuto("db", "restore", str(backup))
    assert (told.returncode != 0, "is not sound" in told.stderr) == (True, True), told
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir() if ".restoring" in found.name] == []


def test_no_log_of_the_file_before_stays_beside_what_is_restored(home: Home, tmp_path: Path) -> None:
    path, backup = Path(home.database), tmp_path / "backup.sqlite3"
    open_registry(backup, SetClock(), minter=Counting()).close_readers()
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in ("-journal", "-wal"):
        Path(f"{path}{suffix}").write_bytes(b"of a file that somebody removed")
    told = home.tenuto("db", "restore", str(backup))
    assert told.returncode == 0, told
    assert {found.name.rpartition("-")[2] for found in path.parent.glob("registry-replaced-*")} == {"journal", "wal"}
    assert home.tenuto("db", "check").returncode == 0


def named(home: Home, url: str) -> None:
    """Have a home keep its registry in another database."""
    (home.path / "config.toml").write_text(f'database = "{url}"\nport = 0\n', "utf-8")
    home.database = url


def put_back(source: str, target: str) -> None:
    """Back a database up while it is used, and put that into an empty one, by the programs of the server."""
    where = programs()
    assert where is not None
    told = subprocess.run([where / "pg_dump", source], check=True, capture_output=True, timeout=300).stdout
    put = [str(where / "psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", target]
    subprocess.run(put, input=told, check=True, capture_output=True, timeout=300)


def test_a_database_of_postgresql_that_was_put_back_is_led_above_every_epoch(
    home: Home, tmp_path: Path, postgresql: Server
) -> None:
    """It is backed up and put back by its own means; what the hosts did since is a person's matter there too."""
    effects, url, backup = tmp_path / "effects", postgresql.database(), postgresql.database()
    named(home, url)
    home.up()
    home.led()
    task = home.run(program(tmp_path, effects, turns=10**6, seconds=0.2), tmp_path, "--policy", "idle_delay=1")
    wait_for(lambda: len(effects_of(effects)) == 1, home.log())
    put_back(url, backup)
    wait_for(lambda: len(effects_of(effects)) >= 3, home.log())
    home.tenuto("stop")
    home.up()
    home.led()
    wait_for(lambda: len(effects_of(effects)) >= 4, home.log())
    home.tenuto("stop")
    before, seen = home.json("status")["epoch"], effects_of(effects)
    named(home, backup)
    home.up()
    wait_for(home.leads, home.log())
    assert home.json("status")["epoch"] > before
    wait_for(lambda: home.json("attention")["items"], home.log())
    (item,) = {entry["task"]: entry for entry in home.json("attention")["items"]}.values()
    assert "which this registry does not know" in item["question"]
    assert item["task"] == task
    assert effects_of(effects) == seen


def test_a_registry_moves_to_postgresql_with_all_its_rows(home: Home, tmp_path: Path, postgresql: Server) -> None:
    effects, url = tmp_path / "effects", postgresql.database()
    task = worked(home, tmp_path, effects)
    assert home.tenuto("db", "move", url).returncode == 4, "a supervisor uses it"
    home.tenuto("stop")
    file = Path(home.database)
    with closing(sqlite3.connect(file)) as connection:
        rows = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("task", "attempt", "command", "event", "text")
        }
    epoch = home.json("status")["epoch"]
    done = home.json("db", "move", url)
    assert done["ok"], done
    assert {name: done["tables"][name]["rows"] for name in rows} == rows
    assert (file.exists(), Path(done["aside"]).exists()) == (False, True)
    (home.path / "config.toml").write_text(f'database = "{url}"\nport = 0\n', "utf-8")
    home.database = url
    assert home.task(task)["state"] == "completed"
    home.up()
    home.led()
    assert home.json("status")["epoch"] == epoch + 1
    again = home.run(program(tmp_path, tmp_path / "more"), tmp_path)
    wait_for(lambda: home.over(again), home.log())
    home.tenuto("stop")
    (home.path / "config.toml").write_text(f'database = "{done["aside"]}"\nport = 0\n', "utf-8")
    refused = home.tenuto("db", "move", url)
    assert (refused.returncode, "name an empty database" in refused.stderr) == (5, True), refused


def test_what_did_not_arrive_whole_is_undone(home: Home, tmp_path: Path, postgresql: Server) -> None:
    url = postgresql.database()
    worked(home, tmp_path, tmp_path / "effects")
    home.tenuto("stop")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("UPDATE task SET title = 'a' || char(0) || 'b'")  # no text of PostgreSQL can hold it
        connection.commit()
    refused = home.tenuto("db", "move", url)
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr, refused
    assert Path(home.database).exists()
    with psycopg.connect(url) as target:
        found = target.execute("SELECT count(*) FROM text").fetchone()
    assert found == (0,)


def test_an_older_registry_is_brought_here_only_when_nobody_holds_it(home: Home, tmp_path: Path) -> None:
    old = Home(tmp_path / "old", str(tmp_path / "old" / "state" / "registry.sqlite3"))
    try:
        task = worked(old, tmp_path, tmp_path / "effects")
        refused = home.tenuto("db", "upgrade", "--from", old.database)
        assert (refused.returncode, "a supervisor holds" in refused.stderr) == (4, True), refused
        old.tenuto("stop")
        bytes_before = Path(old.database).read_bytes()
        assert home.tenuto("db", "upgrade", "--from", old.database).returncode == 0
        assert home.task(task)["state"] == "completed"
        assert Path(old.database).read_bytes() == bytes_before
        assert home.tenuto("db", "upgrade", "--from", old.database).returncode == 5, "nothing is put over it"
    finally:
        old.close()


def test_what_will_be_forgotten_can_be_written_down_before(home: Home, tmp_path: Path) -> None:
    with (home.path / "config.toml").open("a", encoding="utf-8") as config:
        config.write("[keep]\nevents = 0\n")
    worked(home, tmp_path, tmp_path / "effects")
    target = tmp_path / "events.jsonl.gz"
    done = home.json("db", "archive", str(target))
    assert done["ok"], done
    with gzip.open(target, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert [row["n"] for row in rows] == list(range(1, len(rows) + 1))
    assert "task.completed" in {row["kind"] for row in rows}
    assert target.stat().st_mode & 0o077 == 0
    assert home.tenuto("db", "archive", str(target)).returncode == 5
