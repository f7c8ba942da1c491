"""A registry is made for its owner only; what is not ours or not known is refused and keeps its bytes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ledger.world import Counting, SetClock, candidate, never, place, written

from tenuto.model.change import Commit, Committed
from tenuto.model.faults import Corrupt, Mistake, NotFound, UnsupportedVersion
from tenuto.store.opening import PRESENT, open_registry, version_of

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]


def opened(path: Path | str) -> None:
    open_registry(path, SetClock(), minter=Counting(), read_only=True).close_readers()


def both_ways_refuse(path: Path, refusal: type[Exception], match: str) -> None:
    """Reading and writing refuse alike, and the file and its neighbours are as they were."""
    before = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.parent.iterdir()}
    with pytest.raises(refusal, match=match):
        opened(path)
    with pytest.raises(refusal, match=match):
        open_registry(path, SetClock(), minter=Counting())
    after = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.parent.iterdir()}
    assert after == before


async def made(path: Path, tasks: int = 1) -> None:
    ids = Counting()
    ledger = open_registry(path, SetClock(), minter=ids)
    assert await ledger.lead(candidate("me"), never) is not None
    for _ in range(tasks):
        await written(ledger, Commit(puts=place(ids).rows))
    await ledger.close()


async def test_a_new_registry_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state" / "registry.sqlite3"
    ledger = open_registry(path, SetClock(), minter=Counting())
    assert await ledger.ask_stop(SetClock().now()) is False
    assert ledger.registry().id.startswith("g-")
    assert {each.name for each in path.parent.iterdir()} >= {"registry.sqlite3", "registry.sqlite3-wal"}
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    assert {path.parent.stat().st_mode & 0o777, path.parent.parent.stat().st_mode & 0o777} == {0o700}
    await ledger.close()


async def test_its_identity_stays(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    await made(path)
    first = open_registry(path, SetClock(), minter=Counting(50), read_only=True).registry()
    await made(tmp_path / "other.sqlite3")
    again = open_registry(f"sqlite:///{path}", SetClock(), minter=Counting(90))
    assert again.registry() == first
    await again.close()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    path.write_bytes(b"Dear diary, " * 500)
    both_ways_refuse(path, Corrupt, "db check")


async def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    both_ways_refuse(path, Corrupt, "something else")


async def test_a_damaged_registry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    await made(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * 3996 + whole[4096:])
    both_ways_refuse(path, Corrupt, "restore")


async def test_a_truncated_registry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    await made(path, 20)
    path.write_bytes(path.read_bytes()[:4096])
    both_ways_refuse(path, Corrupt, "restore")


async def test_a_newer_registry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    await made(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    connection.close()
    both_ways_refuse(path, UnsupportedVersion, "0999")


async def test_a_file_that_was_made_and_never_filled_is_a_new_registry(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    path.touch(0o600)
    assert version_of(path) is None
    with pytest.raises(NotFound):
        opened(path)
    await made(path)
    assert version_of(path) == PRESENT


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="supervisor"):
        opened(tmp_path / "nowhere" / "registry.sqlite3")
    assert list(tmp_path.iterdir()) == []


async def test_another_kind_of_database_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="mysql"):
        opened("mysql://somewhere/registry")


async def test_a_reader_sees_what_a_supervisor_commits_and_reads_on_without_one(tmp_path: Path) -> None:
    path, ids = tmp_path / "registry.sqlite3", Counting()
    ledger = open_registry(path, SetClock(), minter=ids)
    reader = open_registry(path, SetClock(), minter=ids, read_only=True)
    assert reader.tasks(5) == ()
    assert await ledger.lead(candidate("me"), never) is not None
    here = place(ids)
    await written(ledger, Commit(puts=here.rows))
    assert reader.tasks(5) == (here.task,)
    await ledger.close()
    assert reader.task(here.task.id) == here.task
    reader.close_readers()
    alone = open_registry(path, SetClock(), minter=ids, read_only=True)
    assert alone.task(here.task.id) == here.task
    alone.close_readers()


#: Reads as a user who may read the registry and write nothing.
STRANGER = """
import os, sys
from tenuto.store.opening import open_registry
from tests.ledger.world import Counting, SetClock
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    reader = open_registry(sys.argv[1], SetClock(), minter=Counting(), read_only=True)
    print(len(reader.tasks(5)))
except PermissionError as error:
    print(error)
"""


def strange_look(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.only_on("linux")
def test_a_reader_that_may_not_write_reads_or_says_why_not() -> None:
    import shutil
    import tempfile

    directory = Path(tempfile.mkdtemp(prefix="tenuto-read-"))
    try:
        directory.chmod(0o755)
        path = directory / "registry.sqlite3"
        maker = "import asyncio, sys, pathlib; from tests.ledger.test_opening import made, left_open; asyncio.run({})"
        for verb in ("made(pathlib.Path(sys.argv[1]))", "left_open(pathlib.Path(sys.argv[1]))"):
            subprocess.run(
                [sys.executable, "-c", maker.format(verb), str(path)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                check=True,
                timeout=60,
            )
            for each in directory.iterdir():
                each.chmod(0o444)
            directory.chmod(0o555)
            said = strange_look(path)
            directory.chmod(0o755)
            path.chmod(0o644)
            assert said == "1" or "ask as the user who owns" in said
            if verb.startswith("made"):
                assert said == "1"
    finally:
        shutil.rmtree(directory)


async def left_open(path: Path) -> None:
    """Write once more and vanish, so that a log stays behind."""
    ledger = open_registry(path, SetClock(), minter=Counting())
    await ledger.lead(candidate("me"), lambda holder: True)
    (path.parent / "registry.sqlite3-shm").unlink()
    os._exit(0)


async def test_opening_a_registry_of_the_present_schema_needs_no_migrations(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite3"
    await made(path)
    script = (
        "import sys; from tenuto.store.opening import open_registry; from tests.ledger.world import *;"
        " open_registry(sys.argv[1], SetClock(), minter=Counting()); assert 'alembic' not in sys.modules"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(path), cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert await process.wait() == 0


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_registry_that_loses_its_name_is_written_no_more(tmp_path: Path, replaced: bool) -> None:
    path, clock = tmp_path / "registry.sqlite3", SetClock()
    ledger = open_registry(path, clock, minter=Counting())
    mine = await ledger.lead(candidate("me"), never)
    assert mine is not None
    assert isinstance(await ledger.commit(Commit()), Committed)
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).rename(tmp_path / f"away{name}")
    if replaced:
        other = open_registry(path, clock, minter=Counting())
        assert await other.lead(candidate("you"), never) is not None
        await other.close()
    for _ in range(2):  # the second try must not open what stands there now
        with pytest.raises(Corrupt, match="removed or replaced"):
            await ledger.commit(Commit())
    with pytest.raises(Corrupt):
        await ledger.renew(mine, clock.now(), clock.now())
    for name in ("", "-wal", "-shm"):
        (tmp_path / f"away{name}").replace(path.with_name(path.name + name))
    assert isinstance(await ledger.commit(Commit()), Committed)
    await ledger.close()
