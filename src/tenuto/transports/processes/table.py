"""Questions about processes, answered from the platform's table.

An answer is a whole one or None: "nobody carries this any more" is the ground on which a turn
is called interrupted, so a process that could not be read makes it unanswerable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tenuto.model.evidence import Presence
from tenuto.transports.processes.identity import Identity, Seen
from tenuto.transports.processes.linux import HiddenError

if sys.platform == "linux":
    from tenuto.transports.processes import linux as platform
else:
    from tenuto.transports.processes import portable as platform


def boot_id() -> str:
    """An opaque id that changes with every boot of this machine; "" where the platform tells none."""
    return platform.boot_id()


def identity_of(pid: int) -> Identity | None:
    """Who has this pid now; None when nobody who still runs does, or when it may not be seen."""
    try:
        found = platform.seen(pid) if pid > 0 else None
    except HiddenError:
        return None
    return found.identity if found and not found.finished else None


def presence(identity: Identity) -> Presence:
    """Whether this very process still runs. Another boot, another start time and a zombie all mean GONE."""
    if identity.boot and boot_id() and identity.boot != boot_id():
        return Presence.GONE
    try:
        found = platform.seen(identity.pid)
    except HiddenError:
        return Presence.UNKNOWN
    if found is None or found.identity.start != identity.start or found.finished:
        return Presence.GONE
    return Presence.ALIVE if found.identity.boot == identity.boot else Presence.UNKNOWN


def group_members(pgid: int) -> tuple[Identity, ...] | None:
    """Everyone who still runs in a process group, by pid; None when the table cannot be read."""
    return _members(lambda seen: seen.group == pgid)


def session_members(sid: int) -> tuple[Identity, ...] | None:
    """Everyone who still runs in a session, by pid; None when the table cannot be read."""
    return _members(lambda seen: seen.session == sid)


def carriers(name: str, value: str, *, since: int | None = None) -> tuple[Identity, ...] | None:
    """Every running process of this user whose environment at its start held ``name=value``, by pid.

    ``since`` is the start time of the first process that was given the value: older ones cannot
    hold it. None when one that may not be read could hold it; programs that guard secrets are
    often such, so give ``since`` wherever it is known. A program can wipe
    its own environment or start another without it; group and session are the other two ways to
    find it. An empty answer was looked up twice, because a process that is just being replaced
    by ``exec`` shows no environment, and a child may have got a pid the first look had passed.
    """
    needle = os.fsencode(f"{name}={value}")
    return _carriers_once(needle, since) or _carriers_once(needle, since)


@dataclass(frozen=True, slots=True)
class Belongings:
    """What a leader left running. ``certain`` is proven to be its; ``doubtful`` runs in a group of its number."""

    certain: tuple[Identity, ...]
    doubtful: tuple[Identity, ...] = ()


def belongings(leader: Identity, name: str, value: str) -> Belongings | None:
    """The leader, those who carry ``name=value``, and the members of the leader's group and session; None: cannot tell.

    The kernel gives a pid to nobody else while a group or session of that number lives. So if the
    number now names another process, the leader's group is empty; if it names nobody, members
    that do not carry the value are doubtful.
    """
    if leader.boot and boot_id() and leader.boot != boot_id():
        return Belongings(())
    carrying = carriers(name, value, since=leader.start)
    try:
        now = platform.seen(leader.pid)
    except HiddenError:
        return None
    same = now is not None and now.identity.start == leader.start
    near = () if now is not None and not same else _members(lambda seen: leader.pid in (seen.group, seen.session))
    if carrying is None or near is None:
        return None
    if same:
        return Belongings(tuple(sorted({*carrying, *near})))
    return Belongings(carrying, tuple(one for one in near if one not in carrying))


def _members(wanted: Callable[[Seen], bool]) -> tuple[Identity, ...] | None:
    members: list[Identity] = []
    try:
        for pid in platform.pids():
            found = _seen_or_none(pid)
            if found is not None and not found.finished and wanted(found):
                members.append(found.identity)
    except OSError:
        return None
    return tuple(sorted(members))


def _seen_or_none(pid: int) -> Seen | None:
    try:
        return platform.seen(pid)
    except HiddenError:
        return None


def _carriers_once(needle: bytes, since: int | None) -> tuple[Identity, ...] | None:
    found: list[Identity] = []
    try:
        everyone = platform.pids()
    except OSError:
        return None
    for pid in everyone:
        match platform.carries(pid, needle):
            case False:
                continue
            case True if _ours(pid):
                row = _seen_or_none(pid)
                if row is not None and not row.finished:
                    found.append(row.identity)
            case None if _ours(pid) and _could_hold(pid, since):
                return None
            case _:
                continue
    return tuple(sorted(found))


def _ours(pid: int) -> bool:
    return not hasattr(os, "getuid") or platform.owner(pid) == os.getuid()


def _could_hold(pid: int, since: int | None) -> bool:
    if pid == 1:  # the first process was here before anyone who gives values
        return False
    row = _seen_or_none(pid)
    return row is not None and not row.finished and (since is None or row.identity.start >= since)
