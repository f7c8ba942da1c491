"""Whether a session may be gone on with: that it is the one that is meant, and that nobody else is in it.

Asked before every resumption of a program whose records are known. A session that was adopted is held to more the first
time: its record must be there, and no later session may have taken its place in the same directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from tenuto.transports.agents.records import Records
from tenuto.transports.agents.sessions import Held

ATTEMPT = b"TENUTO_ATTEMPT="


def verified(records: Records, adapter: str, before: Held, cwd: str, *, adopted: bool) -> str | int | None:
    """Why it may not be gone on with, or the process of somebody else that has it open; None: nothing is amiss."""
    facts = records.found(adapter, before.session)
    if facts is None:
        return f"the record of session {before.session} is not there any more" if adopted else None
    if os.path.realpath(facts.cwd) != os.path.realpath(cwd):
        return f"session {before.session} belongs to {facts.cwd} and not to {cwd}"
    if adopted and facts.newer is not None:
        return f"a newer session stands in its place: {facts.newer} works in {facts.cwd} too"
    return None if facts.running is None or _ours(facts.running) else facts.running


def _ours(pid: int) -> bool:
    """Whether a process is of a turn of ours."""
    try:
        return any(one.startswith(ATTEMPT) for one in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return False
