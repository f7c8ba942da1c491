"""Chains of units: list, status, next, advance, sweep, stop; and what an agent says of its own unit.

Looking at a chain, at its next step or at all of its units changes nothing. How one is begun: `chainstart`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tenuto.surfaces.cli.chainstart import chain
from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, rows, shortened

PANEL = "chains"
commands = typer.Typer()
commands.add_typer(chain, name="chain", rich_help_panel=PANEL)

ChainArgument = Annotated[
    str, typer.Argument(metavar="CHAIN", help="A chain: whole, or its beginning or end.", show_default=False)
]


class Said(StrEnum):
    """What became of a unit."""

    DONE = "done"
    BLOCKED = "blocked"


@chain.command("list")
def listed(
    context: typer.Context,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Only those that are open.")] = False,
    as_json: AsJson = False,
) -> int:
    """List chains, newest first."""
    this = front(context, as_json)
    answer = this.door.read("chain.list", {"unfinished": unfinished})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (row.get("id"), row.get("state"), row.get("processed"), row.get("repo"), row.get("because") or "")
        for row in rows(answer.get("chains"))
    ]
    this.out.table(("chain", "state", "done", "repository", "why"), told)
    return Exit.DONE


@chain.command("status")
def status(context: typer.Context, given: ChainArgument, as_json: AsJson = False) -> int:
    """Show how a chain stands, which task has which unit, and why it waits."""
    this = front(context, as_json)
    answer = this.door.read("chain.status", {"chain": given})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    this.out.line(f"{get(answer, 'chain', 'state')}: {get(answer, 'next', 'because')}")
    if because := get(answer, "chain", "because"):
        this.out.line(str(because))
    told = [
        (row.get("position"), row.get("unit"), row.get("attempt"), shortened(row.get("task")), row.get("outcome") or "")
        for row in rows(answer.get("links"))
    ]
    this.out.table(("position", "unit", "attempt", "task", "outcome"), told)
    found = [(row.get("unit"), row.get("what"), row.get("evidence")) for row in rows(answer.get("units"))]
    this.out.table(("unit", "stands", "evidence"), found)
    if asks := get(answer, "chain", "asks"):
        this.out.line(str(asks))
    return Exit.DONE


@chain.command("next")
def next_(context: typer.Context, given: ChainArgument, as_json: AsJson = False) -> int:
    """Show what the next step would be, with its prompt; nothing is done."""
    this = front(context, as_json)
    answer = this.door.read("chain.next", {"chain": given})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    this.out.line(f"{answer.get('standing')}: {answer.get('because')}")
    notes = answer.get("notes")
    for note in notes if isinstance(notes, list) else ():
        this.out.line(str(note))
    if answer.get("prompt"):
        this.out.line(str(answer.get("prompt")))
    return Exit.DONE


@chain.command("advance")
def advance(context: typer.Context, given: ChainArgument, key: Key = None, as_json: AsJson = False) -> int:
    """Make the next step now, also after a person stopped a unit's task."""
    this = front(context, as_json)
    return this.done(this.door.change("chain.advance", {"chain": given}, key))


@chain.command("sweep")
def sweep(context: typer.Context, given: ChainArgument, as_json: AsJson = False) -> int:
    """List every unit with the evidence that decides; nothing is put right."""
    this = front(context, as_json)
    answer = this.door.read("chain.sweep", {"chain": given})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [(row.get("unit"), row.get("what"), row.get("evidence")) for row in rows(answer.get("units"))]
    this.out.table(("unit", "stands", "evidence"), told)
    return Exit.DONE


@chain.command("stop")
def stop(
    context: typer.Context,
    given: ChainArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, in a line.", show_default=False)] = "",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """End a chain: no further unit is begun. Its task goes on, and what it comes to is recorded."""
    this = front(context, as_json)
    return this.done(this.door.change("chain.stop", {"chain": given, "reason": reason}, key))


@chain.command("handoff")
def handoff(
    context: typer.Context,
    outcome: Annotated[Said, typer.Option("--outcome", help="What became of the unit.", show_default=False)],
    task: TaskArgument = None,
    evidence: Annotated[
        str | None, typer.Option("--evidence", help="A reference that somebody else can look up.", show_default=False)
    ] = None,
    tracked_by: Annotated[str | None, typer.Option("--tracked-by", help="Who follows it.", show_default=False)] = None,
    blocked_on: Annotated[str | None, typer.Option("--blocked-on", help="What it needs.", show_default=False)] = None,
    resume_when: Annotated[str | None, typer.Option("--resume-when", help="Until when.", show_default=False)] = None,
    pull: Annotated[
        int | None, typer.Option("--pr", metavar="NUMBER", help="What is to be merged.", show_default=False)
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="Its branch, where it has no number.", show_default=False)
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Record a task's unit as done or blocked, and give the next unit to its successor: once, however often asked."""
    this = front(context, as_json)
    params = {
        "task": this.task(task),
        "outcome": outcome.value,
        "evidence": evidence,
        "tracked_by": tracked_by,
        "blocked_on": blocked_on,
        "resume_when": resume_when,
        "pull": pull,
        "branch": branch,
    }
    return this.done(this.door.change("chain.handoff", params, key))
