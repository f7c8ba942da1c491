"""Asks what a supervisor's work hangs on whether it answers: executors elsewhere, agent programs, tool servers' doors.

Part of the doctor. Executors are asked about at the supervisor that leads; programs are started only where that was
asked for, with one argument that makes them tell their version, within a time and in a directory of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tenuto.config import Settings
from tenuto.model.snapshot import Token
from tenuto.model.work import Task
from tenuto.surfaces.cli.client import Client, Unreachable
from tenuto.surfaces.cli.entrances import Check
from tenuto.surfaces.cli.exits import Failure
from tenuto.transports.agents.adapters import ADAPTERS
from tenuto.transports.host import environment
from tenuto.transports.localshell import servers
from tenuto.transports.localshell.door import NotAsked
from tenuto.transports.localshell.taking import TOOL, Doors
from tenuto.transports.localshell.witness import configured

#: Seconds for a program to tell its version, and for the supervisor to answer.
ANSWERS = 20.0
LEADS = 5.0
#: An executor that was heard of this long ago and is not connected is away, not between two connections.
AWAY = timedelta(minutes=2)
OLDEST_GIT = (2, 20)
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]{0,40}")


# -- executors elsewhere


def executors(settings: Settings, named: Sequence[Token], needed: Mapping[str, int], now: datetime) -> list[Check]:
    """Each executor that has been connected, by the supervisor's word; and those that tasks need and nobody knows.

    `named` are the tokens that were made by hand, `needed` how many unfinished tasks each executor is meant to carry.
    """
    known = _asked(settings, "/api/v1/executors")
    wanted = {name: count for name, count in needed.items() if ":" in name}
    if known is None:
        tokens = sum(1 for token in named if token.role == "executor" and token.revoked_at is None)
        if not tokens and not wanted:
            return [Check("executors", True, "none elsewhere is known")]
        text = f"{tokens} have a token; no supervisor could be asked whether they are connected"
        return [Check("executors", None, text, "tenuto start, then tenuto doctor")]
    rows = known.get("executors")
    found = {str(row["name"]): row for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}
    told = [_executor(name, row, wanted.get(name, 0), now) for name, row in sorted(found.items())]
    told += [
        Check(f"executor {name}", False, f"never connected; {count} tasks are meant for it", _start(name))
        for name, count in sorted(wanted.items())
        if name not in found and not name.startswith("agent:")
    ]
    return told or [Check("executors", True, "none elsewhere is known")]


def _executor(name: str, row: Mapping[str, Any], wanted: int, now: datetime) -> Check:
    what = f"executor {name}"
    if row.get("trouble"):
        return Check(what, False, str(row["trouble"])[:300], "see its log, then start it again")
    if strangers := row.get("strangers"):
        text = f"it has {len(strangers)} commands in its journal that this registry does not know"
        return Check(what, False, text, "look at what they did: tenuto attention")
    if row.get("connected"):
        return Check(what, True, f"connected, serves {len(row.get('conversations') or ())} conversations")
    heard = row.get("heard_at")
    text = f"not connected, last heard of {heard}" if heard else "not connected"
    if wanted:
        return Check(what, False, f"{text}; {wanted} tasks are meant for it", _start(name))
    late = isinstance(heard, str) and now - datetime.fromisoformat(heard) < AWAY
    return Check(what, None, text, "" if late else _start(name))


def _start(name: str) -> str:
    kind, _, bare = name.partition(":")
    return f"tenuto host --name {bare} --token-file FILE, on its machine" if kind == "host" else f"start {name} again"


def _asked(settings: Settings, path: str) -> Mapping[str, Any] | None:
    """What the supervisor answers; None where none does."""
    try:
        token = settings.operator_token.read_text("utf-8").strip()
        answer = Client(settings.socket, token, answer=LEADS).ask("GET", path)
    except (OSError, Unreachable, Failure, UnicodeDecodeError):
        return None
    return answer.value if isinstance(answer.value, dict) else None


# -- programs


def git() -> Check:
    """Whether git is there, and not older than the options that it is called with."""
    path = shutil.which("git")
    if path is None:
        return Check("git", False, "not found", f"install git {'.'.join(map(str, OLDEST_GIT))} or newer")
    told = _version([path, "--version"], dict(os.environ))
    numbers = tuple(int(part) for part in re.findall(r"\d+", told or "")[:2])
    good = numbers >= OLDEST_GIT
    return Check("git", good, f"{path}, {told or 'of no known version'}", "" if good else "install git 2.20 or newer")


def programs(settings: Settings, tasks: Sequence[Task]) -> list[Check]:
    """Start each agent program that unfinished tasks use or that has an adapter, once, and have it tell its version."""
    used: dict[str, list[str]] = {}
    for task in tasks:
        if task.agent.adapter != "program" and task.agent.argv:
            used.setdefault(task.agent.adapter, []).append(task.agent.argv[0])
    told = []
    for name, adapter in sorted(ADAPTERS.items()):
        program = used[name][0] if name in used else (adapter.argv[0] if adapter.argv else "")
        path = shutil.which(program) if program else None
        if path is None:
            if name in used:
                told.append(Check(f"agent {name}", False, f"{program} is not found", "install it, or mend PATH"))
            continue
        given = {key: value for key, value in os.environ.items() if key in environment.BASE}
        version = _version([path, "--version"], given)
        if version is None:
            told.append(Check(f"agent {name}", False, f"{path} tells no version", f"run {path} --version by hand"))
        else:
            told.append(Check(f"agent {name}", True, f"{path}, {version}"))
    return told or [Check("agents", True, "none with an adapter is installed")]


def _version(argv: Sequence[str], given: Mapping[str, str]) -> str | None:
    """What a program says of its version, in a directory that is removed afterwards; None where it tells none."""
    with tempfile.TemporaryDirectory(prefix="tenuto-") as scratch:
        try:
            ended = subprocess.run(
                list(argv), stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWERS, check=False, cwd=scratch,
                env={**given, "HOME": scratch, "NO_COLOR": "1"}, start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
    said = _VERSION.search(ended.stdout[:4096].decode("utf-8", "replace"))
    return said.group() if said is not None and ended.returncode == 0 else None


# -- tool servers' doors


def doors(settings: Settings) -> list[Check]:
    """Greet each tool server whose address is known, and say whether its tools offer a takeover."""
    told = []
    at = Doors(settings.tool_doors, settings.tool_tokens)
    for server in configured(settings.tool_servers, os.environ)(None):
        if server.name not in settings.tool_doors and servers.address(server.state) is None:
            continue
        name = f"door of tool server {server.name}"
        try:
            entered = at.of(server)
            tools = entered.enter()
            entered.leave()
        except NotAsked as error:
            told.append(Check(name, False, str(error), "start the server, or mend `tool_doors` or its token"))
            continue
        offers = "takeover" in tools.get(TOOL, ())
        told.append(Check(name, True, f"{len(tools)} tools, {'with' if offers else 'without'} a takeover of sessions"))
    return told


def all_of(settings: Settings, tasks: Sequence[Task]) -> list[Check]:
    """Everything that is asked only with `--probe`."""
    return [*programs(settings, tasks), *doors(settings)]


def needed_by(tasks: Sequence[Task]) -> Mapping[str, int]:
    """How many unfinished tasks name each executor."""
    counted: dict[str, int] = {}
    for task in tasks:
        counted[task.agent.carrier] = counted.get(task.agent.carrier, 0) + 1
    return counted
