"""One world: a registry, a machine, people, and supervisors that come and go; lived through from its plan.

A supervisor is the real wheel, cycle and desk over the real ledger. When it dies, its tasks are ended where they
stand and whatever it still held is refused; the next one starts from the rows alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import assert_never

from tenuto.engine.cycle import Cycle, Surroundings
from tenuto.engine.desk import Desk, Order
from tenuto.engine.wheel import MANY, Wheel
from tenuto.model.change import Commit, Committed, Result
from tenuto.model.command import Armed, Command, Outcome
from tenuto.model.evidence import AcceptanceFacts, Observation, Rank, WorkspaceFacts, WorkspaceKind
from tenuto.model.faults import OutOfReach
from tenuto.model.ids import CommandId, TaskId, spelled
from tenuto.model.leadership import Leadership
from tenuto.model.work import Acceptance, AcceptanceKind, Agent, Task, Wait
from tenuto.ports import Executor
from tenuto.ports import Order as Words
from tenuto.proof.judge import Book
from tenuto.proof.simulation.accounts import ACCOUNTS, Accounts, account_of
from tenuto.proof.simulation.browser import BROWSER, Browser, Link
from tenuto.proof.simulation.laws import Laws
from tenuto.proof.simulation.machine import NAME, TALKS, Died, Hand, Machine
from tenuto.proof.simulation.memory import AtOnce, Memory
from tenuto.proof.simulation.people import NOT_DONE, OPERATOR, Agents, Operator
from tenuto.proof.simulation.plan import DAY, Fault, Kind, Plan
from tenuto.proof.simulation.site import SITE, Site, profile
from tenuto.proof.simulation.virtual import VirtualClock, VirtualLoop
from tenuto.store.audit import contradictions
from tenuto.store.dialect import texts_of
from tenuto.store.ledger import TableLedger
from tenuto.store.look import Look
from tenuto.transports.bridge import Bridge, Hooks
from tenuto.transports.pages import PageExecutor

AUDIT_EVERY = 2_000
"""Steps between two looks at the whole registry."""

DRAIN = 6 * DAY
"""How long everything may take to come to its end when nothing goes wrong any more and every agent completes."""

TOLD = 4_000
LEASE = 60.0
"""Seconds after which another leads where whoever led cannot reach the registry."""
HEARTBEAT = 900.0
"""Seconds between two pings of the browser; longer than in life, since connections here end by being closed."""


@dataclass(frozen=True)
class Lived:
    """What a world came to. `task_days` is how long its tasks were alive, in days, added up."""

    plan: Plan
    broken: str | None
    task_days: float
    tasks: int
    turns: int
    commits: int
    deaths: int
    ambiguous: int
    transcript: tuple[str, ...] = ()


class Names:
    """Identifiers in order: told apart at both ends, and the same in every life of a plan."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def new(self, kind: str) -> str:
        number = next(self._numbers)
        return spelled(kind, (number << 80) | (number * 7_919 + 31 * 32**5))

    def secret(self) -> str:
        return f"secret-of-an-agent-that-is-long-enough-{next(self._numbers)}"


