"""Plays one case: lives one after the other, something killed in the first ones, and the judge at the end.

Everything is bounded, and at the end nothing that the case started is left running, whatever came of it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenuto.proof import judge, talks
from tenuto.proof.case import Case, Kill, Who
from tenuto.proof.elsewhere import Elsewhere
from tenuto.proof.life import Alter, End, Plan, begin
from tenuto.proof.scenarios import BY_NAME, Scenario
from tenuto.proof.stage import Stage
from tenuto.transports import processes

LIVES = 6
LIFE = 120.0
"""Seconds that one life may take."""

LONGER = 240.0
"""The same where an executor or a host in a process of its own comes and goes."""

STRAGGLERS = 20.0
"""Seconds that hosts and programs may take to end after the last life."""


@dataclass(frozen=True)
class Played:
    """One case and what came of it; `reached` whether everything that was to be killed was killed."""

    case: str
    reached: bool
    verdict: judge.Verdict
    passings: tuple[tuple[str, ...], ...]
    turns: int
    facts: tuple[str, ...]
    seconds: float


def nothing(_supervisor: object) -> None:
    """Spoil nothing."""


def play(case: Case, *, spoil: Alter = nothing, keep: bool = False, limit: float = LIFE) -> Played:
    """Play a case in a directory of its own, which is removed again unless `keep`."""
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="tenuto-crash-"))
    stage = Stage(home)
    scenario = BY_NAME[case.scenario]
    longer = scenario.elsewhere or scenario.talks is not None
    game = Game(stage, scenario, case, spoil, max(limit, LONGER if longer else scenario.patience))
    try:
        scenario.set_up(stage)
        game.run()
        settled(lambda: not judge.left(stage), STRAGGLERS)
        verdict = judge.judge(stage, scenario.goal, game.before)
        broken = (*game.troubles, *verdict.broken)
        verdict = judge.Verdict(broken, verdict.most_effects, verdict.turns_lost, verdict.rows_lost)
        recorded = tuple(
            tuple(line for prefix in ("", "far.", "talk.") for line in _passed(stage, f"{prefix}{number}", prefix))
            for number in (1, 2)
        )
        return Played(
            str(case), game.reached, verdict, recorded, len(stage.effects), judge.facts(stage), time.monotonic() - began
        )
    finally:
        game.sweep()
        if not keep:
            shutil.rmtree(home, ignore_errors=True)


def _passed(stage: Stage, life: str, prefix: str = "") -> tuple[str, ...]:
    path = stage.home / f"passed.{life}"
    return tuple(f"{prefix}{line}" for line in path.read_text("ascii").splitlines()) if path.exists() else ()


class Game:
    """One case while it is played."""

    def __init__(self, stage: Stage, scenario: Scenario, case: Case, spoil: Alter, limit: float) -> None:
        self._stage = stage
        self._scenario = scenario
        self._case = case
        self._spoil = spoil
        self._limit = limit
        self._running: list[int] = []
        self._kills = [kill for kill in case.kills if kill.who in (Who.SUPERVISOR, Who.EVERYTHING, Who.PAUSED)]
        self._host = next((kill for kill in case.kills if kill.who is Who.HOST), None)
        elsewhere = [kill for kill in case.kills if kill.who is Who.EXECUTOR]
        self._elsewhere = Elsewhere(stage, elsewhere, self._host) if scenario.elsewhere else None
        self.before: judge.Rows = {}
        self.troubles: list[str] = []
        self.reached = False
        self._died = 0

    def run(self) -> None:
        """Live until it is over, or until something went wrong."""
        fatal = [f"die.{kill.point}.{kill.count}" for kill in self._case.kills if kill.who is Who.AGENT]
        for name in fatal:
            self._stage.mark(name)
        talks.lay(self._stage, talks.chosen(self._case.kills))
        standby: int | None = None
        for number in range(1, LIVES + 1):
            kill = self._kills[self._died] if self._died < len(self._kills) else None
            pid, standby = standby or self._begin(number, kill), None
            if self._scenario.standby and number == 1:
                standby = self._begin(2, None, standby=True)
            if not self._goes_on(number, pid, kill):
                break
        if standby is not None:
            self._other(standby)
        home = self._stage.home
        missed = [name for name in fatal if (home / name).exists()]
        armed = self._host is None or (home / "host.armed").exists()
        self.reached = self._died == len(self._kills) and armed and not missed and self._executor_died()
        self.reached = self.reached and talks.burnt(self._stage, talks.chosen(self._case.kills))

    def _executor_died(self) -> bool:
        """Whether the executor elsewhere was killed as often as it was to be; its troubles become the case's."""
        wanted = sum(kill.who is Who.EXECUTOR for kill in self._case.kills)
        if self._elsewhere is None:
            return wanted == 0
        self.troubles += self._elsewhere.troubles
        return self._elsewhere.died == wanted

    def _goes_on(self, number: int, pid: int, kill: Kill | None) -> bool:
        """Wait for one life; whether another is to follow."""
        status = self._wait(pid)
        if status is None:
            self.troubles.append(f"life {number} did not end in time")
            return False
        if os.WIFSTOPPED(status):
            self._died += 1
            self._paused(pid, number)
            return False
        if os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
            if code not in (End.OVER, End.STOPPED):
                self._trouble(number, code)
            return code == End.STOPPED
        if kill is None:
            self.troubles.append(f"life {number} was killed by nobody of ours ({os.WTERMSIG(status)})")
            return False
        self._died += 1
        self._after_death(kill)
        return True

    def _begin(self, number: int, kill: Kill | None, *, usurp: bool = False, standby: bool = False) -> int:
        host = self._host if number == 1 and self._elsewhere is None else None
        plan = Plan(
            number,
            point=(kill.point, kill.count) if kill is not None else None,
            host=(host.point, host.count) if host is not None else None,
            pause=kill is not None and kill.who is Who.PAUSED,
            usurp=usurp,
            standby=standby,
            limit=self._limit,
        )
        pid = begin(self._stage, self._scenario, plan, self._spoil)
        self._running.append(pid)
        return pid

    def _other(self, standby: int) -> None:
        """The one that waited finds everything done, or does the rest."""
        status = self._wait(standby)
        if status is None or os.waitstatus_to_exitcode(status) != End.OVER:
            self._trouble(2, _code(status))

    def _paused(self, pid: int, number: int) -> None:
        """A supervisor that stood still while another took over goes on: it must find that out and do nothing."""
        self.before = judge.rows_of(self._stage)
        status = self._wait(self._begin(number + 1, None, usurp=True))
        if status is None or os.waitstatus_to_exitcode(status) != End.OVER:
            self._trouble(number + 1, _code(status))
        os.kill(pid, signal.SIGCONT)
        status = self._wait(pid)
        if (
            status is None
            or not os.WIFEXITED(status)
            or os.WEXITSTATUS(status) not in (End.OVER, End.DEPOSED, End.STOPPED)
        ):
            self._trouble(number, _code(status))

    def _after_death(self, kill: Kill) -> None:
        self.before = judge.rows_of(self._stage)
        self._stage.mark("died")
        if kill.who is Who.EVERYTHING:
            if self._elsewhere is not None:
                self._elsewhere.kill()
            self._kill_all()

    def _trouble(self, number: int, code: int) -> None:
        try:
            name = End(code).name.lower().replace("_", " ")
        except ValueError:
            name = str(code)
        self.troubles.append(f"life {number} ended: {name}")
        for told in (f"why.{number}", f"life.{number}"):
            path = self._stage.home / told
            if path.exists():
                self.troubles += [f"  {line}" for line in path.read_text("utf-8", "replace").splitlines()[-25:]]

    def _wait(self, pid: int) -> int | None:
        """The status a life ended (or stopped) with; None, and it is killed, when it took too long."""
        until = time.monotonic() + self._limit + 5.0
        while time.monotonic() < until:
            self._look_elsewhere()
            found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if found:
                if not os.WIFSTOPPED(status):
                    self._running.remove(pid)
                return status
            _breathe()
        return None

    def _look_elsewhere(self) -> None:
        if self._elsewhere is not None:
            died = self._elsewhere.died
            self._elsewhere.look()
            if self._elsewhere.died > died:
                self.before = judge.rows_of(self._stage)

    def sweep(self) -> None:
        """End whatever is left of this case and was started by it."""
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._running.clear()
        if self._elsewhere is not None:
            self._elsewhere.kill()
        self._kill_all()

    def _alive(self) -> dict[int, str]:
        """Who carries a command of this case, and who speaks for a conversation of it."""
        return {**judge.left(self._stage), **(judge.speaking(self._stage) if self._scenario.talks is not None else {})}

    def _kill_all(self) -> None:
        """Kill every host and program of this case, again until nobody is left who could start another."""
        for _ in range(5):
            found = self._alive()
            if not found:
                return
            for pid, command in found.items():
                identity = processes.identity_of(pid)
                if identity is not None and self._alive().get(pid) == command:
                    processes.send(identity, signal.SIGKILL)


def settled(true: Callable[[], bool], seconds: float) -> bool:
    """Wait for something outside to come true."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= until:
            return False
        _breathe()
    return True


def _breathe() -> None:
    select.select((), (), (), 0.003)


def _code(status: int | None) -> int:
    """The exit code of a life, negative for the signal that ended it, -1 for one that did not end."""
    return -1 if status is None or os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
