"""What other programs use: MCP on standard input and output.

Nothing here is for a person to type; a client of the protocol starts it and ends it.
"""

from __future__ import annotations

import typer

from tenuto.surfaces.cli.exits import Failure
from tenuto.surfaces.cli.front import front

PANEL = "outside"
commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def mcp(context: typer.Context) -> int:
    """Serve MCP on standard input and output; a client of the protocol starts this."""
    try:
        return front(context).entrances.serve_mcp()
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise Failure("mistake", "MCP is not installed here", mend="pip install 'tenuto[mcp]'") from None
