"""What a program's failure comes to as an event: what hinders it by its program's table, or a failure of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from tenuto.core import hindrances
from tenuto.model.evidence import Hindrance
from tenuto.transports.agents import events as said
from tenuto.transports.agents.events import Event, short


def failure(program: str, codes: Sequence[str], text: str) -> Event:
    """The event of a failure with these codes, the program's own first, and this text, which is told in short."""
    told = short(text)
    match hindrances.of(program, codes, text):
        case Hindrance.LIMIT:
            return said.Limited(told)
        case Hindrance.OVERLOAD:
            return said.Overloaded(told)
        case Hindrance.CONTEXT:
            return said.ContextFull(told)
        case Hindrance.LOGIN:
            return said.LoggedOut(told)
        case None:
            return said.Failure(short(codes[0]), told)
        case _ as never:
            assert_never(never)


def whole(value: object) -> int | None:
    """A whole number as JSON has it; None for anything else, true and false too."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
