"""Something happened: the supervisor's live feed as a bell, with looking once a second as the fall-back.

The feed is never the truth. It only says when to look, and a feed that is lost costs nothing but a second.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from tenuto.surfaces.cli.client import Lost, Unreachable
from tenuto.surfaces.cli.door import Door
from tenuto.surfaces.cli.exits import Failure

POLL = 1.0
"""How long to wait without a feed, in seconds."""
HEARD = 5.0
"""How long to wait with one: the feed may be late, and standing changes with time as well."""


class Edges:
    """Waits for the next thing that happens, on a thread that ends with the process."""

    def __init__(self, door: Door, params: Mapping[str, object]) -> None:
        self._door = door
        self._params = params
        self._rung = threading.Event()
        self._over = threading.Event()
        self._hears = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, name="edges", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def wait(self, most: float = HEARD) -> None:
        """Come back when something happened, after `POLL` seconds without a feed, after `most` with one."""
        self._rung.wait(min(most, HEARD if self._hears else POLL))
        self._rung.clear()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                with self._door.feed(self._params) as events:
                    self._hears = True
                    self._rung.set()
                    for event in events:
                        if self._over.is_set():
                            return
                        self._params = {**self._params, "after": str(event.get("n", self._params.get("after", "0")))}
                        self._rung.set()
            except (Unreachable, Lost, Failure):
                pass
            self._hears = False
            self._rung.set()
            self._over.wait(POLL)
