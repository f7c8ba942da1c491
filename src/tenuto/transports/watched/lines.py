"""What is under way on the lines of one tab, counted from what its browser tells of their beginnings and ends.

A browser does not say what was under way before it was listened to, and a line that is silent cannot be told from one
that is not there. So how many there are is unknown, and not none, until the document that is shown was itself seen to
be asked for: nothing of an earlier one is left then. Too many to be remembered are unknown again, until the next
document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

LINES: Final = 2000
"""The most lines of a tab that are remembered as under way."""

DOCUMENTS: Final = 200
"""Of how many documents it is remembered that they were asked for, the last ones."""

STREAMS: Final = frozenset({"EventSource", "WebSocket"})


@dataclass(frozen=True)
class _Line:
    """One line: of which sort, of which document ("": not told), and how many had begun before it."""

    sort: str
    document: str
    number: int


class Lines:
    """The lines of one tab, from when it is listened to."""

    def __init__(self) -> None:
        self._open: dict[str, _Line] = {}
        self._asked: dict[str, tuple[int, str]] = {}  # documents: how many lines had begun before, and in which frame
        self._shown: str | None = None
        self._known = False
        self._count = 0

    @property
    def requests(self) -> int | None:
        """How many are under way; None where that cannot be known."""
        return len(self._open) if self._known else None

    @property
    def streams(self) -> int | None:
        """How many of them stay open; None where that cannot be known."""
        return sum(line.sort in STREAMS for line in self._open.values()) if self._known else None

    def take(self, event: str, told: Mapping[str, Any]) -> bool:
        """One event; whether something came in. Nothing of it but that, its sort and whose it is, is looked at."""
        name, sort, document = (str(told.get(key, ""))[:100] for key in ("requestId", "type", "loaderId"))
        match event:
            case "Network.requestWillBeSent":
                if name and name == document and name not in self._asked:
                    self._asked[name] = (self._count, str(told.get("frameId", ""))[:100])
                    while len(self._asked) > DOCUMENTS:
                        del self._asked[next(iter(self._asked))]
                self._began(name, sort, document)
            case "Network.webSocketCreated":
                self._began(name, "WebSocket", "")
            case "Network.responseReceived":
                if (line := self._open.get(name)) is not None:
                    self._open[name] = replace(line, sort=sort)
                return True
            case "Network.dataReceived" | "Network.eventSourceMessageReceived" | "Network.webSocketFrameReceived":
                return True
            case "Network.loadingFinished" | "Network.loadingFailed" | "Network.webSocketClosed":
                self._open.pop(name, None)
            case "Inspector.targetCrashed":
                self._open.clear()
                self._shown, self._known = None, False
            case _:
                pass
        return False

    def shows(self, document: str, frame: str) -> None:
        """Which document the tab shows now, in which frame, by the names its browser gives them."""
        if document == self._shown:
            return
        before, self._shown = self._shown, document
        asked = self._asked.get(document)
        self._known = asked is not None and asked[1] == frame
        if asked is None or not self._known:
            return
        others = {before} | {other for other, (_, where) in self._asked.items() if where == frame and other != document}
        self._open = {
            name: line
            for name, line in self._open.items()
            if line.number >= asked[0] and line.document not in others
        }  # fmt: skip

    def _began(self, name: str, sort: str, document: str) -> None:
        if name in self._open:  # asked for once more, because it is elsewhere
            return
        if len(self._open) >= LINES:
            self._known = False
            return
        self._open[name] = _Line(sort, document, self._count)
        self._count += 1
