"""Looks at everything a supervisor depends on and says how to mend what is wrong.

Changes nothing, and starts nothing but `git --version` unless it is told to probe. Each check says what was found; one
that cannot be told says so rather than guess.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tenuto.model.faults import Corrupt, Mistake, OutOfReach, UnsupportedVersion
from tenuto.surfaces.cli.entrances import Check
from tenuto.wiring import examining, probing
from tenuto.wiring.outside import Outside

ROOM = 200 * 1024 * 1024
OLD_SQLITE = (3, 35, 0)


def checks(outside: Outside, *, probe: bool = False) -> Sequence[Check]:
    """Every check, in the order in which a person would mend things; with `probe` more is asked to answer."""
    told = [_python(), probing.git(), _sqlite()]
    try:
        settings = outside.settings
    except Mistake as mistake:
        return [*told, Check("configuration", False, mistake.message, "mend the file, or remove the line")]
    told.append(Check("configuration", True, f"{settings.config_file} ({_there(settings.config_file)})"))
    told += [
        _directory("state directory", settings.state),
        _room(settings.state),
        _private("operator token", settings.operator_token, needed=False),
        _private("environment file", settings.env_file, needed=False),
        _registry(outside),
        _lease(outside),
        _door(outside),
        _port(outside),
        _host(settings.journal),
        _spool(settings.spool),
        *examining.checks(settings, probe=probe),
    ]
    return told


def _there(path: Path) -> str:
    return "read" if path.exists() else "not there: defaults"


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    good = sys.version_info >= (3, 11)
    return Check("python", good, version, "" if good else "use Python 3.11 or newer")


def _sqlite() -> Check:
    good = sqlite3.sqlite_version_info >= OLD_SQLITE
    return Check("sqlite", good, sqlite3.sqlite_version, "" if good else "use a Python with SQLite 3.35 or newer")


def _directory(name: str, path: Path) -> Check:
    if not path.exists():
        parent = next((p for p in path.parents if p.exists()), path)
        good = os.access(parent, os.W_OK | os.X_OK)
        return Check(name, good, f"{path} is not there yet", "" if good else f"make {parent} writable for you")
    mode = stat.S_IMODE(path.stat().st_mode)
    if not os.access(path, os.W_OK | os.X_OK):
        return Check(name, False, f"{path} cannot be written", f"make it yours: chown -R {os.getuid()} {path}")
    if mode & 0o077:
        return Check(name, False, f"{path} has mode {mode:04o}", f"chmod 700 {path}")
    return Check(name, True, str(path))


def _room(path: Path) -> Check:
    place = next((p for p in (path, *path.parents) if p.exists()), Path("/"))
    free = shutil.disk_usage(place).free
    return Check(
        "disk", free > ROOM, f"{free // (1024 * 1024)} MiB free", "" if free > ROOM else "make room on that disk"
    )


def _private(name: str, path: Path, *, needed: bool) -> Check:
    try:
        about = path.stat()
    except FileNotFoundError:
        return Check(name, not needed, "not there yet", "it is made when a supervisor first starts" if needed else "")
    except OSError as error:
        return Check(name, False, f"{path}: {error.strerror}", "make it readable for you")
    mode = stat.S_IMODE(about.st_mode)
    good = not mode & 0o077 and about.st_uid == os.geteuid()
    return Check(name, good, f"{path}, mode {mode:04o}", "" if good else f"chmod 600 {path}")


def _registry(outside: Outside) -> Check:
    from tenuto.store.opening import PRESENT, server, version_of

    path = outside.settings.shown_database
    try:
        if outside.settings.server:
            version = server(outside.settings.database).version()
        else:
            version = version_of(outside.settings.registry_path)
    except OutOfReach as error:
        return Check("registry", False, f"{path}: {error}", "start the database server, or mend `database`")
    except Mistake as mistake:
        return Check("registry", False, mistake.message, "pip install 'tenuto[postgres]'")
    except (Corrupt, UnsupportedVersion) as error:
        return Check("registry", False, str(error), "tenuto db check, or restore a backup")
    if version is None:
        return Check("registry", True, f"{path} is not there yet")
    mend = "" if version == PRESENT else "tenuto db upgrade"
    return Check("registry", version == PRESENT, f"{path}, schema {version}", mend)


def _lease(outside: Outside) -> Check:
    try:
        glance = outside.glance()
    except (Corrupt, UnsupportedVersion) as error:
        return Check("supervisor", False, f"its lease cannot be read: {error}", "mend the registry first")
    except (OutOfReach, Mistake) as error:
        return Check("supervisor", None, f"its lease cannot be read: {error}")
    told = glance.standing + (f", pid {glance.pid}, epoch {glance.epoch}" if glance.pid else "")
    mends = {
        "missing": "tenuto start",
        "fresh-dead": "tenuto start",
        "stale-dead": "tenuto start",
        "stop-fenced": "wait until it has stopped",
        "stale-alive": f"look at {outside.settings.log}; then tenuto restart",
    }
    good = glance.standing in ("live", "missing")
    return Check("supervisor", good, told, mends.get(glance.standing, ""))


def _door(outside: Outside) -> Check:
    path = outside.settings.socket
    if not path.exists():
        try:
            glance = outside.glance()
        except (OutOfReach, Corrupt, UnsupportedVersion, Mistake):
            return Check("API socket", None, "not there")
        led = glance.standing == "live" and glance.address in (None, str(path))
        return Check("API socket", not led, "not there", "tenuto restart" if led else "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timedelta(seconds=2).total_seconds())
        try:
            client.connect(str(path))
        except OSError as error:
            return Check("API socket", False, f"{path}: {error.strerror or error}", "tenuto start")
    return Check("API socket", True, str(path))


def _port(outside: Outside) -> Check:
    """Whether HTTP could be served where the settings want it; a supervisor that runs has the port itself."""
    settings = outside.settings
    if settings.port is None:
        return Check("HTTP port", True, "none is wanted")
    where = f"{settings.bind or '127.0.0.1'}:{settings.port}"
    try:
        if outside.glance().standing in ("live", "stop-fenced", "stale-alive"):
            return Check("HTTP port", True, f"{where}, of the supervisor")
    except (OutOfReach, Corrupt, UnsupportedVersion, Mistake):
        return Check("HTTP port", None, f"{where}; whether a supervisor has it cannot be read")
    family = socket.AF_INET6 if settings.bind is not None and ":" in settings.bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.bind or "127.0.0.1", settings.port))
        except OSError as error:
            if settings.port_wished:
                return Check("HTTP port", None, f"{where} is taken; it is served on the socket alone")
            mend = "end what listens there, or name another `port`"
            return Check("HTTP port", False, f"{where}: {error.strerror or error}", mend)
    return Check("HTTP port", True, f"{where} is free")


def _host(journal: Path) -> Check:
    from tenuto.transports.host import turn

    script = Path(turn.__file__)
    if not script.is_file():
        return Check("host executor", False, f"{script} is missing", "install this program again")
    kept = sum(1 for _ in journal.glob("*.jsonl")) if journal.is_dir() else 0
    return Check("host executor", True, f"{kept} journals kept")


def _spool(path: Path) -> Check:
    if not path.is_dir():
        return Check("spool", True, "empty")
    waiting = sum(1 for _ in path.glob("*.json"))
    refused = sum(1 for _ in (path / "refused").glob("*.json")) if (path / "refused").is_dir() else 0
    mend = f"look at {path / 'refused'}" if refused else ""
    return Check("spool", not refused, f"{waiting} words waiting, {refused} refused", mend)
