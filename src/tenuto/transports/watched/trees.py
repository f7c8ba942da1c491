"""What the accessibility tree of a window tells of a page, whatever system it comes from.

A system's side is one protocol, `Trees`: which windows show which addresses, and the nodes of one of them. What is
concluded is here: a control that a site's profile calls Stop, or a part that says it is busy, generates. That nothing
of the sort is there says little, so *still* is concluded only from a Send beside it, in a tree that was seen whole.
Names of controls are compared and thrown away; of everything else a digest is kept, to see change by.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

NODES: Final = 1500
"""The most nodes of a page that are looked at, the last ones first: what moves in a chat is at its end."""


class NotLooked(Exception):
    """Nobody could be asked; the message says why, and `mend` what helps."""

    def __init__(self, why: str, mend: str = "") -> None:
        super().__init__(why)
        self.mend = mend


class Sort(StrEnum):
    BUTTON = "button"
    OTHER = "other"


@dataclass(frozen=True)
class Node:
    """One node of a page: its sort, its name as it is read out, what it says of itself, and what change is seen by."""

    sort: Sort
    name: str
    busy: bool
    enabled: bool
    shown: bool
    print: str


@dataclass(frozen=True)
class Window:
    """A top-level window that shows an address now. `id` is ours, and good for as long as the window lives."""

    id: str
    url: str
    program: str
    pid: int | None
    place: object


class Trees(Protocol):
    """A system's accessibility trees. Both methods may block, and are bounded in nodes and time."""

    def windows(self) -> tuple[Sequence[Window], bool]:
        """Every window that shows a page, once for each page, and whether these are all. Raises NotLooked."""
        ...

    def nodes(self, window: Window, most: int) -> tuple[Sequence[Node], bool]:
        """At most so many nodes of its page, the last ones first, and whether these are all. Raises NotLooked."""
        ...


@dataclass(frozen=True)
class NoTrees:
    """Implements `Trees` where there are none that could be read: says why, and what helps."""

    why: str
    mend: str

    def windows(self) -> tuple[Sequence[Window], bool]:
        raise NotLooked(self.why, self.mend)

    def nodes(self, window: Window, most: int) -> tuple[Sequence[Node], bool]:
        raise NotLooked(self.why, self.mend)


@dataclass(frozen=True)
class Judged:
    """What nodes come to."""

    generating: bool | None
    send_ready: bool | None
    digest: str


Called = Callable[[str], bool]
_NOBODY: Final[Called] = lambda _name: False  # noqa: E731 - a name for nothing


def labels_of(profile: Mapping[str, Any] | None) -> tuple[Called, Called]:
    """What of a site's controls is Stop, and what is Send, by their names; nothing, where there is no profile."""
    if profile is None:
        return _NOBODY, _NOBODY
    stop, other, send = (_called(profile["labels"].get(name)) for name in ("stop", "other_stop", "send"))
    return (lambda name: stop(name) and not other(name)), send


def _called(label: Mapping[str, Any] | None) -> Called:
    if label is None:
        return _NOBODY
    words = frozenset(label["words"])
    patterns = [re.compile(pattern, re.IGNORECASE) for pattern in label["regex"]]
    return lambda name: name in words or any(pattern.search(name) for pattern in patterns)


def plain(name: str) -> str:
    """A control's name as names are compared: one line, lower case, of at most 400 characters."""
    return " ".join(name[:400].split()).lower()


def judged(nodes: Iterable[Node], whole: bool, profile: Mapping[str, Any] | None) -> Judged:
    """What the nodes of a page say together."""
    is_stop, is_send = labels_of(profile)
    told = hashlib.sha256()
    stop = busy = send = ready = False
    for node in nodes:
        told.update(node.print.encode("utf-8", "replace") + b"\0")
        if not node.shown:
            continue
        busy = busy or node.busy
        if node.sort is Sort.BUTTON:
            name = plain(node.name)
            stop = stop or is_stop(name)
            if is_send(name):
                send, ready = True, ready or node.enabled
    generating = True if stop or busy else (False if send and whole else None)
    return Judged(generating, ready and not (stop or busy) if send else None, told.hexdigest())
