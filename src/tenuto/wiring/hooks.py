"""Hooks of agent programs, as the command line asks for them: planned, carried out, and how they stand.

Whether a hook works is told by its being called and by nothing else: a program may leave out hooks in silence.
"""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenuto.model.faults import Mistake
from tenuto.surfaces.cli.entrances import HookPlan
from tenuto.transports.hooks import calls, installing, settings
from tenuto.wiring.outside import Outside

PLACE = "hooks"
UNTRUSTED = {
    "codex": "Codex leaves out hooks in silence until you have trusted them: start codex here, review them there "
    "(/hooks), and let it take one turn",
    "claude": "Claude Code reads its settings when a session begins: begin one, and let it take one turn",
}


@dataclass(frozen=True)
class _Place:
    kind: settings.Kind
    file: Path
    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / installing.RECORDS


def _place(outside: Outside, environ: Mapping[str, str], adapter: str, project: Path | None) -> _Place:
    kind = settings.KINDS.get(adapter)
    if kind is None:
        raise Mistake(f"no hooks of {adapter[:40]} are known; known are {', '.join(settings.KINDS)}", field="agent")
    if project is not None and not project.is_dir():
        raise Mistake(f"there is no directory {project}", field="project")
    home = Path(environ.get("HOME") or Path.home())
    return _Place(kind, kind.file(home, environ, project), outside.settings.state / PLACE)


def plan(
    outside: Outside, environ: Mapping[str, str], act: str, adapter: str, project: Path | None, mark: str
) -> HookPlan:
    """What installing or removing comes to; changes nothing."""
    place, mark = _place(outside, environ, adapter, project), hashlib.sha256(mark.encode()).hexdigest()[:8]
    if act == "install":
        home = outside.settings.home
        line = settings.command(sys.executable, adapter, mark, home)
        change = installing.install(place.kind, place.file, line, mark)
        notes: tuple[str, ...] = (UNTRUSTED[adapter],)
    else:
        found = installing.remove(place.file, place.records)
        if found is None:
            return HookPlan(place.file, (), ("there are no hooks of ours in it",), None)
        change = found
        notes = (
            "it becomes byte for byte what it was" if change.exact
            else "it was changed since: our lines are taken out, and the rest stays as it is",
        )  # fmt: skip
    return HookPlan(place.file, tuple(_difference(change)), notes, lambda: installing.carry_out(change, place.records))


def _difference(change: installing.Change) -> list[str]:
    def lines(content: bytes | None) -> list[str]:
        return (content or b"").decode("utf-8", "replace").splitlines()

    return list(difflib.unified_diff(lines(change.before), lines(change.after), "before", "after", lineterm="", n=1))


def standing(outside: Outside, environ: Mapping[str, str], adapter: str, project: Path | None) -> Mapping[str, object]:
    """Whether hooks stand in the file, and when they were called last."""
    place = _place(outside, environ, adapter, project)
    found = settings.marks(installing.read(place.file))
    if not found:
        return {"agent": adapter, "file": str(place.file), "installed": False, "called": None, "text": "not installed"}
    seen = [last for mark in found if (last := calls.called(place.folder, mark)) is not None]
    last = max(seen, key=lambda one: one.get("at", ""), default=None)
    text = (
        f"installed, and called last at {last['at']} ({last['event']})" if last is not None
        else f"installed, and never called since. {UNTRUSTED[adapter]}"
    )  # fmt: skip
    return {"agent": adapter, "file": str(place.file), "installed": True, "called": last, "text": text}
