"""The agent programs of this machine: which there are and what each can do, and a dry turn of one when asked."""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, front
from tenuto.surfaces.cli.running import words

PANEL = "outside"
commands = typer.Typer()
agent = typer.Typer(help="Agent programs: which there are, and whether they work.", no_args_is_help=True)
commands.add_typer(agent, name="agent", rich_help_panel=PANEL)


@agent.command("list")
def listed(context: typer.Context, as_json: AsJson = False) -> int:
    """List the agent programs that are known by name: installed or not, version, what of each is driven."""
    this = front(context, as_json)
    found = this.entrances.agents()
    if this.out.as_json:
        told = [
            {"name": one.name, "path": one.path, "version": one.version, "can": list(one.can), "trouble": one.trouble}
            for one in found
        ]
        this.out.document({"agents": told})
        return Exit.DONE
    shown = [
        (one.name, one.version or ("installed" if one.path else "-"), ", ".join(one.can), one.trouble) for one in found
    ]
    this.out.table(("agent", "version", "what it can do here", "note"), shown)
    return Exit.DONE


@agent.command("test")
def tried(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            help="An agent by its name; AGENT:'CMD ARGS' says how it is started.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> int:
    """Have an agent program take one dry turn, in an empty directory, outside of any task; this asks its model once."""
    this = front(context, as_json)
    this.not_in_turn("test an agent program")
    bare, colon, line = name.partition(":")
    proof = this.entrances.agent_test(bare, tuple(words(line, "AGENT")) if colon else ())
    if this.out.as_json:
        this.out.document({"ok": proof.ok, "text": proof.summary, **proof.result})
    else:
        for step in proof.lines:
            this.out.line(f"  {step}")
        this.out.line(proof.summary)
    return Exit.DONE if proof.ok else Exit.FAILED
