"""The sites whose chats can be worked in, and whether a page of one still looks as its profile says.

A check reads and reports; it changes no page and no profile. Exit codes: 0 as known, 1 drifted or unknown, 8 the page
waits for a person (nobody is signed in, or the site asks whether somebody is there).
"""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, front
from tenuto.surfaces.cli.proofs import told

PANEL = "outside"
commands = typer.Typer()
site = typer.Typer(help="The chat sites that are known, and whether their pages still look so.", no_args_is_help=True)
commands.add_typer(site, name="site", rich_help_panel=PANEL)


@site.command("list")
def listing(context: typer.Context, as_json: AsJson = False) -> int:
    """List the sites that are known, with the version of each profile and when it was last seen to be true."""
    this = front(context, as_json)
    return told(this, this.entrances.sites())


@site.command()
def check(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="PAGE|URL", help="A saved page, or an address.", show_default=False)],
    name: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="The profile; else by the address.", show_default=False)
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="URL", help="Where a saved page stood.", show_default=False)
    ] = None,
    devtools: Annotated[
        str | None,
        typer.Option(
            "--devtools", metavar="HOST:PORT", help="Look in that browser on this machine, where the address is open.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Look at a page and say whether it is as its profile says; without --devtools as somebody not signed in."""
    this = front(context, as_json)
    this.not_in_turn("look at pages")
    proof = this.entrances.site_check(target, site=name, at=at, devtools=devtools)
    code = told(this, proof)
    return Exit.NEEDS_PERSON if proof.result.get("verdict") == "waits" else code
