"""Which servers there are, where each keeps its state, and whether its process is there.

A server is named in the settings, or found by the environment, or by a directory of the usual name in a task's
workspace. Whether a server lives is asked of the process table; that it lives is never concluded from its files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import psutil

PROGRAM: Final = "local-shell-mcp"
USUAL: Final = ".local-shell-mcp"
OURS: Final = "TENUTO_LOCAL_SHELL_STATE_DIR"
THEIRS: Final = "LOCAL_SHELL_MCP_STATE_DIR"
ROOT: Final = "LOCAL_SHELL_MCP_WORKSPACE_ROOT"
HOST: Final = "LOCAL_SHELL_MCP_HOST"
PORT: Final = "LOCAL_SHELL_MCP_PORT"
#: Where a server answers that was not told otherwise.
USUAL_PORT: Final = 8765


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
    for process, environ in _processes():
        if environ is None or (at := _served(environ)) is None:
            unsure = True
        elif os.path.realpath(at) == os.path.realpath(state):
            return Life(datetime.fromtimestamp(process.create_time(), UTC))
    return Life(None, told=not unsure)


def address(state: Path) -> str | None:
    """Where the server of this state directory answers on this machine, as its own process was told; None: unknown."""
    for process, environ in _processes():
        at = _served(environ) if environ is not None else None
        if environ is None or at is None or os.path.realpath(at) != os.path.realpath(state):
            continue
        line = process.cmdline()
        if any(a == "--mode" and b == "stdio" for a, b in pairwise(line)) or "--mode=stdio" in line:
            return None
        port = environ.get(PORT) or str(USUAL_PORT)
        if not port.isascii() or not port.isdigit():
            return None
        host = environ.get(HOST) or "0.0.0.0"  # noqa: S104 - what it binds, not what we do
        return f"http://{'127.0.0.1' if host in ('0.0.0.0', 'localhost') else host}:{port}/mcp"  # noqa: S104
    return None


def _processes() -> Iterator[tuple[psutil.Process, Mapping[str, str] | None]]:
    """Processes of servers, each with its environment; None where that cannot be read."""
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            if not any(Path(part).name == PROGRAM for part in line[:3]):
                continue
            process.create_time()
            environ: Mapping[str, str] | None = process.environ()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        except (psutil.AccessDenied, OSError):
            environ = None
        yield process, environ


def _served(environ: Mapping[str, str]) -> Path | None:
    if given := environ.get(THEIRS):
        return Path(given)
    return Path(environ[ROOT]) / USUAL if environ.get(ROOT) else None


Alive = Callable[[Path], Life]
