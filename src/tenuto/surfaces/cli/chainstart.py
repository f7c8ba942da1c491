"""`tenuto chain start`: what is worked, by whom, within which bounds, and how it is merged.

The options fall into the groups below; each group becomes one part of the request. Exactly one source of units is
named, and a place to merge at needs its gate; what else belongs together is for the supervisor to say.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Key, front
from tenuto.surfaces.cli.output import get
from tenuto.surfaces.cli.running import words

chain = typer.Typer(help="Units worked one task at a time.", no_args_is_help=True)


class Method(StrEnum):
    """How a host merges."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


def option(flag: str, told: str, metavar: str | None = None) -> typer.models.OptionInfo:
    """An option with no default worth showing."""
    info: typer.models.OptionInfo = typer.Option(flag, help=told, metavar=metavar, show_default=False)
    return info


# Where the units come from.
Queue = Annotated[Path | None, option("--queue", "Units in a JSON file.")]
Log = Annotated[Path | None, option("--log", "A list of units, with its log.")]
Units = Annotated[str | None, option("--units", "Units of a configured database.", "NAME")]
GitHub = Annotated[str | None, option("--github", "Issues on GitHub.", "OWNER/NAME")]
Select = Annotated[str | None, option("--select", "Which: label:NAME, search:WORDS or issues:1,2.", "WHICH")]

# Who works them, and where.
Program = Annotated[str | None, option("--program", "What runs a turn of every unit.", "'CMD ARGS'")]
Playbook = Annotated[str | None, option("--playbook", "How every unit is done.", "NAME")]
Where = Annotated[Path | None, option("--cwd", "Where it works.", "DIR")]
Allowed = Annotated[list[str] | None, option("--allow", "What is authorised.", "NAME")]
Denied = Annotated[list[str] | None, option("--deny", "What is not.", "NAME")]
Base = Annotated[str | None, option("--base", "Where worktrees begin.", "BRANCH")]

# How it is merged.
MergeAt = Annotated[
    str | None,
    option("--merge-at", "Merge what is done: github:OWNER/NAME, or git:REMOTE. With --allow merge.", "WHERE"),
]
Gate = Annotated[str | None, option("--gate", "What has to end with 0 before.", "'CMD ARGS'")]
Reviewer = Annotated[str | None, option("--reviewer", "What reviews before.", "'CMD ARGS'")]
ReviewerPlaybook = Annotated[str | None, option("--reviewer-playbook", "Or how.", "NAME")]
Reviews = Annotated[int | None, option("--reviews", "Reviews that one unit may take.")]
Branches = Annotated[str | None, option("--branches", "What its branches begin with.", "PREFIX")]


def _source(places: dict[str, Path | str | None], select: str | None) -> dict[str, object]:
    """The one source that is named."""
    named = {kind: place for kind, place in places.items() if place is not None}
    if len(named) != 1:
        raise Failure("mistake", "name one source of units: --queue, --log, --units or --github", field="--queue")
    ((kind, place),) = named.items()
    location = str(place.absolute()) if isinstance(place, Path) else place
    return {"kind": kind, "location": location, "query": select}


def _place(where: str) -> dict[str, object]:
    """The forge, and the place in it."""
    kind, _, location = where.partition(":")
    if kind not in ("github", "git") or not location:
        raise Failure("mistake", "say where it is merged: github:OWNER/NAME or git:REMOTE", field="--merge-at")
    return {"forge": kind, "location": location}


def _gate(gate: str | None) -> list[str]:
    """What has to hold before anything is merged."""
    if gate is None:
        raise Failure("mistake", "name what has to end with 0 before anything is merged", field="--gate")
    return words(gate, "--gate")


def _agent(program: str | None, flag: str, resumable: bool) -> dict[str, object] | None:
    return None if program is None else {"argv": words(program, flag), "resumable": resumable}


@chain.command("start")
def start(
    context: typer.Context,
    repo: Annotated[str, option("--repo", "The repository, as host/owner/name or a URL.")],
    file: Annotated[str | None, option("--file", "The goal; - reads standard input.", "FILE")] = None,
    queue: Queue = None,
    log: Log = None,
    units: Units = None,
    github: GitHub = None,
    select: Select = None,
    selector: Annotated[str, typer.Option("--selector", help="Which of the units are meant, in words.")] = "all",
    program: Program = None,
    resumable: Annotated[
        bool, typer.Option("--resumable", help="With --program: it may be run again after it was cut short.")
    ] = False,
    playbook: Playbook = None,
    cwd: Where = None,
    allow: Allowed = None,
    deny: Denied = None,
    attempt_cap: Annotated[int, typer.Option("--attempt-cap", help="Attempts per unit, 1 to 20.")] = 10,
    max_units: Annotated[int | None, option("--max-units", "Units done.")] = None,
    max_tasks: Annotated[int | None, option("--max-tasks", "Tasks made.")] = None,
    max_hours: Annotated[float | None, option("--max-hours", "Since the start.")] = None,
    worktrees: Annotated[
        bool, typer.Option("--worktrees", help="A fresh git worktree of --cwd for every unit.")
    ] = False,
    phases: Annotated[
        bool, typer.Option("--phases", help="A unit counts when its pull request has landed; with worktrees.")
    ] = False,
    base: Base = None,
    remote: Annotated[str, typer.Option("--remote", metavar="NAME", help="The remote of the base.")] = "origin",
    merge_at: MergeAt = None,
    gate: Gate = None,
    reviewer: Reviewer = None,
    reviewer_playbook: ReviewerPlaybook = None,
    reviews: Reviews = None,
    merge_method: Annotated[Method, typer.Option("--merge-method", help="How it is merged.")] = Method.MERGE,
    merge_asked: Annotated[bool, typer.Option("--merge-asked", help="Merge only when `tenuto merge` is said.")] = False,
    branches: Branches = None,
    title: Annotated[str, option("--title", "A name for it.")] = "",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Begin a chain and its first task. One of the caps is needed."""
    this = front(context, as_json)
    source = _source({"queue": queue, "log": log, "sql": units, "github": github}, select)
    merging: dict[str, object] | None = None
    if merge_at is not None:
        merging = _place(merge_at) | {
            "gate": _gate(gate),
            "reviewer": _agent(reviewer, "--reviewer", resumable=True),
            "playbook": reviewer_playbook,
            "mode": "asked" if merge_asked else "self",
            "method": merge_method.value,
            "base": base,
            "branches": branches,
            "reviews": reviews,
        }
    params = {
        "goal": texts.read(file, "goal", "--file"),
        "repo": repo,
        "selector": selector,
        "source": source,
        "merging": merging,
        "cwd": str((cwd or Path()).absolute()),
        "title": title,
        "agent": _agent(program, "--program", resumable),
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
