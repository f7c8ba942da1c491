"""Merging: what a chain hands in and what holds it up, the merge itself, a reviewer's verdict, and the kill switch.

Nothing is merged but through the gates that the supervisor keeps; `--dry` tells them and does nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tenuto.surfaces.cli import texts
from tenuto.surfaces.cli.chains import ChainArgument
from tenuto.surfaces.cli.chainstart import chain
from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Key, TaskArgument, front
from tenuto.surfaces.cli.output import get, rows, shortened

PANEL = "chains"
commands = typer.Typer()
review = typer.Typer(help="Reviews of what a chain hands in.", no_args_is_help=True)
commands.add_typer(review, name="review", rich_help_panel=PANEL)


class Said(StrEnum):
    """What a reviewer comes to."""

    PASS = "pass"  # noqa: S105 - a verdict
    BLOCK = "block"


class Way(StrEnum):
    """Whether chains may advance themselves."""

    ON = "on"
    OFF = "off"


@commands.command("merge", rich_help_panel=PANEL)
def merge(
    context: typer.Context,
    given: ChainArgument,
    dry: Annotated[bool, typer.Option("--dry", help="Tell every gate that does not hold; do nothing.")] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Merge what a chain has handed in, if every gate holds; else say which does not."""
    this = front(context, as_json)
    if not dry:
        return this.done(this.door.change("chain.merge", {"chain": given}, key))
    answer = this.door.read("chain.gates", {"chain": given})
    if this.out.as_json:
        this.out.document(answer)
        return Exit.DONE
    if stopped := answer.get("stopped"):
        this.out.line(str(stopped))
    pull = get(answer, "proposal", "pull")
    if pull is None:
        this.out.line("nothing is handed in")
        return Exit.DONE
    head, unit = get(answer, "proposal", "head"), get(answer, "proposal", "unit")
    this.out.line(f"pull request {pull} of unit {unit} at {head}: {get(answer, 'proposal', 'state')}")
    told = [
        (row.get("number"), str(row.get("head"))[:12], row.get("verdict") or "under way", shortened(row.get("task")),
         row.get("findings") or "")
        for row in rows(answer.get("reviews"))
    ]  # fmt: skip
    this.out.table(("review", "commit", "verdict", "task", "findings"), told)
    found = [(row.get("gate"), row.get("because"), row.get("change")) for row in rows(answer.get("held"))]
    this.out.table(("gate", "why it does not hold", "what would change that"), found)
    return Exit.DONE


@review.command("verdict")
def verdict(
    context: typer.Context,
    said: Annotated[Said, typer.Option("--say", help="What it comes to.", show_default=False)],
    head: Annotated[str, typer.Option("--head", metavar="COMMIT", help="The commit, whole.", show_default=False)],
    task: TaskArgument = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="The findings; - reads standard input.", show_default=False),
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Say of the commit under review that it passes, or what has to change. Only the reviewer's own turn may."""
    this = front(context, as_json)
    findings = "" if file is None else texts.read(file, "findings", "--file")
    params = {"task": this.task(task), "verdict": said.value, "head": head, "findings": findings}
    return this.done(this.door.change("review.verdict", params, key))


@chain.command("self-advancing")
def self_advancing(
    context: typer.Context,
    way: Annotated[Way, typer.Argument(metavar="on|off", help="Let them, or stop all of them.", show_default=False)],
    key: Key = None,
    as_json: AsJson = False,
) -> int:
    """Stop every merge and every new unit of chains that advance themselves, or let them go on."""
    this = front(context, as_json)
    return this.done(this.door.change("chain.self-advancing", {"on": way is Way.ON}, key))
