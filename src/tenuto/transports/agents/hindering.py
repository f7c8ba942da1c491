"""What hindered a turn, gathered from the events of its program while it goes.

The last word counts, and only where the turn then ends as failed: a program that compacts its session or whose service
answers again was not hindered. A moment that the program says as such is better than one read from its sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tenuto.core import hindrances, resets
from tenuto.model.evidence import Hindered, Hindrance
from tenuto.transports.agents import events as said


def zone_named(name: str) -> tzinfo | None:
    """The zone of this name; None where this machine knows none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


class Hindering:
    """Hears the events of one turn. `now` reads the clock of this machine, whose zone a program without one means."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._held: Hindered | None = None
        #: What it tries again by itself, in a sentence; None while its service answers.
        self.retrying: str | None = None

    def hear(self, event: said.Event) -> None:
        """Take one event in."""
        match event:
            case said.Limited(text, resets_at, kind, model):
                before = self._held if self._held is not None and self._held.by is Hindrance.LIMIT else None
                self._held = Hindered(
                    Hindrance.LIMIT,
                    text,
                    kind or (before.name if before is not None else None),
                    model or hindrances.model_of(kind) or (before.model if before is not None else None),
                    resets_at or (before.resets_at if before is not None else None),
                )
            case said.Overloaded(text):
                self._held = Hindered(Hindrance.OVERLOAD, text)
            case said.ContextFull(text):
                self._held = Hindered(Hindrance.CONTEXT, text)
            case said.LoggedOut(text):
                self._held = Hindered(Hindrance.LOGIN, text)
            case said.Compacted():
                self._held = None
            case said.Retrying(attempt, most, delay, reason):
                of = f" of {most}" if most is not None else ""
                soon = f", again in {round(delay)} s" if delay is not None else ""
                self.retrying = f"{reason} (try {attempt}{of}{soon})"
            case said.Said() | said.ToolBegan() | said.ToolEnded() | said.TurnEnded():
                self.retrying = None
            case _:
                pass

    def of(self, ended: said.TurnEnded | None) -> Hindered | None:
        """What hindered the turn that ended so; None where it was not hindered."""
        held = self._held
        if held is None or ended is None or ended.interrupted:
            return None
        if not ended.failed and held.by is not Hindrance.CONTEXT:
            return None
        if held.by is not Hindrance.LIMIT or held.resets_at is not None:
            return held
        now = self._now()
        here = now.astimezone().tzinfo
        moment = resets.read(held.text, now, here, zone_named) if here is not None else None
        return Hindered(held.by, held.text, held.name, held.model, moment)
