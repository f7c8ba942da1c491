"""The executor wire: every message that a supervisor and an executor may say to each other, `tenuto-executor/1`.

A frame is one JSON object in one text message; its `frame` says which. Reading is strict where it matters (an unknown
frame, a wrong type, a missing field, more than 2 MiB: refused, all of it) and lenient where versions meet (an unknown
field is passed over). Nothing here connects, decides or concludes.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from tenuto.model.evidence import Asking, Ending, Mark, Presence, Rank
from tenuto.model.ids import AttemptId, CommandId, RunId, TaskId
from tenuto.transports import values

PROTOCOL: Final = "tenuto-executor"
VERSION: Final = 1
SKEW: Final = 1
"""How many versions two sides may be apart."""

SUBPROTOCOL: Final = "tenuto-executor.1"
"""What a websocket names as its subprotocol; a browser puts `bearer.TOKEN` beside it, since it can set no header."""

LIMIT: Final = 2 << 20
"""Most bytes of a frame."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""What an executor may be called."""

LIFE: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
"""How the incarnation of a journal is spelled."""


class Refused(StrEnum):
    """Why a frame is not read."""

    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    UNKNOWN_FRAME = "unknown_frame"
    MALFORMED = "malformed"
    VERSION = "version"


class WireError(ValueError):
    """A frame that is refused; `code` says why."""

    def __init__(self, code: Refused, message: str) -> None:
        super().__init__(message)
        self.code = code


class ExecutorKind(StrEnum):
    """What sort of program an executor is; its full name is this sort's prefix and its own name."""

    EXTENSION = "extension"
    AGENT = "agent"
    HOST = "host"


PREFIX: Final[Mapping[ExecutorKind, str]] = {
    ExecutorKind.EXTENSION: "ext:",
    ExecutorKind.AGENT: "agent:",
    ExecutorKind.HOST: "host:",
}


class Farewell(StrEnum):
    """Why a connection is closed by the one who says so. After `replaced`, `name`, `registry` nobody tries again."""

    VERSION = "version"
    NAME = "name"
    REGISTRY = "registry"
    EPOCH = "epoch"
    REPLACED = "replaced"
    INCARNATION = "incarnation"
    PROTOCOL = "protocol"
    SILENT = "silent"
    STOPPING = "stopping"


FINAL: Final = frozenset({Farewell.VERSION, Farewell.NAME, Farewell.REGISTRY, Farewell.REPLACED})
"""Farewells after which connecting again would only be refused again."""


class Question(StrEnum):
    """What an executor may ask of its supervisor."""

    DEAD_MAN = "dead_man"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Entry:
    """One line of a journal's summary: a command of the registry that was served last, and how far it got."""

    command: CommandId
    mark: Mark
    epoch: int
    kind: str | None = None
    conversation: str | None = None
    task: TaskId | None = None


@dataclass(frozen=True)
class CommandSeen:
    """What an executor sees of one command now. `proof` names what it saw (ids, counts), never what was said.

    `at_work`: the executor has the order in hand, whether its journal says so yet or not. `asks` are the questions that
    the program of a turn waits with, absent where it cannot be told; `retrying` is what it tries again by itself.
    `quiet` is seconds since anything came from that program, absent where nobody hears it.
    """

    mark: Mark
    performer: Presence
    agent: Presence
    reason: str | None = None
    mendable: bool = False
    ending: Ending | None = None
    marked_at: datetime | None = None
    proof: Mapping[str, str] = field(default_factory=dict)
    at_work: bool = False
    asks: tuple[Asking, ...] | None = None
    retrying: str | None = None
    quiet: float | None = None


@dataclass(frozen=True)
class Target:
    """The conversation a command is for."""

    id: str
    identity: str


@dataclass(frozen=True)
class Subject:
    """What is asked about: a command with the epoch that armed it, and what an executor needs to find it."""

    command: CommandId
    kind: str
    epoch: int
    task: TaskId
    attempt: AttemptId | None = None


# -- the greeting


@dataclass(frozen=True)
class Hello:
    """Executor: who it is, whom it served last, and what its journal holds. `began_at` orders its lives."""

    frame: ClassVar[str] = "hello"
    protocol: str
    kind: ExecutorKind
    name: str
    instance: str
    began_at: datetime
    incarnation: str
    boot: str
    epoch: int
    registry: str | None = None
    capabilities: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    journal: tuple[Entry, ...] = ()
    software: str | None = None


