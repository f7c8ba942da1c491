"""Who a process is, and what may be said about it.

A pid is given to another process as soon as its owner is gone, so a pid alone names nobody.
An identity adds the moment the process started and the boot it started in. Only identities
taken on this machine can be judged here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """One process, for ever: a reused pid differs in ``start``, a rebooted machine in ``boot``.

    ``start`` is in clock ticks since boot on Linux, in microseconds since the epoch elsewhere.
    ``boot`` is an opaque id, "" where the platform tells none.
    """

    pid: int
    start: int
    boot: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A row of the process table. A process that only waits to be reaped is ``finished``."""

    identity: Identity
    group: int
    session: int
    finished: bool
