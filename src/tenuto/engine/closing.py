"""What a task that is over opened, closed behind it: its turns' tokens, and that of its agent's host.

Nothing is taken back while a turn of it goes on: that turn may still say its last word, and its host its last mark. A
token that an operator made for the task by hand goes with it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind
from tenuto.model.snapshot import Role, Snapshot, Token
from tenuto.ports import Clock, Reader

#: How many tokens one commit takes back.
AT_ONCE = 100


def due(snapshot: Snapshot) -> bool:
    """Whether the task is over and nothing of it is under way any more."""
    return snapshot.task.terminal and snapshot.live is None and not snapshot.commands and snapshot.released is None


def closed(reader: Reader, snapshot: Snapshot, clock: Clock) -> Commit | None:
    """The commit that takes every token of an ended task back; None where none is left."""
    if not due(snapshot):
        return None
    task = snapshot.task
    mine = [token for token in reader.named_tokens() if token.role is Role.EXECUTOR and token.name == task.id]
    left = [*reader.tokens_of(task.id), *(token for token in mine if token.revoked_at is None)][:AT_ONCE]
    if not left:
        return None
    data = {"name": f"{len(left)} of its turns", "by": "the end of its task"}
    fact = Fact(FactKind.TOKEN_REVOKED, task.run_id, task.id, dict(data))
    return Commit(puts=tuple(_revoked(left, clock)), facts=(fact,))


def _revoked(tokens: Iterable[Token], clock: Clock) -> Iterable[Token]:
    now = clock.now()
    return (replace(token, revision=token.revision + 1, revoked_at=now) for token in tokens)
