"""Executors elsewhere, as an operator sees them: who is connected, and what only they know.

A command that an executor carried out and the registry does not know holds that executor. An operator who has looked
settles it; that is written down with a name on it, and changes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from tenuto.model.change import Commit, Key
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Mistake, NotFound
from tenuto.model.ids import SHAPE, CommandId

SCOPE: Final = "executor.settled"
NAME: Final = re.compile(r"(ext|agent|host):[a-z0-9][a-z0-9._-]{0,63}")


class Known(Protocol):
    """What is known of one executor. `strangers` are commands of its journal that nobody here knows."""

    @property
    def name(self) -> str: ...

    @property
    def connected(self) -> bool: ...

    @property
    def instance(self) -> str | None: ...

    @property
    def capabilities(self) -> tuple[str, ...]: ...

    @property
    def serves(self) -> tuple[str, ...]: ...

    @property
    def since(self) -> datetime | None: ...

    @property
    def heard_at(self) -> datetime | None: ...

    @property
    def strangers(self) -> tuple[CommandId, ...]: ...

    @property
    def trouble(self) -> str | None: ...


class Elsewhere(Protocol):
    """All executors that are not of this process."""

    def standings(self) -> Sequence[Known]:
        """Every one that was ever here, by name."""
        ...

    def accept_stranger(self, name: str, command: CommandId) -> bool:
        """A person has looked at a command that only this executor knows; whether it was one."""
        ...


class Nowhere:
    """No executor is elsewhere."""

    def standings(self) -> Sequence[Known]:
        return ()

    def accept_stranger(self, name: str, command: CommandId) -> bool:
        return False


def settled(elsewhere: Elsewhere, name: str, given: str, by: str) -> tuple[Commit, dict[str, Scalar]]:
    """What is written when an operator has looked at a stranger. Raises Mistake or NotFound."""
    if not NAME.fullmatch(name):
        raise Mistake("an executor is named ext:NAME, agent:NAME or host:NAME", field="executor")
    if not SHAPE.fullmatch(given) or not given.startswith("c-"):
        raise Mistake("name the whole command; the registry does not know it", field="command")
    command = CommandId(given)
    if not any(one.name == name and command in one.strangers for one in elsewhere.standings()):
        raise NotFound(f"{name} holds no command {command} that is unknown here", field="command")
    result: dict[str, Scalar] = {"executor": name, "command": command}
    fact = Fact(FactKind.EXECUTOR_SETTLED, data={**result, "by": by})
    return Commit(facts=(fact,), key=Key(SCOPE, command, "settled", result)), result
