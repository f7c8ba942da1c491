"""What everything stands on: time, identity and secrets, and the points at which a proof may kill."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time. `now` is aware UTC; `monotonic` is seconds that never go back."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


class Minter(Protocol):
    """The only source of identity and of secrets."""

    def new(self, kind: str) -> str:
        """A fresh identifier of `kind` (see model.ids)."""
        ...

    def secret(self) -> str:
        """A fresh bearer token: 256 bits, URL-safe text."""
        ...


class Fuse(Protocol):
    """Named points at which a proof may kill the process; nothing happens there otherwise."""

    def burn(self, point: str) -> None: ...


class NoFuse:
    """The fuse of everyday life."""

    def burn(self, point: str) -> None:
        """Do nothing."""
