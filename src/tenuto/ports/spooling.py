"""Words that agents leave while no supervisor listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tenuto.model.ids import TaskId


@dataclass(frozen=True)
class Word:
    """What an agent left behind while nobody listened, as it lies in the spool: nothing of it is proven.

    `params` are the verb's own. `hint` is the beginning of the sha256 of the token that sealed `body`, `seal` the
    HMAC of it; `name` is the word's place.
    """

    name: str
    verb: str
    params: Mapping[str, object]
    key: str
    task_id: TaskId
    at: datetime
    hint: str
    seal: str
    body: str


@dataclass(frozen=True)
class Unreadable:
    """Something in the spool that is no word, and why."""

    name: str
    reason: str


class Spool(Protocol):
    """Where agents leave words while no supervisor listens."""

    def stamp(self) -> int:
        """A number that changes whenever something is put there or taken away."""
        ...

    def waiting(self, limit: int) -> tuple[Word | Unreadable, ...]:
        """What lies there, oldest first."""
        ...

    def genuine(self, word: Word, digest: str) -> bool:
        """Whether who has the token of this digest (sha256, hex) sealed the word."""
        ...

    def remove(self, name: str) -> None: ...

    def refuse(self, name: str, reason: str) -> None:
        """Put it aside with the reason."""
        ...
