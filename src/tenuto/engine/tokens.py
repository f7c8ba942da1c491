"""Tokens that an operator makes by hand: for executors, coordinators, and other operators' programs.

The registry knows a token by its digest alone. The token itself is told once, to whoever asked for it; who lost it has
another made and this one revoked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Conflict, Mistake, NotFound
from tenuto.model.ids import TaskId, TokenId
from tenuto.model.snapshot import Role, Token
from tenuto.ports import Clock, Ledger, Minter

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LONGEST = timedelta(days=3650)
#: Roles whose token speaks for one task.
OF_TASK = frozenset({Role.AGENT, Role.COORDINATOR})


@dataclass(frozen=True)
class Wanted:
    """A token that is asked for. `task_id` is whose task it opens; `life` None: until it is revoked."""

    role: Role
    name: str
    task_id: TaskId | None = None
    life: timedelta | None = None


class Tokens:
    """Makes, lists and revokes tokens; who may is the desk's to say."""

    def __init__(self, ledger: Ledger, clock: Clock, minter: Minter) -> None:
        self._ledger = ledger
        self._clock = clock
        self._mint = minter

    def listed(self) -> tuple[Token, ...]:
        return self._ledger.named_tokens()

    def made(self, wanted: Wanted, by: str) -> tuple[Commit, str, dict[str, Scalar]]:
        """A new token as a commit, the secret, and what may be kept of it. Raises Mistake or Conflict."""
        if not NAME.fullmatch(wanted.name):
            raise Mistake("a token's name has 1 to 64 letters, digits, dots, dashes or underscores", field="name")
        now = self._clock.now()
        if wanted.life is not None and not timedelta(0) < wanted.life <= LONGEST:
            raise Mistake("a token lives for a positive time of at most ten years", field="ttl")
        for token in self.listed():
            if token.name == wanted.name and token.revoked_at is None:
                raise Conflict(f"there is a token called {wanted.name} already; revoke it first", field="name")
        lease = None
        if wanted.role in OF_TASK:
            if wanted.task_id is None:
                raise Mistake(f"a token for a {wanted.role} names the task it speaks for", field="task")
            task = self._ledger.task(wanted.task_id)
            if task is None:
                raise NotFound(f"there is no task {wanted.task_id}", field="task")
            lease = task.lease_number
        elif wanted.task_id is not None:
            raise Mistake(f"a token for an {wanted.role} speaks for no task", field="task")
        secret = self._mint.secret()
        token = Token(
            id=TokenId(self._mint.new("token")),
            revision=1,
            digest=hashlib.sha256(secret.encode()).hexdigest(),
            role=wanted.role,
            task_id=wanted.task_id,
            lease_number=lease,
            created_at=now,
            name=wanted.name,
            expires_at=None if wanted.life is None else now + wanted.life,
        )
        data: dict[str, Scalar] = {"token": token.id, "role": token.role, "name": token.name, "by": by}
        told: dict[str, Scalar] = {"token": token.id, "role": token.role, "name": token.name, "task": token.task_id}
        fact = Fact(FactKind.TOKEN_MADE, None, token.task_id, data)
        return Commit(puts=(token,), facts=(fact,)), secret, told

    def revoked(self, given: str, by: str) -> tuple[Commit | None, Mapping[str, Scalar]]:
        """A token of this name or identifier, taken back; None when it was. Raises NotFound."""
        named = [token for token in self.listed() if given in (token.name, token.id)]
        open_ = [token for token in named if token.revoked_at is None]
        if not named:
            raise NotFound(f"there is no token '{given[:80]}'", field="token")
        if not open_:
            return None, {"token": named[-1].id, "name": named[-1].name}
        (token,) = open_
        changed = replace(token, revision=token.revision + 1, revoked_at=self._clock.now())
        data: dict[str, Scalar] = {"token": token.id, "name": token.name, "by": by}
        fact = Fact(FactKind.TOKEN_REVOKED, None, token.task_id, data)
        return Commit(puts=(changed,), facts=(fact,)), {"token": token.id, "name": token.name}
