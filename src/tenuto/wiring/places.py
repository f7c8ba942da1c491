"""Whether what a supervisor keeps can be kept: its directories and private files, whose they are, and the disk.

Part of the doctor: looks only, and says the one command that mends it. What cannot be looked at is wrong, never well.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from tenuto.config import Settings
from tenuto.surfaces.cli.entrances import Check

#: Bytes that must be free where the registry lies.
ROOM = 200 * 1024 * 1024


def checks(settings: Settings) -> Sequence[Check]:
    """The checks of directories, files and room, in the order in which a person would mend things."""
    told = [
        directory("state directory", settings.state),
        _kept(settings),
        _room(settings.state),
        private("operator token", settings.operator_token),
        private("environment file", settings.env_file),
    ]
    if not settings.server:
        told.append(private("registry file", settings.registry_path))
    if settings.tls_key is not None:
        told.append(private("TLS key", settings.tls_key, needed=True))
    return told


def directory(name: str, path: Path, *, closed: bool = True) -> Check:
    """Whether a directory can be made or used; `closed` says that nobody else may look into it."""
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _to_make(name, path)
    except OSError as error:
        return Check(name, False, f"{path}: {error.strerror}", f"make the directories above {path} yours")
    if not stat.S_ISDIR(about.st_mode):
        return Check(name, False, f"{path} is no directory", f"put {path} aside")
    if about.st_uid != os.geteuid() and closed:
        return Check(name, False, f"{path} belongs to user {about.st_uid}", _own(path))
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Check(name, False, f"{path} cannot be written", f"{_own(path)} && chmod u+rwx {path}")
    mode = stat.S_IMODE(about.st_mode)
    if closed and mode & 0o077:
        return Check(name, False, f"{path} has mode {mode:04o}", f"chmod 700 {path}")
    return Check(name, True, str(path))


def _to_make(name: str, path: Path) -> Check:
    """What is not there is made when it is needed, if that can be."""
    for parent in path.parents:
        try:
            about = parent.stat()
        except OSError:
            continue
        if not stat.S_ISDIR(about.st_mode):
            return Check(name, False, f"{parent} is no directory", f"put {parent} aside")
        if not os.access(parent, os.W_OK | os.X_OK):
            return Check(name, False, f"{path} is not there and cannot be made", f"make {parent} writable for you")
        break
    return Check(name, True, f"{path} is not there yet")


def _own(path: Path) -> str:
    return f"make it yours: chown -R {os.geteuid()} {path}"


def _kept(settings: Settings) -> Check:
    """What lies in the state directory, and where worktrees are made: the first that cannot be used."""
    inner = (settings.journal, settings.spool, settings.forges, settings.checkouts, settings.worktrees)
    judged = [directory("kept directories", path, closed=False) for path in inner]
    wrong = next((check for check in judged if check.ok is not True), None)
    return wrong or Check("kept directories", True, f"{len(judged)} can be used")


def _room(path: Path) -> Check:
    for place in (path, *path.parents):
        try:
            free = shutil.disk_usage(place).free
        except OSError:
            continue
        mend = "" if free > ROOM else f"make room on the disk of {place}"
        return Check("disk", free > ROOM, f"{free // (1024 * 1024)} MiB free", mend)
    return Check("disk", None, f"how much room {path} has cannot be told", "see whether its disk is there")


def private(name: str, path: Path, *, needed: bool = False) -> Check:
    """Whether a file is this user's alone. One that is not `needed` is made when a supervisor first starts."""
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Check(name, not needed, f"{path} is not there", f"put it at {path}" if needed else "")
    except OSError as error:
        return Check(name, False, f"{path}: {error.strerror}", f"make the directories above {path} yours")
    if not stat.S_ISREG(about.st_mode):
        return Check(name, False, f"{path} is no file", f"put {path} aside")
    mode = stat.S_IMODE(about.st_mode)
    if about.st_uid != os.geteuid():
        return Check(name, False, f"{path} belongs to user {about.st_uid}", f"chown {os.geteuid()} {path}")
    good = not mode & 0o077 and mode & 0o400
    return Check(name, bool(good), f"{path}, mode {mode:04o}", "" if good else f"chmod 600 {path}")
