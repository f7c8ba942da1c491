"""Puts the rooms together: the one place that knows them all, and the entry of the command line."""

from __future__ import annotations


def main() -> None:
    """The `tenuto` command."""
    from tenuto.surfaces.cli import main as command_line
    from tenuto.wiring.entrances import RealEntrances

    command_line(RealEntrances())
