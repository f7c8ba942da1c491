"""The verbs of work: make it, look at it, pause it, answer it, end it.

Nothing is decided here: each command gathers its parameters, calls its verb, and prints what that came to. Durations
and counts are checked where they are used, by the verb.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from tenuto.surfaces.cli import account, texts
from tenuto.surfaces.cli.door import Answer
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Front, Key, TaskArgument, WorkArgument, front
from tenuto.surfaces.cli.output import get, local, rows, shortened

PANEL = "work"
commands = typer.Typer()
policy = typer.Typer(help="The numbers by which a task or a run is kept going.", no_args_is_help=True)
commands.add_typer(policy, name="policy", rich_help_panel=PANEL)

Unfinished = Annotated[bool, typer.Option("--unfinished", help="Leave out what has ended.")]
TextFile = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE", help="The text's file; - reads standard input.", show_default=False),
]


@commands.command(rich_help_panel=PANEL)
def runs(context: typer.Context, unfinished: Unfinished = False, as_json: AsJson = False) -> int:
    """List runs, newest first."""
    this = front(context, as_json)
    answer = this.door.read("run.list", {"unfinished": unfinished})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (row.get("id"), row.get("state"), row.get("auto_resume"), local(row.get("created_at")), row.get("title"))
        for row in rows(answer.get("runs"))
    ]
    this.out.table(("run", "state", "auto-resume", "made", "title"), told)
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def tasks(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Of this run only.", show_default=False)
    ] = None,
    unfinished: Unfinished = False,
    as_json: AsJson = False,
) -> int:
    """List tasks, newest first, each with how it stands."""
    this = front(context, as_json)
    answer = this.door.read("task.list", {"run": run, "unfinished": unfinished})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (
            shortened(row.get("id")) if this.out.drawn else row.get("id"),
            row.get("state"),
            str(get(row, "health", "value") or "unknown").replace("_", " "),
            row.get("attempts"),
            row.get("text"),
            row.get("title"),
        )
        for row in rows(answer.get("tasks"))
    ]
    this.out.table(("task", "state", "health", "turns", "standing", "title"), told)
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def show(
    context: typer.Context,
    work: Annotated[str | None, typer.Argument(metavar="ID", help="A task or a run.", show_default=False)] = None,
    as_json: AsJson = False,
) -> int:
    """Show everything about a task, or a run with its tasks."""
    this = front(context, as_json)
    named = this.task(work)
    if named.strip().lower().startswith("r-"):
        answer, draw = this.door.read("run.show", {"run": named}), account.run
    else:
        try:
            answer, draw = this.door.read("task.show", {"task": named}), account.task
        except Failure as failure:
            if failure.code != "not_found" or this.in_turn:
                raise
            answer, draw = _run(this, named), account.run
    if draw is account.task and not this.in_turn:
        answer = {**answer, **this.door.read("policy.show", {"task": str(get(answer, "task", "id"))})}
    if this.out.as_json:
        this.out.document(answer)
    else:
        draw(this.out, answer, this.entrances.now())
    return Exit.DONE


def _run(this: Front, named: str) -> Answer:
    try:
        return this.door.read("run.show", {"run": named})
    except Failure as failure:
        if failure.code != "not_found":
            raise
        raise Failure("not_found", f"there is no task and no run '{named}'", mend="tenuto tasks, tenuto runs") from None


@commands.command(rich_help_panel=PANEL)
def coordinate(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run.")],
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="Its coordinator; none: it has none.", show_default=False)
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Make a task its run's coordinator: it is told what the other tasks come to, and may read about them."""
    this = front(context, as_json)
    return this.done(this.door.change("run.coordinate", {"run": run, "coordinator": task}, key))


@commands.command(rich_help_panel=PANEL)
def pause(context: typer.Context, work: WorkArgument, key: Key = None, as_json: AsJson = False) -> int:
    """Stop future automatic continuation; a turn under way goes on to its end."""
    this = front(context, as_json)
    return this.done(this.door.change("task.pause", {"task": work}, key))


