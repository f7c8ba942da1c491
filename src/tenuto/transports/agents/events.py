"""What an agent program says of its work, in words that no program owns: the streams of this room make these.

An event is what the program's own structured channel said, or that it said nothing any more; nothing is concluded here.
Texts are short and shown to people (a question, a limit's own sentence); what an agent wrote rides in `Said` alone, is
read for fenced blocks and is never kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

TEXT: Final = 2000
"""Most characters of a text that an event carries, `Said` apart."""


@dataclass(frozen=True)
class Usage:
    """What a turn took: tokens as the program counts them, `cost` in millionths of `currency`; None: not reported."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    currency: str | None = None


@dataclass(frozen=True)
class Opened:
    """The program's session is there: its own id, and what it says of itself."""

    session: str
    model: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class TurnBegan:
    """A turn is under way. `turn` is what the program calls it; `marker` the command whose words began it, if seen."""

    turn: str
    marker: str | None = None


@dataclass(frozen=True)
class Steered:
    """The turn itself acknowledged words that were put into it: the marker they carried, and which turn it is."""

    turn: str
    marker: str


@dataclass(frozen=True)
class Refused:
    """Words that were to go into a turn were not taken: the marker they carried, and the program's reason."""

    marker: str
    reason: str


@dataclass(frozen=True)
class Said:
    """Words of the agent's own answer; never those of a tool, of a sub-agent, or of its thinking."""

    text: str


@dataclass(frozen=True)
class ToolBegan:
    """A tool is being used: its id and name, never its arguments."""

    id: str
    name: str


@dataclass(frozen=True)
class ToolEnded:
    """A tool has answered; `failed` None where that is not said."""

    id: str
    failed: bool | None = None


@dataclass(frozen=True)
class Retrying:
    """The program's model does not answer and the program tries again by itself: alive, and waiting.

    `delay` is seconds until the next try, `reason` the program's own word for the failure.
    """

    attempt: int
    most: int | None
    delay: float | None
    reason: str


@dataclass(frozen=True)
class Limited:
    """A usage limit, in the program's own text. `resets_at` only where the channel says it as a moment.

    `continues` is true where the program says that it goes on by itself after the reset.
    """

    text: str
    resets_at: datetime | None = None
    kind: str | None = None
    model: str | None = None
    continues: bool = False


@dataclass(frozen=True)
class Overloaded:
    """The service did not answer, the program has given up on it for now, and it may answer soon."""

    text: str


@dataclass(frozen=True)
class LoggedOut:
    """The account is not let in: only a person can mend that."""

    text: str


@dataclass(frozen=True)
class PermissionAsked:
    """The program waits for leave. `request` answers it, `tool` is what it wants to use and `what` what exactly for.

    `fingerprint` is a sha256 (hex) over all that is asked for, however long.
    """

    request: str
    tool: str
    what: str
    fingerprint: str


@dataclass(frozen=True)
class PermissionSettled:
    """A question of before is answered, or withdrawn: `allowed` None where nobody answered it."""

    request: str
    allowed: bool | None


@dataclass(frozen=True)
class ContextFull:
    """The session's context is at its end: a turn does not fit into it any more."""

    text: str


@dataclass(frozen=True)
class Compacted:
    """The program shortened its own memory of the session; `automatic` None where that is not said."""

    automatic: bool | None = None


@dataclass(frozen=True)
class Failure:
    """The turn met an error that the program names: its own code or type, and its text."""

    code: str
    text: str


@dataclass(frozen=True)
class TurnEnded:
    """The program's own word that the turn is over. `stop` is that word, `interrupted` that somebody cut it.

    `session_cost` is what the whole session has cost so far, in millionths, where only that is told.
    """

    turn: str
    stop: str
    interrupted: bool = False
    failed: bool = False
    usage: Usage = Usage()
    session_cost: int | None = None


@dataclass(frozen=True)
class Closed:
    """The channel ended: the program is gone or closed it. It says nothing about how a turn ended."""

    reason: str
    exit_code: int | None = None


Event = (
    Opened | TurnBegan | Steered | Refused | Said | ToolBegan | ToolEnded | Retrying | Limited | Overloaded | LoggedOut
    | PermissionAsked | PermissionSettled | ContextFull | Compacted | Failure | TurnEnded | Closed
)  # fmt: skip


def short(text: object) -> str:
    """A text as an event carries it: one line's worth of characters, however long it was."""
    told = text if isinstance(text, str) else str(text)
    return told if len(told) <= TEXT else told[: TEXT - 1] + "…"


def print_of(tool: str, what: object) -> str:
    """The fingerprint of a question: the same for the same tool and the same wish, in whatever order it is told."""
    told = json.dumps([tool, what], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(told.encode("ascii")).hexdigest()


def facts_of(event: Event) -> Mapping[str, object]:
    """An event as small named facts that JSON can say: `event` is its name, beside its fields."""
    told: dict[str, object] = {"event": type(event).__name__}
    for one in fields(event):
        value = getattr(event, one.name)
        if isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, Usage):
            value = {each.name: getattr(value, each.name) for each in fields(value)}
        elif isinstance(value, tuple):
            value = [list(each) for each in value]
        told[one.name] = value
    return told
