"""Several supervisors and one PostgreSQL: one leads, another takes over, and no command has two effects."""

from __future__ import annotations

import os
import signal
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.ledger.server import Server
from tests.supervisors.conftest import Make
from tests.supervisors.homes import Cut, Home, effects_of, program, wait_for

PROVE = os.environ.get("TENUTO_PROVE") == "1"
TAKEOVERS = 20 if PROVE else 3
#: The lease runs out after 15 s; whoever waits tries every 2 s.
LEASE = 15 + 2 + 8


def stands_by(home: Home, times: int) -> None:
    wait_for(lambda: home.log().count("standing by") >= times, home.log())


def led_times(home: Home, times: int) -> None:
    wait_for(lambda: home.log().count("leading with epoch") >= times, home.log())


def more_effects(effects: Path, home: Home) -> None:
    seen = len(effects_of(effects))
    wait_for(lambda: len(effects_of(effects)) > seen + 5, home.log())


def commands_of(home: Home) -> set[str]:
    """The commands that the database knows."""
    with psycopg.connect(home.database) as connection:
        return {str(row[0]) for row in connection.execute("SELECT id FROM command").fetchall()}


def test_a_whole_supervisor_over_postgresql(tmp_path: Path, postgresql: Server, homes: Make) -> None:
    """Start detached, work, look with and without a supervisor, and show no password anywhere."""
    url = postgresql.database().replace("app@", "app:open-sesame@")
    home = homes("one", url)
    started = home.tenuto("start")
    assert started.returncode == 0, (started, home.log())
    pid = home.json("status")["pid"]
    try:
        effects = tmp_path / "effects"
        task = home.run(program(tmp_path, effects, turns=3), tmp_path)
        wait_for(lambda: home.over(task), home.log())
        assert home.task(task)["state"] == "completed"
        assert sorted(effects_of(effects).values()) == [1, 1, 1]
        assert b"open-sesame" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert home.json("status")["registry"].startswith("postgresql://app@127.0.0.1")
        assert home.tenuto("db", "check").returncode == 0
    finally:
        stopped = home.tenuto("stop")
    assert stopped.returncode == 0, stopped
    assert home.json("show", task)["task"]["state"] == "completed"
    said = [home.tenuto(*words) for words in (["status"], ["doctor"], ["start", "--db", url.replace(":", "!", 1)])]
    assert not any("open-sesame" in one.stdout + one.stderr for one in said[:2])
    assert "open-sesame" not in home.log()


def test_of_two_that_are_started_at_once_one_leads_and_the_other_says_who(postgresql: Server, homes: Make) -> None:
    url = postgresql.database()
    first, second = homes("first", url), homes("second", url)
    racers = [first.up(), second.up()]
    wait_for(lambda: any(racer.poll() is not None for racer in racers), "one gives way")
    (loser,) = [racer for racer in racers if racer.poll() is not None]
    assert loser.returncode == 5
    (home,) = [home for home, racer in zip((first, second), racers, strict=True) if racer is not loser]
    home.led()
    other = second if home is first else first
    said = other.tenuto("start")
    assert "it runs already" in said.stdout
    assert other.json("tasks")["tasks"] == []
    noted = other.tenuto("hold")
    assert noted.returncode == 0, noted
    assert str(home.state) in noted.stderr


