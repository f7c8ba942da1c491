"""Texts that a person or an agent gives to a verb: from a file, or from standard input as `-`.

Never from the arguments, which every user of the machine can read in the process table. A text that is too large or is
not UTF-8 is refused by name before anything is sent.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from tenuto.surfaces.cli.exits import Failure

MOST = 1024 * 1024
"""Most bytes that are read of a text; what a verb takes may be less."""


def read(source: str | None, what: str, option: str, stdin: BinaryIO | None = None) -> str:
    """The text in the file `source`, or on standard input for `-`, or for None when something is piped in.

    Raises Failure naming `option` when there is none, it cannot be read, is too large or is not UTF-8.
    """
    if source is None:
        if stdin is None and sys.stdin.isatty():
            raise Failure("mistake", f"the {what} is missing", mend=f"{option} FILE, or {option} - to read it here")
        source = "-"
    raw = _piped(stdin) if source == "-" else _file(source, what, option)
    if len(raw) > MOST:
        raise Failure("mistake", f"the {what} is larger than {MOST} bytes", field=option)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Failure("mistake", f"the {what} is not UTF-8 text", field=option) from None


def _piped(stdin: BinaryIO | None) -> bytes:
    return (stdin or sys.stdin.buffer).read(MOST + 1)


def _file(source: str, what: str, option: str) -> bytes:
    try:
        with Path(source).open("rb") as file:
            return file.read(MOST + 1)
    except OSError as error:
        raise Failure("mistake", f"the {what} cannot be read: {error.strerror}: {source}", field=option) from None
