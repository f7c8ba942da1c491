"""Looks at everything a supervisor depends on and says how to mend what is wrong.

Changes nothing, and starts nothing but `git --version` unless it is told to probe. Each check says what was found; one
that cannot be told says so rather than guess.
"""

from __future__ import annotations

import socket
import sqlite3
import ssl
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from tenuto.config import Settings
from tenuto.model.faults import Corrupt, Mistake, OutOfReach, UnsupportedVersion
from tenuto.surfaces.cli.entrances import Check, Glance
from tenuto.wiring import examining, places, probing
from tenuto.wiring.outside import PRESENT_HOLDERS, Outside

OLD_SQLITE = (3, 35, 0)


def checks(outside: Outside, *, probe: bool = False) -> Sequence[Check]:
    """Every check, in the order in which a person would mend things; with `probe` more is asked to answer."""
    told = [_python(), probing.git(), _sqlite()]
    try:
        settings = outside.settings
    except Mistake as mistake:
        mend = "mend what it names, in the file or in the environment, or leave it out"
        return [*told, Check("configuration", False, mistake.message, mend)]
    glance = _glanced(outside)
    told.append(Check("configuration", True, f"{settings.config_file} ({_there(settings.config_file)})"))
    told += [
        *places.checks(settings),
        _registry(outside),
        _lease(outside, glance),
        _door(outside, glance),
        _port(settings, glance),
        *_tls(settings),
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


def _registry(outside: Outside) -> Check:
    from tenuto.store.opening import PRESENT, place, server, version_of

    path = outside.settings.shown_database
    try:
        if outside.settings.server:
            version = server(outside.settings.database).version()
        else:
            version = version_of(place(outside.settings.database))
    except OutOfReach as error:
        return Check("registry", False, f"{path}: {error}", "start the database server, or mend `database`")
    except Mistake as mistake:
        mend = "pip install 'tenuto[postgres]'" if outside.settings.server else "mend `database`"
        return Check("registry", False, mistake.message, mend)
    except UnsupportedVersion as error:
        return Check("registry", False, str(error), "use the newer program that made it, or: tenuto db restore FILE")
    except Corrupt as error:
        return Check("registry", False, str(error), "tenuto db check; then put a backup there: tenuto db restore FILE")
    except OSError as error:
        return Check("registry", False, f"{path}: {error.strerror}", "make it a file that is yours")
    if version is None:
        return Check("registry", True, f"{path} is not there yet")
    mend = "" if version == PRESENT else "tenuto db upgrade"
    return Check("registry", version == PRESENT, f"{path}, schema {version}", mend)


def _glanced(outside: Outside) -> Glance | str:
    """The supervisor at a glance, or why there is none."""
    try:
        return outside.glance()
    except (OutOfReach, Corrupt, UnsupportedVersion, Mistake, OSError) as error:
        return str(error)


def _lease(outside: Outside, glance: Glance | str) -> Check:
    if isinstance(glance, str):
        return Check("supervisor", False, f"its lease cannot be read: {glance}", "mend the registry first")
    where = "" if glance.near else f" on {glance.host}"
    told = glance.standing + (f", pid {glance.pid}{where}, epoch {glance.epoch}" if glance.pid else "")
    mends = {
        "fresh-dead": "tenuto start",
        "stale-dead": "tenuto start",
        "stop-fenced": "wait until it has stopped",
        "stale-alive": f"look at {outside.settings.log}; then tenuto restart",
    }
    if not glance.near:
        mends["stale-alive"] = f"look after the supervisor on {glance.host}, or stop it: tenuto stop"
    if glance.standing == "live" and glance.troubles:
        return Check("supervisor", False, f"{told}: {'; '.join(glance.troubles)}", "mend what it names; tenuto status")
    good = glance.standing in ("live", "missing")
    return Check("supervisor", good, told, mends.get(glance.standing, ""))


def _door(outside: Outside, glance: Glance | str) -> Check:
    """Whether whoever should answer at this home's socket does, and nobody else."""
    path = outside.settings.socket
    name = "API socket"
    led = glance if not isinstance(glance, str) and glance.standing == "live" else None
    ours = led is not None and led.near and led.address in (None, str(path))
    where = f"pid {led.pid} on {led.host} leads and answers at {led.address}" if led is not None else ""
    there = "give your words where it leads, or end it there and then here: tenuto start"
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if isinstance(glance, str):
            return Check(name, None, "not there", "mend the registry first")
        if ours:
            return Check(name, False, "not there, though a supervisor leads", "tenuto restart")
        return Check(name, True, f"not there; {where}" if where else "not there")
    except OSError as error:
        return Check(name, False, f"{path}: {error.strerror}", f"make the directories above {path} yours")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timedelta(seconds=2).total_seconds())
        try:
            client.connect(str(path))
        except OSError as error:
            text = f"{path}: {error.strerror or error}"
            if led is not None and not ours:
                return Check(name, None, f"{text}; {where}", there)
            return Check(name, False, text, "tenuto restart" if ours else "tenuto start")
    if led is not None and not ours:
        return Check(name, False, f"somebody answers at {path}, though {where}", f"end what listens here; {there}")
    return Check(name, True, str(path))


def _port(settings: Settings, glance: Glance | str) -> Check:
    """Whether HTTP could be served where the settings want it; a supervisor that runs has the port itself."""
    if settings.port is None:
        return Check("HTTP port", True, "none is wanted")
    where = f"{settings.bind or '127.0.0.1'}:{settings.port}"
    if isinstance(glance, str):
        return Check("HTTP port", None, f"{where}; whether a supervisor has it cannot be read", "mend the registry")
    if glance.standing in PRESENT_HOLDERS:
        return Check("HTTP port", True, f"{where}, of the supervisor")
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


def _tls(settings: Settings) -> list[Check]:
    """Whether the certificate and its key, where they are named, are there and belong together."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return []
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            settings.tls_certificate, settings.tls_key, password=lambda: b""
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        text = f"{settings.tls_certificate} with {settings.tls_key}: {str(why).replace('_', ' ').lower()}"
        return [Check("TLS certificate", False, text, "mend `tls_certificate` and `tls_key`")]
    return [Check("TLS certificate", True, str(settings.tls_certificate))]


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
