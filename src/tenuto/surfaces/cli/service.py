"""The supervisor as a service: start it, stop it, see how it stands, and the hold on everything.

A start is never made beside a living supervisor, and a stop waits until the lease is given back; neither touches work
that is under way.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from tenuto.surfaces.cli import glancing
from tenuto.surfaces.cli.client import Unreachable
from tenuto.surfaces.cli.entrances import AlreadyLed, Glance, NotSpawned, Spawned
from tenuto.surfaces.cli.exits import Exit, Failure, no_supervisor
from tenuto.surfaces.cli.front import AsJson, Front, front
from tenuto.surfaces.cli.glancing import PRESENT, told

PANEL = "service"
WITHIN = 20
LOOK_EVERY = 0.1
LOG_TAIL = 1024 * 1024
HUNG = "stale-alive"

commands = typer.Typer()
unit = typer.Typer(help="The supervisor as a service of this user: systemd or launchd.", no_args_is_help=True)
commands.add_typer(unit, name="service", rich_help_panel=PANEL)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Within = Annotated[int, typer.Option("--within", metavar="SECONDS", min=1, max=600, help="How long to wait at most.")]


@commands.command(rich_help_panel=PANEL)
def up(
    context: typer.Context,
    standby: Annotated[
        bool, typer.Option("--standby", help="While another supervisor leads, wait, and lead when nobody does.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run the supervisor here, in the foreground, until it is stopped."""
    this = front(context, as_json)
    this.not_in_turn("start a supervisor")
    code = this.entrances.run_supervisor_foreground(standby=standby)
    if this.out.as_json:
        this.out.document({"ended": code})
    return code


