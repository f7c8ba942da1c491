"""Playbooks as they lie on the disk: a project's, the user's, and those that come with Tenuto.

A caller gives a name that cannot be a path. Files are read whole up to a limit, must be regular, and must lie where
their scope says, links followed; what is outside is refused as if it were not there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tenuto.core.playbook import BYTES, NAME, SCOPES
from tenuto.model.faults import Mistake, NotFound
from tenuto.ports import Found

INSIDE = (".tenuto", "playbooks")


class PlaybookFolders:
    """Implements ports.Playbooks. `user` is the user's directory of playbooks, `built_in` that of the package."""

    def __init__(self, user: Path, built_in: Path) -> None:
        self._user = user
        self._built_in = built_in

    def find(self, name: str, scope: str | None, cwd: str | None) -> Found:
        """The playbook of that name in a scope, or in the first scope that has it."""
        if not NAME.fullmatch(name) or (scope is not None and scope not in SCOPES):
            raise Mistake("this is no name of a playbook", field="playbook")
        for each in SCOPES if scope is None else (scope,):
            project = project_of(Path(cwd)) if cwd is not None else None
            folder, within = self._place(each, project)
            if folder is None:
                continue
            text = _text(folder / f"{name}.md", within)
            if text is not None:
                return Found(each, name, text, str(project) if each == "project" else None)
        where = "any scope" if scope is None else f"the scope {scope}"
        raise NotFound(f"there is no playbook '{name}' in {where}", field="playbook")

    def _place(self, scope: str, project: Path | None) -> tuple[Path | None, Path | None]:
        """The directory of a scope, and what its files must lie in."""
        if scope == "project":
            return (None, None) if project is None else (project.joinpath(*INSIDE), project)
        folder = self._user if scope == "user" else self._built_in
        return folder, folder


def project_of(cwd: Path) -> Path | None:
    """The repository a directory belongs to: the nearest above it with `.git`, else itself; None for no directory."""
    try:
        here = cwd.resolve(strict=True)
    except OSError:
        return None
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)


def _text(path: Path, within: Path | None) -> str | None:
    """What a file says; None where there is none. Raises Mistake for what may not be read."""
    try:
        whole = path.resolve(strict=True)
        if within is None or not whole.is_relative_to(within.resolve(strict=True)):
            return None
        handle = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Mistake(f"the playbook {path.stem} cannot be read: {error.strerror}", field="playbook") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Mistake(f"the playbook {path.stem} is no regular file", field="playbook")
    with os.fdopen(handle, "rb") as file:
        raw = file.read(BYTES + 1)
    if len(raw) > BYTES:
        raise Mistake(f"the playbook {path.stem} has more than {BYTES} bytes", field="playbook")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Mistake(f"the playbook {path.stem} is not UTF-8 text", field="playbook") from None
