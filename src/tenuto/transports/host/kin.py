"""Who belongs to a program besides its leader: its group, its session, and whoever carries its command.

For the host alone, while the leader is its unreaped child: until then no other process can get the leader's
number, so group and session are exact. Strangers are never signalled: what is outside the group is pinned
and compared first. Standard library only.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

from tenuto.transports.host.program import started


class One(NamedTuple):
    """A process that belongs to the program: which, in whose group, and since when (0 where that is not told)."""

    pid: int
    group: int
    started: int


class Elders:
    """Who was there before the program, looked at while nobody waits, so that its end need not look at them again.

    It holds as long as no number of a process can have come round: numbers are given out in turn, so that takes about
    as many new processes and threads as there are numbers. A quarter of them is believed; a count of 0 is none, as some
    sandboxes tell it for ever.
    """

    def __init__(self, since: int | None) -> None:
        self._forks = _forks() or None
        self._numbers = int(_read("/proc/sys/kernel/pid_max") or 0)
        self._names = set(_older(since)) if since is not None and self._forks is not None else set()

    def names(self) -> set[str]:
        """Their numbers, as far as they are surely still nobody else's; the caller's to add to."""
        now = _forks()
        if self._forks is None or now is None or not 0 <= now - self._forks < self._numbers // 4:
            return set()
        return set(self._names)


def survivors(leader: int, badge: str, since: int | None, elders: Elders | None = None) -> int:
    """How many of the program still run, beside a leader that started at `since`.

    Nobody is said only after two looks: one that is just being replaced by exec shows no environment. The second skips
    whom the first has told to be strangers; between the two no number of a process comes round again.
    """
    strangers = elders.names() if elders is not None else set()
    return len(kin(leader, badge, since, strangers) or kin(leader, badge, since, strangers))


def kin(leader: int, badge: str, since: int | None = None, strangers: set[str] | None = None) -> list[One]:
    """Everyone of the program who still runs, without its leader; `badge` is the NAME=value they carry.

    Who is older than the leader's start, `since` in clock ticks, cannot have been given what it carries. `strangers`
    are not looked at, and who is found to be one is added. Where there is no process table to read, one nameless
    member stands for a group that still has any.
    """
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib would cost the host a third of its start
    except OSError:
        return [One(leader, leader, 0)] if _group_lives(leader) else []
    needle, mine = os.fsencode(badge), os.getpid()
    found: list[One] = []
    others: set[str] = set() if strangers is None else strangers
    for name in names:
        if name not in others and name.isdigit() and (pid := int(name)) not in (leader, mine):
            fields = _stat(pid)
            if fields is None or (fields[0] in (b"Z", b"X") and int(fields[17]) <= 1):
                continue
            older = since is not None and int(fields[19]) < since
            carried = b"" if older else _read(f"/proc/{pid}/environ")
            if leader in (int(fields[2]), int(fields[3])) or b"\0" + needle + b"\0" in b"\0" + carried + b"\0":
                found.append(One(pid, int(fields[2]), int(fields[19])))
            elif older or carried:
                others.add(name)
    return found


def signal_all(leader: int, badge: str, number: signal.Signals) -> None:
    """Signal the leader's group and everyone else of the program, each once; who is gone already does not matter."""
    try:
        os.killpg(leader, number)
    except OSError:  # nobody is left in the group, or only one that may not be signalled
        pass
    for one in kin(leader, badge):
        if one.group != leader:
            _signal(one, number)


def _signal(one: One, number: signal.Signals) -> None:
    try:
        pinned = os.pidfd_open(one.pid)
    except (AttributeError, OSError):  # gone, or no such call here: the group has been signalled
        return
    try:
        if started(one.pid) == one.started:
            signal.pidfd_send_signal(pinned, number)
    except OSError:
        pass
    finally:
        os.close(pinned)


def _older(since: int) -> list[str]:
    """The numbers of the processes that started before a moment in clock ticks."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as above
    except OSError:
        return []
    return [name for name in names if (fields := _stat(int(name))) is not None and int(fields[19]) < since]


def _forks() -> int | None:
    """How many processes and threads were made since the machine started; None where that is not told."""
    for line in _read("/proc/stat").splitlines():
        if line.startswith(b"processes "):
            return int(line[10:])
    return None


def _stat(pid: int) -> list[bytes] | None:
    line = _read(f"/proc/{pid}/stat")
    return line[line.rindex(b")") + 2 :].split() if line else None


def _read(path: str) -> bytes:
    held = b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while more := os.read(descriptor, 1 << 16):
                held += more
        finally:
            os.close(descriptor)
    except OSError:  # gone, or another user's
        pass
    return held


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
