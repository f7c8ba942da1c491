"""Which jobs belong to a session, where the session's own activity is too short to say.

The audit log holds whole commands and results; only identifiers are taken out of it, and only its end is read. A job
was started by a call, and the call was made for a session (or, in older servers, for a run of it).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from tenuto.transports.localshell import files
from tenuto.transports.localshell.files import Unreadable
from tenuto.transports.localshell.sessions import JOB, Session

TAIL: Final = 8 * 1024 * 1024
LINE: Final = 4 * 1024 * 1024


def linked(session: Session, running: Collection[str], state: int) -> frozenset[str]:
    """The session's jobs: those its activity started, and those the audit log's end knows of it."""
    if not session.shortened or not set(running) - session.jobs:
        return session.jobs
    try:
        body = files.read("audit.jsonl", state, TAIL, tail=True)
    except Unreadable:
        return session.jobs
    return session.jobs | _of_session(body or b"", session)


def _of_session(body: bytes, session: Session) -> frozenset[str]:
    calls: set[str] = set()
    started: list[tuple[str, str]] = []
    for line in body.splitlines():
        if len(line) > LINE or not (b"job_start" in line or b"job_retry" in line):
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the first line of the end of a file, or one that is being written
        if not isinstance(entry, dict):
            continue
        if entry.get("event") == "mcp_tool_call_start" and _names(entry, session):
            calls.add(str(entry.get("call_id"))[:64])
        elif entry.get("event") in ("job_start", "job_retry"):
            job, parent = entry.get("job_id"), entry.get("parent_call_id")
            if isinstance(job, str) and JOB.fullmatch(job) and isinstance(parent, str):
                started.append((job, parent[:64]))
    return frozenset(job for job, parent in started if parent in calls)


def _names(entry: Mapping[str, Any], session: Session) -> bool:
    if entry.get("logical_session") == session.id:
        return True
    arguments = entry.get("arguments")
    given = arguments.get("keyword_args") if isinstance(arguments, dict) else None
    return isinstance(given, dict) and (
        given.get("logical_session_id") == session.id or given.get("session_run_id") in session.runs
    )
