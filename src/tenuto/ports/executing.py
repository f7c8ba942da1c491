"""Orders to an executor, and what an executor is: the one way to the outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, runtime_checkable

from tenuto.model.command import Armed, Command, Outcome
from tenuto.model.conversation import Conversation
from tenuto.model.evidence import Observation
from tenuto.model.ids import CommandId, RunId, TaskId
from tenuto.model.tools import ToolFacts
from tenuto.model.work import Agent


@dataclass(frozen=True)
class Turn:
    """An order to run one turn of a program.

    `env` are the names to resolve at launch; `given` are values of our own (task, attempt, command, address, spool,
    token). `limit` is wall-clock time, `grace` what the program gets between SIGTERM and SIGKILL. `adapter` names what
    the program speaks, where it is not a plain one. `watched` is the run to ask about, and after which silence, where
    it has the dead-man switch on.
    """

    prompt: str
    argv: tuple[str, ...]
    cwd: str
    env: tuple[str, ...]
    given: Mapping[str, str]
    limit: timedelta
    grace: timedelta
    adapter: str = "program"
    watched: tuple[RunId, timedelta] | None = None


@dataclass(frozen=True)
class Check:
    """An order to run an acceptance program: no prompt, no token; its exit status is the answer."""

    argv: tuple[str, ...]
    cwd: str
    env: tuple[str, ...]
    given: Mapping[str, str]
    limit: timedelta
    grace: timedelta


@dataclass(frozen=True)
class Halt:
    """An order to end the turn that another command began; `place` is that command's."""

    target: CommandId
    grace: timedelta
    place: str | None = None


@dataclass(frozen=True)
class Steer:
    """An order to put words into the turn that another command began, and into no other.

    `target` is that command, `turn` what the executor calls its turn. It counts as done only when the turn itself has
    acknowledged the words: the journal then names the turn.
    """

    text: str
    target: CommandId
    turn: str


@dataclass(frozen=True)
class TakeOver:
    """An order to have a tool server give one of its sessions to a new run, in place of `run`.

    `label` goes along as the call's label, so that the server's own log tells which call was this command's. `cwd` is
    the task's directory: a server that is only known there is found by it.
    """

    server: str
    session: str
    run: str | None
    label: str
    cwd: str


@dataclass(frozen=True)
class Reply:
    """An order to answer what the program of a turn waits for leave with; `target` is the command that began the turn.

    `request` is the program's own name of the question: no other question of it is answered by this. `words` are told
    with a no where the program takes words.
    """

    target: CommandId
    request: str
    allow: bool
    words: str = ""


@dataclass(frozen=True)
class ClosePage:
    """An order to close the page of a conversation, where it is the executor's own and nothing of a person is in it."""

    identity: str


Order = Turn | Check | Halt | Steer | TakeOver | Reply | ClosePage


class Executor(Protocol):
    """Carries out armed commands at one transport. There is no second path to the outside."""

    name: str

    def connected(self, conversation: str | None = None) -> bool:
        """Whether commands can be handed over now: those for this conversation, or those that begin one."""
        ...

    def objection(self, agent: Agent, cwd: str) -> tuple[str, str] | None:
        """Why this agent could not be started there now, as (field, sentence); None when it could."""
        ...

    async def perform(self, armed: Armed, order: Order) -> Outcome:
        """Hand the command over; unexpected failure is Unknown, never an exception."""
        ...

    async def look(self, command: Command) -> Observation:
        """CommandFacts of one command, from the journal and the process table."""
        ...

    async def revoke(self, command: Command, epoch: int) -> None:
        """Take the journal's place exclusively, so that the command can never begin; the next `look` shows who won."""
        ...


@runtime_checkable
class Troubled(Protocol):
    """An executor that can say why it takes nothing although it is open."""

    def trouble(self) -> str | None:
        """Why nothing can be handed over, and what mends it; None when it can, or when it is not open."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """An executor that can make ready, while a command is still being written down, what does nothing by itself."""

    def foresee(self, command_id: CommandId) -> None:
        """A command of this name may be armed in a moment. Nothing may happen that would need its row."""
        ...

    def forgo(self, command_id: CommandId) -> None:
        """It will not be performed (any more): give up what was made ready for it, if anything is left."""
        ...


@runtime_checkable
class Placed(Protocol):
    """An executor whose journals and processes are somewhere: what it can tell of a command depends on where."""

    @property
    def place(self) -> str:
        """Where it is, as commands and conversations remember it: `HOST:INCARNATION:DIRECTORY`."""
        ...

    def reaches(self, place: str) -> bool:
        """Whether commands of that place can be looked at from here."""
        ...

    def carries(self, place: str) -> bool:
        """Whether a conversation that was opened there can be carried on from here."""
        ...


@runtime_checkable
class Steering(Protocol):
    """An executor that can put words into a turn under way. One that does not say so is never asked to."""

    def can_steer(self, turn: Command) -> bool:
        """Whether the turn that this command began would take words now."""
        ...


@runtime_checkable
class Taking(Protocol):
    """An executor that can have a tool server give a session to a new run, through that server's own tools."""

    async def refusal(self, facts: ToolFacts, cwd: str) -> str | None:
        """Why that cannot be asked of this session's server now; None when it can. Nothing is changed by asking."""
        ...


@runtime_checkable
class Paging(Protocol):
    """An executor whose conversations are shown in pages, which can be looked at."""

    async def page(self, talk: Conversation) -> Observation:
        """PageFacts of a conversation's page now; `shown` is None where nobody could be asked."""
        ...

    def addressed(self, url: str) -> tuple[str, str] | None:
        """Whose conversation an address is: the site, and the address that it is bound under; None for any other."""
        ...


@runtime_checkable
class Closing(Protocol):
    """An executor that may be able to close its own pages."""

    def connected(self, conversation: str | None = None) -> bool: ...

    def capable(self, capability: str) -> bool:
        """Whether whoever is connected says that it can do this (`close`)."""
        ...

    async def page(self, talk: Conversation) -> Observation: ...


@runtime_checkable
class Accounted(Protocol):
    """An executor that can tell whose usage the turns of an agent take."""

    def account(self, agent: Agent) -> str | None:
        """What the account is called here: the same for the same account, and no part of any secret."""
        ...


@runtime_checkable
class PerTask(Protocol):
    """An executor that only stands for others: each task has one of its own."""

    def executor_for(self, task_id: TaskId) -> str:
        """What the executor of this task is called."""
        ...
