"""The program `tenuto`: its commands, and how each of them ends.

Parsing has no effect and help has none. Every failure becomes one line with its mend and an exit code of the table;
only a fault of ours shows a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from tenuto import __version__
from tenuto.surfaces.cli import (
    adopting,
    agents,
    chains,
    executors,
    extension,
    hooks,
    hosting,
    importing,
    merging,
    outside,
    phases,
    proofs,
    running,
    service,
    sites,
    spawning,
    supervision,
    tokens,
    understanding,
    waiting,
    watching,
    words,
    work,
)
from tenuto.surfaces.cli.ending import ended
from tenuto.surfaces.cli.entrances import Entrances
from tenuto.surfaces.cli.exits import Exit, Failure
from tenuto.surfaces.cli.front import Front, front
from tenuto.surfaces.cli.output import Out

GROUPS = ("service", "work", "understanding", "words", "chains", "supervision", "outside", "proof")
"""The order in which help lists commands; a command's group is its `rich_help_panel`."""

SENTENCE = 200
"""How long the first sentence of a command's help may be before it is cut, in characters."""

# Typer brings its parser along in a private place; what a mistake of use is, its public BadParameter says.
_MISUSE = cast(type[Exception], typer.BadParameter.__mro__[1])


class Grouped(TyperGroup):
    """Lists commands under the names of their groups, in plain text."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group that has commands."""
        found = [(name, self.commands[name]) for name in self.list_commands(ctx) if not self.commands[name].hidden]
        widest = max((len(name) for name, _ in found), default=0)
        for group in GROUPS:
            told = [
                (name.ljust(widest), command.get_short_help_str(SENTENCE))
                for name, command in found
                if getattr(command, "rich_help_panel", None) == group
            ]
            if told:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(told)


program = typer.Typer(
    name="tenuto",
    cls=Grouped,
    help="Keeps long-running work by AI agents going until it is done, and never sends the same turn twice.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong use, 3 no supervisor, 4 refused, 5 conflict, 6 unknown outcome, "
    "7 unsupported version, 8 waiting for a person, 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
ROOMS = (
    *(service, tokens, hosting, running, spawning, work),
    *(understanding, words, chains, phases, merging, supervision, executors, waiting, watching),
    *(agents, adopting, importing, hooks, extension, sites, outside, proofs),
)
for room in ROOMS:
    program.add_typer(room.commands)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tenuto {__version__}")
        raise typer.Exit


@program.callback()
def _everywhere(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Another configuration.", show_default=False)
    ] = None,
    db: Annotated[
        str | None, typer.Option("--db", metavar="URL", help="Another registry: a path or a URL.", show_default=False)
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    """Choose the registry, before any command."""
    if config is not None or db is not None:
        this = front(context)
        this.entrances = this.entrances.chosen(config=config, db=db)


def main(entrances: Entrances, arguments: Sequence[str]) -> int:
    """Carry out one command line, without the program's name, and return its exit code."""
    out = Out("--json" in arguments)
    this = Front(entrances, out)
    command = typer.main.get_command(program)

    def act() -> object:
        try:
            return command(args=list(arguments), prog_name="tenuto", standalone_mode=False, obj=this)
        except _MISUSE as misuse:
            return _misused(out, misuse)
        except typer.Abort:
            return Exit.DETACHED

    return ended(out, act)


def _misused(out: Out, misuse: Exception) -> int:
    """A mistake of use; asking for nothing at all shows the help."""
    context: Any = getattr(misuse, "ctx", None)
    if type(misuse).__name__ == "NoArgsIsHelpError":
        out.line(context.get_help())
        return Exit.WRONG_USE
    where = context.command_path if context is not None else "tenuto"
    said = str(cast(Any, misuse).format_message()).strip().rstrip(".")
    out.fail(Failure("mistake", said[:1].lower() + said[1:], Exit.WRONG_USE, mend=f"{where} --help"))
    return Exit.WRONG_USE
