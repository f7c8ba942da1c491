"""What stands in a journal is read as it is: a torn line is not there yet, damage is damage, one writer comes first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest
from tests.host.conftest import command

from tenuto.model.evidence import Mark
from tenuto.model.ids import CommandId
from tenuto.transports.host import claim, environment, journal
from tenuto.transports.host.bell import LONGEST, placed
from tenuto.transports.host.launch import SCRIPT

FIRST = {"v": 1, "mark": "claimed", "registry": "r", "epoch": 4, "kind": "turn", "attempt": "a-1", "host": None}
ENDED = {
    "mark": "ended",
    "exit_code": 0,
    "signal": None,
    "cut": None,
    "output_bytes": 5,
    "survivors": 0,
    "signals": ["x"],
    "signal_count": 1,
    "reports": [],
}
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def write(folder: Path, *lines: Mapping[str, object] | str) -> CommandId:
    """Write a journal as given."""
    mine = command().id
    told = [line if isinstance(line, str) else json.dumps({**line, "command": mine}) + "\n" for line in lines]
    (folder / f"{mine}.jsonl").write_text("".join(told))
    return mine


def revoked(folder: Path, mine: CommandId) -> bool:
    """Try to revoke."""
    return journal.revoke(folder, mine, registry="r", epoch=2, reason="because", now=NOW)


def test_each_whole_line_counts_and_a_torn_one_does_not(tmp_path: Path) -> None:
    accepted: Mapping[str, object] = {"mark": "accepted", "pid": 7, "start": 9}
    lines: list[Mapping[str, object]] = [FIRST, {"mark": "begun"}, accepted, ENDED]
    marks = [Mark.CLAIMED, Mark.BEGUN, Mark.ACCEPTED, Mark.ENDED]
    for count, mark in enumerate(marks, start=1):
        mine = write(tmp_path, *lines[:count], '{"mark":"en')
        seen = journal.read(tmp_path, mine)
        assert (seen.mark, seen.epoch, seen.attempt_id) == (mark, 4, "a-1")
    assert journal.read(tmp_path, command().id).mark is Mark.NONE


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ('{"mark":"claimed"',),
        ("nonsense\n",),
        ("[]\n",),
        (FIRST, "\x00\x00\n"),
        (FIRST, FIRST),
        (FIRST, {"mark": "ended"}),
        (FIRST, {"mark": "begun"}, {"mark": "accepted"}),
        ({**FIRST, "v": 3},),
        ({**FIRST, "epoch": "4"},),
        ({**FIRST, "host": {"pid": 1}},),
        (FIRST, {"mark": "begun"}, {"mark": "accepted", "pid": 1, "start": 2}, {**ENDED, "cut": "tired"}),
        ("x" * (journal.LIMIT + 1),),
    ],
)
def test_damage_is_told_and_never_guessed_at(tmp_path: Path, lines: tuple[dict[str, object] | str, ...]) -> None:
    seen = journal.read(tmp_path, write(tmp_path, *lines))
    assert seen.mark is Mark.DAMAGED
    assert seen.reason


def test_what_is_no_plain_file_is_not_followed(tmp_path: Path) -> None:
    link, pipe, folder = (command().id for _ in range(3))
    (tmp_path / f"{link}.jsonl").symlink_to(tmp_path / f"{write(tmp_path, FIRST)}.jsonl")
    os.mkfifo(tmp_path / f"{pipe}.jsonl")
    (tmp_path / f"{folder}.jsonl").mkdir()
    assert {journal.read(tmp_path, one).mark for one in (link, pipe, folder)} == {Mark.DAMAGED}
    assert journal.read(tmp_path, CommandId("../x")).mark is Mark.DAMAGED


def test_of_many_writers_one_comes_first(tmp_path: Path) -> None:
    for _ in range(50):
        mine, ready = command().id, Barrier(4)

        def take(number: int, mine: CommandId = mine, ready: Barrier = ready) -> bool:
            ready.wait()
            if number % 2:
                return revoked(tmp_path, mine)
            try:
                claim.take(str(tmp_path), mine, {**FIRST, "command": mine}).close()
            except claim.TakenError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(take, range(4))) == 1
        assert journal.read(tmp_path, mine).mark in (Mark.CLAIMED, Mark.REVOKED)
    assert not list(tmp_path.glob(".*"))


def test_a_line_that_the_disk_refused_is_overwritten_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = command().id
    written = claim.take(str(tmp_path), mine, {**FIRST, "command": mine})
    real = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        written.mark({"mark": "begun", "note": "x" * 100})
    monkeypatch.setattr(os, "fsync", real)
    assert journal.read(tmp_path, mine).mark is Mark.CLAIMED
    written.mark({"mark": "begun"})
    written.close()
    assert journal.read(tmp_path, mine).mark is Mark.BEGUN


def test_epochs_only_rise_and_each_registry_has_its_own(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert [claim.admit(folder, "r", epoch) for epoch in (3, 3, 2, 5, 4)] == [True, True, False, True, False]
    assert claim.admit(folder, "other", 1)
    assert claim.epochs(folder) == {"r": 5, "other": 1}
    (tmp_path / "epoch").write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        claim.admit(folder, "r", 6)


def test_a_restored_registry_is_told_what_it_does_not_know(tmp_path: Path) -> None:
    known, unknown, revocation = write(tmp_path, FIRST), write(tmp_path, FIRST, {"mark": "begun"}), command().id
    other = write(tmp_path, {**FIRST, "registry": "elsewhere"})
    assert revoked(tmp_path, revocation)
    assert [one.command_id for one in journal.strangers(tmp_path, "r", {known})] == [unknown]
    assert set(journal.held(tmp_path)) == {known, unknown, revocation, other}


def test_only_old_settled_journals_are_cleaned_away(tmp_path: Path) -> None:
    old, kept, fresh, open_one = command().id, command().id, command().id, write(tmp_path, FIRST)
    for one in (old, kept, fresh):
        assert revoked(tmp_path, one)
    (tmp_path / ".x.new").touch()
    long_ago = (NOW - timedelta(days=9)).timestamp()
    for path in tmp_path.iterdir():
        if path.name != f"{fresh}.jsonl":
            os.utime(path, (long_ago, long_ago))
    gone = journal.clean(tmp_path, {kept}, age=timedelta(days=1), now=NOW)
    assert gone == (old,)
    assert set(journal.held(tmp_path)) == {kept, fresh, open_one}
    assert not (tmp_path / ".x.new").exists()


def test_a_long_path_of_the_bell_gets_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    short = placed(tmp_path / ("x" * 120) / "bell.sock")
    assert len(os.fsencode(short)) <= LONGEST
    assert short == placed(tmp_path / ("x" * 120) / "bell.sock") != placed(tmp_path / ("y" * 120) / "bell.sock")
    assert placed(Path("/s/bell.sock")) == Path("/s/bell.sock")


@pytest.mark.parametrize("order", [b"", b"{", b'{"folder": "/', b"x" * (3 << 20)])
def test_half_an_order_is_none(tmp_path: Path, order: bytes) -> None:
    run = subprocess.run([sys.executable, "-I", "-S", SCRIPT], input=order, cwd=tmp_path, check=False, timeout=30)
    assert run.returncode == 1
    assert not list(tmp_path.iterdir())


def test_the_host_needs_nothing_but_the_standard_library() -> None:
    script = (
        "import runpy, sys\n"
        f"sys.argv = [{SCRIPT!r}]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))\n"
        "print(*[name for name in ('asyncio', 'dataclasses', 'subprocess', 'socket') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], input=b"", capture_output=True, check=True, timeout=30
    )
    assert run.stdout.decode().splitlines() == ["__main__ tenuto", ""]


def test_the_file_of_values_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = tmp_path / "env"
    assert environment.of_file(file) == {}
    file.write_text("A=1\n\n#B=2\nC=a=b\n1X=no\nno line\n")
    file.chmod(0o600)
    assert environment.of_file(file) == {"A": "1", "C": "a=b"}
    with pytest.raises(environment.MissingError, match="X is set neither"):
        environment.resolve(["X"], {}, {}, file)
    file.unlink()
    file.mkdir(mode=0o700)
    with pytest.raises(environment.MissingError, match="not a file"):
        environment.of_file(file)
