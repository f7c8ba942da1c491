"""Phases and worktrees of chains: record a pull request, see how each stands, and see which worktrees are there.

Nothing here merges, and a worktree that holds work which is nowhere else is not removed by any of it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, rows, shortened

PANEL = "chains"
commands = typer.Typer()
phase = typer.Typer(help="Pull requests that have to land one after the other.", no_args_is_help=True)
worktree = typer.Typer(help="Checkouts of their own for tasks.", no_args_is_help=True)
commands.add_typer(phase, name="phase", rich_help_panel=PANEL)
commands.add_typer(worktree, name="worktree", rich_help_panel=PANEL)


@phase.command("open")
def opened(
    context: typer.Context,
    pull: Annotated[int, typer.Option("--pr", metavar="NUMBER", help="The pull request.", show_default=False)],
    task: TaskArgument = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="Its branch, if it is not the worktree's.", show_default=False)
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Where it can be seen.", show_default=False)] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Record the pull request that was opened for a task's unit."""
    this = front(context, as_json)
    params = {"task": this.task(task), "pull": pull, "branch": branch, "url": url}
    return this.done(this.door.change("phase.open", params, key))


@phase.command("status")
def status(
    context: typer.Context,
    chain: Annotated[str, typer.Argument(metavar="CHAIN", help="A chain.", show_default=False)],
    as_json: AsJson = False,
) -> int:
    """Show how each pull request of a chain stands in its base, and what a person is asked."""
    this = front(context, as_json)
    answer = this.door.read("phase.status", {"chain": chain})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (row.get("unit"), row.get("pull"), row.get("state"), str(row.get("landed_as") or "")[:12], row.get("because"))
        for row in rows(answer.get("phases"))
    ]
    this.out.table(("unit", "pull request", "state", "landed as", "why"), told)
    if asks := answer.get("asks"):
        this.out.line(str(asks))
    return Exit.DONE


@worktree.command("list")
def listed(
    context: typer.Context,
    chain: Annotated[str | None, typer.Option("--chain", help="Only of this chain.", show_default=False)] = None,
    as_json: AsJson = False,
) -> int:
    """List worktrees, where they are, and why they are kept."""
    this = front(context, as_json)
    answer = this.door.read("worktree.list", {"chain": chain})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (row.get("id"), row.get("state"), shortened(row.get("task")), row.get("path"), row.get("because") or "")
        for row in rows(answer.get("worktrees"))
    ]
    this.out.table(("worktree", "state", "task", "where", "why"), told)
    return Exit.DONE


@worktree.command("remove")
def remove(
    context: typer.Context,
    given: Annotated[str, typer.Argument(metavar="WORKTREE", help="A worktree.", show_default=False)],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Take a worktree away if all of its work is committed and elsewhere; its branch stays."""
    this = front(context, as_json)
    answer = this.door.change("worktree.remove", {"worktree": given}, key)
    if this.out.as_json:
        return this.done(answer)
    state, why, path = (get(answer, "result", name) for name in ("state", "because", "path"))
    this.out.line(f"{state}: {why} ({path})")
    return Exit.DONE
