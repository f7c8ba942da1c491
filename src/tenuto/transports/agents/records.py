"""The sessions that Claude Code and Codex keep on the disk: which there are, where they work, whether one is open.

Read only, and only names: what was said in a session is not read, but for whether our own marker stands in it. A record
counts as a session's when its name and what is written in it agree; anything else is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tenuto.model.session import SessionFacts
from tenuto.transports import processes

HEAD: Final = 64
"""Lines of a record among which its directory must stand."""

LINE: Final = 1 << 20
MOST: Final = 2000
TAIL: Final = 4 << 20

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """A session's file, with what it says of itself."""

    facts: SessionFacts
    file: Path


class Records:
    """Implements `ports.Sessions` over the homes that an environment names."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        home = Path(environ.get("HOME") or Path.home())
        self._claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        self._codex = Path(environ.get("CODEX_HOME") or home / ".codex")

    def listed(self, adapter: str, cwd: str | None) -> tuple[SessionFacts, ...]:
        """The sessions of a program, the newest first; of one directory where it is named."""
        found = [one.facts for one in self._all(adapter) if cwd is None or _same(one.facts.cwd, cwd)]
        newest = sorted(found, key=lambda one: one.changed_at, reverse=True)
        first: dict[str, str] = {}
        told = []
        for one in newest:
            place = os.path.realpath(one.cwd)
            told.append(replace(one, running=self.running(adapter, one.session), newer=first.get(place)))
            first.setdefault(place, one.session)
        return tuple(told)

    def found(self, adapter: str, session: str) -> SessionFacts | None:
        """One session by its whole name."""
        record = self.record(adapter, session)
        if record is None:
            return None
        return replace(record.facts, running=self.running(adapter, session), newer=self._newer(adapter, record))

    def record(self, adapter: str, session: str) -> Record | None:
        """The file of one session."""
        return next((one for one in self._all(adapter, session) if one.facts.session == session), None)

    def running(self, adapter: str, session: str) -> int | None:
        """The process in which a session is open, by the program's own word and the process table."""
        if adapter == "claude":
            return next((pid for pid, named in self._open_claude() if named == session), None)
        record = self.record(adapter, session)
        return _holder(record.file) if record is not None else None

    def holds(self, adapter: str, session: str, marker: str) -> bool:
        """Whether the end of a session's record has our marker in words that were given to the agent."""
        record = self.record(adapter, session)
        if record is None:
            return False
        with record.file.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
            lines = file.read(TAIL).splitlines()
        return any(marker.encode() in line and _given(line) for line in lines)

    def _newer(self, adapter: str, record: Record) -> str | None:
        """A session of the same directory that was written to later."""
        for one in self._all(adapter):
            if one.facts.changed_at <= record.facts.changed_at:
                return None
            if one.facts.session != record.facts.session and _same(one.facts.cwd, record.facts.cwd):
                return one.facts.session
        return None

    # -- where they lie

    def _all(self, adapter: str, session: str | None = None) -> Iterator[Record]:
        named = f"*{session}*" if session is not None and "/" not in session else "*"
        if adapter == "claude":
            files = (self._claude / "projects").glob(f"*/{named}.jsonl")
        elif adapter == "codex":
            files = (self._codex / "sessions").glob(f"*/*/*/rollout-{named}.jsonl")
        else:
            return
        newest = sorted(files, key=_changed, reverse=True)[:MOST]
        for file in newest:
            facts = _claude_facts(file) if adapter == "claude" else _codex_facts(file)
            if facts is not None:
                yield Record(facts, file)

    def _open_claude(self) -> Iterator[tuple[int, str]]:
        for file in (self._claude / "sessions").glob("*.json"):
            told = _json(file.read_bytes()[:LINE]) if file.stat().st_size < LINE else None
            pid = told.get("pid") if told is not None else None
            if told is None or not isinstance(pid, int) or told.get("kind") == "print":
                continue
            now = processes.identity_of(pid)
            if now is not None and str(told.get("procStart", now.start)) == str(now.start):
                yield pid, str(told.get("sessionId"))


def _claude_facts(file: Path) -> SessionFacts | None:
    """Every line that names its session must name this one; the directory is the first that is told."""
    for line in _lines(file):
        if line.get("sessionId") not in (None, file.stem):
            return None
        if isinstance(cwd := line.get("cwd"), str) and line.get("sessionId") == file.stem:
            return SessionFacts("claude", file.stem, cwd, _moment(file))
    return None


def _codex_facts(file: Path) -> SessionFacts | None:
    for line in _lines(file):
        about = line.get("payload")
        if line.get("type") != "session_meta" or not isinstance(about, dict):
            return None
        name, cwd = about.get("id"), about.get("cwd")
        if not isinstance(name, str) or not isinstance(cwd, str) or not file.stem.endswith(name):
            return None
        if isinstance(about.get("source"), dict):  # a sub-agent's
            return None
        return SessionFacts("codex", name, cwd, _moment(file))
    return None


def _lines(file: Path) -> Iterator[Json]:
    try:
        with file.open("rb") as opened:
            for _ in range(HEAD):
                raw = opened.readline(LINE)
                if not raw:
                    return
                told = _json(raw)
                if told is not None:
                    yield told
    except OSError:
        return


def _given(raw: bytes) -> bool:
    """Whether a line is words that were given to the agent, and not its own or a tool's."""
    told = _json(raw)
    if told is None:
        return False
    about = told.get("payload")
    return told.get("type") == "user" or (isinstance(about, dict) and about.get("role") == "user")


def _json(raw: bytes) -> Json | None:
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _moment(file: Path) -> datetime:
    return datetime.fromtimestamp(_changed(file), UTC)


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _holder(file: Path) -> int | None:
    """A process of this user that has a file open; None where none has, or where that cannot be seen."""
    try:
        about = file.stat()
        entries = list(Path("/proc").iterdir())
    except OSError:
        return None
    for entry in entries:
        if not entry.name.isdigit():
            continue
        try:
            for link in (entry / "fd").iterdir():
                seen = link.stat()
                if (seen.st_ino, seen.st_dev) == (about.st_ino, about.st_dev):
                    return int(entry.name)
        except OSError:
            continue
    return None
