"""Builds a supervisor from settings and runs it.

Every room is made here and handed what it needs; nothing else knows them all. Starting costs no web stack: the door
brings that in when the first visitor knocks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tenuto import prompts
from tenuto.config import Settings
from tenuto.engine.cycle import Cycle, Deposed, Surroundings
from tenuto.engine.deadman import DeadMan
from tenuto.engine.desk import Caller, Desk
from tenuto.engine.keeper import Keeper
from tenuto.engine.orphans import Orphan, Strangers, hold
from tenuto.engine.residency import NotFree, Residency
from tenuto.engine.spooled import Say, Spooled
from tenuto.engine.succession import Succession
from tenuto.engine.tending import Tender
from tenuto.engine.wheel import Wheel
from tenuto.model.evidence import Presence
from tenuto.model.ids import CommandId, TaskId
from tenuto.model.snapshot import Leadership
from tenuto.ports import Clock, Fuse, Minter, NoFuse
from tenuto.sources.finding import SourceFinder, account
from tenuto.store.ledger import TableLedger
from tenuto.store.opening import open_registry
from tenuto.surfaces.http.auth import Authenticator, Kept, operator_token
from tenuto.surfaces.http.door import Door, Wide
from tenuto.surfaces.http.feed import Feed
from tenuto.transports import processes
from tenuto.transports.agents.local import LocalAgents
from tenuto.transports.agents.records import Records
from tenuto.transports.bridge import Bridge
from tenuto.transports.canary import Canary
from tenuto.transports.host.executor import HostExecutor
from tenuto.transports.localshell.taking import Doors, TakingExecutor
from tenuto.transports.localshell.witness import LocalShellWitness, configured
from tenuto.transports.playbooks import PlaybookFolders
from tenuto.transports.remote import Executors
from tenuto.transports.spool import SpoolFolder
from tenuto.transports.workspace.port import WorkspaceWitness
from tenuto.wiring.agents import agents_of
from tenuto.wiring.board import Board
from tenuto.wiring.executors import bridged
from tenuto.wiring.forging import hosts
from tenuto.wiring.hooked import Hooked
from tenuto.wiring.sites import pages_of
from tenuto.wiring.witnesses import let_go, page_witnesses
from tenuto.wiring.world import RandomMinter, SystemClock, holder_presence, host_name

_LOG = logging.getLogger("tenuto")
BUILT_IN = Path(prompts.__file__).parent / "playbooks"


@dataclass
class Supervisor:
    """One supervisor's parts, ready to lead."""

    settings: Settings
    ledger: TableLedger
    executor: HostExecutor
    bridge: Bridge
    strangers: Strangers
    silences: DeadMan
    cycle: Cycle
    wheel: Wheel
    residency: Residency
    desk: Desk
    clock: Clock
    minter: Minter
    agents: LocalAgents


def myself(settings: Settings, minter: Minter, clock: Clock) -> Leadership:
    """This process as a candidate for the supervisor lease."""
    identity = processes.identity_of(os.getpid())
    now = clock.now()
    return Leadership(
        epoch=0,
        owner=os.environ.get("TENUTO_START_TOKEN") or minter.new("token"),
        host=settings.machine or host_name(),
        pid=os.getpid(),
        started=str(identity.start) if identity is not None else "",
        boot_id=processes.boot_id() or "",
        address=str(settings.socket),
        taken_at=now,
        renewed_at=now,
        expires_at=now,
    )


