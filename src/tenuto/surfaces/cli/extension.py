"""The browser extension: lay it out for a browser, and pair it, once, with this supervisor.

A code is told to the person and carried over by hand; it opens once and for five minutes. Nothing is installed here:
the browser does that, with the folder that is printed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, front

PANEL = "outside"
LOAD = {
    "chromium": "load it at chrome://extensions with 'Load unpacked'",
    "firefox": "load it at about:debugging with 'Load Temporary Add-on', or have it signed",
}
commands = typer.Typer()
extension = typer.Typer(help="The browser extension that works in chats.")
commands.add_typer(extension, name="extension", rich_help_panel=PANEL)


@extension.command("path")
def path(
    context: typer.Context,
    browser: Annotated[
        str, typer.Option("--browser", metavar="NAME", help="chromium, or firefox (LibreWolf, too).")
    ] = "chromium",
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="DIR", help="Where to lay it out; else in the state directory.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Lay the extension out for a browser, and print the folder to load."""
    this = front(context, as_json)
    this.not_in_turn("lay out the extension")
    folder = this.entrances.extension_folder(browser, to)
    if this.out.as_json:
        this.out.document({"browser": browser, "path": str(folder)})
    else:
        this.out.line(folder)
        this.out.note(LOAD[browser])
    return Exit.DONE


@extension.command("pair")
def pair(
    context: typer.Context,
    name: Annotated[
        str, typer.Option("--name", help="What this browser is called; its executor is ext:NAME.")
    ] = "browser",
    as_json: AsJson = False,
) -> int:
    """Print a code for the extension's panel; it opens once, within five minutes."""
    this = front(context, as_json)
    this.not_in_turn("pair an extension")
    told = this.door.pairing(name)
    code = told.get("code")
    if not code:
        raise Failure("not_found", "no port is served for a browser", mend="set 'port' in the configuration")
    if this.out.as_json:
        this.out.document(told)
    else:
        this.out.line(code)
        this.out.note(f"enter it in the panel of the extension within five minutes; then it is ext:{name}")
    return Exit.DONE
