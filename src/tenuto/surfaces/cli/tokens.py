"""Tokens and the way in for a browser: `token` and `login`.

A token is printed once, to whoever asked for it, and never given on a command line. Nothing here prints the operator's
own token unless it is asked to.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import AsJson, Key, front
from tenuto.surfaces.cli.output import get, rows, shortened, since
from tenuto.surfaces.cli.work import amount

PANEL = "service"
commands = typer.Typer()
token = typer.Typer(help="The operator's token, and tokens for others.")
commands.add_typer(token, name="token", rich_help_panel=PANEL)


@token.callback(invoke_without_command=True)
def _token(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--show", help="Print the token itself, not where it lies.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print where the operator's token lies; with --show, the token."""
    if context.invoked_subcommand is not None:
        return Exit.DONE
    this = front(context, as_json)
    path = this.entrances.places.operator_token
    if not show:
        if this.out.as_json:
            this.out.document({"path": str(path), "exists": path.exists()})
        else:
            this.out.line(path)
        return Exit.DONE
    this.not_in_turn("read the operator's token")
    secret = this.door.operator_token()
    if not secret:
        raise Failure("not_found", f"there is no operator token yet at {path}", mend="tenuto start")
    if this.out.as_json:
        this.out.document({"path": str(path), "token": secret})
    else:
        this.out.line(secret)
    return Exit.DONE


@token.command("new")
def new(
    context: typer.Context,
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="operator, coordinator, agent or executor.")
    ] = "executor",
    name: Annotated[str, typer.Option("--name", help="What it is called.", show_default=False)] = "",
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="The task it speaks for.", show_default=False),
    ] = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="TIME", help="How long it lives, as in 8h.", show_default=False)
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Make a token and print it. It is told this once; who loses it revokes it and makes another."""
    this = front(context, as_json)
    this.not_in_turn("make tokens")
    params = {"role": role, "name": name, "task": task, "ttl": None if ttl is None else amount("ttl", ttl)}
    made = this.door.change("token.new", params, key)
    secret = get(made, "result", "secret")
    if secret is None:
        raise Failure(
            "conflict", "this key made a token before, which was told then and is told no more", mend="another key"
        )
    if this.out.as_json:
        this.out.document(made)
    else:
        this.out.line(secret)
        this.out.note(f"{get(made, 'result', 'name')}: it is not kept anywhere, and not told again")
    return Exit.DONE


@token.command("list")
def listed(context: typer.Context, as_json: AsJson = False) -> int:
    """List the tokens that were made by hand."""
    this = front(context, as_json)
    told = this.door.read("token.list", {})
    if this.out.as_json:
        this.out.document(told)
        return Exit.DONE
    now = this.entrances.now()
    found = [
        (
            row.get("name"),
            row.get("role"),
            shortened(row.get("task")) if row.get("task") else "",
            since(row.get("created_at"), now),
            "open" if row.get("open") else "revoked" if row.get("revoked_at") else "ran out",
        )
        for row in rows(told.get("tokens"))
    ]
    this.out.table(("name", "role", "task", "made", "state"), found)
    return Exit.DONE


@token.command("revoke")
def revoke(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name or identifier.")],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Take a token back."""
    this = front(context, as_json)
    this.not_in_turn("revoke tokens")
    return this.done(this.door.change("token.revoke", {"token": name}, key))


@token.command("rotate")
def rotate(context: typer.Context, as_json: AsJson = False) -> int:
    """Put a fresh operator's token in the place of the old one, which opens nothing from then on."""
    from tenuto.surfaces.http import auth

    this = front(context, as_json)
    this.not_in_turn("change the operator's token")
    path = this.entrances.places.operator_token
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    auth.rotate(path, this.entrances.fresh_key)
    if this.out.as_json:
        this.out.document({"rotated": True, "path": str(path)})
    else:
        this.out.line(f"changed: {path}")
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def login(context: typer.Context, as_json: AsJson = False) -> int:
    """Print a link that logs a browser in, once, within a minute."""
    this = front(context, as_json)
    this.not_in_turn("log in")
    told = this.door.login()
    link = told.get("link")
    if not link:
        raise Failure("not_found", "no port is served for a browser", mend="set 'port' in the configuration")
    if this.out.as_json:
        this.out.document(told)
    else:
        this.out.line(link)
    return Exit.DONE
