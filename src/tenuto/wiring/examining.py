"""What a supervisor's work hangs on beyond its own files: the clock, the machine's limits, agents, tool servers.

Part of the doctor: looks only. The registry is read where it is of this version; what it says is compared with what is
there now.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from tenuto.config import Settings
from tenuto.engine.orphans import ONCE
from tenuto.model.faults import Corrupt, Mistake, NotFound, OutOfReach, UnsupportedVersion
from tenuto.model.lifecycle import CommandState
from tenuto.model.tools import CallState, Flaw
from tenuto.model.work import Task
from tenuto.surfaces.cli.entrances import Check
from tenuto.transports.host import journal
from tenuto.transports.localshell import servers
from tenuto.transports.localshell.servers import Server
from tenuto.transports.localshell.witness import LocalShellWitness, configured
from tenuto.wiring import probing
from tenuto.wiring.witnesses import page_witnesses
from tenuto.wiring.world import RandomMinter, SystemClock

#: Descriptors that one active task may need, and what the supervisor needs besides.
PER_TASK, BESIDES = 8, 64
LOOKED_AT = 500
SLIP = timedelta(seconds=5)
EXTRAS = {
    "psycopg": "postgres",
    "mcp": "mcp",
    "acp": "acp",
    "githubkit": "github",
    "jeepney": "accessibility",
}


def checks(settings: Settings, *, probe: bool = False) -> Sequence[Check]:
    """The checks of what is outside, in the order in which a person would mend things.

    With `probe` agent programs are started to tell their version, and tool servers are greeted.
    """
    told = [_descriptors(settings), _processes(settings), _extras(), *_servers(settings), *_witnesses(settings)]
    try:
        told += _registered(settings, probe=probe)
    except (Corrupt, UnsupportedVersion, OutOfReach, NotFound, Mistake, OSError) as error:
        told.append(Check("tasks", None, f"the registry cannot be read: {error}"))
    return told


def _descriptors(settings: Settings) -> Check:
    if sys.platform == "win32":
        return Check("descriptors", None, "not limited in this way here")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.slots * PER_TASK + BESIDES
    good = soft == resource.RLIM_INFINITY or soft >= wanted
    mend = f"ulimit -n {min(wanted, hard) if hard != resource.RLIM_INFINITY else wanted}, or fewer slots"
    return Check(
        "descriptors", good, f"{soft} allowed, up to {wanted} for {settings.slots} slots", "" if good else mend
    )


def _processes(settings: Settings) -> Check:
    """How many processes this user has, of those it may have: a leak shows here before work stops."""
    if sys.platform == "win32":
        return Check("processes", None, "not limited in this way here")
    import resource

    import psutil

    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    mine = 0
    for process in psutil.process_iter():
        try:
            mine += process.uids().real == os.getuid()
        except psutil.Error:
            continue
    room = soft == resource.RLIM_INFINITY or mine + settings.slots * PER_TASK < soft
    limit = "without a limit" if soft == resource.RLIM_INFINITY else f"of {soft}"
    return Check("processes", room, f"{mine} run {limit}", "" if room else "end what is left over, or raise ulimit -u")


def _extras() -> Check:
    there = [extra for module, extra in EXTRAS.items() if importlib.util.find_spec(module) is not None]
    return Check("extras", True, f"installed: {', '.join(sorted(there)) or 'none'}")


def _servers(settings: Settings) -> list[Check]:
    known = configured(settings.tool_servers, os.environ)
    found: list[Check] = []
    for server in known(None):
        name = f"tool server {server.name}"
        if not (server.state / "sessions").is_dir():
            named = f"{server.state} holds no sessions"
            found.append(Check(name, False, named, "mend `tool_servers`, or start the server"))
            continue
        seer = LocalShellWitness(SystemClock(), partial(_only, server))
        told = seer.every(None, SystemClock().now())[:LOOKED_AT]
        unknown = [each for each in told if any(d.flaw is Flaw.UNKNOWN_VERSION for d in each.defects)]
        flawed = [each for each in told if each.defects]
        orphans = [each for each in told if any(call.state is CallState.ORPHANED for call in each.calls)]
        life = servers.alive(server.state)
        lives = (
            "its process runs" if life.since else ("no process of it runs" if life.told else "its process is unknown")
        )
        text = f"{len(told)} sessions, {lives}"
        if unknown:
            found.append(Check(name, False, f"{text}; {unknown[0].defects[0].why}", "a version that is understood"))
        elif flawed:
            found.append(Check(name, False, f"{text}; {flawed[0].subject}: {flawed[0].defects[0].why}", "look at it"))
        elif orphans:
            mend = "see what their calls did, then end these sessions"
            found.append(Check(name, False, f"{text}; {len(orphans)} with a call that outlived it", mend))
        else:
            found.append(Check(name, True, text))
    return found or [Check("tool servers", True, "none is known here")]


def _witnesses(settings: Settings) -> list[Check]:
    """Whether each witness of pages can look now."""
    found = []
    for name, witness in sorted(page_witnesses(settings, SystemClock()).items()):
        at = settings.page_witnesses[name]
        try:
            pages = asyncio.run(witness.shown())
        except Mistake as mistake:
            where = f" at {at.where}" if at.where else ""
            mend = f"start what it looks at{where}, or mend `page_witnesses`"
            found.append(Check(f"page witness {name}", False, mistake.message, mend))
            continue
        found.append(Check(f"page witness {name}", True, f"{at.kind}, sees {len(pages)} pages"))
    return found


def _only(server: Server, _workspace: Path | None) -> Sequence[Server]:
    return [server]


def _registered(settings: Settings, *, probe: bool) -> list[Check]:
    from tenuto.store.opening import open_registry

    if not settings.server and not settings.registry_path.exists():
        return probing.all_of(settings, ()) if probe else []
    reader = open_registry(settings.database, SystemClock(), minter=RandomMinter(), read_only=True)
    try:
        last = reader.events(max(reader.last_event() - 1, 0), 1)
        tasks = reader.tasks(LOOKED_AT, unfinished=True)
        doubts = [c for c in reader.commands(LOOKED_AT, only_open=True) if c.state is CommandState.AMBIGUOUS]
        named = reader.named_tokens()
        waiting = reader.spawned_pending()
        known = [each for each in journal.held(settings.journal) if reader.command(each) is not None]
        found = journal.strangers(settings.journal, reader.registry().id, known)
        strange = [one for one in found if reader.replayed(ONCE, f"orphan/{one.command_id}") is None]
    finally:
        reader.close_readers()
    elsewhere = probing.executors(settings, named, probing.needed_by(tasks), SystemClock().now())
    probed = probing.all_of(settings, tasks) if probe else []
    clock = _clock(last[0].at if last else None)
    return [
        clock,
        _agents(tasks),
        _places(tasks),
        _queue(waiting, settings),
        _doubts(len(doubts)),
        _strange(len(strange)),
        *elsewhere,
        *probed,
    ]


def _clock(last: datetime | None) -> Check:
    now = SystemClock().now()
    if last is None or last <= now + SLIP:
        return Check("clock", True, now.astimezone(UTC).isoformat(timespec="seconds"))
    return Check(
        "clock", False, f"it stands before the last event ({last.isoformat()})", "set the clock of this machine"
    )


def _agents(tasks: Sequence[Task]) -> Check:
    programs = sorted({task.agent.argv[0] for task in tasks if task.agent.adapter == "program"})
    missing = [name for name in programs if shutil.which(name) is None and not Path(name).is_absolute()]
    missing += [name for name in programs if Path(name).is_absolute() and not os.access(name, os.X_OK)]
    mend = "install it, or mend the PATH of the supervisor" if missing else ""
    text = f"not found: {', '.join(missing[:5])}" if missing else f"{len(programs)} in use, all found"
    return Check("agent programs", not missing, text, mend)


def _places(tasks: Sequence[Task]) -> Check:
    gone = sorted({task.cwd for task in tasks if not Path(task.cwd).is_dir()})
    text = f"gone: {', '.join(gone[:3])}" if gone else f"those of {len(tasks)} unfinished tasks are there"
    return Check("directories", not gone, text, "bring them back, or cancel their tasks" if gone else "")


def _queue(waiting: int, settings: Settings) -> Check:
    """How many spawned tasks stand in line, of those that may; past that a spawn is refused."""
    most = settings.policy.pending_tasks
    full = waiting >= most
    mend = "wait until some have started, cancel what is not wanted, or give more `slots`" if full else ""
    return Check("queue", not full, f"{waiting} of at most {most} spawned tasks wait for a slot", mend)


def _strange(count: int) -> Check:
    """Journals of hosts whose commands are in no row: the registry was restored, and nobody was told of them yet."""
    text = f"{count} began something that the registry does not know of" if count else "each is known"
    return Check(
        "journals", not count, text, "tenuto start, then tenuto attention: look at what they did" if count else ""
    )


def _doubts(count: int) -> Check:
    text = f"{count} of which it is not known whether they took effect" if count else "none in doubt"
    return Check("commands", not count, text, "tenuto attention" if count else "")
