"""Give work to an agent and watch it: `run` and `follow`.

Watching ends when the task has ended, when only a person can make it go on, or when it cannot be told what became of a
command; never because a turn ended or a limit was reached. Ctrl-C lets go of the watching and of nothing else.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.client import Unreachable
from tenuto.surfaces.cli.edges import Edges
from tenuto.surfaces.cli.exits import Exit, Failure, no_supervisor
from tenuto.surfaces.cli.front import AsJson, Front, Key, TaskArgument, front
from tenuto.surfaces.cli.glancing import PRESENT
from tenuto.surfaces.cli.output import get, moment, one_line, rows, shortened, span
from tenuto.surfaces.cli.service import WITHIN, started
from tenuto.surfaces.cli.work import amount, pairs

PANEL = "work"
GONE = 30.0
"""How long a supervisor may be away while watching, in seconds: time enough for a restart."""
PAGE = 1000
PERSON = {"human", "permission", "cap", "stalled", "paused", "manual", "held", "run_stopped"}
"""The rungs on which only a person can make a task go on."""
SETTLING = 1.5
"""How long nothing must have asked for a turn before a person is taken to be needed, in seconds."""
DOUBT = 4.0
"""How long a command must stay ambiguous before watching ends, in seconds: the supervisor is still looking."""
TOLD = {
    "attempt.ended", "wait.opened", "wait.closed", "task.check_failed", "task.stall_warned", "task.progressed",
    "task.completion_claimed", "command.ambiguous", "late.word",
}  # fmt: skip
"""What is worth a line of its own on a terminal."""

commands = typer.Typer()


@dataclass(frozen=True, slots=True)
class End:
    """Why watching ended: the exit code, one sentence, and what a person can do about it."""

    exit: Exit
    sentence: str
    mend: str = ""


@commands.command(rich_help_panel=PANEL)
def run(
    context: typer.Context,
    program: Annotated[
        str | None,
        typer.Option(
            "--program",
            metavar="'CMD ARGS'",
            help="What runs a turn: split into words, given the prompt on its standard input, never a shell.",
            show_default=False,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="An agent program that is known by name (claude, codex, gemini, opencode, pi), or acp:'CMD ARGS'; "
            "NAME:'CMD ARGS' says how it is started.",
            show_default=False,
        ),
    ] = None,
    chat: Annotated[
        str | None,
        typer.Option(
            "--chat",
            metavar="SITE",
            help="A chat in a browser, by its site (chatgpt); --on ext:NAME says which browser, else ext:browser.",
            show_default=False,
        ),
    ] = None,
    objective_file: Annotated[
        str | None,
        typer.Option(
            "--objective-file", metavar="FILE", help="What is to be done; - reads standard input.", show_default=False
        ),
    ] = None,
    title: Annotated[
        str, typer.Option("--title", help="A name for it; else the objective's first line.", show_default=False)
    ] = "",
    cwd: Annotated[Path, typer.Option("--cwd", metavar="DIR", help="Where the program runs.")] = Path(),
    resumable: Annotated[
        bool, typer.Option("--resumable", help="It may be run again after it was cut short: it looks before it acts.")
    ] = False,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", min=1, help="How many turns at most.", show_default=False)
    ] = None,
    accept_check: Annotated[
        str | None,
        typer.Option(
            "--accept-check", metavar="'CMD ARGS'", help="Complete when this exits with 0.", show_default=False
        ),
    ] = None,
    accept_file: Annotated[
        str | None,
        typer.Option("--accept-file", metavar="PATH", help="Complete when this file is there.", show_default=False),
    ] = None,
    accept_commit: Annotated[
        bool, typer.Option("--accept-commit", help="Complete when the commit it names is reachable.")
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME", help="A variable to pass on, by name; may be repeated.", show_default=False
        ),
    ] = None,
    manual: Annotated[bool, typer.Option("--manual", help="Continue it only when asked.")] = False,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="NAME=VALUE", help="A number of its policy; may be repeated.", show_default=False
        ),
    ] = None,
    coordinator: Annotated[
        bool, typer.Option("--coordinator", help="The task is told what the run's other tasks come to.")
    ] = False,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="EXECUTOR", help="Which executor runs it: host:NAME; else this machine.", show_default=False
        ),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Do not watch; come back with 'tenuto follow'.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Give work to an agent program and keep it going until it is done."""
    this = front(context, as_json)
    this.not_in_turn("start a run")
    params = {
        "objective": texts.read(objective_file, "objective", "--objective-file"),
        "title": title,
        "cwd": str(cwd.absolute()),
        "agent": {**agent_of(program, agent, chat=chat, resumable=resumable), "env": env or [], **where(chat, on)},
        "acceptance": acceptance(accept_check, accept_file, accept_commit),
        "auto_resume": "manual" if manual else "on",
        "max_attempts": max_attempts,
        "policy": {name: amount(name, value) for name, value in pairs(policy or (), "NAME=VALUE")},
        "coordinator": coordinator,
    }
    if this.entrances.glance().standing not in PRESENT:
        glance, fresh = started(this, WITHIN)
        if fresh:
            this.out.note(f"no supervisor was running: started one, pid {glance.pid}")
    made = this.door.change("run.create", params, key)
    task = str(get(made, "result", "task"))
    if detach:
        if this.out.as_json:
            this.out.document(made)
        else:
            this.out.line(task)
            this.out.note(f"watch it with: tenuto follow {shortened(task)}")
        return Exit.DONE
    if this.out.watched:
        this.out.note(f"task {task}; Ctrl-C lets go of it, and it goes on")
    return Watch(this, task, 0, lines=False).to_end()


