"""Adopt an agent's session that somebody began: list what there is, and make a task of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Front, Key, front
from tenuto.surfaces.cli.glancing import PRESENT
from tenuto.surfaces.cli.output import get, rows, shortened, since
from tenuto.surfaces.cli.running import words
from tenuto.surfaces.cli.service import WITHIN, started

PANEL = "outside"
commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def adopt(
    context: typer.Context,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT|URL",
            help="claude or codex (AGENT:'CMD ARGS' says how it is started), or the address of a chat.",
            show_default=False,
        ),
    ],
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="The session, by its whole name.", show_default=False),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the sessions there are; nothing is adopted.")] = False,
    cwd: Annotated[
        Path | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="List those of one directory only; where a chat's task works.",
            show_default=False,
        ),
    ] = None,
    objective_file: Annotated[
        str | None,
        typer.Option(
            "--objective-file", metavar="FILE", help="What is to be done; else: go on with it.", show_default=False
        ),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="A name for the task.", show_default=False)] = "",
    accept_check: Annotated[
        str | None,
        typer.Option(
            "--accept-check", metavar="'CMD ARGS'", help="Complete when this exits with 0.", show_default=False
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME", help="A variable to pass on, by name; may be repeated.", show_default=False
        ),
    ] = None,
    on: Annotated[
        str, typer.Option("--on", metavar="EXECUTOR", help="Which browser a chat is in: ext:NAME.")
    ] = "ext:browser",
    auto: Annotated[bool, typer.Option("--auto", help="Continue it unasked; else only when asked.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Make a task of a session that somebody began with Claude Code or Codex, or of a chat, without touching it."""
    this = front(context, as_json)
    this.not_in_turn("adopt a session")
    chat = agent.startswith("https://")
    name, colon, line = (agent, "", "") if chat else agent.partition(":")
    if this.entrances.glance().standing not in PRESENT:
        glance, fresh = started(this, WITHIN)
        if fresh:
            this.out.note(f"no supervisor was running: started one, pid {glance.pid}")
    if chat:
        return _adopted_chat(
            this,
            {
                "url": agent,
                "cwd": str((cwd or Path()).absolute()),
                "on": on,
                "title": title,
                "objective": _objective(objective_file),
                "auto_resume": "on" if auto else "manual",
                "accept_check": words(accept_check, "--accept-check") if accept_check is not None else [],
            },
            key,
        )
    if listing or session is None:
        return _listed(this, name, cwd, asked=listing)
    params = {
        "agent": name,
        "session": session,
        "argv": words(line, "AGENT") if colon else [],
        "env": env or [],
        "title": title,
        "objective": _objective(objective_file),
        "auto_resume": "on" if auto else "manual",
        "accept_check": words(accept_check, "--accept-check") if accept_check is not None else [],
    }
    made = this.door.change("session.adopt", params, key)
    task = str(get(made, "result", "task"))
    if this.out.as_json:
        this.out.document(made)
        return Exit.DONE
    this.out.line(task)
    if (pid := get(made, "result", "open_in")) is not None:
        this.out.note(f"it is open in process {pid}: words reach it at its own stops (tenuto hooks install {name})")
    if not auto:
        this.out.note(f"nothing is sent to it until you ask: tenuto continue {shortened(task)}")
    return Exit.DONE


def _objective(file: str | None) -> str:
    return texts.read(file, "objective", "--objective-file") if file is not None else ""


def _adopted_chat(this: Front, params: dict[str, object], key: str | None) -> int:
    made = this.door.change("chat.adopt", params, key)
    task = str(get(made, "result", "task"))
    if this.out.as_json:
        this.out.document(made)
        return Exit.DONE
    this.out.line(task)
    if params["auto_resume"] != "on":
        this.out.note(f"nothing is sent to it until you ask: tenuto continue {shortened(task)}")
    return Exit.DONE


def _listed(this: Front, agent: str, cwd: Path | None, *, asked: bool) -> int:
    told = this.door.read("session.list", {"agent": agent, "cwd": str(cwd.absolute()) if cwd is not None else None})
    if this.out.as_json:
        this.out.document(told)
    else:
        now = this.entrances.now()
        found = [
            (row.get("session"), row.get("cwd"), since(row.get("changed_at"), now), _state(row))
            for row in rows(told.get("sessions"))
        ]
        this.out.table(("session", "directory", "last written", "state"), found)
    if not asked:
        raise Failure("mistake", "name the session with --session", field="--session")
    return Exit.DONE


def _state(row: object) -> str:
    if (task := get(row, "task")) is not None:
        return f"task {shortened(str(task))} works in it"
    if (pid := get(row, "open_in")) is not None:
        return f"open in process {pid}"
    return "an older one of its directory" if get(row, "newer") is not None else "can be adopted"
