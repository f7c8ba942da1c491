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

from tenuto.config import SERVER, Settings
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
    "comtypes" if sys.platform == "win32" else "jeepney": "accessibility",
}


def checks(settings: Settings, *, probe: bool = False) -> Sequence[Check]:
    """The checks of what is outside, in the order in which a person would mend things.

    With `probe` agent programs are started to tell their version, and tool servers are greeted.
    """
    told = [_descriptors(settings), _processes(settings), _extras(settings), _sites(settings)]
    told += [*_servers(settings), *_witnesses(settings)]
    try:
        told += _registered(settings, probe=probe)
    except (Corrupt, UnsupportedVersion, OutOfReach, NotFound, Mistake, OSError) as error:
        told.append(Check("tasks", None, f"the registry cannot be read: {error}", "mend the registry first"))
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


def _extras(settings: Settings) -> Check:
    """Which extras are installed, and whether the settings ask for one that is not."""
    there = {extra for module, extra in EXTRAS.items() if importlib.util.find_spec(module) is not None}
    wanted = {
        "postgres": settings.server or any(rows.url.startswith(SERVER) for rows in settings.units.values()),
        "github": settings.github.token is not None or settings.github.token_file is not None,
        "accessibility": any(at.kind == "accessibility" for at in settings.page_witnesses.values()),
    }
    if missing := sorted(extra for extra, asked in wanted.items() if asked and extra not in there):
        names = ", ".join(missing)
        mend = f"pip install 'tenuto[{names.replace(' ', '')}]'"
        return Check("extras", False, f"the settings need {names}, and it is not installed", mend)
    return Check("extras", True, f"installed: {', '.join(sorted(there)) or 'none'}")


def _sites(settings: Settings) -> Check:
    """Whether the user's own profiles of chat sites can be used; ours are tried before they are given away."""
    try:
        own = sorted(settings.sites.glob("*.toml")) if settings.sites.is_dir() else []
        if own:
            from tenuto import sites

            sites.load(settings.sites)
    except (Mistake, OSError) as error:
        return Check("site profiles", False, str(error), f"mend that file of {settings.sites}, or remove it")
    return Check("site profiles", True, f"{len(own)} of your own" if own else "none of your own")


def _servers(settings: Settings) -> list[Check]:
    found = [_server(server) for server in configured(settings.tool_servers, os.environ)(None)]
    return found or [Check("tool servers", True, "none is known here")]


def _server(server: Server) -> Check:
    """What a tool server's own files and the process table say of it."""
    name = f"tool server {server.name}"
    try:
        there = (server.state / "sessions").is_dir()
    except OSError as error:
        return Check(name, False, f"{server.state}: {error.strerror}", "make it readable for you")
    if not there:
        return Check(name, False, f"{server.state} holds no sessions", "mend `tool_servers`, or start the server")
    seer = LocalShellWitness(SystemClock(), partial(_only, server))
    told = seer.every(None, SystemClock().now())[:LOOKED_AT]
    unknown = [each for each in told if any(d.flaw is Flaw.UNKNOWN_VERSION for d in each.defects)]
    flawed = [each for each in told if each.defects]
    orphans = [each for each in told if any(call.state is CallState.ORPHANED for call in each.calls)]
    life = servers.alive(server.state)
    lives = "its process runs" if life.since else ("no process of it runs" if life.told else "its process is unknown")
    text = f"{len(told)} sessions, {lives}"
    if unknown:
        mend = "use a version of it that is understood; where the session works for a task: tenuto tool unbind TASK"
        return Check(name, False, f"{text}; {unknown[0].subject}: {unknown[0].defects[0].why}", mend)
    if flawed:
        mend = "look at that file; where the session works for a task: tenuto tool unbind TASK"
        return Check(name, False, f"{text}; {flawed[0].subject}: {flawed[0].defects[0].why}", mend)
    if orphans:
        mend = f"see what became of the calls of {orphans[0].binding.session}, then end that session"
        return Check(name, False, f"{text}; {len(orphans)} with a call that outlived it", mend)
    return Check(name, True, text)


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
