"""Commands, the side effects that were written down before they were made: look at them, and judge the doubtful ones.

A release is a person's verdict with a name on it; it is never taken for proof.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tenuto.surfaces.cli import account
from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, front
from tenuto.surfaces.cli.output import local, rows, shortened

PANEL = "supervision"
commands = typer.Typer()
command = typer.Typer(help="Side effects, and how far each is proven.", no_args_is_help=True)
commands.add_typer(command, name="command", rich_help_panel=PANEL)

CommandArgument = Annotated[
    str, typer.Argument(metavar="COMMAND", help="A command: whole, or its beginning or end.", show_default=False)
]


class Verdict(StrEnum):
    """What a person found out about an ambiguous command."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not-happened"


@command.command("list")
def command_list(
    context: typer.Context,
    task: Annotated[
        str | None, typer.Option("--task", metavar="TASK", help="Of this task.", show_default=False)
    ] = None,
    only_open: Annotated[bool, typer.Option("--open", help="Only those that are not settled.")] = False,
    as_json: AsJson = False,
) -> int:
    """List commands, newest first."""
    this = front(context, as_json)
    answer = this.door.read("command.list", {"task": task, "only_open": only_open})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (
            shortened(row.get("id")) if this.out.drawn else row.get("id"),
            shortened(row.get("task")) if this.out.drawn else row.get("task"),
            row.get("kind"),
            row.get("state"),
            local(row.get("armed_at")),
            row.get("detail") or row.get("evidence"),
        )
        for row in rows(answer.get("commands"))
    ]
    this.out.table(("command", "task", "kind", "state", "armed", "detail"), told)
    return Exit.DONE


@command.command("show")
def command_show(context: typer.Context, given: CommandArgument, as_json: AsJson = False) -> int:
    """Show one command."""
    this = front(context, as_json)
    answer = this.door.read("command.show", {"command": given})
    if this.out.as_json:
        this.out.document(answer)
    else:
        account.command(this.out, answer.get("command"), this.entrances.now())
    return Exit.DONE


@command.command("reconcile")
def command_reconcile(context: typer.Context, given: CommandArgument, key: Key = None, as_json: AsJson = False) -> int:
    """Look again, now, at what a command hangs on."""
    this = front(context, as_json)
    return this.done(this.door.change("command.reconcile", {"command": given}, key))


@command.command("release")
def command_release(
    context: typer.Context,
    given: CommandArgument,
    verdict: Annotated[Verdict, typer.Option("--verdict", help="What you found out.", show_default=False)],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Give a verdict on an ambiguous command, after looking yourself."""
    this = front(context, as_json)
    return this.done(this.door.change("command.release", {"command": given, "verdict": verdict.value}, key))
