"""Ending processes, and only those that are who they are said to be.

First asked (SIGTERM), then, after a grace, killed. On Linux a process is pinned by a file
descriptor before its identity is compared, so no signal can reach a successor of its pid. The
calling process is never a target. It promises nothing it did not see: what is left is said. (asyncio is
imported where it is used: whoever only asks about processes must not pay for it.)
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from tenuto.model.evidence import Presence
from tenuto.transports.processes.identity import Identity
from tenuto.transports.processes.table import Belongings, belongings, presence

KILL_WAIT: Final = timedelta(seconds=5)
"""How long killed processes may take to vanish before they count as left."""

LOOK_AGAIN: Final = timedelta(milliseconds=20)


class Ending(StrEnum):
    """What became of those that were to end. True only for ENDED: nobody is left, and that was seen."""

    ENDED = "ended"
    LEFT = "left"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        return self is Ending.ENDED


Who = Callable[[], Sequence[Identity] | None]


async def end(identity: Identity, *, grace: timedelta) -> Ending:
    """End one process; it has ``grace`` to do so by itself."""

    def who() -> Sequence[Identity] | None:
        match presence(identity):
            case Presence.ALIVE:
                return (identity,)
            case Presence.GONE:
                return ()
            case Presence.UNKNOWN:
                return None

    return await end_all(who, grace=grace)


async def end_belongings(leader: Identity, name: str, value: str, *, grace: timedelta) -> Ending:
    """End a leader and all that is proven to be its (see ``belongings``); the doubtful are left alone: UNKNOWN."""
    last: Belongings | None = None

    def who() -> Sequence[Identity] | None:
        nonlocal last
        last = belongings(leader, name, value)
        return None if last is None else last.certain

    ending = await end_all(who, grace=grace)
    return Ending.UNKNOWN if ending and last and last.doubtful else ending


async def end_all(who: Who, *, grace: timedelta) -> Ending:
    """End everyone ``who()`` names, asking it again until it names nobody; takes at most ``grace`` plus five seconds.

    Whoever appears during the grace is asked too; whoever is there after it is killed at once.
    ``who`` answers None when it cannot tell, and is called in a thread.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    asked: set[Identity] = set()
    kill_at = loop.time() + grace.total_seconds()
    give_up_at = kill_at + KILL_WAIT.total_seconds()
    while True:
        named = await asyncio.to_thread(who)
        if named is None:
            return Ending.UNKNOWN
        targets = [one for one in named if one.pid != os.getpid()]
        if not targets:
            return Ending.ENDED
        now = loop.time()
        if now >= give_up_at:
            return Ending.LEFT
        for one in targets:
            if now >= kill_at:
                send(one, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
            elif one not in asked:
                asked.add(one)
                send(one, signal.SIGTERM)
                if hasattr(signal, "SIGCONT"):  # one that is stopped hears nothing until it goes on
                    send(one, signal.SIGCONT)
        until = give_up_at if now >= kill_at else kill_at
        await _gone(targets[0], min(until - now, 0.25))


def send(identity: Identity, what: signal.Signals) -> bool:
    """Signal exactly this process; False when it is not there any more or may not be signalled."""
    if identity.pid <= 1:
        return False
    try:
        pinned = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # no such call on this platform, in this kernel or in this sandbox
        return presence(identity) is Presence.ALIVE and _kill(identity.pid, what)
    try:
        if presence(identity) is not Presence.ALIVE:
            return False
        signal.pidfd_send_signal(pinned, what)
        return True
    except OSError:
        return False
    finally:
        os.close(pinned)


def _kill(pid: int, what: signal.Signals) -> bool:
    try:
        os.kill(pid, what)
    except OSError:
        return False
    return True


async def _gone(identity: Identity, seconds: float) -> None:
    """Wait until this process ended, at most ``seconds``."""
    import asyncio

    try:
        pinned = os.pidfd_open(identity.pid)
    except (AttributeError, OSError):
        await asyncio.sleep(min(seconds, LOOK_AGAIN.total_seconds()))
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(pinned, ended.set)
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await ended.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(pinned)
        os.close(pinned)