@commands.command(rich_help_panel=PANEL)
def resume(
    context: typer.Context,
    work: WorkArgument,
    stalled: Annotated[bool, typer.Option("--stalled", help="Also clear the pause for no progress.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Clear the operator's pause."""
    this = front(context, as_json)
    return this.done(this.door.change("task.resume", {"task": work, "stalled": stalled}, key))


@commands.command("continue", rich_help_panel=PANEL)
def continue_(
    context: typer.Context,
    task: TaskArgument = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Pass a stall, a dependency or a spent budget, once.")
    ] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Ask for one more turn."""
    this = front(context, as_json)
    return this.done(this.door.change("task.continue", {"task": this.task(task), "anyway": anyway}, key))


@commands.command(rich_help_panel=PANEL)
def cancel(
    context: typer.Context,
    work: WorkArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, in a line.", show_default=False)] = "",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Stop a task for good, or a run with all its tasks."""
    this = front(context, as_json)
    return this.done(this.door.change("task.cancel", {"task": work, "reason": reason}, key))


@commands.command(rich_help_panel=PANEL)
def wait(
    context: typer.Context,
    task: TaskArgument = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="human, permission, limit, task, path, commit, time or children.",
            show_default=False,
        ),
    ] = None,
    question: Annotated[str, typer.Option("--question", help="What is asked, in a line.", show_default=False)] = "",
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="A task, a path, 'REF into BRANCH', or names of children that it waits for.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="An instant with its offset.", show_default=False)
    ] = None,
    children: Annotated[
        str | None,
        typer.Option(
            "--children", metavar="any|all", help="Until any or all of its children have ended.", show_default=False
        ),
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Record a durable reason not to continue. It does not make this shell wait."""
    this = front(context, as_json)
    if children is not None:
        kind, on = "children", f"{children} {on or ''}".strip()
    params = {
        "task": this.task(task),
        "kind": kind or ("time" if until else "human"),
        "question": question,
        "on": on,
        "until": until,
    }
    return this.done(this.door.change("task.wait", params, key))


@commands.command(rich_help_panel=PANEL)
def answer(
    context: typer.Context,
    task: TaskArgument = None,
    file: TextFile = None,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="WAIT", help="Which question, where there are several.", show_default=False),
    ] = None,
    allow: Annotated[bool, typer.Option("--allow", help="Yes, this once, to what it asks leave for.")] = False,
    allow_for_task: Annotated[
        bool, typer.Option("--allow-for-task", help="Yes, to this very thing whenever the task asks again.")
    ] = False,
    deny: Annotated[bool, typer.Option("--deny", help="No; words from --file are told along with it.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Answer a task's open question; the task goes on with the answer."""
    this = front(context, as_json)
    named = this.task(task)
    chosen = [word for word, said in (("allow", allow), ("allow_task", allow_for_task), ("deny", deny)) if said]
    if len(chosen) > 1:
        raise Failure("mistake", "--allow, --allow-for-task and --deny exclude each other")
    params: dict[str, object] = {"task": named, "wait": wait}
    if chosen:
        params["verdict"] = chosen[0]
    if not chosen or file is not None:
        params["answer"] = texts.read(file, "answer", "--file")
    return this.done(this.door.change("task.answer", params, key))


@commands.command(rich_help_panel=PANEL)
def complete(
    context: typer.Context,
    evidence: Annotated[
        str, typer.Option("--evidence", help="What proves it: a commit, a file, an address.", show_default=False)
    ],
    task: TaskArgument = None,
    summary: Annotated[str, typer.Option("--summary", help="A line about it.", show_default=False)] = "",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """End a task as complete; from an agent in its turn, a claim that is checked."""
    this = front(context, as_json)
    params = {"task": this.task(task), "evidence": evidence, "summary": summary}
    return this.done(this.door.change("task.complete", params, key))


@commands.command(rich_help_panel=PANEL)
def fail(
    context: typer.Context,
    reason: Annotated[str, typer.Option("--reason", help="Why, in a line.", show_default=False)],
    task: TaskArgument = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """End a task as failed."""
    this = front(context, as_json)
    return this.done(this.door.change("task.fail", {"task": this.task(task), "reason": reason}, key))


@commands.command(rich_help_panel=PANEL)
def report(
    context: typer.Context, task: TaskArgument = None, file: TextFile = None, key: Key = None, as_json: AsJson = False
) -> int:
    """Record a progress report: lines of 'name: value'; a value goes on in lines that begin with a space."""
    this = front(context, as_json)
    named = this.task(task)
    lines = report_lines(texts.read(file, "report", "--file"))
    return this.done(this.door.change("task.report", {"task": named, "lines": lines}, key))


@policy.command("show")
def policy_show(context: typer.Context, work: WorkArgument, as_json: AsJson = False) -> int:
    """Show every number in force, and where it comes from. Durations are in seconds."""
    this = front(context, as_json)
    told = this.door.read("policy.show", {"task": work})
    if this.out.as_json:
        this.out.document(told)
        return Exit.DONE
    found = rows(told.get("policy"))
    this.out.table(
        ("number", "value", "from"),
        [(str(row.get("name")).replace("_", "-"), _number(row.get("value")), row.get("source")) for row in found],
    )
    return Exit.DONE


@policy.command("set")
def policy_set(
    context: typer.Context,
    work: WorkArgument,
    changes: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="max-attempts=20, idle-delay=30s, auto-resume=manual.")
    ],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Override numbers of a task (auto-resume, max-attempts) or of a run (any)."""
    this = front(context, as_json)
    params = {"task": work, "changes": {name: _amount(value) for name, value in pairs(changes, "NAME=VALUE")}}
    return this.done(this.door.change("policy.set", params, key))


def pairs(given: Sequence[str], what: str) -> list[tuple[str, str]]:
    """Names and values of NAME=VALUE words; raises Failure for anything else, and for a name that comes twice."""
    told: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise Failure("mistake", f"'{word}' is not of the form {what}")
        if name.strip() in told:
            raise Failure("mistake", f"{name.strip()} is given twice")
        told[name.strip()] = value.strip()
    return list(told.items())


_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|d)")
_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def _amount(value: str) -> str:
    """A number as it is; a duration such as 90s, 20min or 4h in seconds; anything else as it is."""
    found = _SPAN.fullmatch(value)
    return f"{float(found[1]) * _SECONDS[found[2]]:.15g}" if found else value


def amount(name: str, value: str) -> float:
    """A policy number from words; raises Failure naming it."""
    try:
        return float(_amount(value))
    except ValueError:
        raise Failure(
            "mistake", f"{name} must be a number, or a duration such as 90s, 20min or 4h", field=name
        ) from None


def report_lines(body: str) -> list[dict[str, str]]:
    """The lines of a report; raises Failure for a line that has no name."""
    lines: list[dict[str, str]] = []
    for raw in body.splitlines():
        if not raw.strip():
            continue
        if raw[0] in " \t" and lines:
            lines[-1]["value"] += "\n" + raw.strip()
            continue
        name, colon, value = raw.partition(":")
        if not colon or not name.strip():
            raise Failure("mistake", f"a report has lines of 'name: value'; this is none: {raw[:80]}", field="--file")
        lines.append({"name": name.strip(), "value": value.strip()})
    if not lines:
        raise Failure("mistake", "the report is empty", field="--file")
    return lines


def _number(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return "none" if value is None else value
