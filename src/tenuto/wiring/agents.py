"""Agents on this machine, put between the registry and the bridge of one supervisor.

A host gets a token of its own, for its own name alone, in a file that only its user can read; the registry knows it by
its digest. A token that is there and still opens the door is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from tenuto.config import Settings
from tenuto.engine.tokens import Tokens, Wanted
from tenuto.model.faults import Conflict
from tenuto.model.snapshot import Role
from tenuto.ports import Clock, Ledger, Minter
from tenuto.transports.agents.local import LocalAgents
from tenuto.transports.bridge import Bridge
from tenuto.transports.executor_side.peer import Denied
from tenuto.transports.executor_side.token import token_file

BY = "supervisor"


def agents_of(settings: Settings, ledger: Ledger, bridge: Bridge, clock: Clock, minter: Minter) -> LocalAgents:
    """The executors of agents on this machine."""
    tokens = Tokens(ledger, clock, minter)
    making = asyncio.Lock()

    async def token(name: str, file: Path) -> None:
        async with making:
            if not _opens(ledger, clock, file):
                await _made(ledger, tokens, name, file)

    return LocalAgents(bridge, settings.state / "agents", settings.socket, settings.env_file, clock, token)


def _opens(ledger: Ledger, clock: Clock, file: Path) -> bool:
    """Whether the file holds a token that the registry knows and has not taken back."""
    try:
        secret = token_file(file)()
    except Denied:
        return False
    known = ledger.token(hashlib.sha256(secret.encode()).hexdigest())
    if known is None or known.revoked_at is not None:
        return False
    return known.expires_at is None or known.expires_at > clock.now()


async def _made(ledger: Ledger, tokens: Tokens, name: str, file: Path) -> None:
    wanted = Wanted(Role.EXECUTOR, name)
    try:
        commit, secret, _ = tokens.made(wanted, BY)
    except Conflict:  # the file was lost: what it held opens nothing any more
        old, _ = tokens.revoked(name, BY)
        if old is not None:
            await ledger.commit(old)
        commit, secret, _ = tokens.made(wanted, BY)
    await ledger.commit(commit)
    await asyncio.to_thread(_written, file, secret)


def _written(file: Path, secret: str) -> None:
    made = file.with_name(f".{file.name}.new")
    made.unlink(missing_ok=True)
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as out:
        out.write(secret + "\n")
        out.flush()
        os.fsync(out.fileno())
    made.replace(file)
