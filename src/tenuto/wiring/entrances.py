"""What the command line reaches outside, fulfilled.

Implements `surfaces.cli.entrances.Entrances`. Everything heavy is imported inside the method that needs it, so that a
quick command stays quick.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tenuto.config import Settings, load
from tenuto.model.faults import Mistake
from tenuto.model.foreign import Source
from tenuto.surfaces.cli.entrances import (
    AgentFacts,
    AlreadyLed,
    Check,
    Glance,
    HookPlan,
    NotSpawned,
    Places,
    Proof,
    ServicePlan,
    Spawned,
)
from tenuto.wiring.world import RandomMinter, SystemClock

if TYPE_CHECKING:
    from tenuto.engine.desk import Desk
    from tenuto.ports import Clock, Minter


class Proofs(Protocol):
    """The proofs that can be asked for; they stand beside this room and are handed in."""

    def demo(self, *, keep: bool, say: Callable[[str], None]) -> Proof: ...

    def crash_matrix(
        self, *, points: int, seed: int, jobs: int, only: str | None, say: Callable[[str], None]
    ) -> Proof: ...

    def simulate(
        self,
        *,
        seed: int,
        tasks: int,
        days: float,
        worlds: int,
        turns_a_day: float,
        jobs: int,
        say: Callable[[str], None],
    ) -> Proof: ...

    def bench(self, *, seconds: int, say: Callable[[str], None]) -> Proof: ...


class RealEntrances:
    """The entrances of one configuration; settings are read when they are first needed."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        config: Path | None = None,
        db: str | None = None,
        proofs: Proofs | None = None,
    ) -> None:
        self._environ = environ
        self._config = config
        self._db = db
        self._proofs = proofs
        self._settings: Settings | None = None
        self.clock: Clock = SystemClock()
        self.minter: Minter = RandomMinter()

    @property
    def settings(self) -> Settings:
        """The settings in force; raises Mistake when they cannot be read."""
        if self._settings is None:
            self._settings = load(self._environ, self._config, self._db)
        return self._settings

    @property
    def places(self) -> Places:
        """Where everything lies."""
        settings = self.settings
        origin = "TENUTO_HOME" if settings.home is not None else "the platform"
        if self._config is not None:
            origin = "--config"
        return Places(
            home=settings.state,
            home_from=origin,
            config=settings.config_file,
            registry=settings.shown_database,
            registry_file=None if settings.server else settings.registry_path,
            socket=settings.socket,
            operator_token=settings.operator_token,
            log=settings.log,
            spool=settings.spool,
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The process's environment."""
        return self._environ

    def chosen(self, *, config: Path | None, db: str | None) -> RealEntrances:
        """The same for another configuration or registry."""
        return RealEntrances(self._environ, config or self._config, db or self._db, self._proofs)

    def now(self) -> datetime:
        """The present."""
        return self.clock.now()

    def fresh_key(self) -> str:
        """A fresh idempotency key."""
        return self.minter.secret()

    def glance(self) -> Glance:
        """The supervisor as its lease row and the process table tell of it."""
        from tenuto.engine.standing import standing
        from tenuto.wiring.board import read
        from tenuto.wiring.glance import glimpse as look
        from tenuto.wiring.glance import presence_of
        from tenuto.wiring.world import host_name

        glimpse = look(self.settings)
        lease, here = glimpse.lease, self.settings.machine or host_name()
        word = standing(lease, presence_of(lease, here), glimpse.now or self.now())
        return Glance(
            standing=word,
            epoch=lease.epoch if lease else None,
            owner=lease.owner if lease else None,
            host=lease.host if lease else None,
            address=lease.address if lease else None,
            near=lease is None or lease.host == here,
            troubles=read(self._state_of(lease.address), lease.pid) if lease and lease.host == here else (),
            pid=lease.pid if lease else None,
            since=lease.taken_at if lease else None,
            renewed=lease.renewed_at if lease else None,
            until=lease.expires_at if lease else None,
            released=lease.released_at if lease else None,
            stop_asked=lease.stop_asked_at if lease else None,
            registry_id=glimpse.registry_id,
            held_at=glimpse.held_at,
            held_by=glimpse.held_by,
            tasks=glimpse.tasks,
            open_commands=glimpse.open_commands,
        )

    def _state_of(self, address: str) -> Path:
        """The state directory of whoever answers at a socket on this machine."""
        own = self.settings
        return own.state if address == str(own.socket) else Path(address).parent

    def open_desk_readonly(self) -> tuple[Desk, Callable[[], None]]:
        """A desk on which nothing can be changed."""
        from tenuto.wiring.daemon import reading_desk

        return reading_desk(self.settings)

    def run_supervisor_foreground(self, *, standby: bool = False) -> int:
        """Lead and serve until stopped."""
        from tenuto.wiring import launch

        detached = "TENUTO_START_TOKEN" in self._environ
        return launch.foreground(self.settings, detached=detached, standby=standby)

    def spawn_supervisor_detached(self, within: timedelta) -> Spawned | AlreadyLed | NotSpawned:
        """Start a supervisor in a session of its own and wait until its lease row proves it."""
        from tenuto.wiring import launch

        before = self.glance()
        if before.standing in ("live", "stop-fenced", "stale-alive"):
            return AlreadyLed(before)
        token, door = launch.start_token(), _made(self.settings.socket)
        try:
            config = str(self._config.absolute()) if self._config is not None else ""
            process = launch.detached(self.settings, token, config, self._db)
        except OSError as error:
            return NotSpawned(f"it could not be started: {error}", self.settings.log)

        def proven() -> bool:
            seen = self.glance()
            return seen.owner == token and seen.standing == "live" and _made(self.settings.socket) not in (None, door)

        if launch.waited(process, proven, within):
            return Spawned(self.glance())
        now = self.glance()
        if now.owner != token and now.standing == "live":
            return AlreadyLed(now)
        code = process.poll()
        reason = "it did not come to lead in time" if code is None else f"it ended with exit code {code}"
        return NotSpawned(f"{reason}; {_last_line(self.settings.log)}", self.settings.log)

    def spool(self, verb: str, params: Mapping[str, object], key: str) -> Path:
        """Write an agent's words durably where the next supervisor finds them."""
        from tenuto.transports import spool

        place = Path(self._environ.get("TENUTO_SPOOL") or self.settings.spool)
        token, task = self._environ["TENUTO_TOKEN"], self._environ.get("TENUTO_TASK", "")
        return spool.put(place, verb=verb, params=params, key=key, token=token, task=task, at=self.now())

    def serve_mcp(self) -> int:
        """MCP on standard input and output."""
        from tenuto.surfaces.mcp import stdio

        return stdio.serve(self)

    def host(self, name: str, addresses: Sequence[str], token: Path, journal: Path | None) -> int:
        """A host executor of its own."""
        from tenuto.wiring import hosting

        return hosting.host(self.settings, name, addresses, token, journal)

    def extension_folder(self, browser: str, folder: Path | None) -> Path:
        """Lay the extension out for a browser, for the sites of all profiles."""
        from tenuto import sites
        from tenuto.wiring.extension import BROWSERS, lay_out

        if browser not in BROWSERS:
            raise Mistake(f"a browser is one of {', '.join(BROWSERS)}", field="browser")
        known = sites.load(self.settings.sites)
        hosts = {host for profile in known.values() for host in profile.site.hosts}
        return lay_out((folder or self.settings.state / "extension" / browser).absolute(), browser, hosts)

    def foreign(self, path: Path, objective: str | None) -> Sequence[Source]:
        """What could be imported from there; only read."""
        from tenuto.transports.foreign.database import NotReadable
        from tenuto.transports.foreign.looking import at

        try:
            return at(path, objective)
        except NotReadable as error:
            raise Mistake(str(error), field="from") from None

    def sites(self) -> Proof:
        """The chat sites that are known."""
        from tenuto.wiring import looking

        return looking.listed(self.settings)

    def site_check(self, target: str, *, site: str | None, at: str | None, devtools: str | None) -> Proof:
        """A page against its profile."""
        from tenuto.wiring import looking

        return looking.looked(self.settings, target, site, at, devtools)

    def doctor(self, *, probe: bool = False) -> Sequence[Check]:
        """Look at everything; changes nothing."""
        from tenuto.wiring.doctor import checks

        return checks(self, probe=probe)

    def database(self, act: str, target: Path | None, say: Callable[[str], None]) -> Proof:
        """Upgrade, check or back up the registry."""
        from tenuto.wiring.keeping import database

        return database(self, act, target, say)

    def move(self, url: str, say: Callable[[str], None]) -> Proof:
        """Move the registry to PostgreSQL."""
        from tenuto.wiring.moving import move

        return move(self, url, say)

    def service_plan(self, act: str) -> ServicePlan:
        """What installing or removing the service comes to."""
        from tenuto.wiring import service

        return service.plan(self, act, self._config, self._db)

    def carry_out(self, plan: ServicePlan) -> Sequence[str]:
        """Install or remove it."""
        from tenuto.wiring import service

        return service.carry_out(plan)

    def agents(self) -> Sequence[AgentFacts]:
        """The agent programs of this machine."""
        from tenuto.transports.agents.adapters import ADAPTERS
        from tenuto.wiring import programs

        return [programs.facts_of(name, self._environ) for name in ADAPTERS if ADAPTERS[name].argv]

    def agent_test(self, name: str, argv: tuple[str, ...]) -> Proof:
        """One dry turn."""
        from tenuto.transports.agents.adapters import ADAPTERS
        from tenuto.wiring import programs

        if name not in ADAPTERS:
            raise Mistake(f"no agent is called '{name[:60]}'; known are {', '.join(ADAPTERS)}", field="agent")
        return programs.tested(name, argv, self.settings, self._environ)

    def hooks_plan(self, act: str, agent: str, project: Path | None) -> HookPlan:
        """What changing a program's hooks comes to."""
        from tenuto.wiring import hooks

        return hooks.plan(self, self._environ, act, agent, project, self.minter.secret())

    def hooks_standing(self, agent: str, project: Path | None) -> Mapping[str, object]:
        """How a program's hooks stand."""
        from tenuto.wiring import hooks

        return hooks.standing(self, self._environ, agent, project)

    def demo(self, *, keep: bool, say: Callable[[str], None]) -> Proof:
        """The demonstration."""
        return self._offered().demo(keep=keep, say=say)

    def crash_matrix(self, *, points: int, seed: int, jobs: int, only: str | None, say: Callable[[str], None]) -> Proof:
        """Kill at many points."""
        return self._offered().crash_matrix(points=points, seed=seed, jobs=jobs, only=only, say=say)

    def simulate(
        self,
        *,
        seed: int,
        tasks: int,
        days: float,
        worlds: int,
        turns_a_day: float,
        jobs: int,
        say: Callable[[str], None],
    ) -> Proof:
        """Live through simulated worlds."""
        return self._offered().simulate(
            seed=seed, tasks=tasks, days=days, worlds=worlds, turns_a_day=turns_a_day, jobs=jobs, say=say
        )

    def bench(self, *, seconds: int, say: Callable[[str], None]) -> Proof:
        """Measure this machine."""
        return self._offered().bench(seconds=seconds, say=say)

    def _offered(self) -> Proofs:
        if self._proofs is None:
            raise Mistake("no proofs are offered here")
        return self._proofs


def _made(path: Path) -> tuple[int, int] | None:
    """Which socket has this name now; None when none has. Nobody is called: that would be a first visit."""
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_ino, about.st_ctime_ns


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - 4096, 0))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "its log cannot be read"
    if lines:
        return lines[-1][-300:]
    return "its log is empty" if shutil.disk_usage(log.parent).free else f"the disk of {log} is full"
