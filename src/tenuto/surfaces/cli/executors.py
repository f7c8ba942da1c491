"""Executors elsewhere: who is connected, and settling what only they know."""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, front
from tenuto.surfaces.cli.output import rows, since

PANEL = "supervision"
commands = typer.Typer()
executor = typer.Typer(help="Executors on other machines, in browsers, and of agents.")
commands.add_typer(executor, name="executor", rich_help_panel=PANEL)


@executor.command("list")
def listed(context: typer.Context, as_json: AsJson = False) -> int:
    """List the executors that have been connected to the supervisor that leads."""
    this = front(context, as_json)
    told = this.door.read("executor.list", {})
    if this.out.as_json:
        this.out.document(told)
        return Exit.DONE
    now = this.entrances.now()
    found = [
        (
            row.get("name"),
            "connected" if row.get("connected") else "away",
            since(row.get("since"), now) if row.get("since") else "",
            _count(row.get("conversations")) or "",
            row.get("trouble") or (f"{held} unknown commands" if (held := _count(row.get("strangers"))) else ""),
        )
        for row in rows(told.get("executors"))
    ]
    this.out.table(("name", "state", "since", "conversations", "needs"), found)
    return Exit.DONE


@executor.command("settle")
def settle(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="EXECUTOR", help="Its name, as in host:box.")],
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="The command that only it knows.")],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Say that you have looked at what an executor did and this registry does not know."""
    this = front(context, as_json)
    this.not_in_turn("settle what an executor did")
    return this.done(this.door.change("executor.settle", {"executor": name, "command": command}, key))


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else 0
