"""One more task, and the slots tasks work in: `spawn`, `slots` and `signal`.

A spawn carries a key that its caller chose, so that a call whose answer was lost can be made again and makes nothing
twice. The prompt comes from a file or standard input, and how it is done from a playbook that the supervisor reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, rows, shortened, since
from tenuto.surfaces.cli.running import words

PANEL = "work"
commands = typer.Typer()
signal = typer.Typer(help="Signals of an agent about its task.", no_args_is_help=True)
commands.add_typer(signal, name="signal", rich_help_panel=PANEL)


@commands.command(rich_help_panel=PANEL)
def spawn(
    context: typer.Context,
    key: Annotated[
        str,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Idempotency key, which you choose: ask again under the same one, and nothing is made twice.",
            show_default=False,
        ),
    ],
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="The prompt; - reads standard input.", show_default=False),
    ] = None,
    playbook: Annotated[
        str | None,
        typer.Option(
            "--playbook",
            metavar="NAME",
            help="How it is done: NAME, or project/NAME, user/NAME, built-in/NAME.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="In this run; else in a new one.", show_default=False)
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option("--parent", metavar="TASK", help="As a child of this task, in its run.", show_default=False),
    ] = None,
    cwd: Annotated[
        Path | None,
        typer.Option("--cwd", metavar="DIR", help="Where it works; else where its parent does.", show_default=False),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            "--program",
            metavar="'CMD ARGS'",
            help="What runs a turn, where neither a playbook nor a parent says it.",
            show_default=False,
        ),
    ] = None,
    resumable: Annotated[
        bool, typer.Option("--resumable", help="With --program: it may be run again after it was cut short.")
    ] = False,
    title: Annotated[
        str, typer.Option("--title", help="A name for it; else the prompt's first line.", show_default=False)
    ] = "",
    auto_close: Annotated[
        bool | None,
        typer.Option(
            "--auto-close/--no-auto-close",
            help="Close it by itself once it has said for long enough that it is ready.",
            show_default=False,
        ),
    ] = None,
    unattended: Annotated[
        bool | None,
        typer.Option("--unattended/--no-unattended", help="Nobody is there to be asked.", show_default=False),
    ] = None,
    hand_over: Annotated[
        bool, typer.Option("--hand-over", help="It takes over the slot of its parent when that one ends.")
    ] = False,
    force: Annotated[
        str | None,
        typer.Option(
            "--force", metavar="REASON", help="Begin work that is under way already, and why.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make one more task. What is refused has made nothing; an answer that was lost is asked for under the same key."""
    this = front(context, as_json)
    agent = None
    if program is not None:
        agent = {"argv": words(program, "--program"), "resumable": resumable}
    elif resumable:
        raise Failure("mistake", "--resumable belongs to --program", field="--resumable")
    place = cwd
    if place is None and parent is None and not this.in_turn:
        place = Path()
    params = {
        "prompt": texts.read(file, "prompt", "--file"),
        "title": title,
        "playbook": playbook,
        "run": run,
        "parent": parent,
        "cwd": None if place is None else str(place.absolute()),
        "agent": agent,
        "auto_close": auto_close,
        "unattended": unattended,
        "hand_over": hand_over,
        "force": force,
    }
    try:
        made = this.door.change("task.spawn", params, key)
    except Failure as failure:
        if failure.exit is Exit.UNKNOWN:
            raise Failure(
                "unknown_outcome",
                "the request was sent and its answer was lost; the task may have been made",
                mend=f"ask again with the same key only: --key {key}",
            ) from None
        raise
    if this.out.as_json:
        this.out.document(made)
        return Exit.DONE
    this.out.line(get(made, "result", "task"))
    if this.out.watched:
        this.out.note(str(made.get("text")))
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def slots(context: typer.Context, as_json: AsJson = False) -> int:
    """Show who holds a slot and what it does with it, and who stands in line."""
    this = front(context, as_json)
    told = this.door.read("slots", {})
    if this.out.as_json:
        this.out.document(told)
        return Exit.DONE
    now = this.entrances.now()
    this.out.line(f"{told.get('free')} of {told.get('slots')} slots are free")
    held: list[tuple[object, ...]] = [
        (shortened(row.get("task")), row.get("occupancy"), since(row.get("since"), now), row.get("title"))
        for row in rows(told.get("held"))
    ]
    line: list[tuple[object, ...]] = [
        (
            shortened(row.get("task")),
            "returns" if row.get("returns") else "in line",
            since(row.get("created_at"), now),
            f"takes over from {shortened(row.get('waits_for'))}" if row.get("waits_for") else "",
        )
        for row in rows(told.get("line"))
    ]
    if held or line:
        this.out.table(("task", "slot", "since", "what"), held + line)
    this.out.line(f"spawned and never started: {get(told, 'pending', 'spawned')} of {get(told, 'pending', 'cap')}")
    return Exit.DONE


@signal.command("completion-ready")
def completion_ready(
    context: typer.Context,
    note: Annotated[str, typer.Option("--note", help="What is ready, in a line.", show_default=False)],
    task: TaskArgument = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Say that the task can be closed: with auto-close it is after a grace, else a person is told."""
    this = front(context, as_json)
    return this.done(this.door.change("task.ready", {"task": this.task(task), "note": note}, key))
