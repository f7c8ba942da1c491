"""The Local Shell MCP witness as the engine knows it: ToolFacts of rank 1 about a session that works for a task.

Whatever is wrong with a server's files becomes a defect with a sentence, never an exception and never silence. A call
in flight whose server is proven gone, or began after it, is an orphan: nobody can say what became of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tenuto.model.evidence import Observation, Rank
from tenuto.model.tools import (
    CallFacts,
    CallState,
    Defect,
    Flaw,
    JobFacts,
    JobState,
    SessionState,
    ToolBinding,
    ToolFacts,
)
from tenuto.ports import Clock
from tenuto.transports.localshell import files, jobs, links, servers, sessions
from tenuto.transports.localshell.files import Unreadable
from tenuto.transports.localshell.servers import Alive, Life, Server
from tenuto.transports.localshell.sessions import CALL_LIFE, SESSION, Session, UnknownVersion

SOURCE: Final = "local-shell"
SESSION_LIMIT: Final = 8 * 1024 * 1024
LISTED: Final = 2000
#: A server's files may be dated by a clock that differs from ours by this much.
SKEW: Final = timedelta(seconds=5)
#: A call younger than this is believed without asking for the server's process.
YOUNG: Final = timedelta(seconds=10)
#: The start of a process is known this exactly only, and never told too late.
EXACT: Final = timedelta(seconds=1)


class LocalShellWitness:
    """Implements `ports.ToolWitness`. `known` gives the servers for a task's directory; `timeout` bounds each look."""

    def __init__(
        self,
        clock: Clock,
        known: Callable[[Path | None], Sequence[Server]],
        *,
        alive: Alive = servers.alive,
        timeout: timedelta = timedelta(seconds=10),
    ) -> None:
        self._clock = clock
        self._known = known
        self._alive = alive
        self._timeout = timeout
        self._lists: dict[Path, tuple[files.Mark | None, jobs.List]] = {}

    async def look(self, binding: ToolBinding, cwd: str) -> Observation:
        """ToolFacts of one session."""
        now = self._clock.now()
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                facts = await asyncio.to_thread(self.read, binding, Path(cwd), now)
        except TimeoutError:
            facts = ToolFacts(binding, defects=(Defect(Flaw.UNREADABLE, "looking took too long"),))
        return Observation(SOURCE, Rank.JOURNAL, binding.subject, now, facts)

    async def sessions(self, cwd: str | None = None) -> tuple[ToolFacts, ...]:
        """Every session of every server, for a person to choose from."""
        now = self._clock.now()
        return await asyncio.to_thread(self.every, None if cwd is None else Path(cwd), now)

    def read(self, binding: ToolBinding, cwd: Path | None, now: datetime) -> ToolFacts:
        """One session as its server's files have it now."""
        known = {server.name: server for server in self._known(cwd)}
        server = known.get(binding.server)
        if server is None:
            return _flawed(binding, Flaw.MISSING, f"no server is called {binding.server} here")
        if not SESSION.fullmatch(binding.session):
            return _flawed(binding, Flaw.UNREADABLE, "that is no name of a session")
        copies = [
            other.name
            for other in known.values()
            if other.name != server.name
            and not _same(other.state, server.state)
            and (other.state / "sessions" / f"{binding.session}.json").exists()
        ]
        facts = self._read(binding, server, now)
        if copies:
            why = f"{', '.join(copies)} and {server.name} both have a session of this name"
            return _with(facts, Defect(Flaw.DUPLICATED, why))
        return facts

    def _read(self, binding: ToolBinding, server: Server, now: datetime) -> ToolFacts:
        try:
            with files.directory(server.state) as state:
                if state is None:
                    return _flawed(binding, Flaw.MISSING, "the server's state directory is not there")
                with files.directory("sessions", state) as folder:
                    tree = files.document(f"{binding.session}.json", folder, SESSION_LIMIT) if folder else None
                if tree is None:
                    return _flawed(binding, Flaw.MISSING, "the server has no such session")
                session = sessions.parse(binding.session, tree)
                found = self._list(server.state, state)
                running = [job.id for job in found.jobs.values() if jobs.STATES.get(job.word) is JobState.RUNNING]
                wanted = links.linked(session, running, state)
                mine, defects = jobs.looked_at(wanted, found, state, binding.services)
        except UnknownVersion as error:
            return _flawed(binding, Flaw.UNKNOWN_VERSION, str(error))
        except Unreadable as error:
            flaw = Flaw.CONTRADICTORY if "another session" in str(error) else Flaw.UNREADABLE
            return _flawed(binding, flaw, str(error))
        return self._facts(binding, server, session, mine, (*found.defects, *defects), now)

    def _list(self, path: Path, state: int) -> jobs.List:
        """The list of jobs, parsed once for each writing of it: all sessions of a server share one."""
        now = files.mark("jobs.json", state)
        known = self._lists.get(path)
        if known is not None and known[0] == now is not None:
            return known[1]
        found = jobs.listed(state)
        if not found.defects and files.mark("jobs.json", state) == now:
            self._lists[path] = (now, found)
        return found

    def _facts(
        self,
        binding: ToolBinding,
        server: Server,
        session: Session,
        mine: tuple[JobFacts, ...],
        defects: tuple[Defect, ...],
        now: datetime,
    ) -> ToolFacts:
        old = any(YOUNG <= now - call.heartbeat_at < CALL_LIFE for call in session.calls)
        life = self._alive(server.state) if old else Life(None, told=False)
        calls = tuple(
            CallFacts(call.id, _state(call.heartbeat_at, life, now), call.started_at, call.heartbeat_at)
            for call in session.calls
        )
        told = list(defects)
        if (newest := max(session.moments)) > now + SKEW:
            told.append(Defect(Flaw.FUTURE, f"it is dated {newest.isoformat()}, which has not come yet"))
        if any(job.updated_at is not None and job.updated_at > now + SKEW for job in mine):
            told.append(Defect(Flaw.FUTURE, "a job of it is dated in the future"))
        if session.state is not SessionState.ACTIVE and any(call.state is CallState.LIVE for call in calls):
            told.append(Defect(Flaw.CONTRADICTORY, f"it is {session.state.value} and has a call in flight"))
        return ToolFacts(
            binding=binding,
            version=sessions.VERSIONS[session.version],
            state=session.state,
            run=session.run,
            sequence=session.sequence,
            calls=calls,
            jobs=mine,
            plan=session.plan,
            claim=session.claim(now),
            claim_id=session.claim_id,
            active_at=session.active_at,
            due_at=session.due_at(now),
            defects=tuple(told),
        )

    def every(self, cwd: Path | None, now: datetime) -> tuple[ToolFacts, ...]:
        """Every session of every server, as their files have it now."""
        found: list[ToolFacts] = []
        for server in self._known(cwd):
            try:
                names = sorted(path.stem for path in (server.state / "sessions").glob("s_*.json"))[:LISTED]
            except OSError:
                names = []
            found += [self.read(ToolBinding(server.name, name), cwd, now) for name in names if SESSION.fullmatch(name)]
        return tuple(found)


def _state(heartbeat: datetime, life: Life, now: datetime) -> CallState:
    """Whether a call may still act. A server that cannot be told of is given the benefit of living."""
    if now - heartbeat >= CALL_LIFE:
        return CallState.STALE
    if not life.told:
        return CallState.LIVE
    surely = life.since is not None and life.since + EXACT <= heartbeat
    return CallState.LIVE if surely else CallState.ORPHANED


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _flawed(binding: ToolBinding, flaw: Flaw, why: str) -> ToolFacts:
    return ToolFacts(binding, defects=(Defect(flaw, why),))


def _with(facts: ToolFacts, defect: Defect) -> ToolFacts:
    return replace(facts, defects=(*facts.defects, defect))


def configured(settings: Mapping[str, Path], environ: Mapping[str, str]) -> Callable[[Path | None], Sequence[Server]]:
    """The servers of these settings and this environment, for any task's directory."""
    return lambda workspace: servers.found(settings, environ, workspace)
