"""An agent's host that a proof can kill: what the supervisor starts for a conversation, with a fuse in it.

It writes down which points it passed. The first one that has its journal takes the fuse a case has laid out, and dies
where that says; every later one is an everyday host.

    python -m tenuto.proof.hosted HOME [the arguments of a host]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from tenuto.ports import Fuse
from tenuto.proof.fuse import Fuses, KillFuse, Recorder
from tenuto.transports.agents import host

LAID = "talk.fuse"
"""Holds the point and its count, until somebody takes it."""

TAKEN = "talk.taken"


def lit(home: Path) -> Fuse:
    """Record every passing, and die at the one that was laid out, where nobody has taken that yet."""
    record = Recorder(home / "passed.talk.1")
    try:
        (home / LAID).rename(home / TAKEN)
    except FileNotFoundError:
        return record
    point, count = (home / TAKEN).read_text("ascii").split()
    return Fuses(record, Recorder(home / "passed.taken"), KillFuse(point, int(count)))


def main(arguments: list[str]) -> int:
    """Speak for a conversation until idle, stopped, or killed here."""
    home, *rest = arguments
    return host.main(rest, partial(lit, Path(home)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
