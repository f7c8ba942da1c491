"""Words to a task, and the reports that come back.

A message is stored before anything is delivered; what is printed is where it stands, not a promise that it was read.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli import account, texts
from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, rows, since
from tenuto.surfaces.cli.work import TextFile

PANEL = "words"
commands = typer.Typer()
message = typer.Typer(help="Words for a task's next turn.", no_args_is_help=True)
checkpoint = typer.Typer(help="Structured reports of a task.", no_args_is_help=True)
commands.add_typer(message, name="message", rich_help_panel=PANEL)
commands.add_typer(checkpoint, name="checkpoint", rich_help_panel=PANEL)


@message.command("send")
def message_send(
    context: typer.Context,
    task: TaskArgument = None,
    file: TextFile = None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="POLICY", help="record_only, next_turn or steer_now.")
    ] = "next_turn",
    corrective: Annotated[
        str | None,
        typer.Option(
            "--corrective",
            metavar="REASON",
            help="Why waiting would let wrong work go on: words to a turn under way are not spaced then.",
            show_default=False,
        ),
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Say something to a task; from a file or standard input. In a turn, TASK may be 'coordinator'."""
    this = front(context, as_json)
    params = {
        "task": this.task(task),
        "policy": policy,
        "corrective": corrective,
        "text": texts.read(file, "message", "--file"),
    }
    return this.done(this.door.change("message.send", params, key))


@message.command("list")
def message_list(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """List what was said to a task, and how far each got."""
    this = front(context, as_json)
    answer = this.door.read("message.list", {"task": this.task(task)})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    now = this.entrances.now()
    for row in rows(answer.get("messages")):
        this.out.heading(f"{row.get('id')}  {row.get('state')}: {row.get('kind')} from {row.get('sender')}")
        this.out.pairs(
            [
                ("stored", since(row.get("created_at"), now)),
                ("policy", row.get("policy")),
                ("corrective", row.get("corrective")),
                ("carried by", row.get("carried_by")),
                ("settled", since(row.get("settled_at"), now)),
                ("tries", row.get("tries") or None),
                ("text", get(row, "removed", "text") or row.get("text")),
            ],
            "  ",
        )
    return Exit.DONE


@checkpoint.command("request")
def checkpoint_request(
    context: typer.Context, task: TaskArgument = None, key: Key = None, as_json: AsJson = False
) -> int:
    """Ask a task for a structured report in its next turn."""
    this = front(context, as_json)
    return this.done(this.door.change("checkpoint.request", {"task": this.task(task)}, key))


@checkpoint.command("show")
def checkpoint_show(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """Show what a task reported, newest first."""
    this = front(context, as_json)
    answer = this.door.read("checkpoint.show", {"task": this.task(task)})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    reports = rows(answer.get("reports"))
    if not reports:
        this.out.line("it has not reported yet")
    for row in reports:
        this.out.heading(f"{row.get('kind')}, {since(row.get('at'), this.entrances.now())}")
        account.report(this.out, row, "  ")
    return Exit.DONE
