"""Evidence and who holds a task: look, tell what was seen elsewhere, plan a send, send one, pass the lease on.

Looking works without a supervisor. A send names its task twice, the second time whole, so that nothing is sent to a
task that was only half remembered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.door import Answer
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Front, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, local, rows, shortened, since

PANEL = "supervision"
commands = typer.Typer()
dispatch = typer.Typer(help="One send: what it would come to, and sending it.", no_args_is_help=True)
tool = typer.Typer(help="Sessions of tool servers that work for tasks.", no_args_is_help=True)
job = typer.Typer(help="Background jobs of a task's tool sessions.", no_args_is_help=True)
lease = typer.Typer(help="Who may act for a task now.", no_args_is_help=True)
page = typer.Typer(help="Pages of browsers that are watched from outside for tasks.", no_args_is_help=True)
for group, name in ((dispatch, "dispatch"), (tool, "tool"), (page, "page"), (job, "job"), (lease, "lease")):
    commands.add_typer(group, name=name, rich_help_panel=PANEL)

Place = Annotated[
    str, typer.Argument(metavar="CONVERSATION", help="A place: whole, or its beginning or end.", show_default=False)
]
Server = Annotated[str, typer.Option("--server", metavar="NAME", help="The tool server.")]


@commands.command(rich_help_panel=PANEL)
def observe(
    context: typer.Context,
    task: TaskArgument = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="Observations of others, as JSON; - reads them here.",
                     show_default=False),
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:  # fmt: skip
    """Judge a task's evidence now; with --file, keep what somebody else saw: it is shown and decides no send."""
    this = front(context, as_json)
    named = this.task(task)
    if file is None:
        return _evidence(this, this.door.read("observe.list", {"task": named}))
    try:
        told = json.loads(texts.read(file, "observations", "--file"))
    except ValueError:
        raise Failure("mistake", "the observations are no JSON", field="--file") from None
    told = told.get("observations") if isinstance(told, dict) else told
    if not isinstance(told, list):
        raise Failure("mistake", "the observations are no list", field="--file")
    answer = this.door.change("observe.import", {"task": named, "observations": told}, key)
    if this.out.as_json:
        this.out.document(answer)
    else:
        this.out.line(f"{answer.get('taken')} kept, {answer.get('known')} known already")
    return Exit.DONE


def _evidence(this: Front, answer: Answer) -> int:
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    now = this.entrances.now()
    health = answer.get("health")
    this.out.heading(f"{get(health, 'value')} ({get(health, 'confidence')}, row {get(health, 'row')})")
    clocks = answer.get("clocks")
    told = clocks.items() if isinstance(clocks, dict) else ()
    this.out.pairs(
        [
            ("because", get(health, "why")),
            ("do", get(health, "mend")),
            *((f"{name.replace('_', ' ')}", since(moment, now)) for name, moment in told if moment is not None),
        ],
        "  ",
    )
    for flaw in rows(answer.get("flaws")):
        this.out.line(f"  {flaw.get('flaw')} (rank {flaw.get('rank')}): {flaw.get('subject')}: {flaw.get('why')}")
    for watched in rows(answer.get("pages")):
        this.out.line(f"  page {watched.get('url')} by {watched.get('by')}: {_page(watched)}")
    seen = [
        (local(row.get("seen_at")), row.get("rank"), row.get("source"), row.get("subject"), _facts(row.get("facts")))
        for row in rows(answer.get("observations"))[:12]
    ]
    if seen:
        this.out.table(("seen", "rank", "source", "subject", "facts"), seen)
    return Exit.DONE


def _page(watched: Mapping[str, object]) -> str:
    """How a page stands that is watched, in a few words."""
    shown = {None: "nobody could look", False: "no window shows it", True: f"in {watched.get('window') or 'a window'}"}
    busy = {None: "unknown whether it generates", False: "still", True: "generating"}
    told = [shown.get(_truth(watched.get("shown")), "")]
    if watched.get("shown"):
        told.append(busy[_truth(watched.get("generating"))])
        if watched.get("requests") is not None:
            told.append(f"{watched.get('requests')} requests under way, {watched.get('streams')} streams")
    return ", ".join(told)


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _facts(told: object) -> str:
    return ", ".join(f"{name}={value}" for name, value in told.items()) if isinstance(told, dict) else ""


