"""Import what another program left unfinished, or worktrees that somebody made: shown first, and done when asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tenuto.model.foreign import Item, Source
from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Front, Key, front
from tenuto.surfaces.cli.output import get, rows, shortened
from tenuto.surfaces.cli.running import words

PANEL = "outside"
commands = typer.Typer()

#: How many pieces of work are sent with one request.
AT_ONCE = 100


@commands.command("import", rich_help_panel=PANEL)
def import_(
    context: typer.Context,
    source: Annotated[
        Path,
        typer.Option("--from", metavar="PATH", help="A registry's file, or a directory with one.", show_default=False),
    ],
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", metavar="[ADAPTER:]'CMD ARGS'", help="What is to work on all of it.", show_default=False
        ),
    ] = None,
    objective_file: Annotated[
        str | None,
        typer.Option("--objective-file", metavar="FILE", help="What is to be done in worktrees.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Only this piece; may be repeated.", show_default=False),
    ] = None,
    server: Annotated[
        str, typer.Option("--tool-server", metavar="NAME", help="How the tool server of its sessions is called here.")
    ] = "local",
    resumable: Annotated[bool, typer.Option("--resumable", help="The program may be run again after any end.")] = False,
    do: Annotated[bool, typer.Option("--do", help="Do it. Without this it is shown what would be done.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Make paused, manual tasks of what another program left unfinished. Shows first; the source is only read.

    Recognised by content: registries of CWS, the tasks of Kookr, SQLite tables and JSON lists whose rows have a name,
    an objective, a directory and a state, and the worktrees of a repository. What may have been sent there is not
    taken.
    """
    this = front(context, as_json)
    this.not_in_turn("import")
    objective = texts.read(objective_file, "objective", "--objective-file") if objective_file is not None else None
    found = _chosen(this.entrances.foreign(source.absolute(), objective), only)
    if not do:
        return _shown(this, found)
    if agent is None:
        raise Failure("mistake", "say what is to work on it with --agent", field="--agent")
    adapter, colon, line = agent.partition(":")
    program = not colon or not adapter.isidentifier()
    worked = {
        "adapter": "program" if program else adapter,
        "argv": words(agent if program else line, "--agent"),
        "resumable": resumable or not program,
    }
    told: list[dict[str, Any]] = []
    for one in found:
        for start in range(0, len(one.items), AT_ONCE):
            told += _sent(this, one, one.items[start : start + AT_ONCE], worked, server, key, len(told))
    if not told:
        raise Failure("mistake", "there is nothing in it that could be imported", mend="tenuto import --from PATH")
    if this.out.as_json:
        this.out.document({"items": told, "left": _left(found)})
        return Exit.DONE
    listed = [(row["origin"], shortened(str(row["task"])) if row["task"] else "", row["why"] or "") for row in told]
    this.out.table(("there", "task", ""), listed)
    made = sum(1 for row in told if row["task"] and not row["why"])
    this.out.note(f"{made} imported, each paused and manual: tenuto resume, then tenuto continue")
    return Exit.DONE


def _sent(
    this: Front, one: Source, items: Sequence[Item], worked: object, server: str, key: str | None, before: int
) -> list[dict[str, Any]]:
    params = {
        "source": one.name,
        "items": [_item(item) for item in items],
        "agent": worked,
        "server": server,
        "title": f"imported: {Path(one.path).name}"[:200],
    }
    answer = this.door.change("import", params, f"{key}-{before}" if key is not None else None)
    return [
        {"origin": get(row, "origin"), "task": get(row, "task"), "why": get(row, "why")}
        for row in rows(get(answer, "result", "items"))
    ]


def _item(item: Item) -> dict[str, Any]:
    return {
        "origin": item.origin,
        "objective": item.objective,
        "cwd": item.cwd,
        "state": item.state or "?",
        "title": item.title,
        "place": item.place,
        "session": item.session,
        "facts": dict(item.facts),
        "seen_at": item.seen_at.isoformat() if item.seen_at is not None else None,
    }


def _chosen(found: Sequence[Source], only: Sequence[str] | None) -> list[Source]:
    """What is wanted of it; naming something that is not there is a mistake."""
    if not only:
        return list(found)
    known = {item.origin for one in found for item in one.items}
    if missing := [name for name in only if name not in known]:
        raise Failure("mistake", f"there is nothing to import that is called {missing[0]}", field="--only")
    return [
        Source(
            one.path,
            one.kind,
            one.name,
            tuple(item for item in one.items if item.origin in only),
            one.left,
            one.unread,
        )
        for one in found
    ]


def _left(found: Sequence[Source]) -> list[dict[str, Any]]:
    return [{"origin": left.origin, "why": left.why, "over": left.over} for one in found for left in one.left]


def _shown(this: Front, found: Sequence[Source]) -> int:
    """What would be done; nothing is."""
    if this.out.as_json:
        listed = [
            {
                "path": one.path,
                "kind": one.kind,
                "items": [_item(item) for item in one.items],
                "left": _left([one]),
                "unread": list(one.unread),
            }
            for one in found
        ]
        this.out.document({"sources": listed})
        return Exit.DONE
    for one in found:
        this.out.line(f"{one.path}: {one.kind or 'not recognised'}")
        if one.items:
            this.out.table(
                ("would be imported", "state there", "directory"),
                [(item.origin, item.state, item.cwd) for item in one.items],
            )
        if one.left:
            kept = [(left.origin, left.why) for left in one.left if not left.over]
            over = len(one.left) - len(kept)
            if kept:
                this.out.table(("is left there", "because"), kept)
            if over:
                this.out.line(f"{over} are over there")
        for unread in one.unread:
            this.out.line(f"not taken: {unread}")
    this.out.note("nothing was done; tenuto import --do makes paused, manual tasks of these")
    return Exit.DONE