@asynccontextmanager
async def assembled(
    settings: Settings,
    *,
    clock: Clock | None = None,
    minter: Minter | None = None,
    fuse: Fuse | None = None,
    host_fuse: str | None = None,
) -> AsyncIterator[Supervisor]:
    """A supervisor's parts, opened; closed again without ending anything that runs."""
    clock, minter, fuse = clock or SystemClock(), minter or RandomMinter(), fuse or NoFuse()
    settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    gone = gone_from(settings)
    ledger = open_registry(settings.database, clock, minter=minter, fuse=fuse, shared=settings.server, gone=gone)
    wheels: list[Wheel] = []

    def rung(command_id: CommandId) -> None:
        for wheel in wheels:
            wheel.ring_for(command_id)

    def ring(task_id: TaskId) -> None:
        for wheel in wheels:
            wheel.ring(task_id)

    executor = HostExecutor(
        settings.journal,
        settings.bell,
        settings.env_file,
        ledger.registry().id,
        clock,
        fuse,
        host_fuse=host_fuse,
        ring=rung,
        host=settings.machine,
        shared=settings.shared_directories,
    )
    bridge, strangers, silences = bridged(ledger, clock, minter, fuse, settings.slots, settings.keep, rung, ring)
    agents = agents_of(settings, ledger, bridge, clock, minter)
    canary = Canary()
    pages = pages_of(settings, bridge, canary)
    taker = taking(settings, executor, ledger.registry().id, clock, fuse)
    executors = Executors({executor.name: executor, taker.name: taker, **agents.doors()}, bridge, agents, pages)
    surroundings = Surroundings(str(settings.socket), str(settings.spool), str(settings.home or ""))
    cycle = Cycle(ledger, executors, WorkspaceWitness(clock), clock, minter, fuse, surroundings, settings.slots)
    cycle.tools = tool_witness(settings, clock)
    cycle.witnesses = page_witnesses(settings, clock)
    cycle.quiet = settings.quiet
    wheel = Wheel(cycle, ledger, clock, fuse)
    wheels.append(wheel)
    me = myself(settings, minter, clock)
    residency = Residency(ledger, cycle, wheel, clock, fuse, me, gone, executor.highest_epoch)
    cycle.ring = wheel.ring
    cycle.watched = silences.watch
    desk = Desk(
        ledger,
        cycle,
        clock,
        minter,
        slots=settings.slots,
        defaults=settings.policy,
        keep=settings.keep,
        executors=executors,
        away=bridge,
        ring=wheel.ring,
        stop=residency.stop,
        troubles=lambda: (*troubles(wheel, executor), *bridge.troubles(), *canary.troubles()),
        presence=partial(holder_presence, machine=settings.machine),
        playbooks=PlaybookFolders(settings.playbooks, BUILT_IN),
        sources=SourceFinder(settings.units, account(settings.github)),
        hosts=hosts(settings, clock, executors),
        sessions=Records(os.environ),
        fuse=fuse,
    )
    try:
        yield Supervisor(
            settings,
            ledger,
            executor,
            bridge,
            strangers,
            silences,
            cycle,
            wheel,
            residency,
            desk,
            clock,
            minter,
            agents,
        )
    finally:
        await executor.close()
        await ledger.close()
        await let_go(cycle.witnesses)


def tool_witness(settings: Settings, clock: Clock) -> LocalShellWitness:
    """What looks at the sessions of tool servers: those of the settings, the environment, and a task's directory."""
    return LocalShellWitness(clock, configured(settings.tool_servers, os.environ))


def taking(settings: Settings, beside: HostExecutor, registry: str, clock: Clock, fuse: Fuse) -> TakingExecutor:
    """What asks tool servers, through their own tools, to give a session to a new run."""
    known = configured(settings.tool_servers, os.environ)
    doors = Doors(settings.tool_doors, settings.tool_tokens)
    return TakingExecutor(settings.journal, registry, beside, known, doors, clock, fuse)


def reading_desk(settings: Settings) -> tuple[Desk, Callable[[], None]]:
    """A desk that only reads, with what closes it; raises NotFound, Corrupt or UnsupportedVersion."""
    clock, minter, fuse = SystemClock(), RandomMinter(), NoFuse()
    reader = open_registry(settings.database, clock, minter=minter, read_only=True)
    executor = HostExecutor(
        settings.journal,
        settings.bell,
        settings.env_file,
        reader.registry().id,
        clock,
        fuse,
        host=settings.machine,
        shared=settings.shared_directories,
    )
    surroundings = Surroundings("", "", "")
    executors = {executor.name: executor}
    cycle = Cycle(reader, executors, WorkspaceWitness(clock), clock, minter, fuse, surroundings, settings.slots)
    cycle.tools = tool_witness(settings, clock)
    cycle.witnesses = page_witnesses(settings, clock)
    cycle.quiet = settings.quiet
    desk = Desk(
        reader,
        cycle,
        clock,
        minter,
        slots=settings.slots,
        defaults=settings.policy,
        keep=settings.keep,
        executors=executors,
        presence=partial(holder_presence, machine=settings.machine),
        sources=SourceFinder(settings.units, account(settings.github)),
        hosts=hosts(settings, clock, executors),
    )
    return desk, reader.close_readers


def gone_from(settings: Settings) -> Callable[[Leadership], bool]:
    """Says of a holder whether its process is proven gone; never of one on another machine."""
    return lambda holder: holder_presence(holder, settings.machine) is Presence.GONE


def troubles(wheel: Wheel, executor: HostExecutor) -> Sequence[str]:
    """What keeps the wheel from its work, in sentences."""
    told = [text for text in (wheel.trouble.text, executor.trouble()) if text]
    return (*told, *(f"task {task}: {why}" for task, why in sorted(wheel.trouble.restless.items())))


