"""What goes wrong, in three kinds.

A *refusal* is a value (`Because`, `Stale`, `Held`), never an exception. A *mistake* of the caller is an exception
whose text names the field and the mend. *Corruption* and an *unsupported version* stop everything and keep the
evidence untouched. Nothing else in the model or the core raises.
"""

from __future__ import annotations


class Mistake(Exception):
    """The caller asked for something that cannot be; `field` names what to mend, `see` where to read more."""

    code = "mistake"

    def __init__(self, message: str, *, field: str | None = None, see: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.see = see


class NotFound(Mistake):
    """Nothing here has that name."""

    code = "not_found"


class Conflict(Mistake):
    """The same key came with another body, or the thing exists already."""

    code = "conflict"


class Duplicate(Conflict):
    """The same work is under way already; `see` shows it."""

    code = "duplicate"


class Pressed(Mistake):
    """Too much at once: nothing was made. It may be asked again after `retry_after` seconds."""

    code = "back_pressure"

    def __init__(self, message: str, *, retry_after: int, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.retry_after = retry_after


class Hurried(Pressed):
    """One source asked too often; nothing was made."""

    code = "rate_limited"


class Refused(Mistake):
    """The request is understood and not allowed now; the message is the because."""

    code = "refused"


class NotAllowed(Mistake):
    """The caller's token does not open this door."""

    code = "not_allowed"


class IllegalMove(Exception):
    """A lifecycle was asked for a move its table does not have: a fault of ours, never of the caller."""


class Corrupt(Exception):
    """The registry contradicts itself or cannot be read; it is left as it is, and a person is told what to do."""


class UnsupportedVersion(Exception):
    """Something outside (a registry, a journal, a wire peer) is of a version this program does not know."""


class NoSupervisor(Exception):
    """No supervisor could be reached, and this verb needs one."""


class OutOfReach(Exception):
    """The registry's database cannot be reached; whether the last commit was made is not known. Nothing is armed."""


class StorageFull(Exception):
    """The disk has no room for another row; nothing is armed until it has."""
