"""Finds the commands that a sentence tells a person to give, and has the program's own parser try them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import typer

from tenuto.surfaces.cli import app

#: A word of a command as a mend spells it: a verb, an option, a place for something, or what stands for it.
_WORD = r"(?:[a-z][\w.-]*|--?[a-z-]+|[A-Z][A-Z_]*|\d+)"
#: What a mend says before a command; anywhere else the name is the program's and no command.
_BEFORE = r"(?:^|[:;,(`'\"] ?|\b(?:then|or|see|try|with|by|and|ask) )"
#: What a mistake of use is, of which typer shows a kind.
_MISUSE = cast(type[Exception], typer.BadParameter.__mro__[1])
PROGRAM: Any = typer.main.get_command(app.program)
_COMMAND = re.compile(rf"{_BEFORE}tenuto ({_WORD}(?: {_WORD})*)")


def commands(text: str) -> list[list[str]]:
    """The commands that a text tells to give, each as its words without the program's name."""
    return [found.split() for found in _COMMAND.findall(text)]


def objection(words: Sequence[str], *, whole: bool = True) -> str | None:
    """What the parser has against a command; None when it would be taken. Without `whole` it may lack arguments."""
    command = PROGRAM
    rest = [word for word in words if word != "--help"]
    while hasattr(command, "commands"):
        if not rest:
            return f"{' '.join(words)} is a group"
        if rest[0] == "X":
            return None  # which verb it is, is put in
        if rest[0] not in command.commands:
            return f"there is no {rest[0]} in: {' '.join(words)}"
        command = command.commands[rest.pop(0)]
    try:
        command.make_context("tenuto", rest)
    except _MISUSE as error:
        lacking = type(error).__name__ == "MissingParameter"
        return None if lacking and not whole else f"{' '.join(words)}: {error}"
    return None
