"""What an executor can do beside carrying out commands, asked of its class once.

Decides nothing. Asking a protocol by `isinstance` looks for every one of its members each time, and a look at one task
asks about ten times.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from tenuto.ports import Accounted, Closing, Foreseeing, Paging, PerTask, Placed, Steering, Taking, Troubled

_known: dict[tuple[type, type], bool] = {}


def _able(thing: object, ability: Any) -> bool:
    """Whether a thing has all that a protocol names; the same for every thing of its class."""
    asked = (type(thing), ability)
    known = _known.get(asked)
    if known is None:
        known = _known[asked] = isinstance(thing, ability)
    return known


def tells_trouble(thing: object) -> TypeGuard[Troubled]:
    return _able(thing, Troubled)


def foresees(thing: object) -> TypeGuard[Foreseeing]:
    return _able(thing, Foreseeing)


def takes_over(thing: object) -> TypeGuard[Taking]:
    return _able(thing, Taking)


def has_pages(thing: object) -> TypeGuard[Paging]:
    return _able(thing, Paging)


def closes_pages(thing: object) -> TypeGuard[Closing]:
    return _able(thing, Closing)


def has_place(thing: object) -> TypeGuard[Placed]:
    return _able(thing, Placed)


def has_account(thing: object) -> TypeGuard[Accounted]:
    return _able(thing, Accounted)


def steers(thing: object) -> TypeGuard[Steering]:
    return _able(thing, Steering)


def per_task(thing: object) -> TypeGuard[PerTask]:
    return _able(thing, PerTask)
