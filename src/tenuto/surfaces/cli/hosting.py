"""Lend this machine to a supervisor: `host` runs plain programs here for whoever leads, here or elsewhere.

It gives orders to nobody. The token comes from a file and never from the command line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, front

PANEL = "service"
commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def host(
    context: typer.Context,
    name: Annotated[str, typer.Option("--name", help="What this executor is called.", show_default=False)],
    token_file: Annotated[
        Path,
        typer.Option("--token-file", metavar="FILE", help="The executor's token, mode 0600.", show_default=False),
    ],
    connect: Annotated[
        list[str] | None,
        typer.Option(
            "--connect",
            metavar="ADDRESS",
            help="Where a supervisor may lead: wss://HOST:PORT, ws://127.0.0.1:PORT, or a socket; may be repeated.",
            show_default=False,
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="DIR", help="Where its journal is kept.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run programs on this machine for a supervisor, here or elsewhere, until stopped."""
    this = front(context, as_json)
    this.not_in_turn("lend this machine")
    code = this.entrances.host(name, connect or (), token_file, journal)
    if this.out.as_json:
        this.out.document({"stopped": code == Exit.DONE, "code": code})
    return code
