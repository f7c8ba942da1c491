"""Finding what stands at a working directory: nothing, a plain directory, or a repository.

Discovery is ours and follows git's rules (upwards, within one file system, past a ``.git``
that holds nothing), so that git can later be told where to look and need not search.
Blocking: call it in a thread.
"""

from __future__ import annotations

import itertools
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tenuto.transports.workspace.facts import Kind, Workspace
from tenuto.transports.workspace.git import Repository

PARTS: Final = ("HEAD", "objects", "refs")


def find(cwd: Path) -> Workspace | Repository | Path:
    """A repository, the resolved path of a plain directory, or the facts when there is nothing more to look at."""
    try:
        place = cwd.resolve(strict=True)
        found = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Workspace(Kind.MISSING, reason="the working directory does not exist")
    except PermissionError:
        return Workspace(Kind.UNREADABLE, reason="the way to the working directory is not readable")
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
        return Workspace(Kind.MISSING, reason="the working directory's path leads nowhere")
    if not stat.S_ISDIR(found.st_mode):
        return Workspace(Kind.MISSING, reason="something other than a directory stands at the working directory's path")
    if not os.access(place, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return Workspace(Kind.UNREADABLE, reason="the working directory is not readable")
    try:
        return _covering(place, found.st_dev)
    except OSError as error:
        return Workspace(Kind.UNKNOWN, reason=f"looking for a repository failed: {error.strerror}")


def _covering(place: Path, device: int) -> Workspace | Repository | Path:
    for directory in (place, *place.parents):
        if directory.stat().st_dev != device:
            return place
        dot_git = directory / ".git"
        if dot_git.is_file() or (dot_git.is_dir() and any((dot_git / part).exists() for part in PARTS)):
            return Repository(directory, dot_git)
        if all((directory / part).exists() for part in PARTS) and (directory / "objects").is_dir():
            return Workspace(Kind.UNKNOWN, reason="the working directory is inside a git directory")
    return place


def locked_since(repository: Repository) -> datetime | None:
    """When the index lock was last written (aware, UTC), None when the index is not locked."""
    try:
        lock = _git_directory(repository) / "index.lock"
        return datetime.fromtimestamp(lock.lstat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None


def worktrees(repository: Repository) -> int:
    """How many other worktrees share the repository, at most 1,000; 0 when that cannot be read."""
    try:
        own = _git_directory(repository)
        linked = own / "commondir"
        common = (own / linked.read_text("utf-8")[:8192].strip()) if linked.is_file() else own
        with os.scandir(common / "worktrees") as entries:
            count = sum(1 for _ in itertools.islice(entries, 1000))
    except (OSError, ValueError):
        return 0
    return count


def _git_directory(repository: Repository) -> Path:
    if repository.dot_git.is_dir():
        return repository.dot_git
    with repository.dot_git.open("rb") as pointer:
        word, _, target = pointer.read(8192).strip().partition(b"gitdir:")
    if word:
        raise ValueError("a .git file that points nowhere")
    return repository.top / os.fsdecode(target.strip())
