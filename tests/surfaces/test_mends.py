"""Every command that a sentence of ours tells a person to give is one that the program takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support import mends

import tenuto
from tenuto.core import classify

SOURCE = Path(tenuto.__file__).parent
#: Where a sentence explains a command and does not tell to give it: these words are no part of it.
PROSE = (" for another try", " makes paused", " tells which are known")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a file but its docstrings, with X for what is put in."""
    held = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, held) and node.body]
    left = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    left |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in left:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def told() -> dict[str, list[str]]:
    """Every command that is told somewhere, with the places."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for line, text in texts(ast.parse(path.read_text("utf-8"))):
            for words in mends.commands(re.sub(r"\{\w+\}", "X", text)):
                command = " ".join(words)
                for prose in PROSE:
                    command = command.removesuffix(prose)
                found.setdefault(command, []).append(f"{path.relative_to(SOURCE)}:{line}")
    return found


def test_every_command_that_is_told_is_one_of_ours() -> None:
    """Its verbs and options are there. What it is to be given may be left to whoever reads it."""
    all_of_them = told()
    assert len(all_of_them) > 60
    wrong = {
        command: (why, places)
        for command, places in all_of_them.items()
        if (why := mends.objection(command.replace("NUMBER", "7").split(), whole=False))
    }
    assert wrong == {}


def test_every_mend_of_the_table_of_health_can_be_given_as_it_stands() -> None:
    for row in classify.TABLE:
        for verb in ("page unwatch", "tool unbind"):
            mend = row.mend.format(task="t-1", turn="c-1", unbind=verb)
            assert [why for words in mends.commands(mend) if (why := mends.objection(words))] == []


def test_a_command_that_is_not_there_is_noticed() -> None:
    (words,) = mends.commands("look at it; then: tenuto mend everything --now, and wait")
    assert words == ["mend", "everything", "--now"]
    assert mends.objection(words) == "there is no mend in: mend everything --now"
    assert mends.objection(["start", "--nowhere"])
    assert mends.objection(["policy"])
    assert mends.objection(["db", "restore"])
    assert not mends.objection(["db", "restore"], whole=False)
    assert not mends.objection(["db", "restore", "FILE"])
