"""Work as another program's registry, or a repository's worktrees, tell of it: what could become a task, and what not.

Nothing is believed further than it was written down there. What could be read is an `Item`; what is over, or cannot be
told for sure, is `Left` with the reason, and what nobody here can read is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Item:
    """One piece of unfinished work. `origin` is what the source calls it, and `state` the source's own word.

    `place` is the conversation that worked on it last (an address or a name), `session` a tool server's session, and
    `facts` small words to be kept as evidence of rank 5, seen at `seen_at` (None: the source does not say when).
    """

    origin: str
    objective: str
    cwd: str
    state: str
    title: str = ""
    place: str | None = None
    session: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    seen_at: datetime | None = None


@dataclass(frozen=True)
class Left:
    """What is not taken, and why. `over`: it had ended there, so there is nothing to go on with."""

    origin: str
    why: str
    over: bool = False


@dataclass(frozen=True)
class Source:
    """What was found in one file or repository. `kind` is what it was recognised as; None: as nothing.

    `name` tells this source from every other, so that what was imported from it once is not imported again. `unread`
    are parts of it that were looked at and not understood, or are not taken along.
    """

    path: str
    kind: str | None
    name: str = ""
    items: tuple[Item, ...] = ()
    left: tuple[Left, ...] = ()
    unread: tuple[str, ...] = ()
