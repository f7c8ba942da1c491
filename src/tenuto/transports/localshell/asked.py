"""What a server's own log says of a call that bore a certain label: whether it came, and how it ended.

The log holds whole commands and results; out of it are taken only whether a label that we ourselves gave is there, the
call's name, whether it succeeded, and which run it made. A log whose end does not reach far enough back says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tenuto.transports.localshell import files
from tenuto.transports.localshell.files import Unreadable
from tenuto.transports.localshell.links import LINE, TAIL
from tenuto.transports.localshell.sessions import RUN

LOG: Final = "audit.jsonl"


@dataclass(frozen=True)
class Asked:
    """`came`: how many calls bore the label; None when the log cannot tell. `ended`: whether the one that came
    succeeded; None while its end is not written. `run`: the run it made."""

    came: int | None
    ended: bool | None = None
    run: str | None = None
    why: str | None = None


def of(label: str, state: Path, since: datetime) -> Asked:
    """What the log in a state directory says of the call that bore `label`, made at `since` or later."""
    try:
        with files.directory(state) as folder:
            body = None if folder is None else files.read(LOG, folder, TAIL, tail=True)
    except Unreadable as error:
        return Asked(None, why=str(error))
    if body is None:
        return Asked(None, why="the server keeps no log")
    calls: list[str] = []
    ends: dict[str, tuple[bool, str | None]] = {}
    oldest: float | None = None
    for entry in _entries(body):
        at = entry.get("ts")
        if oldest is None and isinstance(at, int | float) and not isinstance(at, bool):
            oldest = float(at)
        name = str(entry.get("call_id"))[:64]
        if entry.get("event") == "mcp_tool_call_start" and _labelled(entry, label):
            calls.append(name)
        elif entry.get("event") == "mcp_tool_call_end" and name in calls:
            ends[name] = (entry.get("ok") is True, _run(entry))
    if not calls:
        whole = len(body) < TAIL or (oldest is not None and oldest <= since.timestamp())
        return Asked(0) if whole else Asked(None, why="the server's log does not reach back to the call")
    if len(calls) > 1:
        return Asked(len(calls))
    ended, run = ends.get(calls[0], (None, None))
    return Asked(1, ended, run)


def _entries(body: bytes) -> Iterator[Mapping[str, Any]]:
    for line in body.splitlines():
        if len(line) > LINE:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the first line of the end of a file, or one that is being written
        if isinstance(entry, dict):
            yield entry


def _labelled(entry: Mapping[str, Any], label: str) -> bool:
    arguments = entry.get("arguments")
    given = arguments.get("keyword_args") if isinstance(arguments, dict) else None
    return isinstance(given, dict) and given.get("label") == label


def _run(entry: Mapping[str, Any]) -> str | None:
    result = entry.get("result")
    data = result.get("data") if isinstance(result, dict) else None
    return run_of(data) if isinstance(data, dict) else None


def run_of(data: Mapping[str, Any]) -> str | None:
    """The run that a session's public state calls its active one; None where it names none."""
    active = data.get("active_run")
    named = active.get("run_id") if isinstance(active, dict) else None
    return named if isinstance(named, str) and RUN.fullmatch(named) else None
