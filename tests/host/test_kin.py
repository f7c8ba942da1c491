"""Who belongs to a program: whoever is of its group or session, or carries its badge and is no older than it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tenuto.transports.host import kin as room
from tenuto.transports.host.kin import Elders, kin, survivors
from tenuto.transports.host.program import started

BADGE = "TENUTO_COMMAND=of-this-test"


@contextmanager
def running(badge: str | None = None) -> Iterator[int]:
    """A process in a session of its own, which carries a badge; it has become its program when this is entered."""
    name, _, value = (badge or "").partition("=")
    env = {"PATH": os.environ.get("PATH", os.defpath), **({name: value} if name else {})}
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"there\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"there\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def born(pid: int) -> int:
    """When a process that is there was started, in clock ticks."""
    at = started(pid)
    assert at is not None
    return at


def test_whoever_carries_the_badge_is_found_wherever_it_went() -> None:
    with running() as leader, running(BADGE) as away, running(f"{BADGE}-not"):
        assert [one.pid for one in kin(leader, BADGE)] == [away]
        assert [one.pid for one in kin(leader, BADGE, born(away))] == [away]
        assert survivors(leader, BADGE, born(leader)) == 1


def test_who_is_older_than_the_program_was_given_its_badge_by_somebody_else() -> None:
    with running(BADGE) as before, running() as leader:
        strangers: set[str] = set()
        assert kin(leader, BADGE, born(before) + 1, strangers) == []
        assert str(before) in strangers
        assert kin(leader, BADGE, None, strangers) == []
        assert survivors(leader, BADGE, born(before) + 1) == 0


def test_who_was_there_before_is_not_looked_at_again_until_numbers_may_come_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running(BADGE) as before, running() as leader, ExitStack() as later:
        elders = Elders(born(before) + 1)
        after = later.enter_context(running(BADGE))
        assert str(before) in elders.names()
        assert survivors(leader, BADGE, None, elders) == 1, "who came later is found whoever is known"
        assert [one.pid for one in kin(leader, BADGE, None, elders.names())] == [after]
        monkeypatch.setattr(room, "_forks", lambda: 1 << 40)
        assert elders.names() == set()
        assert {one.pid for one in kin(leader, BADGE, None, elders.names())} == {before, after}
        monkeypatch.setattr(room, "_forks", lambda: None)
        assert elders.names() == Elders(born(before) + 1).names() == set(), "it is not told how many were made"
        monkeypatch.setattr(room, "_forks", lambda: 0)
        assert Elders(born(before) + 1).names() == set(), "a counter that stands at nothing does not count"
        monkeypatch.undo()
        assert Elders(None).names() == set(), "it is not known when the program started"