@commands.command(rich_help_panel=PANEL)
def reconcile(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """Look at everything of a task and record the look; two that agree allow what one does not."""
    this = front(context, as_json)
    answer = this.door.change("reconcile", {"task": this.task(task)}, None)
    if not this.out.as_json:
        this.out.line(answer.get("text"))
        for finding in _list(answer.get("findings")):
            this.out.line(f"  {finding}")
        this.out.line(f"  fence {str(answer.get('fence'))[:16]} over {len(_list(answer.get('members')))} members")
        return Exit.DONE
    this.out.document(answer)
    return Exit.DONE


def _list(told: object) -> list[object]:
    return told if isinstance(told, list) else []


@dispatch.command("plan")
def dispatch_plan(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """Show every rung that a send would meet now. Nothing is done."""
    this = front(context, as_json)
    answer = this.door.read("dispatch.plan", {"task": this.task(task)})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    this.out.line(answer.get("text"))
    for rung in rows(answer.get("rungs")):
        held = get(rung, "because", "sentence")
        this.out.line(
            f"  {'holds' if rung.get('holds') else '  -  '}  {rung.get('rung')}" + (f": {held}" if held else "")
        )
    this.out.pairs([("would", answer.get("intent")), ("fence", answer.get("fence"))], "  ")
    return Exit.DONE


@dispatch.command("execute")
def dispatch_execute(
    context: typer.Context,
    task: TaskArgument = None,
    confirm: Annotated[
        str, typer.Option("--confirm-task", metavar="ID", help="The same task, whole.", show_default=False)
    ] = "",
    fence: Annotated[
        str | None, typer.Option("--fence", metavar="DIGEST", help="The fence of the plan.", show_default=False)
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Send one fenced turn of a task. A rung that holds refuses it."""
    this = front(context, as_json)
    named = this.task(task)
    if not confirm:
        raise Failure(
            "mistake", "confirm the task by naming it whole", mend="--confirm-task ID", field="--confirm-task"
        )
    return this.done(
        this.door.change("dispatch.execute", {"task": named, "confirm_task": confirm, "fence": fence}, key)
    )


@commands.command(rich_help_panel=PANEL)
def orchestrate(
    context: typer.Context,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", help="The tasks to consider; all unfinished ones.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Plan which task would be served next, and say why not the others. Nothing is done."""
    this = front(context, as_json)
    answer = this.door.read("orchestrate", {"tasks": ",".join(tasks or ())})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    this.out.line(answer.get("text"))
    told = [
        (
            shortened(row.get("task")) if this.out.drawn else row.get("task"),
            local(row.get("last_served_at")),
            get(row, "because", "sentence") or "could be served",
        )
        for row in rows(answer.get("considered"))
    ]
    this.out.table(("task", "last served", "standing"), told)
    return Exit.DONE


@tool.command("list")
def tool_list(
    context: typer.Context,
    cwd: Annotated[
        str | None, typer.Option("--cwd", metavar="DIR", help="Look in this directory too.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the sessions of the tool servers that are known here."""
    this = front(context, as_json)
    answer = this.door.read("tool.list", {"cwd": cwd})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (
            row.get("server"),
            row.get("session"),
            row.get("state") or "unread",
            get(row, "plan", "state"),
            len(rows(row.get("calls"))),
            sum(one.get("state") == "running" for one in rows(row.get("jobs"))),
            local(row.get("active_at")),
        )
        for row in rows(answer.get("sessions"))
    ]
    this.out.table(("server", "session", "state", "plan", "calls", "jobs", "active"), told)
    return Exit.DONE


@tool.command("bind")
def tool_bind(
    context: typer.Context,
    task: TaskArgument = None,
    session: Annotated[
        str, typer.Option("--session", metavar="ID", help="The session, whole.", show_default=False)
    ] = "",
    server: Server = "local",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Let a session of a tool server count for a task: its calls and jobs hold what they must."""
    this = front(context, as_json)
    params = {"task": this.task(task), "session": session, "server": server}
    return this.done(this.door.change("tool.bind", params, key))


@tool.command("unbind")
def tool_unbind(
    context: typer.Context,
    task: TaskArgument = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session; all of them.", show_default=False)
    ] = None,
    server: Server = "local",
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Let a session of a tool server not count any more."""
    this = front(context, as_json)
    params = {"task": this.task(task), "session": session, "server": server}
    return this.done(this.door.change("tool.unbind", params, key))


Witness = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="The witness, as `page_witnesses` calls it.",
                             show_default=False)
]  # fmt: skip
WindowOption = Annotated[
    str | None, typer.Option("--window", metavar="ID", help="Only this window, as `page list` calls it.",
                             show_default=False)
]  # fmt: skip


@page.command("list")
def page_list(context: typer.Context, as_json: AsJson = False) -> int:
    """List the pages that witnesses see now, each with its window."""
    this = front(context, as_json)
    answer = this.door.read("page.list", {})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [(get(row, "by"), get(row, "window"), row.get("program"), row.get("pid"), row.get("url"))
            for row in rows(answer.get("pages"))]  # fmt: skip
    this.out.table(("by", "window", "program", "pid", "address"), told)
    unasked = answer.get("unasked")
    for why in unasked if isinstance(unasked, list) else []:
        this.out.line(f"not asked: {why}")
    return Exit.DONE


@page.command("watch")
def page_watch(
    context: typer.Context,
    task: TaskArgument = None,
    url: Annotated[str, typer.Option("--url", metavar="URL", help="Its exact address.", show_default=False)] = "",
    by: Witness = None,
    window: WindowOption = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Let what a witness sees of a page count for a task: while it generates, nothing is sent."""
    this = front(context, as_json)
    params = {"task": this.task(task), "url": url, "by": by or "", "window": window}
    return this.done(this.door.change("page.watch", params, key))


@page.command("unwatch")
def page_unwatch(
    context: typer.Context,
    task: TaskArgument = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Its address; all of them.", show_default=False)
    ] = None,
    by: Witness = None,
    window: WindowOption = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Let a page not count any more."""
    this = front(context, as_json)
    params = {"task": this.task(task), "url": url, "by": by, "window": window}
    return this.done(this.door.change("page.unwatch", params, key))


@job.command("list")
def job_list(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """List the background jobs of a task's tool sessions."""
    this = front(context, as_json)
    answer = this.door.read("job.list", {"task": this.task(task)})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (
            row.get("id"),
            row.get("state"),
            "service" if row.get("service") else "",
            row.get("exit_code"),
            row.get("server"),
        )
        for row in rows(answer.get("jobs"))
    ]
    this.out.table(("job", "state", "", "exit", "server"), told)
    return Exit.DONE


@job.command("mark-service")
def job_mark_service(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task.", show_default=False)],
    given: Annotated[str, typer.Argument(metavar="JOB", help="The job, whole.", show_default=False)],
    unmark: Annotated[bool, typer.Option("--unmark", help="Take the mark back.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Say that a job is meant to run for ever, and so holds nothing."""
    this = front(context, as_json)
    return this.done(this.door.change("job.mark-service", {"task": task, "job": given, "unmark": unmark}, key))


@lease.command("list")
def lease_list(context: typer.Context, task: TaskArgument = None, as_json: AsJson = False) -> int:
    """List the places of a task, and who holds it."""
    this = front(context, as_json)
    answer = this.door.read("lease.list", {"task": this.task(task)})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    told = [
        (row.get("id"), row.get("state"), row.get("lease_number"), local(row.get("expires_at")), row.get("identity"))
        for row in rows(answer.get("conversations"))
    ]
    this.out.table(("conversation", "state", "lease", "expires", "place"), told)
    return Exit.DONE


@lease.command("register")
def lease_register(
    context: typer.Context,
    task: TaskArgument = None,
    identity: Annotated[
        str, typer.Option("--identity", metavar="NAME", help="What the outside calls the place.", show_default=False)
    ] = "",
    executor: Annotated[
        str | None, typer.Option("--executor", metavar="NAME", help="What reaches it.", show_default=False)
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Make a place of a task known. It holds nothing yet."""
    this = front(context, as_json)
    params = {"task": this.task(task), "identity": identity, "executor": executor}
    answer = this.door.change("lease.register", params, key)
    if not this.out.as_json:
        this.out.line(get(answer, "result", "conversation"))
        return Exit.DONE
    return this.done(answer)


def _placed(context: typer.Context, verb: str, task: str, place: str, key: str | None, as_json: bool) -> int:
    this = front(context, as_json)
    return this.done(this.door.change(verb, {"task": task, "conversation": place}, key))


Task = Annotated[str, typer.Argument(metavar="TASK", help="A task.", show_default=False)]


@lease.command("claim")
def lease_claim(context: typer.Context, task: Task, place: Place, key: Key = None, as_json: AsJson = False) -> int:
    """Take a lease that nobody holds, or that this place held until it ran out."""
    return _placed(context, "lease.claim", task, place, key, as_json)


@lease.command("heartbeat")
def lease_heartbeat(
    context: typer.Context,
    task: Task,
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The lease's number.", show_default=False)],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Prolong a lease that has not run out."""
    this = front(context, as_json)
    return this.done(this.door.change("lease.heartbeat", {"task": task, "lease_number": number}, key))


@lease.command("handoff")
def lease_handoff(context: typer.Context, task: Task, place: Place, key: Key = None, as_json: AsJson = False) -> int:
    """Name the candidate that may take the lease over before it runs out."""
    return _placed(context, "lease.handoff", task, place, key, as_json)


@lease.command("takeover")
def lease_takeover(
    context: typer.Context,
    task: Task,
    place: Place,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="The tool server's own run is seen to; pass our lease alone.")
    ] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Pass the lease to another place, after two looks that agree and while nothing of the old one acts.

    Where the tool server fences its runs, it is made to give the session to a new one first, through its own tools.
    """
    this = front(context, as_json)
    params = {"task": task, "conversation": place, "by_hand": by_hand}
    answer = this.door.change("lease.takeover", params, key)
    if not this.out.as_json:
        this.out.line(f"the old place is fenced by {get(answer, 'result', 'outside')}")
    open_still = get(answer, "result", "state") in ("armed", "submitted", "ambiguous")
    return Exit.UNKNOWN if open_still else this.done(answer)


@lease.command("abandon")
def lease_abandon(context: typer.Context, task: Task, place: Place, key: Key = None, as_json: AsJson = False) -> int:
    """Give up a place. The task goes on without it."""
    return _placed(context, "lease.abandon", task, place, key, as_json)
