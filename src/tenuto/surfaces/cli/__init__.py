"""The command line: every verb of the operator and of an agent in its turn, as a program of the shell.

It decides what is said, how it is laid out and which exit code a script sees. It refuses to hold any rule of its own:
verbs are the supervisor's, reached over its socket, and what lies outside a face comes in through `Entrances`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tenuto.surfaces.cli.entrances import Entrances

QUICK = (["status"], ["status", "--json"])
"""What is answered without the command parser, whose import alone takes as long as the answer."""


def main(entrances: Entrances, arguments: Sequence[str] | None = None) -> NoReturn:
    """Carry out one command line (sys.argv when None) and end the process with its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in QUICK:
        from tenuto.surfaces.cli import quick

        raise SystemExit(quick.main(entrances, as_json="--json" in given))
    from tenuto.surfaces.cli import app

    raise SystemExit(app.main(entrances, given))