@commands.command(rich_help_panel=PANEL)
def follow(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """Watch a task until it ends or needs a person; with --json, what happens as JSON lines."""
    this = front(context, as_json)
    try:
        whole, last = caught_up(this, this.task(task))
    except Unreachable as why:
        raise no_supervisor(str(why)) from None
    return Watch(this, whole, last, lines=this.out.as_json).to_end()


class Watch:
    """Watches one task. `after` is the last event that is not told any more; `lines` prints events as JSON lines."""

    def __init__(self, this: Front, task: str, after: int, *, lines: bool) -> None:
        self._this = this
        self._task = task
        self._after = after
        self._lines = lines
        self._drawn = False
        self._since: dict[str, float] = {}

    def to_end(self) -> int:
        """The exit code once there is nothing more to wait for; 130 when the watching was interrupted."""
        try:
            with Edges(self._this.door, {"task": self._task, "after": str(self._after)}) as edges:
                return self._loop(edges)
        except KeyboardInterrupt:
            self._wipe()
            self._this.out.note(f"let go; it goes on. Come back with: tenuto follow {self._task}")
            return Exit.DETACHED

    def _loop(self, edges: Edges) -> int:
        seen = time.monotonic()
        while True:
            try:
                answer = self._this.door.live("task.follow", {"task": self._task, "after": str(self._after)})
            except Unreachable as why:
                if time.monotonic() - seen > GONE:
                    self._wipe()
                    raise no_supervisor(str(why)) from None
                edges.wait(1.0)
                continue
            seen = time.monotonic()
            page = rows(answer.get("events"))
            self._tell(page)
            last = answer.get("last")
            self._after = last if isinstance(last, int) else self._after
            if len(page) >= PAGE:
                continue
            if (end := self._judged(answer)) is not None:
                self._wipe()
                return self._ended(answer, end)
            self._draw(answer)
            edges.wait(1.0 if self._this.out.watched or self._since else 5.0)

    def _judged(self, answer: Mapping[str, object]) -> End | None:
        """Whether there is nothing more to wait for."""
        task, because = answer.get("task"), answer.get("because")
        state, rung = get(task, "state"), str(get(because, "rung"))
        sentence, change = str(get(because, "sentence")), str(get(because, "change") or "")
        if state in ("completed", "failed", "cancelled"):
            return _terminal(task)
        if rung in PERSON:
            self._since.clear()
            return End(Exit.NEEDS_PERSON, sentence, change)
        if rung == "nothing_asked":
            return self._lasting(rung, SETTLING, End(Exit.NEEDS_PERSON, sentence, change))
        if rung == "unresolved" and self._doubtful():
            return self._lasting(rung, DOUBT, End(Exit.UNKNOWN, sentence, change))
        self._since.clear()
        return None

    def _lasting(self, rung: str, seconds: float, end: End) -> End | None:
        """`end`, once this rung has held for `seconds` without a break."""
        now = time.monotonic()
        self._since = {rung: self._since.get(rung, now)}
        return end if now - self._since[rung] >= seconds else None

    def _doubtful(self) -> bool:
        try:
            found = self._this.door.live("command.list", {"task": self._task, "only_open": True})
        except Unreachable:
            return False
        return any(row.get("state") == "ambiguous" for row in rows(found.get("commands")))

    def _ended(self, answer: Mapping[str, object], end: End) -> int:
        out, task = self._this.out, answer.get("task")
        told = {
            "kind": "end",
            "run": get(task, "run"),
            "task": self._task,
            "state": get(task, "state"),
            "turns": get(task, "attempts"),
            "exit": int(end.exit),
            "text": end.sentence,
            "mend": end.mend or None,
            "because": answer.get("because"),
            "disposition": get(task, "disposition"),
        }
        if self._lines:
            out.item(told)
        elif out.as_json:
            out.document(told)
        else:
            out.line(end.sentence)
            if end.mend:
                out.line(f"do: {end.mend}")
            out.line(f"more: tenuto show {self._task}")
        return end.exit

    def _tell(self, events: list[Mapping[str, object]]) -> None:
        for event in events:
            if self._lines:
                self._this.out.item(event)
            elif self._this.out.watched and event.get("kind") in TOLD:
                self._wipe()
                self._this.out.note(f"  {one_line(event.get('text'))}")

    def _draw(self, answer: Mapping[str, object]) -> None:
        """The live line: the turn, how it stands, since when."""
        if not self._this.out.watched:
            return
        task, because = answer.get("task"), answer.get("because")
        began = moment(get(task, "last_served_at")) or moment(get(task, "created_at"))
        ago = f", {span((self._this.entrances.now() - began).total_seconds())}" if began is not None else ""
        said = get(because, "sentence") or get(task, "text")
        width = max(20, shutil.get_terminal_size().columns - 1)
        line = one_line(f"turn {get(task, 'attempts')}: {said}{ago}")
        sys.stderr.write(f"\r\x1b[2K{line if len(line) <= width else line[: width - 1] + '…'}")
        sys.stderr.flush()
        self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False


def _terminal(task: object) -> End:
    state = str(get(task, "state"))
    turns = get(task, "attempts")
    said = f"{state} after {turns} turn{'' if turns == 1 else 's'}: {get(task, 'disposition', 'reason')}"
    if state != "completed":
        return End(Exit.FAILED, said)
    reference = get(task, "disposition", "reference")
    said += f" ({reference})" if reference else ""
    return End(Exit.DONE, said if get(task, "disposition", "verified") else f"{said}, unverified")


def caught_up(this: Front, given: str) -> tuple[str, int]:
    """The whole name of a task, and the number of the last thing that happened to it. Raises Unreachable."""
    after = 0
    while True:
        answer = this.door.live("task.follow", {"task": given, "after": str(after)})
        last = answer.get("last")
        after = last if isinstance(last, int) else after
        if len(rows(answer.get("events"))) < PAGE:
            return str(get(answer, "task", "id")), after


AGENTS = {
    "claude": ["claude"], "codex": ["codex"], "gemini": ["gemini"], "opencode": ["opencode", "acp"], "pi": ["pi"],
    "acp": [],
}  # fmt: skip
"""How the agent programs that are known by name are started, unless it is said."""


BROWSER = "ext:browser"
"""The browser that chats are in, unless it is said."""


def where(chat: str | None, on: str | None) -> dict[str, object]:
    """Which executor carries it. Raises Failure for a chat on what is no browser."""
    if chat is not None and on is not None and not on.startswith("ext:"):
        raise Failure("mistake", "a chat is carried by a browser: --on ext:NAME", field="--on")
    return {"on": on or (BROWSER if chat is not None else None)}


def agent_of(program: str | None, agent: str | None, *, resumable: bool, chat: str | None = None) -> dict[str, object]:
    """What works on a task: a plain program, an agent by its name, or a chat by its site. Raises Failure for others."""
    if sum(each is not None for each in (program, agent, chat)) != 1:
        raise Failure("mistake", "name one of --program, --agent and --chat", field="--program")
    if chat is not None:
        return {"adapter": chat, "argv": [chat], "resumable": True}
    if program is not None:
        return {"argv": words(program, "--program"), "resumable": resumable}
    name, colon, line = str(agent).partition(":")
    if name not in AGENTS:
        raise Failure("mistake", f"no agent is called '{name[:60]}'; known are {', '.join(AGENTS)}", field="--agent")
    argv = words(line, "--agent") if colon or not AGENTS[name] else AGENTS[name]
    return {"adapter": name, "argv": argv, "resumable": True}


def words(text: str, option: str) -> list[str]:
    """A program's words as a shell would split them, without a shell. Raises Failure naming the option."""
    try:
        told = shlex.split(text)
    except ValueError as error:
        raise Failure("mistake", f"{option} cannot be split into words: {error}", field=option) from None
    if not told:
        raise Failure("mistake", f"{option} names no program", field=option)
    return told


def acceptance(check: str | None, file: str | None, commit: bool) -> dict[str, object]:
    """What a claim of completion hangs on; raises Failure when more than one thing was named."""
    if sum((check is not None, file is not None, commit)) > 1:
        raise Failure("mistake", "name one of --accept-check, --accept-file and --accept-commit")
    if check is not None:
        return {"kind": "check", "argv": words(check, "--accept-check")}
    if file is not None:
        return {"kind": "file", "path": file}
    return {"kind": "commit" if commit else "none"}
