"""Who belongs to a program: whoever is of its group or session, or carries its badge and is no older than it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tenuto.transports.host.kin import kin, survivors
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