@dataclass(frozen=True)
class Welcome:
    """Supervisor: the version that is spoken from here on, which registry this is and which epoch leads it.

    `heartbeat` is seconds between two pings; `profiles` is the digest of the page profiles in force.
    """

    frame: ClassVar[str] = "welcome"
    protocol: str
    registry: str
    epoch: int
    heartbeat: float
    executor: str
    sent_at: datetime
    profiles: str | None = None


@dataclass(frozen=True)
class Ready:
    """Executor: the epoch is written down; commands may come."""

    frame: ClassVar[str] = "ready"
    epoch: int


@dataclass(frozen=True)
class Bye:
    """Either: why the connection is closed now."""

    frame: ClassVar[str] = "bye"
    code: Farewell
    message: str


# -- a command and its marks


@dataclass(frozen=True)
class Command:
    """Supervisor: carry this out, once. `within` is seconds until `deadline`, so that no clocks are compared.

    `payload` is the order, `preconditions` what must hold right before the step, `steps` what cannot be taken back.
    """

    frame: ClassVar[str] = "command"
    command: CommandId
    kind: str
    task: TaskId
    epoch: int
    scopes: tuple[str, ...]
    marker: str
    payload: Mapping[str, object]
    attempt: AttemptId | None = None
    conversation: Target | None = None
    preconditions: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    deadline: datetime | None = None
    within: float | None = None


@dataclass(frozen=True)
class Received:
    """Executor: the command has its place in the journal; nothing was begun."""

    frame: ClassVar[str] = "received"
    command: CommandId


@dataclass(frozen=True)
class Begun:
    """Executor: the step that cannot be taken back is being made."""

    frame: ClassVar[str] = "begun"
    command: CommandId
    at: datetime


@dataclass(frozen=True)
class Accepted:
    """Executor: the step was seen to take effect."""

    frame: ClassVar[str] = "accepted"
    command: CommandId
    at: datetime
    proof: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """Executor: the turn's own end was seen, or that it was cut short."""

    frame: ClassVar[str] = "ended"
    command: CommandId
    at: datetime
    ending: Ending
    proof: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """Executor: nothing happened, and nothing can happen any more. What is not certain is `unknown` instead."""

    frame: ClassVar[str] = "failed"
    command: CommandId
    at: datetime
    reason: str
    no_effect: bool
    mendable: bool = False

    def __post_init__(self) -> None:
        if not self.no_effect:
            raise ValueError("failed says that nothing happened; what may have happened is unknown")


@dataclass(frozen=True)
class Unknown:
    """Executor: what became of the command cannot be told."""

    frame: ClassVar[str] = "unknown"
    command: CommandId
    reason: str


@dataclass(frozen=True)
class Revoke:
    """Supervisor: take the command's place in the journal, so that it can never begin."""

    frame: ClassVar[str] = "revoke"
    command: CommandId
    epoch: int
    reason: str


@dataclass(frozen=True)
class Revoked:
    """Executor: the place was free and is taken; the command can never begin."""

    frame: ClassVar[str] = "revoked"
    command: CommandId


@dataclass(frozen=True)
class TooLate:
    """Executor: the place was taken before; the mark is how far the command is."""

    frame: ClassVar[str] = "too_late"
    command: CommandId
    mark: Mark


# -- looking and asking


@dataclass(frozen=True)
class Inquire:
    """Supervisor: what do you see of these now? Answered by one observation each, with the same `query`.

    `pages` are conversations whose page is asked about, of an executor that has pages.
    """

    frame: ClassVar[str] = "inquire"
    query: int
    subjects: tuple[Subject, ...]
    pages: tuple[Target, ...] = ()


@dataclass(frozen=True)
class Observation:
    """Executor: what it sees of one subject. `age` is seconds since it was seen, so that no clocks are compared.

    Of a command, `command` holds the facts; of a conversation or a page, `facts` does, with a `digest` of them.
    `query` is the inquiry's that is answered.
    """

    frame: ClassVar[str] = "observation"
    subject: str
    seen_at: datetime
    age: float
    rank: Rank
    query: int | None = None
    command: CommandSeen | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    digest: str | None = None


@dataclass(frozen=True)
class Serving:
    """Executor: the conversations that it can reach now; replaces what it said before."""

    frame: ClassVar[str] = "serving"
    serves: tuple[str, ...]


