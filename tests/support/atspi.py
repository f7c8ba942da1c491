"""A stub of the accessibility bus of Linux: it answers what a bus would be asked, out of a table of places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tenuto.transports.watched import atspi

Places = Mapping[str, tuple[int | None, Sequence[str] | None, str | None]]

SHOWN = (1 << atspi.ENABLED) | (1 << atspi.SENSITIVE) | (1 << atspi.SHOWING)


class Asking:
    """What a bus would answer: every place with its role, its children (None: it refuses), and its address."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.names: dict[str, str] = {}
        self.states: dict[str, int] = {}
        self.gone: set[str] = set()
        self.pids: dict[str, int | None] = {}

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _message(self, to: str, path: str, _face: str, method: str, *given: str) -> Any:
        return to, path, method, given

    def _ask(self, questions: Sequence[Any]) -> list[Any]:
        return [self.answer(*question) for question in questions]

    def answer(self, to: str, path: str, method: str, given: Sequence[str]) -> Any:
        if method == "GetConnectionUnixProcessID":
            return None if given[0] in self.gone else (self.pids.get(given[0], 7),)
        if path not in self.places:
            return None
        role, children, url = self.places[path]
        match method:
            case "GetRole":
                return None if role is None else (role,)
            case "GetState":
                return ([self.states.get(path, SHOWN)],)
            case "GetChildren":
                return None if children is None else ([(f":{to[1:]}" if to[0] == ":" else ":1", x) for x in children],)
            case "GetAttributeValue":
                return None if url is None else (url,)
            case _:
                return (("s", self.names.get(path, "Send prompt")),)


def asked(made: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every look at an accessibility bus ask this one."""

    class Over(atspi._Asking):
        def __init__(self, _bus: str | None) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

        def _message(self, *given: Any) -> Any:
            return made._message(*given)

        def _ask(self, messages: Any) -> list[Any]:
            return made._ask(messages)

    monkeypatch.setattr(atspi, "_Asking", Over)
