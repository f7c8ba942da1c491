"""Hooks of agent programs: put them in, take them out, see whether they are called.

The change is shown and asked for before anything is written. Where nobody can be asked, `--yes` says it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Front, front

PANEL = "outside"
commands = typer.Typer()
hooks = typer.Typer(help="Hooks in the settings of Claude Code and Codex.", no_args_is_help=True)
commands.add_typer(hooks, name="hooks", rich_help_panel=PANEL)

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="claude or codex.", show_default=False)]
Project = Annotated[
    Path | None,
    typer.Option("--project", metavar="DIR", help="Only for work in this directory.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]


@hooks.command("install")
def install(
    context: typer.Context, agent: AgentArgument, project: Project = None, yes: Yes = False, dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Have a program tell Tenuto when its sessions begin, stop and wait; what else stands in its settings stays."""
    return _change(front(context, as_json), "install", agent, project, yes=yes, dry_run=dry_run)


@hooks.command("remove")
def remove(
    context: typer.Context, agent: AgentArgument, project: Project = None, yes: Yes = False, dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Take the hooks out again; a file that nobody has changed since becomes byte for byte what it was."""
    return _change(front(context, as_json), "remove", agent, project, yes=yes, dry_run=dry_run)


@hooks.command("status")
def status(context: typer.Context, agent: AgentArgument, project: Project = None, as_json: AsJson = False) -> int:
    """Say whether the hooks are installed, and when they were called last: only a call shows that they work."""
    this = front(context, as_json)
    told = this.entrances.hooks_standing(agent, project.absolute() if project is not None else None)
    if this.out.as_json:
        this.out.document(told)
    else:
        this.out.pairs([("file", told["file"]), ("hooks", told["text"])])
    return Exit.DONE if told["installed"] else Exit.FAILED


def _change(this: Front, act: str, agent: str, project: Path | None, *, yes: bool, dry_run: bool) -> int:
    this.not_in_turn("change a program's settings")
    plan = this.entrances.hooks_plan(act, agent, project.absolute() if project is not None else None)
    shown = {"file": str(plan.file), "change": list(plan.difference), "notes": list(plan.notes)}
    if not this.out.as_json:
        this.out.line(str(plan.file))
        for line in plan.difference:
            this.out.line(f"  {line}")
        for note in plan.notes:
            this.out.note(note)
    done = plan.carry_out is not None and not dry_run
    if done and not yes and not _agreed():
        raise Failure("refused", "nothing was changed", mend=f"tenuto hooks {act} {agent} --yes")
    if done and plan.carry_out is not None:
        plan.carry_out()
    if this.out.as_json:
        this.out.document({**shown, "done": done})
    elif done:
        this.out.line("done")
        if act == "install":
            this.out.note(f"see whether they are called with: tenuto hooks status {agent}")
    return Exit.DONE


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    return typer.confirm("Write this?", default=False, err=True)