class Fuse:
    """Counts down to the death of a supervisor, in passings of its named points."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.died: Callable[[], None] = lambda: None
        self.dead = False

    def burn(self, point: str) -> None:
        if self.dead:
            raise Died
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.left = None
                self.dead = True
                self.died()
                raise Died


class WatchedLedger(TableLedger):
    """The ledger of one supervisor; every commit that was made is told."""

    def __init__(self, dialect: Memory, clock: VirtualClock, fuse: Fuse, laws: Laws) -> None:
        super().__init__(dialect, clock, fuse, writer=AtOnce(dialect, fuse, self._made))
        self._laws = laws
        self._writing: Commit | None = None
        self._fuse = fuse
        self._registry = dialect.connection
        self._changes = -1
        self._due: datetime | None = None
        #: Whether this supervisor cannot reach the registry's database, which others may.
        self.away = False

    @contextlib.contextmanager
    def _looking(self) -> Iterator[Look]:
        if self.away:
            raise OutOfReach("the simulated database cannot be reached")
        with super()._looking() as look:
            yield look

    def next_due(self) -> datetime | None:
        """Asked anew when a row of the registry was changed, by whomever."""
        if self.away:
            raise OutOfReach("the simulated database cannot be reached")
        if self._changes != self._registry.total_changes:
            self._changes = self._registry.total_changes
            self._due = super().next_due()
        return self._due

    def due(self, now: datetime, limit: int) -> tuple[TaskId, ...]:
        first = self.next_due()
        return super().due(now, limit) if first is not None and first <= now else ()

    async def commit(self, commit: Commit) -> Result:
        if self._fuse.dead:
            raise Died
        if self.away:
            raise OutOfReach("the simulated database cannot be reached")
        self._writing = commit
        try:
            return await super().commit(commit)
        finally:
            self._writing = None

    def _made(self, value: object) -> None:
        """Told between the commit and its acknowledgement: whoever dies there has made it all the same."""
        if self._writing is not None and isinstance(value, Committed):
            self._laws.committed(self._writing, len(value.armed), self._epoch, self._clock.now())


class Ground:
    """Implements `ports.Workspace`: every task has a directory that changes when its agent has worked."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._cursors: dict[str, int] = {}
        self.away = False

    def changed(self, cwd: str) -> None:
        self._cursors[cwd] = self._cursors.get(cwd, 0) + 1

    async def look(self, cwd: str, since: str | None, *, plain: bool) -> Observation:
        if self.away and int(cwd.rpartition("-")[2] or 0) % 3 == 0:
            facts = WorkspaceFacts(WorkspaceKind.MISSING)
        else:
            cursor = f"{self._cursors.get(cwd, 0):040d}"
            facts = WorkspaceFacts(WorkspaceKind.GIT, head=cursor, cursor=cursor)
        return Observation("ground", Rank.JOURNAL, cwd, self._clock.now(), facts)

    async def accept(self, acceptance: Acceptance, cwd: str, evidence: str) -> Observation:
        facts = AcceptanceFacts(True, "it is there")
        return Observation("ground", Rank.JOURNAL, cwd, self._clock.now(), facts)

    async def resolved(self, wait: Wait, cwd: str) -> bool | None:
        return True


class Pages(PageExecutor):
    """The pages of the one browser; `gate` is passed before anything is handed over, as by every hand."""

    def __init__(self, bridge: Bridge, fuse: Fuse, gate: Callable[[Command], asyncio.Future[None] | None]) -> None:
        super().__init__(bridge, BROWSER, profile, sites=lambda: (SITE,))
        self._fuse = fuse
        self._gate = gate

    async def perform(self, armed: Armed, order: Words) -> Outcome:
        """Stand still first, where that is planned; whoever is dead by then does nothing."""
        if (waiting := self._gate(armed.command)) is not None:
            await waiting
        if self._fuse.dead:
            raise Died
        return await super().perform(armed, order)


@dataclass(eq=False)
class Life:
    """One supervisor."""

    fuse: Fuse
    ledger: WatchedLedger
    hand: Hand
    bridge: Bridge
    cycle: Cycle
    wheel: Wheel
    desk: Desk
    task: asyncio.Task[None] | None = None
    lines: list[Link] = field(default_factory=list)
    paused: asyncio.Future[None] | None = None


