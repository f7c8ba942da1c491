"""A storm over real processes: supervisors, hosts and agents are killed at random instants while many tasks run.

One supervisor process serves the tasks and is started again whenever it was killed. Everybody who may be killed is
found by what it carries in its environment, and signalled through a descriptor of the process, so that nobody else is
ever hit. What the agents did stands in one file, which they alone write.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tenuto.config import Settings, load
from tenuto.core import attention
from tenuto.engine.desk import Caller, Order
from tenuto.model.command import AttemptOutcome, CommandKind
from tenuto.model.leadership import Leadership
from tenuto.model.lifecycle import OPEN_COMMAND, CommandState
from tenuto.model.snapshot import Role
from tenuto.model.work import Agent
from tenuto.store.opening import open_registry
from tenuto.store.reading import ReadOnlyLedger
from tenuto.wiring.daemon import assembled
from tenuto.wiring.world import RandomMinter, SystemClock

EVERY = 100_000
TURNS = 3
#: Its first act is its effect. It says that it is done in its third turn, by its own count.
AGENT = r"""
printf '%s\n' "$TENUTO_COMMAND" >> effects
printf 'x' >> "did-$TENUTO_TASK"
sleep 0.$((RANDOM % 4 + 1))
status=working
[ "$(wc -c < "did-$TENUTO_TASK")" -ge 3 ] && status=complete
printf '%s\n' '```tenuto' "status: $status" 'summary: a step' 'progress: one more' 'evidence: did' '```'
"""
_BELONGS = re.compile(rb"(?:^|\0)(TENUTO_HOST|TENUTO_COMMAND)=([^\0]*)\0")


@dataclass
class Storm:
    """Many tasks in one registry, and what befalls those who work on them."""

    folder: Path
    tasks: int
    seed: int
    database: str | None = None
    killed: Counter[str] = field(default_factory=Counter)
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        own = {"TENUTO_HOME": str(self.folder / "home"), **({"TENUTO_DB": self.database} if self.database else {})}
        return {**{k: v for k, v in os.environ.items() if not k.startswith("TENUTO_")}, **own}

    @property
    def settings(self) -> Settings:
        return load(self.environment)

    def rage(self, kills: int, seconds: float) -> None:
        """Make the tasks, kill so many at random, then let everything come to rest, within `seconds` in all."""
        (self.folder / "home").mkdir(mode=0o700)
        (self.folder / "work").mkdir()
        chance, until = random.Random(self.seed), time.monotonic() + seconds
        asyncio.run(self._fill())
        try:
            self._start()
            while sum(self.killed.values()) < kills and time.monotonic() < until and not self.over():
                time.sleep(chance.uniform(0.01, 0.25))
                self._strike(chance)
            while not self.over():
                if time.monotonic() >= until:
                    raise TimeoutError(f"not at rest after {seconds} s: {self.unsettled()}")
                time.sleep(0.2)
                self._start()
        finally:
            self._end()

    async def _fill(self) -> None:
        async with assembled(self.settings) as supervisor:
            lease = await supervisor.residency.lead()
            assert isinstance(lease, Leadership)
            agent = Agent("program", ("bash", "-c", AGENT), resumable=True)
            policy = {"reconcile_separation": 0.1, "stall_pause": EVERY, "fault_recoveries": 20}
            for number in range(self.tasks):
                order = Order(f"task {number}", "take steps", str(self.folder / "work"), agent, policy=policy)
                await supervisor.desk.create(Caller(Role.OPERATOR, "operator"), order)
            await supervisor.ledger.resign(lease, supervisor.clock.now())

    # -- who is killed

    def _start(self) -> None:
        if self.process is not None and self.process.poll() is None:
            return
        with (self.folder / "supervisor.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tenuto", "up"],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _strike(self, chance: random.Random) -> None:
        """Kill somebody; a supervisor is started again at once."""
        self._start()
        who = chance.choices(["supervisor", "TENUTO_HOST", "TENUTO_COMMAND"], [25, 35, 40])[0]
        if who == "supervisor":
            assert self.process is not None
            self.process.kill()
            self.process.wait()
            self.killed[who] += 1
            self._start()
            return
        found = self._carriers(who)
        if found and self._kill(chance.choice(found), who):
            self.killed["host" if who == "TENUTO_HOST" else "agent"] += 1

    def _carriers(self, name: str) -> list[int]:
        return sorted(pid for pid in map(int, filter(str.isdigit, _names("/proc"))) if self._ours(pid, name))

    def _ours(self, pid: int, name: str) -> bool:
        """Whether a process carries a command of this registry under that name, and is of the kind that is meant."""
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        carried = {key.decode(): value.decode("ascii", "replace") for key, value in _BELONGS.findall(environment)}
        ours = (self.folder / "home").as_posix().encode() in environment
        journal = any((self.folder / "home").rglob(f"*{carried[name]}*")) if carried.get(name) else False
        return name in carried and (ours or journal)

    def _kill(self, pid: int, name: str) -> bool:
        try:
            there = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if not self._ours(pid, name):
                return False
            signal.pidfd_send_signal(there, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(there)
        return True

    def _end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=90)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for _ in range(3):
            for name in ("TENUTO_HOST", "TENUTO_COMMAND"):
                for pid in self._carriers(name):
                    self._kill(pid, name)

    # -- what it came to

    def _reader(self) -> ReadOnlyLedger:
        where = self.database or self.settings.registry_path
        return open_registry(where, SystemClock(), minter=RandomMinter(), read_only=True)

    def unsettled(self) -> list[str]:
        """Tasks that have neither ended nor stand in the attention queue."""
        reader = self._reader()
        try:
            tasks = reader.tasks(EVERY, unfinished=True)
            waits, commands = reader.waits(EVERY), reader.commands(EVERY, only_open=True)
            items = attention.queue(waits, commands, tasks, (), SystemClock().now())
            asking = {item.task_id for item in items if item.question.strip()}
            return [f"{task.id} {task.state} {task.standing}" for task in tasks if task.id not in asking]
        finally:
            reader.close_readers()

    def over(self) -> bool:
        return not self.unsettled()

    def broken(self) -> list[str]:
        """Every promise that was not kept."""
        effects = Counter((self.folder / "work" / "effects").read_text().split())
        reader = self._reader()
        try:
            commands = {str(command.id): command for command in reader.commands(EVERY)}
            attempts = {a.id: a for task in reader.tasks(EVERY) for a in reader.attempts(task.id, EVERY)}
        finally:
            reader.close_readers()
        said = [f"{command} took effect {count} times" for command, count in effects.items() if count > 1]
        said += [f"{effect} took effect and has no row" for effect in effects if effect not in commands]
        for name, command in commands.items():
            if command.kind is not CommandKind.SEND:
                continue
            attempt = attempts[command.attempt_id] if command.attempt_id is not None else None
            happened = name in effects
            if happened and (
                command.state is CommandState.FAILED or getattr(attempt, "outcome", None) is AttemptOutcome.UNSENT
            ):
                said.append(f"{name} took effect and is said not to have happened")
            if not happened and getattr(attempt, "outcome", None) is AttemptOutcome.TURN_END:
                said.append(f"{name} never took effect and is said to have ended by itself")
            if command.state in OPEN_COMMAND and command.state is not CommandState.AMBIGUOUS:
                said.append(f"{name} is {command.state} at the end")
        return said


def _names(place: str) -> list[str]:
    return [path.name for path in Path(place).iterdir()]