@dataclass(frozen=True)
class Ask:
    """Executor: a question, once per `key`. It is a hint and authorises nothing.

    `run` is the run that a dead-man question is about.
    """

    frame: ClassVar[str] = "ask"
    key: str
    question: Question
    sentence: str
    conversation: str | None = None
    run: RunId | None = None


@dataclass(frozen=True)
class Over:
    """Executor: commands of its journal that ended long ago, oldest first. May their places be given up?"""

    frame: ClassVar[str] = "over"
    commands: tuple[CommandId, ...]


@dataclass(frozen=True)
class Forget:
    """Supervisor: these are settled for good and will never be asked for; nothing is said of the others."""

    frame: ClassVar[str] = "forget"
    commands: tuple[CommandId, ...]


@dataclass(frozen=True)
class Ping:
    """Either: are you there?"""

    frame: ClassVar[str] = "ping"
    n: int


@dataclass(frozen=True)
class Pong:
    """Either: the answer to a ping, with its number."""

    frame: ClassVar[str] = "pong"
    n: int


FromExecutor = (
    Hello | Ready | Bye | Received | Begun | Accepted | Ended | Failed | Unknown | Revoked | TooLate | Observation
    | Serving | Ask | Over | Ping | Pong
)  # fmt: skip
FromSupervisor = Welcome | Bye | Command | Revoke | Inquire | Forget | Ping | Pong
Frame = FromExecutor | FromSupervisor

FRAMES: Final[Mapping[str, type[Frame]]] = {each.frame: each for each in typing.get_args(Frame)}
_DEMANDS: Final[values.Demands] = {Ending: frozenset({"how"})}
_READERS: Final[Mapping[str, values.Reads]] = {name: values.value(kind, _DEMANDS) for name, kind in FRAMES.items()}


def protocol(version: int = VERSION) -> str:
    """How a version is spelled."""
    return f"{PROTOCOL}/{version}"


def negotiated(told: str, mine: int = VERSION) -> int:
    """The version two sides speak: the lower of both. WireError where they are more than one apart."""
    name, _, number = told.partition("/")
    if name != PROTOCOL or not number.isdecimal() or len(number) > 4:
        raise WireError(Refused.VERSION, f"{told[:64]!r} is no version of {PROTOCOL}")
    theirs = int(number)
    if theirs < 1 or abs(theirs - mine) > SKEW:
        raise WireError(Refused.VERSION, f"version {theirs} and version {mine} are too far apart to be understood")
    return min(theirs, mine)


def dump(frame: Frame) -> str:
    """A frame as text. WireError where it is larger than anybody may send."""
    text = json.dumps({"frame": frame.frame, **values.written(frame)}, ensure_ascii=False, separators=(",", ":"))
    if len(text) > LIMIT or len(text.encode("utf-8", "surrogatepass")) > LIMIT:
        raise WireError(Refused.TOO_LARGE, f"a frame has at most {LIMIT} bytes")
    return text


def parse(text: str | bytes) -> Frame:
    """The frame that a message is; WireError for anything that is none."""
    if len(text) > LIMIT or (isinstance(text, str) and len(text.encode("utf-8", "replace")) > LIMIT):
        raise WireError(Refused.TOO_LARGE, f"a frame has at most {LIMIT} bytes")
    try:
        told = values.loads(text)
    except (ValueError, RecursionError):
        raise WireError(Refused.NOT_JSON, "this is no JSON") from None
    if not isinstance(told, dict):
        raise WireError(Refused.MALFORMED, "a frame is an object")
    name = told.pop("frame", None)
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None:
        raise WireError(Refused.UNKNOWN_FRAME, f"there is no frame {str(name)[:64]!r}")
    try:
        frame: Frame = read(told)
    except (ValueError, TypeError, OverflowError) as error:
        raise WireError(Refused.MALFORMED, f"{name}: {error}"[:300]) from None
    return frame


def full_name(kind: ExecutorKind, name: str) -> str:
    """What the registry calls an executor."""
    return f"{PREFIX[kind]}{name}"


def shapes() -> Mapping[str, Mapping[str, str]]:
    """Every frame's fields and how their types are spelled, for the reference."""
    return {name: {one.name: str(one.type) for one in fields(kind)} for name, kind in FRAMES.items()}
