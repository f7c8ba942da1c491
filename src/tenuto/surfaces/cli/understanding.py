"""Why nothing happens, what waits for a person, and what happened.

Reading verbs: they work without a supervisor and say so on stderr.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from tenuto.surfaces.cli import account
from tenuto.surfaces.cli.edges import Edges
from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Front, TaskArgument, front
from tenuto.surfaces.cli.output import local, rows, shortened, since

PANEL = "understanding"
PAGE = 1000
Event = Mapping[str, object]
commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def explain(
    context: typer.Context,
    task: TaskArgument = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="What was decided until then: an instant with its offset.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say why a task is not being continued now, and what would change that."""
    this = front(context, as_json)
    answer = this.door.read("task.explain", {"task": this.task(task), "at": at})
    if this.out.as_json:
        this.out.document(answer)
    else:
        account.explained(this.out, answer, this.entrances.now())
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def attention(context: typer.Context, as_json: AsJson = False) -> int:
    """List what only a person can settle, oldest first, each with the command that settles it."""
    this = front(context, as_json)
    answer = this.door.read("attention", {})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    items = rows(answer.get("items"))
    if not items:
        this.out.line("nothing needs a person")
    now = this.entrances.now()
    for item in items:
        this.out.heading(f"{item.get('kind')}: {item.get('question')}")
        this.out.pairs(
            [("task", item.get("task")), ("since", since(item.get("since"), now)), ("do", item.get("mend"))], "  "
        )
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def events(
    context: typer.Context,
    task: Annotated[
        str | None, typer.Option("--task", metavar="TASK", help="Of this task.", show_default=False)
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Of this run.", show_default=False)] = None,
    after: Annotated[
        int | None, typer.Option("--after", min=0, help="Those after this number.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=PAGE, help="How many at most.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as things happen.")] = False,
    as_json: AsJson = False,
) -> int:
    """Tell what happened: the newest, or those after a number."""
    this = front(context, as_json)
    which = {"task": task, "run": run}
    if after is None:
        found, last = _newest(this, which, limit)
    else:
        answer = this.door.read("events", {**which, "after": str(after), "limit": limit})
        found, last = rows(answer.get("events")), _last(answer, after)
    if this.out.as_json and not follow:
        this.out.document({"events": found, "last": last})
        return Exit.DONE
    for event in found:
        _tell(this, event)
    if not follow:
        return Exit.DONE
    with Edges(this.door, {**which, "after": str(last)}) as edges:
        while True:
            answer = this.door.read("events", {**which, "after": str(last), "limit": PAGE})
            page = rows(answer.get("events"))
            for event in page:
                _tell(this, event)
            last = _last(answer, last)
            if len(page) < PAGE:
                edges.wait()


def _newest(this: Front, which: Mapping[str, object], limit: int) -> tuple[list[Event], int]:
    """The last `limit` events and the number of the last: pages are read to the end, only the newest are kept."""
    kept: list[Event] = []
    after = 0
    while True:
        answer = this.door.read("events", {**which, "after": str(after), "limit": PAGE})
        page = rows(answer.get("events"))
        kept = [*kept, *page][-limit:]
        after = _last(answer, after)
        if len(page) < PAGE:
            return kept, after


def _last(answer: Mapping[str, object], before: int) -> int:
    last = answer.get("last")
    return last if isinstance(last, int) else before


def _tell(this: Front, event: Event) -> None:
    if this.out.as_json:
        this.out.item(event)
        return
    subject = shortened(event.get("task") or event.get("run") or "")
    this.out.line(f"{event.get('n')}  {local(event.get('at'))}  {subject:<10}  {event.get('text')}")
