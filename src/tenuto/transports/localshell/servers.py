"""Which servers there are, where each keeps its state, and whether its process is there.

A server is named in the settings, or found by the environment, or by a directory of the usual name in a task's
workspace. Whether a server lives is asked of the process table; that it lives is never concluded from its files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil

PROGRAM: Final = "local-shell-mcp"
USUAL: Final = ".local-shell-mcp"
OURS: Final = "TENUTO_LOCAL_SHELL_STATE_DIR"
THEIRS: Final = "LOCAL_SHELL_MCP_STATE_DIR"
ROOT: Final = "LOCAL_SHELL_MCP_WORKSPACE_ROOT"


@dataclass(frozen=True)
class Server:
    """A server by its name among ours, and its state directory."""

    name: str
    state: Path


@dataclass(frozen=True)
class Life:
    """When the server's process began; None when none is there. `told` is False when that cannot be said."""

    since: datetime | None
    told: bool = True


def found(
    settings: Mapping[str, Path], environ: Mapping[str, str], workspace: Path | None = None
) -> tuple[Server, ...]:
    """The servers, each once: named ones first, then by the environment, then in the workspace."""
    servers = {name: Server(name, path) for name, path in settings.items()}
    for name in (OURS, THEIRS):
        if given := environ.get(name):
            servers.setdefault("local", Server("local", Path(given).expanduser()))
    if workspace is not None and _holds_sessions(workspace / USUAL):
        servers.setdefault("workspace", Server("workspace", workspace / USUAL))
    if data := environ.get("PROGRAMDATA"):
        hardened = Path(data) / "LocalShellMCP-Hardened" / "control" / "state"
        if _holds_sessions(hardened):
            servers.setdefault("hardened", Server("hardened", hardened))
    return tuple(servers.values())


def _holds_sessions(path: Path) -> bool:
    try:
        return (path / "sessions").is_dir()
    except OSError:
        return False


def alive(state: Path) -> Life:
    """Whether a process serves this state directory, and since when."""
    unsure = False
    resolved = os.path.realpath(state)
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            if not any(Path(part).name == PROGRAM for part in line[:3]):
                continue
            environ = process.environ()
            started = datetime.fromtimestamp(process.create_time(), UTC)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        except (psutil.AccessDenied, OSError):
            unsure = True
            continue
        at = environ.get(THEIRS) or (Path(environ[ROOT]) / USUAL if environ.get(ROOT) else None)
        if at is None:
            unsure = True
        elif os.path.realpath(at) == resolved:
            return Life(started)
    return Life(None, told=not unsure)


Alive = Callable[[Path], Life]
