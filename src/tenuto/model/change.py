"""What is to be written, as one value.

The core says what rows become; the ledger writes all of it in one transaction, or none. A row is a whole new value:
revision 1 is inserted, any higher revision replaces exactly its predecessor, and if that is not what stands there
the commit is stale and nothing happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenuto.model.chain import Chain, Link
from tenuto.model.command import Armed, Attempt, Command
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Sample, Sighting
from tenuto.model.fact import Fact, Scalar
from tenuto.model.ids import CommandId
from tenuto.model.limit import UsageLimit
from tenuto.model.merging import Mandate, Proposal, Review
from tenuto.model.message import Message
from tenuto.model.permission import Permission
from tenuto.model.phase import Phase
from tenuto.model.snapshot import Registry, Token
from tenuto.model.work import Report, Run, Task, Text, Wait, Wake
from tenuto.model.worktree import Worktree

#: For how long an idempotency key is known; the same key means something new after that.
KEY_LIFE = timedelta(hours=24)

Row = (
    Registry
    | Run
    | Task
    | Conversation
    | Attempt
    | Command
    | Wait
    | Wake
    | Message
    | Report
    | Text
    | Sample
    | Sighting
    | Token
    | Chain
    | Link
    | Permission
    | UsageLimit
    | Mandate
    | Proposal
    | Review
    | Worktree
    | Phase
)


@dataclass(frozen=True)
class Guard:
    """A row that was looked at and must still have this revision; `table` is the row type's name in lower case."""

    table: str
    id: str
    revision: int


@dataclass(frozen=True)
class Key:
    """An idempotency key: the same scope and key with the same digest replays `result`; another digest conflicts."""

    scope: str
    key: str
    digest: str
    result: Mapping[str, Scalar]


@dataclass(frozen=True)
class Commit:
    """One transaction.

    `holds` are (scope, command) pairs to take, `frees` commands whose holds end. `valid_until` is the instant after
    which what was seen is too old to act on. `led` False marks the few writes that need no leader (asking it to stop).
    """

    puts: tuple[Row, ...] = ()
    facts: tuple[Fact, ...] = ()
    guards: tuple[Guard, ...] = ()
    holds: tuple[tuple[str, CommandId], ...] = ()
    frees: tuple[CommandId, ...] = ()
    key: Key | None = None
    valid_until: datetime | None = None

    def then(self, other: Commit) -> Commit:
        """Both in one transaction, in this order; at most one of them may carry a key."""
        limits = [limit for limit in (self.valid_until, other.valid_until) if limit is not None]
        return Commit(
            puts=self.puts + other.puts,
            facts=self.facts + other.facts,
            guards=self.guards + other.guards,
            holds=self.holds + other.holds,
            frees=self.frees + other.frees,
            key=self.key or other.key,
            valid_until=min(limits) if limits else None,
        )


@dataclass(frozen=True)
class Committed:
    """It is durable. `n` is the number of its last event; `armed` are the commands it armed."""

    n: int
    armed: tuple[Armed, ...] = ()


@dataclass(frozen=True)
class Stale:
    """A row, or the clock, has moved on since it was looked at; nothing was written."""

    what: str


@dataclass(frozen=True)
class Busy:
    """Another open command holds the scope, or a unique truth (one live attempt, one lease) is taken."""

    scope: str


@dataclass(frozen=True)
class NotLeader:
    """Another supervisor leads; this one may write nothing."""

    epoch: int


@dataclass(frozen=True)
class Replayed:
    """The key was used with the same body before: this is what came of it."""

    result: Mapping[str, Scalar]


@dataclass(frozen=True)
class KeyConflict:
    """The key was used before with another body."""

    key: str


Result = Committed | Stale | Busy | NotLeader | Replayed | KeyConflict
