"""The settings of a program with our hooks in them, and without: what becomes of the bytes of one file.

Every line of ours ends in a comment that names it, so that it is found again whatever else was changed. What is not
ours is kept as it is; a file that is not the JSON it should be is refused and left alone.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tenuto.model.faults import Mistake

LIMIT: Final = 4 << 20
TIMEOUT: Final = 20
"""Seconds after which the program itself gives a hook up; ours ends long before."""

MARK: Final = re.compile(r" # tenuto-hook ([0-9a-f]{8})$")

Json = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A program that calls hooks: where its settings lie, by home or by project, and which events are asked for."""

    adapter: str
    variable: str
    folder: str
    own: str
    project: str
    events: tuple[str, ...]

    def file(self, home: Path, environ: Mapping[str, str], project: Path | None) -> Path:
        """The settings that are meant: the user's, or the user's own of one project."""
        if project is not None:
            return project / self.folder / self.project
        chosen = environ.get(self.variable)
        return (Path(chosen) if chosen else home / self.folder) / self.own


KINDS: Final[Mapping[str, Kind]] = {
    one.adapter: one
    for one in (
        Kind(
            "claude", "CLAUDE_CONFIG_DIR", ".claude", "settings.json", "settings.local.json",
            ("SessionStart", "UserPromptSubmit", "Notification", "Stop", "SessionEnd"),
        ),
        Kind(
            "codex", "CODEX_HOME", ".codex", "hooks.json", "hooks.json",
            ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        ),
    )
}  # fmt: skip


def command(python: str, adapter: str, mark: str, home: Path | None) -> str:
    """The line a program's shell runs: it finds out at the call who leads, and ends with 0 even where it is gone."""
    place = f" --home {shlex.quote(str(home))}" if home is not None else ""
    return (
        f"{shlex.quote(python)} -m tenuto.wiring.hook {adapter} {mark}{place} 2>/dev/null || true # tenuto-hook {mark}"
    )


def marks(raw: bytes | None) -> tuple[str, ...]:
    """The marks of our lines that stand in a file, each once."""
    found = dict.fromkeys(
        match.group(1)
        for rows in _events(_read(raw)).values()
        for entry in rows
        for hook in _hooks(entry)
        if (match := _ours(hook)) is not None
    )
    return tuple(found)


def put(raw: bytes | None, events: Sequence[str], line: str) -> bytes:
    """The file with our line at each of these events, beside whatever else stands there, and ours of before gone."""
    told = _read(taken(raw)) if raw is not None else {}
    hooks = told.setdefault("hooks", {})
    for event in events:
        hooks.setdefault(event, []).append({"hooks": [{"type": "command", "command": line, "timeout": TIMEOUT}]})
    return _written(told, raw)


def taken(raw: bytes | None) -> bytes | None:
    """The file without our lines; None where there was none. What becomes empty by that is taken away with it."""
    told = _read(raw)
    if raw is None or not marks(raw):
        return raw
    kept: Json = {}
    for event, rows in _events(told).items():
        left = []
        for entry in rows:
            hooks = _hooks(entry)
            others = [hook for hook in hooks if _ours(hook) is None]
            if len(others) == len(hooks):
                left.append(entry)
            elif others:
                left.append({**entry, "hooks": others})
        if left:
            kept[event] = left
    told = {name: value for name, value in told.items() if name != "hooks"} | ({"hooks": kept} if kept else {})
    return _written(told, raw)


def _read(raw: bytes | None) -> Json:
    if raw is None or not raw.strip():
        return {}
    if len(raw) > LIMIT:
        raise Mistake("the settings are larger than they can be; nothing was changed", field="settings")
    try:
        told = json.loads(raw)
    except ValueError as error:
        raise Mistake(f"the settings are no JSON ({error}); nothing was changed", field="settings") from None
    if not isinstance(told, dict):
        raise Mistake("the settings are no JSON object; nothing was changed", field="settings")
    _events(told)
    return told


def _events(told: Json) -> Mapping[str, list[Any]]:
    hooks = told.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(rows, list) for rows in hooks.values()):
        raise Mistake("the hooks of the settings are not as they should be; nothing was changed", field="settings")
    return hooks


def _hooks(entry: object) -> list[object]:
    found = entry.get("hooks") if isinstance(entry, dict) else None
    return found if isinstance(found, list) else []


def _ours(hook: object) -> re.Match[str] | None:
    line = hook.get("command") if isinstance(hook, dict) else None
    return MARK.search(line) if isinstance(line, str) else None


def _written(told: Json, like: bytes | None) -> bytes:
    """As JSON, indented as the file was."""
    found = re.search(rb"\{\r?\n([ \t]+)\"", like or b"")
    indent: int | str = found.group(1).decode("ascii") if found else 2
    return json.dumps(told, indent=indent, ensure_ascii=False).encode("utf-8") + b"\n"
