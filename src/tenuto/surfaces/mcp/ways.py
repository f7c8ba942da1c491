"""How a tool reaches its verb: at the desk of this process, for the caller that was let in.

The other way, over the supervisor's socket, stands in `stdio`; a server does not know which one it was given. Whatever
is refused comes back in the one error shape of all faces, word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tenuto.engine.calling import Caller
from tenuto.engine.desk import Desk
from tenuto.model.snapshot import Role
from tenuto.surfaces import present, verbs


@dataclass(frozen=True)
class Who:
    """Whom a server serves: the role, the task and run where the token is bound to them, and the verbs it opens."""

    role: Role
    task: str | None
    run: str | None
    verbs: frozenset[str]


class Told(Exception):
    """A verb was not carried out. `said` is the error shape."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        super().__init__(said["error"]["message"])
        self.said = dict(said)


class Way(Protocol):
    """The verbs, for one caller."""

    async def who(self) -> Who:
        """Whom it is for. Raises Told."""
        ...

    async def ask(self, verb: str, params: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
        """Carry out a verb; `key` is its idempotency key. Raises Told."""
        ...


def who_of(said: Mapping[str, Any]) -> Who:
    """Whom the answer of `whoami` describes."""
    return Who(Role(said["role"]), said["task"], said["run"], frozenset(said["verbs"]))


class AtDesk:
    """The verbs of the desk in this process. `notify` is called when something may have changed."""

    def __init__(self, desk: Desk, caller: Caller, notify: Callable[[], None]) -> None:
        self._desk = desk
        self._caller = caller
        self._notify = notify

    async def who(self) -> Who:
        """Whom it is for."""
        return who_of(await self.ask("whoami", {}, None))

    async def ask(self, verb: str, params: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
        """Carry out a verb."""
        try:
            said = await verbs.call(self._desk, self._caller, verb, params, key)
        except present.NOT_AS_ASKED as fault:
            raise Told(present.error(fault)) from None
        if verbs.VERBS[verb].mutates:
            self._notify()
        return said
