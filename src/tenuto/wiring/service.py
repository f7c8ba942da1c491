"""Tenuto as a service of this user: what is written for systemd or launchd, and how it is undone.

The service manager starts the supervisor again after a crash and leaves it stopped after a clean stop, or where another
start would help nobody. It must never end the hosts: they and their programs go on while the supervisor is replaced,
so only the supervisor's own process is ended with the service. Everything is shown before anything is done.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenuto.config import Settings, without_password
from tenuto.model.faults import Mistake, Refused
from tenuto.surfaces.cli.entrances import ServicePlan
from tenuto.wiring.outside import Outside

NAME = "tenuto.service"
LABEL = "tenuto.supervisor"
#: How a supervisor ends that another start would not help: wrong use, another leads, an unknown version.
NOT_AGAIN = (2, 5, 7)
#: How long a manager's command may take, in seconds.
PATIENCE = 60

UNIT = """\
[Unit]
Description=Tenuto: keeps long-running work by AI agents going
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
Type=exec
ExecStart={command}
{environment}
# Its hosts live in this group and must go on while it is stopped or replaced.
KillMode=process
TimeoutStopSec=30
Restart=on-failure
RestartSec=2
RestartPreventExitStatus={never}
UMask=0077

[Install]
WantedBy=default.target
"""


def plan(outside: Outside, act: str, config: Path | None, db: str | None) -> ServicePlan:
    """What `act` (install or remove) comes to here; changes nothing. Refused where no such manager is known."""
    settings = outside.settings
    if sys.platform == "darwin":
        return _launchd(settings, act, config, db)
    if sys.platform.startswith("linux"):
        return _systemd(settings, act, config, db)
    raise Refused(f"no service manager of {sys.platform} is known here; run 'tenuto start' from what starts with you")


def carry_out(plan: ServicePlan) -> Sequence[str]:
    """Write, run and remove what the plan says; Mistake when a step fails, which leaves the steps before it done."""
    told: list[str] = []
    removed = [path for path, text in plan.files if text is None]
    for path, text in plan.files:
        if text is not None:
            _write(path, text)
            told.append(f"wrote {path}")
    for command in plan.commands:
        if path_gone(command, removed):
            for path in removed:
                path.unlink(missing_ok=True)
        _run(command)
        told.append(f"ran {' '.join(command)}")
    for path in removed:
        path.unlink(missing_ok=True)
        told.append(f"removed {path}")
    return told


def path_gone(command: tuple[str, ...], removed: Sequence[Path]) -> bool:
    """Whether a command makes the manager look again, which it must do without the files that are removed."""
    return bool(removed) and command[-1] == "daemon-reload"


def unit_text(settings: Settings, config: Path | None, db: str | None) -> str:
    """The unit of systemd's user manager."""
    lines = "\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in _environment(settings, db).items())
    command = " ".join(_quoted(word) for word in _command(config))
    never = " ".join(str(code) for code in NOT_AGAIN)
    return UNIT.format(command=command, environment=lines or "# no environment of its own", never=never)


def plist_text(settings: Settings, config: Path | None, db: str | None) -> str:
    """The property list of a launchd agent."""
    told = {
        "Label": LABEL,
        "ProgramArguments": list(_command(config)),
        "EnvironmentVariables": dict(_environment(settings, db)),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "AbandonProcessGroup": True,  # its hosts go on while it is stopped or replaced
        "ExitTimeOut": 30,
        "ThrottleInterval": 10,
        "Umask": 0o077,
        "ProcessType": "Background",
    }
    return plistlib.dumps(told, sort_keys=False).decode("utf-8")


def _systemd(settings: Settings, act: str, config: Path | None, db: str | None) -> ServicePlan:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = base / "systemd" / "user" / NAME
    manage = ("systemctl", "--user")
    missing = () if shutil.which("systemctl") else ("systemctl is not here: this needs systemd",)
    if act == "install":
        return ServicePlan(
            "systemd",
            ((path, unit_text(settings, config, db)),),
            ((*manage, "daemon-reload"), (*manage, "enable", "--now", NAME)),
            (
                *missing,
                *_password_note(settings),
                "it runs while you are logged in; to have it run without that: loginctl enable-linger",
                "turns under way go on when it is stopped or restarted",
            ),
        )
    _must_be_remove(act)
    return ServicePlan(
        "systemd",
        ((path, None),),
        ((*manage, "disable", "--now", NAME), (*manage, "daemon-reload")),
        (*missing, "registry, journals and configuration stay; so does lingering, if you enabled it"),
    )


def _launchd(settings: Settings, act: str, config: Path | None, db: str | None) -> ServicePlan:
    path = Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain = f"gui/{os.getuid()}"
    if act == "install":
        return ServicePlan(
            "launchd",
            ((path, plist_text(settings, config, db)),),
            (("launchctl", "bootstrap", domain, str(path)),),
            (*_password_note(settings), "it runs while you are logged in; turns under way go on when it is stopped"),
        )
    _must_be_remove(act)
    return ServicePlan(
        "launchd",
        ((path, None),),
        (("launchctl", "bootout", f"{domain}/{LABEL}"),),
        ("registry, journals and configuration stay",),
    )


def _must_be_remove(act: str) -> None:
    if act != "remove":
        raise Mistake(f"a service is installed or removed, not '{act}'", field="act")


def _command(config: Path | None) -> tuple[str, ...]:
    chosen = ("--config", str(config.absolute())) if config is not None else ()
    return (sys.executable, "-m", "tenuto", *chosen, "up", "--standby")


def _environment(settings: Settings, db: str | None) -> Mapping[str, str]:
    """What the service has to be told; what a configuration file says it reads for itself. No password is written."""
    told = {"PATH": os.environ.get("PATH", os.defpath)}
    if settings.home is not None:
        told["TENUTO_HOME"] = str(settings.home)
    if db is not None:
        told["TENUTO_DB"] = without_password(db)
    return told


def _password_note(settings: Settings) -> tuple[str, ...]:
    if without_password(settings.database) == settings.database:
        return ()
    return ("the password of the database is not written into the service: put it into ~/.pgpass",)


def _quoted(word: str) -> str:
    """A word for a unit file, where %, $, quotes and backslashes mean something."""
    if any(ord(letter) < 32 for letter in word):
        raise Mistake("a path with control characters cannot stand in a unit file")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.new")
    made.write_text(text, "utf-8")
    made.chmod(0o600)
    made.replace(path)


def _run(command: tuple[str, ...]) -> None:
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Mistake(f"{' '.join(command)} could not be run: {error}") from None
    if said.returncode:
        raise Mistake(f"{' '.join(command)} failed: {(said.stderr or said.stdout).strip()[:500]}")
