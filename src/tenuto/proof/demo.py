"""The demonstration: a real job, kept going through three deaths.

An example agent checks real text files, one a turn, one commit each. One of its turns dies half-way; the supervisor
is killed with SIGKILL twice, once between writing a turn down and handing it over, and once while a turn runs. In the
end the git history is counted: exactly one commit for every file, or the demonstration has failed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from tenuto.model.command import AttemptOutcome
from tenuto.model.ids import TaskId
from tenuto.model.lifecycle import CommandState
from tenuto.model.work import WakeKind
from tenuto.prompts.skills import beside
from tenuto.proof import material
from tenuto.surfaces.cli.entrances import Proof
from tenuto.wiring.entrances import RealEntrances

FILES = 36
LIMIT = timedelta(minutes=3)
AGENT_DIES_AT = "9"
ARMED_DEATH = ("arm.committed", "5")
MID_TURN_AFTER = 16
OBJECTIVE = """\
Check every text file of this repository: dead relative links, repeated headings, a missing final newline.
Mend what can be mended and list the rest. One file a turn; commit each.
"""


class DemoFailed(Exception):
    """The demonstration could not be carried through; the message says where it stood."""


class Demo:
    """One demonstration in a directory of its own."""

    def __init__(self, place: Path, say: Callable[[str], None]) -> None:
        self.place = place
        self.repository = place / "texts"
        self.home = place / "home"
        self.say = say
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TENUTO_")},
            "TENUTO_HOME": str(self.home),
            "TIDY_DIE_AT": AGENT_DIES_AT,
            "TIDY_PACE": "0.1",
        }
        self.outside = RealEntrances(self.environment)
        self.deadline = time.monotonic() + LIMIT.total_seconds()

    def run(self) -> dict[str, Any]:
        """Carry the job through all three deaths; the figures."""
        began = time.monotonic()
        files = material.fill(self.repository, FILES)
        self.say(f"a scratch repository with {files} real text files: {self.repository}")
        task = self._begin()
        try:
            self._go_on(task)
        finally:
            self._tenuto("stop")
        return {**self._count(task, files), "seconds": round(time.monotonic() - began, 1), "task": task}

    def _begin(self) -> TaskId:
        """Start a supervisor that will die between arming and hand-over, and give it the job."""
        self.home.mkdir(mode=0o700)
        (self.home / "objective.md").write_text(OBJECTIVE, "utf-8")
        log = (self.home / "first-supervisor.log").open("ab")
        with log:
            self.doomed = subprocess.Popen(
                [sys.executable, "-m", "tenuto.proof.supervised", *ARMED_DEATH],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._until("the first supervisor to lead", lambda: self.outside.glance().standing == "live")
        self._until("its door", self.outside.places.socket.exists)
        agent = beside("examples") / "tidy_docs.py"
        made = self._tenuto(
            "run", "--title", "Tidy the texts", "--objective-file", str(self.home / "objective.md"),
            "--cwd", str(self.repository), "--program", f"{sys.executable} {agent}", "--resumable",
            "--accept-commit", "--env", "TIDY_DIE_AT", "--env", "TIDY_PACE", "--detach", "--json",
        )  # fmt: skip
        task = TaskId(json.loads(made.stdout)["result"]["task"])
        self.say(f"the job is task {task}; its agent will die in the middle of file {AGENT_DIES_AT}")
        return task

    def _go_on(self, task: TaskId) -> None:
        self._until("the first death", self._doomed_is_dead)
        self.say("supervisor killed: a turn was written down and not handed over yet")
        self._start()
        self._until(
            "a turn under way",
            lambda: self._attempts(task) >= MID_TURN_AFTER and self._mid_turn(task),
        )
        pid = self.outside.glance().pid
        if pid is None:
            raise DemoFailed("no supervisor leads in the middle of the job")
        os.kill(pid, signal.SIGKILL)
        self.say("supervisor killed: a turn was running, and its program runs on")
        self._until("the process to be gone", lambda: self.outside.glance().standing != "live")
        self._start()
        self._until("the end of the job", lambda: self._over(task))

    def _doomed_is_dead(self) -> bool:
        return self.doomed.poll() is not None

    def _start(self) -> None:
        started = self._tenuto("start", "--json")
        if started.returncode != 0:
            raise DemoFailed(f"a supervisor could not be started: {started.stderr or started.stdout}")
        self.say("supervisor started again")

    def _tenuto(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "tenuto", *arguments],
            env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if arguments[0] == "run" and done.returncode != 0:
            raise DemoFailed(f"the job could not be given: {done.stderr or done.stdout}")
        return done

    def _until(self, what: str, come: Callable[[], bool]) -> None:
        while not come():
            if time.monotonic() > self.deadline:
                raise DemoFailed(f"waited too long for {what}; see {self.outside.places.log}")
            time.sleep(0.02)

    # -- reading the registry, as any reader may

    def _look(self, ask: Callable[[Any], Any]) -> Any:
        desk, close = self.outside.open_desk_readonly()
        try:
            return ask(desk)
        finally:
            close()

    def _attempts(self, task: TaskId) -> int:
        return int(self._look(lambda desk: desk.task(task).attempts))

    def _mid_turn(self, task: TaskId) -> bool:
        sends = self._look(lambda desk: desk.commands(task_id=task))
        live = self._look(lambda desk: desk.task(task).waiting_since) is None
        newest = max(sends, key=lambda command: command.id)
        return live and newest.state is CommandState.ACKNOWLEDGED

    def _over(self, task: TaskId) -> bool:
        stands = self._look(lambda desk: desk.task(task))
        if not stands.terminal and (asked := self._look(lambda desk: desk.attention())):
            raise DemoFailed(f"a person is asked: {asked[0].question}")
        return bool(stands.terminal)

    def _count(self, task: TaskId, files: int) -> dict[str, Any]:
        per_file = material.commits_per_file(self.repository)
        wanted = material.expected(self.repository)
        desk, close = self.outside.open_desk_readonly()
        try:
            stands = desk.task(task)
            attempts = desk.attempts(task)
            commands = desk.commands(task_id=task)
        finally:
            close()
        return {
            "files": files,
            "turns": sum(attempt.outcome is AttemptOutcome.TURN_END for attempt in attempts),
            "cut_short": sum(attempt.outcome is AttemptOutcome.INTERRUPTED for attempt in attempts),
            "never_began": sum(attempt.outcome is AttemptOutcome.UNSENT for attempt in attempts),
            "commits": sum(per_file.values()),
            "recoveries": sum(
                attempt.reason is WakeKind.RECOVERY and attempt.outcome is AttemptOutcome.TURN_END
                for attempt in attempts
            ),
            "ambiguous": sum(command.state is CommandState.AMBIGUOUS for command in commands),
            "doubled": sum(max(count - 1, 0) for count in per_file.values()),
            "lost": len(wanted - set(per_file)),
            "state": str(stands.state),
            "verified": bool(stands.disposition and stands.disposition.verified),
        }


def demo(*, keep: bool, say: Callable[[str], None]) -> Proof:
    """Run the demonstration; its directory is kept so that it can be looked at with the printed commands."""
    place = Path(tempfile.mkdtemp(prefix="tenuto-demo-"))
    try:
        figures = Demo(place, say).run()
    except (DemoFailed, OSError, subprocess.SubprocessError) as failed:
        return Proof(False, f"the demonstration failed: {failed}", [f"its directory: {place}"], {"failed": str(failed)})
    good = (
        figures["state"] == "completed"
        and figures["commits"] == figures["files"]
        and not (figures["doubled"] or figures["lost"] or figures["ambiguous"])
    )
    return Proof(good, _summary(figures, good), _table(figures, place), {**figures, "directory": str(place)})


def _summary(figures: Mapping[str, Any], good: bool) -> str:
    if good:
        return f"{figures['files']} files, one commit each, through one dead turn and two dead supervisors"
    return "the history does not hold exactly one commit for every file"


def _table(figures: Mapping[str, Any], place: Path) -> list[str]:
    rows = (
        ("files", "files"), ("turns that ended", "turns"), ("turns cut short", "cut_short"),
        ("turns that never began", "never_began"), ("commits", "commits"), ("recoveries", "recoveries"),
        ("ambiguous", "ambiguous"), ("doubled", "doubled"), ("lost", "lost"), ("seconds", "seconds"),
    )  # fmt: skip
    home, task = place / "home", figures["task"]
    return [
        *(f"  {name:<24}{figures[key]:>8}" for name, key in rows),
        "",
        "look at the same yourself:",
        f"  export TENUTO_HOME={home}",
        f"  tenuto show {task}",
        f"  tenuto explain {task}",
        "  tenuto events",
        f"  git -C {place / 'texts'} log --stat",
        f"when done: rm -r {place}",
    ]
