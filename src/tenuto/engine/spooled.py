"""Reads the words that agents left while nobody listened, each once, in the order they were said.

A word counts only when its seal proves that a token of its task was in the hand that wrote it; it is then said to the
desk like any other, with its own idempotency key, so that a word that was heard before changes nothing. What is not
believed or is refused is put aside with the reason, and a finding is recorded. One bad word never stops the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from tenuto.engine.desk import Caller
from tenuto.model.change import Commit
from tenuto.model.fact import Fact, FactKind, Scalar
from tenuto.model.faults import Corrupt, Mistake, NoSupervisor, OutOfReach, StorageFull
from tenuto.model.snapshot import Role, Token
from tenuto.ports import Ledger, Spool, Unreadable, Word

AT_ONCE = 200
EVERY = 15.0

#: Says a word to the desk: the caller, the verb's name, its parameters and its idempotency key.
Say = Callable[[Caller, str, Mapping[str, object], str], Awaitable[object]]

_LOG = logging.getLogger("tenuto.spool")


@dataclass(frozen=True)
class Heard:
    """What one reading of the spool came to."""

    said: int = 0
    refused: int = 0


class Spooled:
    """Brings words from the spool to the desk."""

    def __init__(self, spool: Spool, ledger: Ledger, say: Say, *, every: float = EVERY) -> None:
        self._spool = spool
        self._ledger = ledger
        self._say = say
        self._every = every
        self._stamp = -1
        self._bell = asyncio.Event()
        self._stopping = False

    def ring(self) -> None:
        """Somebody may have left a word: look now."""
        self._bell.set()

    def stop(self) -> None:
        """Read no further word."""
        self._stopping = True
        self._bell.set()

    async def run(self) -> None:
        """Read at once, and again whenever the directory has changed, until stopped."""
        while not self._stopping:
            self._bell.clear()
            if self._spool.stamp() != self._stamp:
                await self.hear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._bell.wait()

    async def hear(self) -> Heard:
        """Read what lies there now. Words that cannot be heard yet (no leader, no room) are left for later."""
        stamp = self._spool.stamp()
        said = refused = 0
        waiting = self._spool.waiting(AT_ONCE)
        for word in waiting:
            if self._stopping:
                return Heard(said, refused)
            try:
                reason = await self._one(word)
            except (NoSupervisor, OutOfReach, StorageFull) as fault:
                _LOG.warning("a word is left in the spool for later: %s", fault)
                return Heard(said, refused)
            if reason is None:
                self._spool.remove(word.name)
                said += 1
            else:
                await self._put_aside(word, reason)
                refused += 1
        if not waiting:
            self._stamp = stamp  # what was put there while we read changes it again
        else:
            self._bell.set()
        return Heard(said, refused)

    async def _one(self, word: Word | Unreadable) -> str | None:
        """Say one word; why it is refused, or None when it was heard."""
        if isinstance(word, Unreadable):
            return word.reason
        token = self._token(word)
        if token is None:
            return "its seal is not that of a token of its task"
        caller = Caller(token.role, f"{token.role} of {token.task_id}", token.task_id, token.lease_number)
        try:
            await self._say(caller, word.verb, word.params, word.key)
        except Mistake as mistake:
            return mistake.message
        except (NoSupervisor, OutOfReach, StorageFull, Corrupt):
            raise
        except Exception:  # noqa: BLE001 - one word that trips us must not stop the others, or every later start
            _LOG.exception("a word could not be heard")
            return "a fault of ours; the log tells more"
        return None

    def _token(self, word: Word) -> Token | None:
        """The token that sealed a word. One whose lease is over may still be the seal: the desk knows what is late."""
        for token in self._ledger.tokens(word.hint):
            in_turn = token.role in (Role.AGENT, Role.COORDINATOR) and token.task_id == word.task_id
            if in_turn and self._spool.genuine(word, token.digest):
                return token
        return None

    async def _put_aside(self, word: Word | Unreadable, reason: str) -> None:
        task = self._ledger.task(word.task_id) if isinstance(word, Word) else None
        data: dict[str, Scalar] = {"what": f"a word in the spool was refused: {reason}"[:500], "file": word.name[:100]}
        fact = Fact(FactKind.FINDING, task.run_id if task else None, task.id if task else None, data)
        await self._ledger.commit(Commit(facts=(fact,)))
        self._spool.refuse(word.name, reason)
