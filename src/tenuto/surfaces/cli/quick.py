"""`tenuto status` without the command parser: the same answer, in a third of the time."""

from __future__ import annotations

from tenuto.surfaces.cli import glancing
from tenuto.surfaces.cli.ending import ended
from tenuto.surfaces.cli.entrances import Entrances
from tenuto.surfaces.cli.output import Out


def main(entrances: Entrances, *, as_json: bool) -> int:
    """Print how the supervisor stands; the exit code."""
    out = Out(as_json)
    return ended(out, lambda: glancing.status(entrances, out))