async def serve(supervisor: Supervisor, *, standby: bool = False) -> NotFree | None:
    """Lead and serve until stopped; NotFree when another supervisor leads. Raises Deposed when the lease is lost.

    With `standby` it waits while another leads. Nothing
    is opened that another supervisor may be using before the lease is ours.
    """
    settings, before = supervisor.settings, supervisor.ledger.leadership()
    led = await (_in_time(supervisor) if standby else supervisor.residency.lead())
    if led is None or isinstance(led, NotFree):
        return led
    secret = operator_token(settings.operator_token, supervisor.minter.secret)
    await supervisor.executor.open(led.epoch)
    await _hold_orphans(supervisor)
    supervisor.bridge.lead(led.epoch)
    feed = Feed()
    tender = Tender(supervisor.desk.chains, supervisor.clock)

    def committed() -> None:
        feed.notify()
        tender.ring()

    supervisor.cycle.committed = committed

    def make(port: int | None) -> object:
        from tenuto.surfaces.http.app import make_app
        from tenuto.surfaces.http.pairing import Codes, Paired
        from tenuto.surfaces.http.sessions import Sessions
        from tenuto.surfaces.mcp.mounted import PATH, at_desk

        kept = Kept(settings.operator_token, secret)
        auth = Authenticator(kept, supervisor.ledger.token, now=supervisor.clock.now)
        sessions = Sessions(supervisor.clock.monotonic, supervisor.minter.secret)
        mounts = {PATH: at_desk(supervisor.desk, feed.notify)}
        return make_app(
            supervisor.desk,
            auth,
            feed=feed,
            port=port,
            hosts=settings.hosts,
            origins=tuple(f"https://{host}" for host in settings.hosts),
            sessions=sessions,
            mounts=mounts,
            executors=supervisor.bridge.serve,
            extensions=settings.extensions,
            paired=Paired(settings.extensions_file),
            codes=Codes(supervisor.clock.monotonic, supervisor.minter.secret),
        )

    door = Door(
        settings.socket,
        make,
        port=settings.port,
        wished=settings.port_wished,
        wide=wide_of(settings),
        closing=feed.close,
    )
    door.open(succeeds=before is not None and before.address == led.address)
    spooled = Spooled(SpoolFolder(settings.spool), supervisor.ledger, _says(supervisor.desk))
    board = Board(settings.state, supervisor.desk.troubles)
    hooked = Hooked(settings.state / "hooks", supervisor.desk.hooking.told)
    keeper = Keeper(supervisor.ledger, supervisor.executor, supervisor.clock, settings.keep)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, supervisor.residency.stop)
    _LOG.info("leading with epoch %s", led.epoch)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(door.serve(), name="door")
            group.create_task(spooled.run(), name="spool")
            group.create_task(keeper.run(), name="keeper")
            group.create_task(hooked.run(), name="hooks")
            group.create_task(supervisor.strangers.run(), name="strangers")
            group.create_task(supervisor.silences.run(), name="silences")
            group.create_task(tender.run(), name="chains")
            group.create_task(board.run(), name="board")
            try:
                await supervisor.residency.serve()
            finally:
                await supervisor.bridge.close()
                door.stop()
                spooled.stop()
                keeper.stop()
                hooked.stop()
                supervisor.strangers.stop()
                supervisor.silences.stop()
                tender.stop()
                board.stop()
    except* Deposed as deposed:
        raise Deposed(str(deposed.exceptions[0])) from None
    _LOG.info("stopped")
    return None


async def _hold_orphans(supervisor: Supervisor) -> None:
    """Have a person look at what this home's hosts began and the registry does not know of."""
    ledger, executor = supervisor.ledger, supervisor.executor

    def strangers() -> list[Orphan]:
        known = {command_id for command_id in executor.held() if ledger.command(command_id) is not None}
        return [Orphan(one.command_id, one.task_id, one.mark.value) for one in executor.strangers(known)]

    orphans = await asyncio.to_thread(strangers)
    found = await hold(ledger, orphans, supervisor.clock, supervisor.minter, supervisor.settings.slots)
    if found:
        _LOG.warning("%s journals have commands that this registry does not know: it was restored", found)


async def _in_time(supervisor: Supervisor) -> Leadership | None:
    """The lease, when it is free; None when a stop came before."""
    succession = Succession(supervisor.residency, supervisor.ledger, gone_from(supervisor.settings))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, succession.stop)
    return await succession.wait(lambda holder: _LOG.info("standing by; another leads: %s", named(holder)))


def named(holder: Leadership | None) -> str:
    """Who leads, for a log and for a person."""
    return f"pid {holder.pid} on {holder.host}, at {holder.address}" if holder is not None else "unknown"


def wide_of(settings: Settings) -> Wide | None:
    """The bind that is not loopback, where one is configured whole."""
    if settings.bind is None or settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Wide(settings.bind, settings.tls_certificate, settings.tls_key)


def _says(desk: Desk) -> Say:
    """How a spooled word is said to the desk: by the same table of verbs as every other."""

    async def say(caller: Caller, verb: str, params: Mapping[str, object], key: str) -> object:
        from tenuto.surfaces import verbs  # brings pydantic, which a supervisor without words can do without

        return await verbs.spooled(desk, caller, verb, params, key)

    return say
