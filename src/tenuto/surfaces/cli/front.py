"""What every command is given: the way outside, the two streams, and the door to the verbs.

Opened once per process and not before a command needs it, so that help and mistakes of spelling touch nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

import typer

from tenuto.surfaces.cli.door import Answer, Door
from tenuto.surfaces.cli.entrances import Entrances
from tenuto.surfaces.cli.exits import Failure
from tenuto.surfaces.cli.output import Out, get, rows

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.", show_default=False)]
TaskArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK", help="A task: whole, or 4 or more characters of its beginning or end.", show_default=False
    ),
]
WorkArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A task or a run: whole, or its beginning or end.", show_default=False)
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="Idempotency key: the same call with the same key is done once.",
        show_default=False,
    ),
]


class Front:
    """One invocation of the program."""

    def __init__(self, entrances: Entrances, out: Out) -> None:
        self.entrances = entrances
        self.out = out

    @cached_property
    def door(self) -> Door:
        """The verbs."""
        return Door(self.entrances, self.out.note)

    @property
    def in_turn(self) -> bool:
        """Whether this is a turn of an agent: then only its own token is used."""
        return bool(self.entrances.environment.get("TENUTO_TOKEN"))

    def task(self, given: str | None) -> str:
        """The task that is named, or in a turn the task of the turn."""
        named = given or self.entrances.environment.get("TENUTO_TASK")
        if not named:
            raise Failure("mistake", "name a task", mend="tenuto tasks", field="TASK")
        return named

    def not_in_turn(self, what: str) -> None:
        """Refuse what an agent has no business with."""
        if self.in_turn:
            raise Failure("refused", f"an agent in its turn does not {what}", mend="the operator does")

    def done(self, answer: Answer) -> int:
        """Print what a verb did."""
        if self.out.as_json:
            self.out.document(answer)
            return 0
        self.out.line(answer.get("text") or "done")
        for effect in rows(answer.get("effects")):
            if effect.get("because"):
                self.out.line(f"  {effect.get('task')}: {get(effect, 'because', 'sentence')}")
        return 0


def front(context: typer.Context, as_json: bool = False) -> Front:
    """The invocation a command belongs to; from here on it speaks JSON if it was asked to."""
    found = context.find_object(Front)
    if found is None:
        raise RuntimeError("a command was called outside of tenuto.surfaces.cli.app.main")
    if as_json:
        found.out.as_json = True
    return found
