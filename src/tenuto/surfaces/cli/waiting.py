"""What agents' programs wait for: usage limits of their accounts, and leave that they asked."""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import local, rows, shortened, since

PANEL = "understanding"
commands = typer.Typer()
limits = typer.Typer(help="Usage limits of the accounts that agents work with.", invoke_without_command=True)
commands.add_typer(limits, name="limits", rich_help_panel=PANEL)


@limits.callback()
def listed(
    context: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    as_json: AsJson = False,
) -> int | None:
    """List the usage limits that stand: whose, until when, and which tasks wait."""
    if context.invoked_subcommand is not None:
        return None
    this = front(context, as_json)
    told = this.door.read("limit.list", {"all": all_})
    if this.out.as_json:
        this.out.document(told)
        return Exit.DONE
    now = this.entrances.now()
    found = rows(told.get("limits"))
    if not found:
        this.out.line("no usage limit stands")
    for row in found:
        this.out.heading(str(row.get("text")))
        waiting = rows(row.get("waiting"))
        tasks = ", ".join(f"{shortened(one.get('task'))} until {local(one.get('until'))}" for one in waiting)
        over = f"{since(row.get('closed_at'), now)}, by {row.get('closed_by')}" if row.get("closed_at") else None
        this.out.pairs(
            [
                ("limit", row.get("id")),
                ("tried again", local(row.get("until"))),
                ("last met", since(row.get("met_at"), now)),
                ("waiting", tasks or "nobody"),
                ("over", over),
            ],
            "  ",
        )
    return Exit.DONE


@limits.command("lift")
def lift(
    context: typer.Context,
    limit: Annotated[
        str, typer.Argument(metavar="LIMIT", help="A limit: whole, or its beginning or end.", show_default=False)
    ],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Say that a limit is over, for you have made it so; its tasks go on."""
    this = front(context, as_json)
    return this.done(this.door.change("limit.lift", {"limit": limit}, key))


@commands.command(rich_help_panel=PANEL)
def permissions(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """List what a task's programs asked leave for, and what was said to it."""
    this = front(context, as_json)
    told = this.door.read("permission.list", {"task": this.task(task)})
    if this.out.as_json:
        this.out.document(told)
        return Exit.DONE
    found = [
        (
            local(row.get("asked_at")),
            row.get("tool"),
            row.get("what"),
            str(row.get("verdict") or "open").replace("_", " "),
            row.get("answered_by") or row.get("outcome"),
        )
        for row in rows(told.get("permissions"))
    ]
    this.out.table(("asked", "tool", "for", "answer", "by"), found)
    return Exit.DONE