@dataclass
class Universe:
    """Everything there is. `telling` keeps a transcript."""

    plan: Plan
    telling: bool = False
    loop: VirtualLoop = field(default_factory=VirtualLoop)
    draining: bool = False
    life: Life | None = None
    deaths: int = 0

    def __post_init__(self) -> None:
        self.clock = VirtualClock(self.loop)
        self.names = Names()
        self.registry = Memory()
        self.lines: deque[str] = deque(maxlen=TOLD)
        self.laws = Laws(self._broken, self.plan.slots, lambda task: account_of(task.agent))
        self.ground = Ground(self.clock)
        self.accounts = Accounts(self.loop, self.clock)
        mind, mishaps = Agents(self), self.plan.mishaps
        self.machine = Machine(
            self.loop, self.clock, self.laws, mind, self.accounts, self.chance, self.say, mishaps=mishaps
        )
        self.site = Site(self.loop, self.laws, mind)
        self.browser = Browser(self.loop, self.clock, self.laws, self.site, self.chance, self.say, mishaps=mishaps)
        self._chances: dict[str, Random] = {}
        self._born: dict[TaskId, float] = {}
        self._ended: dict[TaskId, float] = {}
        self._over: asyncio.Event = asyncio.Event()
        self._lines_moved: asyncio.Event = asyncio.Event()
        self._pause: float | None = None
        self._audited = 0
        self._away = 0.0
        self._turned = False
        self._texts = texts_of(self.registry)

    # -- what the others ask of it

    def say(self, text: str) -> None:
        if self.telling:
            self.lines.append(f"{self.loop.time() / 3600:9.4f} h  {text}")

    def chance(self, command: Command) -> Random:
        """The chance of a command's task."""
        title = self.laws.tasks[command.task_id].title
        if title not in self._chances:
            self._chances[title] = Random(f"{title} of {self.plan.seed}")  # noqa: S311 - played chance, not a secret
        return self._chances[title]

    @property
    def ledger(self) -> TableLedger:
        assert self.life is not None or self._reader is not None
        return self._reader

    @property
    def desk(self) -> Desk | None:
        return self.life.desk if self.life is not None else None

    def tasks(self) -> tuple[Task, ...]:
        """The tasks that have not ended, in the order they were made."""
        return tuple(task for task in self.laws.tasks.values() if not task.terminal)

    async def asks(self, act: Callable[[Desk], Awaitable[object]], tries: int) -> bool:
        """Use a verb; whoever hears nothing asks again with the same key, of whoever leads by then."""
        for _ in range(tries):
            desk = self.desk
            if desk is not None:
                try:
                    await act(desk)
                except NOT_DONE as refused:
                    self.say(f"  not done: {type(refused).__name__} {refused}")
                    if not isinstance(refused, (Died, OutOfReach)):
                        return False
                else:
                    return True
            await asyncio.sleep(60)
        return False

    def _broken(self, sentence: str) -> None:
        self.say(f"BROKEN: {sentence}")
        self._over.set()

    # -- supervisors

    def _supervisor(self) -> Life:
        fuse = Fuse()
        ledger = WatchedLedger(self.registry, self.clock, fuse, self.laws)
        hand = Hand(self.machine, lambda command: self._gate(life, command))
        around = Surroundings("api", "spool", "/home")
        slots = self.plan.slots or 10_000
        bridge = Bridge(
            ledger.registry().id,
            self.clock,
            fuse,
            known=lambda command_id: ledger.command(command_id) is not None,
            hooks=Hooks(ring=self._rung, changed=self._changed),
            heartbeat=HEARTBEAT,
        )
        hands: dict[str, Executor] = {
            NAME: hand,
            BROWSER: Pages(bridge, fuse, lambda command: self._gate(life, command)),
        }
        cycle = Cycle(ledger, hands, self.ground, self.clock, self.names, fuse, around, slots)
        wheel = Wheel(cycle, ledger, self.clock, fuse)
        desk = Desk(ledger, cycle, self.clock, self.names, slots=slots, executors=hands, ring=wheel.ring)
        life = Life(fuse, ledger, hand, bridge, cycle, wheel, desk)
        fuse.died = lambda: self._bury(life)
        return life

    # -- the browser and whoever leads

    def _rung(self, command_id: CommandId) -> None:
        if self.life is not None:
            self.life.wheel.ring_for(command_id)

    def _changed(self, name: str) -> None:
        """An executor came or went: what is under way is looked at, and what waits for it."""
        life = self.life
        if life is not None and not life.ledger.away:
            waiting = {task.id for task in life.ledger.active(MANY) if task.agent.carrier == name}
            for task_id in sorted(waiting.union(life.ledger.under_way())):
                life.wheel.ring(task_id)

    async def _connected(self) -> None:
        """The browser knocks at whoever leads, whenever nobody listens to it."""
        while True:
            self._lines_moved.clear()
            await asyncio.sleep(7.0)
            life = self.life
            if life is not None and self._joined(life):
                await self._lines_moved.wait()
                continue
            if life is not None and self.machine.reachable and self.loop.time() >= self._away:
                link = self.browser.connect()
                life.lines.append(link)
                self._group.create_task(self._line(life, link))
                await asyncio.sleep(1.0)

    def _joined(self, life: Life) -> bool:
        link = self.browser.link
        return link is not None and link.open and link in life.lines

    async def _line(self, life: Life, link: Link) -> None:
        """One connection at its supervisor's end, to its end."""
        try:
            await life.bridge.serve(link, lambda name: name == BROWSER)
        finally:
            link.cut()
            if link in life.lines:
                life.lines.remove(link)
            self._lines_moved.set()

    def _gate(self, life: Life, command: Command) -> asyncio.Future[None] | None:
        """Stand still between a commit and its hand-over, while somebody else takes over."""
        if self._pause is None or life is not self.life:
            return None
        seconds, self._pause = self._pause, None
        life.paused = self.loop.create_future()
        self.say(f"the supervisor stands still before it hands over {command.id}, for {seconds:.0f} s")
        self.loop.call_later(seconds, _wake, life.paused)
        self.loop.call_later(min(seconds / 2, 15.0), self._usurp, life)
        return life.paused

    def _usurp(self, life: Life) -> None:
        if self.life is life:
            self._retire(life)
            self._group.create_task(self._lead())

    def _retire(self, life: Life) -> None:
        """It leads no more and has not noticed yet."""
        self.life = None
        self._lines_moved.set()
        self.machine.rings.remove(life.wheel.ring_for)

    def _bury(self, life: Life) -> None:
        self.deaths += 1
        self.say("the supervisor dies")
        life.fuse.dead = True
        life.hand.die()
        for link in life.lines:
            link.cut()
        if life.task is not None:
            life.task.cancel()
        if self.life is life:
            self._retire(life)
            self._restart()

    def _restart(self) -> None:
        self.loop.call_later(20.0, lambda: self._group.create_task(self._lead()))

    async def _lead(self) -> None:
        if self.life is not None:
            return
        life = self._supervisor()
        now = self.clock.now()
        lease = Leadership(0, "me", "host", 1, "s", "b", "api", now, now, now + timedelta(days=4_000))
        try:
            taken = await life.ledger.lead(lease, lambda _holder: True)
        except Exception as full:  # noqa: BLE001 - a full disk refuses this too; whoever restarts it tries again
            self.say(f"it cannot lead: {full}")
            life.hand.die()
            self._restart()
            return
        assert taken is not None
        life.cycle.epoch = self.laws.epoch = taken.epoch
        life.bridge.lead(taken.epoch)
        self.say(f"a supervisor leads under epoch {taken.epoch}")
        self.life = life
        self.machine.rings.append(life.wheel.ring_for)
        life.task = self._group.create_task(self._serve(life))

    async def _serve(self, life: Life) -> None:
        try:
            await life.wheel.run()
        except asyncio.CancelledError:
            if not life.fuse.dead:
                raise
        except BaseException as end:  # noqa: BLE001 - a death ends the wheel as a group of deaths
            if life.fuse.dead:
                return
            if type(end).__name__ == "Deposed":
                self.say("a supervisor finds that another leads")
            else:
                self.laws.breaks(f"the wheel broke: {end!r}")
        if life is self.life:
            self._bury(life)
        else:
            life.hand.die()
            for link in life.lines:
                link.cut()

    # -- tasks

    async def _new_task(self, number: int, generation: int) -> TaskId:
        chance = Random(f"task {number} of {self.plan.seed}, the {generation}th")  # noqa: S311 - played chance
        checked = chance.random() < 0.3
        acceptance = Acceptance(AcceptanceKind.CHECK, ("make", "test")) if checked else Acceptance()
        order = Order(
            f"Task {number}.{generation}",
            "Tidy the attic",
            f"/srv-{number}",
            _agent(chance),
            acceptance=acceptance,
            max_attempts=chance.choice((None, None, None, 12)),
            policy={
                "idle_delay": round(chance.uniform(0.5, 1.5) * DAY / self.plan.turns_a_day),
                "look_at_living_turn": 1_800,
                "checkpoint_after": 4 * 3600,
                "slot_rest": 365 * DAY if self.plan.slots is None else 600,
                "live_spacing": 900,
            },
        )
        made: list[TaskId] = []

        async def make(desk: Desk) -> None:
            done = await desk.create(OPERATOR, order, f"task {number} {generation}")
            made.append(TaskId(str(done.result["task"])))

        made_it = await self.asks(make, tries=5)
        while not made_it:
            await asyncio.sleep(300)
            made_it = await self.asks(make, tries=5)
        self._born[made[-1]] = self.loop.time()
        return made[-1]

    async def _keep(self, number: int) -> None:
        """One task after another, for as long as the world lasts."""
        await asyncio.sleep(number * 7.0)
        for generation in itertools.count():
            if self.draining:
                return
            task = await self._new_task(number, generation)
            await self.laws.ended(task)
            self._ended[task] = self.loop.time()

    # -- faults

    async def _befall(self) -> None:
        for fault in self.plan.faults:
            await asyncio.sleep(max(0.0, fault.at - self.loop.time()))
            self.say(f"FAULT {fault}")
            self._strike(fault)

    def _strike(self, fault: Fault) -> None:
        later = self.loop.call_later
        match fault.kind:
            case Kind.CRASH:
                if self.life is not None:
                    self.life.fuse.left = max(1, int(fault.size))
            case Kind.PAUSE:
                self._pause = fault.size
            case Kind.TAKEOVER:
                if self.life is not None:
                    self._usurp(self.life)
            case Kind.FORWARD | Kind.SLEEP:
                self.clock.wrong_by += timedelta(seconds=fault.size)
            case Kind.BACK:
                self.clock.wrong_by -= timedelta(seconds=fault.size)
                self._turned = True
            case Kind.DISK_FULL:
                self.registry.full = True
                later(fault.size, lambda: setattr(self.registry, "full", False))
            case Kind.PARTITION:
                self.machine.reachable = False
                later(fault.size, lambda: setattr(self.machine, "reachable", True))
            case Kind.UNSEEN:
                self.machine.seen = False
                later(fault.size, lambda: setattr(self.machine, "seen", True))
            case Kind.DIRECTORY:
                self.ground.away = True
                later(fault.size, lambda: setattr(self.ground, "away", False))
            case Kind.ECHO:
                for task in self.tasks():
                    if self.life is not None:
                        self.life.wheel.ring(task.id)
                        self.loop.call_soon(self.life.wheel.ring, task.id)
            case Kind.SPENT:
                self._spend(fault)
            case Kind.LOGIN:
                self.site.let_in = False
                later(fault.size, lambda: setattr(self.site, "let_in", True))
            case Kind.BACKGROUND:
                self.browser.background_ends()
                self._away = self.loop.time() + fault.size
            case Kind.CHALLENGE:
                self.site.challenged = True
            case Kind.CARD:
                self.site.card(self._chance_of(fault))
            case Kind.CUT_OFF:
                if self.life is not None:
                    self._cut_off(self.life, fault.size)
            case Kind.TAB | Kind.WINDOWS | Kind.DRAFT | Kind.OWN_TURN | Kind.GONE:
                self.browser.befall(fault.kind, fault.size, self._chance_of(fault))
            case _ as never:
                assert_never(never)

    def _cut_off(self, life: Life, seconds: float) -> None:
        """Its registry is out of its reach, and within that of whoever leads by then."""
        life.ledger.away = True
        self.loop.call_later(seconds, setattr, life.ledger, "away", False)
        if seconds > LEASE:
            self.loop.call_later(LEASE, self._usurp, life)

    def _chance_of(self, fault: Fault) -> Random:
        return Random(f"{fault} of {self.plan.seed}")  # noqa: S311 - played chance, not a secret

    def _spend(self, fault: Fault) -> None:
        """One account serves nobody for a while; most say until when."""
        chance = self._chance_of(fault)
        account, tells = chance.choice((*ACCOUNTS, SITE)), chance.random() < 0.7
        self.say(f"the usage of {account} is spent, and it {'tells' if tells else 'does not tell'} until when")
        if account != SITE:
            self.accounts.spend(account, fault.size, tells=tells)
            return
        self.site.spent_until = self.loop.time() + fault.size
        resets = self.accounts.shown(self.site.spent_until).replace(microsecond=0)
        self.site.resets = resets.isoformat() if tells else None

    # -- the whole

    async def _audit(self) -> None:
        while True:
            await asyncio.sleep(900)
            if self.laws.steps - self._audited >= AUDIT_EVERY:
                self.audit()

    def audit(self) -> None:
        """Look at the whole registry."""
        self._audited = self.laws.steps
        rows = {
            name: {str(row[0]) for row in self.registry.connection.execute(f"SELECT id FROM {name}")}  # noqa: S608
            for name in ("command", "task", "attempt")
        }
        self.laws.still_there(rows["command"], rows["task"], rows["attempt"])
        if self.life is not None:
            for task, why in self.life.wheel.trouble.restless.items():
                if "come to rest" in why:
                    self.laws.breaks(f"{task}: {why}")
        for contradiction in contradictions(self.registry.connection, self._texts):
            self.laws.breaks(f"the registry contradicts itself: {contradiction.sentence} {contradiction.subjects}")

    async def _reasons(self) -> None:
        """Every task that is not being continued says why."""
        life = self.life
        if life is None or life.ledger.away:
            return
        for task in self.tasks():
            explained = await life.desk.explain(task.id)
            if not explained.rungs and explained.intent is None:
                self.laws.breaks(f"{task.id} is not continued and nothing says why")

    async def _live(self) -> None:
        self._reader = WatchedLedger(self.registry, self.clock, Fuse(), self.laws)
        async with asyncio.TaskGroup() as group:
            self._group = self.machine.group = self.site.group = self.browser.group = group
            await self._lead()
            people = [group.create_task(self._keep(number)) for number in self.plan.tasks]
            operator = Operator(self)
            others = (operator.live(), operator.watch(), self._befall(), self._audit(), self._connected())
            people += [group.create_task(each) for each in others]
            await self._until(self.plan.days * DAY)
            await self._reasons()
            self._calm()
            await self._until(self.loop.time() + DRAIN, early=True)
            if not self._over.is_set():
                await self._at_the_end()
            for each in people:
                each.cancel()
            if self.life is not None:
                self._bury_quietly(self.life)
            raise _Over

    def _bury_quietly(self, life: Life) -> None:
        life.fuse.dead = True
        for link in life.lines:
            link.cut()
        if life.task is not None:
            life.task.cancel()

    async def _until(self, moment: float, *, early: bool = False) -> None:
        """Live until then, or until a promise is broken; `early` as well when everything has ended."""
        while self.loop.time() < moment and not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(HOUR, moment - self.loop.time())):
                    await self._over.wait()
            if early and not self.tasks() and not self.laws.open():
                return

    def _calm(self) -> None:
        """From here on nothing goes wrong any more."""
        self.say("from here on nothing goes wrong")
        self.draining = True
        self.machine.mishaps = self.browser.mishaps = False
        self.accounts.calm()
        self.site.spent_until, self.site.let_in = 0.0, True
        self._pause = None

    async def _at_the_end(self) -> None:
        for task in self.tasks():
            told = await self.life.desk.explain(task.id) if self.life is not None else None
            why = "; ".join(because.sentence for because in told.rungs) if told is not None else "nobody leads"
            self.laws.breaks(f"{task.id} never came to its end, though nothing stood in its way any more: {why}")
        self.audit()
        connection = self.registry.connection
        connection.row_factory = sqlite3.Row
        book = Book(connection)
        effects = {str(command): count for command, count in self.laws.effects.items()}
        for sentence in (*book.lost(effects), *book.commands(), *book.messages(), *book.events()):
            if not (self._turned and sentence.endswith("without later evidence")):  # by a clock that went back
                self.laws.breaks(f"at the end: {sentence}")

    def lived(self) -> Lived:
        """Live through all of it."""
        log, listener = logging.getLogger("tenuto.wheel"), _Listener(self.laws)
        log.addHandler(listener)
        log.propagate, before = False, log.propagate
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._whole())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()
            log.removeHandler(listener)
            log.propagate = before
        now = self.loop.time()
        alive = sum(self._ended.get(task, now) - born for task, born in self._born.items())
        states = [command.state.value for command in self.laws.commands.values()]
        return Lived(
            self.plan,
            self.laws.broken,
            alive / DAY,
            len(self._born),
            self.laws.turns,
            self.laws.steps,
            self.deaths,
            states.count("ambiguous"),
            tuple(self.lines),
        )

    async def _whole(self) -> None:
        try:
            await self._live()
        except* _Over:
            pass


