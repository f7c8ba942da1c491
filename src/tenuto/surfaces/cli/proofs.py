"""The program shows what it promises: a demonstration, the crash matrix, a simulation and a bench of this machine.

Each works in a place of its own and leaves the operator's registry alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli.entrances import Proof
from tenuto.surfaces.cli.exits import Exit
from tenuto.surfaces.cli.front import AsJson, Front, front

PANEL = "proof"
commands = typer.Typer()
database = typer.Typer(help="The registry's database: bring it up to date, check it, back it up.", no_args_is_help=True)
commands.add_typer(database, name="db", rich_help_panel="outside")


@commands.command(rich_help_panel=PANEL)
def demo(
    context: typer.Context,
    keep: Annotated[bool, typer.Option("--keep", help="Leave its directory to look at.")] = False,
    as_json: AsJson = False,
) -> int:
    """See a task survive a kill -9, in a place of its own, in about a minute."""
    this = front(context, as_json)
    return told(this, this.entrances.demo(keep=keep, say=_progress(this)))


@commands.command("crash-matrix", rich_help_panel=PANEL)
def crash_matrix(
    context: typer.Context,
    points: Annotated[int, typer.Option(min=0, max=1_000_000, help="How many kill points; 0: every one once.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="What chance begins from.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="How many at a time.")] = 2,
    only: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One case by its name, as a report tells it.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Kill at every step of every path, restart, and count what the world saw."""
    this = front(context, as_json)
    say = _progress(this)
    return told(this, this.entrances.crash_matrix(points=points, seed=seed, jobs=jobs, only=only, say=say))


@commands.command(rich_help_panel=PANEL)
def simulate(
    context: typer.Context,
    seed: Annotated[int, typer.Option(min=0, help="What chance begins from; the same seed, the same world.")] = 1,
    tasks: Annotated[int, typer.Option(min=1, max=10_000, help="How many tasks live at a time.")] = 20,
    days: Annotated[float, typer.Option(min=0.05, max=10_000, help="For how many days.")] = 5.0,
    worlds: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many seeds, from the first on.")] = 1,
    turns_a_day: Annotated[
        float, typer.Option("--turns-a-day", min=0.01, max=48, help="About how many turns a task takes on a day.")
    ] = 3.0,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="How many worlds at a time.")] = 2,
    as_json: AsJson = False,
) -> int:
    """Live through days of faults in a simulated world and check every promise after every step."""
    this = front(context, as_json)
    say = _progress(this)
    proof = this.entrances.simulate(
        seed=seed, tasks=tasks, days=days, worlds=worlds, turns_a_day=turns_a_day, jobs=jobs, say=say
    )
    return told(this, proof)


@commands.command(rich_help_panel=PANEL)
def bench(
    context: typer.Context,
    seconds: Annotated[int, typer.Option(min=1, max=3600, help="About how long to measure.")] = 20,
    as_json: AsJson = False,
) -> int:
    """Measure this machine."""
    this = front(context, as_json)
    return told(this, this.entrances.bench(seconds=seconds, say=_progress(this)))


@database.command()
def upgrade(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Bring an older registry here from elsewhere.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Carry the registry to this version's schema; refused while a supervisor leads."""
    if source is not None:
        return _database(context, "bring", source, as_json)
    return _database(context, "upgrade", None, as_json)


@database.command()
def restore(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.", show_default=False)],
    as_json: AsJson = False,
) -> int:
    """Put a backup in the registry's place; what was there is renamed. Refused while a supervisor leads."""
    return _database(context, "restore", source, as_json)


@database.command()
def archive(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, compressed.", show_default=False)],
    as_json: AsJson = False,
) -> int:
    """Write down the events that will be forgotten; changes nothing in the registry."""
    return _database(context, "archive", target, as_json)


@database.command()
def move(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="An empty database; passwords belong in ~/.pgpass.", show_default=False)
    ],
    as_json: AsJson = False,
) -> int:
    """Move the registry from its file into PostgreSQL. Refused while a supervisor leads."""
    this = front(context, as_json)
    this.not_in_turn("touch the registry")
    return told(this, this.entrances.move(url, _progress(this)))


@database.command()
def check(context: typer.Context, as_json: AsJson = False) -> int:
    """Read the whole registry and say whether it is sound; changes nothing."""
    return _database(context, "check", None, as_json)


@database.command()
def backup(
    context: typer.Context,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Where to; without it, beside the registry.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write a consistent copy, also while a supervisor runs."""
    return _database(context, "backup", target, as_json)


def _database(context: typer.Context, act: str, target: Path | None, as_json: bool) -> int:
    this = front(context, as_json)
    this.not_in_turn("touch the registry's file")
    return told(this, this.entrances.database(act, target, _progress(this)))


def _progress(this: Front) -> Callable[[str], None]:
    """Takes lines of progress: shown where somebody watches, left out in a script's way."""

    def say(text: str) -> None:
        if this.out.watched:
            this.out.note(text)

    return say


def told(this: Front, proof: Proof) -> int:
    """Print what it came to; the exit code says whether it held."""
    if this.out.as_json:
        this.out.document({"ok": proof.ok, "summary": proof.summary, **proof.result})
    else:
        for line in proof.lines:
            this.out.line(line)
        this.out.line(proof.summary)
    return Exit.DONE if proof.ok else Exit.FAILED