@commands.command(rich_help_panel=PANEL)
def start(context: typer.Context, within: Within = WITHIN, as_json: AsJson = False) -> int:
    """Start the supervisor in the background, unless one runs."""
    this = front(context, as_json)
    this.not_in_turn("start a supervisor")
    glance, fresh = started(this, within)
    if this.out.as_json:
        this.out.document({"started": fresh, **told(this.entrances, glance)})
    else:
        where = "" if glance.near else f" on {glance.host}"
        this.out.line(f"{'started' if fresh else 'it runs already'}: pid {glance.pid}{where}, epoch {glance.epoch}")
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def stop(context: typer.Context, within: Within = WITHIN, as_json: AsJson = False) -> int:
    """Stop the supervisor and wait until it has. Turns under way go on; nothing is cancelled."""
    this = front(context, as_json)
    this.not_in_turn("stop the supervisor")
    before = this.entrances.glance()
    after = stopped(this, before, within)
    if this.out.as_json:
        this.out.document({"stopped": before.standing in PRESENT, **told(this.entrances, after)})
    else:
        this.out.line(f"stopped: pid {before.pid}" if before.standing in PRESENT else "no supervisor runs")
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def restart(context: typer.Context, within: Within = WITHIN, as_json: AsJson = False) -> int:
    """Stop the supervisor, wait until it has, and start another."""
    this = front(context, as_json)
    this.not_in_turn("restart the supervisor")
    stopped(this, this.entrances.glance(), within)
    glance, _ = started(this, within)
    if this.out.as_json:
        this.out.document({"restarted": True, **told(this.entrances, glance)})
    else:
        this.out.line(f"restarted: pid {glance.pid}, epoch {glance.epoch}")
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def status(context: typer.Context, as_json: AsJson = False) -> int:
    """Tell how the supervisor stands; works without one, and quickly."""
    this = front(context, as_json)
    glancing.status(this.entrances, this.out)
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def logs(
    context: typer.Context,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=100_000, help="How many lines from the end.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print the end of the supervisor's log."""
    this = front(context, as_json)
    path = this.entrances.places.log
    found, offset = _tail(path, lines)
    if this.out.as_json and not follow:
        this.out.document({"log": str(path), "lines": found})
        return Exit.DONE
    if not found and not path.exists():
        this.out.note(f"there is no log yet: {path}")
    for line in found:
        _log_line(this, line)
    for line in _growing(path, offset) if follow else ():
        _log_line(this, line)
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def doctor(
    context: typer.Context,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask agent programs for their version too, and greet tool servers.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Look at everything Tenuto needs here and say how to mend what is wrong."""
    this = front(context, as_json)
    checks = this.entrances.doctor(probe=probe)
    failed = sum(check.ok is False for check in checks)
    if this.out.as_json:
        listed = [{"name": c.name, "ok": c.ok, "found": c.found, "mend": c.mend} for c in checks]
        this.out.document({"ok": not failed, "checks": listed})
        return Exit.FAILED if failed else Exit.DONE
    words = {True: "good", False: "BAD", None: "unknown"}
    this.out.table(("", "what", "found"), [(words[check.ok], check.name, check.found) for check in checks])
    for check in checks:
        if check.mend and check.ok is not True:
            this.out.line(f"mend {check.name}: {check.mend}")
    return Exit.FAILED if failed else Exit.DONE


@unit.command()
def install(context: typer.Context, dry_run: DryRun = False, yes: Yes = False, as_json: AsJson = False) -> int:
    """Have this user's service manager run the supervisor, and start it again after a crash."""
    return _service(context, "install", dry_run, yes, as_json)


@unit.command()
def remove(context: typer.Context, dry_run: DryRun = False, yes: Yes = False, as_json: AsJson = False) -> int:
    """Undo what install did. Registry, journals and configuration stay."""
    return _service(context, "remove", dry_run, yes, as_json)


def _service(context: typer.Context, act: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Show all that would be written and run; do it only when that was agreed to."""
    this = front(context, as_json)
    this.not_in_turn(f"{act} a service")
    plan = this.entrances.service_plan(act)
    if this.out.as_json:
        files = [{"path": str(path), "text": text} for path, text in plan.files]
        told_plan = {"kind": plan.kind, "files": files, "commands": [list(one) for one in plan.commands]}
        done = () if dry_run or not yes else this.entrances.carry_out(plan)
        this.out.document({**told_plan, "notes": list(plan.notes), "done": list(done)})
        return Exit.DONE if dry_run or yes else Exit.REFUSED
    for path, text in plan.files:
        this.out.line(f"{'remove' if text is None else 'write'} {path}")
        for line in (text or "").splitlines():
            this.out.line(f"    {line}")
    for command in plan.commands:
        this.out.line(f"run {' '.join(command)}")
    for note in plan.notes:
        this.out.note(note)
    if dry_run:
        return Exit.DONE
    if not yes and not (sys.stdin.isatty() and typer.confirm("Do this?")):
        raise Failure("refused", "nothing was done: say --yes", Exit.REFUSED, mend=f"tenuto service {act} --yes")
    for line in this.entrances.carry_out(plan):
        this.out.line(line)
    return Exit.DONE


@commands.command(rich_help_panel=PANEL)
def hold(context: typer.Context, as_json: AsJson = False) -> int:
    """Hold everything: nothing is continued anywhere until it is lifted."""
    this = front(context, as_json)
    return this.done(this.door.change("hold", {}))


@commands.command(rich_help_panel=PANEL)
def unhold(context: typer.Context, as_json: AsJson = False) -> int:
    """Lift the hold on everything."""
    this = front(context, as_json)
    return this.done(this.door.change("unhold", {}))


def started(this: Front, within: int) -> tuple[Glance, bool]:
    """A supervisor that leads, and whether it was started by this call. Raises Failure when none came up."""
    match this.entrances.spawn_supervisor_detached(timedelta(seconds=within)):
        case Spawned(glance):
            return glance, True
        case AlreadyLed(glance) if glance.standing == HUNG:
            raise hung(glance)
        case AlreadyLed(glance):
            return glance, False
        case NotSpawned(reason, log):
            raise Failure("failed", f"the supervisor did not start: {reason}", Exit.FAILED, mend=f"tenuto logs ({log})")


def stopped(this: Front, before: Glance, within: int) -> Glance:
    """The lease once whoever held it is gone. Raises Failure when it is still there after `within` seconds."""
    if before.standing not in PRESENT:
        return before
    try:
        this.door.change("stop", {})
    except Unreachable:
        if this.entrances.glance().standing in PRESENT:
            raise no_supervisor(f"pid {before.pid} on {before.host} holds the lease and does not answer") from None
    except Failure as failure:
        if failure.code == "unknown_outcome" and (glance := this.entrances.glance()).standing == HUNG:
            raise hung(glance) from None
        raise
    until = time.monotonic() + within
    while time.monotonic() < until:
        glance = this.entrances.glance()
        if glance.standing not in PRESENT or glance.epoch != before.epoch:
            return glance
        time.sleep(LOOK_EVERY)
    raise Failure(
        "timeout",
        f"it was asked to stop and is still there after {within} s: pid {before.pid}",
        Exit.UNKNOWN,
        mend="tenuto status, tenuto logs",
    )


def hung(glance: Glance) -> Failure:
    """The supervisor is there and does not do its work; nobody starts beside it, and its death costs nothing."""
    return Failure(
        "no_supervisor",
        f"pid {glance.pid} on {glance.host} leads but has not renewed its lease: it hangs, or its disk is full",
        mend=f"tenuto doctor; if it hangs: kill -9 {glance.pid}, then tenuto start",
    )


def _log_line(this: Front, line: str) -> None:
    if this.out.as_json:
        this.out.item({"line": line})
    else:
        this.out.line(line)


def _tail(path: Path, count: int) -> tuple[list[str], int]:
    """The last lines of a file, and where it ended; no more than LOG_TAIL bytes are read."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            begin = max(0, end - LOG_TAIL)
            file.seek(begin)
            raw = file.read(end - begin)
    except FileNotFoundError:
        return [], 0
    lines = raw.decode("utf-8", "replace").splitlines()
    if begin and lines:
        del lines[0]
    return lines[-count:], end


def _growing(path: Path, offset: int) -> Iterator[str]:
    """Lines as they are added, until interrupted; from the top again when the file was turned over."""
    held = b""
    while True:
        try:
            with path.open("rb") as file:
                end = file.seek(0, os.SEEK_END)
                if end < offset:
                    offset, held = 0, b""
                file.seek(offset)
                held += file.read(LOG_TAIL)
                offset = file.tell()
        except FileNotFoundError:
            offset, held = 0, b""
        *whole, held = held.split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
        time.sleep(0.25)