class _Listener(logging.Handler):
    """Hears of a task whose serving failed, which the wheel survives and a proof must not."""

    def __init__(self, laws: Laws) -> None:
        super().__init__()
        self._laws = laws

    def emit(self, record: logging.LogRecord) -> None:
        what = repr(record.exc_info[1]) if record.exc_info else ""
        self._laws.breaks(f"{record.getMessage()}: {what}")


class _Over(Exception):
    """The world has come to its end; ends everybody in it."""


HOUR = 3_600.0


def _agent(chance: Random) -> Agent:
    """Who works on a task: a program, one that takes words in a turn, or a chat in a page; most have accounts."""
    resumable = chance.random() < 0.8
    kind, account = chance.choices(["plain", "talks", "page"], [30, 40, 30])[0], chance.choice((*ACCOUNTS, None))
    if kind == "page":
        return Agent(SITE, ("chat",), resumable=resumable, on=BROWSER)
    argv = ["agent"]
    if kind == "talks":
        argv.append(TALKS)
    if account is not None:
        argv.append(f"--account={account}")
    return Agent(NAME, tuple(argv), resumable=resumable)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def live(plan: Plan, *, telling: bool = False) -> Lived:
    """Live through a plan; the same plan lives the same."""
    return Universe(plan, telling).lived()
