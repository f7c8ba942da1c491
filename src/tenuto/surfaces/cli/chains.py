"""Chains of units: start, status, next, advance, sweep, stop; and what an agent says of its own unit.

Looking at a chain, at its next step or at all of its units changes nothing. A goal comes from a file or standard input.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, rows, shortened
from tenuto.surfaces.cli.running import words

PANEL = "chains"
commands = typer.Typer()
chain = typer.Typer(help="Units worked one task at a time.", no_args_is_help=True)
commands.add_typer(chain, name="chain", rich_help_panel=PANEL)

ChainArgument = Annotated[
    str, typer.Argument(metavar="CHAIN", help="A chain: whole, or its beginning or end.", show_default=False)
]


class Said(StrEnum):
    """What became of a unit."""

    DONE = "done"
    BLOCKED = "blocked"


class Method(StrEnum):
    """How a host merges."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


def _merging(where: str, gate: str | None, reviewer: str | None, playbook: str | None) -> dict[str, object]:
    """What is merged, where, and who looks at it before."""
    kind, colon, location = where.partition(":")
    if not colon or kind not in ("github", "git") or not location:
        raise Failure("mistake", "say where it is merged: github:OWNER/NAME or git:REMOTE", field="--merge-at")
    if gate is None:
        raise Failure("mistake", "name what has to end with 0 before anything is merged", field="--gate")
    by = None if reviewer is None else {"argv": words(reviewer, "--reviewer"), "resumable": True}
    return {"forge": kind, "location": location, "gate": words(gate, "--gate"), "reviewer": by, "playbook": playbook}


@chain.command("start")
def start(
    context: typer.Context,
    repo: Annotated[
        str, typer.Option("--repo", help="The repository, as host/owner/name or a URL.", show_default=False)
    ],
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="The goal; - reads standard input.", show_default=False),
    ] = None,
    queue: Annotated[Path | None, typer.Option("--queue", help="Units in a JSON file.", show_default=False)] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="A list of units, with its log.", show_default=False)
    ] = None,
    units: Annotated[
        str | None, typer.Option("--units", metavar="NAME", help="Units of a configured database.", show_default=False)
    ] = None,
    github: Annotated[
        str | None, typer.Option("--github", metavar="OWNER/NAME", help="Issues on GitHub.", show_default=False)
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            "--select", metavar="WHICH", help="Which: label:NAME, search:WORDS or issues:1,2.", show_default=False
        ),
    ] = None,
    selector: Annotated[str, typer.Option("--selector", help="Which of the units are meant, in words.")] = "all",
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="'CMD ARGS'", help="What runs a turn of every unit.", show_default=False),
    ] = None,
    resumable: Annotated[
        bool, typer.Option("--resumable", help="With --program: it may be run again after it was cut short.")
    ] = False,
    playbook: Annotated[
        str | None, typer.Option("--playbook", metavar="NAME", help="How every unit is done.", show_default=False)
    ] = None,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", metavar="DIR", help="Where it works.", show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="NAME", help="What is authorised.", show_default=False)
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option("--deny", metavar="NAME", help="What is not.", show_default=False)
    ] = None,
    attempt_cap: Annotated[int, typer.Option("--attempt-cap", help="Attempts per unit, 1 to 20.")] = 10,
    max_units: Annotated[int | None, typer.Option("--max-units", help="Units done.", show_default=False)] = None,
    max_tasks: Annotated[int | None, typer.Option("--max-tasks", help="Tasks made.", show_default=False)] = None,
    max_hours: Annotated[float | None, typer.Option("--max-hours", help="Since the start.", show_default=False)] = None,
    worktrees: Annotated[
        bool, typer.Option("--worktrees", help="A fresh git worktree of --cwd for every unit.")
    ] = False,
    phases: Annotated[
        bool, typer.Option("--phases", help="A unit counts when its pull request has landed; with worktrees.")
    ] = False,
    base: Annotated[
        str | None, typer.Option("--base", metavar="BRANCH", help="Where worktrees begin.", show_default=False)
    ] = None,
    remote: Annotated[str, typer.Option("--remote", metavar="NAME", help="The remote of the base.")] = "origin",
    merge_at: Annotated[
        str | None,
        typer.Option(
            "--merge-at",
            metavar="WHERE",
            help="Merge what is done: github:OWNER/NAME, or git:REMOTE. With --allow merge.",
            show_default=False,
        ),
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option("--gate", metavar="'CMD ARGS'", help="What has to end with 0 before.", show_default=False),
    ] = None,
    reviewer: Annotated[
        str | None,
        typer.Option("--reviewer", metavar="'CMD ARGS'", help="What reviews before.", show_default=False),
    ] = None,
    reviewer_playbook: Annotated[
        str | None, typer.Option("--reviewer-playbook", metavar="NAME", help="Or how.", show_default=False)
    ] = None,
    reviews: Annotated[
        int | None, typer.Option("--reviews", help="Reviews that one unit may take.", show_default=False)
    ] = None,
    merge_method: Annotated[Method, typer.Option("--merge-method", help="How it is merged.")] = Method.MERGE,
    merge_asked: Annotated[bool, typer.Option("--merge-asked", help="Merge only when `tenuto merge` is said.")] = False,
    branches: Annotated[
        str | None,
        typer.Option("--branches", metavar="PREFIX", help="What its branches begin with.", show_default=False),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="A name for it.", show_default=False)] = "",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Begin a chain and its first task. One of the caps is needed."""
    this = front(context, as_json)
    places = {"queue": queue, "log": log, "sql": units, "github": github}
    named = {kind: place for kind, place in places.items() if place is not None}
    if len(named) != 1:
        raise Failure("mistake", "name one source of units: --queue, --log, --units or --github", field="--queue")
    ((kind, place),) = named.items()
    agent = None if program is None else {"argv": words(program, "--program"), "resumable": resumable}
    params = {
        "goal": texts.read(file, "goal", "--file"),
        "repo": repo,
        "selector": selector,
        "source": {
            "kind": kind,
            "location": str(place.absolute()) if isinstance(place, Path) else place,
            "query": select,
        },
        "merging": None
        if merge_at is None
        else _merging(merge_at, gate, reviewer, reviewer_playbook)
        | {
            "mode": "asked" if merge_asked else "self",
            "method": merge_method.value,
            "base": base,
            "branches": branches,
            "reviews": reviews,
        },
        "cwd": str((cwd or Path()).absolute()),
        "title": title,
        "agent": agent,
        "playbook": playbook,
        "authorization": dict.fromkeys(allow or (), True) | dict.fromkeys(deny or (), False),
        "attempt_cap": attempt_cap,
        "max_units": max_units,
        "max_tasks": max_tasks,
        "max_life": None if max_hours is None else max_hours * 3600,
        "worktrees": worktrees,
        "phases": phases,
        "base": base,
        "remote": remote,
    }
    made = this.door.change("chain.start", params, key)
    if this.out.as_json:
        this.out.document(made)
        return Exit.DONE
    this.out.line(get(made, "result", "chain"))
    return Exit.DONE


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