@pytest.mark.timeout(3600 if PROVE else 300)
def test_a_standby_takes_over_at_once_from_one_that_is_killed(tmp_path: Path, postgresql: Server, homes: Make) -> None:
    """On one machine the holder's end is seen, so nobody waits for its lease; what it began goes on."""
    url = postgresql.database()
    pair = [homes("first", url), homes("second", url)]
    effects = tmp_path / "effects"
    leading = pair[0].up("--standby")
    pair[0].led()
    task = pair[0].run(program(tmp_path, effects, turns=TAKEOVERS + 2, seconds=1.0), tmp_path)
    took: list[float] = []
    for number in range(TAKEOVERS):
        new = pair[(number + 1) % 2]
        waiting = new.up("--standby")
        stands_by(new, number // 2 + 1)
        begun = time.monotonic()
        leading.kill()
        leading.wait(timeout=30)
        led_times(new, number // 2 + (2 if new is pair[0] else 1))
        took.append(time.monotonic() - begun)
        leading = waiting
    print(f"takeover on one machine: median {statistics.median(took):.2f} s of {len(took)}, most {max(took):.2f} s")
    assert not PROVE or statistics.median(took) < LEASE, "nobody waited for a lease to run out"
    last = pair[TAKEOVERS % 2]
    wait_for(lambda: last.over(task), last.log())
    assert last.task(task)["state"] == "completed"
    assert set(effects_of(effects).values()) == {1}


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_how_long_another_machine_takes_to_lead_is_counted(tmp_path: Path, postgresql: Server, homes: Make) -> None:
    """Of a machine that cannot be looked at only its lease tells; each in turn is cut down, and the other goes on."""
    url = postgresql.database()
    pair = [homes("here", url, "here"), homes("there", url, "there")]
    leading = pair[0].up("--standby")
    pair[0].led()
    took: list[float] = []
    for number in range(20):
        new = pair[(number + 1) % 2]
        waiting = new.up("--standby")
        stands_by(new, number // 2 + 1)
        begun = time.monotonic()
        leading.kill()
        leading.wait(timeout=30)
        led_times(new, number // 2 + (2 if new is pair[0] else 1))
        took.append(time.monotonic() - begun)
        leading = waiting
    done = tmp_path / "effects"
    task = pair[0].run(program(tmp_path, done, turns=3), tmp_path)
    wait_for(lambda: pair[0].over(task), pair[0].log())
    assert set(effects_of(done).values()) == {1}
    print(f"takeover across machines: median {statistics.median(took):.2f} s of {len(took)}, most {max(took):.2f} s")


RENEWED = "SELECT renewed_at FROM leadership"


def renewed_since(home: Home, before: list[tuple[Any, ...]]) -> bool:
    return home.ask(RENEWED) not in ([], before)


@pytest.mark.timeout(240)
def test_a_leader_that_was_paused_past_its_lease_arms_and_hands_over_nothing(
    tmp_path: Path, postgresql: Server, homes: Make
) -> None:
    """Two clocks that are two hours apart change nothing of it: the lease goes by the database's."""
    url = postgresql.database()
    old, new = homes("old", url, off=3600.0), homes("new", url, off=-3600.0)
    effects = tmp_path / "effects"
    paused = old.up()
    old.led()
    tasks = [old.run(program(tmp_path, effects, turns=400, seconds=0.1), tmp_path) for _ in range(2)]
    wait_for(lambda: len(effects_of(effects)) > 4, "turns go by")
    new.up("--standby")
    wait_for(lambda: "standing by" in new.log(), new.log())
    for _ in range(2):
        before = new.ask(RENEWED)
        wait_for(partial(renewed_since, new, before), "the lease is renewed")
    assert old.leads(), "a clock that is ahead lets no lease run out"
    paused.send_signal(signal.SIGSTOP)
    took = wait_for(new.leads, new.log(), LEASE + 20)
    print(f"takeover from a paused leader: {took:.1f} s")
    paused.send_signal(signal.SIGCONT)
    wait_for(lambda: paused.poll() is not None, "the old one notices and ends")
    assert paused.returncode == 1
    seen = len(effects_of(effects))
    wait_for(lambda: len(effects_of(effects)) > seen + 4, f"the new one goes on: {new.log()}")
    assert set(effects_of(effects).values()) == {1}
    assert set(effects_of(effects)) <= commands_of(new)
    for task in tasks:
        new.tenuto("cancel", task)


@pytest.mark.timeout(300)
def test_two_machines_with_the_database_partitioned_away_from_one(
    tmp_path: Path, postgresql: Server, homes: Make
) -> None:
    """Nothing is concluded of a turn on a machine that cannot be looked at; when it is back, its end is heard."""
    url = postgresql.database()
    way = Cut(postgresql.port)
    far = homes("far", url.replace(str(postgresql.port), str(way.port)), "far-away")
    near = homes("near", url, "near-by")
    effects = tmp_path / "effects"
    try:
        far.up("--standby")
        far.led()
        task = far.run(program(tmp_path, effects, turns=3, seconds=20.0), tmp_path)
        wait_for(lambda: len(effects_of(effects)) == 1, "a turn begins")
        near.up("--standby")
        wait_for(lambda: "standing by" in near.log(), near.log())
        way.cut()
        took = wait_for(near.leads, near.log(), LEASE + 20)
        print(f"takeover across machines: {took:.1f} s")
        other = near.run(program(tmp_path, tmp_path / "others"), tmp_path)
        wait_for(lambda: near.over(other), near.log())
        sentence = str(near.json("explain", task))
        assert "far-away, which cannot be looked at from here" in sentence, sentence
        time.sleep(3)
        assert len(effects_of(effects)) == 1
        way.mend()
        wait_for(lambda: "stopped" in far.log(), far.log())
        near.tenuto("stop")
        again = far.up("--standby")
        wait_for(lambda: far.over(task), far.log(), 120)
        assert again.poll() is None
        assert far.task(task)["state"] == "completed"
        assert sorted(effects_of(effects).values()) == [1, 1, 1]
    finally:
        way.close()


def test_the_database_restarts_and_crashes_under_load(tmp_path: Path, postgresql: Server, homes: Make) -> None:
    """Whatever was acknowledged stays; the wheel says what is the matter, and goes on by itself."""
    home = homes("one", postgresql.database())
    process = home.up()
    home.led()
    effects = tmp_path / "effects"
    tasks = [home.run(program(tmp_path, effects, turns=10_000), tmp_path) for _ in range(3)]
    for how in ("fast", "immediate"):
        more_effects(effects, home)
        known = commands_of(home)
        postgresql.restart(how)
        more_effects(effects, home)
        assert known <= commands_of(home), "a command that was written is gone"
    assert process.poll() is None
    postgresql.stop("immediate")
    try:
        time.sleep(1)
        said = home.tenuto("status")
        assert (said.returncode, "cannot be reached" in said.stderr) == (3, True), said
    finally:
        postgresql.start()
    wait_for(home.leads, home.log())
    for task in tasks:
        home.tenuto("cancel", task)
    assert set(effects_of(effects).values()) == {1}
    assert set(effects_of(effects)) <= commands_of(home), "nothing was begun that was not written before"
    assert home.tenuto("db", "check").returncode == 0
